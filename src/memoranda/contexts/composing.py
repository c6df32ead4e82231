"""Composes a prompt of search results: pieces in their places, each with its source. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from memoranda.contexts import result_text
from memoranda.contexts.assembly import (
    FOUND,
    PARTS,
    Assembled,
    Count,
    Part,
    Piece,
    Placed,
    assemble,
    once,
    outranked,
    summed,
)
from memoranda.contexts.choosing import Chosen, covered, left, plain
from memoranda.contexts.finding import ContextResults
from memoranda.contexts.neighbours import Window
from memoranda.contexts.values import (
    ChatMessage,
    Citation,
    Context,
    ContextPart,
    ContextPiece,
    ContextQuery,
    LeftOut,
    RecentMessage,
)
from memoranda.store.retrieval.evidence import LOOKED_AT, RELATED, Evidence, Result, evidence
from memoranda.store.rows import memory_speaker
from memoranda.text import prompts
from memoranda.text.instructions import is_standing
from memoranda.text.questions import uncovered
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
"""The shares of parts without a budget of their own in the tokens that the question and the rules leave."""
QUOTED: tuple[Part, ...] = ("documents", "memories", "sessions", "summary")
"""The parts that are quoted, and go to a chat model as one message."""
ELLIPSIS = "…"
TRIES = 5


class Entry(msgspec.Struct):
    """A piece, and its source."""

    piece: Piece
    kind: str
    citation: Citation | None = None
    explanation: Explanation | None = None
    said: RecentMessage | None = None
    found: list[Chosen] = msgspec.field(default_factory=list)


class Draft(msgspec.Struct):
    """Pieces in their places, and what is left out."""

    entries: list[Entry]
    assembled: Assembled
    left_out: list[LeftOut]

    def placed(self) -> list[tuple[Entry, Placed]]:
        """Return the pieces in the prompt, in order."""
        by_piece = {id(entry.piece): entry for entry in self.entries}
        return [(by_piece[id(item.piece)], item) for item in self.assembled.placed]

    def used(self) -> list[str]:
        """Return the ids of the memories in the prompt."""
        return [candidate.memory.id for entry, _ in self.placed() for candidate in entry.found]


def composed(
    asked: ContextQuery,
    results: ContextResults,
    count: Count,
    snippet: int,
    role: Literal["user", "system"] = "user",
) -> tuple[Context, list[str]]:
    """Return the context for a question from search results, at most `asked.budget` tokens as one text, and the ids of
    the memories in it. What is retrieved is quoted, and says so; a chat model gets it in a message with this `role`.
    If neither what was retrieved nor the recent messages are likely to answer, the context says that as well; where
    these sentences have no place beside the best retrieved piece, nothing retrieved is included. `snippet` is how many
    characters of a summary are used."""
    count = once(count)
    given, gone = _given(asked)
    base = [*given, *_documents(results)]
    frame = count(prompts.QUOTED) + 1
    draft = _beside(asked, results, base, frame, count, snippet)
    said = [entry.said for entry, _ in draft.placed() if entry.said is not None]
    shown = evidence_of(asked.query, [entry for entry, _ in draft.placed()], results)
    doubt = ""
    if shown.level == "none" and not answered(asked.query, said):
        doubt = _doubt(asked.query, draft, said)
        if doubt and _whole(_texts(draft, doubt), draft.assembled, count) > asked.budget:
            draft = _beside(asked, results, base, frame + count(doubt) + 2, count, snippet)
            doubt = _doubt(asked.query, draft, said)
    texts = _texts(draft, doubt)
    spent = _whole(texts, draft.assembled, count)
    context = Context(
        query=results.query,
        text="\n\n".join(texts),
        tokens=spent,
        messages=_messages(draft, doubt, role),
        parts={
            part: ContextPart(text=part_text, tokens=draft.assembled.tokens[part])
            for part, part_text in draft.assembled.texts.items()
        },
        pieces=[_shown(entry, placed, explain=asked.explain) for entry, placed in draft.placed()],
        left_out=[*gone, *results.left_out, *draft.left_out],
        sessions_retrieved=len(results.sessions),
        evidence=shown.level,
        evidence_probability=shown.probability,
        degraded=sorted(results.degraded),
        query_time=0.0,
    )
    return context, draft.used()


def _is_quoted(draft: Draft) -> bool:
    """Return True if a draft has a part that is quoted."""
    return not draft.assembled.texts.keys().isdisjoint(QUOTED)


def _beside(
    asked: ContextQuery,
    results: ContextResults,
    base: Sequence[Entry],
    reserved: int,
    count: Count,
    snippet: int,
) -> Draft:
    """Return the pieces in the budget beside `reserved` tokens for sentences about what is retrieved; without anything
    retrieved where no piece of it fits there."""
    if results.candidates or results.passages or asked.summary:
        draft = _fitted(asked, results, base, reserved, count, snippet)
        if _is_quoted(draft):
            return draft
    given_only = replace(asked, budgets={**asked.budgets, **dict.fromkeys(QUOTED, 0)})
    return _fitted(given_only, results, base, 0, count, snippet)


def _fitted(
    asked: ContextQuery,
    results: ContextResults,
    base: Sequence[Entry],
    reserved: int,
    count: Count,
    snippet: int,
) -> Draft:
    """Return the pieces in the budget, less the `reserved` tokens."""
    budget = most = asked.budget - reserved
    for _ in range(TRIES):
        draft = _draft(asked, results, base, budget, count, snippet)
        if (spent := _whole([*draft.assembled.texts.values()], draft.assembled, count)) <= most:
            break
        budget -= spent - most  # the separators between the parts
    return draft


def answered(question: str, said: Iterable[RecentMessage]) -> bool:
    """Return True if messages of users may answer a question."""
    texts = [Result(one.content, one.name, None) for one in said if one.role == "user"]
    return bool(texts) and evidence(question, texts[-LOOKED_AT:]).level != "none"


def missing(question: str, entries: Iterable[Entry], said: Iterable[RecentMessage]) -> list[str]:
    """Return the words of a question that none of the retrieved pieces and messages have."""
    texts = [entry.piece.text for entry in entries if entry.piece.part in FOUND]
    return uncovered(question, [*texts, *(one.content for one in said)])


def evidence_of(question: str, entries: Iterable[Entry], results: ContextResults) -> Evidence:
    """Return the evidence of the memories and summaries among some pieces of these results, or of the chunks, whichever
    is greater."""
    shown = list(entries)
    chunks = [_as_result(entry.piece) for entry in shown if entry.piece.part == "documents"]
    return max(
        _remembered_evidence(question, [candidate for entry in shown for candidate in entry.found], results),
        evidence(question, chunks),
        key=lambda item: item.probability,
    )


def _as_result(chunk: Piece) -> Result:
    similarity, relevance = chunk.scores.get("similarity"), chunk.scores.get("relevance")
    return Result(chunk.text, None, similarity, relevance, written=True)


def _remembered_evidence(question: str, found: Iterable[Chosen], results: ContextResults) -> Evidence:
    """Return the evidence of memories and summaries, and of those that they replace; standing instructions answer
    nothing."""
    memories = [candidate for candidate in found if not is_standing(candidate.memory)]
    memories.sort(key=lambda candidate: (candidate.weak, -candidate.score))
    texts = [
        Result(hit.memory.content, memory_speaker(hit.memory), hit.similarity, hit.relevance)
        for candidate in memories
        for hit in (candidate.hit, *candidate.replaces)
        if not is_standing(hit.memory)
    ]
    return evidence(question, texts, results.searched)


def _whole(texts: Sequence[str], assembled: Assembled, count: Count) -> int:
    """Return the tokens of these texts with the separators between them; those of parts are known."""
    known = {text: assembled.tokens[part] for part, text in assembled.texts.items()}
    return summed(texts, "\n\n", lambda text: known[text] if text in known else count(text))


def _doubt(question: str, draft: Draft, said: Sequence[RecentMessage]) -> str:
    """Return the sentence on what was retrieved, which probably does not answer; empty if nothing was."""
    if FOUND.isdisjoint(draft.assembled.texts):
        return ""
    words = missing(question, [entry for entry, _ in draft.placed()], said)
    sentence = prompts.unanswered if "documents" in draft.assembled.texts else prompts.unremembered
    return sentence(words)


def _texts(draft: Draft, doubt: str) -> list[str]:
    """Return the texts of the prompt in its order: the parts, with a sentence before those that are quoted, and `doubt`
    behind what was retrieved."""
    texts = draft.assembled.texts
    parts = [part for part in PARTS if part in texts]
    first = next((part for part in parts if part in QUOTED), None)
    last = next((part for part in reversed(parts) if part in FOUND), None)
    ordered: list[str] = []
    for part in parts:
        ordered += [prompts.QUOTED] if part == first else []
        ordered.append(texts[part])
        ordered += [doubt] if doubt and part == last else []
    return ordered


def _draft(
    asked: ContextQuery,
    results: ContextResults,
    base: Sequence[Entry],
    budget: int,
    count: Count,
    snippet: int,
) -> Draft:
    """Return the pieces in at most `budget` tokens; a memory that a chunk in the prompt covers is left out."""
    memories, gone = results.memories, list[LeftOut]()
    while True:
        remembered = remembered_entries(results.query, results, memories, marks=asked.marks, snippet=snippet)
        entries = [*base, *remembered]
        assembled = _assembled(asked, entries, budget, count)
        if not (asked.distinct and results.passages and memories):
            break
        memories, over = _uncovered(memories, assembled.placed)
        if not over:
            break
        gone += over
    placed = [placed_piece.piece for placed_piece in assembled.placed]
    by_piece = {id(entry.piece): entry for entry in entries}
    return Draft(
        entries, assembled, gone + [_out(by_piece[id(piece)], placed) for piece in assembled.left_out]
    )


def _assembled(asked: ContextQuery, entries: Sequence[Entry], budget: int, count: Count) -> Assembled:
    return assemble(
        [entry.piece for entry in entries],
        total=budget,
        budgets=asked.budgets,  # type: ignore[arg-type]
        shares=SHARES,
        count=count,
        headings=HEADINGS,
        ellipsis=ELLIPSIS,
    )


# --- pieces ----------------------------------------------------------------------------------------


def _given(asked: ContextQuery) -> tuple[list[Entry], list[LeftOut]]:
    """Return the pieces of the caller: rules, the running summary, recent messages, the question. A last message that
    repeats the question is left out."""
    texts: list[tuple[Part, str | None]] = [
        ("system", asked.system), ("summary", asked.summary), ("question", asked.query),
    ]  # fmt: skip
    entries = [
        Entry(Piece(part=part, text=text.strip(), id=part, score=float(part == "system")), part)
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


def _documents(results: ContextResults) -> list[Entry]:
    """Return the chunks as entries, those that nothing relates to the question last."""
    entries = []
    for at, passage in enumerate(results.passages):
        known = {"similarity": passage.similarity, "relevance": passage.relevance}
        scores = {name: value for name, value in known.items() if value is not None}
        piece = Piece(
            part="documents",
            text=result_text.chunk_text(passage),
            id=passage.chunk_id,
            score=passage.score,
            scores=scores | {"rank": at + 1},
            weak=passage.relevance is not None and passage.relevance < RELATED,
        )
        entries.append(Entry(piece, "chunk", result_text.chunk_citation(passage), passage.explanation))
    return sorted(entries, key=lambda entry: entry.piece.weak)


def remembered_entries(
    question: str, found: ContextResults, memories: Sequence[Window], *, marks: bool, snippet: int
) -> list[Entry]:
    """Return the memories and the summaries in the results as pieces, numbered in this order if they have marks. A long
    memory is shown where it has most words of the question. Standing instructions are no quotations: they go to the
    rules."""
    entries: list[Entry] = []
    numbers = iter(range(1, len(memories) + len(found.sessions) + 1))
    for window in memories:
        best = window.found[0]
        part: Part = "system" if is_standing(best.memory) else "memories"
        mark = f"[{next(numbers)}]" if marks and part == "memories" else None
        cited = result_text.memory_citation(best.memory, mark, window.ids, found.user)
        entries.append(
            _entry(part, best, result_text.listed(window.texts(question), mark), cited, window.found)
        )
    for session in found.sessions:
        mark = f"[{next(numbers)}]" if marks else None
        text = result_text.listed([result_text.session_text(session.memory, snippet)], mark)
        entries.append(
            _entry(
                "sessions",
                session,
                text,
                result_text.session_citation(session.memory, mark, found.user),
                [session],
            )
        )
    return entries


def _entry(part: Part, best: Chosen, text: str, cited: Citation, memories: list[Chosen]) -> Entry:
    piece = Piece(
        part=part,
        text=text,
        id=best.memory.id,
        score=best.score,
        scores=best.scores,
        weak=best.weak,
        standing=is_standing(best.memory),
    )
    return Entry(piece, best.memory.kind, cited, best.hit.explanation, found=list(memories))


def _uncovered(memories: Sequence[Window], placed: Iterable[Placed]) -> tuple[list[Window], list[LeftOut]]:
    """Return the memories that no complete chunk in the prompt covers, and the others."""
    texts = {
        item.piece.id: item.text.partition("\n")[2]
        for item in placed
        if item.piece.part == "documents" and not item.cut
    }
    chunks = {id_: (text, frozenset(terms(text))) for id_, text in texts.items()}
    remaining, gone = [], []
    for window in memories:
        over = None if window.lines else covered(window.found[0], chunks)
        if over is None:
            remaining.append(window)
        else:
            gone.append(left(window.found[0], "covered", over))
    return remaining, gone


def quotation(texts: Sequence[str]) -> str:
    """Return retrieved texts under the sentence that they are no instructions; empty without any."""
    return "\n\n".join([prompts.QUOTED, *texts]) if texts else ""


# --- what is shown ---------------------------------------------------------------------------------


def _out(entry: Entry, placed: Sequence[Piece]) -> LeftOut:
    piece = entry.piece
    why: Literal["floor", "budget"] = "floor" if outranked(piece, placed) else "budget"
    return LeftOut(part=piece.part, id=piece.id, kind=entry.kind, why=why, score=piece.score)


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


def _messages(draft: Draft, doubt: str, role: Literal["user", "system"]) -> list[ChatMessage]:
    """Return the texts of the parts as messages: rules, what is quoted in this role, recent messages, the question."""
    texts = draft.assembled.texts
    rules = "\n\n".join(text for text in (texts.get("system"), doubt) if text)
    quoted = quotation([texts[part] for part in QUOTED if part in texts])
    messages = [ChatMessage(role="system", content=rules)] if rules else []
    messages += [ChatMessage(role=role, content=quoted)] if quoted else []
    for entry, placed in draft.placed():
        if (said := entry.said) is not None:
            before = "" if said.name else f"{said.role}: "
            messages.append(ChatMessage(role=said.role, content=placed.text[len(before) :]))
    if "question" in texts:
        messages.append(ChatMessage(role="user", content=texts["question"]))
    return messages
