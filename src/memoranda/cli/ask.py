"""`memoranda ask`: an answer, streamed, with its sources."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoranda.cli.find_store import all_stores, find_store
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import Scope, ScopeId, scope_of, some_text
from memoranda.cli.output import emit, plain, say, say_degraded, say_evidence
from memoranda.cli.product import Product
from memoranda.cli.sources import Sources, source_lines, sources_of
from memoranda.errors import InvalidInput, ModelError, NotFound
from memoranda.knowledge.search import MAX_STORES
from memoranda.responses.events import Event
from memoranda.responses.values import Item, MemoryUse, ResponseRequest
from memoranda.sessions.values import is_person
from memoranda.store.ids import new_id

if TYPE_CHECKING:
    from memoranda.app.blocking.features import BlockingKnowledge

RECENT = 20
"""Messages of the session that the model is shown before the question."""
PLACES = ("user", "session", "channel")
DELTAS = ("response.output_text.delta", "response.refusal.delta")
RESULTS = "file_search_call.results"


@common_options(creates_folder_with="session")
def ask(
    invocation: Invocation,
    question: Annotated[
        str, typer.Argument(help="What you want to know, in your own words.", callback=some_text)
    ],
    store: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID|NAME", help="Search this vector store; repeat for more [default: all stores]."
        ),
    ] = None,
    scope: Scope = None,
    scope_id: ScopeId = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Use the memories of this user and of nobody [default: all]."),
    ] = None,
    channel: Annotated[
        str | None, typer.Option(metavar="ID", help="Use what was said in this channel.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Go on with this session, with its memories, and keep the answer in it."
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID|NAME", help="The agent profile that answers.")
    ] = None,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Use documents alone, no memories.")] = False,
) -> None:
    """Answer a question from memories and documents, and name the sources.

    The answer appears as the model writes it. Without a language model it is quoted from what was found.
    """
    places = _places(scope_of(scope, scope_id, everything=False), user, channel, session)
    use = MemoryUse(
        retrieval=not no_memory,
        user_id=places.get("user"),
        session_id=places.get("session"),
        channel_id=places.get("channel"),
    )
    store_ids = _store_ids(invocation.knowledge, store)
    request = ResponseRequest(
        input=[*_recent_messages(invocation.product, use.session_id), {"role": "user", "content": question}],
        tools=[{"type": "file_search", "vector_store_ids": store_ids}] if store_ids else None,
        include=[RESULTS],
        memory=use,
        agent=agent,
        store=session is not None,
    )
    response = _stream(invocation.product, request, quiet=invocation.as_json)
    sources = sources_of(response, invocation.memories)
    if invocation.as_json:
        emit(_json_answer(response, sources))
    else:
        _print_sources(response, sources)


def _places(scope: str | None, user: str | None, channel: str | None, session: str | None) -> dict[str, str]:
    """Return the user, channel and session that the options name; for `global` alone a new session, which no memory is
    in.

    Raises:
        InvalidInput: one is given twice, or the scope is one of an agent.
    """
    options = {"user": user, "channel": channel, "session": session}
    places = {name: id_ for name, id_ in options.items() if id_ is not None}
    if scope is None:
        return places
    if scope == "global":
        return places or {"session": new_id("session_")}
    name, _, id_ = scope.partition(":")
    if name not in PLACES:
        raise InvalidInput("--scope", "agent is not one here; use user, session or channel, or --agent")
    if name in places:
        raise InvalidInput("--scope", f"names a {name}, and so does --{name}; leave one out")
    return {**places, name: id_}


def _store_ids(knowledge: BlockingKnowledge, names: list[str] | None) -> list[str]:
    """Return the ids of the stores to search: those that are named, else all that have not expired."""
    if names:
        return list(dict.fromkeys(find_store(knowledge, name).id for name in names))
    ids = [store.id for store in all_stores(knowledge) if store.status != "expired"]
    if len(ids) > MAX_STORES:
        say(f"searching the newest {MAX_STORES} of {len(ids)} vector stores; --store names others")
    return ids[:MAX_STORES]


def _recent_messages(product: Product, session: str | None) -> list[Item]:
    """Return the last messages of a session as input of the model; none if the session is new."""
    if session is None:
        return []
    try:
        page = product.sessions.messages(session, limit=RECENT, order="desc")
    except NotFound:
        return []
    return [
        {
            "type": "message",
            "id": message.id,
            "role": "user" if is_person(message.role) else "assistant",
            "content": message.content,
        }
        for message in reversed(page.data)
        if is_person(message.role) or message.role == "assistant"
    ]


def _stream(product: Product, request: ResponseRequest, *, quiet: bool) -> dict[str, Any]:
    """Return the completed response; print its text as it arrives unless `quiet`.

    Raises:
        ModelError: the response failed or was cancelled.
    """
    response: Event = {}
    written = False
    try:
        with closing(product.responses.stream(request)) as events:
            for event in events:
                if event["type"] in DELTAS and not quiet:
                    typer.echo(plain(event["delta"]), nl=False)
                    written = True
                if "response" in event:
                    response = event["response"]
    finally:
        if written:
            typer.echo()
    if response["status"] in ("failed", "cancelled"):
        raise ModelError((response["error"] or {}).get("message") or "the answer was stopped before its end")
    return response


def _json_answer(response: dict[str, Any], sources: Sources) -> dict[str, Any]:
    """Return the answer as one JSON document."""
    extensions = response["extensions"]
    return {
        "id": response["id"],
        "status": response["status"],
        "text": "".join(_texts(response)),
        "citations": sources.citations,
        "memories": sources.memories,
        "evidence": extensions.get("evidence", "none"),
        "evidence_probability": extensions.get("evidence_probability", 0.0),
        "answered_by": extensions.get("answered_by"),
        "degraded": extensions.get("degraded", []),
        "usage": response["usage"],
        "extensions": extensions,
    }


def _texts(response: dict[str, Any]) -> Iterator[str]:
    for item in response["output"]:
        if item["type"] == "message":
            yield from (part.get("text") or part.get("refusal") or "" for part in item["content"])


def _print_sources(response: dict[str, Any], sources: Sources) -> None:
    """Print the sources as text, and on standard error why the answer may be incomplete."""
    extensions = response["extensions"]
    lines = list(source_lines(sources))
    degraded = extensions.get("degraded", [])
    if lines:
        typer.echo("\n".join(["", *lines]))
    if extensions.get("answered_by") == "extractive" and not lines and not response["tools"]:
        say("there are no documents to search; memoranda index PATH adds some, memoranda add TEXT a memory")
    elif extensions.get("answered_by") == "extractive" and lines:
        cause = (
            "the language model did not answer"
            if {"model", "spending"} & {*degraded}
            else "no language model is configured; --set model.url=URL, or model.url in the configuration, names one"
        )
        say(f"quoted from what was found: {cause}")
    if "evidence" in extensions:
        say_evidence(extensions["evidence"], extensions["evidence_probability"])
    if response["status"] == "incomplete":
        reason = (response["incomplete_details"] or {}).get("reason", "no reason was given")
        say(f"the answer is not complete: {reason}")
    say_degraded(degraded)
