"""Requests to one chat-completions server: connections, attempts, waits, and refusals."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore  # noqa: F401 - httpx would import it at the first request, on the event loop
import httpx
import msgspec

from memoranda.config.secret import Secret
from memoranda.errors import ModelRefused, ModelUnavailable, UnknownModel
from memoranda.providers.chat.transport import Transport
from memoranda.providers.http import TOO_LONG, Clients, backoff, clean, error_of, retry_after, times, trusted

log = logging.getLogger("memoranda.models")

ABOUT_MODEL = re.compile(r"\bmodel\b", re.IGNORECASE)
"""What a refusal says if its cause may be the name of the model."""
CONNECT_SECONDS = 5.0
CONNECTIONS = 512
"""Calls at once; the next waits for its turn."""
DRAIN_SECONDS = 1.0
"""Seconds to wait for the end of a body, in the background, so that its connection can be reused."""
ERROR_BYTES = 64 << 10
ERROR_SECONDS = 10.0
PASSING = frozenset({408, 409, 425, 429})
FIXES = {
    400: "see what it says, and check model.name and model.provider",
    401: "give a valid key with model.api_key, api_key_env or api_key_file",
    403: "check what the key may use",
    404: "check model.name, and model.url, which usually ends in /v1",
    405: "check model.url, which usually ends in /v1",
    429: "the account's quota is used up: raise it, or use another model",
}


class Usage(msgspec.Struct):
    """Requests to a server since the model was opened. `requests` counts attempts, `retries` attempts after the first,
    `failures` calls without a usable answer."""

    requests: int = 0
    retries: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Passing(Exception):
    """An attempt failed, and another may succeed. `wait` is how long the server asked for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Refusal(Exception):
    """The server refuses this request. `says` is its reason, `parameter` the cause that it names."""

    def __init__(self, status: int, says: str, shown: str, parameter: str = "", fix: str = "") -> None:
        super().__init__(f"status {status}: {shown}" if shown else f"status {status}")
        self.status = status
        self.says = says
        self.parameter = parameter
        self.fix = fix or FIXES.get(status, "see what it says")


class Answer(msgspec.Struct):
    """A body being received: its first bytes, and a function for more; `read` returns b"" at the end. `heard` counts
    the parsed events until the time `at`."""

    response: httpx.Response
    first: bytes
    read: Callable[[], Awaitable[bytes]]
    heard: int = -1
    at: float = 0.0

    @property
    def kind(self) -> str:
        """Its media type."""
        return str(self.response.headers.get("content-type", "")).partition(";")[0].strip().lower()


class Link:
    """Sends requests to one server. `base` begins its addresses, `place` names it in messages. `timeout` is the longest
    silence in seconds, `retries` are attempts after the first."""

    def __init__(self, base: str, secret: Secret, timeout: float, retries: int) -> None:
        self.base = base
        self.place = f"the model at {urlsplit(base).netloc}"
        self.usage = Usage()
        self._secret = secret
        self._timeout = timeout
        self._retries = retries
        self._trusted = trusted()
        self._clients = Clients(self._client)
        self._draining: set[asyncio.Task[None]] = set()
        self._closed = False

    async def post(self, path: str, content: bytes) -> Answer:
        """Return the answer to `content`, its first bytes read. Retries until then, and never after.

        Raises:
            Refusal: the server refuses it.
            ModelUnavailable: it did not answer, or not in time.
        """
        for attempt in range(1, self._retries + 2):
            try:
                return await self._once("POST", path, content, self._timeout)
            except Passing as exc:
                wait = backoff(attempt) if exc.wait is None else exc.wait
                if attempt > self._retries or wait > self._timeout:
                    says = f"{self.place} did not answer: {exc}; tried {times(attempt)}"
                    if isinstance(exc.__cause__, httpx.ConnectError):
                        says += "; start it, or correct model.url"
                    if exc.wait:
                        says += f"; it asks to wait {round(exc.wait, 1):g} s"
                    raise ModelUnavailable(says) from exc
                self.usage.retries += 1
                await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def get(self, path: str, seconds: float) -> Any:
        """Return the JSON at `path`.

        Raises:
            ModelUnavailable: it did not come within `seconds`, or is no JSON.
        """
        try:
            async with asyncio.timeout(seconds):
                answer = await self._once("GET", path, b"", seconds)
                try:
                    body = await rest_of(answer, 1 << 22)
                finally:
                    await answer.response.aclose()
            return msgspec.json.decode(body)
        except (Passing, Refusal, TimeoutError, httpx.TransportError, ValueError) as exc:
            raise ModelUnavailable(f"{self.place} gives no usable answer to {path}: {exc}") from exc

    def refused(self, exc: Refusal) -> ModelRefused:
        """Return the error for a request that the server refuses."""
        unknown = exc.status == 404 and ABOUT_MODEL.search(exc.says)
        return (UnknownModel if unknown else ModelRefused)(
            f"{self.place} refused the request ({exc}); {exc.fix}", exc.status
        )

    def clean(self, text: str) -> str:
        """Return the text shortened, on one line, and without the key."""
        return clean(text, self._secret.last)

    async def leave(self, answer: Answer, settle: bool) -> None:
        """Close the connection of an answer at once. With `settle`, the answer has been read: the connection is reused
        after its last bytes, which are read in the background."""
        if not settle:
            await answer.response.aclose()
            return
        task = asyncio.get_running_loop().create_task(_drain(answer))
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._clients.close()

    async def _once(self, method: str, path: str, content: bytes, timeout: float) -> Answer:
        if self._closed:
            raise ModelUnavailable(f"{self.place} is closed")
        self.usage.requests += 1
        response = await self._sent(method, path, content, timeout)
        try:
            read = _reader(response)
            if response.status_code != 200:
                raise await self._failure(response, read)
            try:
                first = await read()
            except httpx.ReadTimeout as exc:
                raise ModelUnavailable(f"{self.place} did not answer within {timeout:.3g} s") from exc
            except (httpx.TransportError, httpx.DecodingError) as exc:
                raise Passing(self.clean(str(exc))) from exc
            if not first:
                raise Passing("its answer is empty")
            return Answer(response, first, read)
        except BaseException:
            await response.aclose()
            raise

    async def _sent(self, method: str, path: str, content: bytes, timeout: float) -> httpx.Response:
        """Return the response to a request, its headers read."""
        client = self._clients.here()
        limits = httpx.Timeout(None, connect=min(CONNECT_SECONDS, timeout), read=timeout, pool=timeout)
        try:
            request = client.build_request(
                method, self.base + path, content=content, headers=self._headers(), timeout=limits
            )
            return await client.send(request, stream=True, follow_redirects=False)
        except httpx.ReadTimeout as exc:
            raise ModelUnavailable(f"{self.place} did not answer within {timeout:.3g} s") from exc
        except httpx.PoolTimeout as exc:
            says = f"{self.place} was not asked: {CONNECTIONS} calls are under way, and none ended"
            raise ModelUnavailable(f"{says} within {timeout:.3g} s") from exc
        except httpx.TransportError as exc:
            raise Passing(self.clean(str(exc)) or type(exc).__name__) from exc
        except (httpx.InvalidURL, httpx.HTTPError) as exc:
            raise ModelUnavailable(f"{self.place} cannot be asked: {self.clean(str(exc))}") from exc

    def _headers(self) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "user-agent": "memoranda",
        }
        key = self._secret.now()
        return headers | {"authorization": f"Bearer {key}"} if key else headers

    async def _failure(
        self, response: httpx.Response, read: Callable[[], Awaitable[bytes]]
    ) -> Passing | Refusal:
        """Return the error for a status other than 200."""
        body = b""
        with suppress(TimeoutError, httpx.TransportError, httpx.DecodingError):
            async with asyncio.timeout(min(ERROR_SECONDS, self._timeout)):
                while len(body) < ERROR_BYTES and (more := await read()):
                    body += more
        headers = [
            pair
            for pair in response.headers.multi_items()
            if pair[0] in ("retry-after", "retry-after-ms", "date")
        ]
        return self._classified(
            httpx.Response(response.status_code, headers=headers, content=body), response.headers
        )

    def _classified(self, response: httpx.Response, headers: httpx.Headers) -> Passing | Refusal:
        status, (says, code) = response.status_code, error_of(response)
        details, parameter = named(response.content)
        shown = self.clean(says or details)
        refusal = Refusal(status, f"{says} {details} {code}", shown, parameter)
        if status == 429 and code == "insufficient_quota":
            return refusal
        if TOO_LONG.search(says) and (status in (400, 413, 422, 500)):
            refusal.fix = "set model.context_tokens to what the model reads"
            return refusal
        if status in PASSING or status >= 500:
            return Passing(str(refusal), retry_after(response, time.time()))
        if status < 400:
            to = self.clean(headers.get("location", "another address").split("?")[0])
            refusal.fix = f"it points to {to}; set model.url to that"
        if status == 400 and re.search(r"(?i)api.?key", f"{says} {code}"):
            refusal.fix = FIXES[401]  # Gemini says 400 to a wrong key
        return refusal

    def _client(self) -> httpx.AsyncClient:
        """Return a client with our own transport, or httpx's if the environment names a proxy for this server."""
        parts = urlsplit(self.base)
        if not ({parts.scheme, "all"} & getproxies().keys()) or proxy_bypass(parts.netloc):
            return httpx.AsyncClient(transport=Transport(self._trusted, CONNECTIONS), trust_env=False)
        limits = httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=30.0)
        return httpx.AsyncClient(limits=limits, verify=self._trusted)


async def _drain(answer: Answer) -> None:
    try:
        with suppress(TimeoutError, httpx.TransportError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while await answer.read():
                    pass
    finally:
        await answer.response.aclose()


async def rest_of(answer: Answer, most: int) -> bytes:
    """Return the whole body, or more than `most` bytes of a longer one."""
    parts, size = [answer.first], len(answer.first)
    while size <= most and (more := await answer.read()):
        parts.append(more)
        size += len(more)
    return b"".join(parts)


def named(content: bytes) -> tuple[str, str]:
    """Return the messages of a validator (`detail`) and the parameter that an error names."""
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", ""
    body = body[0] if isinstance(body, list) and body else body
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return "", ""
    message = inner.get("message") if isinstance(inner.get("message"), dict) else inner
    details = message.get("detail") if isinstance(message, dict) else None
    problems = [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    says = "; ".join(f"{_last(each.get('loc'))}: {each.get('msg')} ({each.get('type')})" for each in problems)
    parameter = inner.get("param") or next((_last(each.get("loc")) for each in problems), "")
    return says, parameter if isinstance(parameter, str) else ""


def _last(place: Any) -> str:
    return str(place[-1]) if isinstance(place, list) and place else ""


def _reader(response: httpx.Response) -> Callable[[], Awaitable[bytes]]:
    """Return how the body is read: directly from our own transport, unless it is compressed."""
    straight: Callable[[], Awaitable[bytes]] | None = response.extensions.get("read")
    if straight is not None and "content-encoding" not in response.headers:
        return straight
    pieces = response.aiter_bytes()

    async def read() -> bytes:
        return await anext(pieces, b"")

    return read
