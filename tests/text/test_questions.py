"""A query without its politeness: by example, and by what must never happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.text.questions import normalise

EXAMPLES = [
    ("Could you please tell me what the capital of France is?", "what the capital of France is?"),
    ("I'd like to know about the Treaty of Rome", "the Treaty of Rome"),
    ("I’d like to know more about Ümlaut", "Ümlaut"),
    ("Hi there, can you explain how TLS 1.3 works, please?", "how TLS 1.3 works"),
    ("I was wondering if the X-12 isn't supported, thanks in advance!", "if the X-12 isn't supported"),
    ("Do you know who wrote 'Could you please'?", "who wrote 'Could you please'?"),
    ('Tell me about "tell me about"', '"tell me about"'),
    ("What is the limit? Thank you!", "What is the limit?"),
    ("  Please,\n explain   why\tit fails ", "explain why it fails"),
]
UNCHANGED = [
    "What is not covered by the warranty?",
    "I don't want to know about prices",
    "how to say please in Japanese",
    "What does this mean for me?",
    "Please Please Me album",
    "hello, world in C",
    "`please tell me`",
    '"Could you please tell me" lyrics',
    "5!",
    "¿Qué es la vida, por favor?",
    "Könnten Sie mir bitte sagen, was das ist?",
    "教えてください",
    "could you tell me",
    "please",
    "??",
    "",
    " ",
]
PHRASES = st.sampled_from(
    [
        "Could you please",
        "tell me",
        "about",
        "I'd like to know",
        "what is",
        "not",
        "never",
        "Rome",
        "3.14",
        '"a b"',
        "`x = 1`",
        "please",
        "thanks!",
        ",",
        "?",
        "hi,",
        "  ",
        "\n",
        "I wonder",
        "do you know",
        "if you can",
        "’",
        "日本",
    ]
)
QUERIES = st.lists(PHRASES, max_size=10).map(" ".join) | st.text(max_size=60)


@pytest.mark.parametrize(("query", "content"), EXAMPLES)
def test_the_asking_goes_and_the_question_stays(query: str, content: str) -> None:
    assert normalise(query) == content


@pytest.mark.parametrize("query", UNCHANGED)
def test_content_is_left_alone(query: str) -> None:
    assert normalise(query) == query


@given(QUERIES)
def test_never_empty_never_more_and_settled_after_once(query: str) -> None:
    content = normalise(query)
    assert bool(content) == bool(query)
    assert normalise(content) == content
    assert content in " ".join(query.split()) or content == query


@given(QUERIES)
def test_names_numbers_negations_quotes_and_code_are_kept(query: str) -> None:
    content = normalise(query)
    for kept in ("not", "never", "Rome", "3.14", '"a b"', "`x = 1`", "日本"):
        assert content.count(kept) == query.count(kept)
