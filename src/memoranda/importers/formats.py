"""The formats that can be imported, and which of them a source has."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from memoranda.errors import InvalidInput
from memoranda.importers import (
    chatgpt,
    chroma,
    claude,
    claude_code,
    codex,
    gemini_cli,
    langgraph,
    letta,
    mcp_memory,
    mem0,
    notes,
    open_webui,
    pgvector,
    portable_memory,
    qdrant,
    zep,
)
from memoranda.importers.databases import Remote, is_url
from memoranda.importers.sources import Source
from memoranda.importers.values import Item


class Format(NamedTuple):
    """A format: a test of a source, its readers of a source or of a URL, whether it has conversations, and whether the
    caller may name its fields."""

    matches: Callable[[Source], bool]
    read: Callable[[Source], Iterator[Item]]
    conversations: bool = True
    read_url: Callable[[Remote], Iterator[Item]] | None = None
    has_fields: bool = False


def _never(source: Source) -> bool:
    """The test of a format that only URLs name."""
    return False


def _nothing(source: Source) -> Iterator[Item]:
    raise InvalidInput(
        "source", f"{source.path} is no URL; give one such as postgresql://user:password@host/name"
    )


SCHEMES = {"http": qdrant.NAME, "https": qdrant.NAME, "postgresql": pgvector.NAME, "postgres": pgvector.NAME}
"""The format of a URL for which none is named."""
FORMATS = {
    chatgpt.NAME: Format(chatgpt.matches, chatgpt.read),
    claude.NAME: Format(claude.matches, claude.read),
    claude_code.NAME: Format(claude_code.matches, claude_code.read),
    codex.NAME: Format(codex.matches, codex.read),
    gemini_cli.NAME: Format(gemini_cli.matches, gemini_cli.read),
    portable_memory.NAME: Format(portable_memory.matches, portable_memory.read, conversations=False),
    mem0.NAME: Format(mem0.matches, mem0.read, conversations=False),
    mcp_memory.NAME: Format(mcp_memory.matches, mcp_memory.read, conversations=False),
    letta.NAME: Format(letta.matches, letta.read),
    zep.NAME: Format(zep.matches, zep.read, conversations=False),
    chroma.NAME: Format(chroma.matches, chroma.read, conversations=False, has_fields=True),
    qdrant.NAME: Format(
        qdrant.matches, qdrant.read, conversations=False, read_url=qdrant.read_url, has_fields=True
    ),
    langgraph.NAME: Format(
        langgraph.matches, langgraph.read, conversations=False, read_url=langgraph.read_url, has_fields=True
    ),
    pgvector.NAME: Format(_never, _nothing, conversations=False, read_url=pgvector.read_url, has_fields=True),
    open_webui.NAME: Format(open_webui.matches, open_webui.read),
    notes.BASIC_MEMORY: Format(notes.is_basic_memory, notes.read_basic_memory, conversations=False),
    notes.OBSIDIAN: Format(notes.is_vault, notes.read_vault, conversations=False),
}
"""By name, in the order in which they are tried: a folder of notes may hold anything else, so it comes last."""
OWN = "memoranda"
"""The name of this program's own lines, see `memories.transfer`."""
ARCHIVE = "memoranda-archive"
"""The name of this program's archives of everything, see `app.archive`."""
NAMES = (OWN, ARCHIVE, *FORMATS)


def known(name: str) -> str:
    """The name itself, if it is that of a format.

    Raises:
        InvalidInput: it is not; the message lists the names.
    """
    if name not in NAMES:
        raise InvalidInput("from", f"{name!r} is no format; use one of {', '.join(NAMES)}")
    return name


def _of_url(url: str) -> str:
    """The name of the format of a URL.

    Raises:
        InvalidInput: its scheme is none of a database.
    """
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES:
        raise InvalidInput("source", f"{scheme}: is no scheme of a database; use one of {', '.join(SCHEMES)}")
    return SCHEMES[scheme]


def detected(path: Path) -> str:
    """The name of the format that the content of a file, folder or zip file shows.

    Raises:
        InvalidInput: it cannot be read, or shows none; the message lists the names.
    """
    if _is_archive(path):
        return ARCHIVE
    with Source(path) as source:
        if any(_is_own(source, file) for file in source.only):
            return OWN
        format_name = next((name for name, each in FORMATS.items() if each.matches(source)), None)
        if format_name is None and any(_is_like_own(source, file) for file in source.only):
            return OWN
    if format_name is None and source.problem is not None:
        raise InvalidInput("source", f"{path} cannot be read: {source.problem}")
    if format_name is None:
        raise InvalidInput("source", f"{path} shows no known format; name it as one of {', '.join(NAMES)}")
    return format_name


def format_of(path: str | Path, name: str | None) -> str:
    """The format of a source: `name` if given, else detected from its URL or content.

    Raises:
        InvalidInput: it is unknown, or the source shows none.
    """
    if name is not None:
        return known(name)
    return _of_url(str(path)) if is_url(path) else detected(Path(path))


def _is_archive(path: Path) -> bool:
    """Return True if a zip file has the parts of an archive of this program."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {"manifest.json", "rows/memories.jsonl"} <= {*archive.namelist()}
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return False  # not a readable zip file: the other formats report the problem


def _is_own(source: Source, file: str) -> bool:
    """Return True for an export of this program and for an empty file."""
    head = source.head(file)
    return "memoranda_export" in head[0] if head else source.is_empty(file)


def _is_like_own(source: Source, file: str) -> bool:
    """Return True for lines of the form of this program's exports; other systems have such lines, too."""
    return any(isinstance(each.get("content"), str) for each in source.head(file)[:1])
