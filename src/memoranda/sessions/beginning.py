"""Background work of sessions: hooks, jobs and a clock, from opening a library to closing it."""

from __future__ import annotations

from functools import partial

from memoranda.sessions.closing import SUMMARIZE_JOB, Clock, Closing
from memoranda.sessions.erasing import count_summaries, erase_messages, erase_summaries
from memoranda.sessions.following import Following
from memoranda.sessions.joining import JOIN_JOB, Joining
from memoranda.sessions.summarizing import Summarizing
from memoranda.store.core import Core
from memoranda.store.jobs import MEMORY_LANE


class SessionServices:
    """The hooks, the clock and the jobs of sessions in one process."""

    def __init__(self, core: Core) -> None:
        closing = Closing(core)
        following = Following(closing)
        core.store.cascades.append(following.gone)
        core.store.edits.append(following.edited)
        core.jobs.handlers[SUMMARIZE_JOB] = Summarizing(core).work
        core.jobs.lanes[SUMMARIZE_JOB] = MEMORY_LANE
        core.jobs.handlers[JOIN_JOB] = Joining(closing).join
        core.erasers += [erase_messages, partial(erase_summaries, following)]
        core.derived.append(count_summaries)
        self.clock = Clock(closing)

    async def end(self) -> None:
        """Stop the clock: no session is closed from here on."""
        await self.clock.end()


def begin(core: Core) -> SessionServices:
    """Register hooks and jobs; call it before jobs run, with the event loop running."""
    return SessionServices(core)
