"""What is quoted when no language model answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.config.agent_sections import Model as Settings
from memoranda.errors import ModelRefused
from memoranda.providers.chat import open_model
from memoranda.providers.chat.base import Ask, Ended, Piece, Source, TextDelta, ToolCallDelta
from memoranda.providers.chat.extractive import NOTHING, NOTHING_TO_QUOTE, UNLIKELY
from memoranda.providers.chat.quoting import MAX_CHARS, MOST, Sentence, best
from support.growth import grows_in_proportion

MANUAL = """Warranty

The X200 pump is covered by a warranty of 24 months from the date of purchase [3]. Wear parts are excluded.
Registration is not needed. To make a claim, send the receipt to service@example.com. The pump is blue."""
SHIPPING = (
    "Shipping takes five days. The warranty does not cover damage by frost. Dr. Smith wrote this manual."
)
JAPANESE = "保証期間は購入日から2年です。色は青です。重さは3キロです。"
GERMAN = "Die Pumpe wiegt drei Kilo. Die Garantie gilt zwei Jahre ab dem Kauf. Sie ist blau."


def documents(*texts: str) -> list[Source]:
    return [Source(number=n, text=text, title=f"{n}.md") for n, text in enumerate(texts, 1)]


def answer(question: str, sources: list[Source], **fields: Any) -> list[Piece]:
    asked = {"messages": [{"role": "user", "content": question}], "sources": sources, "question": question}

    async def test() -> list[Piece]:
        return [piece async for piece in open_model(Settings()).answer(Ask(**asked | fields))]

    return asyncio.run(test())


def quotes_of(question: str, sources: list[Source]) -> list[Sentence]:
    return asyncio.run(best(question, sources))


def said(question: str, *texts: str) -> str:
    found = answer(question, documents(*texts))
    return "".join(piece.text for piece in found if isinstance(piece, TextDelta))


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("How long is the warranty of the X200 pump?",
         "The X200 pump is covered by a warranty of 24 months from the date of purchase (3). [1]"),
        ("Does the warranty cover frost damage?", "The warranty does not cover damage by frost. [2]"),
        ("Who has written the manual?", "Dr. Smith wrote this manual. [2]"),
        ("Where do I send claims?", "To make a claim, send the receipt to service@example.com. [1]"),
        ("保証期間はどのくらいですか", "保証期間は購入日から2年です。 [3]"),
        ("Wie lange gilt die Garantie?", "Die Garantie gilt zwei Jahre ab dem Kauf. [4]"),
    ],
)  # fmt: skip
def test_the_sentence_that_answers_is_quoted_first_of_all(question: str, quoted: str) -> None:
    assert quoted in said(question, MANUAL, SHIPPING, JAPANESE, GERMAN)


def test_a_short_cell_that_answers_is_quoted_beside_a_long_one_with_a_word_of_the_question() -> None:
    long = "A lamp of brushed brass with a linen shade, " * 12
    table = f"| Item | Description | Price |\n|--|--|--|\n| Lamp | {long} | 36 euros |\n"
    assert said("What is the price of the lamp?", table).endswith("…; Price: 36 euros [1]")


def test_the_best_quote_comes_first_then_others_in_the_order_of_the_sources() -> None:
    quotes = quotes_of(
        "warranty claim receipt frost Smith pump blue shipping days", documents(MANUAL, SHIPPING)
    )
    assert 2 <= len(quotes) <= MOST == 3
    places = [quote.place for quote in quotes]
    assert places[1:] == sorted(places[1:])
    question = "Does the warranty cover damage by frost within five days of shipping?"
    second = quotes_of(question, documents(SHIPPING, MANUAL))
    assert [quote.text for quote in second[:2]] == [
        "The warranty does not cover damage by frost.",
        "Shipping takes five days.",
    ]


PRICES = """Prices

Item | Price | Stock
Kettle | 30 euros | 12
Lamp | 45 euros | none

All prices are with tax."""


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("What is the price of the lamp?", "Item | Price | Stock\nLamp | 45 euros | none [1]"),
        ("How many kettles are in stock?", "Item | Price | Stock\nKettle | 30 euros | 12 [1]"),
        ("Are prices with tax?", "All prices are with tax. [1]"),
    ],
)
def test_a_row_is_quoted_with_the_first_row_of_its_table(question: str, quoted: str) -> None:
    assert said(question, PRICES).startswith(quoted)


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("| Item | Price |\n|---|---|\n| Lamp 2 | 45 |", "Item: Lamp 2; Price: 45"),
        ("Lamp | 45\nKettle | 30", "Lamp | 45"),
        ("Stock:\nItem | Price | Note\nLamp | 45", "Item | Price | Note\nLamp | 45"),
        ("Lamp | red\nKettle | blue", "Lamp | red"),
        ("Plans:\n| Free | Pro\nLogin |  | yes\nLamp |  | no", "| Free | Pro\nLamp |  | no"),
        ("Plans:\nName | Free\n| Lamp\nKettle | no", "Name | Free\n| Lamp"),
        ("| Item | Price\n|---|---\n| Lamp 2 | 45", "Item: Lamp 2; Price: 45"),
        ("Kettle | blue\nLamp | red", "Lamp | red"),
    ],
)
def test_tables_of_several_forms(table: str, row: str) -> None:
    assert said("lamp", table) == f"{row} [1]" or row in said("lamp", table)


def test_a_row_of_a_table_that_goes_on_is_quoted_with_the_names_of_its_columns() -> None:
    rows = "Lamp | 45 | none\nKettle | 30 | 12"
    source = Source(number=1, text=rows, title="a.csv", columns="Item | Price | Stock")
    found = answer("What is the price of the kettle?", [source])
    quoted = "".join(piece.text for piece in found if isinstance(piece, TextDelta))
    assert quoted.startswith("Item | Price | Stock\nKettle | 30 | 12 [1]")


def test_a_heading_is_not_quoted_and_counts_for_the_sentence_below_it() -> None:
    text = (
        "Delivery\n\nFive days within the country.\n\n# Returns\n\nThirty days, unused.\n\nWe like feedback."
    )
    assert said("How long does delivery take?", text) == "Five days within the country. [1]"
    assert said("How long for returns?", text) == "Thirty days, unused. [1]"


def test_what_is_cut_off_goes_behind_what_is_whole() -> None:
    cut = "of the pump is limited to frost damage and the like, which is not covered at all by us. " * 2
    text = f"{cut}The pump is covered against frost damage. And so on and on. The frost damage of the"
    assert said("Is frost damage of the pump covered?", text).startswith(
        "The pump is covered against frost damage."
    )


@given(st.text(alphabet="ab |\n#.-:", max_size=120), st.text(alphabet="ab ", max_size=12))
def test_whatever_a_text_looks_like_quotes_are_few_and_of_it(text: str, question: str) -> None:
    quotes = quotes_of(question, documents(text))
    assert len(quotes) <= MOST
    letters = set(text)
    assert all(set(quote.text) <= letters | set(";: |\n") for quote in quotes)


def test_a_sentence_that_says_nothing_new_is_left_out() -> None:
    text = said("frost damage warranty", SHIPPING, "THE WARRANTY does not cover damage by frost!", SHIPPING)
    assert text.count("[") == 1


def test_the_earlier_source_goes_before_its_equal() -> None:
    assert said("frost", "It was frost.", "There was frost.") == "It was frost. [1]"


def test_without_a_common_word_the_first_sentence_that_is_no_heading_is_quoted() -> None:
    assert said("Qui a écrit cela ?", "Pumps\n\nThe pump was made in Ghent by hand.", SHIPPING) == (
        "The pump was made in Ghent by hand. [1]"
    )


def test_memories_are_named_and_have_no_marker() -> None:
    memory = Source(number=2, kind="memory", text="Ada bought the pump in March.", title="2026-03-02")
    found = answer("Who bought the pump?", [*documents(SHIPPING), memory])
    assert found[0] == TextDelta("Ada bought the pump in March. (memory: 2026-03-02)")
    unnamed = Source(number=1, kind="memory", text="Ada bought the pump in March.", title="")
    assert answer("Who bought the pump?", [unnamed])[0] == TextDelta(
        "Ada bought the pump in March. (from memory)"
    )


def test_a_source_with_a_mark_is_cited_by_it() -> None:
    (manual,) = documents(GERMAN)
    marked = msgspec.structs.replace(manual, mark="Doc file-1/Chunk 0")
    (piece, _) = answer("Welche Garantie gilt?", [marked])
    assert isinstance(piece, TextDelta)
    assert piece.text == "Die Garantie gilt zwei Jahre ab dem Kauf. (Doc file-1/Chunk 0)"


def test_markers_of_the_text_itself_are_no_citations() -> None:
    assert said("frost", "Frost breaks pumps [7], as is known [8, 9-11].") == (
        "Frost breaks pumps (7), as is known (8, 9-11). [1]"
    )


def test_code_is_quoted_as_it_is() -> None:
    assert said(
        "How is the matrix addressed?", "The matrix is addressed as `m[1][3]`, its rows as rows[0] [1]."
    ) == ("The matrix is addressed as `m[1][3]`, its rows as rows[0] (1). [1]")


COMMANDS = """## Folders

A folder is moved with everything in it.

```sh
memoranda search folder --limit 3 | head
memoranda index docs | tail      # what is moved in the folder since
```

Nothing else is needed."""


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("How is a folder moved?", "A folder is moved with everything in it. [1]"),
        ("search limit", "`memoranda search folder --limit 3 | head` [1]"),
        ("What else is needed?", "Nothing else is needed. [1]"),
    ],
)
def test_a_line_of_code_is_quoted_alone_and_rather_not(question: str, quoted: str) -> None:
    assert said(question, COMMANDS) == quoted


def test_a_very_long_line_of_code_stays_code() -> None:
    assert said("limit", f"```sh\nlimit a {'word ' * 100}\n```").endswith("word …` [1]")


@pytest.mark.parametrize("begin", [COMMANDS.index("memoranda search"), COMMANDS.index("memoranda index")])
def test_a_text_may_begin_and_end_inside_code(begin: int) -> None:
    part = COMMANDS[begin:] + "\n\n```python\nlimit = folder[0]"
    assert said("What else is needed?", part) == "Nothing else is needed. [1]"
    assert said("limit", part.replace("--limit", "")) == "`limit = folder[0]` [1]"


def test_prose_around_one_fence_is_no_code() -> None:
    text = "First you set the name. Then the port is set to 8377.\n\n```\nmemoranda serve"
    assert said("What is the port set to?", text) == "Then the port is set to 8377. [1]"
    ruled = "The meter is read in May.\n\nUsage\n~~~~~\n\nPort 8377 is used."
    assert said("When is the meter read?", ruled) == "The meter is read in May. [1]"


def test_a_list_of_numbers_is_no_citation() -> None:
    assert (
        said("probability", "The probability is in [0, 1] here.") == "The probability is in (0, 1) here. [1]"
    )


def test_a_question_answers_none_but_leads_to_what_follows() -> None:
    asked = [Source(number=1, kind="memory", text="Where do I live?", title="Monday")]
    told = Source(number=2, kind="memory", text="I have lived in Cologne since March.", title="Sunday")
    assert answer("Where do I live again?", [*asked, told])[0] == TextDelta(f"{told.text} (memory: Sunday)")
    assert answer("Where do I live again?", asked)[0] == TextDelta("Where do I live? (memory: Monday)")
    faq = "Pumps need care. Is frost covered by the warranty? Only in the first winter. Pumps are blue."
    assert said("Is frost covered by the warranty?", faq).startswith("Only in the first winter. [1]")


def memory(text: str, title: str = "2026-03-02", **fields: Any) -> Source:
    return Source(number=0, kind="memory", text=text, title=title, **fields)


def remembered(question: str, *sources: Source) -> str:
    found = answer(question, list(sources))
    return "".join(piece.text for piece in found if isinstance(piece, TextDelta))


def test_a_statement_with_a_common_word_goes_before_a_question_with_rare_ones() -> None:
    said = [memory(f"The fair has {what}.") for what in ("stalls", "music", "lamps", "cakes", "a raffle")]
    text = remembered(
        "In which town is the summer fair?", memory("Where is our summer fair this year?"), *said
    )
    assert text.startswith("The fair has stalls.")
    assert "?" not in text


def test_what_something_else_took_the_place_of_is_not_quoted_of_a_summary() -> None:
    old = "We picked the blue tent for the summer fair."
    fact = memory("The red tent was picked", form="fact", about=f"Hello everybody. {old}")
    summary = memory(f"Mia: Hello. {old}\nTom: Good.", "session_summary", form="summary")
    assert remembered("Which tent was picked for the summer fair?", summary, fact) == (
        "The red tent was picked (memory: 2026-03-02)"
    )


def test_a_summary_is_quoted_beside_a_fact_only_for_further_words_of_the_question() -> None:
    fact = memory("The fair opens on 15 May", form="fact")
    summary = memory(
        "Mia: the fair opens on 8 May or 15 May.\n\nTom: the band costs 90 euros.", form="summary"
    )
    assert remembered("When does the fair open?", fact, summary) == f"{fact.text} (memory: 2026-03-02)"
    assert "90 euros" in remembered("When does the fair open, and what does the band cost?", fact, summary)
    assert "8 May" in remembered("When does the fair open?", summary)


def test_a_short_fact_is_no_fragment() -> None:
    sources = [memory("The fair is in Hull", form="fact"), memory("everybody liked the fair very much")]
    assert remembered("Where is the fair?", *sources).startswith("The fair is in Hull")


@pytest.mark.parametrize(
    ("question", "sources", "quoted"),
    [
        (
            "When is the flight to Rome?",
            [
                memory("Did you book the flight to Rome?"),
                memory("Not yet.", question="Did you book the flight to Rome?"),
                memory("I booked the flight to Rome for 3 May."),
            ],
            "I booked the flight to Rome for 3 May.",
        ),
        (
            "Where did Anna want to meet?",
            [
                memory("Shall we meet at the Blue Note at 8?", "Anna, 2026-03-02"),
                memory("I love jazz.", "Anna, 2026-03-02"),
                memory("My new car is red.", "Anna, 2026-03-03"),
            ],
            "Shall we meet at the Blue Note at 8?",
        ),
        (
            "Can you ship to Norway?",
            [
                memory("| Answer | Question |\n|---|---|\n| Yes, from 50 EUR | Can we ship to Norway? |"),
                memory("We ship parcels daily."),
            ],
            "Yes, from 50 EUR",
        ),
        (
            "Where does Anna work?",
            [
                memory(
                    "Tim lives in Rome",
                    form="fact",
                    about="I live in Berlin. My sister Anna works at Siemens.",
                ),
                memory("My sister Anna works at Siemens as an engineer."),
            ],
            "My sister Anna works at Siemens as an engineer.",
        ),
        (
            "Where is the server room?",
            [
                Source(number=0, text="Welcome to the company handbook.", title="handbook"),
                Source(number=0, text="The server room must be locked.", title="handbook"),
                memory("The server room is in the basement.", form="summary"),
            ],
            "The server room is in the basement.",
        ),
    ],
)
def test_what_answers_is_not_left_out(question: str, sources: list[Source], quoted: str) -> None:
    assert quoted in remembered(question, *sources)


def test_a_reply_has_the_words_of_its_question() -> None:
    question = memory("who hid the green ladder of the shed")
    reply = memory("it hangs in the barn", "Tom", question=question.text)
    assert remembered("Where is the green ladder?", question, reply) == "it hangs in the barn (memory: Tom)"
    quote = memory("I moved to Lisbon. (memory: Ana)", "assistant", question="Where do I live?")
    assert remembered("Where do I live?", quote) == "I moved to Lisbon. (memory: assistant)"


def test_a_very_long_sentence_is_quoted_up_to_a_word() -> None:
    text = said("frost", "frost " + "word " * 500 + "👩‍👩‍👧" * 300)
    assert text.endswith("word … [1]")
    assert len(text) < 450


LEASE = (
    "This agreement between Northwind Properties and the Blue Heron bakery, which is entered into in the"
    + " presence of both parties and of the witnesses that they name," * 6
    + " begins on 1 October 2024 and ends on 30 September 2027 unless a party gives notice."
)


def test_of_a_very_long_sentence_the_parts_with_words_of_the_question_are_quoted() -> None:
    text = said("When does the agreement between Northwind and Blue Heron end?", LEASE)
    assert text.startswith("This agreement between Northwind Properties and the Blue Heron bakery, ")
    assert " … " in text
    assert "ends on 30 September 2027" in text
    assert text.endswith(" [1]")
    assert said("Who are the parties of the agreement?", LEASE).endswith(" … [1]")
    assert said("notice", LEASE).startswith("… ")
    headed = said("When does release 2.6.4 end?", f"## Release 2.6.4 of {'it ' * 120}\n\n{LEASE}")
    assert headed.startswith("Release 2.6.4 of it it ")
    assert "ends on 30 September 2027" in headed


@pytest.mark.parametrize("rule", ["---|" * 22 + "\n", ""])
def test_of_a_very_long_row_the_cells_with_words_of_the_question_are_quoted(rule: str) -> None:
    names = ["Item", *(f"Property {chr(64 + n)} description" for n in range(1, 22))]
    names[19] = "Warranty"
    rows = [[item, *("some value" for _ in names[1:])] for item in ("Lamp", "Kettle")]
    rows[0][19] = "36 months"
    table = "".join(f"{' | '.join(row)}\n{rule if row is names else ''}" for row in (names, *rows))
    text = said("What is the warranty of the lamp?", f"Catalogue.\n\n{table}")
    if rule:
        assert text.startswith("Item: Lamp; Property A description: some value; ")
        assert "some value; …; Warranty: 36 months; … [1]" in text
    else:
        assert text.startswith("Item | Property A description | ")
        assert " | … | Warranty | …\nLamp | some value | " in text
        assert " | … | 36 months | … [1]" in text
    assert len(text) < 450


def test_of_a_very_long_cell_the_parts_with_words_of_the_question_are_quoted() -> None:
    text = said(
        "How long is the notice?", f"| No | Text |\n|--|--|\n| 7 | {'and so on ' * 60}notice: 30 days |"
    )
    assert text.startswith("No: 7; Text: … ")
    assert text.endswith("notice: 30 days [1]")


WORDS = st.lists(
    st.sampled_from(["lamp", "so", "the price", "é" * 9, "x" * 70, "e" + "\u0301" * 50]), min_size=1
)
CELLS = st.lists(WORDS.map(" ".join), min_size=2, max_size=30)
ASKED = st.sampled_from(["lamp", "price of the lamp", "price of page 1", "none"])


@given(WORDS.map(" ".join), st.sampled_from(["", "Page 1\n\n", f"# Page 1 {'of it ' * 70}\n\n"]), ASKED)
def test_a_quote_of_prose_is_short_and_of_the_text(text: str, heading: str, question: str) -> None:
    for quote in quotes_of(question, documents(f"{heading}{text}")):
        assert len(quote.text) <= MAX_CHARS + len(" …")
        said = quote.text.rpartition(": ")[2]
        assert all(part.strip() in text for part in said.split("…"))


@given(CELLS, CELLS, st.sampled_from(["", "--|--\n"]), ASKED)
def test_a_quote_of_a_row_is_short_and_of_its_cells(
    names: list[str], row: list[str], rule: str, question: str
) -> None:
    for quote in quotes_of(question, documents(f"Some.\n\n{' | '.join(names)}\n{rule}{' | '.join(row)}"))[:1]:
        assert len(quote.text) <= MAX_CHARS + len(" …")
        parts = re.split(r"…|\n|\||; |: ", quote.text)
        assert all(any(part.strip() in cell for cell in ["Some.", *names, *row]) for part in parts)


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("What is the material of PartX?", "PartX,metal,99,blue"),
        ("What went wrong on volume zebra?", "2024-05-01 11:00:00 ERROR disk full on volume zebra"),
    ],
)
def test_a_record_is_quoted_alone(question: str, quoted: str) -> None:
    parts = "".join(f"Part{chr(n)},wood,{n},red\n" for n in range(65, 88))
    log = "".join(f"2024-05-01 10:00:{n} INFO worker started job {n} in pool 3\n" for n in range(10, 30))
    table = f"Part,Stuff,Weight,Colour\n{parts}PartX,metal,99,blue\n"
    assert said(
        question, table, f"{log}2024-05-01 11:00:00 ERROR disk full on volume zebra\n{log}"
    ).startswith(quoted)


def test_a_long_sentence_on_several_lines_is_no_list_of_records() -> None:
    wrapped = "The pump of the old boat\n" + "and of the yellow boat beside it, which is\n" * 12 + "leaks."
    assert said("Which pump leaks?", wrapped).startswith("The pump of the old boat and of the yellow boat")


CAKE = (
    "# Apple cake\n\n- 1 kg apples\n- 4 eggs\n\nAdd the eggs one by one.\nLet the cake cool"
    " before you cut the apple cake.\n\nBaking: 50 minutes at 180 degrees."
)
ANSWERS = (
    "**How long does delivery take?**\n\nIt takes 3 to 5 days.\n\n**Can I return it?**\n\nYes, in 30 days."
)
HOUSE = (
    "Vor dem ersten Start ist die Anlage zu entlüften. Der Mieter zahlt eine Kaution von 2.940 Euro in Raten."
)
RELEASES = (
    "# Releases\n\n## 2.6.4 - 28 September 2026\n\n- Fixed: wrong VAT.\n\n## News\n\nDark mode is there."
)


@pytest.mark.parametrize(
    ("question", "text", "quoted"),
    [
        ("How long does delivery take?", ANSWERS, "It takes 3 to 5 days. [1]"),
        ("How many eggs for the apple cake?", CAKE, "- 4 eggs [1]"),
        ("At which temperature is the apple cake baked?", CAKE, "Baking: 50 minutes at 180 degrees. [1]"),
        ("Wie hoch ist die Kaution?", HOUSE, "Der Mieter zahlt eine Kaution von 2.940 Euro in Raten. [1]"),
        ("When was version 2.6.4 released?", RELEASES, "2.6.4 - 28 September 2026: Fixed: wrong VAT. [1]"),
        ("What is the news?", RELEASES, "Dark mode is there. [1]"),
    ],
)
def test_what_the_question_asks_for_is_quoted_first(question: str, text: str, quoted: str) -> None:
    assert said(question, text).startswith(quoted)


def test_each_quote_is_a_piece() -> None:
    found = answer("warranty frost shipping days", documents(SHIPPING))
    texts = [piece.text for piece in found if isinstance(piece, TextDelta)]
    assert len(texts) == 2
    assert all(text.endswith("[1]") for text in texts)


def test_what_probably_does_not_answer_is_said_to_be_the_closest() -> None:
    texts = [
        piece.text for piece in answer("How long is the warranty?", documents(MANUAL), evidence="none")[:-1]
    ]  # type: ignore[union-attr]
    assert len(texts) == 1
    assert texts[0].startswith(f"{UNLIKELY}The X200 pump")
    assert UNLIKELY not in said("How long is the warranty?", MANUAL)


def test_with_nothing_to_quote_it_says_so() -> None:
    assert answer("anything?", [])[0] == TextDelta(NOTHING_TO_QUOTE)
    messages = [
        {"role": "user", "content": "anything?"},
        {"role": "tool", "tool_call_id": "1", "content": "[]"},
    ]
    assert answer("anything?", [], messages=messages)[0] == TextDelta(NOTHING)
    assert answer("anything?", documents("", " \n"))[0] == TextDelta(NOTHING_TO_QUOTE)


def function(name: str, *fields: str) -> dict[str, Any]:
    properties = {field: {"type": "string"} for field in fields}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


OFFERED = [
    function("file_search", "query"),
    function("vector_memory_search", "query", "limit"),
    function("memory_write", "text"),
    function("my_file_search", "pattern"),
    {"type": "function", "function": {"name": "now"}},
]


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        (None, ["file_search", "vector_memory_search"]),
        ("auto", ["file_search", "vector_memory_search"]),
        ("required", ["file_search", "vector_memory_search"]),
        ("none", []),
        ({"type": "function", "function": {"name": "file_search"}}, ["file_search"]),
        ({"type": "function", "function": {"name": "now"}}, []),
    ],
)
def test_searches_alone_are_called_and_as_the_choice_allows(choice: Any, called: list[str]) -> None:
    found = answer("Where is it?", [], tools=OFFERED, tool_choice=choice)
    calls = [piece for piece in found if isinstance(piece, ToolCallDelta)]
    assert [call.name for call in calls] == called
    assert [call.arguments for call in calls] == ['{"query":"Where is it?"}'] * len(called)
    assert len({call.id for call in calls}) == len(called)
    assert isinstance(found[-1], Ended)
    assert found[-1].reason == ("tool_calls" if called else "stop")


def test_results_of_an_earlier_question_do_not_answer_this_one() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "1", "content": "x"},
                {"role": "assistant", "content": "y"}, {"role": "user", "content": "b"}]  # fmt: skip
    assert isinstance(answer("b", [], messages=messages, tools=OFFERED)[0], ToolCallDelta)


def test_the_bound_on_the_answer_leaves_whole_sentences() -> None:
    sources = documents(SHIPPING)
    whole = answer("warranty frost shipping days", sources)
    short = answer("warranty frost shipping days", sources, max_tokens=10)
    assert short[0] == whole[0]
    assert [isinstance(piece, TextDelta) for piece in short].count(True) == 1
    assert short[-1] == Ended("length", whole[-1].usage, "extractive")  # type: ignore[union-attr]


def test_a_form_that_quotes_cannot_have_is_refused() -> None:
    with pytest.raises(ModelRefused, match="cannot be given the form"):
        answer("x", documents(MANUAL), response_format={"type": "json_object"})
    assert answer("x", documents(MANUAL), response_format={"type": "text"})


@pytest.mark.parametrize(
    ("size", "sources"),
    [
        (1, lambda n: documents(*[f"{MANUAL} {SHIPPING} Number {at}. " * 20 for at in range(n)])),
        (20, lambda n: documents(f"{MANUAL} {SHIPPING} " * n)),
    ],
    ids=["many", "long"],
)
def test_many_and_long_sources_take_no_more_than_their_length(
    size: int, sources: Callable[[int], list[Source]]
) -> None:
    def quoted(given: list[Source]) -> None:
        first = quotes_of("Does the warranty cover frost damage?", given)[0]
        assert first.text.startswith("The warranty does not cover")

    grows_in_proportion(quoted, sources, size)


def test_of_two_sources_that_contradict_each_other_both_are_quoted() -> None:
    first = "# Project Falcon, 14 September\n\n- The launch of Falcon is moved to 15 October.\n- Tom tests the app."
    second = "# Project Falcon, 5 October\n\n- The launch of Falcon is moved again, to 3 November.\n- The app is out."
    text = said("When is the launch of Falcon?", first, second)
    assert text == (
        "- The launch of Falcon is moved to 15 October. [1] - The launch of Falcon is moved again, to 3 November. [2]"
    )
    other = said("When is the launch of Falcon?", first, "The launch of Kestrel is on 3 November.")
    assert "Kestrel" not in other
