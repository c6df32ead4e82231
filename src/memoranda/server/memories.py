"""`/v1/memories`: the operations on memories over HTTP."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response, StreamingResponse

from memoranda.errors import InvalidInput
from memoranda.server import wire
from memoranda.server.auth import is_operator
from memoranda.server.inputs import floats
from memoranda.server.route import JSONL, Call, Route
from memoranda.store.selections import SelectionBody, named_scopes
from memoranda.types import Added, Memory, Query

T = TypeVar("T")
PIECE = 64 << 10
"""Bytes of an export sent at once."""
IN_LIST = re.compile(r"(\[\d+\])?\.?(\w*)(.*)", re.DOTALL)
"""A field that an error names: the element of the list, the field in it, and what follows."""


def as_wire(value: Any, type_: type[T]) -> T:
    """Convert a value of the library to its wire struct."""
    return msgspec.convert(value, type_, from_attributes=True)


def given(body: msgspec.Struct) -> dict[str, Any]:
    """The fields of a body that were sent."""
    fields = {name: getattr(body, name) for name in body.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}


def changes_for(body: msgspec.Struct, tenant: str | None) -> tuple[dict[str, Any], str | None]:
    """The changes in a body, and the tenant that it or the query names.

    Raises:
        InvalidInput: they name two.
    """
    changes = given(body)
    named = changes.pop("tenant")
    if named is not None and tenant is not None and named != tenant:
        raise InvalidInput("tenant", f"is {named!r} in the body and {tenant!r} in the query; name one")
    return changes, named or tenant


async def create(call: Call[wire.NewMemoryBody, None]) -> wire.AddedMemory:
    call.body.embedding = floats(call.body.embedding, "embedding")  # type: ignore[assignment]
    with call.state.telemetry.upserting():
        added = await call.memories.add(call.body)
    call.state.telemetry.added([added])
    return _added(added)


def _added(outcome: Added) -> wire.AddedMemory:
    fields = {name: getattr(outcome.memory, name) for name in outcome.memory.__struct_fields__}
    return wire.AddedMemory(**fields, created=outcome.created, embedded=outcome.embedded)


async def create_batch(call: Call[wire.BatchBody, None]) -> wire.AddedList:
    _read_vectors(call.body.memories)
    with call.state.telemetry.upserting(), in_batch("memories", len(call.body.memories)):
        outcomes = await call.memories.add_many(call.body.memories)
    call.state.telemetry.added(outcomes)
    created = sum(outcome.created for outcome in outcomes)
    return wire.AddedList(
        data=[_added(outcome) for outcome in outcomes],
        first_id=outcomes[0].memory.id,
        last_id=outcomes[-1].memory.id,
        created=created,
        present=len(outcomes) - created,
    )


def _read_vectors(memories: Sequence[wire.NewMemoryBody]) -> None:
    """Replace the vectors of a batch by lists of numbers."""
    for i, new in enumerate(memories):
        new.embedding = floats(new.embedding, f"memories[{i}].embedding")  # type: ignore[assignment]


@contextmanager
def in_batch(
    name: str, size: int, beside: Sequence[str] = (), fields: Mapping[str, str] = MappingProxyType({})
) -> Iterator[None]:
    """Errors about one of a list name it as the body does: `memories[3].tags`. Fields `beside` it are named already;
    `fields` are the body's names of fields that the library calls otherwise, as it calls the list `memories`."""
    try:
        yield
    except InvalidInput as exc:
        if exc.field in (name, *beside):
            raise
        at = name if exc.field == "memories" or not size else f"{name}{_in_element(exc.field, fields)}"
        raise type(exc)(at, str(exc).removeprefix(f"{exc.field}: ")) from exc


def _in_element(field: str, fields: Mapping[str, str]) -> str:
    """The place of a field in a list; that of the first element if the error names none."""
    element, first, rest = IN_LIST.fullmatch(field).groups()  # type: ignore[union-attr]
    inside = f".{fields.get(first, first)}{rest}" if first else rest
    return f"{element or '[0]'}{inside}"


async def page(call: Call[None, wire.ListingQuery]) -> wire.MemoryList:
    return as_wire(await call.memories.list(**call.query.arguments()), wire.MemoryList)


async def get(call: Call[None, None]) -> Memory:
    return await call.memories.get(call.id)


async def update(call: Call[wire.ChangeBody, None]) -> Memory:
    with call.state.telemetry.upserting():
        memory = await call.memories.update(call.id, **given(call.body))
    call.state.telemetry.wrote("updated", 1)
    return memory


async def delete(call: Call[None, None]) -> wire.DeletedMemory:
    await call.memories.delete(call.id)
    return wire.DeletedMemory(id=call.id)


async def search(call: Call[wire.SearchBody, None]) -> wire.SearchAnswer:
    body = call.body
    fields = {name: getattr(body, name) for name in Query.__struct_fields__}
    fields["scopes"] = named_scopes(body.scopes, body.scope, body.scope_id)
    fields["embedding"] = floats(body.embedding, "embedding")
    if body.limit is msgspec.UNSET:
        fields["limit"] = call.state.memoranda.config.search.default_limit
    result = await call.memories.search(Query(**fields))
    call.state.telemetry.searched(len(result.results), result.query_time, result.degraded)
    return as_wire(result, wire.SearchAnswer)


async def forget(call: Call[wire.ForgetBody, None]) -> wire.Forgotten:
    return as_wire(await call.memories.forget(**call.body.arguments()), wire.Forgotten)


async def preview_forget(call: Call[wire.ForgetPreviewBody, None]) -> wire.ForgetPreview:
    return as_wire(await call.memories.preview_forget(**call.body.arguments()), wire.ForgetPreview)


async def count_access(call: Call[wire.AccessBody, None]) -> wire.MemoryCount:
    return wire.MemoryCount(count=await call.memories.count_access(call.body.ids))


async def count(call: Call[SelectionBody, None]) -> wire.MemoryCount:
    return wire.MemoryCount(count=await call.memories.count(**call.body.arguments()))


async def stats(call: Call[None, wire.StatsQuery]) -> wire.MemoryStats | wire.ScopeStats:
    if scopes := named_scopes(None, call.query.scope, call.query.scope_id):
        return as_wire(await call.memories.stats(scope=scopes[0]), wire.ScopeStats)
    counts = as_wire(await call.memories.stats(), wire.MemoryStats)
    if not is_operator(call.memories.subject):
        counts.jobs = counts.database = counts.index = counts.words = None  # they include other tenants
    return counts


async def compact(call: Call[wire.CompactBody, None]) -> wire.JobObject:
    return as_wire(await call.memories.compact(), wire.JobObject)


async def reembed(call: Call[wire.ReembedBody, None]) -> wire.JobObject:
    body = call.body
    job = await call.memories.reembed(everything=body.everything, rows_per_second=body.rows_per_second)
    return as_wire(job, wire.JobObject)


async def move_index(call: Call[wire.MoveBody, None]) -> wire.JobObject:
    return as_wire(await call.memories.move_index(call.body.to), wire.JobObject)


async def export(call: Call[wire.ExportBody | None, wire.ExportBody | None]) -> Response:
    """The stream begins once its first line is there, so that what is wrong is still an error."""
    asked = call.body or call.query or wire.ExportBody()
    lines = call.memories.export(**asked.arguments())
    return StreamingResponse(_pieces(await anext(lines), lines), media_type=JSONL)


async def _pieces(first: bytes, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    buffer = [first]
    size = len(first)
    async for line in lines:
        buffer.append(line)
        size += len(line)
        if size >= PIECE:
            yield b"".join(buffer)
            buffer, size = [], 0
    if buffer:
        yield b"".join(buffer)


async def import_(call: Call[bytes, wire.ImportQuery]) -> wire.ImportedMemories:
    telemetry = call.state.telemetry
    with telemetry.upserting():
        done = await call.memories.import_from(
            call.body.splitlines(), scope=call.query.scope, include_forgotten=call.query.include_forgotten
        )
    telemetry.wrote("created", done.created)
    telemetry.wrote("present", done.present)
    return as_wire(done, wire.ImportedMemories)


async def forgotten(call: Call[wire.ExportedBody, None]) -> wire.ForgottenSince:
    body = call.body
    _read_vectors(body.memories)
    with in_batch("memories", len(body.memories)):
        gone = await call.memories.forgotten(body.memories, body.exported_at)
    return wire.ForgottenSince(forgotten=[place for place, each in enumerate(gone) if each])


async def near_duplicates(call: Call[wire.NearDuplicatesBody, None]) -> wire.NearDuplicateList:
    found = await call.memories.near_duplicates(**call.body.arguments())
    return as_wire(found, wire.NearDuplicateList)


async def facets(call: Call[wire.FacetsBody, None]) -> wire.FacetsObject:
    counted = await call.memories.facets(**call.body.arguments())
    return as_wire(counted, wire.FacetsObject)


async def projection(call: Call[wire.ProjectionBody, None]) -> wire.ProjectionObject:
    shown = await call.memories.projection(**call.body.arguments())
    return as_wire(shown, wire.ProjectionObject)


AT = "/v1/memories"
ROUTES = (
    Route("POST", AT, "Remember one text", create, "write", wire.AddedMemory, wire.NewMemoryBody),
    Route("POST", f"{AT}/batch", "Remember many", create_batch, "write", wire.AddedList, wire.BatchBody, long=True),
    Route("GET", AT, "A page of memories", page, "read", wire.MemoryList, query=wire.ListingQuery),
    Route("POST", f"{AT}/search", "Search", search, "read", wire.SearchAnswer, wire.SearchBody),
    Route("POST", f"{AT}/forget", "Erase for good", forget, "write", wire.Forgotten, wire.ForgetBody, long=True),
    Route(
        "POST", f"{AT}/forget/preview", "What would be erased", preview_forget, "read", wire.ForgetPreview,
        wire.ForgetPreviewBody, long=True,
    ),
    Route(
        "POST", f"{AT}/count_access", "Count a use of memories", count_access, "write", wire.MemoryCount,
        wire.AccessBody,
    ),
    Route("POST", f"{AT}/count", "Count", count, "read", wire.MemoryCount, SelectionBody),
    Route("POST", f"{AT}/facets", "Count by facet", facets, "read", wire.FacetsObject, wire.FacetsBody),
    Route(
        "GET", f"{AT}/stats", "Counts and sizes", stats, "admin", wire.MemoryStats | wire.ScopeStats,
        query=wire.StatsQuery,
    ),
    Route("POST", f"{AT}/compact", "Start a compaction", compact, "admin", wire.JobObject, wire.CompactBody),
    Route("POST", f"{AT}/reembed", "Start making vectors", reembed, "admin", wire.JobObject, wire.ReembedBody),
    Route(
        "POST", f"{AT}/move_index", "Start moving to another vector index", move_index, "operator", wire.JobObject,
        wire.MoveBody,
    ),
    Route("GET", f"{AT}/export", "Export as JSONL", export, "read", query=wire.ExportBody, media=JSONL, long=True),
    Route("POST", f"{AT}/export", "Export as JSONL", export, "read", body=wire.ExportBody, media=JSONL, long=True),
    Route(
        "POST", f"{AT}/import", "Import an export", import_, "write", wire.ImportedMemories, bytes,
        wire.ImportQuery, long=True,
    ),
    Route(
        "POST", f"{AT}/forgotten", "Which of an export were forgotten since", forgotten, "write", wire.ForgottenSince,
        wire.ExportedBody, long=True,
    ),
    Route(
        "POST", f"{AT}/near_duplicates", "Memories that say nearly the same", near_duplicates, "read",
        wire.NearDuplicateList, wire.NearDuplicatesBody, long=True,
    ),
    Route(
        "POST", f"{AT}/projection", "Memories as points of a plane", projection, "read", wire.ProjectionObject,
        wire.ProjectionBody, long=True, compresses=True,
    ),
    Route("GET", f"{AT}/{{id}}", "One memory", get, "read", Memory),
    Route("PATCH", f"{AT}/{{id}}", "Change fields", update, "write", Memory, wire.ChangeBody),
    Route("POST", f"{AT}/{{id}}", "Change fields", update, "write", Memory, wire.ChangeBody),
    Route("DELETE", f"{AT}/{{id}}", "Delete one memory", delete, "write", wire.DeletedMemory),
)  # fmt: skip
