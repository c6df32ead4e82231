"""A fake chat-completions server that plays a script over HTTP, as an ASGI app, for tests of model clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Literal

import msgspec

from memoranda.providers.chat.base import (
    Ended,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from memoranda.providers.chat.script import Cue, Play, Scripted, TurnCriteria, script_of, unscripted

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
Outcome = Literal["under way", "done", "broken", "left"]
_JSON = (b"content-type", b"application/json")
_NO_STORE = (b"cache-control", b"no-store")


class ClientDisconnected(Exception):
    """The client closed the connection."""


class Received(msgspec.Struct):
    """A received request, and its outcome: `left` if the client disconnected before the end."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    at: float = msgspec.field(default_factory=time.monotonic)
    outcome: Outcome = "under way"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of a chat completion."""
        messages: list[dict[str, Any]] = self.body.get("messages", [])
        return messages

    @property
    def tools(self) -> list[str]:
        """The names of the tools offered."""
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]


class ScriptedApp:
    """`POST /v1/chat/completions` and `GET /v1/models`, with or without `/v1`. `received` are the requests for
    completions so far; `play.add(...)` puts more turns at the end, `play.resume()` ends the pauses of turns."""

    def __init__(self, script: Scripted) -> None:
        self.play = Play(script_of(script))
        self.received: list[Received] = []

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await _lifespan(receive, send)
        path = scope["path"].removeprefix("/v1")
        if (scope["method"], path) == ("GET", "/models"):
            models = [{"id": name, "object": "model", "created": 0} for name in self.play.script.models]
            return await _answer(send, 200, {"object": "list", "data": models})
        if (scope["method"], path) != ("POST", "/chat/completions"):
            return await _answer(send, 404, _error(f"no such address: {scope['path']}"))
        return await self._complete(scope, receive, send)

    async def _complete(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        received = Received(scope["path"], headers)
        try:
            received.body = msgspec.json.decode(await _body(receive), type=dict[str, Any])
        except msgspec.DecodeError as exc:
            return await _answer(send, 400, _error(f"the body is no JSON object: {exc}"))
        self.received.append(received)
        asked = TurnCriteria.of(received.messages, received.body.get("tools") or [])
        cue = self.play.next(asked)
        if cue is None:
            received.outcome = "broken"
            return await _answer(send, 400, _error(unscripted(asked)))
        answer = _Answer(cue, received, send, asyncio.ensure_future(_gone(receive)))
        try:
            received.outcome = await answer.give()
        except ClientDisconnected:
            received.outcome = "left"
        finally:
            answer.gone.cancel()


class _Answer(msgspec.Struct):
    """One turn being sent to one client."""

    cue: Cue
    received: Received
    send: Send
    gone: asyncio.Future[None]

    @property
    def _id(self) -> str:
        return f"chatcmpl-{self.cue.number}"

    async def give(self) -> Outcome:
        """Send the turn; return "broken" for one that fails on purpose.

        Raises:
            Gone: the client left before the end.
        """
        turn = self.cue.turn
        await self._wait(turn.first)
        await self._reached(0)
        if turn.status is not None:
            headers = [(name.lower().encode(), value.encode()) for name, value in turn.headers.items()]
            await _answer(self.send, turn.status, _error(turn.message), headers)
            return "broken"
        await (self._stream() if self.received.body.get("stream") else self._whole())
        if turn.hang:
            await self.gone
            raise ClientDisconnected
        return "broken" if turn.fails else "done"

    async def _wait(self, seconds: float) -> None:
        if seconds:
            await asyncio.wait({self.gone}, timeout=seconds)
        else:
            await asyncio.sleep(0)
        if self.gone.done():
            raise ClientDisconnected

    async def _reached(self, sent: int) -> None:
        """Pause if the script says so."""
        pause = asyncio.ensure_future(self.cue.reached(sent))
        await asyncio.wait({self.gone, pause}, return_when=asyncio.FIRST_COMPLETED)
        pause.cancel()
        if self.gone.done():
            raise ClientDisconnected

    async def _stream(self) -> None:
        turn = self.cue.turn
        await _start(self.send, 200, [(b"content-type", b"text/event-stream; charset=utf-8"), _NO_STORE])
        await self._chunk({"role": "assistant", "content": ""})
        for number, piece in enumerate(self.cue.pieces()):
            if number:
                await self._wait(turn.delay)
            await self._chunk(delta(piece))
            await self._reached(number + 1)
        if turn.garbage is not None:
            await self._send(turn.garbage.encode(), more=False)
        elif not turn.fails:
            await self._end()

    async def _end(self) -> None:
        end = self.cue.end(self._model)
        await self._chunk({}, finish=end.reason)
        if end.usage and (self.received.body.get("stream_options") or {}).get("include_usage"):
            await self._event({"choices": [], "usage": usage(end.usage)})
        await self._send(b"data: [DONE]\n\n", more=False)

    @property
    def _model(self) -> str:
        return str(self.received.body.get("model") or "scripted")

    async def _chunk(self, said: Mapping[str, Any], finish: str | None = None) -> None:
        await self._event({"choices": [{"index": 0, "delta": said, "finish_reason": finish}]})

    async def _event(self, rest: Mapping[str, Any]) -> None:
        head = {"id": self._id, "object": "chat.completion.chunk", "created": 0, "model": self._model}
        await self._send(b"data: " + msgspec.json.encode({**head, **rest}) + b"\n\n")

    async def _send(self, body: bytes, more: bool = True) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": more})

    async def _whole(self) -> None:
        turn, pieces = self.cue.turn, list(self.cue.pieces())
        await self._wait(turn.delay * max(0, len(pieces) - 1))
        await self._reached(turn.pause_at or -1)
        if turn.hang:
            return
        end = self.cue.end(self._model)
        document: dict[str, Any] = {
            "id": self._id,
            "object": "chat.completion",
            "created": 0,
            "model": self._model,
            "choices": [{"index": 0, "message": message(pieces), "finish_reason": end.reason}],
        }
        if end.usage:
            document["usage"] = usage(end.usage)
        if turn.garbage is not None:
            await _answer(self.send, 200, turn.garbage.encode())
            return
        body = msgspec.json.encode(document)
        await _start(self.send, 200, [_JSON, (b"content-length", str(len(body)).encode())])
        await self._send(body[: len(body) // 2] if turn.cut else body, more=turn.cut)


def delta(piece: Piece) -> dict[str, Any]:
    """Return the piece as a delta of chat completions."""
    match piece:
        case TextDelta():
            return {"content": piece.text}
        case ReasoningDelta():
            return {"reasoning_content": piece.text}
        case RefusalDelta():
            return {"refusal": piece.text}
        case ToolCallDelta():
            head = {"id": piece.id, "type": "function"} if piece.id else {}
            named = {"name": piece.name} if piece.name else {}
            return {
                "tool_calls": [
                    {"index": piece.index, **head, "function": {**named, "arguments": piece.arguments}}
                ]
            }
        case Ended():
            return {}


def message(pieces: list[Piece]) -> dict[str, Any]:
    """Return the pieces as the message of an answer that is not streamed."""
    combined: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    for piece in pieces:
        if isinstance(piece, ToolCallDelta):
            function = calls.setdefault(piece.index, {"type": "function", "function": {"arguments": ""}})
            if piece.id:
                function |= {"id": piece.id}
                function["function"]["name"] = piece.name
            function["function"]["arguments"] += piece.arguments
            continue
        for name, text in delta(piece).items():
            combined[name] = (combined.get(name) or "") + text
    return combined | ({"tool_calls": [calls[index] for index in sorted(calls)]} if calls else {})


def usage(counted: TokenUsage) -> dict[str, Any]:
    """Return token usage in the form of chat completions."""
    return {
        "prompt_tokens": counted.input,
        "completion_tokens": counted.output,
        "total_tokens": counted.input + counted.output,
        "prompt_tokens_details": {"cached_tokens": counted.cached},
        "completion_tokens_details": {"reasoning_tokens": counted.reasoning},
    }


def scripted_app(script: Scripted) -> ScriptedApp:
    """The ASGI app that plays `script`: turns (as `Turn` or mappings), a `Script`, or the path of one in JSON."""
    return ScriptedApp(script)


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "scripted", "param": None, "code": None}}


async def _lifespan(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


async def _body(receive: Receive) -> bytes:
    body: bytes = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            return body


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _start(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _answer(
    send: Send, status: int, document: Any, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    body = document if isinstance(document, bytes) else msgspec.json.encode(document)
    await _start(send, status, [_JSON, (b"content-length", str(len(body)).encode()), *(headers or [])])
    await send({"type": "http.response.body", "body": body})
