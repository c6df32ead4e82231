"""What a file is, by its content, and what is said of those that nobody reads."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from memoranda.readers import detect, formats
from memoranda.readers.archive import LOCKED
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.text.decoding import HEAD

DOCS = Path(__file__).parents[3] / "shared" / "data" / "docs"

Kind = Callable[..., str]


def zipped(**members: str) -> bytes:
    """A zip file; `__` in a name stands for a slash, `_` for a dot."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return buffer.getvalue()


def types(main: str) -> str:
    return f"<Types><Override ContentType='application/vnd.openxmlformats-officedocument.{main}.main+xml'/></Types>"


def office(folder: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(f"{folder}/any.xml", "<a/>")
    return buffer.getvalue()


@pytest.fixture
def kind(tmp_path: Path) -> Kind:
    def media_type(data: bytes, name: str = "") -> str:
        path = tmp_path / "file"
        path.write_bytes(data)
        return detect.media_type(path, name)

    return media_type


MAIL = b"Received: from a\r\n by b\r\nFrom: a@example.com\r\nSubject: x\r\n\r\nwords\r\n"


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (b"%PDF-1.7\n", "", detect.PDF),
        (b"%PDF-1.7\n", "notes.txt", detect.PDF),
        (b"\r\n%PDF-1.7\n", "", detect.PDF),
        (b"printed by a spooler\n%PDF-1.7\nstream\n%%EOF\n", "a", detect.PDF),
        (b"A file begins with %PDF-1.7 when it is one.", "notes.md", "text/markdown"),
        (b"{\\rtf1 words}", "a.doc", detect.RTF),
        (office("word"), "a.pdf", detect.DOCX),
        (office("word"), "a.docm", detect.DOCX),
        (office("ppt"), "", detect.PPTX),
        (office("xl"), "", detect.XLSX),
        (zipped(mimetype="application/epub+zip", a="x"), "a.zip", detect.EPUB),
        (zipped(mimetype="application/vnd.oasis.opendocument.text-template", a="x"), "", detect.ODT),
        (zipped(mimetype="application/vnd.oasis.opendocument.spreadsheet", a="x"), "", detect.ODS),
        (zipped(mimetype="application/vnd.oasis.opendocument.presentation", a="x"), "", detect.ODP),
        (b"<!DOCTYPE html><p>x", "a.txt", detect.HTML),
        (b"\xef\xbb\xbf<!-- made by hand -->\n<HTML><p>x", "", detect.HTML),
        ("<html>".encode("utf-16"), "", detect.HTML),
        (b"<?xml version='1.0'?><html xmlns='x'/>", "a.xml", detect.HTML),
        (b"<div align='center'>logo</div>\n\n# Name", "README.md", "text/markdown"),
        (b"<div>words</div>", "", detect.HTML),
        (b"<div>words</div>", "a.txt", "text/plain"),
        (b"<script>let total = 4711</script>\n<h1>x</h1>", "a.svelte", "text/plain"),
        (b"<style>p {}</style>\n<p>x", "page.html", detect.HTML),
        (b"words only", "page.HTM", detect.HTML),
        (b"<?xml version='1.0'?><a/>", "a.xml", "application/xml"),
        (MAIL, "", detect.MAIL),
        (MAIL, "a.txt", detect.MAIL),
        (MAIL, "howto.md", "text/markdown"),
        (b"From: here\nTo: there\nSubject: a poem\n\nwords", "poem.txt", "text/plain"),
        (b"no header at all", "a.eml", detect.MAIL),
        (b"a,b\n1,2\n", "a.csv", "text/csv"),
        (b"a\tb\n", "a.tsv", "text/tab-separated-values"),
        (b"{}", "a.json", "application/json"),
        (b"{}\n{}", "a.jsonl", "application/jsonl"),
        (b"a: 1", "a.yaml", "application/yaml"),
        (b"import os\n", "a.py", "text/x-python"),
        (b"import os\n", "folder.py/a", "text/plain"),
        ("Grüße".encode("utf-16-le") * 30, "a.txt", "text/plain"),
        (("x" * (HEAD - 1) + "é").encode(), "a.txt", "text/plain"),
    ],
)
def test_what_a_file_is(kind: Kind, data: bytes, name: str, expected: str) -> None:
    assert kind(data, name) == expected


@pytest.mark.parametrize(
    ("data", "name", "code", "words"),
    [
        (b"", "a.txt", "invalid_file", "is empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a.txt", "unsupported_file", "is a PNG image; what can be read are texts"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a.pdf", "unsupported_file", "is a JPEG image"),
        (b"ID3\3\0\0\0\0\0\0", "song.mp3", "unsupported_file", "is an audio file"),
        (b"\x7fELF\2\1\1\0", "", "unsupported_file", "is a program"),
        (bytes(range(256)) * 40, "a.md", "unsupported_file", "is binary, of a kind that is not known"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "a.svg", "unsupported_file", "is an SVG image"),
        (zipped(a_txt="x"), "a.zip", "unsupported_file", "is a zip archive"),
        (zipped(mimetype="application/vnd.oasis.opendocument.graphics"), "", "unsupported_file", "is an OpenDocument"),
        (b"PK\3\4 cut", "a.zip", "invalid_file", "it may be cut short"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 cut", "", "invalid_file", "is damaged"),
    ],
)  # fmt: skip
def test_what_is_said_of_others(kind: Kind, data: bytes, name: str, code: str, words: str) -> None:
    with pytest.raises(Unreadable, match=words) as caught:
        kind(data, name)
    assert caught.value.code == code


def test_the_list_of_parts_tells_when_folders_do_not(kind: Kind) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("[Content_Types].xml", types("wordprocessingml.document"))
        archive.writestr("main.xml", "<a/>")
    assert kind(buffer.getvalue()) == detect.DOCX


def test_a_document_cut_short_goes_to_its_reader(kind: Kind) -> None:
    assert kind(office("word")[:80], "a.docx") == detect.DOCX
    assert kind(office("xl")[:90]) == detect.XLSX


def test_a_member_that_unpacks_to_much_is_not_unpacked(kind: Kind) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "x" * 20_000_000)
    with pytest.raises(Unreadable, match="a zip archive"):
        kind(buffer.getvalue())


def test_every_reader_can_be_loaded() -> None:
    for named in formats.READERS.values():
        assert callable(formats.reader(named))


def test_the_kind_of_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_text("a,b\n1,2\n")
    assert formats.read(path, "table.csv", Limits()).media_type == "text/csv"
    assert formats.read(path, "table.unknown", Limits()).media_type == "text/plain"


def shouted(path: Path, limits: Limits) -> Document:
    return Document(text=path.read_text().upper(), media_type="text/x-loud")


def test_a_reader_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_text("words")
    mine = f"{__name__}:shouted"
    assert formats.read(path, "a.loud", Limits(), {".loud": mine}).text == "WORDS"
    assert formats.read(path, "a.csv", Limits(), {"text/csv": mine}).text == "WORDS"
    assert formats.read(path, "a.txt", Limits(), {"text/csv": mine}).text == "words"
    with pytest.raises(Unreadable, match="no_such_module") as caught:
        formats.read(path, "a.loud", Limits(), {".loud": "no_such_module:read"})
    assert caught.value.code == "server_error"
    path.write_text("")
    with pytest.raises(Unreadable, match="is empty"):
        formats.read(path, "a.loud", Limits(), {".loud": mine})


@pytest.mark.skipif(not DOCS.is_dir(), reason="the folder shared/data/docs is not beside the checkout")
def test_real_files_are_what_their_folder_says() -> None:
    odd = {
        "doc/unstructured__eng_spa_mult.doc": detect.DOCX,
        "ppt/unstructured__eng_spa_mult.ppt": detect.PPTX,
        "doc/tika__testWORDML_tableInsideParagraph.doc": detect.WORD_XML,
        "doc/tika__file13_attachANotB.doc": "text/plain",
        "odt/tika__testODTnotaZipFile.odt": "text/plain",
        "txt/unstructured__fake-email.txt": detect.MAIL,
    }
    usual = {
        "docx": detect.DOCX, "pptx": detect.PPTX, "xlsx": detect.XLSX, "doc": detect.DOC, "xls": detect.XLS,
        "ppt": detect.PPT, "msg": detect.MSG, "odt": detect.ODT, "epub": detect.EPUB, "rtf": detect.RTF,
        "pdf": detect.PDF, "html": detect.HTML, "eml": detect.MAIL, "md": "text/markdown", "txt": "text/plain",
    }  # fmt: skip
    seen, locked = 0, []
    for path in sorted(DOCS.glob("*/*")):
        name = path.relative_to(DOCS).as_posix()
        try:
            found = detect.media_type(path, path.name)
        except Unreadable as refused:
            locked.append(str(refused))
            continue
        assert found == odd.get(name, usual[path.parent.name]), name
        seen += 1
    assert seen > 200
    assert set(locked) == {LOCKED}
