"""Notebooks: text, code and results in order, without images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memoranda.readers import formats
from memoranda.readers.base import Document, Limits, Unreadable


def cell(kind: str, source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    lines = source.splitlines(keepends=True)
    made = {"cell_type": kind, "metadata": {}, "source": lines}
    return made | ({"outputs": list(outputs), "execution_count": 1} if kind == "code" else {})


def read(folder: Path, made: object, limits: Limits | None = None) -> Document:
    path = folder / "upload"
    path.write_text(json.dumps(made))
    return formats.read(path, "a.ipynb", limits or Limits())


def test_cells_and_text_outputs_without_images(tmp_path: Path) -> None:
    image = "iVBORw0KGgo" * 1_000
    shown = {"output_type": "display_data", "data": {"image/png": image, "text/plain": ["<Figure>"]}}
    printed = {
        "output_type": "stream",
        "name": "stdout",
        "text": ["\x1b[31mmean\x1b[0m 4.2\n", "# of rows 3\n"],
    }
    rich = {
        "output_type": "execute_result",
        "data": {"text/markdown": "**bold**", "text/plain": "<Markdown>"},
    }
    failed = {"output_type": "error", "ename": "ValueError", "evalue": "x", "traceback": ["..."]}
    found = read(
        tmp_path,
        {
            "cells": [
                cell("markdown", f"# Analyse für Müller\n\n![](data:image/png;base64,{image})\n\nWhy so?"),
                cell("code", "# read it\ntext = '```'\n", printed, shown, rich, failed),
                cell("code", ""),
                cell("raw", "raw words"),
            ],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
        },
    )
    assert found.text == (
        "# Analyse für Müller\n\n![]()\n\nWhy so?\n\n````python\n# read it\ntext = '```'\n````\n\n"
        "```\nmean 4.2\n# of rows 3\n```\n\n```\n<Figure>\n```\n\n**bold**\n\nraw words"
    )
    assert [(heading.start, heading.text) for heading in found.headings] == [(2, "Analyse für Müller")]
    assert (found.title, found.media_type) == ("Analyse für Müller", "application/x-ipynb+json")


@pytest.mark.parametrize("made", [{"worksheets": []}, [1], {"cells": [{"cell_type": "code", "source": 5}]}])
def test_what_is_no_notebook_is_read_as_json(tmp_path: Path, made: object) -> None:
    assert read(tmp_path, made).text == json.dumps(made)


def test_a_notebook_without_text_and_one_that_is_too_large(tmp_path: Path) -> None:
    empty = {"cells": [cell("code", " ")]}
    with pytest.raises(Unreadable, match="holds no text"):
        read(tmp_path, empty)
    with pytest.raises(Unreadable, match="is larger than 0 MB"):
        read(tmp_path, empty, Limits(unpacked_bytes=10))
