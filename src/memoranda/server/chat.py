"""`/v1/chat/completions`: answers with the knowledge and memories of this server, streamed or not."""

from __future__ import annotations

from functools import partial

from memoranda.errors import InvalidInput
from memoranda.responses.runs import ENDING
from memoranda.server import wire_chat as wire
from memoranda.server.auth import name_in
from memoranda.server.chat_answers import ChatFrames, chunks, completion, failure_of
from memoranda.server.chat_requests import asked
from memoranda.server.responses import finished, keepalive
from memoranda.server.route import Call, Route
from memoranda.server.sse import EventStream

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
