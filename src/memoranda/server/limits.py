"""Limits on the size and the time of a request body."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping

from starlette.types import Receive

from memoranda.server.errors import ClientGone, Overloaded, Refused
from memoranda.server.load import Bodies, Body

DRAIN_BYTES = 512 << 20
DRAIN_SECONDS = 5.0


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    most: int,
    patience: float,
    *,
    long: bool = False,
    body: Body | None = None,
) -> bytes:
    """The whole body, of at most `most` bytes, which must arrive within `patience` seconds; a `long` one only has to
    keep arriving, with no pause of more than that. What has arrived is counted in `body`, which may refuse it.

    Raises:
        Overloaded: there is no room for it beside other bodies.
        Refused: 413 too large, 408 too slow, 415 compressed, 400 a Content-Length that is no number.
        ClientGone: the client hung up.
    """
    if headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "unsupported_encoding", "send the body as it is, without Content-Encoding")
    if announced(headers) > most:
        await drain(receive, headers)
        raise _too_large(most)
    body = body or Body(Bodies(most))
    try:
        return await _collect(receive, headers, most, patience, long, body)
    except Overloaded:
        await drain(receive, headers)
        raise
    except TimeoutError as exc:
        says = f"the body did not arrive within {patience:g} seconds"
        raise Refused(408, "request_timeout", says) from exc


async def _collect(
    receive: Receive, headers: Mapping[str, str], most: int, patience: float, long: bool, body: Body
) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(patience) as limit:
            with body.arriving(limit):
                while True:
                    piece, more = await next_piece(receive)
                    size += len(piece)
                    if size > most:
                        await drain(receive, headers)
                        raise _too_large(most)
                    body.take(len(piece))
                    pieces.append(piece)
                    if not more:
                        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
                    if long:
                        limit.reschedule(asyncio.get_running_loop().time() + patience)
    except TimeoutError:
        body.check()
        raise
    finally:
        pieces.clear()  # the traceback of an error has them as long as the rest is drained


async def next_piece(receive: Receive) -> tuple[bytes, bool]:
    """The next piece of a body, and whether more follow.

    Raises:
        ClientGone: the client hung up.
    """
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


def announced(headers: Mapping[str, str]) -> int:
    """The announced length of the body in bytes; 0 without a Content-Length.

    Raises:
        Refused: 400, it is no number.
    """
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        raise Refused(400, "invalid_value", "must be a number", "Content-Length")
    return int(length)


def _too_large(most: int) -> Refused:
    return Refused(
        413,
        "request_too_large",
        f"the body is larger than {most} bytes; send it in parts, or raise server.max_body_bytes",
        "body",
    )


async def drain(receive: Receive, headers: Mapping[str, str]) -> None:
    """Read and discard the rest of a body: a client whose connection is closed while it sends never reads the answer.
    Not for clients that wait for a go-ahead (`Expect: 100-continue`), and bounded in bytes and time."""
    if "expect" in headers or announced(headers) > DRAIN_BYTES:
        return
    size, until = 0, time.monotonic() + DRAIN_SECONDS
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            more = True
            while more and size < DRAIN_BYTES and time.monotonic() < until:
                piece, more = await next_piece(receive)
                size += len(piece)
