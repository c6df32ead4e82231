"""Archives of a server's tenant: written to, and read from, this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from memoranda.app.archive.writing import Exported, exported
from memoranda.app.history_report import HistoryImported
from memoranda.client.wire import Wire
from memoranda.knowledge.sources import opened
from memoranda.memories.export_files import replacing

ARCHIVE = "/v1/archive"


class ClientArchives:
    """The archives of the key's tenant, as `Archives` has them."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def export_to(self, path: str | Path, *, vectors: bool = False) -> Exported:
        """See `Archives.export_to`."""
        with replacing(Path(path)) as file:
            for piece in self._wire.pieces("GET", f"{ARCHIVE}?vectors={str(vectors).lower()}"):
                file.write(piece)
        return exported(Path(path))

    def import_from(
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
        with opened(Path(source)) as file:
            answer = self._wire.form(ARCHIVE, fields, Path(source).name, file, "application/zip")
        report = msgspec.json.decode(answer, type=HistoryImported)
        if on_progress is not None:
            on_progress(report)
        return report
