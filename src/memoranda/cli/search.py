"""`memoranda search`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from memoranda.arguments import SearchFields
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import (
    AnyScope,
    Archived,
    Kinds,
    Roles,
    ScopeId,
    Since,
    Until,
    User,
    json_object,
    kinds_of,
    moment,
    scope_of,
)
from memoranda.cli.output import emit, hit_lines, say, say_degraded, say_evidence
from memoranda.cli.passages import search_stores
from memoranda.knowledge.values import PassageQuery
from memoranda.types import SearchMode, SearchResult


@common_options()
def search(
    invocation: Invocation,
    query: Annotated[str, typer.Argument(help="What to look for, in your own words.")],
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    user: User = None,
    scopes: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPE", help="Several scopes, such as --scopes session:s1 --scopes global."),
    ] = None,
    store: Annotated[
        list[str] | None,
        typer.Option(metavar="ID|NAME", help="In this vector store instead of memories; repeat for more."),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="How many to show [default: 10].")] = None,
    threshold: Annotated[float | None, typer.Option(help="Least similarity, 0 to 1; 0 is no floor.")] = None,
    kind: Kinds = None,
    role: Roles = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag; repeated, with all.")] = None,
    filter_: Annotated[
        str | None,
        typer.Option("--filter", metavar="JSON", help="Conditions on metadata or attributes, as over HTTP."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Only from this source; a file's path for documents.")
    ] = None,
    since: Since = None,
    until: Until = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="As it was at this moment, in ISO 8601.")
    ] = None,
    archived: Archived = False,
    mode: Annotated[SearchMode, typer.Option(help="Vector search, keyword search, or both.")] = "hybrid",
    explain: Annotated[bool, typer.Option("--explain", help="Show every part of each score.")] = False,
) -> None:
    """Find the best memories for a text, by meaning and by words."""
    place = scope_of(scope, scope_id, user)
    if store:
        memories_only = {
            "--scope": scope, "--user": user, "--scopes": scopes, "--kind": kind, "--role": role, "--tag": tag,
            "--source": source, "--since": since, "--until": until, "--as-of": as_of, "--archived": archived,
        }  # fmt: skip
        for flag, given in memories_only.items():
            if given:
                raise typer.BadParameter("is for memories; it does not go with --store", param_hint=flag)
        passage_query = PassageQuery(
            queries=[query],
            limit=10 if limit is None else limit,
            filters=json_object(filter_, "--filter"),
            threshold=threshold,
            mode=mode,
            explain=explain,
        )
        search_stores(invocation, store, passage_query)
        return
    if place is not None and scopes:
        raise typer.BadParameter(
            "does not go with --scope or --user; name all of them here", param_hint="--scopes"
        )
    fields: SearchFields = {
        "scopes": scopes or ([place] if place else None),
        "threshold": threshold,
        "kinds": kinds_of(kind),
        "roles": role or None,
        "tags": tag or None,
        "filters": json_object(filter_, "--filter"),
        "source": source,
        "since": moment(since, "--since"),
        "until": moment(until, "--until"),
        "as_of": moment(as_of, "--as-of"),
        "include_archived": archived,
        "mode": mode,
        "explain": explain,
        "highlights": True,
    }
    if limit is not None:
        fields["limit"] = limit
    result = invocation.memories.search(query, **fields)
    if invocation.as_json:
        emit(result)
    else:
        show(result, query)


def show(result: SearchResult, query: str) -> None:
    """Print the hits as text, a paragraph each."""
    colour = sys.stdout.isatty()
    for number, hit in enumerate(result.results, 1):
        typer.echo("\n".join(hit_lines(number, hit, query, colour=colour)))
    if not result.results:
        say("nothing found; documents in vector stores are searched with --store NAME")
    else:
        say_evidence(result.evidence, result.evidence_probability)
    say_degraded(result.degraded)
