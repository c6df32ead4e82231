"""Images of pages of PDFs: their size, what is marked on them, and what cannot be drawn."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageColor

from memoranda.readers import Limits, Readers, Unreadable
from memoranda.readers.base import PageImage
from memoranda.readers.pages import MARK, MOST_HEIGHT, render
from support.pdf_files import page, pdf_of

LINES = ["The gate is painted in June.", "Mara is allergic to bees, and to", "nothing else. The roof leaks."]
YELLOW = ImageColor.getrgb(MARK)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "house.pdf"
    path.write_bytes(pdf_of([page(LINES), page(["The second page."])]))
    return path


def rows_marked(drawn: PageImage) -> list[int]:
    """The rows of the image that have a marked pixel."""
    with Image.open(BytesIO(drawn.image)) as image:
        width, height = image.size
        pixels = image.load()
        assert pixels is not None
        return [y for y in range(height) if any(pixels[x, y] == YELLOW for x in range(width))]


def test_a_page_is_as_wide_as_asked(file: Path) -> None:
    for width in (100, 1_000):
        drawn = render(file, 1, width, [])
        with Image.open(BytesIO(drawn.image)) as image:
            assert (image.format, image.width) == ("PNG", width)
            assert image.height == pytest.approx(width * 842 / 595, abs=1)
        assert (drawn.pages, drawn.marked, rows_marked(drawn)) == (2, 0, [])


def test_a_passage_is_marked_where_it_stands(file: Path) -> None:
    """A line is 14 points below the last, and the first one is at 790 of 842."""
    first = rows_marked(render(file, 1, 595, ["The gate is painted in June."]))
    assert 38 <= min(first) <= max(first) <= 56
    over_two_lines = rows_marked(render(file, 1, 595, ["Mara is allergic to bees,\nand to nothing else."]))
    assert 52 <= min(over_two_lines) <= 60
    assert 70 <= max(over_two_lines) <= 84
    assert render(file, 2, 595, ["The gate is painted in June."]).marked == 0


def test_sentences_of_a_passage_are_marked_where_it_is_not_whole(file: Path) -> None:
    drawn = render(file, 1, 595, ["From another page. The roof leaks. No."])
    assert drawn.marked == 1
    assert 66 <= min(rows_marked(drawn)) <= max(rows_marked(drawn)) <= 84


def test_marks_turn_with_the_page(tmp_path: Path) -> None:
    path = tmp_path / "turned.pdf"
    path.write_bytes(pdf_of([page(["Words on their side"])], extra=b"/Rotate 90"))
    drawn = render(path, 1, 842, ["Words on their side"])
    with Image.open(BytesIO(drawn.image)) as image:
        assert image.size == (842, 595)
    rows = rows_marked(drawn)
    assert 45 <= min(rows) <= 55
    assert max(rows) - min(rows) > 80


def test_a_very_long_page_is_narrower(tmp_path: Path) -> None:
    path = tmp_path / "long.pdf"
    path.write_bytes(pdf_of([page(["x"])], extra=b"/MediaBox[0 0 100 14000]"))
    with Image.open(BytesIO(render(path, 1, 2_000, []).image)) as image:
        assert image.height <= MOST_HEIGHT
        assert image.width == pytest.approx(MOST_HEIGHT / 140, abs=1)


def test_a_page_that_is_not_there_has_no_image(file: Path) -> None:
    for number in (0, 3, -1):
        assert render(file, number, 500, []) == PageImage(image=b"", page=number, pages=2, marked=0)


def test_the_page_of_a_passage_is_found(file: Path) -> None:
    for number, passage, page_found in (
        (1, "The second page.", 2),
        (1, "Mara is", 1),
        (2, "Mara is allergic", 2),
    ):
        drawn = render(file, number, 200, ["Nowhere at all.", passage], find=True)
        assert (drawn.page, drawn.marked) == (page_found, int(number == 1))


def test_a_whole_passage_is_found_before_a_sentence_of_one(tmp_path: Path) -> None:
    path = tmp_path / "long.pdf"
    texts = [
        "Part one.",
        "As noted above it rains.",
        "Nothing.",
        "As noted above it rains. It is wet.",
        *["x"] * 20,
        "Far away.",
    ]
    path.write_bytes(pdf_of([page([text]) for text in texts]))
    for number, passage, found in (
        (1, "As noted above it rains. It is wet.", 4),
        (1, "As noted above it rains. It is dry.", 2),
        (1, "Far away.", 1),
        (6, "Far away.", 25),
        (1, "A sentence that the end of a page Part one. divides", 1),
    ):
        assert render(path, number, 100, [passage], find=True).page == found
    assert render(path, 3, 100, [], find=True).page == 3


def test_what_cannot_be_drawn_says_why(tmp_path: Path) -> None:
    path = tmp_path / "file"
    lock = b"/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%b>/U<%b>>>" % (b"ab" * 32, b"cd" * 32)
    for content, code, says in (
        (b"just text", "unsupported_file", "is no PDF; only pages of PDFs have images"),
        (b"%PDF-1.4\nnothing of the kind", "invalid_file", "is damaged, or no PDF"),
        (pdf_of([page(["x"])], trailer=lock), "invalid_file", "is locked with a password"),
    ):
        path.write_bytes(content)
        with pytest.raises(Unreadable, match=says) as caught:
            render(path, 1, 500, [])
        assert caught.value.code == code


async def test_a_worker_draws_beside_reading(file: Path) -> None:
    readers = Readers(1, Limits())
    try:
        drawn = await readers.render(file, 2, 300, ["The second page."])
        assert (drawn.pages, drawn.marked, drawn.image[:4]) == (2, 1, b"\x89PNG")
        assert "The second page." in (await readers.read(file, "house.pdf")).document.text
    finally:
        await readers.close()
