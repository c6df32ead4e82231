"""What operations on a tenant read: whose they are, and changes of its settings."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.types import says, some_text

TenantName = Annotated[str, some_text(256)]
Limit = Annotated[
    int, Meta(ge=0, extra=says("must be a whole number of at least 0, or null for the default"))
]


class TenantQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Another tenant, for the operator."""

    tenant: TenantName | None = None


class LimitsBody(TenantQuery, kw_only=True, forbid_unknown_fields=True):
    """The limits to change; null is the configured default again. `tenant` as in the query."""

    def arguments(self) -> dict[str, Any]:
        """Return the limits that were sent, and the tenant."""
        sent = {name: getattr(self, name) for name in self.__struct_fields__}
        tenant = sent.pop("tenant")
        changes = {name: value for name, value in sent.items() if value is not UNSET}
        return {"changes": changes} | ({} if tenant is None else {"tenant": tenant})

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a body for the arguments of a call."""
        return {"tenant": values.get("tenant"), **values["changes"]}


def limits_body(limits: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return the body that changes some of the limits in a section of the configuration."""
    fields = [(name, Limit | None | UnsetType, UNSET) for name in limits.__struct_fields__]
    return msgspec.defstruct(
        f"{limits.__name__}Body",
        fields,
        bases=(LimitsBody,),
        module=limits.__module__,
        namespace={"__doc__": LimitsBody.__doc__},
        kw_only=True,
        forbid_unknown_fields=True,
    )
