import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.providers.embeddings.base import Span, windows


@st.composite
def tokenised(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A text and where its tokens begin: up to four tokens share a character, and some hold many."""
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 2, 5]), min_size=1, max_size=400))
    for i in range(4, len(steps)):
        if not any(steps[i - 4 : i]):
            steps[i] = 1
    starts = np.cumsum(steps).tolist()
    size = starts[-1] + draw(st.integers(1, 9))
    return "".join(draw(st.lists(st.sampled_from("ab  é.한"), min_size=size, max_size=size))), starts


@settings(deadline=None)
@given(tokenised(), st.integers(32, 80))
def test_windows_cover_the_text_and_hold_no_more_than_their_limit(
    made: tuple[str, list[int]], limit: int
) -> None:
    text, starts = made
    spans = windows(text, np.array(starts), limit, limit // 10)
    assert (spans[0].start, spans[-1].end) == (0, len(text))
    for before, after in pairwise(spans):
        assert before.start < after.start <= before.end < after.end
    for span in spans[:-1]:
        assert sum(span.start <= start < span.end for start in starts) <= limit + 4


@settings(deadline=None)
@given(st.lists(st.sampled_from(["word", "a", "naïve", "x1"]), min_size=1, max_size=300))
def test_words_stay_whole(words: list[str]) -> None:
    text = " ".join(words)
    starts = np.array([i for i, character in enumerate(text) if character != " "])
    for span in windows(text, starts, 60, 6):
        assert text[span.start : span.end].split()[0] in words
        assert text[span.start : span.end].split()[-1] in words


def test_a_text_without_tokens_is_one_window() -> None:
    assert windows("   ", np.empty(0, np.int64), 40, 4) == [Span(0, 3)]


@pytest.mark.parametrize("word", ["ที่น้ำ", "हिन्दी", "👍🏽👩\u200d🔬"])
def test_no_window_begins_inside_a_character(word: str) -> None:
    text = word * 60
    for span in windows(text, np.arange(len(text)), 60, 6)[1:]:
        assert unicodedata.category(text[span.start])[0] != "M"
        assert text[span.start] not in "\u200d🏽"
        assert text[span.start - 1] != "\u200d"
