"""What the message log, its sessions and their summaries add to an open library."""

from __future__ import annotations

from functools import partial

from memoranda.sessions.boundaries import SUMMARIZE_JOB, Clock, SessionCloser
from memoranda.sessions.erasing import count_summaries, erase_messages, erase_summaries
from memoranda.sessions.merge import JOIN_JOB, SessionMerge
from memoranda.sessions.reactions import MessageReactions
from memoranda.sessions.summary_jobs import SummaryJobs
from memoranda.store.core import Core
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import MEMORY_LANE, JobKind


def feature(core: Core) -> Feature:
    """Declare the jobs, reactions to changed messages, erasers and clock of sessions; needs the running event loop."""
    closer = SessionCloser(core)
    reactions, clock = MessageReactions(closer), Clock(closer)
    return Feature(
        jobs={
            SUMMARIZE_JOB: JobKind(SummaryJobs(core).work, MEMORY_LANE),
            JOIN_JOB: JobKind(SessionMerge(closer).join),
        },
        cascades=(reactions.gone,),
        edits=(reactions.edited,),
        erasers=(erase_messages, partial(erase_summaries, reactions)),
        derived=(count_summaries,),
        due=(clock.expect,),
        start=clock.start,
        stop=clock.stop,
    )
