"""`/v1/responses` as a WebSocket: one connection, many responses, each event a text frame."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from functools import partial
from typing import Any

import msgspec
from msgspec import to_builtins
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from memoranda.errors import InvalidInput
from memoranda.responses.events import visible
from memoranda.responses.responses import Responses
from memoranda.responses.runs import ENDING
from memoranda.responses.values import Item, Response, ResponseRequest
from memoranda.server import wire_responses as wire
from memoranda.server.auth import Guard
from memoranda.server.errors import Refused, error_response, problem
from memoranda.server.inputs import from_json
from memoranda.server.route import Live, ServerState
from memoranda.server.sse import stopped
from memoranda.store.ids import new_id

PATH = "/v1/responses"
MOST_STREAMS = 32
"""Concurrent responses on one connection."""
MOST_WAITING = 32
"""Requests that wait for their turn in one stream."""
MOST_UNSTORED = 8
"""Unstored responses of a connection that can still be continued."""
_encoder = msgspec.json.Encoder()


class Sockets:
    """The WebSocket at `/v1/responses`, as an ASGI application."""

    def __init__(self, state: ServerState, guard: Guard) -> None:
        self.state = state
        self.guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["memoranda"]
        state.route = PATH
        await receive()
        try:
            request = HTTPConnection(scope)
            async with self.guard.slowed(request):
                subject = self.guard.subject(request, "write")
        except Exception as exc:  # the caller gets an envelope, the log gets the traceback
            await error_response(exc)(scope, receive, send)
            return
        state.tenant = subject.tenant_id
        await send({"type": "websocket.accept"})
        responses = self.state.memoranda.as_subject(subject).responses
        model = self.state.memoranda.engine.model.name
        await Connection(responses, self.state.live, send, model).serve(receive)


class Unstored(msgspec.Struct, frozen=True):
    """The conversation of an unstored response: its `items`, input and output, after the history of `previous`."""

    items: list[Item]
    previous: str | None


class Connection:
    """One client: its running responses by stream, and the unstored responses of this connection."""

    def __init__(self, responses: Responses, live: Live, send: Send, model: str) -> None:
        self._model = model
        self._responses = responses
        self._live = live
        self._send = send
        self._waiting: dict[str | None, deque[wire.ResponseFrame]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._unstored: OrderedDict[str, Unstored] = OrderedDict()

    async def serve(self, receive: Receive) -> None:
        """Receives frames until the client is gone, then stops its running responses."""
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
        except Exception as exc:  # one bad frame must not end the connection
            labels = labels_of(raw)
            self._drop(labels.previous)
            await self._refuse(exc, labels)

    def _queue(self, frame: wire.ResponseFrame) -> None:
        if frame.type != "response.create":
            raise InvalidInput("type", f"{frame.type!r} is unknown; send `response.create`")
        if (frame.response or frame).background:
            raise InvalidInput("background", "is not for WebSockets; send the request over HTTP")
        if self._live.ending.is_set():
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
        """Answers the requests of one stream in order."""
        try:
            while waiting:
                await self._answer(waiting.popleft(), stream_id)
        finally:
            del self._waiting[stream_id]

    async def _answer(self, frame: wire.ResponseFrame, stream_id: str | None) -> None:
        labels = StreamLabels(stream_id, (frame.response or frame).previous_response_id)
        try:
            request, past = self._continued(frame.response or frame)
            if frame.generate is False:
                response = await self._prepared(request, labels)
            else:
                response = await self._streamed(request, labels)
        except Exception as exc:  # the caller gets it as an error frame
            self._drop(labels.previous)
            await self._refuse(exc, labels)
            return
        if response.status == "failed":
            self._drop(labels.previous)
        elif not response.store:
            self._hold(response, past)

    async def _streamed(self, request: ResponseRequest, labels: StreamLabels) -> Response:
        """Makes a response, and sends its events."""
        run = await self._responses.start(request)
        with self._live.holding(partial(run.abandon, ENDING)):
            try:
                async for events in run:
                    for event in events:
                        await self._say(labels.of(event))
            except BaseException:
                run.abandon()
                raise
            return await run.done()

    async def _prepared(self, request: ResponseRequest, labels: StreamLabels) -> Response:
        """A response without an answer: its input is remembered for the responses that continue it."""
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
                labels.of({"type": kind, "sequence_number": number, "response": to_builtins(response)})
            )
        return response

    def _continued(self, asked: ResponseRequest) -> tuple[ResponseRequest, Unstored]:
        """The request for the library, and the conversation to remember for it. If it continues an unstored response of
        this connection, the items of that one come first."""
        items = items_of(asked.input)
        earlier = self._unstored.get(asked.previous_response_id or "")
        if earlier is None or asked.conversation is not None:
            whole, past = asked.input, Unstored(items, asked.previous_response_id)
        else:
            past = Unstored([*earlier.items, *items], earlier.previous)
            whole = past.items
        fields = {name: getattr(asked, name) for name in ResponseRequest.__struct_fields__}
        fields |= {"input": whole, "previous_response_id": past.previous, "stream": True}
        return ResponseRequest(**fields), past

    def _hold(self, response: Response, past: Unstored) -> None:
        """Keep an unstored response to be continued, with the results of its searches."""
        output = [visible(item, True) for item in response.output]
        self._unstored[response.id] = Unstored([*past.items, *output], past.previous)
        while len(self._unstored) > MOST_UNSTORED:
            self._unstored.popitem(last=False)

    def _drop(self, id_: str | None) -> None:
        """Forget the response that a failed one continued: as with OpenAI, a client that retries sends its items."""
        if id_ is not None:
            self._unstored.pop(id_, None)

    async def _refuse(self, exc: Exception, labels: StreamLabels) -> None:
        if isinstance(exc, OSError):  # the client is gone; `serve` ends on the disconnect
            return
        status, details = problem(exc)
        await self._say(labels.of({"type": "error", "status": status, "error": to_builtins(details)}))

    async def _say(self, event: dict[str, Any]) -> None:
        await self._send({"type": "websocket.send", "text": _encoder.encode(event).decode()})


class StreamLabels(msgspec.Struct, frozen=True):
    """Labels for the events of one stream: its id, and the previous response that the client named."""

    stream_id: str | None = None
    previous: str | None = None

    def of(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event as the client expects it."""
        if self.previous is not None and "response" in event:
            event = event | {"response": event["response"] | {"previous_response_id": self.previous}}
        return event if self.stream_id is None else event | {"stream_id": self.stream_id}


class Start(msgspec.Struct):
    """The fields that are read even from an invalid frame."""

    stream_id: str | None = None
    previous_response_id: str | None = None
    response: Start | None = None


def labels_of(raw: bytes) -> StreamLabels:
    """The stream and the previous response of a refused frame, as far as they can be read."""
    try:
        start = msgspec.json.decode(raw, type=Start)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return StreamLabels()
    return StreamLabels(start.stream_id, (start.response or start).previous_response_id)


def items_of(given: str | list[Item] | None) -> list[Item]:
    """An input as items."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given or []


def not_steered(frame: wire.ResponseFrame) -> dict[str, Any]:
    """The answer to input for a running response."""
    says = "a response takes no more input once it has begun; send it in the next `response.create`"
    return {
        "type": "response.steer.failed",
        "sequence_number": 0,
        "error": {"type": "invalid_request_error", "code": "steering_not_supported", "message": says},
        "steer": {"previous_response_id": frame.previous_response_id or "", "input": frame.input or ""},
    }
