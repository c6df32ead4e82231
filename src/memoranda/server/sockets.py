"""`/v1/responses` as a WebSocket: one connection, many responses, each event a text frame."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import to_builtins
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from memoranda.errors import InvalidInput
from memoranda.responses.responses import Responses
from memoranda.responses.runs import ENDING
from memoranda.responses.values import Item, Response, ResponseRequest, shown
from memoranda.server import wire_responses as wire
from memoranda.server.auth import Guard
from memoranda.server.errors import Refused, error_response, problem
from memoranda.server.inputs import from_json
from memoranda.server.sse import Live, stopped
from memoranda.server.state import House
from memoranda.store.ids import new_id

PATH = "/v1/responses"
MOST_STREAMS = 32
"""Responses under way at once on one connection."""
MOST_WAITING = 32
"""Requests that wait for their turn in one stream."""
MOST_HELD = 8
"""Responses that are not stored and can still be gone on from."""
_encoder = msgspec.json.Encoder()


class Sockets:
    """The WebSocket at `/v1/responses`, as an ASGI application."""

    def __init__(self, house: House, guard: Guard) -> None:
        self.house = house
        self.guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["memoranda"]
        state.route = PATH
        await receive()
        try:
            subject = self.guard.subject(HTTPConnection(scope), "write")
        except Exception as exc:  # whatever it is, the caller gets an envelope and the log the rest
            await error_response(exc)(scope, receive, send)
            return
        state.tenant = subject.tenant_id
        await send({"type": "websocket.accept"})
        responses = self.house.memoranda.responding_as(subject)
        model = self.house.memoranda.engine.model.name
        await Connection(responses, self.house.live, send, model).serve(receive)


@dataclass(frozen=True, slots=True)
class Held:
    """What a response that is not stored was about: `items` said and answered, after those that `previous` leads to."""

    items: list[Item]
    previous: str | None


class Connection:
    """One client: the responses under way by stream, and those that only this connection knows."""

    def __init__(self, responses: Responses, live: Live, send: Send, model: str) -> None:
        self._model = model
        self._responses = responses
        self._live = live
        self._send = send
        self._waiting: dict[str | None, deque[wire.ResponseFrame]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: OrderedDict[str, Held] = OrderedDict()

    async def serve(self, receive: Receive) -> None:
        """Takes frames until the client is gone, and stops what is under way then."""
        try:
            while (message := await receive())["type"] != "websocket.disconnect":
                await self._take(message)
        finally:
            await stopped(*self._tasks)

    async def _take(self, message: Message) -> None:
        text = message.get("text")
        raw = text.encode() if text is not None else message["bytes"]
        try:
            frame = from_json(raw, wire.ResponseFrame)
            if frame.type == "response.steer":
                await self._say(not_steered(frame))
            else:
                self._queue(frame)
        except Exception as exc:  # one frame that is wrong is no reason to end the connection
            told = told_of(raw)
            self._drop(told.previous)
            await self._refuse(exc, told)

    def _queue(self, frame: wire.ResponseFrame) -> None:
        if frame.type != "response.create":
            raise InvalidInput("type", f"{frame.type!r} is unknown; send `response.create`")
        if (frame.response or frame).background:
            raise InvalidInput("background", "is not for WebSockets; send the request over HTTP")
        if self._live.ending:
            raise Refused(503, "server_ending", "this server is ending; connect again")
        waiting = self._waiting.get(frame.stream_id)
        if waiting is None:
            if len(self._waiting) >= MOST_STREAMS:
                says = f"{MOST_STREAMS} responses are under way on this connection; wait for one of them"
                raise Refused(429, "too_many_streams", says, "stream_id")
            waiting = self._waiting[frame.stream_id] = deque()
            task = asyncio.create_task(self._work(frame.stream_id, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif len(waiting) >= MOST_WAITING:
            says = f"{MOST_WAITING} requests wait in this stream already; wait for a response"
            raise Refused(429, "too_many_requests", says, "stream_id")
        waiting.append(frame)

    async def _work(self, stream_id: str | None, waiting: deque[wire.ResponseFrame]) -> None:
        """Answers what is sent to one stream, one after the other."""
        try:
            while waiting:
                await self._answer(waiting.popleft(), stream_id)
        finally:
            del self._waiting[stream_id]

    async def _answer(self, frame: wire.ResponseFrame, stream_id: str | None) -> None:
        told = Told(stream_id, (frame.response or frame).previous_response_id)
        try:
            request, past = self._continued(frame.response or frame)
            if frame.generate is False:
                response = await self._prepared(request, told)
            else:
                response = await self._made(request, told)
        except Exception as exc:  # whatever it is, the caller gets it in a frame of its own
            self._drop(told.previous)
            await self._refuse(exc, told)
            return
        if response.status == "failed":
            self._drop(told.previous)
        elif not response.store:
            self._hold(response, past)

    async def _made(self, request: ResponseRequest, told: Told) -> Response:
        """Has a response made, and sends its events."""
        run = await self._responses.start(request)
        with self._live.holding(partial(run.abandon, ENDING)):
            try:
                async for events in run:
                    for event in events:
                        await self._say(told.of(event))
            except BaseException:
                run.abandon()
                raise
            await run.done()
            return run.shown()

    async def _prepared(self, request: ResponseRequest, told: Told) -> Response:
        """A response in which nothing is answered: its input is held for what follows it."""
        now = int(time.time())
        response = Response(
            id=new_id("resp_"),
            created_at=now,
            completed_at=now,
            status="completed",
            model=request.model or self._model,
            store=False,
        )
        for number, kind in enumerate(("response.created", "response.completed")):
            await self._say(
                told.of({"type": kind, "sequence_number": number, "response": to_builtins(response)})
            )
        return response

    def _continued(self, asked: ResponseRequest) -> tuple[ResponseRequest, Held]:
        """The request as the library takes it, and what would have to be held of it: where it goes on from a response
        that only this connection knows, that one's items come first."""
        said = items_of(asked.input)
        held = self._held.get(asked.previous_response_id or "")
        if held is None or asked.conversation is not None:
            whole, past = asked.input, Held(said, asked.previous_response_id)
        else:
            past = Held([*held.items, *said], held.previous)
            whole = past.items
        fields = {name: getattr(asked, name) for name in ResponseRequest.__struct_fields__}
        fields |= {"input": whole, "previous_response_id": past.previous, "stream": True}
        return ResponseRequest(**fields), past

    def _hold(self, response: Response, past: Held) -> None:
        self._held[response.id] = Held([*past.items, *map(shown, response.output)], past.previous)
        while len(self._held) > MOST_HELD:
            self._held.popitem(last=False)

    def _drop(self, id_: str | None) -> None:
        """Let go of the response that a failed one went on from: a client that tries again sends its items, as with
        OpenAI."""
        if id_ is not None:
            self._held.pop(id_, None)

    async def _refuse(self, exc: Exception, told: Told) -> None:
        if isinstance(exc, OSError):  # the client is gone, and `serve` hears so
            return
        status, found = problem(exc)
        await self._say(told.of({"type": "error", "status": status, "error": to_builtins(found)}))

    async def _say(self, event: dict[str, Any]) -> None:
        await self._send({"type": "websocket.send", "text": _encoder.encode(event).decode()})


@dataclass(frozen=True, slots=True)
class Told:
    """How events go to one stream: under its id, and with the previous response that the client named."""

    stream_id: str | None = None
    previous: str | None = None

    def of(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event as the client expects it."""
        if self.previous is not None and "response" in event:
            event = event | {"response": event["response"] | {"previous_response_id": self.previous}}
        return event if self.stream_id is None else event | {"stream_id": self.stream_id}


class Start(msgspec.Struct):
    """What of a frame is read although the rest is wrong."""

    stream_id: str | None = None
    previous_response_id: str | None = None
    response: Start | None = None


def told_of(raw: bytes) -> Told:
    """The stream of a frame that is refused, and the response that it goes on from, as far as they can be read."""
    try:
        start = msgspec.json.decode(raw, type=Start)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Told()
    return Told(start.stream_id, (start.response or start).previous_response_id)


def items_of(given: str | list[Item] | None) -> list[Item]:
    """An input as items."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given or []


def not_steered(frame: wire.ResponseFrame) -> dict[str, Any]:
    """The answer to input for a response that is under way already."""
    says = "a response takes no more input once it has begun; send it in the next `response.create`"
    return {
        "type": "response.steer.failed",
        "sequence_number": 0,
        "error": {"type": "invalid_request_error", "code": "steering_not_supported", "message": says},
        "steer": {"previous_response_id": frame.previous_response_id or "", "input": frame.input or ""},
    }
