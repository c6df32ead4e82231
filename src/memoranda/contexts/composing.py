"""From what was found to a prompt: pieces in their places, each with where it is from. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memoranda.contexts import telling
from memoranda.contexts.assembly import Assembled, Count, Part, Piece, Placed, assemble, once, summed
from memoranda.contexts.choosing import Chosen, covered, left, plain
from memoranda.contexts.finding import Found
from memoranda.contexts.neighbours import Window
from memoranda.contexts.values import (
    ChatMessage,
    Citation,
    Context,
    ContextPart,
    ContextPiece,
    ContextQuery,
    LeftOut,
    Said,
)
from memoranda.store.retrieval.evidence import Evidence, Result, evidence
from memoranda.store.rows import memory_speaker
from memoranda.text import prompts
from memoranda.text.instructions import is_standing
from memoranda.text.terms import terms
from memoranda.types import Explanation

HEADINGS: dict[Part, str] = {
    "documents": prompts.DOCUMENTS,
    "memories": prompts.MEMORIES,
    "sessions": prompts.SESSIONS,
    "summary": prompts.SUMMARY,
    "recent": prompts.RECENT,
}
SHARES: dict[Part, float] = {
    "summary": 1.0,
    "recent": 3.0,
    "documents": 4.0,
    "memories": 3.0,
    "sessions": 1.5,
}
"""How parts without a budget of their own share what the question and the rules leave."""
CONTEXT: tuple[Part, ...] = ("documents", "memories", "sessions", "summary")
"""The parts that are told to a chat model as one message."""
ELLIPSIS = "…"
TRIES = 5


@dataclass(slots=True)
class Entry:
    """A piece, and where it is from."""

    piece: Piece
    kind: str
    citation: Citation | None = None
    explanation: Explanation | None = None
    said: Said | None = None
    found: list[Chosen] = field(default_factory=list)


@dataclass(slots=True)
class Draft:
    """Pieces in their places: what is told, and what is not."""

    entries: list[Entry]
    assembled: Assembled
    left_out: list[LeftOut]

    def placed(self) -> list[tuple[Entry, Placed]]:
        """What is told, in order."""
        by_piece = {id(entry.piece): entry for entry in self.entries}
        return [(by_piece[id(one.piece)], one) for one in self.assembled.placed]

    def used(self) -> list[str]:
        """The ids of the memories that are told."""
        return [one.memory.id for entry, _ in self.placed() for one in entry.found]


def composed(asked: ContextQuery, found: Found, count: Count, snippet: int) -> tuple[Context, list[str]]:
    """The context for a question, of what was found: at most `asked.budget` tokens as one text; and the ids of the
    memories in it. `snippet` is how many characters of a summary are told."""
    count = once(count)
    given, gone = _given(asked)
    base = [*given, *_documents(found)]
    room = asked.budget
    for _ in range(TRIES):
        draft = _draft(asked, found, base, room, count, snippet)
        text = "\n\n".join(draft.assembled.texts.values())
        if (spent := _whole(draft.assembled, count)) <= asked.budget:
            break
        room -= spent - asked.budget  # what stands between the parts
    shown = evidence_of(asked.query, [entry for entry, _ in draft.placed()])
    context = Context(
        query=found.query,
        text=text,
        tokens=spent,
        messages=_messages(draft),
        parts={
            part: ContextPart(text=held, tokens=draft.assembled.tokens[part])
            for part, held in draft.assembled.texts.items()
        },
        pieces=[_shown(entry, placed, explain=asked.explain) for entry, placed in draft.placed()],
        left_out=[*gone, *found.left_out, *draft.left_out],
        sessions_retrieved=len(found.sessions),
        evidence=shown.level,
        evidence_probability=shown.probability,
        degraded=sorted(found.degraded),
        query_time=0.0,
    )
    return context, draft.used()


def evidence_of(question: str, entries: Iterable[Entry]) -> Evidence:
    """Return the evidence of the memories and summaries among some pieces, or of the chunks, whichever is greater."""
    told = list(entries)
    memories = [one for entry in told for one in entry.found if not is_standing(one.memory)]
    memories.sort(key=lambda one: (one.weak, -one.score))
    remembered = [
        Result(one.memory.content, memory_speaker(one.memory), one.hit.similarity) for one in memories
    ]
    chunks = [
        Result(entry.piece.text, None, entry.piece.scores.get("similarity"))
        for entry in told
        if entry.piece.part == "documents"
    ]
    return max(evidence(question, remembered), evidence(question, chunks), key=lambda one: one.probability)


def _whole(made: Assembled, count: Count) -> int:
    """The tokens of all parts with what stands between them."""
    known = {text: made.tokens[part] for part, text in made.texts.items()}
    return summed(
        list(made.texts.values()), "\n\n", lambda text: known[text] if text in known else count(text)
    )


def _draft(
    asked: ContextQuery, found: Found, base: Sequence[Entry], room: int, count: Count, snippet: int
) -> Draft:
    """The pieces in at most `room` tokens; what the chunks say that are told is no longer told as a memory."""
    memories, gone = found.memories, list[LeftOut]()
    entries = [*base, *remembered_entries(memories, found.sessions, marks=asked.marks, snippet=snippet)]
    made = _assembled(asked, entries, room, count)
    if asked.distinct and found.passages and memories:
        memories, gone = _uncovered(memories, made.placed)
        if gone:
            entries = [
                *base,
                *remembered_entries(memories, found.sessions, marks=asked.marks, snippet=snippet),
            ]
            made = _assembled(asked, entries, room, count)
    by_piece = {id(entry.piece): entry for entry in entries}
    return Draft(entries, made, gone + [_over(by_piece[id(piece)]) for piece in made.left_out])


def _assembled(asked: ContextQuery, entries: Sequence[Entry], room: int, count: Count) -> Assembled:
    return assemble(
        [entry.piece for entry in entries],
        total=room,
        budgets=asked.budgets,  # type: ignore[arg-type]
        shares=SHARES,
        count=count,
        headings=HEADINGS,
        ellipsis=ELLIPSIS,
    )


# --- pieces ----------------------------------------------------------------------------------------


def _given(asked: ContextQuery) -> tuple[list[Entry], list[LeftOut]]:
    """What the caller gave: rules, the running summary, what was said last, the question. A last message that is the
    question is told once."""
    texts: list[tuple[Part, str | None]] = [
        ("system", asked.system), ("summary", asked.summary), ("question", asked.query),
    ]  # fmt: skip
    entries = [
        Entry(Piece(part=part, text=text.strip(), id=part), part)
        for part, text in texts
        if text and text.strip()
    ]
    gone = []
    recent = asked.recent or []
    for at, said in enumerate(recent):
        if at + 1 == len(recent) and said.role == "user" and plain(said.content) == plain(asked.query):
            again = LeftOut(part="recent", id=said.id or "", kind="message", why="duplicate", of="question")
            gone.append(again)
            continue
        text = f"{said.name or said.role}: {said.content}"
        piece = Piece(part="recent", text=text, id=said.id or "", score=float(at))
        entries.append(Entry(piece, "message", said=said))
    return entries, gone


def _documents(found: Found) -> list[Entry]:
    """The chunks that were found."""
    made = []
    for at, passage in enumerate(found.passages):
        scores = {} if passage.similarity is None else {"similarity": passage.similarity}
        piece = Piece(
            part="documents",
            text=telling.chunk_text(passage),
            id=passage.chunk_id,
            score=passage.score,
            scores=scores | {"rank": at + 1},
        )
        made.append(Entry(piece, "chunk", telling.chunk_citation(passage), passage.explanation))
    return made


def remembered_entries(
    memories: Sequence[Window], sessions: Sequence[Chosen], *, marks: bool, snippet: int
) -> list[Entry]:
    """The memories and summaries as pieces, numbered in this order where they carry marks."""
    made = []
    for number, window in enumerate(memories, 1):
        best, mark = window.found[0], f"[{number}]" if marks else None
        cited = telling.memory_citation(best.memory, mark, window.ids)
        made.append(_entry("memories", best, telling.listed(window.texts, mark), cited, window.found))
    for number, one in enumerate(sessions, len(memories) + 1):
        mark = f"[{number}]" if marks else None
        text = telling.listed([telling.session_text(one.memory, snippet)], mark)
        made.append(_entry("sessions", one, text, telling.session_citation(one.memory, mark), [one]))
    return made


def _entry(part: Part, one: Chosen, text: str, cited: Citation, found: list[Chosen]) -> Entry:
    piece = Piece(part=part, text=text, id=one.memory.id, score=one.score, scores=one.scores, weak=one.weak)
    return Entry(piece, one.memory.kind, cited, one.hit.explanation, found=list(found))


def _uncovered(memories: Sequence[Window], placed: Iterable[Placed]) -> tuple[list[Window], list[LeftOut]]:
    """The memories that no chunk says that is told whole."""
    texts = {
        one.piece.id: one.text.partition("\n")[2]
        for one in placed
        if one.piece.part == "documents" and not one.cut
    }
    chunks = {id_: (text, frozenset(terms(text))) for id_, text in texts.items()}
    kept, gone = [], []
    for window in memories:
        over = None if window.lines else covered(window.found[0], chunks)
        if over is None:
            kept.append(window)
        else:
            gone.append(left(window.found[0], "covered", over))
    return kept, gone


# --- what is shown ---------------------------------------------------------------------------------


def _over(entry: Entry) -> LeftOut:
    piece = entry.piece
    return LeftOut(part=piece.part, id=piece.id, kind=entry.kind, why="budget", score=piece.score)


def _shown(entry: Entry, placed: Placed, *, explain: bool) -> ContextPiece:
    piece = entry.piece
    return ContextPiece(
        part=piece.part,
        id=piece.id,
        kind=entry.kind,
        text=placed.text,
        tokens=placed.tokens,
        cut=placed.cut,
        score=piece.score,
        scores=piece.scores,
        citation=entry.citation,
        explanation=entry.explanation if explain else None,
    )


def _messages(draft: Draft) -> list[ChatMessage]:
    """The parts as messages: rules, context, what was said, the question."""
    texts = draft.assembled.texts
    context = "\n\n".join(texts[part] for part in CONTEXT if part in texts)
    made = [ChatMessage(role="system", content=text) for text in (texts.get("system"), context) if text]
    for entry, placed in draft.placed():
        if (said := entry.said) is not None:
            before = "" if said.name else f"{said.role}: "
            made.append(ChatMessage(role=said.role, content=placed.text[len(before) :]))
    if "question" in texts:
        made.append(ChatMessage(role="user", content=texts["question"]))
    return made
