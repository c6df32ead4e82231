"""What routes for the administrator take and give: tenants, their quotas and what they hold."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.knowledge.values import Tenant, Usage
from memoranda.types import says, some_text

TenantsLimit = Annotated[int, Meta(ge=1, le=1_000)]
TenantName = Annotated[str, some_text(256)]
Quota = Annotated[
    int, Meta(ge=0, extra=says("must be a whole number of at least 0, or null for the default"))
]


class TenantQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Another tenant, for the operator."""

    tenant: TenantName | None = None


class TenantsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of tenants."""

    limit: TenantsLimit = 100
    after: str | None = None


class TenantObject(Tenant, kw_only=True, tag_field="object", tag="tenant"):
    """A tenant, and when it first stored or was given something."""


class TenantPage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of tenants, by name; `after=last_id` asks for the next one."""

    data: list[TenantObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class QuotasBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The quotas to change; null is the configured default again. `tenant` as in the query."""

    tenant: TenantName | None = None
    max_storage_bytes: Quota | None | UnsetType = UNSET
    max_files_per_store: Quota | None | UnsetType = UNSET
    max_file_bytes: Quota | None | UnsetType = UNSET
    max_stores: Quota | None | UnsetType = UNSET
    max_entries: Quota | None | UnsetType = UNSET
    auto_archive_days: Quota | None | UnsetType = UNSET


class QuotasObject(msgspec.Struct, kw_only=True, tag_field="object", tag="quotas"):
    """What a tenant may hold."""

    tenant: str
    max_storage_bytes: int
    max_files_per_store: int
    max_file_bytes: int
    max_stores: int
    max_entries: int
    auto_archive_days: int


class UsageObject(Usage, kw_only=True, tag_field="object", tag="usage"):
    """What a tenant holds."""

    tenant: str
