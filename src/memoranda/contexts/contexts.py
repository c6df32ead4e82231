"""Contexts for the questions of one subject."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import Unpack

from memoranda.contexts.composing import composed
from memoranda.contexts.finding import Finding
from memoranda.contexts.talk import continued
from memoranda.contexts.values import PARTS, Context, ContextFields, ContextQuery
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories
from memoranda.store.core import Core
from memoranda.text import tokens
from memoranda.types import Subject
from memoranda.validation import checked, convert, merged

log = logging.getLogger("memoranda.contexts")


class Contexts:
    """Prompts for questions, made of what one subject may see."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def context(self, query: str | ContextQuery, **fields: Unpack[ContextFields]) -> Context:
        """Return a prompt for a question, within a budget of tokens: rules, chunks of documents, memories, summaries of
        earlier sessions, the running summary, recent messages, the question; each piece with its source and the reason
        for it. Tokens are those of `text.tokens.count`.

        Raises:
            InvalidInput: names the field and the fix.
            NotFound: no such vector store for this subject.
            Forbidden: scope `all` without the admin role.
        """
        if isinstance(query, ContextQuery):
            if fields:
                raise InvalidInput(
                    next(iter(fields)), "goes inside the ContextQuery that is given, not beside it"
                )
            asked = query
        else:
            asked = convert(merged("query", query, fields), ContextQuery)
        asked = self._checked(asked)
        began = time.perf_counter()
        if not tokens.is_loaded():  # beside the model that embeds the question, which also takes time to load
            self._core.threads.begin(tokens.count, "")
        if asked.session_id or asked.channel_id:
            asked = await self._core.threads.run(continued, self._core, self.subject, asked)
        results = await Finding(self._core, self.subject).find(asked)
        snippet = self._core.config.sessions.snippet_chars
        role = self._core.config.model.context_role
        answer, used = await self._core.threads.run(composed, asked, results, tokens.count, snippet, role)
        if asked.count_access and used:
            await Memories(self._core, self.subject).count_access(used)
        answer.query_time = time.perf_counter() - began
        self._count(answer)
        return answer

    def _count(self, context: Context) -> None:
        tally, parts = self._core.tally, Counter(piece.part for piece in context.pieces)
        tally.update({f"context_tokens.{name}": part.tokens for name, part in context.parts.items()})
        tally["contexts"] += 1
        tally["sessions_retrieved"] += context.sessions_retrieved
        extra = {
            "tenant": self.subject.tenant_id,
            "memories": parts["memories"],
            "sessions": parts["sessions"],
            "passages": parts["documents"],
            "sessions_retrieved": context.sessions_retrieved,
            "tokens": context.tokens,
        }
        log.info("context made", extra=extra)

    def _checked(self, asked: ContextQuery) -> ContextQuery:
        asked = checked(asked)
        if len(asked.query) > self._core.max_query_chars:
            raise InvalidInput("query", f"is longer than {self._core.max_query_chars} characters")
        for name, most in asked.budgets.items():
            if name not in PARTS:
                raise InvalidInput(f"budgets.{name}", f"is no part; use {', '.join(PARTS)}")
            if most < 0:
                raise InvalidInput(f"budgets.{name}", "must be 0 or more tokens")
        return asked
