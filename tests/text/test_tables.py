"""Tables in plain text, and the names of their columns."""

from __future__ import annotations

import pytest

from memoranda.text.tables import tables


def rows(text: str) -> list[str]:
    return [row for table in tables(text) for row in table.rows]


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
