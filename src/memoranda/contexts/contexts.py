"""The verb of contexts, for one subject."""

from __future__ import annotations

import logging
import time
from collections import Counter

from typing_extensions import Unpack

from memoranda.contexts.assembly import PARTS
from memoranda.contexts.composing import composed
from memoranda.contexts.finding import Finding
from memoranda.contexts.talk import continued
from memoranda.contexts.values import Context, ContextFields, ContextQuery
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories
from memoranda.store.core import Core
from memoranda.text import tokens
from memoranda.types import Subject
from memoranda.validation import convert, merged

log = logging.getLogger("memoranda.contexts")
RANGES = {
    "budget": (1, 1_000_000),
    "limit": (0, 200),
    "passages": (0, 50),
    "sessions": (0, 50),
    "neighbours": (0, 10),
    "neighbour_tokens": (0, 10_000),
}
MOST_RECENT = 1_000
IDS = ("session_id", "channel_id", "user_id", "agent_id")


class Contexts:
    """Prompts for questions, made of what one subject may be told."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def context(self, query: str | ContextQuery, **fields: Unpack[ContextFields]) -> Context:
        """A prompt for a question, within a budget of tokens: rules, chunks of documents, memories, summaries of
        earlier sessions, the running summary, recent messages, the question; each piece with where it is from and why
        it is there. Tokens are those of `text.tokens.count`.

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
        self._check(asked)
        began = time.perf_counter()
        asked = await self._core.threads.run(continued, self._core, self.subject, asked)
        found = await Finding(self._core, self.subject).find(asked)
        snippet = self._core.config.sessions.snippet_chars
        made, used = await self._core.threads.run(composed, asked, found, tokens.count, snippet)
        if asked.count_access and used:
            await Memories(self._core, self.subject).count_access(used)
        made.query_time = time.perf_counter() - began
        self._count(made)
        return made

    def _count(self, made: Context) -> None:
        tally, parts = self._core.tally, Counter(piece.part for piece in made.pieces)
        tally.update({f"context_tokens.{name}": part.tokens for name, part in made.parts.items()})
        tally["contexts"] += 1
        tally["sessions_retrieved"] += made.sessions_retrieved
        told = {
            "tenant": self.subject.tenant_id,
            "memories": parts["memories"],
            "sessions": parts["sessions"],
            "passages": parts["documents"],
            "sessions_retrieved": made.sessions_retrieved,
            "tokens": made.tokens,
        }
        log.info("context made", extra=told)

    def _check(self, asked: ContextQuery) -> None:
        if not asked.query.strip():
            raise InvalidInput("query", "must hold some text")
        if len(asked.query) > self._core.max_query_chars:
            raise InvalidInput("query", f"is longer than {self._core.max_query_chars} characters")
        for name, (least, most) in RANGES.items():
            value = getattr(asked, name)
            if value is not None and not least <= value <= most:
                raise InvalidInput(name, f"must be between {least} and {most}")
        for name, most in asked.budgets.items():
            if name not in PARTS:
                raise InvalidInput(f"budgets.{name}", f"is no part; use {', '.join(PARTS)}")
            if most < 0:
                raise InvalidInput(f"budgets.{name}", "must be 0 or more tokens")
        if not 0.0 <= asked.diversity <= 1.0:
            raise InvalidInput("diversity", "must be between 0 and 1; 0 is off")
        if len(asked.recent or ()) > MOST_RECENT:
            raise InvalidInput(
                "recent", f"has {len(asked.recent or ())} messages, at most {MOST_RECENT} are read"
            )
        named = next((name for name in ("scopes", "hierarchy") if getattr(asked, name) is not None), None)
        ids = [name for name in IDS if getattr(asked, name)]
        if named and ids:
            raise InvalidInput(
                ids[0], f"says where the conversation is and goes without `{named}`; name it there"
            )
