"""`/v1/chat/completions`: answers with the knowledge and memories of this server, whole, or chunk by chunk as the
events of the response come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from memoranda.errors import InvalidInput
from memoranda.responses.events import visible
from memoranda.responses.runs import ENDING, Run
from memoranda.responses.values import Item, Response
from memoranda.server import wire_chat as wire
from memoranda.server.auth import name_in
from memoranda.server.chat_requests import ChatRequest, asked
from memoranda.server.errors import ErrorEnvelope, Refused, problem
from memoranda.server.route import Call, Route
from memoranda.server.sse import Event, EventStream, Frames, finished, keepalive

BETWEEN = "\n\n"
"""Separates the texts of the model before and after a tool call that runs here."""
CUT: dict[str, wire.FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}
NUMBERS = ("index", "start_index", "end_index")
"""The places of a citation in its text."""
_encoder = msgspec.json.Encoder()


def failure_of(run: Run, asked: ChatRequest) -> BaseException | None:
    """Return the error of an answer that is missing or incomplete; None if it is complete."""
    if run.response.status != "failed":
        return None
    if run.failure is not None:
        return asked.renamed(run.failure)
    return Refused(503, "server_ending", (run.response.error or {}).get("message", ""))


def completion(response: Response) -> wire.ChatCompletion:
    """Return a response that has ended as a chat completion."""
    parts = [part for item in response.output if item["type"] == "message" for part in item["content"]]
    refusal = "".join(part["refusal"] for part in parts if part["type"] == "refusal")
    logprobs = [entry for part in parts for entry in part.get("logprobs") or ()]
    thought = [
        part["text"] for item in response.output if item["type"] == "reasoning" for part in item["content"]
    ]
    calls = [_call(item) for item in response.output if item["type"] == "function_call"]
    answer = wire.ChatAnswer(
        content=BETWEEN.join(_texts(response.output)) or None,
        refusal=refusal or None,
        reasoning_content=BETWEEN.join(thought) if thought else UNSET,
        tool_calls=calls or UNSET,
    )
    choice = wire.ChatChoice(
        message=answer,
        logprobs=wire.ChatLogprobs(content=logprobs) if logprobs else None,
        finish_reason=_reason(response),
    )
    return wire.ChatCompletion(
        id=_id(response),
        created=response.created_at,
        model=response.model,
        choices=[choice],
        usage=_usage(response),
        extensions=_extensions(response),
    )


def _id(response: Response) -> str:
    return f"chatcmpl-{response.id.removeprefix('resp_')}"


def _texts(output: Sequence[Item]) -> list[str]:
    """The texts of the messages that are not empty."""
    texts = [_text(item) for item in output if item["type"] == "message"]
    return [text for text in texts if text]


def _text(item: Item) -> str:
    return "".join(part["text"] for part in item["content"] if part["type"] == "output_text")


def _call(item: Item) -> wire.ChatToolCall:
    function = wire.CalledFunction(name=item["name"], arguments=item["arguments"])
    return wire.ChatToolCall(id=item["call_id"], function=function)


def _reason(response: Response) -> wire.FinishReason:
    if response.incomplete_details is not None:
        return CUT[response.incomplete_details["reason"]]
    called = any(item["type"] == "function_call" for item in response.output)
    return "tool_calls" if called else "stop"


def _usage(response: Response) -> wire.ChatUsage:
    used = response.usage
    return wire.ChatUsage(
        prompt_tokens=used.input_tokens,
        completion_tokens=used.output_tokens,
        total_tokens=used.total_tokens,
        prompt_tokens_details=wire.PromptTokensDetails(cached_tokens=used.input_tokens_details.cached_tokens),
        completion_tokens_details=wire.CompletionTokensDetails(
            reasoning_tokens=used.output_tokens_details.reasoning_tokens
        ),
    )


def _extensions(response: Response) -> dict[str, Any]:
    """The extensions of the response, the passages of its file searches, and the citations of its answer."""
    extensions = dict(response.extensions)
    searches = [item for item in response.output if item["type"] == "file_search_call"]
    if searches:
        results = [result for item in searches for result in visible(item, results=True)["results"]]
        keys = ("file_id", "filename", "score")
        extensions["passages"] = [{key: result[key] for key in keys} for result in results]
    if citations := _citations(response.output):
        extensions["citations"] = citations
    return extensions


def _citations(output: Sequence[Item]) -> list[dict[str, Any]]:
    """The annotations of all texts, with their places in the whole content."""
    citations: list[dict[str, Any]] = []
    at = 0
    for item in output:
        if item["type"] != "message" or not _text(item):
            continue
        at += len(BETWEEN) if at else 0
        for part in item["content"]:
            notes = part.get("annotations") or ()
            citations += [note | {key: note[key] + at for key in NUMBERS if key in note} for note in notes]
            at += len(part["text"]) if part["type"] == "output_text" else 0
    return citations


# --- streamed --------------------------------------------------------------------------------------


class ChatFrames(Frames):
    """Chunks as the clients of chat completions read them."""

    def events(self, some: Sequence[Any]) -> bytes:
        """The chunks in one piece."""
        return b"".join(b"data: %b\n\n" % _encoder.encode(chunk) for chunk in some)

    def error(self, exc: Exception) -> bytes:
        """The error that ends the stream."""
        return b"data: %b\n\n" % _encoder.encode(ErrorEnvelope(problem(exc)[1]))

    def end(self) -> bytes:
        """The mark of the end."""
        return b"data: [DONE]\n\n"


async def chunks(run: Run, asked: ChatRequest) -> AsyncIterator[list[wire.ChatChunk]]:
    """The chunks of an answer, in batches as they arrive.

    Raises:
        MemorandaError: it failed; the chunks before it were sent.
    """
    converter = _ChunkConverter(run.response, asked.body)
    async for events in run:
        batch = [chunk for event in events for chunk in converter.of(event)]
        if batch:
            yield batch
    failure = failure_of(run, asked)
    if failure is not None:
        raise failure
    yield converter.last()


class _ChunkConverter:
    """The chunks of one answer. `_calls` are the indexes of its calls by the ids of their items."""

    def __init__(self, response: Response, body: wire.ChatBody) -> None:
        self._response = response
        self._usage = bool(body.stream_options and body.stream_options.include_usage)
        self._calls: dict[str, int] = {}
        self._silent: set[str] = set()
        self._said_in = ""

    def of(self, event: Event) -> list[wire.ChatChunk]:
        """The chunks of an event."""
        kind = event["type"]
        if kind == "response.output_text.delta":
            return [self._content(event)]
        if kind == "response.in_progress":
            return [self._chunk(wire.ChatDelta(role="assistant", content=""))]
        if kind == "response.refusal.delta":
            return [self._chunk(wire.ChatDelta(refusal=event["delta"]))]
        if kind == "response.reasoning_text.delta":
            return [self._chunk(wire.ChatDelta(reasoning_content=event["delta"]))]
        if kind == "response.output_item.added" and event["item"]["type"] == "function_call":
            return [self._begun(event["item"])]
        if kind == "response.function_call_arguments.delta":
            self._silent.discard(event["item_id"])
            return [self._arguments(event["item_id"], event["delta"])]
        if kind == "response.function_call_arguments.done" and event["item_id"] in self._silent:
            return [self._arguments(event["item_id"], event["arguments"])]
        return []

    def last(self) -> list[wire.ChatChunk]:
        """The end of the message, and its usage if the request asks for it."""
        response = self._response
        end = self._chunk(wire.ChatDelta(), finish_reason=_reason(response))
        end.extensions = _extensions(response)
        if not self._usage:
            return [end]
        return [end, msgspec.structs.replace(self._empty(), usage=_usage(response))]

    def _content(self, event: Event) -> wire.ChatChunk:
        text = event["delta"]
        if self._said_in not in ("", event["item_id"]):
            text = BETWEEN + text
        self._said_in = event["item_id"]
        logprobs = wire.ChatLogprobs(content=event["logprobs"]) if event["logprobs"] else None
        return self._chunk(wire.ChatDelta(content=text), logprobs=logprobs)

    def _begun(self, item: Item) -> wire.ChatChunk:
        index = self._calls[item["id"]] = len(self._calls)
        self._silent.add(item["id"])
        function = wire.FunctionDelta(name=item["name"], arguments="")
        return self._called(
            wire.ToolCallDelta(index=index, id=item["call_id"], type="function", function=function)
        )

    def _arguments(self, item_id: str, more: str) -> wire.ChatChunk:
        function = wire.FunctionDelta(arguments=more)
        return self._called(wire.ToolCallDelta(index=self._calls[item_id], function=function))

    def _called(self, call: wire.ToolCallDelta) -> wire.ChatChunk:
        return self._chunk(wire.ChatDelta(tool_calls=[call]))

    def _chunk(self, delta: wire.ChatDelta, **fields: Any) -> wire.ChatChunk:
        return msgspec.structs.replace(self._empty(), choices=[wire.ChunkChoice(delta=delta, **fields)])

    def _empty(self) -> wire.ChatChunk:
        response = self._response
        return wire.ChatChunk(
            id=_id(response),
            created=response.created_at,
            model=response.model,
            choices=[],
            usage=None if self._usage else UNSET,
        )


SESSION = "X-Memoranda-Session"


async def create(call: Call[wire.ChatBody, None]) -> wire.ChatCompletion | EventStream:
    live = call.state.live
    named = call.request.headers.get(SESSION)
    session = None if named is None else name_in(named, SESSION)
    wanted = asked(call.body, call.workspace.subject, session, not call.state.memoranda.config.keys)
    try:
        run = await call.workspace.responses.start(wanted.request, wanted.exchange)
    except InvalidInput as exc:
        raise wanted.renamed(exc) from exc
    if call.body.stream:
        return EventStream(
            chunks(run, wanted),
            live,
            keepalive(call),
            left=run.abandon,
            stop=partial(run.abandon, ENDING),
            frames=ChatFrames(),
        )
    run.mute()
    await finished(run, call.request.receive, live)
    failure = failure_of(run, wanted)
    if failure is not None:
        raise failure
    return completion(run.response)


ROUTES = (
    Route(
        "POST", "/v1/chat/completions", "Answer a conversation", create, "write", wire.ChatCompletion,
        wire.ChatBody, long=True, streams=True,
    ),
)  # fmt: skip
