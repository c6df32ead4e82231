"""What was said before: the chain of responses or the conversation that a request goes on from, as much of it as the
model is to be shown."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from memoranda.config.sections import Summarization
from memoranda.errors import InvalidInput, MemorandaError, NotFound
from memoranda.providers.chat.base import Model
from memoranda.responses import records
from memoranda.responses.conversations import (
    ConversationRow,
    conversation_seen,
    keep_summary,
    stored_summary,
)
from memoranda.responses.counting import tokens_of_items
from memoranda.responses.merging import Summarized
from memoranda.responses.summaries import summarize
from memoranda.responses.turns import fitting, pinned, starts_of
from memoranda.responses.values import Item, Summary
from memoranda.sessions.switches import switches_of
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.access import owns
from memoranda.store.core import Core
from memoranda.store.ids import listed
from memoranda.store.jobs import AGENT_LANE, Run
from memoranda.text.json import compact_json
from memoranda.text.tokens import DEFAULT_ENCODING
from memoranda.types import Subject

log = logging.getLogger("memoranda.responses")


class UnknownResponse(NotFound):
    """The response to go on from is not there, or not the subject's."""


class ContextTooLong(InvalidInput):
    """More than the model reads: `context_length_exceeded`."""


class Past(msgspec.Struct, kw_only=True):
    """What goes before a new input.

    `items` are shown as they are, oldest first; `summary` tells what was before them. `session_id` is the conversation,
    or the first response of the chain; None where nothing came before; `user_id` is whose it is (None: the tenant's).
    `turns` and `tokens` (summary included) are of what is here, `dropped` turns were left out untold. `broken` says
    that a link of the chain was missing or not the subject's; `notes` say what else went wrong (`summary_failed: ...`);
    `settings` are those it was made by.
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


def fit(
    past: Past,
    used_tokens: int,
    limit: int,
    truncation: str,
    new: Sequence[Item] = (),
    encoding: str = DEFAULT_ENCODING,
) -> Past:
    """The past, cut to what `used_tokens` (instructions, tools, `new` input, room to answer) leave of `limit`. With
    truncation `auto` the oldest turns are dropped, whole, and the summary only where no turn has room beside it; a turn
    whose call `new` answers stays.

    Raises:
        ContextTooLong: it does not fit, and truncation is `disabled` or does not help.
    """
    room = limit - used_tokens
    if past.tokens <= room:
        return past
    if truncation != "auto":
        says = (
            f"is {used_tokens + past.tokens} tokens with what came before, and the model reads {limit};"
            " shorten it, or send truncation: auto"
        )
        raise ContextTooLong("input", says)
    summary = past.summary
    told = 0 if summary is None else summary.token_count
    kept, tokens = fitting(past.items, room - told, new, encoding)
    if told and (tokens + told > room or kept == len(past.items)):
        bare = fitting(past.items, room, new, encoding)
        if told > room or bare[0] < len(past.items):
            (kept, tokens), summary, told = bare, None, 0
    if tokens > room:
        raise ContextTooLong("input", f"is {used_tokens} tokens, and the model reads {limit}; shorten it")
    items = past.items[kept:]
    turns = len(starts_of(items))
    return msgspec.structs.replace(
        past,
        items=items,
        summary=summary,
        turns=turns,
        tokens=tokens + told,
        dropped=past.dropped + past.turns - turns,
    )


@dataclass(frozen=True, slots=True)
class Told:
    """What is stored of a past, oldest first. `cuts` are the places that a summary may reach to, each with the response
    or item that it then tells of last. `tail` is the latest response of a chain, None in a conversation. `ids` are the
    responses or items that `items` come from; `mixed` says that they are not all one user's."""

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
"""How long a request waits for a summary; then it goes on without, and the next one finds it."""
JOB_SECONDS = 300.0
"""How long one may take to be made."""
REST = 60.0
"""Seconds after a failure in which no request of the same session tries again."""
URGENT = 2
"""Times the threshold beyond which a request makes a summary itself that it would leave to a job otherwise."""


class History:
    """What came before a request, with its beginning summarized where that is long."""

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
        core.jobs.handlers[SUMMARIZE_JOB] = self.make
        core.jobs.lanes[SUMMARIZE_JOB] = AGENT_LANE

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
        """What goes before `new` in the chain that ends with a response, or in a conversation; nothing for neither.
        Above the threshold, what is before the last turns is told as a summary: the first is made here, later ones by a
        job. Where that fails, it is left out, and `notes` say so. `settings` go before those of the configuration.
        For a reader, who writes nothing, none is made.

        Raises:
            UnknownResponse: there is no such response for this subject.
            NotFound: there is no such conversation for this subject.
        """
        settings = settings or self._settings
        if previous_response_id is None and conversation_id is None:
            return Past(settings=settings)

        def read() -> tuple[Told, Past]:
            told = self._told(subject, previous_response_id, conversation_id)
            return told, told.from_(0, encoding)

        told, past = await self._core.threads.run(read)
        past.settings = settings
        if not settings.enabled or past.tokens <= settings.token_threshold or subject.role == "reader":
            return past
        at = told.window(settings.window_size, new)
        if not at:
            return past
        later = settings.strategy == "eager" or told.summary is not None
        if later and past.tokens <= URGENT * settings.token_threshold:
            if _grown(told, at, settings):
                await self._queue(told.tenant, told.tail, told.session_id, settings)
            return past
        return await self._shortened(told, at, encoding, settings)

    async def answered(
        self,
        tenant: str,
        past: Past,
        said: Sequence[Item],
        *,
        response_id: str,
        conversation_id: str | None = None,
    ) -> None:
        """To be called once a response is stored: has an `eager` summary made in the background, where what the next
        request would be shown, `past` and what was `said` since, is above the threshold."""
        settings = past.settings
        if not settings.enabled or settings.strategy != "eager":
            return
        if past.dropped or past.tokens + tokens_of_items(said) > settings.token_threshold:
            tail = None if conversation_id else response_id
            await self._queue(tenant, tail, conversation_id or "", settings)

    async def make(self, run: Run) -> dict[str, Any]:
        """The job: summarizes what is before the last turns of a chain or a conversation, if that is still long.

        Raises:
            ModelError: no summary could be made; it is tried again.
        """
        settings = msgspec.convert(run.payload["settings"], Summarized)
        if not await self._core.threads.run(self._wanted, run.tenant, settings):
            return {"summarized": False}
        response, conversation = run.payload.get("response"), run.payload.get("conversation")

        def read() -> Told:
            return self._told(Subject(tenant_id=run.tenant), response, conversation)

        try:
            told = await self._core.threads.run(read)
        except NotFound:
            return {"summarized": False}
        past = told.from_(0, DEFAULT_ENCODING)
        at = told.window(settings.window_size)
        short = past.tokens <= settings.token_threshold
        if not at or short or told.mixed or not _grown(told, at, settings):
            return {"summarized": False}
        async with asyncio.timeout(JOB_SECONDS):
            summary = await self._summary(told, at, settings)
        await self._keep(told, at, summary)
        return {"summarized": True, "up_to": summary.summarized_up_to, "tokens": summary.token_count}

    def _wanted(self, tenant: str, settings: Summarized) -> bool:
        """Return False if summaries were switched off since the job was queued."""
        if settings.by_agent:
            return True
        channel = settings.channel_id
        switched = self._core.store.db.read(lambda c: switches_of(c, tenant, [channel]), tenant)
        said = switched[channel].conversation_summaries
        return self._settings.enabled if said is None else said

    async def close(self) -> None:
        """Gives up summaries that are being made. Idempotent."""
        tasks = list(self._making.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- reading -----------------------------------------------------------------------------------

    def _told(self, subject: Subject, response: str | None, conversation: str | None) -> Told:
        db, tenant = self._core.store.db, subject.tenant_id
        if conversation is not None:
            return _of_conversation(*db.read(lambda c: _conversation(c, subject, conversation), tenant))
        return _of_chain(db.read(lambda c: _chain(c, subject, response or ""), tenant), subject)

    # --- summaries ---------------------------------------------------------------------------------

    async def _queue(
        self, tenant: str, response: str | None, conversation: str, settings: Summarization
    ) -> None:
        """Has a summary made in the background, of the chain that ends with `response`, else of a conversation."""
        place = {"response": response} if response else {"conversation": conversation}
        payload = {**place, "settings": msgspec.to_builtins(settings)}
        key = response or conversation
        try:
            await self._core.jobs.enqueue(tenant, SUMMARIZE_JOB, payload, dedup_key=key)
        except MemorandaError as exc:
            log.warning("a summary was not asked for: %s", exc)

    async def _shortened(self, told: Told, at: int, encoding: str, settings: Summarization) -> Past:
        """The last turns from item `at` on, and a summary of the rest made now."""
        note = "summary_failed: not tried again yet after an earlier failure"
        place, now = (told.tenant, told.session_id), time.monotonic()
        if now >= self._resting.get(place, 0.0):
            try:
                async with asyncio.timeout(SECONDS):
                    summary = await self._made(told, at, settings)
                past = replace(told, summary=summary).from_(at, encoding)
                past.settings = settings
                return past
            except Exception as exc:  # whatever it is, the request goes on
                log.warning("no summary, history is cut instead: %s: %s", type(exc).__name__, exc)
                note = f"summary_failed: {_said(exc)}"
                self._resting = {other: until for other, until in self._resting.items() if until > now}
                self._resting[place] = now + REST
        past = told.from_(at, encoding)
        past.settings = settings
        past.dropped = sum(start < at for start in starts_of(told.items))
        past.notes.append(note)
        return past

    async def _made(self, told: Told, at: int, settings: Summarization) -> Summary:
        """The summary of what is before item `at`, made once for all that ask for it meanwhile, and stored though
        nobody waits for it any more. Who sees less of a chain begins at another response, and has one of their own."""
        key = (told.tenant, told.tail or told.session_id, told.cuts[at], told.ids[0])
        task = self._making.get(key)
        if task is None:
            task = asyncio.create_task(self._make_and_keep(told, at, settings), name="summary")
            self._making[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(task)

    def _ended(self, key: tuple[str, ...], task: asyncio.Task[Summary]) -> None:
        self._making.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at here, where whoever asked may be gone

    async def _make_and_keep(self, told: Told, at: int, settings: Summarization) -> Summary:
        async with asyncio.timeout(JOB_SECONDS):
            summary = await self._summary(told, at, settings)
        if not told.mixed:
            try:
                await self._keep(told, at, summary)
            except MemorandaError as exc:
                log.warning("a summary was made and not stored: %s", exc)
        return summary

    async def _summary(self, told: Told, at: int, settings: Summarization) -> Summary:
        try:
            made = await summarize(
                told.items[:at],
                self._core.ledger.paid(self._model, told.tenant, "summaries"),
                settings,
                up_to=told.cuts[at],
                previous=told.summary,
                context_tokens=self._context,
            )
        except BaseException:
            self._core.tally["summaries.failed"] += 1
            raise
        self._core.tally["summaries.made"] += 1
        return made

    async def _keep(self, told: Told, at: int, summary: Summary) -> None:
        """Stores a summary, unless something that it tells of was deleted meanwhile."""
        ids = told.ids[: told.ids.index(told.cuts[at]) + 1]

        def work(c: Connection) -> None:
            if told.tail is None:
                keep_summary(c, told.tenant, told.session_id, summary, ids)
            elif len(c.all("responses_there", [told.tenant, listed(ids)])) == len(ids):
                values = [compact_json(summary), summary.summarized_up_to, told.tenant, told.tail]
                c.run("summarize_response", values)

        await self._core.threads.result(self._core.store.db.write(work, tenant=told.tenant))


def _said(exc: Exception) -> str:
    """What a caller is told of a failure: no more than the name of one that nobody expected."""
    if isinstance(exc, TimeoutError):
        return "it took too long"
    return str(exc) if isinstance(exc, MemorandaError) else type(exc).__name__


def _grown(told: Told, at: int, settings: Summarization) -> bool:
    """Whether enough left the window since the last summary for another one: half a window of turns, or half of the
    threshold in tokens."""
    if told.summary is None:
        return True
    out = sum(start < at for start in starts_of(told.items))
    if out >= max(1, settings.window_size // 2):
        return True
    return tokens_of_items(told.items[:at]) >= settings.token_threshold // 2


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


def _of_chain(rows: list[records.ResponseRow], subject: Subject) -> Told:
    newest = rows[0]
    told = next((row for row in rows if row.summary is not None), None)
    summary = None if told is None or told.summary is None else _summary_of(told.summary)
    upto = None if told is None else told.summarized_to
    mine = next((i for i, row in enumerate(rows) if not owns(subject, row.user_id)), len(rows))
    oldest = rows[mine - 1]
    items: list[Item] = []
    cuts: dict[int, str] = {}
    for row in reversed(rows[:mine]):
        if items and row.previous_id is not None:
            cuts[len(items)] = row.previous_id
        items += row.input_items
        items += row.output_items
    return Told(
        tenant=newest.tenant_id,
        items=items,
        cuts=cuts,
        ids=[row.id for row in reversed(rows[:mine])],
        summary=summary if mine == len(rows) else None,
        session_id=newest.session_id,
        tail=newest.id,
        user_id=newest.user_id,
        broken=mine < len(rows) or (oldest.previous_id is not None and oldest.previous_id != upto),
        mixed=len({row.user_id for row in rows}) > 1,
    )


def _conversation(c: Connection, subject: Subject, id_: str) -> tuple[ConversationRow, list[Row]]:
    """A conversation, and its items that no summary tells of.

    Raises:
        NotFound: it is not there, or not the subject's.
    """
    row = conversation_seen(c, subject, id_)
    reach = stored_summary(row)
    return row, c.all("items_after", [row.tenant_id, id_, -1 if reach is None else reach.seq])


def _of_conversation(row: ConversationRow, held: list[Row]) -> Told:
    ids = [item_id for _, item_id, _ in held]
    return Told(
        tenant=row.tenant_id,
        items=[msgspec.json.decode(text) for _, _, text in held],
        cuts={at: ids[at - 1] for at in range(1, len(ids))},
        ids=ids,
        summary=None if row.summary is None else _summary_of(row.summary),
        session_id=row.id,
        tail=None,
        user_id=row.user_id,
    )


def _summary_of(text: str) -> Summary:
    return msgspec.json.decode(text, type=Summary)
