"""What a model is told before the conversation: instructions, what is remembered, what was said long ago."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect import prompts
from recollect.agent.history import Past
from recollect.agent.items import last_question, text_of
from recollect.agent.tools.base import Turn
from recollect.agent.tools.memory import acting, places
from recollect.agent.values import Item
from recollect.assemble import Assembled, Part, Piece, assemble, semantic_query
from recollect.errors import IndexUnavailable, InvalidInput
from recollect.memories import Memories
from recollect.models.base import Message, Source
from recollect.types import Hit

SUMMARIES = ("session_summary", "rollup")
"""Kinds of memories that tell of earlier sessions."""
HEADINGS: dict[Part, str] = {
    "memories": prompts.MEMORIES,
    "sessions": prompts.SESSIONS,
    "summary": prompts.SUMMARY,
}


@dataclass(slots=True)
class Remembered:
    """What was found in memory for a question."""

    hits: list[Hit] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)


async def remembered(turn: Turn, past: Past, new: Sequence[Item]) -> Remembered:
    """The memories that bear on what is asked, in the scopes of this conversation: one search, one embedding."""
    question = last_question(new)
    use, settings = turn.memory, turn.settings
    if not question or not (settings.memory if use.retrieval is None else use.retrieval):
        return Remembered()
    query = semantic_query(question, [text for item in past.items[-6:] if (text := _brief(item))])
    try:
        found = await Memories(turn.core, acting(turn)).search(
            query[: turn.core.max_query_chars],
            hierarchy=places(turn),
            kinds=use.kinds,  # type: ignore[arg-type]
            limit=use.max_results or settings.memory_results,
            threshold=settings.memory_min_score if use.min_score is None else use.min_score,
        )
    except IndexUnavailable:
        return Remembered(degraded=["memory"])
    except InvalidInput as exc:
        raise InvalidInput(f"memory.{exc.field}", str(exc).partition(": ")[2]) from exc
    return Remembered(found.results, found.degraded)


def _brief(item: Item) -> str:
    return text_of(item) if item["type"] == "message" and item["role"] in ("user", "assistant") else ""


@dataclass(slots=True)
class Told:
    """What goes before the conversation, and of what it is made."""

    messages: list[Message]
    assembled: Assembled
    sources: list[Source]

    def report(self, found: Remembered) -> dict[str, Any]:
        """What of memory was found and what of it the model is told, for the response's extension."""
        used = {placed.piece.id for placed in self.assembled.placed}
        return {
            "retrieved": [
                {
                    "id": hit.memory.id,
                    "kind": hit.memory.kind,
                    "score": hit.score,
                    "similarity": hit.similarity,
                    "used": hit.memory.id in used,
                }
                for hit in found.hits
            ],
            "tokens": sum(self.assembled.tokens.get(part, 0) for part in ("memories", "sessions")),
        }


def told(turn: Turn, instructions: str | None, past: Past, found: Remembered, total: int) -> Told:
    """The system messages: instructions first and whole, then what is remembered within its budget, then the summary of
    what was said long ago."""
    pieces = [_piece(hit) for hit in found.hits]
    if past.summary is not None:
        pieces.append(Piece(part="summary", text=past.summary.summary, id=past.summary.summarized_up_to))
    tokens = turn.settings.memory_tokens
    made = assemble(
        pieces,
        total=total,
        budgets={"memories": tokens, "sessions": tokens},
        count=turn.count,
        headings=HEADINGS,
    )
    texts = [text for text in (instructions, *made.texts.values()) if text]
    messages: list[Message] = [{"role": "system", "content": "\n\n".join(texts)}] if texts else []
    used = {placed.piece.id for placed in made.placed}
    sources = [_source(hit) for hit in found.hits if hit.memory.id in used]
    return Told(messages, made, sources)


def _piece(hit: Hit) -> Piece:
    part: Part = "sessions" if hit.memory.kind in SUMMARIES else "memories"
    text = prompts.memory(hit.memory.content)
    scores = {} if hit.similarity is None else {"similarity": hit.similarity}
    return Piece(part=part, text=text, id=hit.memory.id, score=hit.score, scores=scores)


def _source(hit: Hit) -> Source:
    memory = hit.memory
    return Source(
        number=0, text=memory.content, title=memory.kind, kind="memory", id=memory.id, score=hit.score
    )
