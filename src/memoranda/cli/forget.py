"""`memoranda forget`: what would be erased, and erasing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, cast

import msgspec
import typer

from memoranda.cli.memories import found_of
from memoranda.cli.options import (
    AnyScope,
    ConfigFile,
    Data,
    Filters,
    Json,
    Kinds,
    ScopeId,
    Settings,
    Since,
    Source,
    Tags,
    Until,
    selection_of,
)
from memoranda.cli.output import emit, memory_line, rows, say
from memoranda.cli.product import Verbs, configured, memories
from memoranda.errors import InvalidInput
from memoranda.text.json import compact_json
from memoranda.text.phrase import Phrase
from memoranda.types import ForgetFields, Memory, Receipt, SelectionFields

SHOWN = 10
"""Memories that a preview shows."""
MEMORIES_ALONE = ("kinds", "tags", "filters", "source")
"""Fields of a selection that mean memories and nothing else."""


def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The ids of memories; they go alone.")
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="WORDS", help="What holds these words.")] = None,
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    kind: Kinds = None,
    tag: Tags = None,
    filter_: Filters = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    yes: Annotated[bool, typer.Option("--yes", help="Erase it; without, only show what would be.")] = False,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Erase for good what ids, a scope, a text or other conditions name. Without --yes, show what would be erased."""
    fields = cast(
        ForgetFields,
        selection_of(
            scope=scope, scope_id=scope_id, kinds=kind, tags=tag, filters=filter_, source=source,
            since=since, until=until,
        ),
    )  # fmt: skip
    if text is not None:
        fields["text"] = text
    if not ids and not fields:
        raise InvalidInput(
            "", "name what to forget: ids, --scope, --text, --source, ...; everything is --scope all"
        )
    if ids and fields:
        raise InvalidInput("ID", f"goes alone, without {', '.join(fields)}: forget the one, then the other")
    with memories(configured(data, config, settings)) as verbs:
        if yes:
            receipt = verbs.forget(ids, **fields) if ids else verbs.forget(**fields)
            emit(receipt) if as_json else _erased(receipt)
        else:
            _preview(list(_meant(verbs, ids, fields)), fields, as_json=as_json)


def _meant(verbs: Verbs, ids: list[str] | None, fields: ForgetFields) -> Iterator[Memory]:
    """The memories that would be erased, archived and superseded ones too."""
    if ids:
        yield from found_of(verbs, ids)[0]
        return
    phrase = Phrase(words) if (words := fields.get("text")) is not None else None
    selection = cast(SelectionFields, {name: value for name, value in fields.items() if name != "text"})
    lines = verbs.export(**selection)
    next(lines)  # the header
    for line in lines:
        memory = msgspec.json.decode(line, type=Memory)
        if phrase is None or _holds(memory, phrase):
            yield memory


def _holds(memory: Memory, phrase: Phrase) -> bool:
    noted = compact_json(memory.tags), compact_json(memory.metadata)
    return phrase.within(memory.content, memory.source, memory.role) or phrase.within_json(*noted)


def _preview(meant: list[Memory], fields: ForgetFields, *, as_json: bool) -> None:
    everywhere = bool(fields) and not any(name in fields for name in MEMORIES_ALONE)
    counts = dict(Counter(one.kind for one in meant).most_common())
    if as_json:
        emit(
            {
                "dry_run": True,
                "memories": len(meant),
                "by_kind": counts,
                "only_memories": not everywhere,
                "data": meant[:SHOWN],
            }
        )
        return
    kinds = ", ".join(f"{number} {kind}" for kind, number in counts.items())
    typer.echo(f"{len(meant)} memories would be erased{': ' if kinds else ''}{kinds}")
    for memory in meant[:SHOWN]:
        typer.echo(f"  {memory_line(memory)}")
    if len(meant) > SHOWN:
        typer.echo(f"  and {len(meant) - SHOWN} more")
    if everywhere:
        typer.echo(
            "and what else was said or written there: messages, responses, conversations, logged questions, files"
        )
    say("nothing is erased yet; the same command with --yes erases it for good")


def _erased(receipt: Receipt) -> None:
    counts = receipt.counts or {"memories": 0}
    typer.echo("\n".join(["erased", *rows(counts, 2), f"receipt {receipt.tombstone}"]))
    say(receipt.note)
