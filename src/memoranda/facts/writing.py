"""Facts that callers write themselves: compared with the stored ones, as extracted facts are."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from memoranda.errors import IndexUnavailable
from memoranda.facts import versions
from memoranda.facts.keeping import learn
from memoranda.facts.merging import Bounds
from memoranda.facts.neighbours import FACT, planned
from memoranda.filters import EVERYTHING, Compare, Filter, all_of
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import Outcome
from memoranda.store.core import Core
from memoranda.store.ingest import WRITE
from memoranda.store.listing import page
from memoranda.store.validation import Draft

log = logging.getLogger("memoranda.facts")
AT_ONCE = 16
"""Facts in one transaction: each is compared with those before it, on the writer thread."""


class FactWriter:
    """Writes facts of callers. Rules compare them; no model is called, so callers never wait for one."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.bounds = Bounds(core.config.facts.near_cosine, core.config.facts.near_jaccard)

    async def concerned(self, tenant: str, drafts: Sequence[Draft], before: int | None) -> list[int]:
        """Return the places of the facts that are compared with others. Ended, consolidated and already stored ones are
        not, and none is while there is nothing to compare with."""
        return await self.core.threads.run(self._compared_places, tenant, drafts, before)

    async def write(self, tenant: str, drafts: Sequence[Draft], before: int | None) -> list[Outcome]:
        """Store facts, in order, each with what follows for its versions: it may join one that says the same, and
        supersede what it contradicts. With `before`, only facts stored up to that revision are considered.

        While an index does not answer, they are stored without comparison.

        Raises:
            Conflict: an id already names another text.
        """
        among = EVERYTHING if before is None else Compare("$seq", "lte", before)
        outcomes = []
        for start in range(0, len(drafts), AT_ONCE):
            outcomes += await self._compared(tenant, drafts[start : start + AT_ONCE], among)
        return outcomes

    async def _compared(self, tenant: str, drafts: Sequence[Draft], among: Filter) -> list[Outcome]:
        try:
            plans = await planned(self.core, tenant, drafts, WRITE, among)
        except IndexUnavailable as exc:
            log.warning("%d facts are stored without a comparison with others: %s", len(drafts), exc)
            return await self.core.ingest.write(tenant, drafts)
        work = self.core.store.transact(tenant, lambda w: learn(w, plans, self.bounds))
        return (await self.core.threads.result(work)).outcomes

    def _compared_places(self, tenant: str, drafts: Sequence[Draft], before: int | None) -> list[int]:
        def any_fact(c: Connection) -> bool:
            return bool(
                page(
                    c,
                    tenant,
                    all_of(FACT, Compare("$seq", "lte", before)),
                    limit=1,
                    after=None,
                    descending=True,
                )
            )

        store = self.core.store
        if before is not None and not store.db.read(any_fact, tenant):
            return []
        stored = store.by_id(tenant, [draft.row.id for draft in drafts if draft.named])
        return [
            at
            for at, draft in enumerate(drafts)
            if draft.row.id not in stored
            and draft.row.archived_at is None
            and versions.is_live(draft.row)
            and not versions.parts_of(draft.row)
        ]
