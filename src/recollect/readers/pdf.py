"""Text of PDFs, a page at a time, by PDFium; by a second library where PDFium finds a file damaged.

Of a document's pages one is open at a time, and the document is opened again every few hundred pages, because PDFium
keeps what it has parsed until the document is closed.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as raw  # type: ignore[import-untyped]

from recollect.readers.base import Document, Heading, Limits, Unreadable
from recollect.readers.body import Body, tidy, too_many_pages

MEDIA_TYPE = "application/pdf"
LOCKED = "is locked with a password; save it without one"
DAMAGED = "is damaged, or no PDF: it cannot be opened; save it again with another program"
REOPEN_PAGES = 100
"""How many pages are read before what PDFium has kept of them is let go."""
MOST_BOOKMARKS = 20_000
MOST_OBJECTS = 10_000
"""How many of a page's objects are looked at for an image."""

_HYPHEN = re.compile(r"(\w*)[\x02\ufffe](?:\r\n)?(\w*)")
_NUMBER = r"(?:(?:\d[\d.]*|[A-Z](?:\.\d+)*\.?|[IVX]+\.?)[ \t]+)?"
_PROGRAM = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
_QUIET_ANNOTATIONS = {raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP}
_Outline = dict[int, list[tuple[int, str]]]

logging.getLogger("pypdfium2").setLevel(logging.ERROR)


def read(path: Path, limits: Limits) -> Document:
    """The text with its pages, and its bookmarks as headings where their words stand on the page that they point to."""
    try:
        pdf = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as exc:
        if exc.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise Unreadable("invalid_file", LOCKED) from exc
        return _second_try(path, limits, exc)
    pdf.close()
    return _Reading(path, limits).document()


class _Reading:
    """One pass over a PDF that opens."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.body = Body(limits)
        self.limits = limits
        self.images = 0
        self.empty = 0
        self.damaged: list[int] = []

    def document(self) -> Document:
        pdf = pdfium.PdfDocument(self.path)
        try:
            count = len(pdf)
            if count > self.limits.pages:
                raise too_many_pages(self.limits.pages)
            title = _title(pdf.get_metadata_value("Title"))
            outline = _outline(pdf)
            for index in range(count):
                if index and index % REOPEN_PAGES == 0:
                    pdf.close()
                    pdf = pdfium.PdfDocument(self.path)
                self._page(pdf, index, outline.get(index, []))
        finally:
            pdf.close()
        self._judge(count)
        return self.body.document(MEDIA_TYPE, title)

    def _page(self, pdf: Any, index: int, bookmarks: list[tuple[int, str]]) -> None:
        self.body.page(index + 1)
        page = raw.FPDF_LoadPage(pdf, index)
        if not page:
            self.damaged.append(index + 1)
            return
        try:
            text = _page_text(page)
            if not text or text.isspace():
                self.empty += 1
                self.images += _holds_image(page)
                text = ""
            notes = _annotations(page)
        finally:
            raw.FPDF_ClosePage(page)
        text = tidy(_joined(text)).strip("\n ")
        places = _places(text, bookmarks) if bookmarks and text else []
        for _, begin, end in places:
            text = text[:begin] + text[begin:end].replace("\n", " ") + text[end:]
        start = self.body.put(text)
        if start is not None:
            self.body.headings.extend(Heading(start + a, level, text[a:b]) for level, a, b in places)
        for note in notes:
            self.body.add(note, "\n")

    def _judge(self, count: int) -> None:
        """Refuses what holds no text, and notes what is missing in the rest."""
        body = self.body
        if body.empty:
            if self.images:
                what = "its page is an image" if count == 1 else f"its {count:,} pages are images"
                raise Unreadable("invalid_file", f"holds no text: {what} (scanned); run OCR on it first")
            if len(self.damaged) == count:
                raise Unreadable("invalid_file", "is damaged: none of its pages can be opened")
            raise Unreadable("invalid_file", "holds no text: its pages are empty or drawings")
        if self.images:
            body.notes.append(
                f"{self.images:,} of {count:,} pages are images without text; OCR would add them"
            )
        if self.damaged:
            numbers = ", ".join(map(str, self.damaged[:10])) + (", ..." if len(self.damaged) > 10 else "")
            body.notes.append(f"pages that could not be opened: {numbers}")


def _title(given: str) -> str | None:
    """The title that the file tells, unless the program that wrote it made it up."""
    title = _PROGRAM.sub("", given).strip()
    return None if title.casefold() in {"", "untitled", "(anonymous)", "anonymous", "unknown"} else title


def _page_text(page: Any) -> str:
    """All characters of a page, as PDFium orders them; line ends are CR LF."""
    text_page = raw.FPDFText_LoadPage(page)
    if not text_page:
        return ""
    try:
        count = raw.FPDFText_CountChars(text_page)
        if count <= 0:
            return ""
        units = (ctypes.c_ushort * (2 * count + 2))()
        written = raw.FPDFText_GetText(text_page, 0, count, units)
        return bytes(memoryview(units)[: max(0, written - 1)]).decode("utf-16-le", "ignore")
    finally:
        raw.FPDFText_ClosePage(text_page)


def _joined(text: str) -> str:
    """The text with words put together that a hyphen at a line's end had parted. The hyphen stays in a compound:
    next to a capital or a digit, and where the page has the word with it elsewhere."""
    if "\ufffe" not in text and "\x02" not in text:
        return text

    def join(match: re.Match[str]) -> str:
        left, right = match.groups()
        compound = f"{left}-{right}"
        hyphenated = not left[-1:].isalpha() or not right[:1].islower() or compound in text
        return compound if hyphenated else left + right

    return _HYPHEN.sub(join, text)


def _holds_image(page: Any) -> bool:
    """Whether an image is among the page's objects, or among those of a form on it."""
    for index in range(min(raw.FPDFPage_CountObjects(page), MOST_OBJECTS)):
        thing = raw.FPDFPage_GetObject(page, index)
        kind = raw.FPDFPageObj_GetType(thing)
        if kind == raw.FPDF_PAGEOBJ_IMAGE:
            return True
        if kind == raw.FPDF_PAGEOBJ_FORM:
            inner = range(min(raw.FPDFFormObj_CountObjects(thing), MOST_OBJECTS))
            kinds = (raw.FPDFPageObj_GetType(raw.FPDFFormObj_GetObject(thing, i)) for i in inner)
            if raw.FPDF_PAGEOBJ_IMAGE in kinds:
                return True
    return False


def _annotations(page: Any) -> list[str]:
    """What people have written onto a page: values of form fields as `name: value`, comments and stamps."""
    found = []
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), MOST_OBJECTS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_WIDGET:
            found.append(_field(annotation))
        elif kind not in _QUIET_ANNOTATIONS:
            found.append(_value(annotation, b"Contents"))
        raw.FPDFPage_CloseAnnot(annotation)
    return [words for words in found if words]


def _field(annotation: Any) -> str:
    if raw.FPDFAnnot_GetValueType(annotation, b"V") != raw.FPDF_OBJECT_STRING:
        return ""
    value = _value(annotation, b"V")
    name = _value(annotation, b"TU") or _value(annotation, b"T")
    return f"{name}: {value}" if name and value else value


def _value(annotation: Any, key: bytes) -> str:
    """A string of the annotation's dictionary."""
    size = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    if size <= 2:
        return ""
    units = (ctypes.c_ushort * (size // 2 + 1))()
    raw.FPDFAnnot_GetStringValue(annotation, key, units, size)
    return bytes(units).decode("utf-16-le", "ignore").rstrip("\0").strip()


def _outline(pdf: Any) -> _Outline:
    """Bookmarks by the index of the page that they point to, each as its level and its words."""
    found: _Outline = {}
    for bookmark in islice(pdf.get_toc(), MOST_BOOKMARKS):
        target = bookmark.get_dest()
        index = target.get_index() if target else None
        title = " ".join(bookmark.get_title().split())
        if index is not None and title:
            found.setdefault(index, []).append((bookmark.level + 1, title))
    return found


def _places(text: str, bookmarks: list[tuple[int, str]]) -> list[tuple[int, int, int]]:
    """Of each bookmark whose words begin a line of the page: its level, where they begin, where they end; in order. A
    number before the words belongs to them; a line that holds nothing else is preferred."""
    found: dict[int, tuple[int, int, int]] = {}
    for level, title in bookmarks:
        words = _NUMBER + r"\s+".join(map(re.escape, title[:300].split()))
        after = max(found, default=-1) + 1
        for pattern in (rf"^[ \t]*({words})[ \t]*$", rf"^[ \t]*({words})\b"):
            match = re.compile(pattern, re.MULTILINE | re.IGNORECASE).search(text, after)
            if match:
                found[match.start(1)] = (level, match.start(1), match.end(1))
                break
    return sorted(found.values(), key=lambda place: place[1])


def _second_try(path: Path, limits: Limits, cause: Exception) -> Document:
    """The text as pdf_oxide finds it, for files that PDFium does not open."""
    try:
        oxide = importlib.import_module("pdf_oxide")
    except ImportError:
        raise Unreadable("invalid_file", LOCKED if _encrypted(path) else DAMAGED) from cause
    oxide.disable_logging()
    body = Body(limits)
    try:
        pdf = oxide.PdfDocument(str(path))
        count = int(pdf.page_count())
        if count > limits.pages:
            raise too_many_pages(limits.pages)
        for index in range(count):
            body.page(index + 1)
            body.add(pdf.extract_text(index) or "")
    except (RuntimeError, ValueError, OSError) as exc:
        raise Unreadable("invalid_file", LOCKED if _encrypted(path) else DAMAGED) from exc
    body.notes.append("the file is damaged; what could be read of it is here")
    return body.document(MEDIA_TYPE)


def _encrypted(path: Path) -> bool:
    """Whether the file speaks of encryption anywhere; asked only of files that do not open."""
    with path.open("rb") as file:
        before = b""
        while block := file.read(1 << 20):
            if b"/Encrypt" in before + block:
                return True
            before = block[-8:]
    return False
