"""Kinds of jobs, and one attempt at a job as the handler of its kind sees it: its pace, when it is tried again after
an error and when it is given up, and the moments at which something becomes due."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Protocol

import msgspec

from memoranda.errors import Conflict, InvalidInput, MemorandaError
from memoranda.storage.sql.base import Connection
from memoranda.types import Job

DEFAULT_LANE, FILES_LANE, AGENT_LANE, MEMORY_LANE = LANES = 0, 1, 2, 3
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


RELEASE_JOB = "memories.release"
"""Continues the updates that follow from deleted sources of memories, where they do not fit in one transaction. The
job completes a deletion: it cannot be cancelled, and is retried until it succeeds."""
MOST_DEATHS = 20
"""How often the process of a job may die while it runs: restarts condemn no job, one that kills each process ends."""
ASK_AGAIN = "create the response or move the index again"


class GaveUp(MemorandaError):
    """A job that is not tried again, whatever its attempts."""


def check_deaths(kind: str, deaths: int) -> None:
    """Return if a job may run although its process has died so many times.

    Raises:
        GaveUp: it has died too often.
    """
    if deaths > MOST_DEATHS and kind != RELEASE_JOB:
        raise GaveUp(f"its process has died {deaths} times while it ran")


def check_cancel(job: Job) -> None:
    """Return if a job may be cancelled.

    Raises:
        Conflict: it completes a deletion.
    """
    if job.kind == RELEASE_JOB:
        raise Conflict(
            f"job {job.id!r} deletes what was made of deleted memories; it is not cancelled half way"
        )


def check_retry(job: Job, *, asked_again: bool) -> None:
    """Return if a user may retry a job; one of a kind that is `asked_again` is not retried.

    Raises:
        Conflict: it has not failed, or its kind is asked for again.
    """
    if job.state != "failed":
        raise Conflict(f"job {job.id!r} is {job.state}; only a failed job can be retried")
    if asked_again:
        raise Conflict(f"job {job.id!r} is not retried; {ASK_AGAIN}")


def retry_delay(kind: str, attempts: int, error: Exception, most: int) -> float | None:
    """Return the seconds until a job is tried again that has failed with `error` at its `attempts`-th attempt of
    `most`; None if it is given up."""
    final = attempts >= most or isinstance(error, InvalidInput | Conflict | GaveUp)
    return None if final and kind != RELEASE_JOB else backoff(attempts)


def backoff(attempt: int, *, base: float = 1.0, most: float = 300.0) -> float:
    """Return the seconds to wait after the `attempt`-th failure: base x 2^(attempt-1), at most `most`, +-20 % of
    jitter."""
    return float(min(most, base * 2 ** min(attempt - 1, 30)) * random.uniform(0.8, 1.2))


STEP = 64
"""Rows between two reports, without a limit."""


class Pace:
    """The pace of one attempt at a job: `rows_per_second` of its payload, or no limit. `step` is the number of rows
    between two reports: 1..64, at most those of a second."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rate: float | None = run.payload.get("rows_per_second")
        self.step = max(1, int(min(STEP, self._rate))) if self._rate else STEP
        self._began = monotonic()

    async def keep(self, rows: int) -> None:
        """Pause for what is left of the time of so many rows, the time since the start or the last call counted in."""
        left = self._began + rows / self._rate - monotonic() if self._rate else 0.0
        if left > 0:
            await self._run.pause(left)
        self._began = monotonic()


Listener = Callable[[int], None]
"""Called on any thread with the moment (microseconds) at which something becomes due."""


class DueTimes:
    """The moments at which something becomes due in this process."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every moment that is announced from now on."""
        self._listeners.append(listener)

    def announce(self, at: int) -> None:
        """Tell the listeners that something becomes due at a moment (microseconds); callable from any thread."""
        for listener in self._listeners:
            listener(at)
