"""Zip files of given members, as office documents are."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
Zipped = Callable[[dict[str, str]], Path]


def zipped_in(folder: Path) -> Zipped:
    """Returns what writes members into a zip file."""

    def write(members: dict[str, str]) -> Path:
        path = folder / "made.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, text in members.items():
                file.writestr(name, text)
        return path

    return write


def links(**targets: str) -> str:
    """A part's relations: id as `kind_number`, target."""
    items = (
        f'<Relationship Id="{name}" Type="{KIND}/{name.split("_")[0]}" Target="{target}"/>'
        for name, target in targets.items()
    )
    return f'<Relationships xmlns="{RELS}">{"".join(items)}</Relationships>'
