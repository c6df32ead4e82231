"""Images of the pages of a PDF, by PDFium, with passages of their text marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from ctypes import byref, c_double, c_int
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as raw  # type: ignore[import-untyped]
from PIL import Image, ImageChops, ImageDraw

from memoranda.readers.base import PageImage, Unreadable
from memoranda.readers.pdf import DAMAGED, LOCKED, page_text
from memoranda.text.sentences import spans

MOST_HEIGHT = 4_000
"""The most pixels of an image's height."""
HEAD = 1_024
"""The first bytes of a file, among which a PDF says that it is one."""
ROUNDING = 1 - 1e-9
"""PDFium's pixels are rounded up, those of 100.00000000000001 to 101."""
MARK = "#ffe98a"
"""The colour of marked text, which black stays black on."""
NEAR = 20
"""How many pages are searched for a passage."""
LEAST = 8
"""The fewest letters and digits of a sentence that is marked where the whole passage is not on the page."""
_Box = tuple[int, int, int, int]


def render(path: Path, number: int, width: int, passages: Sequence[str], *, find: bool = False) -> PageImage:
    """Return page `number` (from 1) of the PDF at `path`, `width` pixels wide, narrower if it would be higher than
    4 000 pixels. With `find` it is the first of 20 pages from there on that has a passage, or else a sentence of one,
    or else `number` itself.

    Raises:
        Unreadable: it is no PDF, or has a password, or is damaged.
    """
    with path.open("rb") as file:
        if b"%PDF-" not in file.read(HEAD):
            raise Unreadable("unsupported_file", "is no PDF; only pages of PDFs have images")
    try:
        pdf = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as exc:
        locked = exc.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
        raise Unreadable("invalid_file", LOCKED if locked else DAMAGED) from exc
    try:
        count = len(pdf)
        if not 1 <= number <= count:
            return PageImage(image=b"", page=number, pages=count, marked=0)
        with suppress(pdfium.PdfiumError):  # then forms are not drawn
            pdf.init_forms()
        if find and passages:
            number = _found(pdf, range(number, min(number + NEAR, count + 1)), passages)
        try:
            page = pdf[number - 1]
        except pdfium.PdfiumError as exc:
            raise Unreadable("invalid_file", f"is damaged: its page {number} cannot be opened") from exc
        image, marked = _drawn(page, width, passages)
        return PageImage(image=image, page=number, pages=count, marked=marked)
    finally:
        pdf.close()


def _found(pdf: Any, numbers: range, passages: Sequence[str]) -> int:
    """Return the first of the pages that has a whole passage, or else a sentence of one, or else the first page."""
    part: int | None = None
    for number in numbers:
        letters = _page_letters(pdf, number)
        places = [place for passage in passages for place in _spans(letters, passage)]
        if any(place.whole for place in places):
            return number
        if places and part is None:
            part = number
    return numbers[0] if part is None else part


def _page_letters(pdf: Any, number: int) -> str:
    try:
        page = pdf[number - 1]
    except pdfium.PdfiumError:
        return ""  # a damaged page has no text that was indexed
    try:
        return _plain(page_text(page)[0])
    finally:
        page.close()


def _drawn(page: Any, width: int, passages: Sequence[str]) -> tuple[bytes, int]:
    """Return a PNG of the page with the passages marked, and how many of them are on it."""
    scale = min(width / max(1.0, page.get_width()), MOST_HEIGHT / max(1.0, page.get_height()))
    image = page.render(scale=scale * ROUNDING).to_pil().convert("RGB")
    found = _boxes(page, passages, image.size) if passages else []
    if found:
        marks = Image.new("RGB", image.size, "white")
        draw = ImageDraw.Draw(marks)
        for box in (box for boxes in found for box in boxes):
            draw.rectangle(box, fill=MARK)
        image = ImageChops.multiply(image, marks)
    file = BytesIO()
    image.save(file, "PNG", compress_level=3)
    return file.getvalue(), len(found)


def _boxes(page: Any, passages: Sequence[str], size: tuple[int, int]) -> list[list[_Box]]:
    """Return where the passages that are on the page are, in pixels, a box for each line; of a passage that is not
    there as a whole, where its sentences are."""
    text_page = raw.FPDFText_LoadPage(page)
    if not text_page:
        return []
    try:
        letters, indexes = _letters(text_page)
        boxes = [
            [
                box
                for place in _spans(letters, passage)
                for box in _lines(page, text_page, indexes[place.start], indexes[place.end - 1] + 1, size)
            ]
            for passage in passages
        ]
        return [each for each in boxes if each]
    finally:
        raw.FPDFText_ClosePage(text_page)


def _letters(text_page: Any) -> tuple[str, list[int]]:
    """Return the letters and digits of a page in lower case, and the character of the page that each comes from. All
    else differs between a page and the text that was read from it."""
    letters: list[str] = []
    indexes: list[int] = []
    for index in range(max(0, raw.FPDFText_CountChars(text_page))):
        for letter in _plain(chr(min(raw.FPDFText_GetUnicode(text_page, index), 0x10FFFF))):
            letters.append(letter)
            indexes.append(index)
    return "".join(letters), indexes


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


class _Place(NamedTuple):
    """Letters [start, end) of a page; `whole` if they are all of a passage."""

    start: int
    end: int
    whole: bool


def _spans(letters: str, passage: str) -> Iterator[_Place]:
    """Yield the place of a passage among letters, or those of its sentences if it is not there as a whole."""
    wanted = _plain(passage)
    if wanted and (at := letters.find(wanted)) >= 0:
        yield _Place(at, at + len(wanted), whole=True)
        return
    sentences = (line[start:end] for line in passage.splitlines() for start, end in spans(line))
    for wanted in map(_plain, sentences):
        if len(wanted) >= LEAST and (at := letters.find(wanted)) >= 0:
            yield _Place(at, at + len(wanted), whole=False)


def _lines(page: Any, text_page: Any, start: int, end: int, size: tuple[int, int]) -> Iterator[_Box]:
    """Yield a box in pixels for each line of the characters [start, end) of a page."""
    for number in range(max(0, raw.FPDFText_CountRects(text_page, start, end - start))):
        left, top, right, bottom = (c_double() for _ in range(4))
        if not raw.FPDFText_GetRect(text_page, number, byref(left), byref(top), byref(right), byref(bottom)):
            continue
        corners = [_pixel(page, size, x, y) for x, y in ((left, top), (right, bottom))]
        (x0, x1), (y0, y1) = (sorted(values) for values in zip(*corners, strict=True))
        yield x0, y0, x1, y1


def _pixel(page: Any, size: tuple[int, int], x: c_double, y: c_double) -> tuple[int, int]:
    """Return the pixel of a point of the page, whose rotation counts."""
    column, row = c_int(), c_int()
    raw.FPDF_PageToDevice(page, 0, 0, *size, 0, x, y, byref(column), byref(row))
    return column.value, row.value
