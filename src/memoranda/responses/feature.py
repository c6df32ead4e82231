"""What responses, conversations and agent profiles add to an open library."""

from __future__ import annotations

from memoranda.responses.background import RESPOND_JOB
from memoranda.responses.engine import Engine
from memoranda.responses.erasing import Erasing
from memoranda.responses.history import SUMMARIZE_JOB
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import AGENT_LANE, JobKind


def feature(engine: Engine) -> Feature:
    """Declare the jobs and erasers of an engine, and its end: the workers end first, and leave background responses
    without output to another process."""
    background, erasing = engine.background, Erasing(engine)
    return Feature(
        jobs={
            SUMMARIZE_JOB: JobKind(engine.history.make, AGENT_LANE),
            RESPOND_JOB: JobKind(background.make, AGENT_LANE, ending=background.given_up, asked_again=True),
        },
        erasers=(erasing.responses, erasing.conversations, erasing.agents),
        close=engine.stop,
    )
