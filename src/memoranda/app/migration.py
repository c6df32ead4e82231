"""Moving a live store: to another index with the vectors it has, or to another model with vectors made anew.

Either way the new index is filled beside the old one, which answers until the new one has everything; writes go to
both meanwhile. The switch is one step on the writer thread. A process that dies in between restarts with the old index;
vectors made by then are kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from memoranda.config.keys import masked
from memoranda.errors import Conflict, EmbedderUnavailable
from memoranda.indexes.vector.base import Index
from memoranda.providers.embeddings.base import Embedder
from memoranda.store.changes import replay
from memoranda.store.core import MOVE_JOB, Core
from memoranda.store.feature import Feature
from memoranda.store.index_checks import check_filled
from memoranda.store.index_sync import Mirror
from memoranda.store.job_kinds import STEP, JobKind, Pace, Postponed, Run
from memoranda.store.jobs import REMODEL_JOB

log = logging.getLogger("memoranda.migration")
RETRY_AFTER = 5.0
TRIES = 10
MARKED = "marked"
"""The cursor of a model change once all rows without a vector of the next model are marked."""
GRACE_SECONDS = 5.0
"""How long a replaced index still answers searches that had begun."""


def feature(moves: Moves) -> Feature:
    """Declare the two jobs."""
    return Feature(
        jobs={
            # the URL of a move may have a password
            MOVE_JOB: JobKind(moves.move, asked_again=True, maintenance=True),
            REMODEL_JOB: JobKind(moves.remodel, maintenance=True),
        }
    )


class Moves:
    """Handlers of the two jobs. `open_index` opens the index of a URL for a model; `index_url` is the one in force."""

    def __init__(self, core: Core, open_index: Callable[[str, Embedder], Index], index_url: str) -> None:
        self.core = core
        self._open_index = open_index
        self._url = index_url
        self._retired: list[Index] = []

    async def move(self, run: Run) -> dict[str, Any]:
        """Fill the index of another URL with the stored vectors, then switch to it."""
        url = str(run.payload["to"])
        if url == self._url:
            raise Conflict(f"to: {masked('index.url', url)!r} is the index that answers already")
        index = await self.core.threads.run(self._open_index, url, self.core.embedder)
        moved = await self._fill_and_switch(run, Mirror(index, self.core.store.space), None)
        self._url = url
        return {"vectors": moved, "index": masked("index.url", url)}

    async def remodel(self, run: Run) -> dict[str, Any]:
        """Make every tenant's vectors with the configured model, then switch to it. Rows written meanwhile are embedded
        with both."""
        embedder, store = self.core.embedders.next, self.core.store
        if embedder is None:
            return {"embedded": 0, "model": store.model}
        if (
            run.cursor is None
        ):  # another process may have dropped vectors since this one started; it drops none now
            await self.core.threads.run(store.prepare, embedder.model, embedder.dim)
            await run.report(run.done, cursor=MARKED)
        space = store.next_space
        assert space is not None
        done = await self._embed_all(run, embedder, space, run.done)
        index = await self.core.threads.run(self._open_index, self._url, embedder)
        await self._fill_and_switch(run, Mirror(index, space), embedder)
        log.info("searches go by %s from here on", embedder.model)
        return {"embedded": max(done, run.done), "model": embedder.model}

    async def _embed_all(self, run: Run, embedder: Embedder, space: int, done: int) -> int:
        """Embed the rows that have no vector in the space, tenant by tenant; return the rows done so far."""
        store, pace = self.core.store, Pace(run)
        pending = await self.core.threads.run(store.pending_in, space)
        total = done + sum(pending.values())
        for tenant in pending:
            while rows := await self.core.threads.run(store.pending_rows, tenant, space, pace.step):
                try:
                    await self.core.ingest.embed_pending(rows, tenant, reuse=True, embedder=embedder)
                except EmbedderUnavailable as exc:
                    raise Postponed(str(exc), RETRY_AFTER) from exc
                done += len(rows)
                await run.report(done, max(total, done))
                await pace.keep(len(rows))
        return done

    async def _fill_and_switch(self, run: Run, mirror: Mirror, embedder: Embedder | None) -> int:
        """Fill the new index and switch to it, and to `embedder` if it is another; return its number of vectors.

        Raises:
            IndexUnavailable: the new index did not accept all; the old one answers as before.
        """
        store, threads = self.core.store, self.core.threads
        try:
            since = await threads.run(store.derived.last_rev)
            await threads.run(store.derived.begin_mirror, mirror)
            filled = 0
            for tenant in await threads.run(store.derived.tenants):
                filled += await threads.run(replay, store.db, mirror.index, mirror.space, tenant, 0)
                await run.report(filled if embedder is None else run.done, run.total)
            old, vectors = await self._switch_when_settled(run, mirror, embedder)
        except BaseException:
            await threads.run(store.derived.end_mirror, mirror)
            await threads.run(mirror.index.close)
            raise
        self._retire(old)
        if store.db.shared:  # rows that other processes wrote meanwhile
            await threads.run(store.derived.follow_side, "index", since)
        return vectors

    async def _switch_when_settled(
        self, run: Run, mirror: Mirror, embedder: Embedder | None
    ) -> tuple[Index, int]:
        """Embed the rows written during the filling, until none is left at the switch; under continuous writes, until
        so few are left that they may follow after it."""
        tries = 0
        while True:
            vectors = await self.core.threads.run(check_filled, self.core.store.derived, mirror)
            leave = 0 if tries < TRIES else STEP
            old = await self.core.threads.run(self._switch, mirror, embedder, leave)
            if old is not None:
                return old, vectors
            assert embedder is not None
            await self._embed_all(run, embedder, mirror.space, run.done)
            tries += 1

    def _switch(self, mirror: Mirror, embedder: Embedder | None, leave: int) -> Index | None:
        core = self.core
        if embedder is None:
            return core.store.switch(mirror, core.store.model)
        return core.store.switch(
            mirror, embedder.model, core.embedders.next_url, leave=leave, then=lambda: core.use(embedder)
        )

    def _retire(self, index: Index) -> None:
        self._retired.append(index)
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self.close)

    def close(self) -> None:
        """Close replaced indexes. Idempotent."""
        retired, self._retired = self._retired, []
        for index in retired:
            index.close()
