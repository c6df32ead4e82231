"""`memoranda forget`: erase, or preview what would be erased."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, cast

import msgspec
import typer

from memoranda.cli.invocation import Invocation, common_options, selection_options
from memoranda.cli.memories import get_memories
from memoranda.cli.output import emit, memory_line, rows, say
from memoranda.cli.product import Memories
from memoranda.errors import InvalidInput
from memoranda.text.json import compact_json
from memoranda.text.phrase import Phrase
from memoranda.types import ForgetFields, Memory, Receipt, SelectionFields

SHOWN = 10
"""Memories that a preview shows."""
MEMORIES_ALONE = ("kinds", "tags", "filters", "source")
"""Fields of a selection that apply to memories only."""


@common_options()
@selection_options(without=("as_of", "archived"))
def forget(
    invocation: Invocation,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The ids of memories; they go alone.")
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="WORDS", help="What holds these words.")] = None,
    *,
    selection: SelectionFields,
    yes: Annotated[bool, typer.Option("--yes", help="Erase it; without, only show what would be.")] = False,
) -> None:
    """Erase for good what ids, a scope, a text or other conditions name. Without --yes, show what would be erased."""
    fields = cast(ForgetFields, selection)
    if text is not None:
        fields["text"] = text
    if not ids and not fields:
        raise InvalidInput(
            "", "name what to forget: ids, --scope, --text, --source, ...; everything is --scope all"
        )
    if ids and fields:
        raise InvalidInput("ID", f"goes alone, without {', '.join(fields)}: forget the one, then the other")
    if yes:
        receipt = invocation.memories.forget(ids, **fields) if ids else invocation.memories.forget(**fields)
        _show_receipt(invocation, receipt)
    else:
        _preview(invocation, list(_matching(invocation.memories, ids, fields)), fields)


def _matching(memories: Memories, ids: list[str] | None, fields: ForgetFields) -> Iterator[Memory]:
    """Yield the memories that would be erased, archived and superseded ones too."""
    if ids:
        yield from get_memories(memories, ids)[0]
        return
    phrase = Phrase(words) if (words := fields.get("text")) is not None else None
    selection = cast(SelectionFields, {name: value for name, value in fields.items() if name != "text"})
    lines = memories.export(**selection)
    next(lines)  # the header
    for line in lines:
        memory = msgspec.json.decode(line, type=Memory)
        if phrase is None or _contains(memory, phrase):
            yield memory


def _contains(memory: Memory, phrase: Phrase) -> bool:
    fields = compact_json(memory.tags), compact_json(memory.metadata)
    return phrase.within(memory.content, memory.source, memory.role) or phrase.within_json(*fields)


def _preview(invocation: Invocation, matching: list[Memory], fields: ForgetFields) -> None:
    everywhere = bool(fields) and not any(name in fields for name in MEMORIES_ALONE)
    counts = dict(Counter(memory.kind for memory in matching).most_common())
    if invocation.as_json:
        emit(
            {
                "dry_run": True,
                "memories": len(matching),
                "by_kind": counts,
                "only_memories": not everywhere,
                "data": matching[:SHOWN],
            }
        )
        return
    kinds = ", ".join(f"{number} {kind}" for kind, number in counts.items())
    typer.echo(f"{len(matching)} memories would be erased{': ' if kinds else ''}{kinds}")
    for memory in matching[:SHOWN]:
        typer.echo(f"  {memory_line(memory)}")
    if len(matching) > SHOWN:
        typer.echo(f"  and {len(matching) - SHOWN} more")
    if everywhere:
        typer.echo(
            "and what else was said or written there: messages, responses, conversations, logged questions, files"
        )
    say("nothing is erased yet; the same command with --yes erases it for good")


def _show_receipt(invocation: Invocation, receipt: Receipt) -> None:
    counts = receipt.counts or {"memories": 0}
    invocation.show(receipt, "\n".join(["erased", *rows(counts, 2), f"receipt {receipt.tombstone}"]))
    if not invocation.as_json:
        say(receipt.note)
