"""`memoranda quotas`: the usage and quotas of a tenant."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import limits_of, named_by
from memoranda.cli.output import rows


@common_options(creates_folder_with="quota")
def quotas(
    invocation: Invocation,
    quota: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Set a quota; null restores the default. Repeatable."),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="The tenant; by default that of the key.")
    ] = None,
) -> None:
    """Show the usage and quotas of a tenant, and set quotas."""
    admin = invocation.knowledge.admin
    changes = limits_of(quota, "--quota")
    with named_by("--quota", changes):
        limits = admin.set_quotas(changes, tenant) if changes else admin.quotas(tenant)
    report = {
        name: msgspec.structs.asdict(one)
        for name, one in (("usage", admin.usage(tenant)), ("quotas", limits))
    }
    report = {
        name: {key: value for key, value in one.items() if key != "tenant"} for name, one in report.items()
    }
    invocation.show(report, "\n".join(rows(report)))
