"""`memoranda forget`: erase, or preview what would be erased."""

from __future__ import annotations

from typing import Annotated, cast

import msgspec
import typer

from memoranda.arguments import ForgetFields, SelectionFields
from memoranda.cli.invocation import Invocation, common_options, selection_options
from memoranda.cli.output import emit, memory_line, rows, say
from memoranda.errors import InvalidInput
from memoranda.types import ForgetPreview, Receipt


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
            "", "name what to forget: ids, --user, --scope, --text, --source, ...; everything is --scope all"
        )
    if ids and fields:
        raise InvalidInput("ID", f"goes alone, without {', '.join(fields)}: forget the one, then the other")
    named = ids or None
    if yes:
        _show_receipt(invocation, invocation.memories.forget(named, **fields))
    else:
        _show_preview(invocation, invocation.memories.preview_forget(named, **fields))


def _show_preview(invocation: Invocation, preview: ForgetPreview) -> None:
    if invocation.as_json:
        emit({"dry_run": True, **msgspec.structs.asdict(preview)})
        return
    lines = ["would be erased", *rows(preview.counts or {"memories": 0}, 2)]
    for kind in preview.kinds:
        ended = f", {kind.ended} of them archived or superseded" if kind.ended else ""
        lines.append(f"{kind.count} of kind {kind.kind}{ended}")
        lines += [f"  {memory_line(memory)}" for memory in kind.examples]
        if kind.count > len(kind.examples):
            lines.append(f"  and {kind.count - len(kind.examples)} more")
    if preview.files:
        left = preview.counts["files"] - len(preview.files)
        lines += [
            "whole files",
            *(f"  {name}" for name in preview.files),
            *([f"  and {left} more"] if left else []),
        ]
    typer.echo("\n".join(lines))
    say("nothing is erased yet; the same command with --yes erases it for good")


def _show_receipt(invocation: Invocation, receipt: Receipt) -> None:
    counts = receipt.counts or {"memories": 0}
    invocation.show(receipt, "\n".join(["erased", *rows(counts, 2), f"receipt {receipt.tombstone}"]))
    if not invocation.as_json:
        say(receipt.note)
