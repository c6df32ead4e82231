"""Shared by the formats of one family of office files: properties, relations between parts, text in drawings."""

from __future__ import annotations

import posixpath
import re

from memoranda.readers.archive import Archive
from memoranda.readers.base import Unreadable
from memoranda.readers.charts import series_line
from memoranda.readers.xml import Element, attribute, local, parse

_DRAWN = re.compile(r"/(?:chart\d*\.xml|chartEx\d*\.xml|data\d*\.xml)$")


def title(archive: Archive) -> str:
    """Return the title in the file's properties; empty without one."""
    return property_of(archive, "docProps/core.xml", "title")


def property_of(archive: Archive, part: str, name: str) -> str:
    """Return the first element called `name` in a part, as text; empty without such a part or element."""
    if part not in archive:
        return ""
    element = parse(archive, part).find(f".//{{*}}{name}")
    return "" if element is None else "".join(element.itertext()).strip()


def main_part(archive: Archive, usual: str) -> str:
    """Return the name of the main part; `usual` is its usual name."""
    for kind, target in relations(archive, "").values():
        if kind == "officeDocument" and target in archive:
            return target
    if usual in archive:
        return usual
    raise Unreadable(
        "invalid_file", "is damaged, or of another format than its name says: it has no main part"
    )


def relations(archive: Archive, part: str) -> dict[str, tuple[str, str]]:
    """Return what a part points to inside the file: by id, the last word of the relation's type and the target's
    name."""
    folder, name = posixpath.split(part)
    at = posixpath.join(folder, "_rels", f"{name}.rels")
    if at not in archive:
        return {}
    links = {}
    for relation in parse(archive, at):
        target = relation.get("Target") or ""
        if relation.get("TargetMode") == "External" or not target:
            continue
        kind = (relation.get("Type") or "").rpartition("/")[2]
        links[relation.get("Id") or ""] = (
            kind,
            posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/"),
        )
    return links


def drawn(archive: Archive, links: dict[str, tuple[str, str]]) -> list[str]:
    """Return the text of the charts and diagrams among a part's relations, a line for each paragraph, and for each
    series with its values."""
    lines: list[str] = []
    for _, target in links.values():
        if not _DRAWN.search(target) or target not in archive:
            continue
        for element in parse(archive, target).iter("{*}p", "{*}ser", "{*}strCache"):
            line = _drawn_line(element)
            if line and line not in lines:
                lines.append(line)
    return lines


def _drawn_line(element: Element) -> str:
    if local(element) == "ser":
        return series_line(element)
    if local(element) == "p":
        return "".join(part.text or "" for part in element.iter("{*}t")).strip()
    if next(element.iterancestors("{*}ser"), None) is not None:
        return ""
    return ", ".join(part.text or "" for part in element.iter("{*}v")).strip()


def value(element: object) -> str:
    """Return the `val` of an element with a single value, as `<w:name w:val="heading 1"/>` does; empty for None."""
    return "" if element is None else attribute(element, "val")
