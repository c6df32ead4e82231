"""Tables in plain text, and the names of their columns."""

from __future__ import annotations

from memoranda.text.tables import tables


def rows(text: str) -> list[str]:
    return [row for table in tables(text) for row in table.rows]


def test_an_escaped_bar_is_part_of_its_cell() -> None:
    assert rows("| Part | Tags |\n|---|---|\n| Bolt | a\\|b |") == ["Part: Bolt; Tags: a|b"]
    assert rows("Tags:\nPart | Tags\nBolt | a \\|") == ["Part | Tags\nBolt | a \\|"]
    assert rows("a \\| b\nc \\| d") == []
