"""`memoranda responses`: list, show, cancel and delete stored responses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.items import item_line
from memoranda.cli.options import After, Limit, Order
from memoranda.cli.output import beginning, plain, set_fields_text
from memoranda.cli.usage_errors import not_found_fix
from memoranda.responses.records import ResponseEntry
from memoranda.responses.values import Response

Id = Annotated[str, typer.Argument(metavar="RESPONSE", help="The response.")]
FIX = "memoranda responses lists the ids"
SHOWN = frozenset(
    {
        "id", "status", "created_at", "completed_at", "background", "model", "agent_id", "conversation",
        "previous_response_id", "error", "incomplete_details", "metadata", "usage",
    }
)  # fmt: skip
"""Fields of a response that are shown above its output; the others repeat the request."""

app = group()


@app.callback()
@common_options()
def responses(invocation: Invocation, context: typer.Context) -> None:
    """List the stored responses; show, cancel and delete them."""
    if context.invoked_subcommand is None:
        _list(invocation, {})


@app.command("list")
@common_options()
def list_(
    invocation: Invocation,
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only completed, failed, in_progress, ... ones.")
    ] = None,
    limit: Limit = 20,
    after: After = None,
    order: Order = "desc",
) -> None:
    """List the stored responses, newest first."""
    _list(invocation, {"status": status, "limit": limit, "after": after, "order": order})


def _list(invocation: Invocation, fields: dict[str, Any]) -> None:
    page = invocation.product.responses.list(**fields)
    invocation.show_page(page, _entry_line, "no responses; memoranda ask --session keeps its answers")


@app.command("show")
@common_options()
def show(invocation: Invocation, id_: Id) -> None:
    """Show a response: its fields, then its output."""
    product = invocation.product
    with not_found_fix(FIX):
        response = product.responses.get(id_)
    invocation.show(response, _response_text(response))


@app.command("cancel")
@common_options()
def cancel(invocation: Invocation, id_: Id) -> None:
    """Cancel a background response; one that has ended stays as it is."""
    product = invocation.product
    with not_found_fix(FIX):
        response = product.responses.cancel(id_)
    invocation.show(response, f"{plain(response.id)}  {response.status}")


@app.command("delete")
@common_options()
def delete(invocation: Invocation, id_: Id) -> None:
    """Delete a response and its messages; facts that were learned from it stay."""
    product = invocation.product
    with not_found_fix(FIX):
        product.responses.delete(id_)
    invocation.show({"id": id_, "deleted": True}, f"{plain(id_)}  deleted")


def _response_text(response: Response) -> str:
    fields = set_fields_text(response, leave_out=frozenset(Response.__struct_fields__) - SHOWN)
    return "\n".join([fields, "", *map(item_line, response.output)]) if response.output else fields


def _entry_line(entry: ResponseEntry) -> str:
    created = datetime.fromtimestamp(entry.created_at, UTC)
    parts = (entry.id, entry.status, f"{created:%Y-%m-%d %H:%M}", entry.model, beginning(entry.question))
    return plain("  ".join(parts)).rstrip()
