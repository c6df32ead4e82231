"""Export of a tenant as one file, and its restore."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memoranda.app.archive.lines import place_of_rows
from memoranda.app.archive.reading import ArchiveFile
from memoranda.app.archive.restoring import Restoring
from memoranda.app.archive.writing import Exported, write_archive
from memoranda.app.history_report import HistoryImported
from memoranda.errors import InvalidInput
from memoranda.memories.transfer import place_of
from memoranda.memory_stores.removal import CLEAR_JOB
from memoranda.sessions.merge import JOIN_JOB
from memoranda.storage.data_lock import refuse_live_database
from memoranda.store.access import must_be_admin
from memoranda.store.core import Core
from memoranda.store.job_kinds import RELEASE_JOB
from memoranda.store.validation import check_name
from memoranda.types import Subject


class Archives:
    """The archives of one tenant, for its admin."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def export_to(self, path: str | Path, *, vectors: bool = False) -> Exported:
        """Write everything of the tenant into one zip file, atomically: one snapshot of the rows, and the bytes of
        files. With `vectors`, a restore that uses the same model embeds nothing. If it is cancelled, no file is
        written, and an older one stays.

        Raises:
            Forbidden: the subject is no admin.
            StorageError: the file cannot be written; an older one stays.
        """
        must_be_admin(self.subject, "an archive")
        for kind in (JOIN_JOB, RELEASE_JOB):  # an archive has no jobs that would complete a change
            await self._core.jobs.finish(self.subject.tenant_id, kind)
        return await self._core.threads.run_stoppable(
            write_archive, self._core, self.subject.tenant_id, Path(path), vectors=vectors
        )

    async def import_from(
        self,
        source: str | Path,
        *,
        scope: str | None = None,
        user_id: str | None = None,
        dry_run: bool = False,
        include_forgotten: bool = False,
        on_progress: Callable[[HistoryImported], None] | None = None,
    ) -> HistoryImported:
        """Restore an archive into the tenant. Existing rows stay as they are, so restoring twice changes nothing.
        The whole archive is read and checked first.

        `scope` (`user:X`, `agent:X`, `channel:X`, `global`) and `user_id` replace the scope of all rows. With `dry_run`
        nothing is stored. What was forgotten after the archive was written is left out and reported, unless
        `include_forgotten`. `on_progress` is called with the report as it stands.

        Raises:
            Forbidden: the subject is no admin.
            InvalidInput: the archive cannot be read, is damaged, or is of a newer format, or an option is wrong;
            nothing was restored.
        """
        must_be_admin(self.subject, "a restore")
        place = place_of(scope)
        check_name(user_id, "user_id")
        if place is not None and place["session_id"] is not None:
            raise InvalidInput(
                "scope", "an archive has sessions of its own; use user, agent, channel or global"
            )
        path = Path(source)
        refuse_live_database(path, "source")
        # jobs would delete what is restored, too
        await self._core.jobs.finish(self.subject.tenant_id, CLEAR_JOB)
        with await self._core.threads.run(ArchiveFile, path) as archive:
            work = Restoring(
                self._core,
                self.subject,
                archive,
                place_of_rows(place, user_id),
                dry_run=dry_run,
                include_forgotten=include_forgotten,
                on_progress=on_progress,
            )
            return await work.run()
