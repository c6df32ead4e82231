"""Assembles a prompt from pieces: budgets, order, and the source of every piece. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import punctuation
from typing import Literal, get_args

import msgspec

from memoranda.text.highlights import is_boundary

Part = Literal["system", "documents", "memories", "sessions", "summary", "recent", "question"]
Count = Callable[[str], int]
"""The length of a text: in characters, in words, or in tokens of an encoding of `text.tokens`."""

PARTS: tuple[Part, ...] = get_args(Part)
"""The parts of a prompt, in the order in which they are read."""
FIRST: tuple[Part, ...] = ("question", "system", "documents", "memories", "sessions", "summary", "recent")
"""The parts in the order in which they take tokens if there are not enough for all."""
FOUND: frozenset[Part] = frozenset({"documents", "memories", "sessions"})
"""The parts retrieved for the question. The best piece of each is placed before the recent messages."""
UNBROKEN: frozenset[Part] = frozenset({"recent"})
"""The parts whose pieces are a sequence: from the first that does not fit, all are dropped."""
BETWEEN: dict[Part, str] = {"documents": "\n\n", "recent": "\n\n"}
"""Separators between the pieces of a part; a line break by default."""
JOINT: tuple[Part, Part] = ("memories", "sessions")
"""Two parts with one share: the second gets what the first leaves of it, and its best piece a `PLACE`."""
PLACE = 0.1
"""The most of what is left that the best summary of a session takes from memories."""
BRIEF_ENTRIES = 3
BRIEF_CHARS = 500


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A text for one part of a prompt. Of what does not fit, the lowest `score` goes first, and before that what is
    `weak`: it has a place only where all other pieces leave one, and never before a retrieved piece of a later part
    that is not weak. `standing` is an instruction, which is not retrieved. `id` and `scores` say where the text is
    from, and what its score is made of."""

    part: Part
    text: str
    id: str = ""
    score: float = 0.0
    scores: dict[str, float] = {}
    weak: bool = False
    standing: bool = False


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A piece as it stands in the prompt: `text` is the piece's, or, where it was `cut`, the beginning of it with the
    ellipsis asked for behind."""

    piece: Piece
    text: str
    tokens: int
    cut: bool = False


class Assembled(msgspec.Struct, kw_only=True):
    """A prompt. `placed` are the pieces in it, in its order, `left_out` those that are not. `texts` are the parts that
    are not empty, `tokens` what each of these has, heading and all; `total` is their sum."""

    placed: list[Placed]
    left_out: list[Piece]
    texts: dict[Part, str]
    tokens: dict[Part, int]
    total: int


def assemble(
    pieces: Sequence[Piece],
    *,
    total: int,
    budgets: Mapping[Part, int],
    count: Count,
    headings: Mapping[Part, str] | None = None,
    shares: Mapping[Part, float] | None = None,
    ellipsis: str = "",
) -> Assembled:
    """Return the prompt of these pieces in at most `total` tokens; a part gets at most `budgets[part]`, else its share
    of the rest, else the rest. `shares` are the relative weights of the parts; tokens that a part does not need are
    shared by the others in the same way. If there are both, memories and sessions have one share: summaries get what
    memories leave of it, uncut, and the best summary has a place if it takes, with its heading, at most a
    tenth of the rest. The best document and memory may exceed their share, up to half of the rest, as may the best
    summary if there are no memories. The final rest goes to the pieces that did not fit, and then to weak ones, both in
    the order of `FIRST`.

    A part keeps its best pieces in the order they were given in. A piece that does not fit leaves its tokens to smaller
    ones, except among recent messages, which have no gap. If not even the best piece fits (except a summary beside
    memories), its beginning is kept, cut at a character boundary, followed by `ellipsis`; that of a weak piece only if
    nothing else was retrieved. A heading precedes the pieces of its part, if there are any.
    """
    prompt = _Prompt(pieces, max(0, total), budgets, once(count), headings or {}, ellipsis)
    prompt.fill_shares(dict(shares or {}))
    prompt.fill_rest()
    prompt.fill_weak()
    return prompt.assembled()


class _Prompt:
    """A prompt while its parts are filled; `left` tokens are free."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        left: int,
        budgets: Mapping[Part, int],
        count: Count,
        headings: Mapping[Part, str],
        ellipsis: str,
    ) -> None:
        self.left = left
        self._pieces = pieces
        self._budgets = budgets
        self._count = count
        self._headings = headings
        self._ellipsis = ellipsis
        self._placed: dict[Part, list[Placed]] = {part: [] for part in FIRST}
        self._texts: dict[Part, str] = {}
        self._tokens: dict[Part, int] = {}
        self._parts = {part: [piece for piece in pieces if piece.part == part] for part in FIRST}
        self._strong = {part: [piece for piece in own if not piece.weak] for part, own in self._parts.items()}

    def fill_shares(self, weights: dict[Part, float]) -> None:
        """Fill each part with what fits into its share."""
        needs = {
            part: _need(own, self._count, self._heading(part), self._budgets.get(part))
            for part, own in self._strong.items()
            if own
        }
        best = {part: _best(self._strong[part], self._count, self._heading(part)) for part in FOUND}
        first, second = JOINT
        together, joint = all(part in weights and needs.get(part) for part in JOINT), 0
        if together:
            weights[first] += weights.pop(second)
            needs[first] += needs[second]
        for part in FIRST:
            share = _share(part, self.left, weights, needs)
            if together and part == first:
                joint = share
                share -= _place(self.left, needs[second], best[second])
            if together and part == second:
                self._fill(part, self._strong[part], max(0, joint - self._tokens.get(first, 0)), None)
                continue
            most = max(share, min(best[part], self.left // 2)) if part in FOUND else min(self.left, share)
            self._fill(part, self._strong[part], most, self._ellipsis)

    def fill_rest(self) -> None:
        """Give what is left to the pieces that did not fit."""
        for part in FIRST:
            if len(self._placed[part]) < len(self._strong[part]):
                self._fill(part, self._strong[part], self.left + self._tokens.get(part, 0), None)

    def fill_weak(self) -> None:
        """Give what is left to weak pieces."""
        for part in FIRST:
            retrieved = _retrieved(self._placed)
            own = [piece for piece in self._parts[part] if not outranked(piece, retrieved)]
            if len(own) > len(self._strong[part]):
                budget = self.left + self._tokens.get(part, 0)
                self._fill(part, own, budget, None if retrieved else self._ellipsis)

    def assembled(self) -> Assembled:
        """Return the prompt as it is."""
        placed = [placed_piece for part in PARTS for placed_piece in self._placed[part]]
        placed_ids = {id(placed_piece.piece) for placed_piece in placed}
        return Assembled(
            placed=placed,
            left_out=[piece for piece in self._pieces if id(piece) not in placed_ids],
            texts={part: self._texts[part] for part in PARTS if part in self._texts},
            tokens={part: self._tokens[part] for part in PARTS if part in self._tokens},
            total=sum(self._tokens.values()),
        )

    def _heading(self, part: Part) -> str:
        return self._headings.get(part, "")

    def _fill(self, part: Part, own: Sequence[Piece], budget: int, ellipsis: str | None) -> None:
        """Fill a part anew with the best of its pieces, unless none fits or its best piece is cut already."""
        if any(placed_piece.cut for placed_piece in self._placed[part]):
            return
        budget = min(budget, max(0, self._budgets.get(part, budget)))
        if fitted := _fill(own, budget, self._count, self._heading(part), ellipsis):
            own_texts = [placed_piece.text for placed_piece in fitted]
            self.left += self._tokens.get(part, 0)
            self._placed[part] = fitted
            self._texts[part] = _joined(part, own_texts, self._heading(part))
            self._tokens[part] = _tokens(part, own_texts, self._heading(part), self._count)
            self.left -= self._tokens[part]


def _retrieved(by_part: Mapping[Part, Sequence[Placed]]) -> list[Piece]:
    """Return the placed pieces that were retrieved for the question; standing instructions were not."""
    placed = [placed_piece.piece for part in FOUND for placed_piece in by_part[part]]
    return [piece for piece in placed if not piece.standing]


def outranked(piece: Piece, placed: Iterable[Piece]) -> bool:
    """Return True if a weak piece would stand before one of a later part in `FOUND` that is not weak."""
    at = PARTS.index(piece.part)
    return piece.weak and any(
        not other.weak and not other.standing and other.part in FOUND and PARTS.index(other.part) > at
        for other in placed
    )


def _need(own: Sequence[Piece], count: Count, heading: str, most: int | None) -> int:
    """Return the tokens of a part with nothing left out, or a few more."""
    need = sum(count(piece.text) + 2 for piece in own) + (count(heading) + 2 if heading else 0)
    return need if most is None else min(need, max(0, most))


def _best(own: Sequence[Piece], count: Count, heading: str) -> int:
    """Return the tokens of the best piece of a part with the heading, 0 if there is none."""
    if not own:
        return 0
    best = max(own, key=lambda piece: piece.score)
    return _tokens(best.part, [best.text], heading, count)


def _place(left: int, need: int, best: int) -> int:
    """Return the tokens of the joint share that memories leave to the best summary: all that it takes, or 0."""
    return best if best <= min(PLACE * left, need) else 0


def _share(part: Part, left: int, shares: Mapping[Part, float], needs: Mapping[Part, int]) -> int:
    """Return the share of a part in what is left: parts that need less than their share leave the rest to the
    others."""
    if part not in shares or part not in needs:
        return left
    after = FIRST[FIRST.index(part) :]
    waiting = {other: shares[other] for other in after if other in shares and other in needs}
    remaining = float(left)
    while (weights := sum(waiting.values())) > 0:
        content = [other for other, weight in waiting.items() if needs[other] <= remaining * weight / weights]
        if part in content:
            return needs[part]
        if not content:
            return int(remaining * waiting[part] / weights)
        remaining -= sum(needs[other] for other in content)
        for other in content:
            del waiting[other]
    return left


def once(count: Count) -> Count:
    """Return a count that counts no text twice. It caches every text: use it for one prompt only."""
    known: dict[str, int] = {}

    def counted(text: str) -> int:
        if (tokens := known.get(text)) is None:
            tokens = known[text] = count(text)
        return tokens

    return counted


def _fill(
    own: Sequence[Piece], budget: int, count: Count, heading: str, ellipsis: str | None
) -> list[Placed]:
    """Return the best pieces of one part that fit together, in the order given; if none fits, the beginning of the
    best, unless `ellipsis` is None."""
    if not own or budget <= 0:
        return []
    part = own[0].part
    ranked = sorted(range(len(own)), key=lambda at: (own[at].weak, -own[at].score))
    taken: list[int] = []
    spent = count(heading) + 1 if heading else 0
    for at in ranked:
        more = spent + count(own[at].text) + 1
        # The sum of the pieces differs from the count of the whole by a token or two each: count exactly only there.
        slack = 2 * (len(taken) + 2)
        over = more > budget and (
            more > budget + slack or _tokens(part, _texts(own, [*taken, at]), heading, count) > budget
        )
        if not over:
            taken.append(at)
            spent = more
        elif part in UNBROKEN or (not taken and ellipsis is not None):
            break
    while taken and _tokens(part, _texts(own, taken), heading, count) > budget:
        taken.pop()
    if not taken:
        return [] if ellipsis is None else _cut(own[ranked[0]], budget, count, heading, ellipsis)
    return [Placed(piece=own[at], text=own[at].text, tokens=count(own[at].text)) for at in sorted(taken)]


def _cut(piece: Piece, budget: int, count: Count, heading: str, ellipsis: str) -> list[Placed]:
    """Return the beginning of a piece that fits alone, if there is one."""
    if _tokens(piece.part, [piece.text], heading, count) <= budget:
        return [Placed(piece=piece, text=piece.text, tokens=count(piece.text))]
    beginning = cut(piece.text, budget, lambda some: count(_joined(piece.part, [some + ellipsis], heading)))
    text = beginning and f"{beginning}{ellipsis}"
    return [Placed(piece=piece, text=text, tokens=count(text), cut=True)] if text else []


def _texts(own: Sequence[Piece], places: Iterable[int]) -> list[str]:
    return [own[at].text for at in sorted(places)]


def _tokens(part: Part, texts: Sequence[str], heading: str, count: Count) -> int:
    """Return the count of the text of `_joined`."""
    between = BETWEEN.get(part, "\n")
    if not heading:
        return summed(texts, between, count)
    if not _begins(texts[0]):
        return count(_joined(part, texts, heading))
    return count(heading) + _added(heading, "\n", count) + summed(texts, between, count)


def summed(texts: Sequence[str], between: str, count: Count) -> int:
    """Return the count of texts joined by `between`, which ends with a line break, from the counts of each: a token
    begins after a line break (see `text.tokens`). If a text begins with white space or a slash, the whole is
    counted."""
    if not all(map(_begins, texts[1:])):
        return count(between.join(texts))
    return sum(map(count, texts)) + sum(_added(text, between, count) for text in texts[:-1])


def _begins(text: str) -> bool:
    """Return True if a token begins with this text wherever a line break precedes it."""
    return bool(text) and not text[0].isspace() and text[0] != "/"


def _added(text: str, between: str, count: Count) -> int:
    """Return how much higher the count of a text is followed by `between`: that depends on the punctuation it ends
    with, else on its last word."""
    bare = text.rstrip(punctuation)
    if bare and bare[-1].isalnum():  # punctuation behind a letter or a digit begins a token
        last = text[len(bare) :]
    else:
        at = text.rfind(" ")
        while at > 0 and text[at - 1].isspace():
            at = text.rfind(" ", 0, at)
        last = text[max(0, at) :]
    return count(last + between) - count(last)


def _joined(part: Part, texts: Iterable[str], heading: str) -> str:
    body = BETWEEN.get(part, "\n").join(texts)
    return f"{heading}\n{body}" if heading else body


def cut(text: str, tokens: int, count: Count) -> str:
    """Return the text, or its longest beginning with at most so many tokens that ends at a grapheme boundary. It never
    counts much more than it returns."""
    low, high, fits = 0, min(len(text), max(16, 4 * tokens)), 0
    while (over := count(text[:high])) <= tokens:
        if high == len(text):
            return text
        low, high, fits = high, min(len(text), 2 * high), over
    halve = False
    while (
        high - low > 1
    ):  # by interpolation and by halves in turn: each count costs as much as the text is long
        share = 0.5 if halve else (tokens + 0.5 - fits) / (over - fits)
        middle = low + min(high - low - 1, max(1, int(share * (high - low))))
        halve = not halve
        if (some := count(text[:middle])) <= tokens:
            low, fits = middle, some
        else:
            high, over = middle, some
    while low and not (is_boundary(text, low) and count(text[:low]) <= tokens):
        low -= 1
    return text[:low]


def shortened(text: str, length: int) -> str:
    """Return the text, or its beginning followed by an ellipsis, at most `length` characters together; it ends at a
    grapheme boundary."""
    if len(text) <= length:
        return text
    end = max(0, length - 1)
    while not is_boundary(text, end):
        end -= 1
    return f"{text[:end].rstrip()}…"


def semantic_query(question: str, recent: Sequence[str]) -> str:
    """Return the query of a vector search: the question, and below it the last messages in brief, the newest last: at
    most 3 entries and 500 characters."""
    entries = [folded for text in recent[-BRIEF_ENTRIES:] if (folded := " ".join(text.split()))]
    if not entries:
        return question
    share = (BRIEF_CHARS - (len(entries) - 1)) // len(entries)
    return "\n".join([question, *(shortened(entry, share) for entry in entries)])
