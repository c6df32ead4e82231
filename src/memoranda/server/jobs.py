"""`/v1/jobs`: background jobs and their state."""

from __future__ import annotations

from memoranda.server import wire
from memoranda.server.memories import as_wire
from memoranda.server.route import Call, Route


async def page(call: Call[None, wire.JobsQuery]) -> wire.JobList:
    jobs = await call.memories.jobs(call.query.limit)
    return wire.JobList(
        data=[as_wire(job, wire.JobObject) for job in jobs],
        first_id=jobs[0].id if jobs else None,
        last_id=jobs[-1].id if jobs else None,
    )


async def get(call: Call[None, None]) -> wire.JobObject:
    return as_wire(await call.memories.job(call.id), wire.JobObject)


async def cancel(call: Call[None, None]) -> wire.JobObject:
    return as_wire(await call.memories.cancel(call.id), wire.JobObject)


async def retry(call: Call[None, None]) -> wire.JobObject:
    return as_wire(await call.memories.retry(call.id), wire.JobObject)


ROUTES = (
    Route("GET", "/v1/jobs", "The latest jobs", page, "admin", wire.JobList, query=wire.JobsQuery),
    Route("GET", "/v1/jobs/{id}", "One job", get, "admin", wire.JobObject),
    Route("POST", "/v1/jobs/{id}/cancel", "Cancel a job", cancel, "admin", wire.JobObject),
    Route("POST", "/v1/jobs/{id}/retry", "Queue a failed job again", retry, "admin", wire.JobObject),
)
