"""Sentences by example and by their properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.text.sentences import spans

PARTS = [
    "Dr. ",
    "One two. ",
    "3.14 ",
    "e.g. ",
    "「はい。」",
    "नमस्ते। ",
    '"No!" ',
    "\n\n",
    "\r\n- ",
    "\n",
    "? ",
    "…",
    "x",
    "\u2029",
    "1. ",
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=30).map("".join) | st.text(max_size=60)


@pytest.mark.parametrize(
    "text",
    [
        "One is here.|Two is there!|Is three?",
        "Dr. Smith paid 3.14 dollars, e.g. in cash.|He left.",
        "See Fig. 3 and J. R. Tolkien et al. (2003).|It was 1998.|The end",
        "He works at Acme Inc. and at 5 p.m. today.|She joined Acme Inc.|Then she left.",
        '"Why?" he asked.|"Because."|(It rained.)|So',
        "“Stop!” he said.|Wait...|What",
        "Yahoo! is a name.|Version 1.2.3 is out.|See example.com for more.",
        "人工智能正在改变世界。|研究人员发现！|「そうです。」|はい",
        "यह वाक्य है।|दूसरा।",
        "كيف حالك؟|بخير.",
        "A title\n\n|a paragraph wrapped\nover lines.|Then more",
        "Intro:\n|- first item\n|- second. |With two\n|1. One\n|2. Two\n|# Head",
        "Windows\r\n\r\n|lines",
        "Der Urlaub verfällt am 31. März des Jahres.|Der 2. Vorsitzende ist da.|Sie ist 31.|Er auch.",
        "Wir treffen uns im 2. Stock am 3. oder 5. Mai.|The answer is 42.|Then we left.|I am 31.|She is 30.",
        "Fällig bis zum 15.|Danach wird gemahnt am 1. August.|We sold 31.|August was better.|In 12.|April moved.",
    ],
)
def test_sentences_end_where_marked(text: str) -> None:
    expected = [part.strip() for part in text.split("|")]
    plain = "".join(
        part if part[-1:].isspace() or part[-1:] in "。！」" else part + " " for part in text.split("|")
    )
    assert [plain[start:end] for start, end in spans(plain)] == expected


@given(TEXTS)
def test_sentences_hold_every_visible_character_and_no_more(text: str) -> None:
    done = 0
    for start, end in spans(text):
        assert done <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        assert not text[done:start].strip()
        done = end
    assert not text[done:].strip()


def test_a_row_of_a_table_is_a_sentence() -> None:
    text = "Part | Price\nBolt | 5\nNut | 7"
    assert [text[start:end] for start, end in spans(text)] == text.split("\n")
