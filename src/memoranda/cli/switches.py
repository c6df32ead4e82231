"""`memoranda switches`: switch extraction and summaries on or off, for a tenant or a channel."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.output import plain
from memoranda.errors import InvalidInput
from memoranda.sessions.switches import NAMES, SwitchFields, SwitchState

VALUES = {"on": True, "off": False, "default": None}


@common_options(creates_folder_with="changes")
def switches(
    invocation: Invocation,
    channel: Annotated[
        str | None, typer.Option(metavar="ID", help="Of this channel [default: of the whole tenant].")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Whose, when not one's own.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--switch", metavar="NAME=VALUE", help="Switch it on, off, or to default; repeat for more."
        ),
    ] = None,
) -> None:
    """Show or set whether facts are extracted and summaries made, for a tenant or a channel."""
    new_values = _changes(changes)
    if new_values:
        state = invocation.product.switches.set(channel, tenant=tenant, **new_values)
    else:
        state = invocation.product.switches.get(channel, tenant=tenant)
    invocation.show(state, _table(state))


def _changes(given: list[str] | None) -> SwitchFields:
    changes: dict[str, bool | None] = {}
    for word in given or []:
        name, _, value = word.partition("=")
        if name not in NAMES or value not in VALUES:
            says = f"{word!r} is none; write NAME=on, NAME=off or NAME=default, with {', '.join(NAMES)}"
            raise InvalidInput("--switch", says)
        changes[name] = VALUES[value]
    return msgspec.convert(changes, SwitchFields)


def _table(state: SwitchState) -> str:
    words = {value: word for word, value in VALUES.items()}
    place = state.tenant if state.channel_id is None else f"{state.tenant}, channel {state.channel_id}"
    lines = [plain(f"{place:<24}  {'set to':<8}  in force")]
    for name in NAMES:
        lines.append(f"{name:<24}  {words[getattr(state, name)]:<8}  {words[getattr(state.in_force, name)]}")
    return "\n".join(lines)
