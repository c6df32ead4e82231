"""`memoranda agents`: list, show, create, update and delete agent profiles."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import After, Limit, Order, json_object, text_of
from memoranda.cli.output import beginning, plain, set_fields_text
from memoranda.cli.product import Product
from memoranda.errors import InvalidInput, NotFound
from memoranda.responses.profile_values import Profile

PAGE = 100
SHOWN = 20
"""Agents in an error."""
Agent = Annotated[str, typer.Argument(metavar="ID|NAME", help="The agent.")]
Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="What the agent is for.")
]
Instructions = Annotated[
    str | None,
    typer.Option(
        "--instructions",
        metavar="TEXT",
        help="The instructions for the model; - reads them from standard input.",
    ),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="The language model.")]
Fields = Annotated[
    str | None,
    typer.Option(
        "--fields", metavar="JSON", help="Other fields, as over HTTP: tools, variables, memory, ..."
    ),
]

app = group()


@app.callback()
@common_options()
def agents(invocation: Invocation, context: typer.Context) -> None:
    """List the agent profiles; show, create, change and delete them."""
    if context.invoked_subcommand is None:
        _list(invocation, 20, None, "desc")


@app.command("list")
@common_options()
def list_(invocation: Invocation, limit: Limit = 20, after: After = None, order: Order = "desc") -> None:
    """List the agent profiles, newest first."""
    _list(invocation, limit, after, order)


def _list(invocation: Invocation, limit: int, after: str | None, order: Order) -> None:
    page = invocation.product.agents.list(limit=limit, after=after, order=order)
    invocation.show_page(page, _agent_line, "no agents; memoranda agents create makes one")


@app.command("show")
@common_options()
def show(invocation: Invocation, agent: Agent) -> None:
    """Show an agent profile: its fields, then its instructions."""
    profile = find_agent(invocation.product, agent)
    invocation.show(profile, _agent_text(profile))


@app.command("create")
@common_options(creates_folder=True)
def create(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(help="Its name.")],
    id_: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="An id that begins with agent_ [default: a new one]."),
    ] = None,
    description: Description = None,
    instructions: Instructions = None,
    model: Model = None,
    fields: Fields = None,
) -> None:
    """Create an agent profile."""
    given = _given(name, description, instructions, model, fields)
    profile = invocation.product.agents.create(given, id=id_)
    invocation.show(profile, _agent_line(profile))


@app.command("update")
@common_options()
def update(
    invocation: Invocation,
    agent: Agent,
    name: Annotated[str | None, typer.Option("--name", help="Another name.")] = None,
    description: Description = None,
    instructions: Instructions = None,
    model: Model = None,
    fields: Fields = None,
) -> None:
    """Change fields of an agent profile; the rest stays."""
    given = _given(name, description, instructions, model, fields)
    if not given:
        says = "name what to change, such as --instructions TEXT; memoranda agents update --help"
        raise InvalidInput("", says)
    profile = invocation.product.agents.update(find_agent(invocation.product, agent).id, given)
    invocation.show(profile, _agent_text(profile))


@app.command("delete")
@common_options()
def delete(invocation: Invocation, agent: Agent) -> None:
    """Delete an agent profile; what was answered and learned under it stays."""
    profile = find_agent(invocation.product, agent)
    invocation.product.agents.delete(profile.id)
    invocation.show(
        {"id": profile.id, "deleted": True}, f"{plain(profile.name)} {plain(profile.id)} is deleted"
    )


def find_agent(product: Product, name: str) -> Profile:
    """Return the agent with this id, else the only one of this name.

    Raises:
        NotFound: there is none; the message lists the newest agents.
        InvalidInput: several agents have the name.
    """
    agents = product.agents
    try:
        return agents.get(name)
    except NotFound:
        named = agents.list(name=name, limit=PAGE).data
    if len(named) > 1:
        ids = ", ".join(profile.id for profile in named)
        raise InvalidInput("agent", f"{len(named)} agents are named {name!r}; use an id: {ids}")
    if not named:
        newest = agents.list(limit=SHOWN)
        known = ", ".join(dict.fromkeys(profile.name for profile in newest.data)) or "none"
        more = " and more" if newest.has_more else ""
        raise NotFound(f"no agent is named {name!r}; there are: {plain(known)}{more}")
    return named[0]


def _given(
    name: str | None, description: str | None, instructions: str | None, model: str | None, fields: str | None
) -> dict[str, Any]:
    """Return the fields of a profile that the options set; an option goes before the same field in `fields`."""
    options = {
        "name": name,
        "description": description,
        "instructions": None if instructions is None else text_of(instructions, "instructions"),
        "model": model,
    }
    set_options = {key: value for key, value in options.items() if value is not None}
    return {**(json_object(fields, "--fields") or {}), **set_options}


def _agent_text(profile: Profile) -> str:
    fields = set_fields_text(profile, leave_out=("object", "instructions"))
    return f"{fields}\n\n{plain(profile.instructions)}" if profile.instructions else fields


def _agent_line(profile: Profile) -> str:
    configured = "configured" if profile.read_only else ""
    parts = [profile.id, profile.name, profile.model or "", configured, beginning(profile.description or "")]
    return plain("  ".join(part for part in parts if part))
