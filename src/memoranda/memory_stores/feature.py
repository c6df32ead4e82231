"""What memory stores add to an open library."""

from __future__ import annotations

import asyncio

from memoranda.memory_stores.removal import CLEAR_JOB, Removal, count_erased
from memoranda.store.core import Core
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import JobKind


def feature(core: Core) -> Feature:
    """Declare the job, reactions to changed memories and eraser of memory stores; needs the running event loop."""
    removal = Removal(core, asyncio.get_running_loop())
    return Feature(
        jobs={CLEAR_JOB: JobKind(removal.clear, completes_deletion=True)},
        cascades=(removal.gone,),
        edits=(removal.edited,),
        erasers=(removal.erase,),
        derived=(count_erased,),
    )
