"""mem0's API: the paths of its hosted service that its `MemoryClient` calls, and those of its self-hosted server."""

from __future__ import annotations

from collections import Counter
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.server import wire_mem0 as wire
from memoranda.server.auth import ACT_FOR
from memoranda.server.mem0_adding import added, latest, request_of
from memoranda.server.mem0_filters import ENTITIES, moment_of, scopes_in, translated
from memoranda.server.mem0_shapes import (
    KINDS,
    PLACED,
    SAID,
    expiry_of,
    kept_metadata,
    own_metadata,
    shown,
    steps,
)
from memoranda.server.route import BEARER, Api, Call, Route, given
from memoranda.store.access import sees_all
from memoranda.types import Memory, Query

MEM0 = Api("mem0", (*BEARER, "Token"), envelope=wire.Mem0Failure, failure=wire.failure)
PAGE_SIZE = 100
Listed = list[wire.Mem0Memory] | wire.Mem0Page
SearchAnswer = list[wire.Mem0Memory] | wire.Mem0Results
STEP = 1_000
"""Memories per read when all are scanned."""

# --- which memories --------------------------------------------------------------------------------


def selection(call: Call[Any, Any], asked: wire.Entities, **more: Any) -> dict[str, Any]:
    """A selection of memories: entities, filters and categories of a request, in the scopes that its key may name.

    Raises:
        InvalidInput: a filter is wrong, or names no entity although the key must.
    """
    _only_live(asked)
    own = {name: getattr(asked, name) for name in ENTITIES if getattr(asked, name) is not None}
    parts = [own] if own else []
    conditions = [translated(own, "")] if own else []
    filters = getattr(asked, "filters", None)
    if filters:
        parts.append(filters)
        conditions.append(translated(filters))
    categories = getattr(asked, "categories", None)
    if categories:
        conditions.append({"type": "in", "key": "$tags", "value": categories})
    chosen: dict[str, Any] = {"kinds": KINDS, **more}
    if conditions:
        chosen["filters"] = {"type": "and", "filters": conditions}
    subject = call.workspace.subject
    scopes = ["all"] if subject.role == "admin" else sorted(scopes_in({"AND": parts}) or ())
    if scopes:
        chosen["scopes"] = scopes
    elif sees_all(subject):
        raise InvalidInput(
            "filters", "must name a user_id, an agent_id or a run_id, such as {'user_id': 'alice'}"
        )
    return chosen


def _only_live(asked: wire.Entities) -> None:
    """Refuses a request for outdated memories: searches and lists return only current ones.

    Raises:
        InvalidInput: names the field.
    """
    if getattr(asked, "show_expired", None):
        raise InvalidInput("show_expired", "must be false: memories that expired are not listed")
    if getattr(asked, "latest_only", None) is False:
        raise InvalidInput("latest_only", "must be true: only the latest version of a memory is listed")


# --- single memories -------------------------------------------------------------------------------


async def add(call: Call[wire.Mem0AddBody, None]) -> wire.Mem0Added:
    return await added(call)


async def get(call: Call[None, None]) -> wire.Mem0Memory:
    return shown(await call.workspace.memories.get(call.id))


async def update(call: Call[wire.Mem0UpdateBody, None]) -> wire.Mem0Memory:
    return shown(await _update(call, call.id, call.body))


async def _update(call: Call[Any, None], id_: str, asked: wire.Mem0UpdateBody) -> Memory:
    fields = given(asked)
    fields.pop("memory_id", None)
    changes: dict[str, Any] = {}
    if "text" in fields:
        changes["content"] = fields["text"]
    if "timestamp" in fields:
        changes["occurred_at"] = moment_of(fields["timestamp"], "timestamp")
    if "expiration_date" in fields:
        day = fields["expiration_date"]
        changes["invalid_at"] = None if day is None else expiry_of(day)
    if "metadata" in fields:
        private = kept_metadata(await call.workspace.memories.get(id_))
        changes["metadata"] = {**own_metadata(fields["metadata"]), **private}
    if not changes:
        raise InvalidInput("text", "is required, or metadata, timestamp or expiration_date")
    with call.state.telemetry.upserting():
        memory = await call.workspace.memories.update(id_, **changes)
    call.state.telemetry.wrote("updated", 1)
    return memory


async def delete(call: Call[None, None]) -> wire.Mem0Said:
    await call.workspace.memories.delete(call.id)
    return wire.Mem0Said(message="Memory deleted successfully!")


async def history(call: Call[None, None]) -> list[wire.Mem0Version]:
    return steps((await call.workspace.facts.history(call.id)).data)


async def update_batch(call: Call[wire.Mem0BatchUpdateBody, None]) -> wire.Mem0Said:
    for change in call.body.memories:
        await call.workspace.memories.get(change.memory_id)
    for change in call.body.memories:
        await _update(call, change.memory_id, change)
    return wire.Mem0Said(message=f"Successfully updated {len(call.body.memories)} memories")


async def delete_batch(call: Call[wire.Mem0BatchDeleteBody, None]) -> wire.Mem0Said:
    ids = list(dict.fromkeys(entry.memory_id for entry in call.body.memories))
    for id_ in ids:
        await call.workspace.memories.get(id_)
    for id_ in ids:
        await call.workspace.memories.delete(id_)
    return wire.Mem0Said(message=f"Successfully deleted {len(ids)} memories")


# --- lists and searches ----------------------------------------------------------------------------


async def page(call: Call[wire.Mem0ListBody, wire.Mem0PageQuery]) -> wire.Mem0Page:
    return await _paged(call, call.body, call.query)


async def earlier_page(call: Call[wire.Mem0ListBody | None, Any]) -> Listed:
    """As earlier clients read it: a list, or a page where they ask for one."""
    query = call.query
    found = await _paged(call, call.body or query, query)
    return found.results if query.page is None and query.page_size is None else found


async def _paged(call: Call[Any, Any], body: wire.Mem0ListBody, query: wire.Mem0PageQuery) -> wire.Mem0Page:
    number = query.page or body.page or 1
    size = query.page_size or body.page_size or PAGE_SIZE
    dates = {"since": body.start_date, "until": body.end_date}
    chosen = selection(call, body, **{name: at for name, at in dates.items() if at is not None})
    count = await call.workspace.memories.count(**chosen)
    memories = await _page(call, chosen, number, size) if (number - 1) * size < count else []

    def at(other: int) -> str:
        return str(call.request.url.include_query_params(page=other, page_size=size))

    return wire.Mem0Page(
        count=count,
        next=at(number + 1) if number * size < count else None,
        previous=at(number - 1) if number > 1 else None,
        results=[shown(memory) for memory in memories],
    )


async def _page(call: Call[Any, Any], chosen: dict[str, Any], number: int, size: int) -> list[Memory]:
    """The memories on a page. Lists have cursors here, so the pages before it are read, too."""
    after: str | None = None
    for _ in range(number - 1):
        listed = await call.workspace.memories.list(limit=size, after=after, **chosen)
        if not listed.has_more:
            return []
        after = listed.last_id
    return (await call.workspace.memories.list(limit=size, after=after, **chosen)).data


async def search(call: Call[wire.Mem0SearchBody, None]) -> wire.Mem0Results:
    body = call.body
    query = Query(
        query=body.query,
        limit=body.top_k,
        threshold=body.threshold,
        mode="hybrid" if body.keyword_search else "dense",
        rerank={None: None, True: "auto", False: "off"}[body.rerank],
        **selection(call, body),
    )
    result = await call.workspace.memories.search(query)
    call.state.telemetry.searched(len(result.results), result.query_time, result.degraded)
    return wire.Mem0Results(results=[shown(hit.memory, hit.score, body.fields) for hit in result.results])


async def earlier_search(call: Call[wire.Mem0SearchBody, None]) -> SearchAnswer:
    """As earlier clients read it: a list, unless they ask for another format."""
    found = await search(call)
    return found if call.body.output_format == "v1.1" else found.results


async def home_list(call: Call[None, wire.Mem0HomeQuery]) -> wire.Mem0Results:
    listed = await call.workspace.memories.list(limit=call.query.limit, **selection(call, call.query))
    return wire.Mem0Results(results=[shown(memory) for memory in listed.data])


# --- entities --------------------------------------------------------------------------------------


def _everything(call: Call[Any, Any]) -> dict[str, Any]:
    """The selection of all that a key sees.

    Raises:
        InvalidInput: a service key names no user.
    """
    subject = call.workspace.subject
    if subject.role == "service" and subject.user_id is None:
        says = "is required: a service key lists the entities and events of one user, an admin key lists all"
        raise InvalidInput(ACT_FOR, says)
    return {"scopes": ["all"]} if subject.role == "admin" else {}


async def entities(call: Call[None, None]) -> wire.Mem0Entities:
    scopes = _everything(call)
    counts: Counter[tuple[str, str]] = Counter()
    after: str | None = None
    while True:
        listed = await call.workspace.memories.list(limit=STEP, after=after, kinds=KINDS, **scopes)
        counts.update(entity for memory in listed.data for entity in _entities_of(memory))
        if not listed.has_more:
            break
        after = listed.last_id
    results = [
        wire.Mem0Entity(id=name, name=name, type=kind, total_memories=number)  # type: ignore[arg-type]
        for (kind, name), number in sorted(counts.items())
    ]
    return wire.Mem0Entities(count=len(results), results=results)


def _entities_of(memory: Memory) -> list[tuple[str, str]]:
    view = shown(memory)
    named = [(name.removesuffix("_id"), getattr(view, name)) for name in ENTITIES]
    return [(kind, name) for kind, name in named if isinstance(name, str)]


async def delete_all(call: Call[None, wire.Mem0DeleteQuery]) -> wire.Mem0Said:
    named = {name: getattr(call.query, name) for name in ENTITIES if getattr(call.query, name) is not None}
    if not named:
        raise InvalidInput("user_id", "is required, or agent_id, app_id or run_id; `*` stands for any")
    await _forget(call, named)
    return wire.Mem0Said(message="Memories deleted successfully!")


async def _forget(call: Call[Any, Any], named: dict[str, str]) -> None:
    """Erase the memories of entities, and the messages that they were learned from."""
    chosen = selection(call, wire.Entities(**named), kinds=SAID)
    (entity, name) = next(iter(named.items()))
    if len(named) == 1 and entity not in PLACED and name != "*":
        chosen = {"scopes": sorted(scopes_in(named) or ()), "kinds": SAID}
    await call.workspace.memories.forget(**chosen)


async def delete_user(call: Call[None, None]) -> wire.Mem0Said:
    return await _delete_entity(call, "user_id")


async def delete_agent(call: Call[None, None]) -> wire.Mem0Said:
    return await _delete_entity(call, "agent_id")


async def delete_app(call: Call[None, None]) -> wire.Mem0Said:
    return await _delete_entity(call, "app_id")


async def delete_run(call: Call[None, None]) -> wire.Mem0Said:
    return await _delete_entity(call, "run_id")


async def _delete_entity(call: Call[None, None], entity: str) -> wire.Mem0Said:
    await _forget(call, {entity: call.id})
    return wire.Mem0Said(message="Entity deleted successfully!")


async def ping(call: Call[None, None]) -> wire.Mem0Pong:
    tenant = call.workspace.subject.tenant_id
    return wire.Mem0Pong(org_id=tenant, project_id=tenant)


# --- requests --------------------------------------------------------------------------------------


async def one_event(call: Call[None, None]) -> wire.Mem0Request:
    return await request_of(call, call.id)


async def events(call: Call[None, None]) -> wire.Mem0Requests:
    results = await latest(call, _everything(call))
    return wire.Mem0Requests(count=len(results), results=results)


# --- routes ----------------------------------------------------------------------------------------


def _route(method: str, path: str, summary: str, handler: Any, needs: Any, answer: Any, **more: Any) -> Route:
    return Route(method, path, summary, handler, needs, answer, api=MEM0, **more)


def _memory(at: str, end: str) -> tuple[Route, ...]:
    """The routes of one memory below `at`, each path with `end` behind it."""
    path = f"{at}/{{memory_id}}"
    return (
        _route(
            "GET", f"{path}/history{end}", "The history of a memory", history, "read", list[wire.Mem0Version]
        ),
        _route("GET", f"{path}{end}", "One memory", get, "read", wire.Mem0Memory),
        _route(
            "PUT",
            f"{path}{end}",
            "Change a memory",
            update,
            "write",
            wire.Mem0Memory,
            body=wire.Mem0UpdateBody,
        ),
        _route("DELETE", f"{path}{end}", "Delete a memory", delete, "write", wire.Mem0Said),
    )


def _deleting(path: str) -> Route:
    return _route(
        "DELETE", path, "Delete the memories of an entity", delete_all, "write", wire.Mem0Said,
        query=wire.Mem0DeleteQuery, long=True,
    )  # fmt: skip


def _entity(path: str, handler: Any) -> Route:
    says = "Delete an entity with its memories"
    return _route("DELETE", f"/v2/entities/{path}/", says, handler, "write", wire.Mem0Said, long=True)


HOSTED = "/v3/memories"
ADD = {"body": wire.Mem0AddBody, "long": True}
ROUTES = (
    _route("GET", "/v1/ping/", "Check a key", ping, "read", wire.Mem0Pong),
    _route("POST", f"{HOSTED}/add/", "Learn from messages", add, "write", wire.Mem0Added, **ADD),
    _route(
        "POST", f"{HOSTED}/", "A page of memories", page, "read", wire.Mem0Page, body=wire.Mem0ListBody,
        query=wire.Mem0PageQuery,
    ),
    _route("POST", f"{HOSTED}/search/", "Search", search, "read", wire.Mem0Results, body=wire.Mem0SearchBody),
    _route("POST", "/v1/memories/", "Learn from messages", add, "write", wire.Mem0Added, **ADD),
    _route("GET", "/v1/memories/", "Memories of an entity", earlier_page, "read", Listed, query=wire.Mem0ListBody),
    _route(
        "POST", "/v2/memories/", "Memories that pass a filter", earlier_page, "read", Listed, body=wire.Mem0ListBody,
        query=wire.Mem0PageQuery,
    ),
    *(
        _route("POST", path, "Search", earlier_search, "read", SearchAnswer, body=wire.Mem0SearchBody)
        for path in ("/v1/memories/search/", "/v2/memories/search/")
    ),
    _route("GET", "/v1/event/{event_id}/", "What became of a request to add", one_event, "read", wire.Mem0Request),
    _route("GET", "/v1/events/", "The latest requests to add", events, "read", wire.Mem0Requests),
    *_memory("/v1/memories", "/"),
    _deleting("/v1/memories/"),
    _route(
        "PUT", "/v1/batch/", "Change several memories", update_batch, "write", wire.Mem0Said,
        body=wire.Mem0BatchUpdateBody, long=True,
    ),
    _route(
        "DELETE", "/v1/batch/", "Delete several memories", delete_batch, "write", wire.Mem0Said,
        body=wire.Mem0BatchDeleteBody, long=True,
    ),
    _route(
        "GET", "/v1/entities/", "Who has memories", entities, "read", wire.Mem0Entities, long=True
    ),
    _entity("user/{user_id}", delete_user),
    _entity("agent/{agent_name}", delete_agent),
    _entity("app/{app_id}", delete_app),
    _entity("run/{run_id}", delete_run),
    _route("POST", "/memories", "Learn from messages", add, "write", wire.Mem0Added, **ADD),
    _route(
        "GET", "/memories", "Memories of an entity", home_list, "read", wire.Mem0Results,
        query=wire.Mem0HomeQuery,
    ),
    *_memory("/memories", ""),
    _deleting("/memories"),
    _route("POST", "/search", "Search", search, "read", wire.Mem0Results, body=wire.Mem0SearchBody),
)  # fmt: skip
