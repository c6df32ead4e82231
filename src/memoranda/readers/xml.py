"""Parsing untrusted XML: no entities, no DTD, no network, and 256 levels deep at most, which is libxml2's own limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

from memoranda.readers.archive import Archive
from memoranda.readers.base import Unreadable

Element: TypeAlias = Any
"""An `lxml.etree._Element`."""

_SAFE = {
    "resolve_entities": False,
    "load_dtd": False,
    "no_network": True,
    "remove_comments": True,
    "remove_pis": True,
    "huge_tree": False,
}


def parse(archive: Archive, name: str) -> Element:
    """Return the root of a small part. Raises `Unreadable`, KeyError without such a part."""
    with archive.open(name) as file:
        try:
            return etree.parse(file, etree.XMLParser(**_SAFE)).getroot()
        except etree.XMLSyntaxError as exc:
            raise _damaged(name, exc) from exc


def fragment(text: str) -> Element:
    """Return the root of a piece of markup that may be damaged; None if nothing of it can be read."""
    return etree.fromstring(text, etree.XMLParser(**_SAFE, recover=True))


def walk(file: IO[bytes], name: str, tags: tuple[str, ...]) -> Iterator[tuple[str, str, Element]]:
    """Yield the elements of these names, in any namespace, as ("start" or "end", name, element), in a document of any
    size.

    At "end" an element has its content. Callers then call `clear` or `forget` on it, so that memory has only the
    current element. Raises `Unreadable` if the document is incomplete.
    """
    names = [f"{{*}}{tag}" for tag in tags]
    try:
        for event, element in etree.iterparse(file, events=("start", "end"), tag=names, **_SAFE):
            yield event, element.tag.rpartition("}")[2], element
    except etree.XMLSyntaxError as exc:
        raise _damaged(name, exc) from exc


def forget(element: Element) -> None:
    """Drop an element's content and the siblings before it, which are done."""
    element.clear(keep_tail=False)
    parent = element.getparent()
    if parent is not None:
        while element.getprevious() is not None:
            del parent[0]


def local(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def attribute(element: Element, name: str) -> str:
    """Return the value of an attribute, in any namespace; empty without one."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return str(value)
    return ""


def whole_number(text: str, otherwise: int) -> int:
    """Return the whole number that an attribute is; `otherwise` if it is none of at most nine digits."""
    return int(text) if text.isdecimal() and len(text) <= 9 else otherwise


def _damaged(name: str, error: etree.XMLSyntaxError) -> Unreadable:
    return Unreadable("invalid_file", f"is damaged: its part {name} is no well-formed XML ({error.msg})")
