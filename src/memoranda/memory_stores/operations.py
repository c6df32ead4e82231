"""The operations on memory stores that servers, clients and interfaces have, in the shapes of Anthropic's API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memoranda.memory_stores.memories import StoreMemories
from memoranda.memory_stores.stores import MemoryStores
from memoranda.memory_stores.values import MAX_PAGE, Prefix, Sha256, View
from memoranda.memory_stores.values import Operation as What
from memoranda.memory_stores.versions import MemoryVersions
from memoranda.store.operations import Deleted, Operation, given
from memoranda.types import Id, Moment

Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE)]


class BetaQuery(msgspec.Struct, kw_only=True):
    """`beta=true`, which Anthropic's clients send with every request; it changes nothing."""

    beta: bool = True

    def arguments(self) -> dict[str, Any]:
        """Return the fields that are given, without `beta`."""
        return {name: value for name, value in given(self).items() if name != "beta"}


class ViewQuery(BetaQuery, kw_only=True):
    """Whether the answer has the content (`full`)."""

    view: View | None = None


class StoresQuery(BetaQuery, kw_only=True):
    """A page of memory stores."""

    limit: Limit = 20
    page: str | None = None
    include_archived: bool = False
    since: Moment | None = msgspec.field(default=None, name="created_at[gte]")
    until: Moment | None = msgspec.field(default=None, name="created_at[lte]")


class MemoriesQuery(BetaQuery, kw_only=True):
    """A page of the memories below a path. With depth 1, directories stand for what is in them."""

    path_prefix: Prefix = "/"
    depth: Annotated[int, Meta(ge=0, le=1)] = 0
    limit: Limit = 20
    page: str | None = None
    view: View = "basic"


class DeletionQuery(BetaQuery, kw_only=True):
    """The content that a memory must have to be deleted."""

    expected_sha256: Sha256 | None = msgspec.field(default=None, name="expected_content_sha256")


class VersionsQuery(BetaQuery, kw_only=True):
    """A page of versions. None here is written by an agent's session, or known to be by a key or a service account:
    those filters match nothing."""

    memory_id: str | None = None
    operation: What | None = None
    since: Moment | None = msgspec.field(default=None, name="created_at[gte]")
    until: Moment | None = msgspec.field(default=None, name="created_at[lte]")
    session_id: Id | None = None
    api_key_id: Id | None = None
    service_account_id: Id | None = None
    limit: Limit = 20
    page: str | None = None
    view: View = "basic"

    @property
    def by_agents(self) -> bool:
        """True if the versions must be written by what writes none here."""
        return any((self.session_id, self.api_key_id, self.service_account_id))

    def arguments(self) -> dict[str, Any]:
        """Return the fields that are given, without those that match nothing."""
        nothing = ("session_id", "api_key_id", "service_account_id")
        return {name: value for name, value in super().arguments().items() if name not in nothing}


class DeletedMemoryStore(Deleted, kw_only=True):
    """The store that is gone, with its memories and their versions."""

    type: Literal["memory_store_deleted"] = "memory_store_deleted"


class DeletedStoreMemory(Deleted, kw_only=True):
    """The memory that is gone; its versions stay."""

    type: Literal["memory_deleted"] = "memory_deleted"


AT = "/v1/memory_stores"
ONE = f"{AT}/{{memory_store_id}}"
IN_STORE = f"{ONE}/memories"
MEMORY = f"{IN_STORE}/{{store_memory_id}}"
ALL_VERSIONS = f"{ONE}/memory_versions"
VERSION = f"{ALL_VERSIONS}/{{memory_version_id}}"
OF = ("memory_store_id",)
STORES = (
    Operation(MemoryStores.create, "POST", AT, "write", beside=BetaQuery, whole="new"),
    Operation(MemoryStores.list, "GET", AT, "read", StoresQuery),
    Operation(MemoryStores.get, "GET", ONE, "read", BetaQuery),
    Operation(MemoryStores.update, "POST", ONE, "write", beside=BetaQuery, whole="change"),
    Operation(MemoryStores.delete, "DELETE", ONE, "write", BetaQuery, DeletedMemoryStore),
    Operation(MemoryStores.archive, "POST", f"{ONE}/archive", "write", beside=BetaQuery),
)
MEMORIES = (
    Operation(StoreMemories.create, "POST", IN_STORE, "write", beside=ViewQuery, whole="new", of=OF),
    Operation(StoreMemories.list, "GET", IN_STORE, "read", MemoriesQuery, of=OF),
    Operation(StoreMemories.get, "GET", MEMORY, "read", ViewQuery, of=OF),
    Operation(StoreMemories.update, "POST", MEMORY, "write", beside=ViewQuery, whole="change", of=OF),
    Operation(StoreMemories.delete, "DELETE", MEMORY, "write", DeletionQuery, DeletedStoreMemory, of=OF),
)
VERSIONS = (
    Operation(MemoryVersions.list, "GET", ALL_VERSIONS, "read", VersionsQuery, of=OF),
    Operation(MemoryVersions.get, "GET", VERSION, "read", ViewQuery, of=OF),
    Operation(MemoryVersions.redact, "POST", f"{VERSION}/redact", "write", beside=BetaQuery, of=OF),
)
