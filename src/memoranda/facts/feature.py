"""What facts add to an open library."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from memoranda.clock import now_micros
from memoranda.errors import EmbedderUnavailable, ModelUnavailable
from memoranda.facts.existing import FACT
from memoranda.facts.extraction import Extraction
from memoranda.facts.facts import consolidate
from memoranda.facts.maintenance import CONSOLIDATE_JOB, SWEEP_JOB, Clock, sweep_job
from memoranda.facts.provenance import Provenance, count_facts
from memoranda.facts.reconciling import RECONCILE_JOB, Reconciliation
from memoranda.facts.writing import FactWriter
from memoranda.filters import all_of
from memoranda.sessions.values import EXTRACT_JOB
from memoranda.store.access import selection_filter
from memoranda.store.core import Core
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import MEMORY_LANE, RELEASE_JOB, JobKind, Postponed, Run
from memoranda.types import Selection, Subject

RETRY_SECONDS = 300.0


def feature(core: Core) -> Feature:
    """Declare the jobs, reactions to changed messages, writer and clock of facts; needs the running event loop."""
    provenance, clock = Provenance(core, asyncio.get_running_loop()), Clock(core)
    return Feature(
        jobs={
            EXTRACT_JOB: JobKind(Extraction(core, background=True).job, MEMORY_LANE),
            SWEEP_JOB: JobKind(partial(sweep_job, core), MEMORY_LANE),
            CONSOLIDATE_JOB: JobKind(partial(_consolidate, core), MEMORY_LANE),
            RECONCILE_JOB: JobKind(Reconciliation(core).job, MEMORY_LANE),
            RELEASE_JOB: JobKind(provenance.release, completes_deletion=True),
        },
        cascades=(provenance.gone,),
        edits=(provenance.edited,),
        derived=(count_facts,),
        writers={"fact": FactWriter(core)},
        start=clock.start,
        stop=clock.stop,
    )


async def _consolidate(core: Core, run: Run) -> dict[str, Any]:
    """Merge the facts of a tenant that say the same; wait if a model does not answer."""
    everybody = selection_filter(Selection(), Subject(tenant_id=run.tenant), now_micros())
    try:
        done = await consolidate(core, run.tenant, all_of(everybody, FACT), background=True)
    except (ModelUnavailable, EmbedderUnavailable) as exc:
        raise Postponed(f"{type(exc).__name__}: {exc}", RETRY_SECONDS) from exc
    return {"merged": len(done.merged), "left": done.left}
