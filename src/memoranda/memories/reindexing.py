"""Starts of the jobs that make vectors again, move them to another index, or free the space of deleted rows."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from memoranda.config.agent_sections import OPERATOR_TENANT
from memoranda.errors import InvalidInput
from memoranda.indexes.vector import INDEXES
from memoranda.store.access import must_be_admin
from memoranda.store.core import COMPACT_JOB, EMBED_JOB, MOVE_JOB, Core, must_be_operator
from memoranda.store.jobs import REMODEL_JOB, REMODEL_KEY
from memoranda.types import Job, Subject, says

IndexUrl = Annotated[
    str,
    Meta(
        pattern=f"^({'|'.join(INDEXES)}):",
        extra=says(f"must be the URL of a vector index: {', '.join(INDEXES)}"),
    ),
]


async def reembed(core: Core, subject: Subject, *, everything: bool, rows_per_second: float | None) -> Job:
    """Start the job that makes missing vectors, or all; while another model is configured, the one that changes over
    to it."""
    must_be_admin(subject, "reembed")
    if core.embedders.next is not None:
        must_be_operator(subject, "reembed with another model")
        return await _start(
            core, OPERATOR_TENANT, REMODEL_JOB, {"rows_per_second": rows_per_second}, REMODEL_KEY
        )
    tenant, pace = subject.tenant_id, {"rows_per_second": rows_per_second}
    if everything:
        upto, total = await core.threads.run(core.store.extent, tenant)
        payload = {**pace, "upto": upto, "total": total}
        return await _start(core, tenant, EMBED_JOB, payload, "every embedding")
    payload = {**pace, "total": await core.threads.run(core.store.mark_pending, tenant)}
    return await _start(core, tenant, EMBED_JOB, payload, "embeddings")


async def move_index(core: Core, subject: Subject, to: str) -> Job:
    """Start the job that moves the vectors to the index at the URL `to`."""
    must_be_operator(subject, "move_index")
    if not isinstance(to, str) or to.split(":", 1)[0] not in INDEXES:
        raise InvalidInput("to", f"must be the URL of a vector index: {', '.join(INDEXES)}")
    return await _start(core, OPERATOR_TENANT, MOVE_JOB, {"to": to, "total": None}, "move")


async def compact(core: Core, subject: Subject) -> Job:
    """Start the job that frees the space of deleted rows and vectors."""
    must_be_admin(subject, "compact")
    return await _start(core, subject.tenant_id, COMPACT_JOB, {}, "compact")


async def _start(core: Core, tenant: str, kind: str, payload: dict[str, Any], key: str) -> Job:
    """Return the queued job, or the one with the same key that has not ended."""
    id_ = await core.jobs.enqueue(tenant, kind, payload, dedup_key=key)
    return await core.jobs.get(tenant, id_)
