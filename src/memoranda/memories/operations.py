"""The operations on memories that servers, clients and interfaces have."""

from __future__ import annotations

from memoranda.memories.answers import (
    AddedList,
    AddedMemory,
    DeletedMemory,
    ForgottenSince,
    JobList,
    MemoryCount,
)
from memoranda.memories.inputs import (
    BatchBody,
    ExportedBody,
    ForgetBody,
    NewMemoryBody,
    SearchBody,
)
from memoranda.memories.memories import Memories
from memoranda.store.operations import EmptyBody, Operation
from memoranda.store.selections import SelectionBody
from memoranda.types import Change

AT = "/v1/memories"
JOBS = "/v1/jobs"
OPERATIONS = (
    Operation(Memories.add, "POST", AT, "write", NewMemoryBody, AddedMemory),
    Operation(Memories.add_many, "POST", f"{AT}/batch", "write", BatchBody, AddedList, long=True),
    Operation(Memories.list, "GET", AT, "read", SelectionBody),
    Operation(Memories.search, "POST", f"{AT}/search", "read", SearchBody),
    Operation(Memories.forget, "POST", f"{AT}/forget", "write", ForgetBody, long=True),
    Operation(Memories.preview_forget, "POST", f"{AT}/forget/preview", "read", ForgetBody, long=True),
    Operation(Memories.count_access, "POST", f"{AT}/count_access", "write", shows=MemoryCount),
    Operation(Memories.count, "POST", f"{AT}/count", "read", SelectionBody, MemoryCount),
    Operation(Memories.facets, "POST", f"{AT}/facets", "read", SelectionBody),
    Operation(Memories.compact, "POST", f"{AT}/compact", "admin", EmptyBody),
    Operation(Memories.reembed, "POST", f"{AT}/reembed", "admin"),
    Operation(Memories.move_index, "POST", f"{AT}/move_index", "operator"),
    Operation(
        Memories.forgotten, "POST", f"{AT}/forgotten", "write", ExportedBody, ForgottenSince, long=True
    ),
    Operation(Memories.near_duplicates, "POST", f"{AT}/near_duplicates", "read", SelectionBody, long=True),
    Operation(
        Memories.projection, "POST", f"{AT}/projection", "read", SelectionBody, long=True, compresses=True
    ),
    Operation(Memories.get, "GET", f"{AT}/{{id}}", "read", command="show"),
    Operation(Memories.update, "PATCH", f"{AT}/{{id}}", "write", Change),
    Operation(Memories.update, "POST", f"{AT}/{{id}}", "write", Change),
    Operation(Memories.delete, "DELETE", f"{AT}/{{id}}", "write", shows=DeletedMemory, command="delete"),
    Operation(Memories.pin, "POST", f"{AT}/{{id}}/pin", "write", command="pin"),
    Operation(Memories.unpin, "POST", f"{AT}/{{id}}/unpin", "write", command="unpin"),
    Operation(Memories.jobs, "GET", JOBS, "admin", shows=JobList),
    Operation(Memories.job, "GET", f"{JOBS}/{{id}}", "admin"),
    Operation(Memories.cancel, "POST", f"{JOBS}/{{id}}/cancel", "admin"),
    Operation(Memories.retry, "POST", f"{JOBS}/{{id}}/retry", "admin"),
)
