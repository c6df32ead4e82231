"""The history of a request: the chain of responses or the conversation that it continues, cut to what the model
is shown."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from memoranda.config.agent_sections import Summarization
from memoranda.errors import InvalidInput, MemorandaError, NotFound
from memoranda.providers.chat.base import Model
from memoranda.responses import records
from memoranda.responses.conversations import (
    ConversationRow,
    conversation_seen,
    keep_summary,
    stored_summary,
)
from memoranda.responses.messages import pinned, starts_of, tokens_of_items
from memoranda.responses.profile_values import Summarized
from memoranda.responses.summaries import summarize
from memoranda.responses.values import CALLS, OUTPUTS, Item, Summary
from memoranda.sessions.switches import switches_of
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.access import owns
from memoranda.store.core import Core
from memoranda.store.ids import listed
from memoranda.store.job_kinds import Run
from memoranda.text.stored import compact_json
from memoranda.text.tokens import DEFAULT_ENCODING
from memoranda.types import Subject

log = logging.getLogger("memoranda.responses")


class UnknownResponse(NotFound):
    """The previous response does not exist, or is not the subject's."""


class Past(msgspec.Struct, kw_only=True):
    """The history before a new input.

    `items` are shown as they are, oldest first; `summary` covers the items before them. `session_id` is the
    conversation, or the first response of the chain (None: no history); `user_id` is the owner (None: the tenant).
    `turns` and `tokens` (summary included) count this history, `dropped` the turns that neither items nor summary
    cover. `broken` means that a link of the chain was missing or not the subject's; `notes` name other failures
    (`summary_failed: ...`); `settings` are the summarization settings of this history.
    """

    items: list[Item] = []
    summary: Summary | None = None
    session_id: str | None = None
    user_id: str | None = None
    turns: int = 0
    tokens: int = 0
    dropped: int = 0
    broken: bool = False
    notes: list[str] = []
    settings: Summarization = Summarization()


class StoredPast(msgspec.Struct, frozen=True):
    """The stored items of a history, oldest first. `cuts` are the positions that a summary may reach to, each with the
    last response or item that it then covers. `tail` is the latest response of a chain, None in a conversation. `ids`
    are the responses or items that `items` come from; `mixed` means that they belong to several users."""

    tenant: str
    items: list[Item]
    cuts: dict[int, str]
    ids: list[str]
    summary: Summary | None
    session_id: str
    tail: str | None
    user_id: str | None = None
    broken: bool = False
    mixed: bool = False

    def window(self, keep: int, new: Sequence[Item] = ()) -> int:
        """Where the latest `keep` turns begin (or earlier, at the next cut); 0 where nothing is before them."""
        starts, bound = starts_of(self.items), pinned(self.items, new)
        for place in range(len(starts) - keep, 0, -1):
            if starts[place] in self.cuts and starts[place] <= bound:
                return starts[place]
        return 0

    def from_(self, at: int, encoding: str) -> Past:
        """The past that begins at item `at`, with the stored summary."""
        items = self.items[at:]
        summary = 0 if self.summary is None else self.summary.token_count
        return Past(
            items=items,
            summary=self.summary,
            session_id=self.session_id,
            user_id=self.user_id,
            turns=len(starts_of(items)),
            tokens=tokens_of_items(items, encoding) + summary,
            broken=self.broken,
        )


SUMMARIZE_JOB = "summarize"
SECONDS = 30.0
"""How long a request waits for a summary; then it goes on without, and a later request uses it."""
MAKING_SECONDS = 300.0
"""Seconds in which a summary that requests wait for must be made, and in which each call of the model for a job must
end, unless `model.timeout` is greater. The call's wait for replies does not count."""
PURPOSE, JOB_PURPOSE = "summaries", "summaries.background"
"""The purposes of summaries, by which costs are summed: those that requests wait for, and those of the job."""
REST = 60.0
"""Seconds after a failure in which no request of the same session tries again."""
URGENT = 2
"""Times the threshold beyond which a request makes a summary itself that it would leave to a job otherwise."""


class History:
    """Loads the history of a request, and summarizes the beginning of a long one."""

    def __init__(
        self, core: Core, settings: Summarization, model: Model, *, context_tokens: int = 128_000
    ) -> None:
        self._core = core
        self._settings = settings
        self._model = model
        self._context = context_tokens
        self._making: dict[tuple[str, ...], asyncio.Task[Summary]] = {}
        self._resting: dict[tuple[str, str], float] = {}
        """Until when no request tries again, by tenant and session."""

    async def load(
        self,
        subject: Subject,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        new: Sequence[Item] = (),
        encoding: str = DEFAULT_ENCODING,
        settings: Summarization | None = None,
    ) -> Past:
        """The history before `new` in the chain that ends with a response, or in a conversation; empty for neither.
        Above the threshold, a summary replaces the items before the last turns: the first is made here, later ones by
        a job. If that fails, these items are left out, and `notes` say so. `settings` override the configuration.
        No summary is made for the role `reader`, which writes nothing.

        Raises:
            UnknownResponse: there is no such response for this subject.
            NotFound: there is no such conversation for this subject.
        """
        settings = settings or self._settings
        if previous_response_id is None and conversation_id is None:
            return Past(settings=settings)

        def read() -> tuple[StoredPast, Past]:
            stored = self._stored_past(subject, previous_response_id, conversation_id)
            return stored, stored.from_(0, encoding)

        stored, past = await self._core.threads.run(read)
        past.settings = settings
        if not settings.enabled or past.tokens <= settings.token_threshold or subject.role == "reader":
            return past
        at = stored.window(settings.window_size, new)
        if not at:
            return past
        later = settings.strategy == "eager" or stored.summary is not None
        if later and past.tokens <= URGENT * settings.token_threshold:
            if _grown(stored, at, settings):
                await self._queue(stored.tenant, stored.tail, stored.session_id, settings)
            return past
        return await self._shortened(stored, at, encoding, settings)

    async def answered(
        self,
        tenant: str,
        past: Past,
        said: Sequence[Item],
        *,
        response_id: str,
        conversation_id: str | None = None,
    ) -> None:
        """To be called once a response is stored: queues an `eager` summary if the history of the next request, `past`
        and the items `said` since, is above the threshold."""
        settings = past.settings
        if not settings.enabled or settings.strategy != "eager":
            return
        if past.dropped or past.tokens + tokens_of_items(said) > settings.token_threshold:
            tail = None if conversation_id else response_id
            await self._queue(tenant, tail, conversation_id or "", settings)

    async def make(self, run: Run) -> dict[str, Any]:
        """The job: summarizes the items before the last turns of a chain or a conversation, if it is still long.

        Raises:
            ModelError: no summary could be made; it is tried again.
            SpendingLimit: the tenant has reached its limit of the day; the job waits.
        """
        settings = msgspec.convert(run.payload["settings"], Summarized)
        if not await self._core.threads.run(self._wanted, run.tenant, settings):
            return {"summarized": False}
        response, conversation = run.payload.get("response"), run.payload.get("conversation")

        def read() -> StoredPast:
            return self._stored_past(Subject(tenant_id=run.tenant), response, conversation)

        try:
            stored = await self._core.threads.run(read)
        except NotFound:
            return {"summarized": False}
        past = stored.from_(0, DEFAULT_ENCODING)
        at = stored.window(settings.window_size)
        short = past.tokens <= settings.token_threshold
        if not at or short or stored.mixed or not _grown(stored, at, settings):
            return {"summarized": False}
        summary = await self._summary(stored, at, settings, background=True)
        await self._keep(stored, at, summary)
        return {"summarized": True, "up_to": summary.summarized_up_to, "tokens": summary.token_count}

    def _wanted(self, tenant: str, settings: Summarized) -> bool:
        """Return False if summaries were switched off since the job was queued."""
        if settings.by_agent:
            return True
        channel = settings.channel_id
        switched = self._core.store.db.read(lambda c: switches_of(c, tenant, [channel]), tenant)
        enabled = switched[channel].conversation_summaries
        return self._settings.enabled if enabled is None else enabled

    async def close(self) -> None:
        """Cancels running summaries. Idempotent."""
        tasks = list(self._making.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- reading -----------------------------------------------------------------------------------

    def _stored_past(self, subject: Subject, response: str | None, conversation: str | None) -> StoredPast:
        db, tenant = self._core.store.db, subject.tenant_id
        if conversation is not None:
            return _of_conversation(*db.read(lambda c: _conversation(c, subject, conversation), tenant))
        return _of_chain(db.read(lambda c: _chain(c, subject, response or ""), tenant), subject)

    # --- summaries ---------------------------------------------------------------------------------

    async def _queue(
        self, tenant: str, response: str | None, conversation: str, settings: Summarization
    ) -> None:
        """Queue a summary of the chain that ends with `response`, else of a conversation."""
        place = {"response": response} if response else {"conversation": conversation}
        payload = {**place, "settings": msgspec.to_builtins(settings)}
        key = response or conversation
        try:
            await self._core.jobs.enqueue(tenant, SUMMARIZE_JOB, payload, dedup_key=key)
        except MemorandaError as exc:
            log.warning("a summary was not asked for: %s", exc)
            self._core.note_failure("responses")

    async def _shortened(self, stored: StoredPast, at: int, encoding: str, settings: Summarization) -> Past:
        """The last turns from item `at` on, and a summary of the rest made now."""
        note = "summary_failed: not tried again yet after an earlier failure"
        place, now = (stored.tenant, stored.session_id), time.monotonic()
        if now >= self._resting.get(place, 0.0):
            try:
                async with asyncio.timeout(SECONDS):
                    summary = await self._shared_summary(stored, at, settings)
                past = replace(stored, summary=summary).from_(at, encoding)
                past.settings = settings
                return past
            except Exception as exc:  # whatever it is, the request goes on
                log.warning("no summary, history is cut instead: %s: %s", type(exc).__name__, exc)
                note = f"summary_failed: {_said(exc)}"
                self._resting = {other: until for other, until in self._resting.items() if until > now}
                self._resting[place] = now + REST
        past = stored.from_(at, encoding)
        past.settings = settings
        past.dropped = sum(start < at for start in starts_of(stored.items))
        past.notes.append(note)
        return past

    async def _shared_summary(self, stored: StoredPast, at: int, settings: Summarization) -> Summary:
        """The summary of the items before `at`: concurrent requests share one call, and it is stored even if no request
        waits for it any more. A subject that sees less of a chain begins at another response, with its own summary."""
        key = (stored.tenant, stored.tail or stored.session_id, stored.cuts[at], stored.ids[0])
        task = self._making.get(key)
        if task is None:
            task = asyncio.create_task(self._make_and_keep(stored, at, settings), name="summary")
            self._making[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(task)

    def _ended(self, key: tuple[str, ...], task: asyncio.Task[Summary]) -> None:
        self._making.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved here, as the caller may be gone

    async def _make_and_keep(self, stored: StoredPast, at: int, settings: Summarization) -> Summary:
        async with asyncio.timeout(MAKING_SECONDS):
            summary = await self._summary(stored, at, settings, background=False)
        if not stored.mixed:
            try:
                await self._keep(stored, at, summary)
            except MemorandaError as exc:
                log.warning("a summary was made and not stored: %s", exc)
        return summary

    async def _summary(
        self, stored: StoredPast, at: int, settings: Summarization, *, background: bool
    ) -> Summary:
        purpose = JOB_PURPOSE if background else PURPOSE
        try:
            summary = await summarize(
                stored.items[:at],
                self._core.costs.paid(self._model, stored.tenant, purpose, background=background),
                settings,
                up_to=stored.cuts[at],
                previous=stored.summary,
                context_tokens=self._context,
                call_seconds=max(MAKING_SECONDS, self._core.config.model.timeout) if background else None,
            )
        except BaseException:
            self._core.tally["summaries.failed"] += 1
            raise
        self._core.tally["summaries.made"] += 1
        return summary

    async def _keep(self, stored: StoredPast, at: int, summary: Summary) -> None:
        """Stores a summary, unless an item that it covers was deleted meanwhile."""
        ids = stored.ids[: stored.ids.index(stored.cuts[at]) + 1]

        def work(c: Connection) -> None:
            if stored.tail is None:
                keep_summary(c, stored.tenant, stored.session_id, summary, ids)
            elif len(c.all("responses_there", [stored.tenant, listed(ids)])) == len(ids):
                values = [compact_json(summary), summary.summarized_up_to, stored.tenant, stored.tail]
                c.run("summarize_response", values)

        await self._core.threads.result(self._core.store.db.write(work, tenant=stored.tenant))


def _said(exc: Exception) -> str:
    """The message that a caller sees for a failure; of an unexpected exception only its class name."""
    if isinstance(exc, TimeoutError):
        return "it took too long"
    return str(exc) if isinstance(exc, MemorandaError) else type(exc).__name__


def _grown(stored: StoredPast, at: int, settings: Summarization) -> bool:
    """Return True if enough left the window since the last summary for another one: half a window of turns, or half
    of the threshold in tokens."""
    if stored.summary is None:
        return True
    out = sum(start < at for start in starts_of(stored.items))
    if out >= max(1, settings.window_size // 2):
        return True
    return tokens_of_items(stored.items[:at]) >= settings.token_threshold // 2


def _chain(c: Connection, subject: Subject, id_: str) -> list[records.ResponseRow]:
    """The responses that lead to one, newest first.

    Raises:
        UnknownResponse: it is not there, or not the subject's.
        InvalidInput: it is still being made.
    """
    rows = records.chain(c, subject.tenant_id, id_)
    if not rows or not owns(subject, rows[0].user_id):
        raise UnknownResponse(f"Previous response with id '{id_}' not found.")
    if rows[0].live:
        says = f"{id_} is still being made; go on from it once it has ended"
        raise InvalidInput("previous_response_id", says)
    return rows


def _of_chain(rows: list[records.ResponseRow], subject: Subject) -> StoredPast:
    newest = rows[0]
    summarized = next((row for row in rows if row.summary is not None), None)
    summary = None if summarized is None or summarized.summary is None else _summary_of(summarized.summary)
    upto = None if summarized is None else summarized.summarized_to
    mine = next((i for i, row in enumerate(rows) if not owns(subject, row.user_id)), len(rows))
    oldest = rows[mine - 1]
    broken = mine < len(rows) or (oldest.previous_id is not None and oldest.previous_id != upto)
    items: list[Item] = []
    cuts: dict[int, str] = {}
    unanswered: Counter[str] = Counter()
    for row in reversed(rows[:mine]):
        if items and row.previous_id is not None:
            cuts[len(items)] = row.previous_id
        said = [*row.input_items, *row.output_items]
        items += _after_their_calls(said, unanswered) if broken else said
    return StoredPast(
        tenant=newest.tenant_id,
        items=items,
        cuts=cuts,
        ids=[row.id for row in reversed(rows[:mine])],
        summary=summary if mine == len(rows) else None,
        session_id=newest.session_id,
        tail=newest.id,
        user_id=newest.user_id,
        broken=broken,
        mixed=len({row.user_id for row in rows}) > 1,
    )


def _after_their_calls(items: Sequence[Item], unanswered: Counter[str]) -> list[Item]:
    """The items without answers to calls and approval requests that are missing, which models reject. `unanswered`
    counts those of the items before, by id, and is updated."""
    kept = []
    for item in items:
        kind = item["type"]
        if kind in CALLS or kind == "mcp_approval_request":
            unanswered[item["call_id" if kind in CALLS else "id"]] += 1
        elif kind in OUTPUTS:
            if not unanswered[item["call_id"]]:
                continue
            unanswered[item["call_id"]] -= 1
        elif kind == "mcp_approval_response" and not unanswered[item["approval_request_id"]]:
            continue
        kept.append(item)
    return kept


def _conversation(c: Connection, subject: Subject, id_: str) -> tuple[ConversationRow, list[Row]]:
    """A conversation, and its items that no summary covers.

    Raises:
        NotFound: it is not there, or not the subject's.
    """
    row = conversation_seen(c, subject, id_)
    reach = stored_summary(row)
    return row, c.all("items_after", [row.tenant_id, id_, -1 if reach is None else reach.seq])


def _of_conversation(row: ConversationRow, rows: list[Row]) -> StoredPast:
    ids = [item_id for _, item_id, _ in rows]
    return StoredPast(
        tenant=row.tenant_id,
        items=[msgspec.json.decode(text) for _, _, text in rows],
        cuts={at: ids[at - 1] for at in range(1, len(ids))},
        ids=ids,
        summary=None if row.summary is None else _summary_of(row.summary),
        session_id=row.id,
        tail=None,
        user_id=row.user_id,
    )


def _summary_of(text: str) -> Summary:
    return msgspec.json.decode(text, type=Summary)
