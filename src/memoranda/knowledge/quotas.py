"""Quotas of tenants: those of the configuration, or their own if an admin set them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memoranda.config.data_sections import Quotas
from memoranda.errors import InvalidInput, QuotaExceeded
from memoranda.storage.sql.base import Connection

NAMES: tuple[str, ...] = Quotas.__struct_fields__


def quotas_of(c: Connection, tenant: str, default: Quotas) -> Quotas:
    """Return the quotas in force for a tenant."""
    own = {name: value for name, value in c.all("quotas_of", [tenant]) if name in NAMES}
    return msgspec.structs.replace(default, **own)


def check_changes(changes: dict[str, Any], names: Sequence[str] = NAMES, what: str = "quota") -> None:
    """Refuse unknown names and invalid values.

    Raises:
        InvalidInput: names the field.
    """
    for name, value in changes.items():
        if name not in names:
            raise InvalidInput(name, f"is no {what}; use {', '.join(names)}")
        whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
        if value is not None and not whole:
            raise InvalidInput(name, "must be a whole number of at least 0, or null for the default")


def check_file(size: int, quotas: Quotas) -> None:
    """Refuse a file that is too large.

    Raises:
        QuotaExceeded: names the quota.
    """
    if size > quotas.max_file_bytes:
        raise QuotaExceeded(
            "file",
            f"is larger than {quotas.max_file_bytes} bytes (quota max_file_bytes); split it, or ask an admin for more",
            "max_file_bytes",
        )


def check_storage(c: Connection, tenant: str, more: int, quotas: Quotas) -> None:
    """Refuse bytes that do not fit beside the tenant's files and pending parts, in the transaction that adds them.

    Raises:
        QuotaExceeded: names the quota.
    """
    files, parts = c.one("usage_of_files", [tenant]), c.one("pending_bytes", [tenant])
    used = (int(files[1]) if files else 0) + (int(parts[0]) if parts else 0)
    if used + more > quotas.max_storage_bytes:
        raise QuotaExceeded(
            "file",
            f"of {more} bytes does not fit: {used} of {quotas.max_storage_bytes} bytes are used (quota"
            " max_storage_bytes); delete files, or ask an admin for more",
            "max_storage_bytes",
        )


def check_stores(c: Connection, tenant: str, quotas: Quotas) -> None:
    """Refuse one more vector store than the quota allows.

    Raises:
        QuotaExceeded: names the quota.
    """
    row = c.one("count_stores", [tenant])
    if row is not None and row[0] >= quotas.max_stores:
        says = f"would be one more than {quotas.max_stores} (quota max_stores); delete one, or ask an admin for more"
        raise QuotaExceeded("vector_store", says, "max_stores")


def check_attached(c: Connection, tenant: str, store: str, more: int, quotas: Quotas) -> None:
    """Refuse more files in a store than the quota allows.

    Raises:
        QuotaExceeded: names the quota.
    """
    row = c.one("count_store_files", [tenant, store])
    attached = int(row[0]) if row else 0
    if attached + more > quotas.max_files_per_store:
        raise QuotaExceeded(
            "file_ids",
            f"{more} more do not fit beside {attached}: a vector store holds {quotas.max_files_per_store} files (quota"
            " max_files_per_store); use another store, or ask an admin for more",
            "max_files_per_store",
        )
