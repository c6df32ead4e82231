"""`memoranda add`."""

from __future__ import annotations

from typing import Annotated

import typer

from memoranda.arguments import MemoryFields
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import moment, pairs, text_of
from memoranda.cli.output import say
from memoranda.types import Kind


@common_options(creates_folder=True)
def add(
    invocation: Invocation,
    content: Annotated[
        str, typer.Argument(metavar="TEXT", help="The text to remember; - reads it from standard input.")
    ],
    kind: Annotated[Kind, typer.Option(help="What it is.")] = "note",
    user: Annotated[str | None, typer.Option(metavar="ID", help="Whose memory it is.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="ID", help="The agent that learned it.")] = None,
    channel: Annotated[str | None, typer.Option(metavar="ID", help="The channel it was said in.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="The session it belongs to.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; repeat for more.")] = None,
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Metadata; a value may be JSON; repeat for more."),
    ] = None,
    role: Annotated[str | None, typer.Option(help="Who said it: user, assistant, ...")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    importance: Annotated[int, typer.Option(help="How much it matters, 0 and up.")] = 0,
    occurred_at: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="When it was said, in ISO 8601 [default: now].")
    ] = None,
    replaces: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A fact in whose place this fact holds; repeat for more."),
    ] = None,
) -> None:
    """Remember one text. The same text in the same scope is stored once."""
    fields = {
        "user_id": user, "agent_id": agent, "channel_id": channel, "session_id": session, "role": role,
        "source": source, "occurred_at": moment(occurred_at, "--occurred-at"),
    }  # fmt: skip
    new: MemoryFields = {
        "kind": kind,
        "tags": tag or [],
        "metadata": pairs(meta, "--meta"),
        "importance": importance,
        "replaces": replaces or [],
        **{name: value for name, value in fields.items() if value is not None},  # type: ignore[typeddict-item]
    }
    added = invocation.memories.add(text_of(content, "content"), **new)
    invocation.show(added, f"{added.memory.id}  {'remembered' if added.created else 'was there already'}")
    if not added.embedded and not invocation.as_json:
        say("its vector is still to be made; until then only its words are found")
