"""A language model behind a chat-completions API: OpenAI, vLLM, Ollama, LiteLLM, llama.cpp and their like.

Reference: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec.structs import asdict

from memoranda.config.agent_sections import Model as Settings
from memoranda.config.secret import Secret
from memoranda.errors import (
    ConfigError,
    ModelBroken,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    UnknownModel,
)
from memoranda.providers.chat.base import AnswerTimedOut, Ask, Ended, Model, Piece, TokenUsage, chat_models
from memoranda.providers.chat.completion import characters, estimated
from memoranda.providers.chat.link import PASSING, Answer, Link, Refusal
from memoranda.providers.chat.priority import Priority
from memoranda.providers.chat.quirks import Quirks, quirks_of
from memoranda.providers.chat.reading import Nonsense, Reading
from memoranda.providers.chat.request import body_of, encoded, refused_parameter
from memoranda.providers.chat.stream import Failed, Stream, Whole
from memoranda.providers.http import TOO_LONG

log = logging.getLogger("memoranda.models")

LINGER_SECONDS = 2.0
"""Seconds to wait for more after the finish reason: the usage may follow."""
NAMES_SECONDS, NAMES_KEPT, NAMES_MISSED = 5.0, 60.0, 10.0
"""Seconds that `names` waits for the server, caches its answer, and caches a failure."""
EXTRAS_KEPT = 10_000
"""Tool calls whose extra content is cached, to be sent back with them."""
REPAIRABLE = frozenset({400, 404, 422, 501})
"""Statuses by which servers refuse an unknown parameter."""
UNKNOWN_NAME = frozenset({400, 404, 422})
"""Statuses by which servers refuse an unknown model."""
SHOWN = 20
"""Names of models in an error."""


class ChatModel(Model):
    """Asks the server at `base` for answers of the model `name`. No connection is opened before the first ask."""

    def __init__(self, name: str, base: str, quirks: Quirks, secret: Secret, settings: Settings) -> None:
        self.name = name
        self.quirks = quirks
        self._timeout = settings.timeout
        self._link = Link(base, secret, settings.timeout, settings.retries)
        self._without: dict[str, frozenset[str]] = {}
        self._extras: dict[str, Any] = {}
        self._names: tuple[float, list[str]] = (0.0, [])
        own = quirks.name == "generic" and base.startswith("http:")
        self._priority = Priority() if quirks.few_at_once or own else None

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """Like `Model.answer`. If the server answers few calls at once, a background call gives way to others, see
        `Priority`. A background call yields all its pieces at its end; its error has the usage of all attempts."""
        if ask.background:
            # a server stops a stream when the client disconnects
            streamed = msgspec.structs.replace(ask, stream=ask.stream or self._priority is not None)
            stopped: list[TokenUsage] = []

            def attempt() -> Awaitable[list[Piece]]:
                return self._in_time(streamed, stopped)

            try:
                whole = await (attempt() if self._priority is None else self._priority.background(attempt))
            except ModelError as exc:
                if stopped:
                    exc.usage = _total(stopped)
                raise
            for piece in _with_stopped(whole, stopped, streamed):
                yield piece
            return
        with nullcontext() if self._priority is None else self._priority.reply():
            async with aclosing(self._answer(ask)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _in_time(self, ask: Ask, stopped: list[TokenUsage]) -> list[Piece]:
        """Return all pieces of an answer.

        Raises:
            AnswerTimedOut: it takes more than `ask.seconds`.
        """
        try:
            async with asyncio.timeout(ask.seconds) as limit:
                return await self._collected(ask, stopped)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            self._link.usage.failures += 1
            says = f"{self._link.place} did not end its answer within {ask.seconds:g} s"
            raise AnswerTimedOut(says) from exc

    async def _collected(self, ask: Ask, stopped: list[TokenUsage]) -> list[Piece]:
        """Return all pieces of an answer. If it is cancelled or breaks off, an estimate of its cost is added to
        `stopped`."""
        collected: list[Piece] = []
        try:
            async with aclosing(self._answer(ask)) as pieces:
                async for piece in pieces:
                    collected.append(piece)
        except (asyncio.CancelledError, ModelError) as exc:
            if collected or isinstance(exc, asyncio.CancelledError):
                stopped.append(estimated(ask, sum(map(characters, collected))))
            raise
        return collected

    async def _answer(self, ask: Ask) -> AsyncGenerator[Piece, None]:
        reading = Reading(self.quirks.inline_thinking, _names(ask) if self.quirks.written_calls else ())
        with self._translated(reading):
            answer = await self._asked(ask)
            stream = Stream(reading) if streamed(answer, ask.stream) else Whole(reading)
            try:
                data = answer.first
                while data:
                    for piece in stream.feed(data):
                        yield piece
                    data = b"" if stream.done else await self._more(answer, stream)
                for piece in self._ending(stream, ask.model or self.name):
                    yield piece
            finally:
                await self._link.leave(answer, settle=stream.done)

    async def names(self) -> list[str]:
        return await self._listed() or [self.name]

    def usage(self) -> dict[str, int]:
        return asdict(self._link.usage)

    def close(self) -> None:
        self._link.close()

    async def _asked(self, ask: Ask) -> Answer:
        """Start the answer to `ask`. A parameter that the server does not know is left out, now and in later
        requests."""
        name = ask.model or self.name
        without = self._without.get(name, frozenset())
        while True:
            body = body_of(ask, self.name, self.quirks, without, self._extras)
            try:
                answer = await self._link.post("/chat/completions", encoded(body))
            except Refusal as exc:
                parameter = None
                if exc.status in REPAIRABLE:
                    parameter = refused_parameter(body, exc.says, exc.parameter, without)
                if parameter is None or parameter in without:
                    raise await self._refused(exc, name) from exc
                log.warning("%s takes no %s for %s: left out", self._link.place, parameter, name)
                without |= {parameter}
                continue
            if without:
                self._without[name] = without
            return answer

    async def _refused(self, exc: Refusal, name: str) -> ModelRefused:
        """Return the error for a refused request: `UnknownModel` for another model than the configured one that the
        server does not list. Servers say so with several statuses."""
        error = self._link.refused(exc)
        if name == self.name or exc.status not in UNKNOWN_NAME or TOO_LONG.search(exc.says):
            return error
        if exc.status != 404 and exc.parameter != "model" and name not in exc.says:
            return error
        listed = await self._listed()
        if not listed or _plain(name) in map(_plain, listed):
            return error
        known = chat_models(listed, self.name)
        more = f" and {len(known) - SHOWN} more, see /v1/models" if len(known) > SHOWN else ""
        names = f"{', '.join(known[:SHOWN])}{more}"
        says = f"{self._link.place} does not list the model {name!r} ({exc}); known: {names}"
        return UnknownModel(says, exc.status)

    async def _listed(self) -> list[str]:
        """Return the names that the server lists, after the configured one; empty if it lists none."""
        until, names = self._names
        if time.monotonic() < until:
            return list(names)
        try:
            served = named_models(await self._link.get("/models", NAMES_SECONDS))
            names = list(dict.fromkeys([self.name, *served])) if served else []
            self._names = (time.monotonic() + NAMES_KEPT, names)
        except ModelUnavailable as exc:
            log.warning("%s", exc)
            self._names = (time.monotonic() + NAMES_MISSED, [])
        return list(self._names[1])

    async def _more(self, answer: Answer, stream: Stream | Whole) -> bytes:
        """Return more of the answer; b"" at its end, or if nothing follows the finish reason."""
        reading, now = stream.reading, time.monotonic()
        if stream.heard > answer.heard:
            answer.heard, answer.at = stream.heard, now
        elif now - answer.at > self._timeout:
            raise self._silent(reading)
        try:
            if reading.finished is None:
                return await answer.read()
            async with asyncio.timeout(LINGER_SECONDS):
                return await answer.read()
        except (TimeoutError, httpx.TransportError, httpx.DecodingError) as exc:
            if reading.finished is not None:
                return b""
            if isinstance(exc, httpx.ReadTimeout):
                raise self._silent(reading) from exc
            raise ModelBroken(f"{self._link.place} broke off: {self._link.clean(str(exc))}") from exc

    def _ending(self, stream: Stream | Whole, model: str) -> list[Piece]:
        """Return the last pieces, with `Ended` at their end."""
        pieces = list(stream.end())
        if not stream.done and stream.reading.finished is None:
            raise ModelBroken(f"{self._link.place} broke off: its answer has no end")
        pieces += stream.reading.end(model)
        if extras := stream.reading.extras:
            self._remember(extras)
        usage = self._link.usage
        for piece in pieces:
            if isinstance(piece, Ended) and piece.usage is not None:
                usage.input_tokens += piece.usage.input
                usage.output_tokens += piece.usage.output
        return pieces

    def _remember(self, extras: dict[str, Any]) -> None:
        """Cache the extra content of calls, the latest only."""
        self._extras |= extras
        for old in list(self._extras)[: max(0, len(self._extras) - EXTRAS_KEPT)]:
            del self._extras[old]

    @contextmanager
    def _translated(self, reading: Reading) -> Iterator[None]:
        """Translate parsing errors into the errors of `Model.answer`, and count failures."""
        try:
            try:
                yield
            except Nonsense as exc:
                says = f"{self._link.place} gave an answer that makes no sense: {self._link.clean(str(exc))}"
                raise ModelBroken(says) from exc
            except Failed as exc:
                raise self._failed(reading, exc) from exc
        except ModelError:
            self._link.usage.failures += 1
            raise

    def _silent(self, reading: Reading) -> ModelError:
        place, seconds = self._link.place, f"{self._timeout:.3g} s"
        if reading.pieces:
            return ModelBroken(f"{place} broke off: it sent nothing more for {seconds}")
        return ModelUnavailable(f"{place} did not answer within {seconds}")

    def _failed(self, reading: Reading, exc: Failed) -> ModelError:
        place, says = self._link.place, self._link.clean(str(exc))
        if reading.pieces:
            return ModelBroken(f"{place} broke off: {says}")
        if 400 <= exc.status < 500 and exc.status not in PASSING:
            return self._link.refused(Refusal(exc.status, str(exc), says))
        return ModelUnavailable(f"{place} did not answer: {says}")


def _with_stopped(pieces: list[Piece], stopped: Sequence[TokenUsage], ask: Ask) -> Iterator[Piece]:
    """Yield the pieces of a whole answer, with the cost of cancelled attempts added to its usage."""
    said = sum(map(characters, pieces))
    for piece in pieces:
        if stopped and isinstance(piece, Ended):
            usage = _total([piece.usage or estimated(ask, said), *stopped])
            piece = msgspec.structs.replace(piece, usage=usage)
        yield piece


def _total(usages: Sequence[TokenUsage]) -> TokenUsage:
    """Return the sum of the tokens of several attempts."""
    return TokenUsage(
        input=sum(usage.input for usage in usages),
        output=sum(usage.output for usage in usages),
        cached=sum(usage.cached for usage in usages),
        reasoning=sum(usage.reasoning for usage in usages),
    )


def _names(ask: Ask) -> list[str]:
    """Return the names of the functions that may be called."""
    if ask.tool_choice == "none" or ask.top_logprobs is not None:
        return []
    return [str(tool.get("function", {}).get("name")) for tool in ask.tools]


def _plain(name: str) -> str:
    """Return a model's name without the parts that servers list and do not require: the folder before it, `:latest`."""
    return name.lower().rpartition("/")[2].removesuffix(":latest")


def streamed(answer: Answer, asked: bool) -> bool:
    """Return True if an answer is events; some servers stream what should be whole, or the other way round."""
    begins = answer.first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if begins.startswith((b"data:", b"event:", b"id:", b":")):
        return True
    return asked and not begins.startswith(b"{") and answer.kind != "application/json"


def named_models(document: Any) -> list[str]:
    """Return the names in an answer to `GET /models`: in `data`, `models`, or a plain list; by `id`, else by `name`."""
    listed = document.get("data") or document.get("models") if isinstance(document, dict) else document
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    names = [entry.get("id") or entry.get("name") for entry in entries]
    return [name for name in names if isinstance(name, str)]


def open_chat(settings: Settings) -> ChatModel:
    """The model `model.name` behind the chat-completions API at `model.url`.

    Raises:
        ConfigError: the name or the key is missing, the key is named twice, the address or the provider is wrong.
    """
    base = _base(settings.url or "")
    if not settings.name:
        raise ConfigError("model.name", "is missing; set it to the name by which the server knows the model")
    ways = ("api_key", "api_key_env", "api_key_file")
    given = [f"model.{way}" for way in ways if getattr(settings, way)]
    if len(given) > 1:
        raise ConfigError(given[0], f"is there beside {' and '.join(given[1:])}; keep one of them")
    quirks = quirks_of(settings.provider, base)
    at_home = urlsplit(base).hostname in quirks.hosts and base.startswith("https:")
    secret = Secret(settings, quirks.key_variable if at_home else None, "model", ModelUnavailable)
    if at_home and quirks.key_variable and secret.last is None:
        says = f"is missing, and {quirks.name} needs one; set it, api_key_env or api_key_file"
        raise ConfigError("model.api_key", f"{says}, or the environment variable {quirks.key_variable}")
    return ChatModel(settings.name, base, quirks, secret, settings)


def _base(url: str) -> str:
    """Return the normalised address: no slash at its end, no password, no query."""
    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError as exc:
        raise ConfigError("model.url", f"is no address: {exc}") from exc
    if not parts.hostname:
        raise ConfigError("model.url", "names no host, as in http://host:8000/v1")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        says = (
            "carries a password, a query or a fragment; write the address alone, and the key in model.api_key"
        )
        raise ConfigError("model.url", says)
    return url.rstrip("/").removesuffix("/chat/completions")
