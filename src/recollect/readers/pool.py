"""Reading documents in processes of their own: a file that hangs, crashes or eats memory costs its reader alone.

The processes are started by command line and not by `multiprocessing`, which would run the caller's main module again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import msgspec

from recollect.readers.base import Limits, Unreadable
from recollect.readers.worker import Parsed, Refusal, Reply, Request, resident, too_much_memory
from recollect.text.splitting import Chunking

LOOK_EVERY = 0.05
"""Seconds between two looks at how much memory a worker holds."""
START_SECONDS = 30.0
ROOT = str(Path(__file__).resolve().parents[2])
START = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.path.append(sys.argv.pop(1));"
    " from recollect.readers.worker import main; main()"
)
_decoder = msgspec.msgpack.Decoder(Reply)
_encoder = msgspec.msgpack.Encoder()


class Readers:
    """Up to `workers` processes that read files within `limits`, started when they are needed. `extra` names readers
    (`module:function`) by media type or file suffix, beside the known ones or instead of them."""

    def __init__(
        self,
        workers: int = 2,
        limits: Limits | None = None,
        *,
        recycle_after: int = 200,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.recycle_after = recycle_after
        self.extra = dict(extra or {})
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="recollect-document")
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._lock = threading.Lock()
        self._closed = False

    async def read(self, path: Path, filename: str, chunking: Chunking | None = None) -> Parsed:
        """The text of the file at `path`, and its pieces when `chunking` says how. A caller that is cancelled ends the
        reading.

        Raises:
            Unreadable: there is no text in it for us, or reading it took too much time or memory.
        """
        if self._closed:
            raise Unreadable("server_error", "the readers are closed")
        request = Request(
            path=str(path), filename=filename, limits=self.limits, chunking=chunking, extra=self.extra
        )
        given_up = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self._read, request, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise

    def _read(self, request: Request, given_up: threading.Event) -> Parsed:
        for attempt in (1, 2):
            worker = self._take()
            try:
                reply = worker.ask(request, given_up)
            except Ended:
                self._drop(worker)
                if attempt == 1:  # it had ended by itself before it was asked
                    continue
                raise Unreadable("server_error", "the reader's process does not start") from None
            except BaseException:
                self._drop(worker)
                raise
            if reply.last:
                self._drop(worker)
            else:
                with self._lock:
                    self._idle.append(worker)
            if isinstance(reply.outcome, Refusal):
                raise Unreadable(reply.outcome.code, reply.outcome.message)
            return reply.outcome
        raise AssertionError("two attempts end in an answer or an error")

    def _take(self) -> Worker:
        with self._lock:
            if self._closed:
                raise Unreadable("server_error", "the readers are closed")
            while self._idle:
                worker = self._idle.pop()
                if worker.process.poll() is None:
                    return worker
                self._all.discard(worker)
                worker.kill()
            worker = Worker(self.recycle_after)
            self._all.add(worker)
            return worker

    def _drop(self, worker: Worker) -> None:
        worker.kill()
        with self._lock:
            self._all.discard(worker)

    async def close(self) -> None:
        """Ends every process. Idempotent."""
        with self._lock:
            self._closed = True
            idle, busy = list(self._idle), self._all - set(self._idle)
            self._idle.clear()
        for worker in busy:
            worker.end()
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        for worker in idle:
            self._drop(worker)

    def pids(self) -> list[int]:
        """The processes that there are now."""
        with self._lock:
            return [worker.process.pid for worker in self._all]


class Ended(Exception):
    """The process had ended before it took the request."""


class Worker:
    """One process and the pipes to it; used by one thread at a time, killed by any."""

    def __init__(self, recycle_after: int) -> None:
        """Raises:
        Unreadable: the process cannot be started.
        """
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", START, ROOT, str(recycle_after)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                bufsize=0,
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"},
            )
        except OSError as exc:
            self._said.close()
            raise Unreadable("server_error", f"a process to read it cannot be started: {exc}") from exc
        self._fresh = 0
        self._ready = False

    def ask(self, request: Request, given_up: threading.Event) -> Reply:
        """The worker's reply within the request's limits.

        Raises:
            Ended: the process had ended before it was asked.
            Unreadable: it broke, or had to be killed.
        """
        payload = _encoder.encode(request)
        if not self._ready:  # starting is not the file's time
            self._start(request.limits, given_up)
        try:
            _send(self.process.stdin, len(payload).to_bytes(4, "big") + payload)
        except (BrokenPipeError, ValueError) as exc:
            raise Ended from exc
        return _decoder.decode(self._answer(request.limits, given_up))

    def _start(self, limits: Limits, given_up: threading.Event) -> None:
        try:
            self._answer(msgspec.structs.replace(limits, seconds=START_SECONDS), given_up)
        except Unreadable as exc:
            raise Unreadable("server_error", f"its reader did not start: it {exc}") from exc
        self._ready = True

    def _answer(self, limits: Limits, given_up: threading.Event) -> memoryview:
        """The next frame from the process, within limits."""
        began, self._fresh = time.monotonic(), resident(self.process.pid)
        assert self.process.stdout is not None
        frame = Frame()
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            while not frame.whole:
                if ready.select(LOOK_EVERY):
                    try:
                        piece = os.read(self.process.stdout.fileno(), 1 << 20)
                    except (OSError, ValueError):
                        piece = b""
                    if not piece:
                        raise self._broken(limits, frame)
                    frame.add(piece)
                self._check(limits, began, given_up)
        return frame.payload

    def _check(self, limits: Limits, began: float, given_up: threading.Event) -> None:
        """Kills the process when it has had what it may have."""
        if given_up.is_set():
            self.kill()
            raise Unreadable("server_error", "nobody waits for it any more")
        if time.monotonic() - began > limits.seconds:
            self.kill()
            says = f"took longer than {limits.seconds:g} seconds to read; split it, or raise readers.seconds"
            raise Unreadable("invalid_file", says)
        if resident(self.process.pid) > self._fresh + limits.memory_bytes:
            self.kill()
            raise Unreadable("invalid_file", too_much_memory(limits))

    def _broken(self, limits: Limits, frame: Frame) -> Exception:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        code = self.process.returncode
        if code == 0 and not frame.begun:
            return Ended()
        if code is not None and code < 0:
            if -code == signal.SIGALRM:
                return Unreadable("invalid_file", f"took longer than {limits.seconds:g} seconds to read")
            if -code in (signal.SIGKILL, signal.SIGTERM):  # nothing says that it was the file's fault
                return Unreadable("server_error", f"its reader was killed (signal {-code})")
            return Unreadable("invalid_file", f"broke its reader (signal {-code})")
        return Unreadable("server_error", f"its reader ended with {code}: {self._last_words()}")

    def _last_words(self) -> str:
        try:
            self._said.seek(0)
            lines = self._said.read()[-4_000:].decode("utf-8", "replace").strip().splitlines()
        except (OSError, ValueError):
            return ""
        return lines[-1][:300] if lines else ""

    def end(self) -> None:
        """Ends the process and what it started; for any thread. The one that waits for it sees its output end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Ends the process and lets go of its pipes. Idempotent."""
        self.end()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._said):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class Frame:
    """A frame on its way in: four bytes of length, then the payload."""

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def begun(self) -> bool:
        """Whether anything has come."""
        return bool(self._held)

    @property
    def whole(self) -> bool:
        """Whether all of it has come."""
        return len(self._held) >= 4 and len(self._held) >= 4 + int.from_bytes(self._held[:4], "big")

    @property
    def payload(self) -> memoryview:
        """What was sent."""
        return memoryview(self._held)[4:]

    def add(self, piece: bytes) -> None:
        """Takes what came next."""
        self._held += piece


def _send(stream: IO[bytes] | None, payload: bytes) -> None:
    assert stream is not None
    left = memoryview(payload)
    while left:
        left = left[stream.write(left) :]
