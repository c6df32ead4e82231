"""What commands print: values as JSON, hits and tables as text, messages on standard error."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import typer

from memoranda.store.rows import speaker_name
from memoranda.types import Explanation, Highlight, Hit, Memory

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
UNSET: tuple[Any, ...] = (None, [], {}, "")
"""Values of fields that count as not set."""
SNIPPET = 240
LINE = 100
"""Characters of a text that is shown on one line."""


def emit(value: Any) -> None:
    """Print one JSON value on a line of standard output."""
    typer.echo(msgspec.json.encode(value).decode("utf-8"))


def say_evidence(level: str, probability: float) -> None:
    """Print how likely the results answer the question."""
    say(f"evidence: {level} (the answer is among these with a probability of {probability:.2f})")


def say_degraded(parts: Sequence[str]) -> None:
    """Print which parts of a search or answer failed; nothing if none did."""
    if parts:
        say(f"not the whole answer: {', '.join(parts)} could not answer in full; see memoranda doctor")


def say(text: str) -> None:
    """Print a message on standard error."""
    typer.echo(text, err=True)


def plain(text: str) -> str:
    """Return the text without control characters: a stored text must not control the terminal."""
    return _CONTROLS.sub("�", text)


def short_path(path: str) -> str:
    """Return a path relative to the current folder if it is inside it."""
    here = f"{Path.cwd()}{os.sep}"
    return path.removeprefix(here)


def memory_line(memory: Memory) -> str:
    """Return a line about a memory: its id, kind, day, the speaker of a message, and the beginning of its text."""
    who = speaker_name(memory) if memory.kind == "message" else None
    text = f"{beginning(who)}: {beginning(memory.content)}" if who else beginning(memory.content)
    return plain(f"{memory.id}  {memory.kind}  {memory.occurred_at:%Y-%m-%d}  {text}")


def memory_text(memory: Memory) -> str:
    """Return the fields of a memory that are set, then its text."""
    return f"{set_fields_text(memory, leave_out=('content',))}\n\n{plain(memory.content)}"


def fields_text(value: msgspec.Struct) -> str:
    """Return all fields of a value, a line each."""
    return plain("\n".join(rows(msgspec.to_builtins(value, builtin_types=(datetime,)))))


def set_fields_text(value: msgspec.Struct, leave_out: Container[str] = ()) -> str:
    """Return the fields of a value that are set, a line each. Unix seconds in `created_at` and the like are shown as
    moments."""
    fields = msgspec.to_builtins(value, builtin_types=(datetime,))
    shown = {
        name: datetime.fromtimestamp(part, UTC) if name.endswith("_at") and isinstance(part, int) else part
        for name, part in fields.items()
        if name not in leave_out and part not in UNSET
    }
    return plain("\n".join(rows(shown)))


def beginning(text: str, most: int = LINE) -> str:
    """Return the first characters of a text on one line, with an ellipsis if there are more."""
    words = " ".join(text.split())
    return plain(words if len(words) <= most else f"{words[:most]}…")


def rows(value: Mapping[str, Any], indent: int = 0) -> Iterator[str]:
    """Yield a mapping as aligned lines; nested mappings are indented."""
    width = max((len(key) for key in value), default=0)
    for key, part in value.items():
        name = f"{' ' * indent}{key:<{width}}"
        if isinstance(part, Mapping) and part:
            yield f"{' ' * indent}{key}"
            yield from rows(part, indent + 2)
        else:
            yield f"{name}  {_cell(part)}"


def _cell(value: Any) -> str:
    if value is None or value in ({}, []):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def hit_lines(number: int, hit: Hit, query: str, *, colour: bool) -> Iterator[str]:
    """Yield the lines of a hit: its scores and origin, the matching snippets, and its explanation if it has one."""
    memory = hit.memory
    similarity = "" if hit.similarity is None else f"  similarity {hit.similarity:.3f}"
    yield f"{number:>2}. score {hit.score:.3f}{similarity}  {origin(hit)}"
    yield from snippet_lines(memory.content, hit.highlights, query, colour=colour)
    yield f"    {memory.id}"
    yield from explanation_lines(hit.explanation)


def snippet_lines(text: str, highlights: Sequence[Highlight], query: str, *, colour: bool) -> Iterator[str]:
    """Yield the snippets of a text, or its beginning if there are none."""
    for snippet in highlights or [_beginning(text)]:
        before = "…" if snippet.start else ""
        after = "…" if snippet.end < len(text) else ""
        shown = " ".join(plain(snippet.text).split())
        yield f"    {before}{marked(shown, query) if colour else shown}{after}"


def explanation_lines(explanation: Explanation | None) -> Iterator[str]:
    """Yield every part of a score, a line each."""
    if explanation is not None:
        for key, value in msgspec.to_builtins(explanation).items():
            yield f"      {key:<17} {_part(value)}"


def _beginning(text: str) -> Highlight:
    return Highlight(text=text[:SNIPPET], start=0, end=min(SNIPPET, len(text)))


def _part(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_part(part)}" for key, part in value.items()) or "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)


def origin(hit: Hit) -> str:
    """Return where a memory comes from: its kind, file or source, scope, speaker and day."""
    memory = hit.memory
    parts: list[str] = [memory.kind]
    path, start, end = (memory.metadata.get(key) for key in ("path", "start", "end"))
    if isinstance(path, str) and start is not None:
        parts.append(f"{short_path(path)} [{start}:{end}]")
    elif memory.source:
        parts.append(memory.source)
    places = ("session_id", "user_id", "agent_id", "channel_id")
    parts += [f"{name[:-3]}:{value}" for name in places if (value := getattr(memory, name)) is not None]
    if memory.kind == "message":
        parts.append(f"{speaker_name(memory) or ''} {memory.occurred_at:%Y-%m-%d}".strip())
    if memory.tags:
        parts.append(" ".join(f"#{tag}" for tag in memory.tags))
    return plain("  ".join(parts))


def marked(text: str, query: str) -> str:
    """Return the text with the terms of the query in bold, matched as the keyword index matches them."""
    from memoranda.text.analysis import occurrences, wanted_by

    pieces, at = [], 0
    for start, end, _ in occurrences(text, wanted_by(query)):
        start = max(start, at)  # pairs of characters overlap
        pieces += [text[at:start], f"\x1b[1;33m{text[start:end]}\x1b[0m"]
        at = end
    return "".join([*pieces, text[at:]])
