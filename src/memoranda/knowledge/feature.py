"""What files and vector stores add to an open library."""

from __future__ import annotations

from memoranda.knowledge.attaching import ATTRIBUTES_JOB, INDEX_JOB
from memoranda.knowledge.erasing import Erasing
from memoranda.knowledge.expiry import Expiry
from memoranda.knowledge.pipeline import Pipeline
from memoranda.knowledge.removal import REMOVE_JOB, Removal
from memoranda.store.core import Core
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import FILES_LANE, JobKind


def feature(core: Core) -> Feature:
    """Declare the jobs, erasers and clock of files and vector stores."""
    removal, erasing, expiry = Removal(core), Erasing(core), Expiry(core)
    pipeline = Pipeline(core, removal)
    return Feature(
        jobs={
            INDEX_JOB: JobKind(pipeline.index, FILES_LANE, ending=pipeline.failed, retrying=pipeline.again),
            ATTRIBUTES_JOB: JobKind(pipeline.reattribute),
            REMOVE_JOB: JobKind(removal.remove, completes_deletion=True),
        },
        erasers=(erasing.files, erasing.uploads, erasing.stores),
        start=expiry.start,
        stop=expiry.stop,
    )
