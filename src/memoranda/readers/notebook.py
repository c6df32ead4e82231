"""Text of Jupyter notebooks: Markdown cells as they are, code and its text outputs in fences, without images."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

import msgspec

from memoranda.readers import detect, plain
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import Body

MEDIA_TYPE = detect.NOTEBOOK

Source: TypeAlias = str | list[str]
"""A text, or its lines with their ends."""

_IMAGE = re.compile(r"data:image/[^\s)\"'>]*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TICKS = re.compile("`{3,}")


class Data(msgspec.Struct, rename={"plain": "text/plain", "markdown": "text/markdown"}):
    """The same result in several media types."""

    plain: Source = ""
    markdown: Source = ""


class Output(msgspec.Struct):
    text: Source = ""
    data: Data = msgspec.field(default_factory=Data)


class Cell(msgspec.Struct):
    cell_type: str
    source: Source
    outputs: list[Output] = []


class Language(msgspec.Struct):
    name: str = ""


class Metadata(msgspec.Struct):
    language_info: Language = msgspec.field(default_factory=Language)


class Notebook(msgspec.Struct):
    """A notebook of version 4 of its format."""

    cells: list[Cell]
    metadata: Metadata = msgspec.field(default_factory=Metadata)


def read(path: Path, limits: Limits) -> Document:
    """Return the cells in order. The title is the first heading of level 1. What is no notebook is read as JSON."""
    if path.stat().st_size > limits.unpacked_bytes:
        raise Unreadable("invalid_file", f"is larger than {limits.unpacked_bytes >> 20:,} MB; split it")
    try:
        notebook = msgspec.json.decode(path.read_bytes(), type=Notebook)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return plain.json(path, limits)
    body = Body(limits)
    for cell in notebook.cells:
        _add(cell, notebook.metadata.language_info.name, body)
    document = body.document(MEDIA_TYPE)
    document.headings = list(plain.headings(document.text))
    document.title = next((heading.text for heading in document.headings if heading.level == 1), None)
    return document


def _add(cell: Cell, language: str, body: Body) -> None:
    source = "".join(cell.source)
    body.add(_fenced(source, language) if cell.cell_type == "code" else _IMAGE.sub("", source))
    for output in cell.outputs:
        if output.data.markdown:
            body.add(_IMAGE.sub("", "".join(output.data.markdown)))
        else:
            body.add(_fenced("".join(output.text or output.data.plain)))


def _fenced(text: str, language: str = "") -> str:
    text = _COLOUR.sub("", text).strip("\n")
    fence = max(["``", *_TICKS.findall(text)], key=len) + "`"
    return f"{fence}{language}\n{text}\n{fence}" if text.strip() else ""
