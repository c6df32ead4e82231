"""Facts that callers write themselves: stored beside the others, and compared with them by the model in a job."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memoranda.facts.insertion import Ending, Plan, learn
from memoranda.facts.reconciling import RECONCILE_JOB, reconcile_later
from memoranda.store.changes import DRAFTS, Outcome, parted
from memoranda.store.core import Core
from memoranda.store.ingest import BATCH
from memoranda.store.rows import Draft
from memoranda.store.transaction import Writing


class FactWriter:
    """Writes facts of callers, who never wait for a model."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def write(self, tenant: str, drafts: Sequence[Draft]) -> list[Outcome]:
        """Store facts, in order. One whose text is stored joins that fact, and one ends the facts that it `replaces`.
        The model compares the new ones with the others later.

        Raises:
            Conflict: an id already names another text.
        """

        if len(drafts) > 1:
            await self.core.threads.run(self.core.store.check_ids, tenant, drafts)
        wake = self.core.jobs.woken(RECONCILE_JOB)

        def write(w: Writing, some: Sequence[Draft]) -> list[Outcome]:
            outcomes = learn(w, plans_of(some)).outcomes
            reconcile_later(self.core, w, [each.row for each in outcomes if each.created], wake)
            return outcomes

        outcomes: list[Outcome] = []
        for at in range(0, len(drafts), BATCH):
            batch = drafts[at : at + BATCH]
            await self.core.ingest.prepare(tenant, batch)
            for some in parted(batch, self.core.store.weight, DRAFTS):
                step = self.core.store.transact(tenant, partial(write, some=some))
                done: list[Outcome] = await self.core.threads.result(step)
                outcomes.extend(done)
        return outcomes


def plans_of(drafts: Sequence[Draft]) -> list[Plan]:
    """Return the drafts of callers as facts to be stored."""
    return [Plan(draft, ending=Ending(draft.replaces) if draft.replaces else None) for draft in drafts]
