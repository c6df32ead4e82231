"""What each tenant's reads and writes cost: model calls, tokens, embedded texts; by day and purpose, with limits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields
from datetime import date, timedelta
from typing import Any

import msgspec

from memoranda.clock import moment, now_micros
from memoranda.concurrency.threads import Threads
from memoranda.config.sections import Spending
from memoranda.errors import EmbedderUnavailable, MemorandaError, SpendingLimit
from memoranda.providers.chat.base import Ask, Ended, Model, Piece, TokenUsage
from memoranda.providers.chat.said import Meter, characters, estimated
from memoranda.providers.embeddings.base import Embedded, Embedder, Task, Vectors
from memoranda.storage.sql.base import Connection, Database

log = logging.getLogger("memoranda.usage")
DAY = 86_400_000_000
FLUSH_AFTER = 1.0
"""Seconds for which what was spent waits to be written down together with more."""
FRESH = 2.0
"""Seconds for which what other processes spent, and the limits they set, need not be read again."""
SEARCH = "search"
"""What a search is called."""
MODEL_LIMITS = ("model_calls_per_day", "model_tokens_per_day")
BACKGROUND_LIMITS = ("background_tokens_per_day",)
EMBEDDER_LIMITS = ("embedded_tokens_per_day",)
BACKGROUND = frozenset({"facts", "sessions"})
"""Purposes of calls of a language model that nobody waits for."""
LIMITS: tuple[str, ...] = Spending.__struct_fields__


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
        self.operations += other.operations
        self.model_calls += other.model_calls
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out
        self.texts_embedded += other.texts_embedded
        self.tokens_embedded += other.tokens_embedded
        return self


COUNTS = tuple(one.name for one in fields(Cost))


class Spent(msgspec.Struct, kw_only=True):
    """What a tenant spent on one purpose on one day (UTC)."""

    day: date
    purpose: str
    operations: int
    model_calls: int
    tokens_in: int
    tokens_out: int
    texts_embedded: int
    tokens_embedded: int


@dataclass(slots=True)
class _Today:
    """What a tenant has spent since midnight, in all and in the background, and what it may; `read_at` on the monotonic
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


class Ledger:
    """Costs by tenant, day and purpose; written down within a second, and at the end. All on the event loop."""

    def __init__(
        self, db: Database, threads: Threads, limits: Spending, clock: Callable[[], int] = now_micros
    ) -> None:
        self._db = db
        self._threads = threads
        self._limits = limits
        self._clock = clock
        self._held: dict[tuple[str, int, str], Cost] = defaultdict(Cost)
        self._day = 0
        self._today: dict[str, _Today] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Lock()

    # --- noting ------------------------------------------------------------------------------------

    def note(self, tenant: str, purpose: str, cost: Cost) -> None:
        """Adds what was just spent."""
        day = self._clock() // DAY
        self._held[tenant, day, purpose] += cost
        today = self._today.get(tenant)
        if today is not None and day == self._day:
            today.add(purpose, cost)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER, self._begin)

    def metered(self, tenant: str, purpose: str) -> Meter:
        """Notes what a call of a model cost, once it is told. It checks no limit, see `paid`."""

        def meter(usage: TokenUsage) -> None:
            self.note(tenant, purpose, Cost(model_calls=1, tokens_in=usage.input, tokens_out=usage.output))

        return meter

    def paid(self, model: Model, tenant: str, purpose: str, *, background: bool = False) -> Model:
        """The model at the tenant's cost: every call is noted, and none begins when the day is spent. One that only
        quotes costs nothing. With `background`, replies go before its calls."""
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
        """As `Embedder.embed`, at the tenant's cost. A model in this process has no limit.

        Raises:
            EmbedderUnavailable: the model could not answer.
            SpendingLimit: the tenant has spent its day, and the model is a provider's.
        """
        if operations:
            self.note(tenant, purpose, Cost(operations=operations))
        if embedder.remote and texts:
            await self.check(tenant, EMBEDDER_LIMITS)
        made = await embedder.embed(texts, task)
        read = len(texts) if made.texts is None else made.texts
        if read:
            self.note(tenant, purpose, Cost(texts_embedded=read, tokens_embedded=made.tokens))
        return made

    async def questions(
        self, embedder: Embedder, texts: Sequence[str], tenant: str, purpose: str = SEARCH
    ) -> tuple[Vectors | None, list[str]]:
        """The vectors (n, dim) to search with, at the tenant's cost, as one operation; None where none can be made, and
        then what else than the model is to blame: `spending`, when the tenant has spent its day."""
        try:
            made = await self.embed(embedder, texts, "query", tenant=tenant, purpose=purpose, operations=1)
        except EmbedderUnavailable:
            return None, []
        except SpendingLimit:
            return None, ["spending"]
        return made.vectors, []

    # --- limits ------------------------------------------------------------------------------------

    async def check(self, tenant: str, limits: Sequence[str] = MODEL_LIMITS) -> None:
        """Refuses to spend more when a tenant has spent its day.

        Raises:
            SpendingLimit: names the limit, and when it ends.
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
        """What a tenant may spend in a day."""
        return (await self._of(tenant)).limits

    async def set_limits(self, tenant: str, changes: dict[str, int | None]) -> Spending:
        """Sets the named limits of a tenant; None is the configured default again."""

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
        held = self._today.get(tenant)
        if held is None or (self._db.shared and time.monotonic() - held.read_at > FRESH):
            async with self._writing:
                held = await self._read(tenant, day)
        return held

    async def _read(self, tenant: str, day: int) -> _Today:
        await self._write_down()

        def read(c: Connection) -> _Today:
            own = {name: value for name, value in c.all("quotas_of", [tenant]) if name in LIMITS}
            today = _Today(Cost(), Cost(), msgspec.structs.replace(self._limits, **own), 0.0)
            for row in c.all("spent_between", [tenant, day, day]):
                today.add(row[1], Cost(*row[2:]))
            return today

        today = await self._threads.run(self._db.read, read, tenant)
        for (whose, when, purpose), cost in self._held.items():  # what was spent while this was read
            if (whose, when) == (tenant, day):
                today.add(purpose, cost)
        today.read_at = time.monotonic()
        if day == self._day:
            self._today[tenant] = today
        return today

    # --- reading and writing -----------------------------------------------------------------------

    async def spent(self, tenant: str, since: date, until: date) -> list[Spent]:
        """What a tenant spent from one day to another, both included; by day and purpose."""
        await self.flush()
        days = [(one - date(1970, 1, 1)).days for one in (since, until)]
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
        """Writes down what was spent. What cannot be written waits for the next time."""
        async with self._writing:
            await self._write_down()

    async def _write_down(self) -> None:
        held, self._held = self._held, defaultdict(Cost)
        if not held:
            return
        rows = [(*key, *(getattr(cost, name) for name in COUNTS)) for key, cost in sorted(held.items())]

        def work(c: Connection) -> None:
            c.many("add_spending", rows)

        try:
            await self._threads.result(self._db.write(work))
        except MemorandaError as exc:
            log.warning("what was spent is not written down yet: %s", exc)
            for key, cost in held.items():
                self._held[key] += cost

    async def close(self) -> None:
        """Writes down what is left. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self.flush()


class Paid(Model):
    """A model at a tenant's cost. The first answer that comes is one operation, however many calls follow."""

    def __init__(self, inner: Model, ledger: Ledger, tenant: str, purpose: str, background: bool) -> None:
        self.name = inner.name
        self.quotes_only = inner.quotes_only
        self._inner = inner
        self._ledger = ledger
        self._place = (tenant, purpose)
        self._background = background
        self._counted = False

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """As `Model.answer`; what came is noted however it ends, tokens estimated where the provider names none.

        Raises:
            SpendingLimit: the tenant has spent its day.
        """
        tenant, purpose = self._place
        await self._ledger.check(tenant, MODEL_LIMITS + (BACKGROUND_LIMITS if purpose in BACKGROUND else ()))
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
        self._ledger.note(*self._place, cost)

    async def names(self) -> list[str]:
        return await self._inner.names()

    def usage(self) -> dict[str, Any]:
        return self._inner.usage()
