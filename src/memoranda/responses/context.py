"""The system messages before a conversation: instructions, memories, and the summary of earlier turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memoranda.contexts.assembly import Assembled, Piece, assemble
from memoranda.contexts.composing import HEADINGS, evidence_in, evidence_of, remembered_entries
from memoranda.contexts.finding import Finding, Found, limit_of
from memoranda.contexts.values import ContextQuery, Said
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories
from memoranda.providers.chat.base import Message, Source
from memoranda.responses.history import Past
from memoranda.responses.items import last_question, text_of
from memoranda.responses.tools.base import Turn
from memoranda.responses.tools.memory import NEAREST, acting, places
from memoranda.responses.turns import turns_of
from memoranda.responses.values import Item
from memoranda.store.retrieval.evidence import Evidence
from memoranda.text import prompts
from memoranda.text.instructions import is_standing
from memoranda.types import Hit

SPEAKERS = ("user", "assistant")


class Remembered(msgspec.Struct):
    """Memories and session summaries for a question; `snippet` is how many characters of a summary are shown."""

    question: str = ""
    found: Found = msgspec.field(default_factory=lambda: Found(""))
    snippet: int = 0

    @property
    def hits(self) -> list[Hit]:
        """The memories and summaries, best first."""
        return sorted(self.found.hits, key=lambda hit: -hit.score)

    @property
    def degraded(self) -> list[str]:
        """The indexes that could not answer in full."""
        return sorted(self.found.degraded)


async def remembered(turn: Turn, past: Past, new: Sequence[Item]) -> Remembered:
    """Retrieve memories for the last question in the scopes of this conversation, without those that the history
    shows: one search, one embedding."""
    question = last_question(new, past.items)
    use, settings = turn.memory, turn.settings
    if not question or not (settings.memory if use.retrieval is None else use.retrieval):
        return Remembered()
    asked = ContextQuery(
        query=question,
        recent=_said(_before_question(past.items, new)),
        exclude=[item["id"] for item in (*past.items, *new) if item.get("id")],
        hierarchy=places(turn),
        kinds=use.kinds,
        limit=use.max_results or settings.memory_results,
        threshold=settings.memory_min_score if use.min_score is None else use.min_score,
    )
    finding = Finding(turn.core, acting(turn))
    try:
        retrieved = await finding.find(asked, together=True)
        # a long note about several things may answer, and be below the configured floor
        if use.min_score is None and all(is_standing(hit.memory) for hit in retrieved.hits):
            least = msgspec.structs.replace(asked, threshold=0.0, limit=min(NEAREST, limit_of(asked)))
            nearest = await finding.find(least, together=True)
            if evidence_in(question, nearest).level == "strong":
                retrieved = nearest
    except InvalidInput as exc:
        raise InvalidInput(f"memory.{exc.field}", str(exc).partition(": ")[2]) from exc
    return Remembered(question, retrieved, turn.core.config.sessions.snippet_chars)


def _before_question(past: Sequence[Item], new: Sequence[Item]) -> list[Item]:
    """The items before the turn of the last question."""
    asked = new if last_question(new) else [*past, *new]
    before = [item for some in turns_of(asked)[:-1] for item in some]
    return [*past, *before] if asked is new else before


def _said(items: Sequence[Item]) -> list[Said]:
    """The text messages of users and assistants among the items."""
    return [
        Said(role=item["role"], content=text, id=item.get("id"))
        for item in items
        if item["type"] == "message" and item["role"] in SPEAKERS and (text := text_of(item))
    ]


class SystemPrompt(msgspec.Struct):
    """The messages before the conversation, and their parts. `used` are the ids of the memories in them, `evidence`
    says whether they answer the question (None: there are none)."""

    messages: list[Message]
    assembled: Assembled
    sources: list[Source]
    used: list[str]
    evidence: Evidence | None

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
            "tokens": sum(self.assembled.tokens.get(part, 0) for part in ("memories", "sessions")),
        }


def system_prompt(
    turn: Turn, instructions: str | None, past: Past, retrieved: Remembered, total: int
) -> SystemPrompt:
    """The system messages: the complete instructions, then the memories within their budget, then the summary of
    earlier turns. If the memories are not likely to answer the question, the messages say so."""
    context = retrieved.found
    entries = remembered_entries(
        retrieved.question, context.memories, context.sessions, marks=False, snippet=retrieved.snippet
    )
    pieces = [entry.piece for entry in entries]
    if past.summary is not None:
        pieces.append(Piece(part="summary", text=past.summary.summary, id=past.summary.summarized_up_to))
    tokens = turn.settings.memory_tokens
    assembled = assemble(
        pieces,
        total=total - turn.count(f"\n\n{prompts.UNREMEMBERED}"),
        budgets={"memories": tokens, "sessions": tokens},
        count=turn.count,
        headings=HEADINGS,
    )
    placed = {id(placement.piece) for placement in assembled.placed}
    shown = [entry for entry in entries if id(entry.piece) in placed]
    evidence = evidence_of(retrieved.question, shown, context) if shown else None
    texts = [text for text in (instructions, *assembled.texts.values()) if text]
    if evidence is not None and evidence.level == "none":
        texts.append(prompts.UNREMEMBERED)
    messages: list[Message] = [{"role": "system", "content": "\n\n".join(texts)}] if texts else []
    used = [hit.memory.id for entry in shown for hit in entry.found]
    sources = [_source(hit) for hit in retrieved.hits if hit.memory.id in used]
    return SystemPrompt(messages, assembled, sources, used, evidence)


async def count_used(turn: Turn, extension: dict[str, Any]) -> None:
    """Counts an access for the memories that a response's extension marks as used."""
    used = [memory["id"] for memory in extension.get("retrieved", ()) if memory["used"]]
    if used:
        await Memories(turn.core, acting(turn)).count_access(used)


def _source(hit: Hit) -> Source:
    memory = hit.memory
    return Source(
        number=0, text=memory.content, title=memory.kind, kind="memory", id=memory.id, score=hit.score
    )
