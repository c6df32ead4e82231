"""`memoranda export` and `memoranda import`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from memoranda.cli.opening import configured, memories
from memoranda.cli.options import (
    AnyScope,
    ConfigFile,
    Data,
    Json,
    Kinds,
    Scope,
    ScopeId,
    Settings,
    kinds_of,
    scope_of,
)
from memoranda.cli.show import emit, say


def export(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file [default: standard output]."),
    ] = None,
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    kind: Kinds = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="With the vectors, so that an import needs no model.")
    ] = False,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Write memories as JSONL: a header, then one memory a line. With --json, a receipt when there is a file."""
    one = scope_of(scope, scope_id)
    fields: dict[str, Any] = {"scopes": [one] if one else None, "kinds": kinds_of(kind)}
    with memories(configured(data, config, settings)) as verbs:
        if output is None:
            for line in verbs.export(vectors=vectors, **fields):
                sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            return
        count = verbs.export_to(output, vectors=vectors, **fields)
    if as_json:
        emit({"memories": count, "output": str(output)})
    else:
        typer.echo(f"{count} memories written to {output}")


def import_(
    file: Annotated[str, typer.Argument(help="An export (JSONL, or a JSON array); - reads standard input.")],
    scope: Scope = None,
    scope_id: ScopeId = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Take an export in. What is there already is left alone, so importing twice changes nothing."""
    source: str | Iterable[bytes] = sys.stdin.buffer if file == "-" else file
    with memories(configured(data, config, settings)) as verbs:
        done = verbs.import_from(source, scope=scope_of(scope, scope_id, everything=False))
    if as_json:
        emit(done)
    else:
        typer.echo(f"{done.read} memories read: {done.created} new, {done.present} were there already")
    if done.conflicts:
        first = ", ".join(done.conflicts[:3])
        say(f"{len(done.conflicts)} ids name another text here and were left alone: {first}")
        raise typer.Exit(1)
