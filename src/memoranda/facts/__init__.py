"""Facts extracted from conversations, with their sources, validity and versions."""

from __future__ import annotations

import asyncio
from typing import Any

from memoranda.clock import now_micros
from memoranda.errors import EmbedderUnavailable, ModelUnavailable
from memoranda.facts.existing import FACT
from memoranda.facts.extraction import Extraction
from memoranda.facts.facts import Consolidated, Extracted, Facts, Merged, consolidate
from memoranda.facts.history import FactHistory, FactVersion, Undone
from memoranda.facts.maintenance import CONSOLIDATE_JOB, SWEEP_JOB, Clock, Swept, sweep_job
from memoranda.facts.provenance import Provenance, count_facts, cut
from memoranda.facts.reconciling import RECONCILE_JOB, Reconciliation
from memoranda.facts.versions import FactChange
from memoranda.facts.writing import FactWriter
from memoranda.filters import all_of
from memoranda.sessions.values import EXTRACT_JOB
from memoranda.store.access import selection_filter
from memoranda.store.core import Core
from memoranda.store.jobs import MEMORY_LANE, Postponed, Run
from memoranda.store.retries import RELEASE_JOB
from memoranda.types import Selection, Subject

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
    """Register the jobs of facts and their hooks on the store; return the clock, not yet started."""
    provenance = Provenance(core, asyncio.get_running_loop())
    core.store.cascades.append(provenance.gone)
    core.store.edits.append(provenance.edited)
    core.derived.append(count_facts)

    async def sweeping(run: Run) -> dict[str, Any]:
        return dict(await sweep_job(core, run))

    async def consolidating(run: Run) -> dict[str, Any]:
        everybody = selection_filter(Selection(), Subject(tenant_id=run.tenant), now_micros())
        try:
            done = await consolidate(core, run.tenant, all_of(everybody, FACT), background=True)
        except (ModelUnavailable, EmbedderUnavailable) as exc:
            raise Postponed(f"{type(exc).__name__}: {exc}", RETRY_SECONDS) from exc
        return {"merged": len(done.merged), "left": done.left}

    core.writers["fact"] = FactWriter(core)
    core.jobs.handlers |= {
        EXTRACT_JOB: Extraction(core, background=True).job,
        SWEEP_JOB: sweeping,
        CONSOLIDATE_JOB: consolidating,
        RECONCILE_JOB: Reconciliation(core).job,
        RELEASE_JOB: provenance.release,
    }
    core.jobs.lanes |= dict.fromkeys((EXTRACT_JOB, RECONCILE_JOB, SWEEP_JOB, CONSOLIDATE_JOB), MEMORY_LANE)
    return Clock(core)
