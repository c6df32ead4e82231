"""Shared by providers behind HTTP: clients per event loop, waits between attempts, and parsing of errors."""

from __future__ import annotations

import asyncio
import random
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from math import isfinite
from weakref import WeakKeyDictionary

import httpx
import msgspec

FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0
"""Seconds before the second attempt, and the most before any, if the provider names no time; doubled each time."""
TOLD_CHARS = 200
TOO_LONG = re.compile(
    r"(?i)context (length|size|window)|too (long|large)|token (limit|count)|maximum .*tokens?"
    r"|exceeds? .*(length|tokens)"
)


class Clients:
    """HTTP clients, one for each event loop, each created by `make` on first use."""

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
        self._closing: set[asyncio.Task[None]] = set()

    def here(self) -> httpx.AsyncClient:
        """Return the client of the running loop."""
        loop = asyncio.get_running_loop()
        if (client := self._clients.get(loop)) is None:
            client = self._clients[loop] = self._make()
        return client

    def close(self) -> None:
        """Close the connections; those of a loop that still runs are closed there."""
        clients, self._clients = list(self._clients.items()), WeakKeyDictionary()
        for loop, client in clients:
            with suppress(RuntimeError):  # the loop closed meanwhile, and its sockets with it
                loop.call_soon_threadsafe(self._close_on, loop, client)

    def _close_on(self, loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient) -> None:
        task = loop.create_task(client.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


@cache
def trusted() -> ssl.SSLContext:
    """Return the TLS context of every connection: loaded once, since it takes about 20 ms."""
    return httpx.create_ssl_context()


def clean(text: str, secret: str | None) -> str:
    """Return the text shortened, on one line, and without the key."""
    text = text.replace(secret, "***") if secret else text
    text = " ".join(text.split())
    return text if len(text) <= TOLD_CHARS else f"{text[:TOLD_CHARS]}..."


def retry_after(response: httpx.Response, now: float) -> float | None:
    """Return the seconds that a response asks to wait, None if it names none; `now` is Unix time.

    Reads `retry-after-ms`, then `Retry-After` as seconds or as a date (RFC 9110, 10.2.3), which counts from
    the response's own `Date`, so that the two clocks need not agree; then the `retryDelay` in Google's errors.
    """
    headers = response.headers
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            if isfinite(seconds := float(headers[name]) / unit):
                return max(0.0, seconds)
    if (at := _date(headers.get("retry-after"))) is not None:
        return max(0.0, at - (_date(headers.get("date")) or now))
    if match := re.search(rb'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"', response.content[:65_536]):
        return float(match[1])
    return None


def _date(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except ValueError:
        return None


def error_of(response: httpx.Response) -> tuple[str, str]:
    """Return message and code of an error body: `{"error": {"message": ...}}`, `{"error": ...}`, `{"message": ...}` or
    `{"detail": ...}`; empty for another shape, since that may repeat the texts of the request."""
    try:
        body = msgspec.json.decode(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", ""
    body = body[0] if isinstance(body, list) and body else body  # Google sends some errors in a list
    inner = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(inner, str):
        return inner, ""
    if not isinstance(inner, dict):
        return "", ""
    says = next((inner[name] for name in ("message", "detail") if isinstance(inner.get(name), str)), "")
    return says, str(inner.get("code") or inner.get("type") or inner.get("status") or "")


def backoff(attempt: int) -> float:
    """Return the seconds before the next attempt, less a random part of up to half."""
    longest: float = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1))
    return longest * random.uniform(0.5, 1.0)


def times(count: int) -> str:
    """Return a count in words."""
    return "once" if count == 1 else f"{count} times"
