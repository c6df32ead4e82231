"""`memoranda quotas`: what a tenant holds and may hold."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import limits_of
from memoranda.cli.output import rows


@common_options(creates_folder_with="quota")
def quotas(
    invocation: Invocation,
    quota: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Set a quota; null is the default again. Repeat for more."),
    ] = None,
    tenant: Annotated[str | None, typer.Option(metavar="NAME", help="Whose, when not one's own.")] = None,
) -> None:
    """Show what a tenant holds and may hold, and set its quotas."""
    admin = invocation.knowledge.admin
    changes = limits_of(quota, "--quota")
    limits = admin.set_quotas(changes, tenant) if changes else admin.quotas(tenant)
    report = {"usage": msgspec.structs.asdict(admin.usage(tenant)), "quotas": msgspec.structs.asdict(limits)}
    invocation.show(report, "\n".join(rows(report)))
