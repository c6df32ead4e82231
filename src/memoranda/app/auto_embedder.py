"""`embedder: auto`: the English model, until enough of a tenant's texts are in other languages.

Then every process of the store changes over to the multilingual model in the background, by the same move as after a
change of the configuration (`memoranda.app.migration`). It never moves back by itself.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

from memoranda.app.migration import MARKED, Moves
from memoranda.config.agent_sections import OPERATOR_TENANT
from memoranda.errors import ConfigError, MemorandaError
from memoranda.providers.embeddings import open_embedder
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.covering import (
    DECIDED,
    ENGLISH,
    MULTILINGUAL,
    NEWEST_TEXTS,
    Decision,
    decision,
    note,
    uncovered,
)
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import Run
from memoranda.store.jobs import REMODEL_JOB, REMODEL_KEY

log = logging.getLogger("memoranda.embedder")
LEAST_TEXTS, LEAST_SHARE = 20, 0.1
"""Texts of a tenant in languages that the model does not cover, and their share, from which on it is changed."""
EVERY_SECONDS = 10.0
GROWTH = 1.02
"""The growth of a tenant after which its texts are looked at again."""


def feature(auto: AutoEmbedder) -> Feature:
    """Declare that texts are looked at."""
    return Feature(start=auto.start, stop=auto.stop)


class AutoEmbedder:
    """Looks at the texts of tenants that have grown, one tenant at a time, decides, and starts the move."""

    def __init__(self, core: Core, moves: Moves) -> None:
        self.core = core
        self.moves = moves
        self.seen: dict[str, int] = {}
        """The number of rows of each tenant when its texts were looked at."""
        self.rev = -1
        """The change up to which all tenants were looked at."""
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look at texts."""
        self._watcher = asyncio.create_task(self.watch(), name="auto-embedder")

    async def stop(self) -> None:
        """Stop looking."""
        if self._watcher is not None:
            self._watcher.cancel()

    async def watch(self) -> None:
        """Check from time to time, for as long as the product is open."""
        trouble = ""
        while True:
            await asyncio.sleep(EVERY_SECONDS * random.uniform(0.8, 1.2))
            try:
                await self.check()
                trouble = ""
            except MemorandaError as exc:  # the rows or the model are away: whoever needs them says so
                self.core.note_failure("embedder")
                if str(exc) != trouble:
                    log.warning("the languages of texts were not looked at: %s", exc)
                trouble = str(exc)

    async def check(self) -> None:
        """Look at one tenant, if nothing is decided; go on with what is decided."""
        core = self.core
        decided = await core.threads.run(core.store.db.read, decision)
        if decided is None and core.embedders.next is None and core.store.model == _name(ENGLISH):
            decided = await core.threads.run(self._look)
        if decided == "missing":
            decided = await self._again()
        if decided == "move" and core.store.model == _name(ENGLISH):
            await self._move()

    def _look(self) -> Decision | None:
        """Return what the texts of the tenant that has grown most need, and store it; None if nothing changes."""
        store = self.core.store
        if (rev := store.derived.last_rev()) == self.rev:
            return None
        counts = {tenant: store.extent(tenant)[1] for tenant in store.derived.tenants()}
        grown = {
            tenant: count / max(1, self.seen.get(tenant, 0))
            for tenant, count in counts.items()
            if count >= LEAST_TEXTS and count > GROWTH * self.seen.get(tenant, 0)
        }
        if not grown:
            self.rev = rev
            return None
        tenant = max(grown, key=lambda each: grown[each])
        self.seen[tenant] = counts[tenant]
        texts = store.newest_texts(tenant, NEWEST_TEXTS)
        covered = self.core.embedder.languages or frozenset()
        foreign = uncovered(texts, covered).total()
        if foreign < LEAST_TEXTS or foreign < LEAST_SHARE * len(texts):
            return None
        return self._decide(_decision())

    def _decide(self, decided: Decision) -> Decision:
        def work(c: Connection) -> str | None:
            if decision(c) == decided:  # by another process, which said so
                return None
            c.run("set_meta", [DECIDED, decided])
            return note(c, self.core.store.model)

        if said := self.core.store.db.write(work).result():
            log.warning("%s", said)
        return decided

    async def _again(self) -> Decision:
        """Return the decision once more after the package was missing: it may be installed by now."""
        if _decision() == "missing":
            return "missing"
        return await self.core.threads.run(self._decide, "move")

    async def _move(self) -> None:
        """Start the move to the multilingual model, or take part in it; follow another process that has moved."""
        core, store = self.core, self.core.store
        if core.embedders.next is None:
            settings = core.config.embedder
            embedder = await core.threads.run(
                lambda: open_embedder(MULTILINGUAL, threads=settings.threads, cache_size=settings.cache_size)
            )
            await core.threads.run(store.prepare, embedder.model, embedder.dim)
            core.embedders.set_next(embedder, MULTILINGUAL)
        stored = await core.threads.run(store.db.read, lambda c: c.one("get_meta", ["embedder"]))
        payload: dict[str, Any] = {"rows_per_second": None}
        if stored is not None and stored[0] == MULTILINGUAL:
            run = _Unrecorded(core.jobs, "", OPERATOR_TENANT, "", REMODEL_JOB, payload, MARKED, 0, None, 1)
            await self.moves.remodel(run)
        else:
            await core.jobs.enqueue(OPERATOR_TENANT, REMODEL_JOB, payload, dedup_key=REMODEL_KEY)


class _Unrecorded(Run):
    """A run of the move in this process alone, after another process has done the job."""

    async def report(self, done: int, total: int | None = None, cursor: str | None = None) -> None:
        self.done, self.total = done, total if total is not None else self.total


def _decision() -> Decision:
    """Return whether the multilingual model can be opened."""
    try:
        open_embedder(MULTILINGUAL).close()
    except ConfigError:
        return "missing"
    return "move"


def _name(url: str) -> str:
    return url.partition(":")[2]
