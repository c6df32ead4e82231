"""A process that reads one file after another for its parent, and may be killed at any moment.

It speaks over standard input and output: a frame is four bytes of length, big-endian, and so many of MessagePack. The
first one, empty, says that it is ready. It ends when its parent is gone, when it is idle for a while, when it has read
many files or has grown. Its arguments are the number of files after which it ends, and the read end of a pipe that only
its parent keeps open.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
from pathlib import Path
from typing import IO, Literal

import msgspec

from memoranda.extras import needed
from memoranda.readers.base import Document, Limits, PageImage, Unreadable
from memoranda.text.splitting import Chunking, ChunkPlace, split

IDLE_SECONDS = 60.0
GROWN = 256 << 20
"""Bytes of growth after which a worker is replaced by a fresh one."""
GRACE = 2.0
"""Seconds beyond the deadline after which a worker ends itself if its parent is gone."""
NICE = 5
"""The niceness of readers, below that of the server."""
WRITES = 256 << 20
"""The largest file that a reader's library may write."""


class Request(msgspec.Struct, kw_only=True, tag="text"):
    """A file to read, and how to split its text (None: not at all). `extra` are readers beside the known ones."""

    path: str
    filename: str
    limits: Limits
    chunking: Chunking | None
    extra: dict[str, str] = {}


class PageRequest(msgspec.Struct, kw_only=True, tag="page"):
    """A page of a PDF to draw, see `pages.render`."""

    path: str
    number: int
    width: int
    passages: list[str]
    find: bool
    limits: Limits


class Parsed(msgspec.Struct, kw_only=True, tag="parsed"):
    """The text of a file, and its pieces; with `semantic` chunking the pieces are sentences, to be grouped."""

    document: Document
    chunks: list[ChunkPlace]


class Refusal(msgspec.Struct, kw_only=True, tag="refusal"):
    """Why a file has no text."""

    code: Literal["unsupported_file", "invalid_file", "server_error"]
    message: str


class Reply(msgspec.Struct, kw_only=True):
    """What became of a request. With `last` the worker ends after it."""

    outcome: Parsed | PageImage | Refusal
    last: bool = False


def answer(request: Request | PageRequest) -> Parsed | PageImage | Refusal:
    """Return the file, read and split in this process, or the image of its page."""
    try:
        return _drawn(request) if isinstance(request, PageRequest) else _parsed(request)
    except Unreadable as exc:
        return Refusal(code=exc.code, message=str(exc))
    except ModuleNotFoundError as exc:
        return Refusal(
            code="unsupported_file", message=needed(exc) or f"needs the module {exc.name}, which is missing"
        )
    except MemoryError:
        return Refusal(code="invalid_file", message=too_much_memory(request.limits))
    except RecursionError:
        return Refusal(code="invalid_file", message="is nested too deeply to be read")
    except Exception as exc:
        says = f"broke its reader ({type(exc).__name__}: {exc})"
        return Refusal(code="invalid_file", message=says[:500])


def _parsed(request: Request) -> Parsed:
    from memoranda.readers.formats import read  # the formats of a request are loaded when it comes

    document = read(Path(request.path), request.filename, request.limits, request.extra)
    pieces: list[ChunkPlace] = []
    if request.chunking is not None:
        pieces = split(document.text, document.pages, document.headings, request.chunking)
    return Parsed(document=document, chunks=pieces)


def _drawn(request: PageRequest) -> PageImage:
    from memoranda.readers.pages import render

    return render(Path(request.path), request.number, request.width, request.passages, find=request.find)


def too_much_memory(limits: Limits) -> str:
    """Return the error message for a file that needs too much memory."""
    return f"needs more than {limits.memory_bytes >> 20} MiB of memory to read; split it, or raise readers.memory_bytes"


def main() -> None:
    """Answer requests until there are no more."""
    requests, replies = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)  # output of native libraries must not mix with replies
    most, lifeline = int(sys.argv[1]), int(sys.argv[2])
    _confine()
    _end_with_parent(lifeline)
    _write(replies, b"")  # ready
    decoder, encoder = msgspec.msgpack.Decoder(Request | PageRequest), msgspec.msgpack.Encoder()
    files, fresh = 0, resident(os.getpid())
    while (frame := _next(requests)) is not None:
        request = decoder.decode(frame)
        signal.setitimer(signal.ITIMER_REAL, request.limits.seconds + GRACE)
        outcome = answer(request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        files += 1
        last = files >= most or resident(os.getpid()) > fresh + GROWN
        _write(replies, encoder.encode(Reply(outcome=outcome, last=last)))
        if last:
            return


def _confine() -> None:
    """Lower the priority, and forbid core files and large files. An alarm ends the process, and so does the end of its
    parent; signals that end a whole service are for its server, which ends this process when its work is done."""
    import resource

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGALRM, signal.SIGIO):  # a parent may have ignored or blocked them
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGALRM, signal.SIGIO))
    with contextlib.suppress(OSError):
        os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (WRITES, WRITES))


def _end_with_parent(lifeline: int) -> None:
    """End the process when the parent ends, even while native code holds the interpreter's lock.

    Nothing is ever written to the pipe, so its only event is that its write end closes. The kernel then sends SIGIO,
    whose default action ends the process. The request pipe cannot serve: the SIGIO of a write to it may come after the
    request was read.
    """
    with contextlib.suppress(OSError):  # where a pipe sends no signal, the alarm ends the process
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    closed = select.poll()
    closed.register(lifeline, 0)  # a hang-up is always reported
    if closed.poll(0):
        raise SystemExit  # the parent ended before the signal was on


def _next(asked: IO[bytes]) -> bytes | None:
    ready, _, _ = select.select([asked], [], [], IDLE_SECONDS)
    return read_frame(asked) if ready else None


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next frame; None at the end of the stream."""
    head = _exactly(stream, 4)
    return None if head is None else _exactly(stream, int.from_bytes(head, "big"))


def _exactly(stream: IO[bytes], size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece = stream.read(size - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _write(stream: IO[bytes], payload: bytes) -> None:
    left = memoryview(len(payload).to_bytes(4, "big") + payload)
    while left:
        left = left[stream.write(left) :]


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 if unknown."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as facts:
            return int(facts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


if __name__ == "__main__":
    main()
