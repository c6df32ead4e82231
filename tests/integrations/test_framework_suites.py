"""The published test suites of agent frameworks, and the table of their results in the docs."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.framework_suites import HEAD, PAGE, SUITES, Suite, run, written


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.adapter)
def test_a_suite_has_the_result_that_the_docs_tell(suite: Suite, tmp_path: Path) -> None:
    ran = run(suite, tmp_path)
    assert not ran.failed, ran.printed
    assert ran.row() in PAGE.read_text("utf-8"), f"the table has another result than {ran.row()}"


def test_every_suite_has_one_row() -> None:
    table = PAGE.read_text("utf-8").split(HEAD)[1].split("\n\n")[0]
    assert [row.split(" | ")[0][2:] for row in table.splitlines()] == [suite.adapter for suite in SUITES]


def test_a_row_is_replaced_or_added() -> None:
    page = f"text\n\n{HEAD}| a | x 1 | s | 1 / 1 |\n| b | y 1 | s | 1 / 1 |\n\nmore\n"
    order = ["a", "c", "b"]
    assert written(page, "| a | x 2 | s | 2 / 2 |\n", order) == page.replace(
        "| a | x 1 | s | 1 / 1 |", "| a | x 2 | s | 2 / 2 |"
    )
    rows = "| a | x 1 | s | 1 / 1 |\n| c | z | s | 1 / 1 |\n| b | y 1 | s | 1 / 1 |\n\nmore"
    assert rows in written(page, "| c | z | s | 1 / 1 |\n", order)
