"""PDFs made here, byte by byte, each for one thing that the reader must get right."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memoranda.readers import pdf
from memoranda.readers.base import Limits, Unreadable
from support.pdf_files import page, pdf_of

Make = Callable[..., Path]


IMAGE = b"q 100 0 0 100 0 0 cm /I Do Q"


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a PDF of content streams; `more` is as in `pdf_of`."""

    def write(pages: Sequence[bytes], **more: Any) -> Path:
        path = tmp_path / "made.pdf"
        path.write_bytes(pdf_of(pages, **more))
        return path

    return write


def test_pages_title_and_bookmarks_where_their_words_stand(make: Make) -> None:
    path = make(
        [
            page(["Contents", "First part 1"]),
            page(["1.2 First part", "It begins."]),
            page(["Second", "Ends."]),
        ],
        bookmarks=[("First part", 1), ("SECOND", 2), ("Nowhere", 2)],
        title="On parts",
    )
    read = pdf.read(path, Limits())
    assert read.title == "On parts"
    assert [read.text[page.start :].split("\n")[0] for page in read.pages] == [
        "Contents",
        "1.2 First part",
        "Second",
    ]
    assert [(heading.text, heading.level) for heading in read.headings] == [
        ("1.2 First part", 1),
        ("Second", 1),
    ]
    assert all(read.text.startswith(heading.text, heading.start) for heading in read.headings)


def test_a_heading_over_two_lines_is_on_one(make: Make) -> None:
    read = pdf.read(make([page(["A long", "heading", "words"])], bookmarks=[("A long heading", 0)]), Limits())
    assert read.headings[0].text == "A long heading"
    assert read.text == "A long heading\nwords"


@pytest.mark.parametrize(
    ("raw", "joined"),
    [
        ("infor\ufffemation", "information"),
        ("infor\x02\r\nmation", "information"),
        ("well\ufffeknown and well-known", "well-known and well-known"),
        ("Saint\ufffeDenis", "Saint-Denis"),
        ("1990\ufffe1995", "1990-1995"),
        ("plain", "plain"),
    ],
)
def test_words_parted_at_a_line_end(raw: str, joined: str) -> None:
    assert pdf._joined(raw) == joined


def test_form_fields_and_comments_are_text(make: Make) -> None:
    notes = (
        b"/Annots[<</Type/Annot/Subtype/Widget/FT/Tx/T(city)/V(Ghent)/Rect[0 0 9 9]>>"
        b"<</Type/Annot/Subtype/Text/Contents(look here)/Rect[0 0 9 9]>>"
        b"<</Type/Annot/Subtype/Link/Contents(no)/Rect[0 0 9 9]>>]"
    )
    assert pdf.read(make([page(["Form"])], extra=notes), Limits()).text == "Form\n\ncity: Ghent\nlook here"


def test_boxes_and_choices_of_forms(make: Make) -> None:
    look = b"/AP<</N<</Yes 4 0 R/Off 4 0 R>>>>"
    fields = (
        b"/FT/Btn/T(smoker)/V/Yes/AS/Yes" + look,
        b"/FT/Btn/T(a)/TU(Diabetic)/AS/Off" + look,
        b"/FT/Ch/Ff 131072/T(blood)/V(B+)/Opt[(A+)(B+)]",
        b"/FT/Btn/Ff 65536/T(push)",
    )
    text = pdf.read(make([page(["Form"])], fields=fields), Limits()).text
    assert text == "Form\n\n[x] smoker\n[ ] Diabetic\nblood: B+"


def test_invisible_text_is_left_out_unless_it_is_that_of_a_scan(make: Make) -> None:
    unseen = b"BT 3 Tr /F 12 Tf 72 600 Td (Fee: 99) Tj ET"
    path = make([page(["Fee: 10"]) + b" " + unseen])
    read = pdf.read(path, Limits())
    assert (read.text, read.notes) == ("Fee: 10", ["1 part is hidden or struck out, and left out"])
    assert pdf.read(path, Limits(hidden_text=True)).text == "Fee: 10\nFee: 99"
    assert pdf.read(make([unseen + b" " + IMAGE]), Limits()).text == "Fee: 99"


def test_a_scan_says_that_it_is_one(make: Make) -> None:
    with pytest.raises(
        Unreadable, match=r"holds no text: its 2 pages are images \(scanned\); run OCR"
    ) as said:
        pdf.read(make([IMAGE, IMAGE]), Limits())
    assert said.value.code == "invalid_file"


def test_a_half_scanned_file_has_a_note(make: Make) -> None:
    read = pdf.read(make([page(["Words"]), IMAGE]), Limits())
    assert (read.text, read.notes) == ("Words", ["1 of 2 pages are images without text; OCR would add them"])


def test_an_empty_one_says_so(make: Make) -> None:
    with pytest.raises(Unreadable, match="holds no text: its pages are empty or drawings"):
        pdf.read(make([b""]), Limits())


def test_a_password_is_named(make: Make) -> None:
    lock = b"/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%b>/U<%b>>>" % (b"ab" * 32, b"cd" * 32)
    with pytest.raises(Unreadable, match="is locked with a password") as said:
        pdf.read(make([page(["Words"])], trailer=lock), Limits())
    assert said.value.code == "invalid_file"


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.pdf"
    path.write_bytes(b"%PDF-1.4\nnothing of the kind\n")
    with pytest.raises(Unreadable, match="is damaged, or no PDF"):
        pdf.read(path, Limits())


def test_too_many_pages_are_refused(make: Make) -> None:
    with pytest.raises(Unreadable, match="has more than 2 pages"):
        pdf.read(make([page(["a"])] * 3), Limits(pages=2))


def test_every_page_of_many_is_there_and_memory_is_bounded(make: Make) -> None:
    path = make([page([f"page {i} says this"] * 40) for i in range(pdf.REOPEN_PAGES * 2 + 5)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read = pdf.read(path, Limits())
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert [read.text[page.start :].split()[1] for page in read.pages] == [
        str(i) for i in range(pdf.REOPEN_PAGES * 2 + 5)
    ]
    assert grown < 50, f"{grown} MB"
