"""Reading documents in processes of their own: a file that hangs, crashes or exhausts memory costs only its reader.

A reader that dies is logged, and its file is read once more by a fresh one: a second death is the fault of the file. A
deadline or a memory limit is the file's fault at once.

The processes are started by command line and not by `multiprocessing`, which would run the caller's main module again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import msgspec

from memoranda.readers.base import Limits, PageImage, Unreadable
from memoranda.readers.worker import PageRequest, Parsed, Refusal, Reply, Request, resident, too_much_memory
from memoranda.text.splitting import Chunking

LOOK_EVERY = 0.05
"""Seconds between two checks of the memory of a worker."""
START_SECONDS = 30.0
DRAW_SECONDS = 10.0
"""The most seconds that the image of a page takes."""
ROOT = str(Path(__file__).resolve().parents[2])
START = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.path.append(sys.argv.pop(1));"
    " from memoranda.readers.worker import main; main()"
)
CLOSED = "the readers are closed"
LAST_WORDS = 2_000
"""The most bytes of a dead reader's standard error in the log."""
log = logging.getLogger("memoranda.readers")
_decoder = msgspec.msgpack.Decoder(Reply)
_encoder = msgspec.msgpack.Encoder()


class Readers:
    """Up to `workers` processes that read files within `limits`, and one that draws pages, started when needed.
    `extra` names readers (`module:function`) by media type or file suffix, in addition to the known ones or as
    replacements."""

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
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="memoranda-document")
        self._drawing = ThreadPoolExecutor(1, thread_name_prefix="memoranda-page")
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._lock = threading.Lock()
        self._closed = False

    async def read(self, path: Path, filename: str, chunking: Chunking | None = None) -> Parsed:
        """Return the text of the file at `path`, and its chunks if `chunking` is given. A caller that is cancelled
        ends the reading.

        Raises:
            Unreadable: there is no text in it for us, or reading it took too much time or memory.
        """
        request = Request(
            path=str(path.absolute()),  # the process may have begun in another folder
            filename=filename,
            limits=self.limits,
            chunking=chunking,
            extra=self.extra,
        )
        outcome = await self._ask(request, self._threads)
        assert isinstance(outcome, Parsed)
        return outcome

    async def render(
        self, path: Path, number: int, width: int, passages: Sequence[str], *, find: bool = False
    ) -> PageImage:
        """Return the image of a page of the PDF at `path`, see `pages.render`. Images are drawn one at a time, and do
        not wait for files that are read. A caller that is cancelled ends it.

        Raises:
            Unreadable: it is no PDF that can be opened, or drawing took too much time or memory.
        """
        limits = msgspec.structs.replace(self.limits, seconds=min(DRAW_SECONDS, self.limits.seconds))
        request = PageRequest(
            path=str(path.absolute()),
            number=number,
            width=width,
            passages=list(passages),
            find=find,
            limits=limits,
        )
        outcome = await self._ask(request, self._drawing)
        assert isinstance(outcome, PageImage)
        return outcome

    async def _ask(self, request: Request | PageRequest, threads: ThreadPoolExecutor) -> Parsed | PageImage:
        if self._closed:
            raise Unreadable("server_error", CLOSED)
        given_up = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(threads, self._read, request, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise

    def _read(self, request: Request | PageRequest, given_up: threading.Event) -> Parsed | PageImage:
        outcome = self._reply(request, given_up).outcome
        if isinstance(outcome, Refusal):
            raise Unreadable(outcome.code, outcome.message)
        return outcome

    def _reply(self, request: Request | PageRequest, given_up: threading.Event) -> Reply:
        """Return a worker's reply. A file whose worker died is given to one more, with the same limits."""
        worker, died = self._take(), False
        while True:
            try:
                reply = worker.ask(request, given_up)
            except BaseException as exc:
                self._drop(worker)
                if died or not isinstance(exc, Ended | Died):
                    raise
                died = isinstance(exc, Died)
                worker = self._new()
                continue
            if reply.last:
                self._drop(worker)
            else:
                with self._lock:
                    self._idle.append(worker)
            return reply

    def _take(self) -> Worker:
        """Return an idle worker, or else a new one."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if (code := worker.process.poll()) is None:
                    return worker
                if code != 0:
                    worker.log_death()
                self._all.discard(worker)
                worker.kill()
        return self._new()

    def _new(self) -> Worker:
        with self._lock:
            if self._closed:
                raise Unreadable("server_error", CLOSED)
            worker = Worker(self.recycle_after)
            self._all.add(worker)
            return worker

    def _drop(self, worker: Worker) -> None:
        worker.kill()
        with self._lock:
            self._all.discard(worker)

    async def close(self) -> None:
        """End every process. Idempotent."""
        with self._lock:
            self._closed = True
            idle, busy = list(self._idle), self._all - set(self._idle)
            self._idle.clear()
        for worker in busy:
            worker.end()
        for threads in (self._threads, self._drawing):
            await asyncio.get_running_loop().run_in_executor(None, threads.shutdown)
        for worker in idle:
            self._drop(worker)

    def pids(self) -> list[int]:
        """Return the ids of the present processes."""
        with self._lock:
            return [worker.process.pid for worker in self._all]


class Ended(Exception):
    """The process had ended before it received the request."""


class Died(Unreadable):
    """The process died while it read the file, by a signal or with an exit code."""


class Worker:
    """One process and the pipes to it; used by one thread at a time, killed by any. It ends with this process:
    `_lifeline` is the write end of a pipe that nothing is written to, and no other process has it."""

    def __init__(self, recycle_after: int) -> None:
        """Raises:
        Unreadable: the process cannot be started.
        """
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill
        self._lifeline: IO[bytes] | None = None
        try:
            lifeline, write_end = os.pipe()  # a child inherits neither, unless pass_fds names it
            self._lifeline = os.fdopen(write_end, "wb", 0)
            with os.fdopen(lifeline, "rb", 0):
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-c", START, ROOT, str(recycle_after), str(lifeline)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._said,
                    bufsize=0,
                    pass_fds=[lifeline],
                    start_new_session=True,
                    env=os.environ | {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"},
                )
        except OSError as exc:
            self._said.close()
            if self._lifeline is not None:
                self._lifeline.close()
            raise Unreadable("server_error", f"a process to read it cannot be started: {exc}") from exc
        self._fresh = 0
        self._ready = False
        self._used = False
        self._killed = False

    def ask(self, request: Request | PageRequest, given_up: threading.Event) -> Reply:
        """Return the worker's reply within the request's limits.

        Raises:
            Ended: the process had ended before it was asked.
            Died: it died by itself.
            Unreadable: it had to be killed.
        """
        payload = _encoder.encode(request)
        if not self._ready:  # starting does not count towards the limit
            self._start(request.limits, given_up)
        try:
            _send(self.process.stdin, len(payload).to_bytes(4, "big") + payload)
        except (BrokenPipeError, ValueError) as exc:
            raise self._broken(request.limits, sent=False, begun=False) from exc
        reply = _decoder.decode(self._answer(request.limits, given_up))
        self._used = True
        return reply

    def _start(self, limits: Limits, given_up: threading.Event) -> None:
        try:
            self._answer(msgspec.structs.replace(limits, seconds=START_SECONDS), given_up)
        except Unreadable as exc:
            raise type(exc)("server_error", f"its reader did not start: {exc}") from exc
        self._ready = True

    def _answer(self, limits: Limits, given_up: threading.Event) -> memoryview:
        """Return the next frame from the process, within limits."""
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
                        raise self._broken(limits, sent=True, begun=frame.begun)
                    frame.add(piece)
                self._check(limits, began, given_up)
        return frame.payload

    def _check(self, limits: Limits, began: float, given_up: threading.Event) -> None:
        """Kill the process and raise if it exceeds a limit, or the caller gave up."""
        if given_up.is_set():
            self.kill()
            raise Unreadable("server_error", "the request for it has ended")
        if time.monotonic() - began > limits.seconds:
            self.kill()
            says = f"took longer than {limits.seconds:g} seconds to read; split it, or raise readers.seconds"
            raise Unreadable("invalid_file", says)
        if resident(self.process.pid) > self._fresh + limits.memory_bytes:
            self.kill()
            raise Unreadable("invalid_file", too_much_memory(limits))

    def _broken(self, limits: Limits, *, sent: bool, begun: bool) -> Exception:
        """Return why the process ended, after the request was `sent` and its reply had `begun`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        if self._killed:  # by `Readers.close`, in another thread
            return Unreadable("server_error", CLOSED)
        code = self.process.returncode
        ended = self._used and (not sent or (code == 0 and not begun))
        if code != 0 or not ended:  # it ends with 0 after a while without work
            self.log_death()
        if ended:
            return Ended()
        if code == -signal.SIGALRM:
            return Unreadable("invalid_file", f"took longer than {limits.seconds:g} seconds to read")
        if code in (-signal.SIGKILL, -signal.SIGTERM):  # the file may not be at fault
            return Died("server_error", f"its reader was killed ({_ending(code)})")
        if code is not None and code < 0:
            return Died("invalid_file", f"broke its reader ({_ending(code)})")
        line = self._last_words().rpartition("\n")[2][:300]
        return Died("server_error", f"its reader ended with {code}: {line}")

    def log_death(self) -> None:
        """Log the signal or exit code of a process that died, and the end of its standard error."""
        code, words = self.process.returncode, self._last_words()
        extra = {"pid": self.process.pid, "exit_code": code}
        log.warning("a reader died (%s), its last words: %s", _ending(code), words or "none", extra=extra)

    def _last_words(self) -> str:
        """Return the end of what the process wrote to its standard error."""
        try:
            size = os.fstat(self._said.fileno()).st_size
            tail = os.pread(self._said.fileno(), LAST_WORDS, max(0, size - LAST_WORDS))
        except (OSError, ValueError):
            return ""
        return tail.decode("utf-8", "replace").strip()

    def end(self) -> None:
        """End the process and its children; callable from any thread. The thread that waits for it sees its output
        end."""
        self._killed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process and close its pipes. Idempotent."""
        self.end()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._said, self._lifeline):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class Frame:
    """A frame being received: four bytes of length, then the payload."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def begun(self) -> bool:
        """Return True if anything has arrived."""
        return bool(self._buffer)

    @property
    def whole(self) -> bool:
        """Return True if all of it has arrived."""
        return len(self._buffer) >= 4 and len(self._buffer) >= 4 + int.from_bytes(self._buffer[:4], "big")

    @property
    def payload(self) -> memoryview:
        """The payload of the frame."""
        return memoryview(self._buffer)[4:]

    def add(self, piece: bytes) -> None:
        """Append the next piece."""
        self._buffer += piece


def _ending(code: int | None) -> str:
    """Return the signal or the exit code that a process ended with, in words."""
    if code is not None and code < 0:
        return f"signal {-code}, {signal.strsignal(-code)}"
    return f"exit code {code}"


def _send(stream: IO[bytes] | None, payload: bytes) -> None:
    assert stream is not None
    left = memoryview(payload)
    while left:
        left = left[stream.write(left) :]
