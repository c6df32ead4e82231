"""The sources that earlier answers name behind their quotes are not quoted; the same words of a user are."""

from __future__ import annotations

import pytest

from memoranda.providers.chat.base import Source
from memoranda.providers.chat.quoting import best
from memoranda.types import KINDS
from support.growth import grows_in_proportion

ANSWER = "assistant, 14 October 2026"


def quoted(question: str, text: str, title: str) -> list[str]:
    source = Source(number=0, kind="memory", text=text, title=title)
    return [sentence.text for sentence in best(question, [source])]


@pytest.mark.parametrize("title", ["note", "Ana, 13 October 2026", "13 October 2026"])
@pytest.mark.parametrize("words", ["(memory: 32 GB)", "(memory: note)", "(memory: Ana, 13 October 2026)"])
def test_words_of_a_user_are_quoted_also_if_they_look_like_a_source(words: str, title: str) -> None:
    text = f"The new laptop {words} is on the desk in room 4."
    assert quoted("How much memory does the laptop have?", text, title) == [text]


@pytest.mark.parametrize(
    "source",
    [
        "Ana, 13 October 2026",
        "Ana (she/her), 13 October 2026",
        "13 October 2026",
        "fact since 02 March 2026",
        *KINDS,
    ],
)
def test_the_source_that_an_answer_names_is_not_quoted(source: str) -> None:
    text = f"Tim lives in Rome (memory: {source})"
    assert quoted("Where does Tim live?", text, ANSWER) == ["Tim lives in Rome"]
    assert quoted("Where does Tim live?", text, "assistant") == ["Tim lives in Rome"]


def test_of_an_answer_only_sources_are_left_out() -> None:
    text = "The new laptop (memory: 32 GB) was bought by Ana (in Leipzig, 13 October 2026)."
    assert quoted("How much memory does the laptop have?", text, ANSWER) == [text]
    files = "The laptop has 32 GB. (memory: laptops.md) The laptop is blue. (memory: laptops (new).md)"
    assert quoted("How much does the laptop have?", files, ANSWER)[0] == "The laptop has 32 GB."
    assert quoted("Is the laptop blue?", files, ANSWER)[0] == "The laptop is blue."


@pytest.mark.parametrize(
    "part", [" (memory: ", ". (memory: (a) b, 13", " (memory: a (memory: b)", " (memory: ("]
)
def test_sources_without_an_end_take_no_more_than_the_length_of_the_text(part: str) -> None:
    grows_in_proportion(lambda text: quoted("Where?", text, ANSWER), lambda n: part * n, 2_000)
