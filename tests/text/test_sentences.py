"""Sentences by example and by their properties."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.text.sentences import QUESTION_MARKS, TERMINALS, is_ended, is_question, is_statement, spans
from support.growth import grows_in_proportion

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
        "Windows\r\n\r\n|lines\r\nthat are wrapped",
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


@pytest.mark.parametrize(
    "sentences",
    [
        ["他去了北京。", "你喜欢吗？!", "iPhone 3.5 很贵！", "好"],
        ["「行きますか？」", "はい｡", "手法を提案する．", "値は３．１４である．", "１．はじめに"],
        ["كيف حالك؟", "أنا بخير.", "لماذا؟!", "لا أدري"],
        ["یہ کتاب ہے۔", "وہ کہاں ہے؟"],
        ["वह घर गया।", "क्या वह आया?", "हाँ॥"],
        ["သူ သွားသည်။", "သူ ပြန်လာသည်။"],
        ["Նա եկավ։", "Դու որտե՞ղ ես։"],
        ["Πού είσαι; Είμαι εδώ.", "Ναι!"],
        ["ሰላም ነው።", "ደህና ነህ፧", "አዎ"],
        ["ខ្ញុំទៅផ្សារ។", "គាត់មក។"],
        ["It rains‼️", "Does it⁉", "See https://example.com/a?b=c!d for more…", "No"],
    ],
)
@pytest.mark.parametrize("space", [" ", "\n"])
def test_sentences_of_other_scripts(sentences: list[str], space: str) -> None:
    text = space.join(sentences)
    assert [text[start:end] for start, end in spans(text)] == sentences


@pytest.mark.parametrize(
    "sentences",
    [["他去了北京。", "「好！」", "你呢？！", "好"], ["हाँ।", "नहीं।"], ["كيف؟", "بخير"], ["ሰላም።", "አዎ"]],
)
def test_marks_of_other_scripts_need_no_space(sentences: list[str]) -> None:
    text = "".join(sentences)
    assert [text[start:end] for start, end in spans(text)] == sentences


def test_thai_sentences_end_at_spaces_far_apart() -> None:
    clause = "เขาเกิดและเติบโตที่กรุงเทพมหานคร"
    assert spans(f"{clause} {clause}") == [(0, 2 * len(clause) + 1)]
    long = clause * 4
    text = f"{long} {long} 500 {long}"
    assert [text[start:end] for start, end in spans(text)] == [long, f"{long} 500 {long}"]


@pytest.mark.parametrize(
    ("text", "question", "statement"),
    [
        ("你好吗？」", True, False),
        ("كيف حالك؟ ", True, False),
        ('"What?!"', True, False),
        ("ደህና ነህ፧", True, False),
        ("नमस्ते।", False, True),
        ("Yes. (No.)", False, True),
        ("Πού είσαι;", False, False),
        ("no mark", False, False),
        ("", False, False),
    ],
)
def test_a_text_asks_or_states_by_its_last_marks(text: str, question: bool, statement: bool) -> None:
    assert (is_question(text), is_statement(text)) == (question, statement)
    assert is_ended(text) is (question or statement or text.endswith(";"))


def test_marks_agree_with_the_names_of_the_characters() -> None:
    """The names of those that this Python knows; it may be older than the constant."""
    named = {mark for mark in TERMINALS if "QUESTION" in unicodedata.name(mark, "")}
    assert named | {"\u203d"} == set(QUESTION_MARKS)
    assert all(unicodedata.category(mark) in ("Po", "Cn") for mark in TERMINALS)


@pytest.mark.parametrize("part", ["?…", "吗？", "！\"'", "\u0e01 ", "．", "x | ", "a.", "‼\ufe0f "])
def test_sentences_of_repeated_marks_take_time_in_proportion(part: str) -> None:
    grows_in_proportion(spans, lambda size: part * size, 5_000)
    grows_in_proportion(is_question, lambda size: part * size, 5_000)
