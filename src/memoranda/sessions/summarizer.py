"""Digests of conversations: by the model if there is one, else by rules; long conversations are cut to a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from memoranda.clock import local, moment
from memoranda.config.sections import Sessions as Settings
from memoranda.providers.chat.base import Ask, Model
from memoranda.providers.chat.said import said
from memoranda.sessions import prompts
from memoranda.sessions.digests import Digest, Turn, digest_of
from memoranda.sessions.headers import session_header
from memoranda.sessions.parsing import parsed
from memoranda.sessions.records import MessageRow, SessionRow, texts_of
from memoranda.store.core import Core
from memoranda.store.rows import zone_of
from memoranda.text.extracting import trimmed

PURPOSE = "sessions"
"""The purpose of summaries in the ledger."""
MODEL_TOKENS = 12_000
"""Tokens of a conversation that a model reads, at most; half of its context, if that is less."""
MESSAGE_TOKENS = 1_000
"""The most tokens of one message."""
THINKING = 2_000
"""Tokens that a model may write beyond the summary: for lists, and for those that think first."""
LISTS = 600
FIRST_PART = 0.25
"""The share of the budget for the beginning of a conversation that is too long."""


class Telling:
    """Makes digests at a tenant's cost; in the background, replies to users have priority."""

    def __init__(self, core: Core, tenant: str, *, background: bool) -> None:
        self._core = core
        self._settings: Settings = core.config.sessions
        self._model: Model = core.ledger.paid(core.model, tenant, PURPOSE, background=background)

    @property
    def by_rules(self) -> bool:
        """Return True if there is no model."""
        return self._model.quotes_only

    @property
    def name(self) -> str:
        """The model that is called."""
        return self._settings.summary_model or self._model.name

    def extracted(self, messages: Sequence[MessageRow]) -> Digest:
        """Return the digest of a session by rules; call it on a thread."""
        return digest_of(
            (Turn(message.name, message.role, message.content, message.tokens) for message in messages),
            self._settings.summary_max_tokens,
        )

    async def of_session(self, row: SessionRow, messages: Sequence[MessageRow]) -> Digest:
        """Return the digest of a session.

        Raises:
            ModelError: the model gave none.
            SpendingLimit: the tenant has reached its daily limit.
        """
        if self.by_rules:
            return await asyncio.to_thread(self.extracted, messages)
        zone = zone_of(messages[-1].metadata) if messages else None
        header = session_header(
            row.channel_id, row.started_at, row.ended_at, texts_of(row.participants), (), zone
        ).removesuffix(". ")
        return await self._asked(prompts.SESSION, header, transcript(messages, self._budget), row.attempts)

    async def of_week(self, header: str, rows: Sequence[SessionRow], attempts: int = 0) -> Digest:
        """Return the digest of a week from its sessions' summaries, after so many failed attempts. Errors as
        `of_session`."""
        if self.by_rules:
            return await asyncio.to_thread(week_digest, rows, self._settings.summary_max_tokens)
        lines = "\n\n".join(
            f"{session_header(None, row.started_at, row.ended_at, texts_of(row.participants), ())}\n{row.summary}"
            for row in rows
        )
        return await self._asked(
            prompts.ROLLUP, header.removesuffix(". "), trimmed(lines, self._budget), attempts
        )

    @property
    def _budget(self) -> int:
        return min(MODEL_TOKENS, max(1_000, self._core.config.model.context_tokens // 2))

    async def _asked(self, prompt: str, header: str, lines: str, attempts: int) -> Digest:
        """Return the digest of the model. After a failure no response format is requested, which the server may not
        support."""
        most = self._settings.summary_max_tokens
        ask = Ask(
            messages=[
                {"role": "system", "content": prompt},
                {"role": "user", "content": prompts.conversation(header, lines)},
            ],
            model=self._settings.summary_model,
            max_tokens=most + LISTS + THINKING,
            response_format=None if attempts else prompts.FORM,
            stream=False,
        )
        answer = await said(self._model, ask)
        return parsed(answer.text, answer.name or self.name, most)


def week_digest(rows: Sequence[SessionRow], most: int) -> Digest:
    """Return a week's digest by rules: what its summaries say most, and what they list, the latest first."""
    turns: list[Turn] = []
    for row in rows:
        for line in (row.summary or "").splitlines():
            speaker, _, text = line.partition(": ")
            turns.append(Turn(speaker, "user", text) if text else Turn(row.channel_id or "", "user", line))
    digest = digest_of(turns, most)
    latest = rows[::-1]
    return Digest(
        summary=digest.summary,
        topics=_most(texts_of(row.topics) for row in latest) or digest.topics,
        decisions=_most(texts_of(row.decisions) for row in latest),
        open_questions=_most(texts_of(row.open_questions) for row in latest),
        action_items=_most(texts_of(row.action_items) for row in latest),
        entities=_most(texts_of(row.entities) for row in latest),
    )


def _most(lists: Iterable[Sequence[str]], limit: int = 10) -> list[str]:
    """Return the items of most lists, most frequent first; among equals the first."""
    counts: dict[str, int] = {}
    for texts in lists:
        for text in dict.fromkeys(texts):
            counts[text] = counts.get(text, 0) + 1
    return sorted(counts, key=lambda text: -counts[text])[:limit]


def transcript(messages: Sequence[MessageRow], budget: int) -> str:
    """Return the messages, a line each with time and speaker, in about `budget` tokens: of too many the beginning and
    the end."""
    lines = [(_line(message), min(message.tokens, MESSAGE_TOKENS) + 12) for message in messages]
    if sum(tokens for _, tokens in lines) <= budget:
        return "\n".join(line for line, _ in lines)
    head, spent = _fitting(lines, budget * FIRST_PART)
    tail, _ = _fitting(lines[head:][::-1], budget - spent)
    left = len(lines) - head - tail
    shown = [line for line, _ in lines]
    between = [prompts.left_out(left)] if left else []
    return "\n".join([*shown[:head], *between, *shown[len(shown) - tail :]])


def _fitting(lines: Sequence[tuple[str, int]], budget: float) -> tuple[int, int]:
    """Return how many of the lines fit, and their tokens."""
    spent = 0
    for number, (_, tokens) in enumerate(lines):
        if spent + tokens > budget:
            return number, spent
        spent += tokens
    return len(lines), spent


def _line(message: MessageRow) -> str:
    text = (
        message.content
        if message.tokens <= MESSAGE_TOKENS
        else f"{trimmed(message.content, MESSAGE_TOKENS)} …"
    )
    return f"[{local(moment(message.occurred_at), zone_of(message.metadata)):%d %b %H:%M}] {message.label}: {text}"
