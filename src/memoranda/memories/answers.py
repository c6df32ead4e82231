"""Answers of operations on memories that have another shape than the results of the methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memoranda.store.operations import Deleted
from memoranda.types import Added, Job, Memory


class AddedMemory(Memory, kw_only=True):
    """A memory after a write. `created` is false when the text was there already; `embedded` is false when
    its vector follows."""

    created: bool
    embedded: bool

    @classmethod
    def of(cls, result: Added, given: Mapping[str, Any]) -> AddedMemory:
        """Return the memory, and what the write came to."""
        fields = {name: getattr(result.memory, name) for name in Memory.__struct_fields__}
        return cls(**fields, created=result.created, embedded=result.embedded)

    def result(self, given: Mapping[str, Any]) -> Added:
        """Return what the write came to."""
        fields = {name: getattr(self, name) for name in Memory.__struct_fields__}
        return Added(memory=Memory(**fields), created=self.created, embedded=self.embedded)


class AddedList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A batch, in the order it was sent; how many were new, and how many were there already."""

    data: list[AddedMemory]
    first_id: str | None
    last_id: str | None
    has_more: bool = False
    created: int
    present: int

    @classmethod
    def of(cls, result: Sequence[Added], given: Mapping[str, Any]) -> AddedList:
        """Return the batch with its counts."""
        created = sum(added.created for added in result)
        return cls(
            data=[AddedMemory.of(added, given) for added in result],
            first_id=result[0].memory.id,
            last_id=result[-1].memory.id,
            created=created,
            present=len(result) - created,
        )

    def result(self, given: Mapping[str, Any]) -> list[Added]:
        """Return what each write came to."""
        return [memory.result(given) for memory in self.data]


class DeletedMemory(Deleted, kw_only=True, tag_field="object", tag="memory.deleted"):
    """The memory that is gone."""


class MemoryCount(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.count"):
    """How many."""

    count: int

    @classmethod
    def of(cls, result: int, given: Mapping[str, Any]) -> MemoryCount:
        """Return the number as an object."""
        return cls(count=result)

    def result(self, given: Mapping[str, Any]) -> int:
        """Return the number."""
        return self.count


class ForgottenSince(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.forgotten_since"):
    """The places, from 0, of the memories that were forgotten after their export was made, and are not stored again."""

    forgotten: list[int]

    @classmethod
    def of(cls, result: Sequence[bool], given: Mapping[str, Any]) -> ForgottenSince:
        """Return the places of those that are true."""
        return cls(forgotten=[place for place, each in enumerate(result) if each])

    def result(self, given: Mapping[str, Any]) -> list[bool]:
        """Return for each memory of the call whether it was forgotten."""
        return [place in self.forgotten for place in range(len(given["memories"]))]


class JobList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """The latest jobs, newest first."""

    data: list[Job]
    first_id: str | None
    last_id: str | None
    has_more: bool = False

    @classmethod
    def of(cls, result: Sequence[Job], given: Mapping[str, Any]) -> JobList:
        """Return the jobs as a list with its ends."""
        ids = [job.id for job in result]
        return cls(data=list(result), first_id=ids[0] if ids else None, last_id=ids[-1] if ids else None)

    def result(self, given: Mapping[str, Any]) -> list[Job]:
        """Return the jobs."""
        return self.data
