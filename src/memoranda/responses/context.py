"""The messages around a conversation: instructions, the summary of earlier turns, and memories."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec

from memoranda.config.agent_sections import Model
from memoranda.contexts.assembly import Assembled, Piece, assemble
from memoranda.contexts.choosing import Chosen
from memoranda.contexts.composing import (
    HEADINGS,
    answered,
    evidence_of,
    missing,
    quotation,
    remembered_entries,
)
from memoranda.contexts.finding import ContextResults, Finding
from memoranda.contexts.result_text import since
from memoranda.contexts.values import ContextQuery, RecentMessage
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories
from memoranda.providers.chat.base import Message, Source
from memoranda.responses.history import Past
from memoranda.responses.messages import turns_of
from memoranda.responses.tools.base import Turn, acting, searched
from memoranda.responses.tools.memory import form_of, of_agent, title_of
from memoranda.responses.values import Item, last_question, text_of
from memoranda.store.retrieval.evidence import Evidence
from memoranda.store.rows import memory_speaker
from memoranda.text import prompts
from memoranda.text.prompts import quoted
from memoranda.text.regex import regex
from memoranda.text.sentences import may_only_ask
from memoranda.text.terms import query_terms, term_set
from memoranda.types import Hit, Memory

SPEAKERS = ("user", "assistant")
LESS = 0.1
"""How much less similar to the question a newer memory may be that is quoted before an older one."""
REPLY = timedelta(hours=1)
"""A reply comes within this time."""
_QUESTION_WORD = regex(
    r"\W*(?:who|whom|whose|what|when|where|why|how|which|wer|wen|wem|wie|wo|was|wann|warum|welche\w*)\b",
    re.IGNORECASE,
)


class Remembered(msgspec.Struct):
    """Memories and session summaries for a question, and what was said before it; `snippet` is how many characters of a
    summary are shown."""

    question: str = ""
    found: ContextResults = msgspec.field(default_factory=lambda: ContextResults(""))
    said: list[RecentMessage] = []
    snippet: int = 0

    @property
    def hits(self) -> list[Hit]:
        """The memories and summaries, best first."""
        return [candidate.hit for candidate in _ranked(self.found)]

    @property
    def degraded(self) -> list[str]:
        """The indexes that could not answer in full."""
        return sorted(self.found.degraded)


async def remembered(turn: Turn, past: Past, new: Sequence[Item]) -> Remembered:
    """Retrieve memories for the last question in the scopes of this conversation, without those that the history
    shows: one search, one embedding."""
    question = last_question(new, past.items)[: turn.core.max_query_chars]
    use, settings = turn.memory, turn.settings
    if not question or not (settings.memory if use.retrieval is None else use.retrieval):
        return Remembered()
    asked = ContextQuery(
        query=question,
        recent=_said(_before_question(past.items, new)),
        summary=None if past.summary is None else past.summary.summary,
        exclude=[item["id"] for item in (*past.items, *new) if item.get("id")],
        **searched(turn),
        filters=of_agent(turn),
        kinds=use.kinds,
        limit=use.max_results or settings.memory_results,
        threshold=settings.memory_min_score if use.min_score is None else use.min_score,
    )
    try:
        retrieved = await Finding(turn.core, acting(turn)).find(asked, together=True)
    except InvalidInput as exc:
        raise InvalidInput(f"memory.{exc.field}", str(exc).partition(": ")[2]) from exc
    return Remembered(question, retrieved, asked.recent or [], turn.core.config.sessions.snippet_chars)


def _ranked(found: ContextResults) -> list[Chosen]:
    """Return the memories and summaries, best first."""
    return sorted(found.candidates, key=lambda candidate: -candidate.ranking.score)


def _replies(question: str, hits: Sequence[Hit]) -> dict[str, Memory]:
    """Return the messages that only ask, with half of the words of a question, by the id of the message that replies:
    the next of the session among the results, by another speaker, within an hour. A message without a question word
    ("can you bring the key to room 12?") may have one other word."""
    wanted = frozenset(query_terms(question))
    messages = [hit.memory for hit in hits if hit.memory.kind == "message" and hit.memory.session_id]
    messages.sort(key=lambda message: (message.session_id or "", message.occurred_at, message.id))
    return {
        reply.id: asking
        for asking, reply in pairwise(messages)
        if asking.session_id == reply.session_id
        and memory_speaker(asking) != memory_speaker(reply)
        and reply.occurred_at - asking.occurred_at <= REPLY
        and 2 * len(wanted & term_set(asking.content)) >= len(wanted) > 0
        and (_QUESTION_WORD.match(asking.content) or len(term_set(asking.content) - wanted) <= 1)
        and may_only_ask(asking.content)
    }


def _before_question(past: Sequence[Item], new: Sequence[Item]) -> list[Item]:
    """The items before the turn of the last question."""
    asked = new if last_question(new) else [*past, *new]
    before = [item for some in turns_of(asked)[:-1] for item in some]
    return [*past, *before] if asked is new else before


def _said(items: Sequence[Item]) -> list[RecentMessage]:
    """The text messages of users and assistants among the items."""
    return [
        RecentMessage(role=item["role"], content=text, id=item.get("id"))
        for item in items
        if item["type"] == "message" and item["role"] in SPEAKERS and (text := text_of(item))
    ]


class Prompt(msgspec.Struct):
    """The messages around a conversation, and their parts: those before it, and the one before its last question, which
    quotes what was retrieved. `used` are the ids of the memories in them, `shown` these memories, `evidence` says
    whether they answer the question (None: there are none)."""

    before: list[Message]
    quoted: list[Message]
    shown: list[Chosen]
    assembled: Assembled
    sources: list[Source]
    used: list[str]
    evidence: Evidence | None

    @property
    def messages(self) -> list[Message]:
        """All of them."""
        return [*self.before, *self.quoted]

    def around(self, conversation: Sequence[Message]) -> list[Message]:
        """Return a conversation with these messages: what is quoted stands before the last message of the user, so that
        the messages before that stay the same from turn to turn."""
        users = [at for at, message in enumerate(conversation) if message["role"] == "user"]
        at = users[-1] if users else len(conversation)
        return [*self.before, *conversation[:at], *self.quoted, *conversation[at:]]

    def report(self, retrieved: Remembered) -> dict[str, Any]:
        """The retrieved memories, and which of them the model reads, for the response's extension."""
        return {
            "retrieved": [
                {
                    "id": hit.memory.id,
                    "kind": hit.memory.kind,
                    "score": hit.score,
                    "similarity": hit.similarity,
                    "used": hit.memory.id in self.used,
                }
                for hit in retrieved.hits
            ],
            "tokens": sum(self.assembled.tokens.get(part, 0) for part in ("system", "memories", "sessions")),
        }


def prompt(turn: Turn, instructions: str | None, past: Past, retrieved: Remembered, model: Model) -> Prompt:
    """The messages around the conversation: the complete instructions and the user's standing ones; the summary of
    earlier turns; the memories within their budget. If neither the memories nor the conversation are likely to answer
    the question, the instructions say so. What is quoted has the role that the settings of the model name."""
    context = retrieved.found
    entries = remembered_entries(
        retrieved.question, context, context.memories, marks=False, snippet=retrieved.snippet
    )
    pieces = [entry.piece for entry in entries]
    if past.summary is not None:
        summary = quoted(past.summary.summary)
        pieces.append(Piece(part="summary", text=summary, id=past.summary.summarized_up_to))
    tokens = turn.settings.memory_tokens
    doubt = prompts.unremembered(missing(retrieved.question, entries, retrieved.said))
    assembled = assemble(
        pieces,
        total=model.context_tokens - turn.count(f"\n\n{doubt}\n\n{prompts.QUOTED}\n\n{prompts.QUOTED}"),
        budgets={"system": tokens, "memories": tokens, "sessions": tokens},
        count=turn.count,
        headings=HEADINGS,
    )
    placed = {id(placement.piece) for placement in assembled.placed}
    shown = [entry for entry in entries if id(entry.piece) in placed]
    evidence = evidence_of(retrieved.question, shown, context) if shown else None
    unsaid = evidence is None or evidence.level != "none" or answered(retrieved.question, retrieved.said)
    texts = assembled.texts
    rules = "\n\n".join(filter(None, [instructions, texts.get("system"), "" if unsaid else doubt]))
    summary_text = quotation([texts[part] for part in ("summary",) if part in texts])
    memory_text = quotation([texts[part] for part in ("memories", "sessions") if part in texts])
    before: list[Message] = [
        {"role": role, "content": text}
        for role, text in (("system", rules), (model.context_role, summary_text))
        if text
    ]
    quotes: list[Message] = [{"role": model.context_role, "content": memory_text}] if memory_text else []
    used = [hit.memory.id for entry in shown for hit in entry.found]
    replaced = {
        one.memory.id: (one.ended.successor, one.memory.content)
        for entry in shown
        for one in entry.found
        if one.ended and one.ended.successor in used
    }
    newer = _newer([one for entry in shown for one in entry.found])
    asked = frozenset(query_terms(retrieved.question))
    hits: dict[str, Hit] = {}
    for hit in retrieved.hits:
        if hit.memory.id in used:
            latest = newer.get(hit.memory.id, hit)
            hits.setdefault(latest.memory.id, latest)
            if latest.score > hit.score and asked & term_set(hit.memory.content) <= term_set(
                latest.memory.content
            ):
                replaced.setdefault(hit.memory.id, (latest.memory.id, hit.memory.content))
            hits.setdefault(hit.memory.id, hit)
    about: dict[str, str] = {}
    for successor, ended in replaced.values():
        about[successor] = f"{about[successor]}\n\n{ended}" if successor in about else ended
    replies = _replies(retrieved.question, retrieved.hits)
    ranked = dict.fromkeys(replaced[id_][0] if id_ in replaced else id_ for id_ in hits)
    sources = [_source(hits[id_], about.get(id_, ""), replies.get(id_)) for id_ in ranked]
    found = [one for entry in shown for one in entry.found]
    return Prompt(before, quotes, found, assembled, sources, used, evidence)


async def count_used(turn: Turn, extension: dict[str, Any]) -> None:
    """Counts an access for the memories that a response's extension marks as used."""
    used = [memory["id"] for memory in extension.get("retrieved", ()) if memory["used"]]
    if used:
        await Memories(turn.core, acting(turn)).count_access(used)


def _newer(shown: Sequence[Chosen]) -> dict[str, Hit]:
    """Return the newest memory about the same thing that is about as similar to the question, by the ids of older ones:
    an answer quotes it first."""
    by_id = {one.memory.id: one for one in shown}
    return {
        id_: one.hit
        for one in sorted(shown, key=lambda one: since(one.memory))
        for id_ in one.older
        if id_ in by_id and (one.hit.similarity or 0.0) >= (by_id[id_].hit.similarity or 0.0) - LESS
    }


def _source(hit: Hit, about: str, question: Memory | None) -> Source:
    memory = hit.memory
    return Source(
        number=0,
        text=memory.content,
        title=title_of(memory),
        kind="memory",
        id=memory.id,
        score=hit.score,
        about=about,
        question="" if question is None else question.content,
        form=form_of(memory),
    )
