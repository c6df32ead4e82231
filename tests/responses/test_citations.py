"""Citations: markers and quotes become annotations in characters; whatever names no document stays text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.providers.chat.base import Source
from memoranda.providers.chat.extractive import UNLIKELY
from memoranda.responses.citations import annotations, quoted_memories
from support.growth import grows_in_proportion

HOLIDAY = "carry over at most five days of unused holiday"
OPEN = "opens at eight o'clock on every working day"
POLICY = f"Employees may {HOLIDAY} into the next year. 假期最多可以结转五天到下一年使用。"
SOURCES = [
    Source(number=1, text=POLICY, title="holiday.pdf", id="file-1"),
    Source(
        number=2,
        text="The café opens at eight o’clock on every working day.",
        title="café 🥐.md",
        id="file-2",
    ),
    Source(
        number=3,
        text="She said she likes tea more than she likes coffee.",
        title="note",
        id="mem_3",
        kind="memory",
    ),
    Source(number=12, text="Carry over at most five days, it says elsewhere.", title="b.txt", id="file-12"),
]


def cited(text: str, sources: list[Source] = SOURCES) -> list[tuple[str, str]]:
    """What is cited with what, after a look at the offsets."""
    found = annotations(text, sources)
    for one in found:
        assert text[one["start_index"] : one["end_index"]] == one["text"]
        assert one["index"] == one["start_index"]
    return [(one["text"], one["file_id"]) for one in found]


def test_a_marker_is_an_annotation_with_everything_a_client_wants() -> None:
    text = "Fünf Tage 🏖️ sind es höchstens [1]."
    assert annotations(text, SOURCES) == [
        {
            "type": "file_citation",
            "file_id": "file-1",
            "filename": "holiday.pdf",
            "index": text.index("[1]"),
            "text": "[1]",
            "start_index": text.index("[1]"),
            "end_index": text.index("[1]") + 3,
        }
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("So it is [1][2].", [("[1]", "file-1"), ("[2]", "file-2")]),
        ("So it is [1] [12].", [("[1]", "file-1"), ("[12]", "file-12")]),
        ("So it is [1, 12].", [("1", "file-1"), ("12", "file-12")]),
        ("So it is [2,9,1].", [("2", "file-2"), ("1", "file-1")]),
        ("So it is【1】和【2、12】。", [("【1】", "file-1"), ("2", "file-2"), ("12", "file-12")]),
        ("So it is 【12†holiday.pdf】.", [("【12†holiday.pdf】", "file-12")]),
        ("Twice [1] and again [1].", [("[1]", "file-1"), ("[1]", "file-1")]),
        ("Known [1], unknown [4], none [0], far [999999999].", [("[1]", "file-1")]),
        ("A memory is not a file [3]; nor is [x], [], [1a], [-1], [1.5] or (1).", []),
        ("In `rows[1]` it stays.\n```\nx = y[1]\n```\nEnd [1].", [("[1]", "file-1")]),
        ("", []),
    ],
)  # fmt: skip
def test_markers(text: str, expected: list[tuple[str, str]]) -> None:
    assert cited(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"It says “{HOLIDAY}”.", [(f"“{HOLIDAY}”", "file-1")]),
        (f'It says "{HOLIDAY}."', [(f'"{HOLIDAY}."', "file-1")]),
        (f"«{HOLIDAY}» it is", [(f"«{HOLIDAY}»", "file-1")]),
        (
            '"carry over at most\n five  days of unused"',
            [('"carry over at most\n five  days of unused"', "file-1")],
        ),
        ("规定写道「最多可以结转五天到下一年」。", [("「最多可以结转五天到下一年」", "file-1")]),
        (f"„{OPEN}“ heißt es", [(f"„{OPEN}“", "file-2")]),
        # its marker follows: the marker alone is the citation
        (f'"{HOLIDAY}" [1].', [("[1]", "file-1")]),
        (f'"{HOLIDAY}." [2, 1]', [("2", "file-2"), ("1", "file-1")]),
        # another's marker follows
        (f'"{HOLIDAY}" [2]', [(f'"{HOLIDAY}"', "file-1"), ("[2]", "file-2")]),
        # too short, not word for word, a memory's words, a marker inside
        ('"at most five days"', []),
        ('"carry over at most six days of unused holiday"', []),
        ('"likes tea more than she likes coffee"', []),
        ('"carry over at [1] most five days of unused holiday"', [("[1]", "file-1")]),
        # marks that do not pair do not hide the quote in the next paragraph
        (f'A 5" disk.\n\n"{HOLIDAY}"', [(f'"{HOLIDAY}"', "file-1")]),
    ],
)
def test_quotes(text: str, expected: list[tuple[str, str]]) -> None:
    assert cited(text) == expected


def test_of_two_documents_that_hold_a_quote_the_first_is_cited() -> None:
    assert cited("“carry over at most five days of unused”") == [
        ("“carry over at most five days of unused”", "file-1")
    ]
    both = [SOURCES[3], SOURCES[0]]
    assert cited("“over at most five days”", both) == [("“over at most five days”", "file-12")]


def test_without_documents_nothing_is_cited() -> None:
    assert cited("So it is [1] and [3].", []) == []
    assert cited("So it is [3].", [SOURCES[2]]) == []


MARKS = [
    *"[]【】“”«»「」`\n 1é👩",
    '"',
    "[1]",
    "[2]",
    "[3]",
    "[7]",
    "[1, 2]",
    "[1,7;12]",
    "【1】",
    "【2†a】",
    "```",
]
WORDS = ["\n\n", "\r\n", ", ", "e\u0301", "👩‍👩‍👧", "🇩🇪", HOLIDAY, OPEN, "最多可以结转五天到下一年使用"]
PIECES = st.sampled_from([*MARKS, *WORDS])
TEXTS = st.lists(PIECES | st.text(max_size=6), max_size=30).map("".join)


@given(TEXTS)
def test_whatever_is_said_spans_are_characters_in_order_apart_and_of_documents(text: str) -> None:
    found = annotations(text, SOURCES)
    end = 0
    for one in found:
        assert end <= one["start_index"] < one["end_index"] <= len(text)
        assert text[one["start_index"] : one["end_index"]] == one["text"]
        end = one["end_index"]
    names = {source.id: source.title for source in SOURCES if source.kind == "document"}
    assert all(names[one["file_id"]] == one["filename"] for one in found)


@given(
    st.text(alphabet=st.characters(exclude_characters='"`“”„«»「」『』[]【】'), max_size=40),
    st.lists(st.integers(0, 20), max_size=6),
)
def test_a_marker_is_cited_if_and_only_if_its_number_is_a_documents(between: str, numbers: list[int]) -> None:
    text = between + "".join(f"[{number}]{between}" for number in numbers)
    documents = {source.number for source in SOURCES if source.kind == "document"}
    expected = [f"[{number}]" for number in numbers if number in documents]
    assert [one["text"] for one in annotations(text, SOURCES)] == expected


@pytest.mark.parametrize(
    "mark", ["【1†", "[1, ", '"word word word word word ', "“word ", "`[1]", "```", "[1]"]
)
def test_a_long_answer_without_end_of_its_marks_takes_no_more_than_its_length(mark: str) -> None:
    sources: list[Any] = [Source(number=n, text="word " * 400, title="a", id=f"f{n}") for n in range(50)]
    grows_in_proportion(lambda text: annotations(text, sources), lambda n: mark * n, 2_500)


MEMORIES = [
    "My sister lives in Toronto. She moved there in May, for a job at the harbour.",
    "Tea at five.",
    "# Kitchen\n\n- The spare key is under the blue pot.\n- The kettle is red [1].",
]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("My sister lives in Toronto. (memory: Priya, 13 October 2026)", {0}),
        ("I found nothing that is likely to answer this. The closest: Tea at five. (from memory)", {1}),
        ("… there in May, for a job at the harbour. (from memory) Tea at five. (from memory)", {0, 1}),
        ("Tea at five. (from memory) The kettle is red (1). (from memory)", {0, 1, 2}),
        ("You keep it outside: the spare key is under the blue pot.", set()),
        ("You wrote: The spare key is under the blue pot, I think.", {2}),
        ("She “moved there in May, for a job”, you said.", {0}),
        ("She “moved there”, you said. Tea at five.", set()),
        ("Outside.", set()),
        ("", set()),
    ],
)
def test_quoted_memories_are_those_that_a_text_repeats_word_for_word(text: str, quoted: set[int]) -> None:
    assert quoted_memories(text, MEMORIES) == quoted


FACT, NOTE, ANA = "fact since 02 March 2026", "note", "Ana (she/her), 13 October 2026"
BONN = ["Mara lives in Bonn.", "Bonn.", "Tim asked whether Mara lives in Bonn or in Köln."]
LIKE = [
    "Ana keeps the key of the old house under the blue pot.",
    "Tim keeps the key of the old house under the blue pot.",
]
LONG = "Ana went to Rome, then by a slow train to Naples, and met Tim at the harbour there."


@pytest.mark.parametrize(
    ("text", "memories", "titles", "quoted"),
    [
        (f"Mara lives in Bonn. (memory: {FACT})", BONN, [FACT] * 3, {0}),
        (f"{UNLIKELY}Mara lives in Bonn. (memory: {FACT})", BONN, [FACT] * 3, {0}),
        (f"Bonn is old. [1] Mara lives in Bonn. (memory: {FACT})", BONN, [FACT] * 3, {0}),
        (f"Home 7: Mara lives in Bonn. (memory: {FACT})", BONN, [FACT] * 3, {0}),
        (f"Bonn. (memory: {FACT})", BONN, [FACT] * 3, {1}),
        (f"Ana says: {LIKE[1]} (memory: {NOTE})", LIKE, [NOTE] * 2, {1}),
        (f"{LIKE[0]} (memory: {NOTE})", LIKE, [NOTE] * 2, {0}),
        (f"… slow train to Naples, … the harbour there. (memory: {NOTE})", [LONG, "There."], [NOTE] * 2, {0}),
        # only memories with the title behind the quote
        (f"Bonn. (memory: {FACT})", ["Bonn.", "Bonn."], [NOTE, FACT], {1}),
        (f"City: Ulm (memory: {NOTE})", [*BONN, "Tea."], [FACT, NOTE, FACT, NOTE], {1, 3}),
        (f"Tea. (memory: {ANA})", ["Tea.", "Tea."], [ANA, NOTE], {0}),
        # no title, nothing before it
        ("The laptop (memory: 32 GB) is old. [1]", BONN, [FACT] * 3, set()),
        (f"He drew it (from memory). [1] Bonn. (memory: {FACT})", BONN, [FACT] * 3, {1}),
        (f"(memory: {FACT}) Bonn. (memory: {FACT})", BONN, [FACT] * 3, {1}),
        ("(from memory) Outside.", MEMORIES, [], set()),
    ],
)  # fmt: skip
def test_a_named_memory_is_quoted_if_it_has_the_whole_quote(
    text: str, memories: list[str], titles: list[str], quoted: set[int]
) -> None:
    assert quoted_memories(text, memories, titles) == quoted


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Your new laptop (memory: 32 GB) is on the desk.", set()),
        ("Tea at five. (memory: note)", set()),
        ("My sister lives in Toronto. (memory: note) Tea at five. (from memory)", {0}),
    ],
)
def test_a_language_model_names_no_memories(text: str, quoted: set[int]) -> None:
    assert quoted_memories(text, MEMORIES, ["note"] * 3, quotes_only=False) == quoted


def test_memories_named_often_take_no_more_than_the_length_of_the_text() -> None:
    grows_in_proportion(lambda text: quoted_memories(text, MEMORIES), lambda n: "(from memory) " * n, 2_000)
    grows_in_proportion(
        lambda text: quoted_memories(text, MEMORIES), lambda n: "tea (from memory) " * n, 2_000
    )
