"""Text of electronic books (.epub): the chapters in reading order, each by the HTML reader."""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import unquote

from memoranda.readers import html
from memoranda.readers.archive import LOCKED, Archive
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import Body
from memoranda.readers.xml import Element, attribute, parse

MEDIA_TYPE = "application/epub+zip"

_CHAPTERS = {"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"}
_FONTS_ONLY = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}


def read(path: Path, limits: Limits) -> Document:
    """Return all chapters with their headings, and the book's title. A book has no pages of its own."""
    with Archive(path, limits) as archive:
        if _locked(archive):
            raise Unreadable("invalid_file", LOCKED)
        package = _package(archive)
        root = parse(archive, package)
        body = Body(limits)
        for part in _spine(root, posixpath.dirname(package)):
            if part not in archive:
                body.notes.append(f"a chapter is missing: {part}")
                continue
            html.fill(body, archive.read(part))
        title = root.find(".//{*}metadata//{*}title")
        return body.document(MEDIA_TYPE, "" if title is None else "".join(title.itertext()))


def _locked(archive: Archive) -> bool:
    """Return True if more than fonts is encrypted."""
    name = "META-INF/encryption.xml"
    if name not in archive:
        return False
    methods = parse(archive, name).iter("{*}EncryptionMethod")
    return any(attribute(method, "Algorithm") not in _FONTS_ONLY for method in methods)


def _package(archive: Archive) -> str:
    """Return the name of the part that lists all others."""
    if "META-INF/container.xml" in archive:
        for rootfile in parse(archive, "META-INF/container.xml").iter("{*}rootfile"):
            name = unquote(attribute(rootfile, "full-path"))
            if name in archive:
                return name
    listing = next((name for name in archive.names if name.endswith(".opf")), None)
    if listing is None:
        raise Unreadable("invalid_file", "is damaged, or no book: it has no list of its chapters")
    return listing


def _spine(root: Element, folder: str) -> list[str]:
    """Return the names of the chapters' parts, in reading order."""
    items = {attribute(item, "id"): item for item in root.iter("{*}item")}
    names = []
    for reference in root.iter("{*}itemref"):
        item = items.get(attribute(reference, "idref"))
        if item is not None and attribute(item, "media-type") in _CHAPTERS:
            name = unquote(attribute(item, "href").partition("#")[0])
            names.append(posixpath.normpath(posixpath.join(folder, name)))
    return names
