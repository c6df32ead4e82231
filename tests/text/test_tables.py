"""Tables in plain text, and the names of their columns."""

from __future__ import annotations

import pytest

from memoranda.text.tables import MAX_COLUMNS, columns_at, tables, with_columns
from support.growth import grows_in_proportion


def rows(text: str) -> list[str]:
    return [row.text for table in tables(text) for row in table.rows]


def test_an_escaped_bar_is_part_of_its_cell() -> None:
    assert rows("| Part | Tags |\n|---|---|\n| Bolt | a\\|b |") == ["Part: Bolt; Tags: a|b"]
    assert rows("Tags:\nPart | Tags\nBolt | a \\|") == ["Part | Tags\nBolt | a \\|"]
    assert rows("a \\| b\nc \\| d") == []


@pytest.mark.parametrize(
    ("names", "row"),
    [
        ("Region | Q1 | Q2", "West | 1510 | 1490"),
        ("Branch | 2023 | 2024", "Oslo | 1510 | 1490"),
        ("| 2023/24 | 2024/25", "Oslo | 1,510 | 1,490"),
        ("Course | Room 1 | Room 2", "Yoga | Monday | Friday"),
        ("Item | Price", "Lamp 2 | 45"),
        ("| Free | Pro", "Login |  | yes"),
    ],
)
def test_a_first_row_that_names_the_columns(names: str, row: str) -> None:
    assert rows(f"Sheet\n{names}\n{row}\n{row}")[-1] == f"{names}\n{row}"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Lamp | 45", "Kettle | 30"),
        ("Lamp | 45.50 €", "Kettle | 30 €"),
        ("Nora | 2026-10-03", "Omar | 2026-10-04"),
        ("2023 | 2024", "1510 | 1490"),
        ("Anna | 1987", "Ben | 1990"),
        ("KB-1001 | Hex bolt", "KB-1002 | Wing nut"),
        ("Name | | Pro", "Lamp | no | yes"),
    ],
)
def test_a_first_row_that_is_like_the_others(first: str, second: str) -> None:
    assert rows(f"Sheet\n{first}\n{second}") == [first.replace("| |", "|  |"), second]


PARTS = (
    "# Parts\n\nPart | Price\nBolt | 5\nNut | 7\n\nAll net.\n\n|Tool|Price|\n|---|---|\n|Saw|90|\n|File|8|\n"
)


@pytest.mark.parametrize(
    ("at", "columns"),
    [
        ("# Parts", None),
        ("Part |", "Part | Price"),
        ("t | 5", "Part | Price"),
        ("Nut", "Part | Price"),
        ("All net", None),
        ("|Tool", "Tool | Price"),
        ("|---", "Tool | Price"),
        ("File", "Tool | Price"),
    ],
)
def test_the_columns_at_a_place(at: str, columns: str | None) -> None:
    assert columns_at(PARTS, [PARTS.index(at)]) == [columns]


def test_the_columns_at_several_places() -> None:
    places = [PARTS.index(word) for word in ("Bolt", "Nut", "net", "Saw", "File")]
    assert columns_at(PARTS, places) == ["Part | Price"] * 2 + [None] + ["Tool | Price"] * 2
    assert columns_at(PARTS, []) == []
    assert columns_at("a | b", [0]) == [None]


@pytest.mark.parametrize("first", ["Bolt | 5", f"Part | {'x' * MAX_COLUMNS}", "--- | ---", '| "a"'])
def test_a_table_whose_first_row_is_no_names(first: str) -> None:
    assert columns_at(f"{first}\nNut | 7\nSaw | 9\n", [len(first) + 1]) == [None]


def test_rows_below_known_columns() -> None:
    def below(text: str) -> list[str]:
        return [row.text for table in tables(text, "Part | Price | Stock") for row in table.rows]

    nut, saw = "Part | Price | Stock\nNut | 7 | 2", "Part | Price | Stock\nSaw | 9"
    assert below("Nut | 7 | 2\nSaw | 9") == [nut, saw]
    assert below("ut | 7\nNut | 7 | 2\nSaw | 9") == ["ut | 7", nut, saw]
    assert below("Part | Price | Stock\nNut | 7 | 2") == [nut]
    assert below("Nut | 7 | 2\n\nAll net.") == [nut]
    assert below("All net.\n\nNut | 7\nSaw | 9") == ["Nut | 7", "Saw | 9"]
    assert below("|Nut|7|2|\n|Saw|9||")[0] == nut


def test_a_text_below_its_columns() -> None:
    assert with_columns("Nut | 7", "Part | Price") == "Part | Price\nNut | 7"
    assert with_columns("|Part|Price|\n|---|---|", "Part | Price") == "|Part|Price|\n|---|---|"
    assert with_columns("words", None) == "words"


def test_the_time_for_columns_is_linear() -> None:
    def table(rows: int) -> str:
        return "Part | Price\n" + "Bolt | 5\n" * rows + "words\n" * rows + "a | b\nc\n" * rows

    grows_in_proportion(lambda text: columns_at(text, range(0, len(text), 100)), table, 5_000)
