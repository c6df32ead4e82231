from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.text.chunking import Chunk, fixed, measure
from memoranda.text.tokens import ENCODINGS, count, locate

SCRIPTS = st.sampled_from(
    [
        "hello ",
        "world",
        "\n\n",
        "  ",
        "\t",
        "naïve ",
        "e\u0301",
        "한국어",
        "日本",
        "١٢٣٤",
        "12345",
        "'s",
        "👍🏽",
        "👨‍👩‍👧 ",
        "/",
        ".\r\n",
    ]
)
TEXTS = st.lists(SCRIPTS, max_size=60).map("".join) | st.text(max_size=80)
encodings = pytest.mark.parametrize("encoding", ENCODINGS)


@encodings
@settings(deadline=None)
@given(text=TEXTS, size=st.integers(1, 40), data=st.data())
def test_chunks_hold_every_character_and_fit(
    encoding: str, text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    chunks = fixed(text, size, overlap, encoding)
    assert bool(chunks) == bool(text)
    tokens = measure(text, encoding).tokens
    for chunk in chunks:
        inside = (tokens.starts >= chunk.start) & (tokens.starts < chunk.end) & tokens.whole
        assert chunk.tokens == count(text[chunk.start : chunk.end], encoding)
        assert chunk.tokens <= size or inside.sum() == 1
    if chunks:
        assert chunks[0].start == 0
        assert chunks[-1].end == len(text)
    for before, after in pairwise(chunks):
        assert before.start < after.start <= before.end < after.end


@encodings
@settings(deadline=None)
@given(words=st.integers(0, 400), size=st.integers(2, 60), data=st.data())
def test_chunk_count_and_overlap_where_a_word_is_a_token(
    encoding: str, words: int, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    text = " the" * words
    chunks = fixed(text, size, overlap, encoding)
    step = size - overlap
    assert len(chunks) == (0 if not words else max(1, -(-(words - overlap) // step)))
    for before, after in pairwise(chunks):
        assert count(text[after.start : before.end], encoding) == overlap


@settings(deadline=None)
@given(text=TEXTS, size=st.integers(8, 40))
def test_overlap_is_at_least_what_was_asked(text: str, size: int) -> None:
    """Asked of chunks that are far longer than one character costs, so that progress never limits it."""
    chunks = fixed(text, size, 1)
    starts = locate(text).starts
    for before, after in pairwise(chunks):
        assert ((starts >= after.start) & (starts < before.end)).any()


def test_eleven_characters_are_one_chunk() -> None:
    assert fixed("hello world") == [Chunk(0, 11, 2)]


def test_an_empty_text_has_no_chunks() -> None:
    assert fixed("") == []


def test_a_text_of_exactly_the_size_is_one_chunk_and_one_more_token_makes_two() -> None:
    assert [c.tokens for c in fixed(" the" * 512)] == [512]
    assert [c.tokens for c in fixed(" the" * 513)] == [512, 51]


def test_a_character_that_costs_more_than_the_size_stands_alone() -> None:
    assert count("🫠") > 1
    assert [(c.start, c.end) for c in fixed("🫠🫠", size=1, overlap=0)] == [(0, 1), (1, 2)]


def test_lone_surrogates_keep_their_places() -> None:
    assert fixed("a\ud800b")[-1].end == 3


@pytest.mark.parametrize(
    ("size", "overlap", "field"), [(0, 0, "size"), (5, 5, "overlap"), (5, -1, "overlap")]
)
def test_impossible_sizes_are_refused_by_name(size: int, overlap: int, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        fixed("text", size, overlap)
    assert refused.value.field == field


@pytest.mark.parametrize("text", ["a" * 1_000_000, " " * 1_000_000, "🫠" * 200_000])
def test_a_million_of_one_character_is_chunked(text: str) -> None:
    chunks = fixed(text)
    assert chunks[-1].end == len(text)
    assert max(c.tokens for c in chunks) <= 512
