"""Notes on what users say of themselves, by a table of patterns."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.facts.rules import RULES, captured
from memoranda.text.sentences import statements
from support.growth import grows_in_proportion


@pytest.mark.parametrize(
    ("said", "notes"),
    [
        ("I prefer tea over coffee.", ["preference: Mara: I prefer tea over coffee."]),
        ("And I can't stand cilantro", ["preference: Mara: And I can't stand cilantro"]),
        ("I'm vegan, what can I eat in Rome?", ["fact: Mara: I'm vegan"]),
        ("I've moved to Berlin! My dog is called Rex.",
         ["fact: Mara: I've moved to Berlin!", "entity: Mara: My dog is called Rex."]),
        ("Our meeting is now on Tuesday", ["entity: Mara: Our meeting is now on Tuesday"]),
        ("We decided to use Rust.", ["decision: Mara: We decided to use Rust."]),
        ("Ich wohne in Köln.", ["fact: Mara: Ich wohne in Köln."]),
    ],
)  # fmt: skip
def test_a_note_is_the_sentence_as_it_was_said(said: str, notes: list[str]) -> None:
    assert [f"{note.tags[0]}: {note.text}" for note in captured(said, "Mara", 3)] == notes


@pytest.mark.parametrize(
    "said",
    [
        "Do I like tea?",
        "You live in Rome.",
        "Mara lives in Rome.",
        "It rains.",
        "I love it",
        "> I live in Rome.",
        "```\nI live in Rome.\n```",
        'He said: "I live in Rome. I like tea."',
        "Translate this:\nI live in Rome.",
        "I like " + "very " * 60 + "long sentences.",
    ],
)
def test_what_gives_no_note(said: str) -> None:
    assert captured(said, "Mara", 3) == []


def test_the_table_is_small() -> None:
    assert len(RULES) <= 30


def test_accents_may_be_characters_of_their_own() -> None:
    said = "Ich wohne in Köln und mag Crème brûlée."
    assert captured(unicodedata.normalize("NFD", said), "Zoë", 3) == captured(said, "Zoë", 3) != []


def test_a_turn_has_so_many_at_most_and_each_once() -> None:
    many = " ".join(f"I like {word}." for word in ("tea", "tea", "rain", "snow", "wind"))
    notes = [note.text for note in captured(many, None, 3)]
    assert notes == [f"The user: I like {word}." for word in ("tea", "rain", "snow")]
    assert len(captured(many, None, 1)) == 1


@settings(max_examples=30)
@given(st.text(max_size=400))
def test_any_text_is_read(said: str) -> None:
    assert all(note.text.startswith("Mara: ") for note in captured(f"I like {said}", "Mara", 3))


LONG: dict[str, tuple[str, str, str]] = {
    "lines": ("Here:", "\n", "x"),
    "quotes": ("", "\u201e", "x"),
    "tags": ("", "<a>", "x"),
    "spaces": ("I live in", " ", "Rome"),
    "commas": ("I like ", "a, ", "or b?"),
    "items": ("", "- I like\n", "tea"),
    "colons": ("Write a: ", "b: ", "c"),
}
"""By name: the beginning of a long message, what it repeats, and its end."""


@pytest.mark.parametrize("name", LONG)
def test_the_time_for_a_message_grows_as_its_length(name: str) -> None:
    first, again, last = LONG[name]

    def work(text: str) -> None:
        captured(text, "Mara", 3)
        statements(text)

    grows_in_proportion(work, lambda size: first + again * (size // len(again)) + last, 1_000)
