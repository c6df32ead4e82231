"""When a job is tried again after an error and when it is given up, by its kind and its attempts. No I/O."""

from __future__ import annotations

import random

from memoranda.errors import Conflict, InvalidInput, MemorandaError
from memoranda.types import Job

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
