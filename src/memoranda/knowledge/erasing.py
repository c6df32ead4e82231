"""Forgetting documents: files with their bytes and chunks, pending uploads, stores left empty."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from memoranda.errors import NotFound, StorageError
from memoranda.filters import Compare
from memoranda.knowledge.files import remove_file
from memoranda.knowledge.removal import REMOVE_JOB, queue
from memoranda.storage.sql.base import Connection
from memoranda.store import listing
from memoranda.store.core import Core
from memoranda.store.forget_preview import FILES
from memoranda.store.forgetting import Forgetting, contains_phrase
from memoranda.store.rows import CHUNK
from memoranda.store.transaction import Writing
from memoranda.text.phrase import Phrase
from memoranda.text.stored import compact_json


class Erasing:
    """The erasers of files, uploads and stores."""

    def __init__(self, core: Core) -> None:
        self.core = core

    # --- files -------------------------------------------------------------------------------------

    async def files(self, run: Forgetting) -> None:
        """Erase files of the selected users; with a phrase, those that contain it: in chunks, bytes or name."""
        aim = run.aim
        if not aim.other_data:
            return
        where = aim.condition(user="user_id", time="created_at")
        if where is None:
            return
        if run.erasing:
            await run.threads.run(self.core.blobs.drop_discarded, 0.0, aim.tenant)  # no row names their owner
            await run.threads.result(run.store.db.write(lambda c: self._queue_removals(c, aim.tenant)))
            removals = await run.jobs.finish(aim.tenant, REMOVE_JOB)  # of files that were deleted before
            if any(job.state != "completed" for job in removals):
                raise StorageError("chunks of deleted files are not erased yet; call forget again")
        holding = set() if aim.text is None else await run.threads.run(self._in_chunks, run, aim.text)
        async for page in run.pages("files", "seq, id, filename", where):
            for _, id_, name in page:
                if aim.text is None or id_ in holding or await self._holds(run, aim.text, id_, name):
                    await self._erase(run, id_, name)

    def _queue_removals(self, c: Connection, tenant: str) -> None:
        """Enqueue the removals whose jobs have failed or were cancelled."""
        for owner, store_id, attached in c.all("all_removing"):
            if owner == tenant:
                queue(c, self.core, tenant, store_id, attached)

    def _in_chunks(self, run: Forgetting, phrase: Phrase) -> set[str]:
        """Return the files of which chunks, or entries in a store, contain the phrase."""
        db, tenant = run.store.db, run.aim.tenant
        sources = set[int]()
        for rows in listing.scan(db, tenant, Compare("$kind", "eq", CHUNK)):
            matching = [row.seq for row in rows if contains_phrase(row, phrase)]
            if matching:
                listed = compact_json(matching)
                places = db.read(lambda c, some=listed: c.all("places_of_chunks", [tenant, some]), tenant)  # type: ignore[misc]
                sources |= {place[1] for place in places}
        sql = "SELECT seq, file_id, attributes, notes, title, error_message FROM store_files WHERE tenant_id = ?"
        return {
            file_id
            for seq, file_id, attributes, notes, *texts in db.read(lambda c: c.select(sql, [tenant]), tenant)
            if seq in sources or phrase.within(*texts) or phrase.within_json(attributes, notes)
        }

    async def _holds(self, run: Forgetting, phrase: Phrase, id_: str, name: str) -> bool:
        return phrase.within(name) or await run.threads.run(self._in_bytes, run.aim.tenant, id_, phrase)

    def _in_bytes(self, tenant: str, id_: str, phrase: Phrase) -> bool:
        """Return True if bytes that are text contain the phrase."""
        try:
            raw = b"".join(self.core.blobs.read(tenant, id_))
        except NotFound:
            return False
        wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        return phrase.within(raw.decode("utf-16" if wide else "utf-8", "replace"))

    async def _erase(self, run: Forgetting, id_: str, name: str) -> None:
        """Erase a file: its row and its places first, so that no search shows it; then chunks, and bytes last."""
        tenant, core = run.aim.tenant, self.core
        places: list[Any] = await run.threads.run(
            run.store.db.read, lambda c: c.all("places_of_file", [tenant, id_]), tenant
        )
        chunks = await run.threads.run(run.store.db.read, lambda c: _chunks(c, tenant, places), tenant)

        def work(w: Writing) -> dict[str, int]:
            w.note([(FILES, id_)])
            counted = _chunks(w.c, tenant, places)
            return {"chunks": counted, FILES: int(remove_file(w.c, core, tenant, id_))}

        await run.change(work, {"chunks": chunks, FILES: [(id_, name)]})
        run.ids.add(id_)
        if not run.erasing:
            return
        for store_id, attached in places:  # a job would delete them, too
            async for rows in run.pages("chunks", "idx, seq", ("attached = ?", [attached]), "idx"):
                await run.change(partial(_removed, seqs=[int(seq) for _, seq in rows]))
            await run.change(partial(_settled, place=[tenant, store_id, attached]))
        await run.threads.run(core.blobs.delete, tenant, id_)

    # --- uploads -----------------------------------------------------------------------------------

    async def uploads(self, run: Forgetting) -> None:
        """Erase pending uploads with their parts."""
        aim = run.aim
        where = aim.condition(user="user_id", time="created_at") if aim.other_data else None
        async for page in run.pages("uploads", "id, filename, file_id", where, "id"):
            for id_, name, file_id in page:
                if file_id in run.ids:
                    continue  # it goes with its file
                parts = await run.threads.run(self._parts, aim.tenant, id_)
                if aim.text is not None and not await self._some(run, aim.text, name, parts):
                    continue
                work = partial(_ran, "uploads", "drop_upload", id_)
                await run.change(work, {"uploads": 1})
                for part in parts if run.erasing else ():
                    await run.threads.run(self.core.blobs.delete, aim.tenant, part)

    def _parts(self, tenant: str, upload: str) -> list[str]:
        rows = self.core.store.db.read(lambda c: c.all("parts_of", [tenant, upload]), tenant)
        return [str(row[0]) for row in rows]

    async def _some(self, run: Forgetting, phrase: Phrase, name: str, parts: Sequence[str]) -> bool:
        if phrase.within(name):
            return True
        for part in parts:
            if await run.threads.run(self._in_bytes, run.aim.tenant, part, phrase):
                return True
        return False

    # --- stores ------------------------------------------------------------------------------------

    async def stores(self, run: Forgetting) -> None:
        """Erase empty stores of users who are forgotten as a whole; clear the description of a store that contains the
        phrase."""
        aim = run.aim
        if not (aim.whole or (aim.other_data and aim.text is not None)):
            return
        where = replace(aim, since=None, until=None).condition(user="user_id")
        async for page in run.pages("vector_stores", "seq, id, name, description, metadata", where):
            for _, id_, name, description, metadata in page:
                if aim.text is None:
                    if run.erasing or not await self._has_others(run, id_):
                        await run.change(partial(_dropped, id_=id_), {"stores": 1})
                elif aim.text.within(name, description) or aim.text.within_json(metadata):
                    await run.change(partial(_ran, "stores", "blank_store", id_), {"stores": 1})

    async def _has_others(self, run: Forgetting, store_id: str) -> bool:
        """Return True if a store has files that stay."""
        async for page in run.pages("store_files", "seq, file_id", ("store_id = ?", [store_id])):
            if any(file_id not in run.ids for _, file_id in page):
                return True
        return False


def _ran(kind: str, statement: str, id_: str, w: Writing) -> dict[str, int]:
    return {kind: w.c.run(statement, [w.tenant, id_])}


def _chunks(c: Connection, tenant: str, places: Sequence[Any]) -> int:
    """Return the number of chunks of a file in its places."""
    return sum(int(row[0]) for _, at in places for row in c.all("count_attached", [tenant, at]))


def _removed(w: Writing, seqs: Sequence[int]) -> dict[str, int]:
    return {"vectors": w.remove(seqs)[1]}


def _settled(w: Writing, place: Sequence[Any]) -> dict[str, int]:
    w.c.run("drop_removing", place)
    return {}


def _dropped(w: Writing, id_: str) -> dict[str, int]:
    count = w.c.one("count_store_files", [w.tenant, id_])
    if count is not None and count[0]:
        return {"stores": 0}
    w.note([("vector_stores", id_)])
    return {"stores": w.c.run("drop_store", [w.tenant, id_])}
