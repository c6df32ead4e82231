"""`memoranda context`."""

from __future__ import annotations

from typing import Annotated

import typer

from memoranda.cli.index_documents import existing
from memoranda.cli.options import (
    AnyScope,
    ConfigFile,
    Data,
    Json,
    Kinds,
    ScopeId,
    Settings,
    kinds_of,
    moment,
    scope_of,
)
from memoranda.cli.output import emit, plain, say, say_degraded, say_evidence
from memoranda.cli.product import configured, house


def context(
    question: Annotated[str, typer.Argument(help="What a model is to be asked.")],
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    store: Annotated[
        list[str] | None,
        typer.Option(metavar="ID|NAME", help="Search this vector store, too; repeat for more."),
    ] = None,
    budget: Annotated[int, typer.Option(help="Tokens, all in all.")] = 2_000,
    limit: Annotated[
        int | None, typer.Option(help="How many memories at most; without it, as many as fit.")
    ] = None,
    kind: Kinds = None,
    neighbours: Annotated[int, typer.Option(help="Messages to tell on either side of one found.")] = 0,
    system: Annotated[str | None, typer.Option(help="Rules that go before everything.")] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="As it was at this moment, in ISO 8601.")
    ] = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Print the prompt that answers a question: documents, memories, earlier sessions, within a budget."""
    one = scope_of(scope, scope_id)
    with house(configured(data, config, settings)) as held:
        made = held.context(
            question,
            scopes=[one] if one else None,
            stores=[existing(held.knowledge, name).id for name in store or []],
            budget=budget,
            limit=limit,
            kinds=kinds_of(kind),
            neighbours=neighbours,
            system=system,
            as_of=moment(as_of, "--as-of"),
        )
    if as_json:
        emit(made)
        return
    typer.echo(plain(made.text))
    say(f"{made.tokens} tokens; left out: {len(made.left_out)}")
    say_evidence(made.evidence, made.evidence_probability)
    say_degraded(made.degraded)
