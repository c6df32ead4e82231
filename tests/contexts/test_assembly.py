"""The assembler: never over a budget, in order, whole characters, every piece accounted for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.contexts.assembly import (
    FIRST,
    PARTS,
    Assembled,
    Part,
    Piece,
    assemble,
    cut,
    once,
    semantic_query,
    shortened,
    summed,
)
from memoranda.text import prompts, tokens
from memoranda.text.highlights import is_boundary


def words(text: str) -> int:
    return len(text.split())


COUNTS: list[Callable[[str], int]] = [
    len,
    words,
    tokens.count,
    lambda text: tokens.count(text, "cl100k_base"),
]
TEXTS = st.lists(
    st.sampled_from(
        ["one two ", "\n", "/path", " ", "é", "e\u0301", "👩‍👩‍👧", "🇩🇪🇫🇷", "字", "\r\n", "...", "   "]
    )
    | st.text(max_size=5),
    max_size=12,
).map("".join)
PIECES = st.lists(
    st.builds(
        Piece,
        part=st.sampled_from(PARTS),
        text=TEXTS,
        id=st.text(max_size=3),
        score=st.sampled_from([0.1, 0.5, 0.9]),
    ),
    max_size=20,
)
BUDGETS = st.dictionaries(st.sampled_from(PARTS), st.integers(-1, 30))
HEADINGS = st.dictionaries(st.sampled_from(PARTS), st.sampled_from(["", "Previous context:", "è:"]))


def made(*pieces: Piece, total: int = 1_000, **budgets: int) -> Assembled:
    return assemble(pieces, total=total, budgets=budgets, count=words)  # type: ignore[arg-type]


def piece(part: Part, text: str, score: float = 0.0) -> Piece:
    return Piece(part=part, text=text, score=score, id=text)


SHARES = st.dictionaries(st.sampled_from(PARTS), st.sampled_from([0.0, 1.0, 2.5]))


@settings(max_examples=40)
@given(
    PIECES,
    st.integers(-1, 80),
    BUDGETS,
    HEADINGS,
    SHARES,
    st.sampled_from(COUNTS),
    st.sampled_from(["", "…"]),
)
def test_a_prompt_keeps_to_its_budgets_and_accounts_for_every_piece(
    pieces: list[Piece],
    total: int,
    budgets: dict[Part, int],
    headings: dict[Part, str],
    shares: dict[Part, float],
    count: Callable[[str], int],
    ellipsis: str,
) -> None:
    prompt = assemble(
        pieces, total=total, budgets=budgets, count=count, headings=headings, shares=shares, ellipsis=ellipsis
    )
    assert prompt.tokens == {part: count(text) for part, text in prompt.texts.items()}
    assert prompt.total == sum(prompt.tokens.values()) <= max(0, total)
    for part, spent in prompt.tokens.items():
        assert spent <= budgets.get(part, total)
    ids = [id(one.piece) for one in prompt.placed] + [id(one) for one in prompt.left_out]
    assert sorted(ids) == sorted(map(id, pieces))
    for one in prompt.placed:
        whole = one.piece.text
        begun = one.text.removesuffix(ellipsis) if one.cut else one.text
        assert whole.startswith(begun)
        assert one.cut == (one.text != whole)
        assert is_boundary(whole, len(begun))
        assert one.tokens == count(one.text)
        assert one.text in prompt.texts[one.piece.part]
    places = [
        (PARTS.index(one.piece.part), [id(p) for p in pieces].index(id(one.piece))) for one in prompt.placed
    ]
    assert places == sorted(places)


@settings(max_examples=40)
@given(PIECES, st.integers(0, 80), BUDGETS)
def test_what_is_kept_is_better_or_smaller_than_what_is_not(
    pieces: list[Piece], total: int, budgets: dict[Part, int]
) -> None:
    """With counts that add up; tokens of neighbours may merge."""
    prompt = assemble(pieces, total=total, budgets=budgets, count=len)
    for part in PARTS:
        kept = [one for one in prompt.placed if one.piece.part == part]
        gone = [one for one in prompt.left_out if one.part == part]
        assert not any(one.cut for one in kept) or len(kept) == 1
        for one, lost in product(kept, gone):
            smaller = part != "recent" and len(one.text) < len(lost.text)
            assert one.cut or smaller or one.piece.score >= lost.score


def test_recent_messages_have_no_gap() -> None:
    said = [piece("recent", text, at) for at, text in enumerate(["a", "b b b b b", "c c", "d"])]
    assert [one.text for one in made(*said, recent=4).placed] == ["c c", "d"]
    noted = [piece("memories", one.text, one.score) for one in said]
    assert [one.text for one in made(*noted, memories=4).placed] == ["a", "c c", "d"]


def test_shares_are_of_what_is_left_and_pass_on_what_is_not_needed() -> None:
    pieces = [
        piece("question", "why"),
        *(piece("documents", f"{n} two three", n) for n in range(6)),
        *(piece("memories", f"m{n}", n) for n in range(12)),
    ]
    both = assemble(
        pieces, total=13, budgets={}, count=words, shares={"documents": 2.0, "memories": 1.0, "sessions": 9.0}
    )
    assert both.tokens == {"question": 1, "documents": 6, "memories": 6}
    few = assemble(
        [one for one in pieces if one.part != "documents" or one.score == 0],
        total=13,
        budgets={},
        count=words,
        shares={"documents": 2.0, "memories": 1.0},
    )
    assert few.tokens == {"question": 1, "documents": 3, "memories": 9}


@pytest.mark.parametrize(
    ("total", "memories", "summaries"),
    [(100, 20, 0), (299, 100, 0), (300, 100, 1), (1_000, 200, 1), (1_000, 180, 3)],
)
def test_summaries_get_what_memories_leave_and_the_best_a_tenth(
    total: int, memories: int, summaries: int
) -> None:
    """Each memory has 5 words, each summary 30."""
    found = [piece("memories", f"m{n} two three four five", -n) for n in range(memories)]
    told = [piece("sessions", f"s{n} " + "word " * 29, -n) for n in range(3)]
    prompt = assemble(
        [*found, *told], total=total, budgets={}, count=words, shares={"memories": 3.0, "sessions": 1.5}
    )
    assert sum(placed.piece.part == "sessions" for placed in prompt.placed) == summaries


def test_pieces_stand_in_their_order_with_their_heading() -> None:
    prompt = assemble(
        [
            piece("question", "why?"),
            piece("memories", "- tea"),
            piece("memories", "- Rex"),
            piece("system", "be kind"),
        ],
        total=100,
        budgets={},
        count=words,
        headings={"memories": prompts.MEMORIES, "documents": "Documents:"},
    )
    assert list(prompt.texts.items()) == [
        ("system", "be kind"), ("memories", "Previous context:\n- tea\n- Rex"), ("question", "why?")
    ]  # fmt: skip
    assert prompt.tokens == {"system": 2, "memories": 6, "question": 1}
    assert prompt.total == 9
    assert prompt.left_out == []


def test_what_does_not_fit_goes_by_its_score_and_not_by_its_place() -> None:
    prompt = made(
        piece("documents", "a a a", 0.2),
        piece("documents", "b b b", 0.9),
        piece("documents", "c c c", 0.5),
        documents=7,
    )
    assert [one.text for one in prompt.placed] == ["b b b", "c c c"]
    assert [one.text for one in prompt.left_out] == ["a a a"]


def test_the_question_is_served_before_the_rest_when_there_is_too_little() -> None:
    everything = [piece(part, f"{part} two three") for part in PARTS]
    kept = [made(*everything, total=3 * n).texts.keys() for n in range(1, 8)]
    assert [set(one) for one in kept] == [set(FIRST[:n]) for n in range(1, 8)]


def test_the_best_piece_is_cut_when_it_does_not_fit_alone() -> None:
    prompt = made(piece("documents", "one two three four", 0.9), piece("documents", "five", 0.1), documents=2)
    assert [(one.text.split(), one.cut, one.tokens) for one in prompt.placed] == [(["one", "two"], True, 2)]
    assert [one.text for one in prompt.left_out] == ["five"]


@given(TEXTS, st.integers(-1, 40), st.sampled_from(COUNTS))
def test_a_cut_is_the_longest_beginning_but_for_half_characters(
    text: str, budget: int, count: Callable[[str], int]
) -> None:
    kept = cut(text, budget, count)
    assert text.startswith(kept)
    assert is_boundary(text, len(kept))
    assert kept == "" or count(kept) <= budget
    if count is len:
        longest = max(
            (at for at in range(len(text) + 1) if at <= budget and is_boundary(text, at)), default=0
        )
        assert len(kept) == longest


def test_the_ellipsis_is_counted() -> None:
    def marks(text: str) -> int:
        return len(text)

    prompt = assemble([piece("documents", "abcdefgh")], total=5, budgets={}, count=marks, ellipsis="…")
    assert prompt.texts == {"documents": "abcd…"}
    assert prompt.placed[0].cut
    whole = assemble([piece("documents", "abcde")], total=5, budgets={}, count=marks, ellipsis="…")
    assert whole.texts == {"documents": "abcde"}


def test_no_text_is_counted_twice() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    made = once(count)
    pieces = [piece("memories", f"memory {n}", n) for n in range(40)]
    for _ in range(2):
        assemble(pieces, total=100, budgets={}, count=made)
    assert len(counted) == len(set(counted))
    assert sum(map(len, counted)) < 2 * sum(len(one.text) for one in pieces), "nor as a part of another"


@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from(["\n", "\n\n"]), st.sampled_from(COUNTS))
def test_a_whole_is_counted_by_its_pieces(
    texts: list[str], between: str, count: Callable[[str], int]
) -> None:
    assert summed(texts, between, count) == count(between.join(texts))


def test_a_cut_of_a_long_text_counts_only_what_it_needs() -> None:
    counted = []

    def count(text: str) -> int:
        counted.append(len(text))
        return tokens.count(text)

    text = "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich. " * 20_000
    kept = cut(text, 1_000, count)
    assert 990 <= tokens.count(kept) <= 1_000
    assert max(counted) < 20_000


@given(TEXTS, st.integers(0, 30))
def test_a_shortened_text_fits_and_ends_with_a_whole_character(text: str, length: int) -> None:
    kept = shortened(text, length)
    assert len(kept) <= max(1, length)
    if kept != text:
        assert kept.endswith("…")
        assert text.startswith(kept[:-1])


def test_a_shortened_text_does_not_part_a_family() -> None:
    assert shortened("ab👩‍👩‍👧", 5) == "ab…"
    assert shortened("ab👩‍👩‍👧", 7) == "ab👩‍👩‍👧"


@pytest.mark.parametrize(
    ("recent", "expected"),
    [
        ([], "why?"),
        (["", "  \n"], "why?"),
        (["first", "second\n line"], "why?\nfirst\nsecond line"),
        (["dropped", "a", "b", "c"], "why?\na\nb\nc"),
        (["", "a", "b"], "why?\na\nb"),
    ],
)
def test_a_semantic_query_is_the_question_and_what_was_said_last(recent: list[str], expected: str) -> None:
    assert semantic_query("why?", recent) == expected


@given(st.text(max_size=20), st.lists(st.text(max_size=900), max_size=6))
def test_the_brief_of_a_semantic_query_is_bounded(question: str, recent: list[str]) -> None:
    asked = semantic_query(question, recent)
    assert asked.startswith(question)
    assert len(asked) - len(question) <= 501
    brief = asked[len(question) + 1 :]
    assert brief.count("\n") <= 2


def test_what_answers_has_its_place_before_what_was_said_last() -> None:
    pieces = [
        piece("question", "why"),
        *(piece("recent", f"said {n} of it", n) for n in range(5)),
        piece("memories", "the answer is in this line", 1.0),
    ]
    shares: dict[Part, float] = {"memories": 1.0, "recent": 9.0}
    prompt = assemble(pieces, total=13, budgets={}, count=words, shares=shares)
    assert [one.text for one in prompt.placed] == ["the answer is in this line", "said 4 of it", "why"]


def test_what_a_part_does_not_need_is_shared_by_those_before_it_too() -> None:
    pieces = [
        *(piece("memories", f"m{n} m", n) for n in range(20)),
        piece("recent", "one two", 1.0),
    ]
    prompt = assemble(pieces, total=30, budgets={}, count=words, shares={"memories": 1.0, "recent": 1.0})
    assert prompt.tokens == {"memories": 28, "recent": 2}


def test_weak_pieces_have_what_all_others_leave() -> None:
    weak = [Piece(part="memories", text=f"weak {n}", score=9.0, weak=True) for n in range(4)]
    pieces = [
        piece("memories", "strong one", 0.1),
        *weak,
        *(piece("recent", f"said {n}", n) for n in range(3)),
    ]
    prompt = assemble(pieces, total=11, budgets={}, count=words, shares={"memories": 1.0, "recent": 1.0})
    assert [one.text for one in prompt.placed] == ["strong one", "weak 0", "said 0", "said 1", "said 2"]
    tight = assemble(pieces, total=5, budgets={}, count=words, shares={"memories": 1.0, "recent": 1.0})
    assert [one.text for one in tight.placed] == ["strong one", "said 2"]


RETRIEVED = st.builds(
    Piece,
    part=st.sampled_from(["documents", "memories", "sessions"]),
    text=st.integers(1, 9).map("word ".__mul__),
    score=st.sampled_from([0.1, 0.5, 0.9]),
    weak=st.booleans(),
)


@settings(max_examples=40)
@given(st.lists(RETRIEVED, max_size=20), st.integers(0, 80), SHARES)
def test_weak_pieces_take_nothing_from_others_and_stand_before_none_of_a_later_part(
    pieces: list[Piece], total: int, shares: dict[Part, float]
) -> None:
    def placed(pieces: list[Piece]) -> list[Piece]:
        prompt = assemble(pieces, total=total, budgets={}, count=words, shares=shares)
        return [one.piece for one in prompt.placed]

    strong = [one for one in pieces if not one.weak]
    kept = placed(pieces)
    assert [one for one in kept if not one.weak] == placed(strong)
    for first, second in combinations(kept, 2):
        assert not first.weak or second.weak or first.part == second.part


@pytest.mark.parametrize("heading", ["", "long " * 40])
def test_the_best_piece_exceeds_its_share_with_its_heading_and_nothing_else(heading: str) -> None:
    pieces = [
        piece("memories", "the answer is here", 1.0),
        *(piece("memories", f"m{n}", -n) for n in range(9)),
        piece("recent", "word " * 99),
    ]
    prompt = assemble(
        pieces,
        total=100,
        budgets={},
        count=words,
        headings={"memories": heading},
        shares={"memories": 1.0, "recent": 99.0},
    )
    remembered = [placed.text for placed in prompt.placed if placed.piece.part == "memories"]
    assert remembered == ["the answer is here"]
