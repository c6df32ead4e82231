"""Facts: what conversations leave behind, with where it comes from, when it holds and what took its place."""

from __future__ import annotations

import asyncio
from typing import Any

from recollect.errors import EmbedderUnavailable, ModelUnavailable
from recollect.facts.extraction import Extraction
from recollect.facts.facts import Consolidated, Extracted, Facts, Merged, consolidate
from recollect.facts.history import FactHistory, FactVersion, Undone
from recollect.facts.neighbours import FACT
from recollect.facts.provenance import Provenance, cut
from recollect.facts.upkeep import CONSOLIDATE_JOB, SWEEP_JOB, Clock, Swept, sweep_job
from recollect.facts.versions import FactChange
from recollect.filters import all_of
from recollect.jobs import MEMORY_LANE, Postponed, Run
from recollect.memories import Core
from recollect.rows import now_micros
from recollect.sessions.values import EXTRACT_JOB
from recollect.types import Selection, Subject
from recollect.visibility import selection_filter

__all__ = [
    "Clock",
    "Consolidated",
    "Extracted",
    "FactChange",
    "FactHistory",
    "FactVersion",
    "Facts",
    "Merged",
    "Swept",
    "Undone",
    "begin",
    "cut",
]
RETRY_SECONDS = 300.0


def begin(core: Core) -> Clock:
    """Has the jobs of facts done and the store told of what happens to their sources; the clock, not yet begun."""
    provenance = Provenance(core.jobs, asyncio.get_running_loop())
    core.store.cascades.append(provenance.gone)
    core.store.edits.append(provenance.edited)

    async def sweeping(run: Run) -> dict[str, Any]:
        return dict(await sweep_job(core, run))

    async def consolidating(run: Run) -> dict[str, Any]:
        everybody = selection_filter(Selection(), Subject(tenant_id=run.tenant), now_micros())
        try:
            done = await consolidate(core, run.tenant, all_of(everybody, FACT))
        except (ModelUnavailable, EmbedderUnavailable) as exc:
            raise Postponed(f"{type(exc).__name__}: {exc}", RETRY_SECONDS) from exc
        return {"merged": len(done.merged), "left": done.left}

    core.jobs.handlers |= {
        EXTRACT_JOB: Extraction(core).job,
        SWEEP_JOB: sweeping,
        CONSOLIDATE_JOB: consolidating,
    }
    core.jobs.lanes |= dict.fromkeys((EXTRACT_JOB, SWEEP_JOB, CONSOLIDATE_JOB), MEMORY_LANE)
    return Clock(core)
