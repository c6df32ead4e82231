"""What a model is told before the conversation: instructions, what is remembered, what was said long ago."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memoranda.contexts.assembly import Assembled, Piece, assemble
from memoranda.contexts.composing import HEADINGS, evidence_of, remembered_entries
from memoranda.contexts.finding import Finding, Found
from memoranda.contexts.values import ContextQuery, Said
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories
from memoranda.providers.chat.base import Message, Source
from memoranda.responses.history import Past
from memoranda.responses.items import last_question, text_of
from memoranda.responses.tools.base import Turn
from memoranda.responses.tools.memory import acting, places
from memoranda.responses.turns import turns_of
from memoranda.responses.values import Item
from memoranda.store.retrieval.evidence import Evidence
from memoranda.text import prompts
from memoranda.types import Hit

SPEAKERS = ("user", "assistant")


@dataclass(slots=True)
class Remembered:
    """What was found in memory for a question; `snippet` is how many characters of a session's summary are told."""

    question: str = ""
    found: Found = field(default_factory=lambda: Found(""))
    snippet: int = 0

    @property
    def hits(self) -> list[Hit]:
        """The memories and summaries, best first."""
        return sorted(self.found.hits, key=lambda hit: -hit.score)

    @property
    def degraded(self) -> list[str]:
        """The sides that could not answer in full."""
        return sorted(self.found.degraded)


async def remembered(turn: Turn, past: Past, new: Sequence[Item]) -> Remembered:
    """The memories that bear on what is asked, in the scopes of this conversation, but for those that the history
    shows: one search, one embedding."""
    question = last_question(new)
    use, settings = turn.memory, turn.settings
    if not question or not (settings.memory if use.retrieval is None else use.retrieval):
        return Remembered()
    asked = ContextQuery(
        query=question,
        recent=_said([*past.items, *(item for some in turns_of(new)[:-1] for item in some)]),
        exclude=[item["id"] for item in (*past.items, *new) if item.get("id")],
        hierarchy=places(turn),
        kinds=use.kinds,
        limit=use.max_results or settings.memory_results,
        threshold=settings.memory_min_score if use.min_score is None else use.min_score,
    )
    try:
        found = await Finding(turn.core, acting(turn)).find(asked, together=True)
    except InvalidInput as exc:
        raise InvalidInput(f"memory.{exc.field}", str(exc).partition(": ")[2]) from exc
    return Remembered(question, found, turn.core.config.sessions.snippet_chars)


def _said(items: Sequence[Item]) -> list[Said]:
    """What was said before, as far as it is text."""
    return [
        Said(role=item["role"], content=text, id=item.get("id"))
        for item in items
        if item["type"] == "message" and item["role"] in SPEAKERS and (text := text_of(item))
    ]


@dataclass(slots=True)
class Told:
    """What goes before the conversation, and of what it is made. `used` are the ids of the memories in it, `evidence`
    says whether they answer (None: there are none)."""

    messages: list[Message]
    assembled: Assembled
    sources: list[Source]
    used: list[str]
    evidence: Evidence | None

    def report(self, found: Remembered) -> dict[str, Any]:
        """What of memory was found and what of it the model is told, for the response's extension."""
        return {
            "retrieved": [
                {
                    "id": hit.memory.id,
                    "kind": hit.memory.kind,
                    "score": hit.score,
                    "similarity": hit.similarity,
                    "used": hit.memory.id in self.used,
                }
                for hit in found.hits
            ],
            "tokens": sum(self.assembled.tokens.get(part, 0) for part in ("memories", "sessions")),
        }


def told(turn: Turn, instructions: str | None, past: Past, found: Remembered, total: int) -> Told:
    """The system messages: instructions first and whole, then what is remembered within its budget, then the summary of
    what was said long ago. Where the memories are not likely to answer the question, this is said."""
    held = found.found
    entries = remembered_entries(held.memories, held.sessions, marks=False, snippet=found.snippet)
    pieces = [entry.piece for entry in entries]
    if past.summary is not None:
        pieces.append(Piece(part="summary", text=past.summary.summary, id=past.summary.summarized_up_to))
    tokens = turn.settings.memory_tokens
    made = assemble(
        pieces,
        total=total - turn.count(f"\n\n{prompts.UNREMEMBERED}"),
        budgets={"memories": tokens, "sessions": tokens},
        count=turn.count,
        headings=HEADINGS,
    )
    placed = {id(one.piece) for one in made.placed}
    shown = [entry for entry in entries if id(entry.piece) in placed]
    evidence = evidence_of(found.question, shown) if shown else None
    texts = [text for text in (instructions, *made.texts.values()) if text]
    if evidence is not None and evidence.level == "none":
        texts.append(prompts.UNREMEMBERED)
    messages: list[Message] = [{"role": "system", "content": "\n\n".join(texts)}] if texts else []
    used = [one.memory.id for entry in shown for one in entry.found]
    sources = [_source(hit) for hit in found.hits if hit.memory.id in used]
    return Told(messages, made, sources, used, evidence)


async def count_used(turn: Turn, extension: dict[str, Any]) -> None:
    """Counts the memories that a response's extension says were told as used."""
    used = [one["id"] for one in extension.get("retrieved", ()) if one["used"]]
    if used:
        await Memories(turn.core, acting(turn)).count_access(used)


def _source(hit: Hit) -> Source:
    memory = hit.memory
    return Source(
        number=0, text=memory.content, title=memory.kind, kind="memory", id=memory.id, score=hit.score
    )
