"""What each tenant's reads and writes cost: model calls, tokens, embedded texts; by day and purpose."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass, fields

from recollect.config.sections import Spending
from recollect.db import Connection, Database
from recollect.errors import RecollectError
from recollect.rows import now_micros
from recollect.threads import Threads

log = logging.getLogger("recollect.ledger")
DAY = 86_400_000_000
FLUSH_AFTER = 1.0
"""Seconds for which what was spent waits to be written down together with more."""


@dataclass(slots=True)
class Cost:
    """What something cost: how often it was done, calls of a language model and its tokens, texts embedded and
    theirs."""

    operations: int = 0
    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    texts_embedded: int = 0
    tokens_embedded: int = 0

    def __iadd__(self, other: Cost) -> Cost:
        for one in fields(Cost):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        return self


class Ledger:
    """Costs by tenant, day and purpose; written down within a second, and at the end."""

    def __init__(self, db: Database, threads: Threads, limits: Spending) -> None:
        self._db = db
        self._threads = threads
        self._limits = limits
        self._held: dict[tuple[str, int, str], Cost] = defaultdict(Cost)
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: set[asyncio.Task[None]] = set()

    def note(self, tenant: str, purpose: str, cost: Cost) -> None:
        """Adds what was just spent; on the event loop."""
        self._held[tenant, now_micros() // DAY, purpose] += cost
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER, self._begin)

    def _begin(self) -> None:
        self._timer = None
        task = asyncio.create_task(self.flush())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)

    async def flush(self) -> None:
        """Writes down what was spent. What cannot be written waits for the next time."""
        held, self._held = self._held, defaultdict(Cost)
        by_tenant: dict[str, list[tuple[int, str, Cost]]] = defaultdict(list)
        for (tenant, day, purpose), cost in held.items():
            by_tenant[tenant].append((day, purpose, cost))
        for tenant, costs in by_tenant.items():
            rows = [
                (tenant, day, purpose, *(getattr(cost, one.name) for one in fields(Cost)))
                for day, purpose, cost in costs
            ]

            def work(c: Connection, rows: list[tuple[object, ...]] = rows) -> None:
                c.many("add_spending", rows)

            try:
                await self._threads.result(self._db.write(work, tenant=tenant))
            except RecollectError as exc:
                log.warning("what was spent is not written down yet: %s", exc)
                for day, purpose, cost in costs:
                    self._held[tenant, day, purpose] += cost
