"""The assembler: never over a budget, in order, whole characters, every piece accounted for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import prompts
from recollect.assemble import FIRST, PARTS, Assembled, Part, Piece, assemble, cut, semantic_query, shortened
from recollect.text import tokens
from recollect.text.highlights import is_boundary


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


@given(PIECES, st.integers(-1, 80), BUDGETS, HEADINGS, st.sampled_from(COUNTS))
def test_a_prompt_keeps_to_its_budgets_and_accounts_for_every_piece(
    pieces: list[Piece],
    total: int,
    budgets: dict[Part, int],
    headings: dict[Part, str],
    count: Callable[[str], int],
) -> None:
    prompt = assemble(pieces, total=total, budgets=budgets, count=count, headings=headings)
    assert prompt.tokens == {part: count(text) for part, text in prompt.texts.items()}
    assert prompt.total == sum(prompt.tokens.values()) <= max(0, total)
    for part, spent in prompt.tokens.items():
        assert spent <= budgets.get(part, total)
    ids = [id(one.piece) for one in prompt.placed] + [id(one) for one in prompt.left_out]
    assert sorted(ids) == sorted(map(id, pieces))
    for one in prompt.placed:
        assert one.piece.text.startswith(one.text)
        assert one.cut == (one.text != one.piece.text)
        assert is_boundary(one.piece.text, len(one.text))
        assert one.tokens == count(one.text)


@given(PIECES, st.integers(0, 80), BUDGETS)
def test_order_is_kept_and_the_lowest_scores_go_first(
    pieces: list[Piece], total: int, budgets: dict[Part, int]
) -> None:
    prompt = assemble(pieces, total=total, budgets=budgets, count=tokens.count)
    places = [
        (PARTS.index(one.piece.part), [id(p) for p in pieces].index(id(one.piece))) for one in prompt.placed
    ]
    assert places == sorted(places)
    for part in PARTS:
        kept = [one for one in prompt.placed if one.piece.part == part]
        gone = [one for one in prompt.left_out if one.part == part]
        assert not kept or all(min(one.piece.score for one in kept) >= lost.score for lost in gone)
        assert not any(one.cut for one in kept) or len(kept) == 1


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
