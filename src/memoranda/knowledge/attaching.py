"""Attaching files to a store: rows and jobs in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.clock import now_micros
from memoranda.config.data_sections import Quotas
from memoranda.errors import NotFound
from memoranda.knowledge import checks
from memoranda.knowledge.access import sees_file
from memoranda.knowledge.quotas import check_attached
from memoranda.knowledge.records import StoreRow, attached_of, files_of
from memoranda.knowledge.removal import detach
from memoranda.knowledge.values import NewStoreFile
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.text.stored import compact_json
from memoranda.types import Subject

INDEX_JOB = "knowledge.index"
ATTRIBUTES_JOB = "knowledge.attributes"
COLUMNS = (
    "tenant_id", "store_id", "file_id", "seq", "status", "attributes", "chunking", "batch_id", "created_at",
)  # fmt: skip


def attach(
    c: Connection,
    core: Core,
    subject: Subject,
    store: StoreRow,
    files: Sequence[NewStoreFile],
    quotas: Quotas,
    *,
    batch_id: str | None = None,
) -> None:
    """Attach files to a store of the subject's tenant and enqueue their indexing; give `jobs.woken(INDEX_JOB)` to the
    write. A file that is in progress or done is left alone; one that failed begins again.

    Raises:
        NotFound: the subject does not see a file.
        QuotaExceeded: the store would have more files than it may.
    """
    tenant = store.tenant_id
    wanted = {file.file_id: file for file in files}
    known = files_of(c, tenant, wanted)
    for id_ in wanted:
        if id_ not in known or not sees_file(subject, known[id_]):
            raise NotFound(f"no file {id_!r}")
    there = attached_of(c, tenant, store.id, wanted)
    for row in there.values():
        if row.status in ("failed", "cancelled"):
            detach(c, core, tenant, store.id, row.file_id, row.seq)
    fresh = [
        file
        for id_, file in wanted.items()
        if id_ not in there or there[id_].status in ("failed", "cancelled")
    ]
    if not fresh:
        return
    check_attached(c, tenant, store.id, len(fresh), quotas)
    revs = c.one("draw_revs", [len(fresh)])
    assert revs is not None
    now, first = now_micros(), int(revs[0]) - len(fresh) + 1
    rows = [
        (
            tenant, store.id, file.file_id, first + i, "in_progress", checks.attributes_of(file.attributes),
            store.chunking if file.chunking is None else compact_json(checks.chunking_checked(file.chunking)),
            batch_id, now,
        )
        for i, file in enumerate(fresh)
    ]  # fmt: skip
    c.load("store_files", COLUMNS, rows)
    payloads = [{"store": row[1], "file": row[2], "attached": row[3]} for row in rows]
    core.jobs.place_many(c, tenant, INDEX_JOB, payloads)
    c.run("touch_store", [now, tenant, store.id])
