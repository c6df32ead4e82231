"""Archives of a server's tenant: written to, and read from, this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from memoranda.app.archive.archives import Archives
from memoranda.app.archive.writing import Exported, exported
from memoranda.app.history_report import HistoryImported
from memoranda.client.remote import Remote
from memoranda.knowledge.sources import spooled
from memoranda.memories.export_files import replacing

ARCHIVE = "/v1/archive"


class RemoteArchives(Remote, Archives):
    """The archives of the key's tenant, as `Archives` has them."""

    async def export_to(self, path: str | Path, *, vectors: bool = False) -> Exported:
        """See `Archives.export_to`."""
        with replacing(Path(path)) as file:
            async for piece in self._wire.pieces("GET", f"{ARCHIVE}?vectors={str(vectors).lower()}"):
                file.write(piece)
        return await self._wire.on_thread(exported, Path(path))

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
        """See `Archives.import_from`; `on_progress` is called once, when the server has answered."""
        given = {"scope": scope, "user_id": user_id}
        fields = {name: value for name, value in given.items() if value is not None}
        flags = {"dry_run": dry_run, "include_forgotten": include_forgotten}
        fields |= {name: "true" for name, wanted in flags.items() if wanted}
        async with spooled(Path(source)) as file:
            answer = await self._wire.form(ARCHIVE, fields, Path(source).name, file, "application/zip")
        report = msgspec.json.decode(answer, type=HistoryImported)
        if on_progress is not None:
            on_progress(report)
        return report
