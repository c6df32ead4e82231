"""Text of PDFs, a page at a time, by PDFium; by a second library if PDFium reports a damaged file.

Of a document's pages one is open at a time, and the document is opened again every few hundred pages, because PDFium
keeps what it has parsed until the document is closed.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as raw  # type: ignore[import-untyped]

from memoranda.readers.base import Document, Heading, Limits, Unreadable
from memoranda.readers.body import Body, tidy, too_many_pages
from memoranda.readers.native import panics_are_damage

MEDIA_TYPE = "application/pdf"
LOCKED = "is locked with a password; save it without one"
DAMAGED = "is damaged, or no PDF: it cannot be opened; save it again with another program"
REOPEN_PAGES = 100
"""How many pages are read before the memory that PDFium caches for them is freed."""
MOST_BOOKMARKS = 20_000
MOST_TITLE = 1_024
"""The most bytes of a bookmark's title in UTF-16; longer ones are no headings."""
MOST_OBJECTS = 10_000
"""The most objects of a page that are searched for an image."""

_HYPHEN = re.compile(r"[\x02\ufffe](?:\r\n)?")
_WORD = re.compile(r"\w+")
_WORD_END = re.compile(r"\w+\Z")
LONGEST_WORD = 60
_FIGURES = r"(?:\d[\d.]*|[A-Z](?:\.\d+)*\.?|[IVX]+\.?)"
_NUMBER = re.compile(rf"[ \t]*({_FIGURES}[ \t]+)?", re.IGNORECASE)
"""Numbers before the text of a heading: 1.2, B.1, IV."""
_PROGRAM = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
_QUIET_ANNOTATIONS = {raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP}
_BOXES = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)
_CHOICES = (raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
_Outline = dict[int, list[tuple[int, str]]]

logging.getLogger("pypdfium2").setLevel(logging.ERROR)


def read(path: Path, limits: Limits) -> Document:
    """Return the text with its pages, and as headings the bookmarks whose title is on the page that they point to."""
    try:
        pdf = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as exc:
        if exc.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise Unreadable("invalid_file", LOCKED) from exc
        return _second_try(path, limits, exc)
    return _Reading(path, pdf, limits).document()


class _Reading:
    """One pass over a PDF that opens."""

    def __init__(self, path: Path, pdf: Any, limits: Limits) -> None:
        self.path = path
        self.pdf = pdf
        self.forms = _forms(pdf)
        self.body = Body(limits)
        self.limits = limits
        self.images = 0
        self.empty = 0
        self.damaged: list[int] = []

    def document(self) -> Document:
        try:
            count = len(self.pdf)
            if count > self.limits.pages:
                raise too_many_pages(self.limits.pages)
            title = _title(self.pdf.get_metadata_value("Title"))
            outline = _outline(self.pdf)
            for index in range(count):
                if index and index % REOPEN_PAGES == 0:
                    self.pdf.close()
                    self.pdf = pdfium.PdfDocument(self.path)
                    self.forms = _forms(self.pdf)
                self._page(index, outline.get(index, []))
        finally:
            self.pdf.close()
        self._judge(count)
        return self.body.document(MEDIA_TYPE, title)

    def _page(self, index: int, bookmarks: list[tuple[int, str]]) -> None:
        self.body.page(index + 1)
        page = raw.FPDF_LoadPage(self.pdf, index)
        if not page:
            self.damaged.append(index + 1)
            return
        try:
            text, hidden = page_text(page, shown=not self.limits.hidden_text)
            self.body.hidden += hidden
            if not text or text.isspace():
                self.empty += 1
                self.images += _holds_image(page)
                text = ""
            notes = _annotations(page, self.forms)
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
        """Refuse a document without text, and add notes on what is missing in others."""
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
    """Return the title of the file, unless the program that wrote it made it up."""
    title = _PROGRAM.sub("", given).strip()
    return None if title.casefold() in {"", "untitled", "(anonymous)", "anonymous", "unknown"} else title


def page_text(page: Any, *, shown: bool = False) -> tuple[str, int]:
    """Return the characters of a page in PDFium's order, with CR LF at line ends, and how many pieces are left out.

    With `shown` text that is drawn invisibly is left out, but on a page with an image: OCR found it there.
    """
    text_page = raw.FPDFText_LoadPage(page)
    if not text_page:
        return "", 0
    try:
        count = max(0, raw.FPDFText_CountChars(text_page))
        if not shown or not _holds(page, _is_invisible) or _holds_image(page):
            return _piece(text_page, 0, count), 0
        pieces: list[str] = []
        hidden = 0
        runs = groupby(
            range(count), lambda index: _is_invisible(raw.FPDFText_GetTextObject(text_page, index))
        )
        for is_invisible, run in runs:
            indices = list(run)
            if is_invisible:
                hidden += 1
            else:
                pieces.append(_piece(text_page, indices[0], len(indices)))
        return "".join(pieces), hidden
    finally:
        raw.FPDFText_ClosePage(text_page)


def _piece(text_page: Any, start: int, count: int) -> str:
    """Return `count` characters of a page."""
    units = (ctypes.c_ushort * (2 * count + 2))()
    written = raw.FPDFText_GetText(text_page, start, count, units)
    return bytes(memoryview(units)[: max(0, written - 1)]).decode("utf-16-le", "ignore")


def _is_invisible(thing: Any) -> bool:
    """Return True for text that is neither filled nor stroked: its rendering mode is 3."""
    return bool(
        thing
        and raw.FPDFPageObj_GetType(thing) == raw.FPDF_PAGEOBJ_TEXT
        and raw.FPDFTextObj_GetTextRenderMode(thing) == raw.FPDF_TEXTRENDERMODE_INVISIBLE
    )


def _joined(text: str) -> str:
    """Return the text with words joined that a hyphen at a line break divides. The hyphen stays in a compound: next to
    a capital or a digit, and if the page has the word with it elsewhere."""
    if "\ufffe" not in text and "\x02" not in text:
        return text

    def join(mark: re.Match[str]) -> str:
        left = _WORD_END.search(text, max(0, mark.start() - LONGEST_WORD), mark.start())
        right = _WORD.match(text, mark.end())
        if not left or not right or not left[0][-1].isalpha() or not right[0][0].islower():
            return "-"
        return "-" if f"{left[0]}-{right[0]}" in text else ""

    return _HYPHEN.sub(join, text)


def _holds_image(page: Any) -> bool:
    return _holds(page, lambda thing: raw.FPDFPageObj_GetType(thing) == raw.FPDF_PAGEOBJ_IMAGE)


def _holds(page: Any, wanted: Callable[[Any], bool]) -> bool:
    """Return True if such a thing is among the page's objects, or among those of a form on it."""
    for index in range(min(raw.FPDFPage_CountObjects(page), MOST_OBJECTS)):
        thing = raw.FPDFPage_GetObject(page, index)
        if wanted(thing):
            return True
        if raw.FPDFPageObj_GetType(thing) == raw.FPDF_PAGEOBJ_FORM:
            inner = range(min(raw.FPDFFormObj_CountObjects(thing), MOST_OBJECTS))
            if any(wanted(raw.FPDFFormObj_GetObject(thing, i)) for i in inner):
                return True
    return False


def _forms(pdf: Any) -> Any:
    """Return what PDFium needs to read the fields of a form; None without any."""
    with suppress(pdfium.PdfiumError):  # then only their texts are read
        pdf.init_forms()
    return pdf.formenv


def _annotations(page: Any, forms: Any) -> list[str]:
    """Return the annotations of a page: values of form fields as `name: value`, comments and stamps."""
    texts = []
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), MOST_OBJECTS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind == raw.FPDF_ANNOT_WIDGET:
            texts.append(_field(annotation, forms))
        elif kind not in _QUIET_ANNOTATIONS:
            texts.append(_value(annotation, b"Contents"))
        raw.FPDFPage_CloseAnnot(annotation)
    return [words for words in texts if words]


def _field(annotation: Any, forms: Any) -> str:
    """Return a field of a form: `name: value`, or a box and its name, `[x] name`; of a group of buttons with the value
    that each stands for."""
    name = _value(annotation, b"TU") or _value(annotation, b"T")
    kind = raw.FPDFAnnot_GetFormFieldType(forms, annotation) if forms else -1
    if kind in _BOXES:
        name = name or _of_field(raw.FPDFAnnot_GetFormFieldName, annotation, forms)
        box = "[ ]" if _value(annotation, b"AS") in ("", "Off") else "[x]"
        value = _of_field(raw.FPDFAnnot_GetFormFieldExportValue, annotation, forms)
        suffix = f": {value}" if value and kind == raw.FPDF_FORMFIELD_RADIOBUTTON else ""
        return f"{box} {name}{suffix}"
    if kind in _CHOICES:
        value = _of_field(raw.FPDFAnnot_GetFormFieldValue, annotation, forms)
        name = name or _of_field(raw.FPDFAnnot_GetFormFieldName, annotation, forms)
    elif raw.FPDFAnnot_GetValueType(annotation, b"V") != raw.FPDF_OBJECT_STRING:
        return ""
    else:
        value = _value(annotation, b"V")
    return f"{name}: {value}" if name and value else value


def _value(annotation: Any, key: bytes) -> str:
    """Return a string of the annotation's dictionary."""
    return _string(partial(raw.FPDFAnnot_GetStringValue, annotation, key))


def _of_field(function: Any, annotation: Any, forms: Any) -> str:
    """Return what a function says of the field that the annotation belongs to."""
    return _string(partial(function, forms, annotation))


def _string(function: Callable[[Any, int], int]) -> str:
    """Return the text that a function writes into a buffer of UTF-16, given its size in bytes."""
    size = function(None, 0)
    if size <= 2:
        return ""
    units = (ctypes.c_ushort * (size // 2 + 1))()
    function(units, size)
    return bytes(units).decode("utf-16-le", "ignore").rstrip("\0").strip()


def _outline(pdf: Any) -> _Outline:
    """Return bookmarks by the index of the page that they point to, each as its level and its title, in order."""
    bookmarks: _Outline = {}
    waiting = [(raw.FPDFBookmark_GetFirstChild(pdf, None), 1)]
    seen: set[int | None] = {None}
    buffer = ctypes.create_string_buffer(MOST_TITLE)
    while waiting and len(seen) < MOST_BOOKMARKS:
        bookmark, level = waiting.pop()
        address = ctypes.cast(bookmark, ctypes.c_void_p).value
        if address in seen:
            continue
        seen.add(address)
        waiting.append((raw.FPDFBookmark_GetNextSibling(pdf, bookmark), level))
        waiting.append((raw.FPDFBookmark_GetFirstChild(pdf, bookmark), level + 1))
        size = raw.FPDFBookmark_GetTitle(bookmark, buffer, MOST_TITLE)
        title = " ".join(buffer.raw[: size - 2].decode("utf-16-le", "ignore").split())
        target = raw.FPDFBookmark_GetDest(pdf, bookmark)
        if 2 < size <= MOST_TITLE and title and target:
            index = raw.FPDFDest_GetDestPageIndex(pdf, target)
            bookmarks.setdefault(index, []).append((level, title))
    return bookmarks


def _places(text: str, bookmarks: list[tuple[int, str]]) -> list[tuple[int, int, int]]:
    """Return of each bookmark whose title begins a line of the page its level, start and end; in order. A number before
    the title belongs to it; a line with nothing else is preferred."""
    places: dict[int, tuple[int, int, int]] = {}
    folded = text.lower()
    folded = folded if len(folded) == len(text) else text
    after = 0
    for level, title in bookmarks:
        place = _on_line(folded, title.lower(), after) or _over_lines(text, title, after)
        if place is not None:
            places[place[0]] = (level, *place)
            after = place[1]
    return sorted(places.values(), key=lambda place: place[1])


def _on_line(text: str, title: str, after: int) -> tuple[int, int] | None:
    """Return where a title is the whole of a line, but for a number before it; after an offset."""
    at = text.find(title, after)
    while at >= 0:
        start, end = text.rfind("\n", 0, at) + 1, at + len(title)
        number = _NUMBER.fullmatch(text, start, at)
        stop = text.find("\n", end)
        if number and not text[end : stop if stop >= 0 else len(text)].strip():
            return number.start(1) if number and number[1] else at, end
        at = text.find(title, end)
    return None


def _over_lines(text: str, title: str, after: int) -> tuple[int, int] | None:
    """Return where a title spans several lines, or begins one, after an offset; else None."""
    words = title.split()
    if words[0] not in text:
        return None
    pattern = r"\s+".join(map(re.escape, words))
    match = re.compile(rf"^[ \t]*((?:{_FIGURES}[ \t]+)?{pattern})(?!\w)", re.MULTILINE).search(text, after)
    return match.span(1) if match else None


def _second_try(path: Path, limits: Limits, cause: Exception) -> Document:
    """Return the text that pdf_oxide extracts, for files that PDFium does not open."""
    try:
        oxide = importlib.import_module("pdf_oxide")
    except ImportError:
        raise Unreadable("invalid_file", LOCKED if _encrypted(path) else DAMAGED) from cause
    oxide.disable_logging()
    body = Body(limits)
    try:
        with panics_are_damage():
            pdf = oxide.PdfDocument(str(path))
            for index in range(int(pdf.page_count())):
                body.page(index + 1)
                body.add(pdf.extract_text(index) or "")
    except (RuntimeError, ValueError, OSError) as exc:
        raise Unreadable("invalid_file", LOCKED if _encrypted(path) else DAMAGED) from exc
    body.notes.append("the file is damaged; what could be read of it is here")
    return body.document(MEDIA_TYPE)


def _encrypted(path: Path) -> bool:
    """Return True if the file mentions encryption anywhere; used only for files that do not open."""
    with path.open("rb") as file:
        before = b""
        while block := file.read(1 << 20):
            if b"/Encrypt" in before + block:
                return True
            before = block[-8:]
    return False
