"""`memoranda conversations`: show, read and delete stored conversations."""

from __future__ import annotations

from typing import Annotated

import typer

from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.items import item_line
from memoranda.cli.options import After, Limit, Order
from memoranda.cli.output import plain, set_fields_text
from memoranda.cli.usage_errors import not_found_fix
from memoranda.errors import InvalidInput

Id = Annotated[str, typer.Argument(metavar="CONVERSATION", help="The conversation.")]
FIX = "memoranda responses list --json has the ids"

app = group()


@app.callback()
@common_options()
def conversations(invocation: Invocation, context: typer.Context) -> None:
    """Show stored conversations and their items, and delete them."""
    if context.invoked_subcommand is None:
        raise InvalidInput("", f"name a command, such as memoranda conversations show ID; {FIX}")


@app.command("show")
@common_options()
def show(invocation: Invocation, id_: Id) -> None:
    """Show a conversation, with its metadata and the summary of its beginning."""
    product = invocation.product
    with not_found_fix(FIX):
        conversation = product.conversations.get(id_)
    invocation.show(conversation, set_fields_text(conversation))


@app.command("items")
@common_options()
def items(
    invocation: Invocation, id_: Id, limit: Limit = 20, after: After = None, order: Order = "asc"
) -> None:
    """Show the items of a conversation, in order: messages, calls of tools and their outputs."""
    product = invocation.product
    with not_found_fix(FIX):
        page = product.conversations.items(id_, limit=limit, after=after, order=order)
    invocation.show_page(page, item_line, "no items")


@app.command("delete")
@common_options()
def delete(invocation: Invocation, id_: Id) -> None:
    """Delete a conversation and its items."""
    product = invocation.product
    with not_found_fix(FIX):
        product.conversations.delete(id_)
    invocation.show({"id": id_, "deleted": True}, f"{plain(id_)}  deleted")
