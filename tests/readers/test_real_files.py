"""Real and odd files, 240 of 15 formats: a reader answers with a whole document or says what is wrong."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from memoranda.readers.base import Document, Limits, Reader, Unreadable
from support.waiting import SECONDS

DOCS = Path(__file__).parents[3] / "shared" / "data" / "docs"
FORMATS = ("pdf", "docx", "pptx", "xlsx", "xls", "odt", "rtf", "epub", "doc", "ppt", "msg")
MODULES = {"xlsx": "sheets", "xls": "sheets", "doc": "more", "ppt": "more", "msg": "more"}

pytestmark = pytest.mark.skipif(
    not DOCS.is_dir(), reason="the folder shared/data/docs is not beside the checkout"
)


def reader(folder: str) -> Reader:
    found: Reader = importlib.import_module(f"memoranda.readers.{MODULES.get(folder, folder)}").read
    return found


@contextmanager
def ends(path: Path) -> Iterator[None]:
    """Gives up a file that a reader never comes to the end of."""

    def give_up(*_: object) -> None:
        raise TimeoutError(path.name)

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(int(SECONDS))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(read: Reader, path: Path) -> Document | Unreadable:
    try:
        return read(path, Limits())
    except Unreadable as refused:
        return refused


def whole(document: Document) -> None:
    """Every offset points at what it says, in order, and the text can be stored."""
    text = document.text
    assert text.strip()
    assert text.encode("utf-8")
    assert not any(sign in text for sign in "\x00\r\ufffe")
    for heading in document.headings:
        assert heading.text
        assert heading.text == text[heading.start : heading.start + len(heading.text)]
        assert "\n" not in heading.text
        assert heading.level >= 1
    assert all(a.start <= b.start for a, b in pairwise(document.headings))
    assert all(a.start <= b.start and a.number + 1 == b.number for a, b in pairwise(document.pages))
    assert not document.pages or (document.pages[0].start, document.pages[0].number) == (0, 1)
    assert document.title is None or document.title.strip()


@pytest.mark.parametrize("folder", FORMATS)
def test_every_file_is_read_or_refused_with_a_reason(folder: str) -> None:
    read = reader(folder)
    good = 0
    for path in sorted((DOCS / folder).iterdir()):
        with ends(path):
            found = outcome(read, path)
        if isinstance(found, Document):
            whole(found)
            good += 1
        else:
            assert found.code in ("invalid_file", "unsupported_file"), path.name
            assert len(str(found)) > 10, path.name
    assert good * 2 >= len(list((DOCS / folder).iterdir()))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("docx/tika__testWORD_numbered_list.docx", "6. six"),
        ("docx/docling__equations.docx", "equation"),
        ("docx/tika__testWORD_charts.docx", "NUMBER | January: 5 | February: 8"),
        ("docx/markitdown__test_with_comment.docx", "Unknown Author: "),
        ("pptx/docling__powerpoint_comments.pptx", "comment"),
        (
            "pptx/unstructured__fake-power-point-table.pptx",
            "Column 1 | Column 2 | Column 3\nRed | Green | Blue",
        ),
        ("xlsx/tika__testEXCEL_diagramData.xlsx", "SmartArt text#2."),
        ("xlsx/tika__test-columnar.xlsx", "1960-01-02 | 1960-01-01 00:00:10 | 00:00:03"),
        ("rtf/tika__testRTFWord2010CzechCharacters.rtf", "Svitky od Mrtvého moře jsou starověké"),
        ("odt/unstructured__fake.odt", "Header row | Mon | Wed | Fri\nColor | Blue | Red | Green"),
        ("pdf/pdf.js__bug1019475_1.pdf", "source-level debugging of optimized"),
        ("doc/tika__testWORD_2006ml.doc", "The quick brown fox jumped over"),
        ("msg/docling__msg_simple.msg", "Hello Bob,"),
    ],
)
def test_what_is_easily_missed(name: str, words: str) -> None:
    assert words in reader(name.split("/")[0])(DOCS / name, Limits()).text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pdf/pdf.js__issue19484_1.pdf", "is locked with a password"),
        ("pdf/docling__ocr_test_rotated_270.pdf", "its page is an image"),
        ("docx/tika__protected_normal_case.docx", "is locked with a password"),
        ("pptx/tika__testPPT_protected_passtika.pptx", "is locked with a password"),
        ("xlsx/tika__protectedFile.xlsx", "is locked with a password"),
        ("xls/tika__password.xls", "is locked with a password"),
        ("doc/tika__testWORD_protected_passtika.doc", "is damaged, or locked with a password"),
        ("odt/tika__testODTnotaZipFile.odt", "it is no zip archive"),
        ("xlsx/tika__testEXCEL_poi-61034.xlsx", "holds no text"),
    ],
)
def test_why_a_file_is_refused(name: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        reader(name.split("/")[0])(DOCS / name, Limits())


@pytest.mark.parametrize("folder", [folder for folder in FORMATS if folder not in ("doc", "ppt", "msg")])
def test_a_file_cut_short_is_read_or_refused(folder: str, tmp_path: Path) -> None:
    """An upload that broke off: half of each file, and each without its last hundred bytes."""
    read = reader(folder)
    path = tmp_path / f"cut.{folder}"
    for source in sorted((DOCS / folder).iterdir())[:12]:
        data = source.read_bytes()
        for kept in (len(data) // 2, len(data) - 100):
            path.write_bytes(data[: max(0, kept)])
            found = outcome(read, path)
            if isinstance(found, Document):
                whole(found)
            else:
                assert found.code == "invalid_file", source.name
