"""One POST to a provider that may be slow, busy or unavailable: attempts, waits, deadlines, and errors."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpcore  # noqa: F401 - httpx would import it at the first request, on the event loop
import httpx
import msgspec

from memoranda.errors import EmbedderUnavailable
from memoranda.providers.embeddings.base import Task
from memoranda.providers.http import TOO_LONG, Clients, backoff, clean, error_of, retry_after, times, trusted

log = logging.getLogger("memoranda.embeddings")

TRIES = 4
REST, LONGEST_REST = 2.0, 60.0
"""Seconds for which a provider that failed gets no request: the least, and the most that it can ask for."""
PASSING = frozenset({408, 425, 429})
FINAL = frozenset({401, 403, 404})
FIXES = {
    400: "see what it says, and check embedder.dimension and the model's name",
    401: "give a valid key with embedder.api_key, api_key_env or api_key_file",
    403: "check what the key may use, and embedder.project_id and location if they are set",
    404: "check the model in embedder.url, and embedder.base_url",
    429: "the account's quota is used up: raise it, or use another model",
}


class Usage(msgspec.Struct):
    """Requests to a provider since the embedder was opened.

    `requests` counts every POST, retries included, and `retries` those after the first; `failures` are requests given
    up. `tokens` is what the provider reports, else an estimate. `truncated` counts texts that were cut.
    """

    requests: int = 0
    retries: int = 0
    failures: int = 0
    tokens: int = 0
    truncated: int = 0


class Passing(Exception):
    """An attempt failed, and another may succeed. `wait` is how long the provider asked for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Refused(Exception):
    """The provider refuses this request, however often it is sent. `reason` is its own reason."""

    def __init__(self, status: int, reason: str, fix: str = "") -> None:
        super().__init__(f"status {status}: {reason}" if reason else f"status {status}")
        self.status = status
        self.reason = reason
        self.fix = fix

    @property
    def too_long(self) -> bool:
        """True if the request was too large, by its status or by the provider's message."""
        return self.status == 413 or bool(TOO_LONG.search(self.reason))


class Unusable(Exception):
    """The provider answered, and the answer cannot be used."""


class Wire:
    """Requests to one provider. Connections are cached per event loop; none is opened before the first POST.

    `place` names it in messages, `base` begins its addresses. `header` returns the request's headers each time, so that
    a key in a file may change; `secret` returns the key last used, which no message repeats. `fixes` are the fixes of
    refusals by status, before the usual ones.
    """

    def __init__(
        self,
        place: str,
        base: str,
        header: Callable[[], Mapping[str, str]],
        secret: Callable[[], str | None],
        connections: int,
        fixes: Mapping[int, str],
    ) -> None:
        self.place = place
        self.base = base
        self.fixes = FIXES | dict(fixes)
        self.usage = Usage()
        self._trusted = trusted()
        self._header = header
        self._secret = secret
        self._connections = connections
        self._clients = Clients(self._client)
        self._resting: dict[Task, tuple[float, str]] = {}

    async def post(
        self, path: str, body: Mapping[str, Any], lane: Task, *, timeout: float, patience: float
    ) -> dict[str, Any]:
        """Return the JSON object that the provider answers to `body`.

        An attempt takes at most `timeout` seconds, and all attempts with the waits between at most `patience`.

        Raises:
            Refused: it refuses this request.
            EmbedderUnavailable: it did not answer in time, or not with JSON; or it failed a moment ago in
                this lane, and gets no request yet.
        """
        self._awake(lane)
        until = time.monotonic() + patience
        content = msgspec.json.encode(body)
        for attempt in range(1, TRIES + 1):
            try:
                left = until - time.monotonic()
                return await self._once(path, content, min(timeout, left))
            except Passing as exc:
                wait = backoff(attempt) if exc.wait is None else exc.wait
                if attempt == TRIES or time.monotonic() + wait >= until:
                    says = f"{self.place} did not answer: {exc}; tried {times(attempt)}"
                    if isinstance(exc.__cause__, httpx.ConnectError):
                        says += "; start it, or correct embedder.base_url"
                    self.rest(lane, says, exc.wait or 0.0)
                    raise EmbedderUnavailable(says) from exc
                self.usage.retries += 1
                await asyncio.sleep(wait)
            except Refused as exc:
                if exc.status in FINAL:
                    self.rest(lane, self.refusal(exc))
                raise
        raise AssertionError("the last try returns or raises")

    def refusal(self, exc: Refused) -> str:
        """Return the error message for a request that the provider refuses."""
        fix = exc.fix or self.fixes.get(exc.status, "see what it says")
        return f"{self.place} refused the request ({exc}); {fix}"

    async def _once(self, path: str, content: bytes, timeout: float) -> dict[str, Any]:
        self.usage.requests += 1
        headers = {"content-type": "application/json", **self._header()}
        try:
            async with asyncio.timeout(timeout):
                response = await self._clients.here().post(self.base + path, content=content, headers=headers)
        except TimeoutError as exc:
            raise Passing(f"nothing came within {timeout:.3g} s") from exc
        except httpx.TransportError as exc:
            raise Passing(self._clean(str(exc)) or type(exc).__name__) from exc
        except (httpx.InvalidURL, httpx.HTTPError) as exc:
            raise EmbedderUnavailable(f"{self.place} cannot be asked: {self._clean(str(exc))}") from exc
        if response.status_code == 200:
            return self._object(response)
        raise self._failure(response)

    def _object(self, response: httpx.Response) -> dict[str, Any]:
        try:
            document = msgspec.json.decode(response.content)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            kind = response.headers.get("content-type", "no content type")
            says = f"{self.place} answered with something that is not JSON ({kind}); check embedder.base_url"
            raise EmbedderUnavailable(says) from exc
        if not isinstance(document, dict):
            says = f"{self.place} answered with JSON that is not an object; check embedder.base_url"
            raise EmbedderUnavailable(says)
        return document

    def _failure(self, response: httpx.Response) -> Passing | Refused:
        status, (says, code) = response.status_code, error_of(response)
        says = self._clean(says)
        if status == 429 and code == "insufficient_quota":
            return Refused(status, says)
        refused = Refused(status, says)
        if status == 500 and refused.too_long:  # llama.cpp says it so
            return refused
        if status in PASSING or status >= 500:
            return Passing(str(refused), retry_after(response, time.time()))
        if status < 400:
            to = response.headers.get("location", "another address").split("?")[0]
            return Refused(status, says, f"it points to {self._clean(to)}; set embedder.base_url to that")
        if status == 400 and re.search(r"(?i)api.?key", f"{says} {code}"):
            return Refused(401, says)  # Gemini says 400 to a wrong key
        return refused

    def _clean(self, text: str) -> str:
        return clean(text, self._secret())

    def _awake(self, lane: Task) -> None:
        until, says = self._resting.get(lane, (0.0, ""))
        if (left := until - time.monotonic()) > 0:
            raise EmbedderUnavailable(f"{says}; it is asked again in {max(left, 0.1):.1f} s")

    def rest(self, lane: Task, says: str, wait: float = 0.0) -> None:
        """Send no request in this lane for `wait` seconds, within bounds; `says` is the reason."""
        self.usage.failures += 1
        self._resting[lane] = (time.monotonic() + min(LONGEST_REST, max(REST, wait)), says)
        log.warning("%s", says)

    def _client(self) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=self._connections, keepalive_expiry=30.0)
        return httpx.AsyncClient(timeout=None, limits=limits, verify=self._trusted)

    def close(self) -> None:
        """Close the connections; those of a loop that still runs are closed there."""
        self._clients.close()
