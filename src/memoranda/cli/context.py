"""`memoranda context`."""

from __future__ import annotations

from typing import Annotated

import typer

from memoranda.cli.find_store import find_store
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import AnyScope, Kinds, ScopeId, User, kinds_of, moment, scope_of, some_text
from memoranda.cli.output import emit, plain, say, say_degraded, say_evidence


@common_options()
def context(
    invocation: Invocation,
    question: Annotated[str, typer.Argument(help="What a model is to be asked.", callback=some_text)],
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    user: User = None,
    store: Annotated[
        list[str] | None,
        typer.Option(metavar="ID|NAME", help="Search this vector store, too; repeat for more."),
    ] = None,
    budget: Annotated[int, typer.Option(help="Tokens, all in all.")] = 2_000,
    limit: Annotated[
        int | None, typer.Option(help="How many memories at most; without it, as many as fit.")
    ] = None,
    kind: Kinds = None,
    neighbours: Annotated[int, typer.Option(help="Messages to include on either side of each result.")] = 0,
    system: Annotated[str | None, typer.Option(help="Rules that go before everything.")] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="As it was at this moment, in ISO 8601.")
    ] = None,
) -> None:
    """Print the prompt that answers a question: documents, memories, earlier sessions, within a budget."""
    place = scope_of(scope, scope_id, user)
    prompt = invocation.product.context(
        question,
        scopes=[place] if place else None,
        stores=[find_store(invocation.knowledge, name).id for name in store or []],
        budget=budget,
        limit=limit,
        kinds=kinds_of(kind),
        neighbours=neighbours,
        system=system,
        as_of=moment(as_of, "--as-of"),
    )
    if invocation.as_json:
        emit(prompt)
        return
    typer.echo(plain(prompt.text))
    say(f"{prompt.tokens} tokens; left out: {len(prompt.left_out)}")
    say_evidence(prompt.evidence, prompt.evidence_probability)
    say_degraded(prompt.degraded)
