"""The costs of each tenant: model calls, tokens, embedded texts; by day and purpose, with limits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from datetime import date, timedelta
from typing import Any

import msgspec

from memoranda.clock import moment, now_micros
from memoranda.concurrency.threads import Threads
from memoranda.config.agent_sections import Spending
from memoranda.errors import MemorandaError, ModelError, SpendingLimit
from memoranda.providers.chat.base import Ask, Ended, Model, Piece, TokenUsage
from memoranda.providers.chat.completion import Meter, characters, estimated
from memoranda.providers.embeddings.base import Embedded, Embedder, Task
from memoranda.storage.sql.base import Connection, Database

log = logging.getLogger("memoranda.usage")
DAY = 86_400_000_000
FLUSH_AFTER = 1.0
"""Seconds that new costs wait to be written together with more."""
FRESH = 2.0
"""Seconds for which the costs and limits of other processes are not read again."""
SEARCH = "search"
"""The purpose of a search."""
MODEL_LIMITS = ("model_calls_per_day", "model_tokens_per_day")
BACKGROUND_LIMITS = ("background_tokens_per_day",)
EMBEDDER_LIMITS = ("embedded_tokens_per_day",)
BACKGROUND = frozenset({"facts", "sessions", "summaries.background", "upload_ask.summary"})
"""Purposes of model calls that run in the background."""
LIMITS: tuple[str, ...] = Spending.__struct_fields__


class Cost(msgspec.Struct):
    """A cost: number of operations, model calls and their tokens, embedded texts and their tokens."""

    operations: int = 0
    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    texts_embedded: int = 0
    tokens_embedded: int = 0

    def __iadd__(self, other: Cost) -> Cost:
        self.operations += other.operations
        self.model_calls += other.model_calls
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out
        self.texts_embedded += other.texts_embedded
        self.tokens_embedded += other.tokens_embedded
        return self


COUNTS = Cost.__struct_fields__


class Spent(msgspec.Struct, kw_only=True):
    """What a tenant spent on one purpose on one day (UTC). `cost` is that of its tokens at the configured prices; null
    without prices."""

    day: date
    purpose: str
    operations: int
    model_calls: int
    tokens_in: int
    tokens_out: int
    texts_embedded: int
    tokens_embedded: int
    cost: float | None = None


class _Today(msgspec.Struct):
    """A tenant's costs since midnight, in total and in the background, and its limits; `read_at` is on the monotonic
    clock."""

    spent: Cost
    background: Cost
    limits: Spending
    read_at: float

    def add(self, purpose: str, cost: Cost) -> None:
        """Add what was spent on a purpose."""
        self.spent += cost
        if purpose in BACKGROUND:
            self.background += cost

    def used(self, limit: str) -> int:
        spent = self.spent
        if limit == "model_calls_per_day":
            return spent.model_calls
        if limit == "model_tokens_per_day":
            return spent.tokens_in + spent.tokens_out
        if limit == "background_tokens_per_day":
            return self.background.tokens_in + self.background.tokens_out
        return spent.tokens_embedded


class CostTracker:
    """Costs by tenant, day and purpose; written within a second, and at close. Runs on the event loop."""

    def __init__(
        self, db: Database, threads: Threads, limits: Spending, clock: Callable[[], int] = now_micros
    ) -> None:
        self._db = db
        self._threads = threads
        self._limits = limits
        self._clock = clock
        self._unwritten: dict[tuple[str, int, str], Cost] = defaultdict(Cost)
        self._day = 0
        self._today: dict[str, _Today] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Lock()

    # --- noting ------------------------------------------------------------------------------------

    def note(self, tenant: str, purpose: str, cost: Cost) -> None:
        """Add a cost."""
        day = self._clock() // DAY
        self._unwritten[tenant, day, purpose] += cost
        today = self._today.get(tenant)
        if today is not None and day == self._day:
            today.add(purpose, cost)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER, self._begin)

    def metered(self, tenant: str, purpose: str) -> Meter:
        """Return a callback that adds the cost of a model call. It checks no limit, see `paid`."""

        def meter(usage: TokenUsage) -> None:
            self.note(tenant, purpose, Cost(model_calls=1, tokens_in=usage.input, tokens_out=usage.output))

        return meter

    def paid(self, model: Model, tenant: str, purpose: str, *, background: bool = False) -> Model:
        """Return the model at the tenant's cost: every call is recorded, and none begins when the limit of the day is
        reached. A model that only quotes costs nothing. With `background`, replies have priority over its calls."""
        return model if model.quotes_only else Paid(model, self, tenant, purpose, background)

    async def embed(
        self,
        embedder: Embedder,
        texts: Sequence[str],
        task: Task = "document",
        *,
        tenant: str,
        purpose: str,
        operations: int = 0,
    ) -> Embedded:
        """Like `Embedder.embed`, at the tenant's cost. A model in this process has no limit.

        Raises:
            EmbedderUnavailable: the model could not answer.
            SpendingLimit: the tenant has reached its limit of the day, and the model is a provider's.
        """
        if operations:
            self.note(tenant, purpose, Cost(operations=operations))
        if embedder.remote and texts:
            await self.check(tenant, EMBEDDER_LIMITS)
        embedded = await embedder.embed(texts, task)
        read = len(texts) if embedded.texts is None else embedded.texts
        if read:
            self.note(tenant, purpose, Cost(texts_embedded=read, tokens_embedded=embedded.tokens))
        return embedded

    # --- limits ------------------------------------------------------------------------------------

    async def check(self, tenant: str, limits: Sequence[str] = MODEL_LIMITS) -> None:
        """Check that a tenant may spend more today.

        Raises:
            SpendingLimit: the limit is reached; the error names it, and when it ends.
        """
        today = await self._of(tenant)
        for name in limits:
            most = getattr(today.limits, name)
            if most is not None and today.used(name) >= most:
                ends = (self._day + 1) * DAY
                says = (
                    f"spending: the tenant has used up {name}, which is {most}, until"
                    f" {moment(ends):%Y-%m-%d %H:%M} UTC; wait, or ask an admin for more"
                )
                raise SpendingLimit(says, name, max(1.0, (ends - self._clock()) / 1e6))

    async def limits(self, tenant: str) -> Spending:
        """Return what a tenant may spend in a day."""
        return (await self._of(tenant)).limits

    async def set_limits(self, tenant: str, changes: dict[str, int | None]) -> Spending:
        """Set the named limits of a tenant; None restores the configured default."""

        def work(c: Connection) -> None:
            c.run("add_tenant", [tenant, now_micros()])
            for name, value in changes.items():
                if value is None:
                    c.run("drop_quota", [tenant, name])
                else:
                    c.run("set_quota", [tenant, name, value])
            c.run("go_on_spending", [now_micros(), tenant])

        await self._threads.result(self._db.write(work, tenant=tenant))
        self._today.pop(tenant, None)
        return await self.limits(tenant)

    async def _of(self, tenant: str) -> _Today:
        day = self._clock() // DAY
        if day != self._day:
            self._day, self._today = day, {}
        today = self._today.get(tenant)
        if today is None or (self._db.shared and time.monotonic() - today.read_at > FRESH):
            async with self._writing:
                today = await self._read(tenant, day)
        return today

    async def _read(self, tenant: str, day: int) -> _Today:
        await self._write_down()

        def read(c: Connection) -> _Today:
            own = {name: value for name, value in c.all("quotas_of", [tenant]) if name in LIMITS}
            today = _Today(Cost(), Cost(), msgspec.structs.replace(self._limits, **own), 0.0)
            for row in c.all("spent_between", [tenant, day, day]):
                today.add(row[1], Cost(*row[2:]))
            return today

        today = await self._threads.run(self._db.read, read, tenant)
        for (whose, when, purpose), cost in self._unwritten.items():  # costs added during the read
            if (whose, when) == (tenant, day):
                today.add(purpose, cost)
        today.read_at = time.monotonic()
        if day == self._day:
            self._today[tenant] = today
        return today

    # --- reading and writing -----------------------------------------------------------------------

    async def spent(self, tenant: str, since: date, until: date) -> list[Spent]:
        """Return what a tenant spent from one day to another, both included, by day and purpose."""
        await self.flush()
        days = [(day - date(1970, 1, 1)).days for day in (since, until)]
        rows = await self._threads.run(
            self._db.read, lambda c: c.all("spent_between", [tenant, *days]), tenant
        )
        return [
            Spent(
                day=date(1970, 1, 1) + timedelta(days=day),
                purpose=purpose,
                **dict(zip(COUNTS, rest, strict=True)),
            )
            for day, purpose, *rest in rows
        ]

    def today(self) -> date:
        """The day, UTC."""
        return moment(self._clock()).date()

    def _begin(self) -> None:
        self._timer = None
        task = asyncio.create_task(self.flush())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)

    async def flush(self) -> None:
        """Write the costs. Costs that cannot be written wait for the next flush."""
        async with self._writing:
            await self._write_down()

    async def _write_down(self) -> None:
        costs, self._unwritten = self._unwritten, defaultdict(Cost)
        if not costs:
            return
        rows = [(*key, *(getattr(cost, name) for name in COUNTS)) for key, cost in sorted(costs.items())]

        def work(c: Connection) -> None:
            c.many("add_spending", rows)

        try:
            await self._threads.result(self._db.write(work))
        except MemorandaError as exc:
            log.warning("what was spent is not written down yet: %s", exc)
            for key, cost in costs.items():
                self._unwritten[key] += cost

    async def close(self) -> None:
        """Write the remaining costs. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.flush()


class Paid(Model):
    """A model at a tenant's cost. The first answer counts as one operation, however many calls follow."""

    def __init__(self, inner: Model, costs: CostTracker, tenant: str, purpose: str, background: bool) -> None:
        self.name = inner.name
        self.quotes_only = inner.quotes_only
        self._inner = inner
        self._costs = costs
        self._place = (tenant, purpose)
        self._background = background
        self._counted = False

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """Like `Model.answer`; every received piece is charged, with estimated tokens if the provider reports none. A
        background call that fails is charged with the usage of its error.

        Raises:
            SpendingLimit: the tenant has reached its limit of the day.
        """
        tenant, purpose = self._place
        await self._costs.check(tenant, MODEL_LIMITS + (BACKGROUND_LIMITS if purpose in BACKGROUND else ()))
        if self._background:
            ask = msgspec.structs.replace(ask, background=True)
        usage: TokenUsage | None = None
        said, came = 0, False
        try:
            async with aclosing(self._inner.answer(ask)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    came = True
                    said += characters(piece)
                    if isinstance(piece, Ended):
                        usage = piece.usage
                    yield piece
        except ModelError as exc:
            if isinstance(exc.usage, TokenUsage):
                came, usage = True, exc.usage
            raise
        finally:
            if came:
                self._note(usage or estimated(ask, said))

    def _note(self, usage: TokenUsage) -> None:
        cost = Cost(
            operations=0 if self._counted else 1,
            model_calls=1,
            tokens_in=usage.input,
            tokens_out=usage.output,
        )
        self._counted = True
        self._costs.note(*self._place, cost)

    async def names(self) -> list[str]:
        return await self._inner.names()

    def usage(self) -> dict[str, Any]:
        return self._inner.usage()
