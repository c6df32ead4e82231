"""Kinds of jobs, and one attempt at a job as the handler of its kind sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from memoranda.storage.sql.base import Connection

DEFAULT_LANE, FILES_LANE, AGENT_LANE, MEMORY_LANE = 0, 1, 2, 3
"""Jobs wait only for jobs of the same lane: a thousand files never delay maintenance, which is in the default lane."""


class Cancelled(Exception):
    """The job was cancelled; raised out of `Run.report` so that a handler stops between two steps."""


class Postponed(Exception):
    """A service that the job needs is unavailable: the job waits `seconds` and continues. This attempt does not
    count."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


class LeaseLost(Exception):
    """Another worker has claimed the job, because the lease expired. Stop at once, report nothing."""


class Progress(Protocol):
    """Stores how far jobs have come."""

    async def progress(self, run: Run) -> None:
        """See `Run.report`."""


class Run(msgspec.Struct):
    """One attempt at one job, as its handler sees it. `lease` names the attempt in the row; `lost` says that another
    worker has the job now, `awaited` that a caller waits for this attempt. It has one of the `places` of its lane; None
    if it pauses, or never had one. `attempts` counts this one and those that ended by the job's own fault, `deaths`
    those that ended with their process."""

    jobs: Progress
    lease: str
    tenant: str
    id: str
    kind: str
    payload: dict[str, Any]
    cursor: str | None
    done: int
    total: int | None
    attempts: int
    deaths: int = 0
    lost: bool = False
    awaited: bool = False
    places: asyncio.Semaphore | None = None

    async def report(self, done: int, total: int | None = None, cursor: str | None = None) -> None:
        """Store the progress and renew the lease.

        Raises:
            Cancelled: the job was cancelled.
            LeaseLost: another worker has the job now.
        """
        self.done, self.total, self.cursor = (
            done,
            total if total is not None else self.total,
            cursor or self.cursor,
        )
        await self.jobs.progress(self)

    async def pause(self, seconds: float) -> None:
        """Wait, and let other jobs of the lane run meanwhile."""
        places, self.places = self.places, None
        if places is not None:
            places.release()
        await asyncio.sleep(seconds)
        if places is not None:
            await places.acquire()
        self.places = places


Handler = Callable[[Run], Awaitable[dict[str, Any] | None]]
Ending = Callable[[Connection, Run, str], None]
Retrying = Callable[[Connection, str, dict[str, Any]], dict[str, Any] | None]


class JobKind(msgspec.Struct, frozen=True):
    """How jobs of a kind run, and in which lane. `ending` is called in the same transaction when a job finally fails or
    is cancelled. `retrying` is called in the same transaction when a failed job is retried, with its tenant and
    payload; it returns the new payload, or None if what the job is about is gone. A kind that is `asked_again` is not
    retried, but asked for again; the payload of such a job is not kept."""

    handler: Handler
    lane: int = DEFAULT_LANE
    ending: Ending | None = None
    retrying: Retrying | None = None
    asked_again: bool = False
    completes_deletion: bool = False
    """Its payloads have ids only, and forgetting cancels no such job."""
    maintenance: bool = False
    """It is about the rows of every user, and its payloads have no texts: forgetting everything cancels no such job."""
