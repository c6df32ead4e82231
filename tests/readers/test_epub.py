"""A book made here: its chapters in the order of its spine."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from memoranda.readers import epub
from memoranda.readers.base import Limits, Unreadable

CONTAINER = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>On  Bees</dc:title></metadata>
<manifest><item id="b" href="two%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="one.xhtml" media-type="application/xhtml+xml"/>
<item id="c" href="gone.xhtml" media-type="application/xhtml+xml"/>
<item id="p" href="picture.png" media-type="image/png"/></manifest>
<spine><itemref idref="a"/><itemref idref="p"/><itemref idref="b"/><itemref idref="c"/></spine></package>"""


def chapter(heading: str, words: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head>'
        f"<body><h2>{heading}</h2><p>{words}</p><script>no</script></body></html>"
    )


def book(path: Path, **more: str) -> Path:
    members = {
        "META-INF/container.xml": CONTAINER,
        "OPS/book.opf": PACKAGE,
        "OPS/one.xhtml": chapter("The hive", "Wax &amp; honey für alle."),
        "OPS/two b.xhtml": chapter("The swarm", "They fly."),
        **{name.replace("__", "/"): text for name, text in more.items()},
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return path


def test_chapters_in_the_order_of_the_spine(tmp_path: Path) -> None:
    read = epub.read(book(tmp_path / "bees.epub"), Limits())
    assert read.title == "On Bees"
    assert read.text.split("\n\n") == ["The hive", "Wax & honey für alle.", "The swarm", "They fly."]
    assert [(heading.text, heading.level) for heading in read.headings] == [("The hive", 2), ("The swarm", 2)]
    assert all(read.text.startswith(heading.text, heading.start) for heading in read.headings)
    assert read.notes == ["a chapter is missing: OPS/gone.xhtml"]


@pytest.mark.parametrize(
    ("method", "locked"),
    [("http://www.w3.org/2001/04/xmlenc#aes128-cbc", True), ("http://www.idpf.org/2008/embedding", False)],
)
def test_encrypted_chapters_are_locked_and_encrypted_fonts_are_not(
    method: str, locked: bool, tmp_path: Path
) -> None:
    listed = f'<e><EncryptionMethod Algorithm="{method}"/></e>'
    path = book(tmp_path / "locked.epub", **{"META-INF/encryption.xml": listed})
    if locked:
        with pytest.raises(Unreadable, match="is locked"):
            epub.read(path, Limits())
    else:
        assert epub.read(path, Limits()).text


def test_a_zip_without_a_list_of_chapters_is_no_book(tmp_path: Path) -> None:
    path = tmp_path / "x.epub"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a", "b")
    with pytest.raises(Unreadable, match="no book"):
        epub.read(path, Limits())
