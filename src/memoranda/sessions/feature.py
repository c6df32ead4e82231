"""What the message log, its sessions and their summaries add to an open library."""

from __future__ import annotations

from functools import partial

from memoranda.sessions.closing import SUMMARIZE_JOB, Clock, Closing
from memoranda.sessions.erasing import count_summaries, erase_messages, erase_summaries
from memoranda.sessions.following import Following
from memoranda.sessions.merging import JOIN_JOB, Joining
from memoranda.sessions.summarizing import Summarizing
from memoranda.store.core import Core
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import MEMORY_LANE, JobKind


def feature(core: Core) -> Feature:
    """Declare the jobs, reactions to changed messages, erasers and clock of sessions; needs the running event loop."""
    closing = Closing(core)
    following, clock = Following(closing), Clock(closing)
    return Feature(
        jobs={
            SUMMARIZE_JOB: JobKind(Summarizing(core).work, MEMORY_LANE),
            JOIN_JOB: JobKind(Joining(closing).join),
        },
        cascades=(following.gone,),
        edits=(following.edited,),
        erasers=(erase_messages, partial(erase_summaries, following)),
        derived=(count_summaries,),
        due=(clock.expect,),
        start=clock.start,
        stop=clock.stop,
    )
