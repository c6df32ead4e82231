"""Text of Rich Text Format files, in one pass over their words and groups.

Characters outside ASCII are in the code page of the current font, or of the document, or written as `\\u` with a
number.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import msgspec

from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import LINE, PARAGRAPH, Body, raised, table_line

MEDIA_TYPE = "application/rtf"
DEEPEST = 10_000
"""The deepest nesting of groups; deeper files are refused."""

_TOKEN = re.compile(
    r"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+|([^\\{}\r\n]+)|\\"
)
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_BODY_TEXT = 9

_CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gbk",
    136: "cp950",
    161: "cp1253",
}
_CHARSETS |= {162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251"}
_CHARSETS |= {222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850", 0: "cp1252"}
_SIGNS = {
    "tab": "\t",
    "line": "\n",
    "emdash": "—",
    "endash": "–",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "bullet": "•",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "nestcell": " | ",
    "nestrow": " ",
    "~": "\xa0",
    "_": "-",
    "{": "{",
    "}": "}",
    "\\": "\\",
}
_ASIDES = {"footnote", "annotation"}
_MARGINS = {f"{where}{pages}" for where in ("header", "footer") for pages in ("", "l", "r", "f")}
_TABLES = {"fonttbl", "stylesheet", "title"}
_SHOWN = {"shptxt", "result", "fldrslt", "listtext", "pntext"}
_HIDDEN = {
    *(
        "colortbl",
        "info",
        "pict",
        "object",
        "fldinst",
        "shpinst",
        "shprslt",
        "shppict",
        "nonshppict",
        "nonesttables",
    ),
    *(
        "nesttableprops",
        "tc",
        "xe",
        "rxe",
        "bkmkstart",
        "bkmkend",
        "filetbl",
        "revtbl",
        "ftnsep",
        "ftnsepc",
        "ftncn",
    ),
    *(
        "aftnsep",
        "aftnsepc",
        "aftncn",
        "atnid",
        "atnauthor",
        "atntime",
        "atndate",
        "atnref",
        "datafield",
        "formfield",
    ),
}
"""Destinations whose text is none of the document's, even where no `\\*` says that they may be skipped."""


class _Group(msgspec.Struct):
    """What a closing brace brings back, and what it ends."""

    shown: bool = True
    font: int = -1
    skip: int = 1
    in_table: bool = False
    outline: int | None = None
    style: int = 0
    destination: str = ""
    raised: bool = False
    deleted: bool = False
    words: list[str] = []

    @property
    def seen(self) -> bool:
        return self.shown and not self.deleted


def read(path: Path, limits: Limits) -> Document:
    """Paragraphs, headings by outline level or style, tables as lines, notes after their paragraphs; headers and
    footers once, at the end."""
    data = path.read_bytes()
    if not data.lstrip()[:5].startswith(b"{\\rtf"):
        raise Unreadable("invalid_file", "is damaged, or no RTF: it does not begin with {\\rtf")
    reading = _Reading(Body(limits))
    reading.run(data.decode("latin-1"))
    return reading.finish()


class _Reading:
    """One pass over a file."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.code_page = "cp1252"
        self.fonts: dict[int, str] = {}
        self.styles: dict[int, int] = {}
        self.title = ""
        self.margins: list[str] = []
        self.asides: list[str] = []
        self.cells: list[str] = []
        self.words: list[str] = []
        self.buffer = bytearray()
        self.group = _Group()
        self.groups: list[_Group] = []
        self.named = -1
        self.elsewhere = 0
        self.left = 0
        self.optional = False
        self.was_raised = False

    def run(self, text: str) -> None:
        at, end = 0, len(text)
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                break
            at = match.end()
            word, number, code, sign, brace, plain = match.groups()
            if plain is not None:
                self._plain(plain)
            elif word is not None:
                if word == "bin":
                    at += max(0, int(number or 0))
                else:
                    self._word(word, int(number) if number else None)
            elif code is not None:
                self._code(code)
            elif brace == "{":
                self._open()
            elif brace == "}":
                if not self._close():
                    break
            elif sign is not None:
                self._sign(sign)

    def finish(self) -> Document:
        self._end_paragraph()
        for text in self.margins:
            self.body.add(text)
        return self.body.document(MEDIA_TYPE, self.title)

    def _open(self) -> None:
        self._flush()
        self.left = 0
        if len(self.groups) >= DEEPEST:
            raise Unreadable("invalid_file", f"is damaged: its groups are more than {DEEPEST:,} deep")
        self.groups.append(self.group)
        self.group = msgspec.structs.replace(self.group, destination="", words=self.words)
        self.optional = False

    def _close(self) -> bool:
        """End a group; return False if it was the outermost."""
        self._flush()
        self.left = 0
        if not self.groups:
            return False
        ended, self.group = self.group, self.groups.pop()
        if ended.destination:
            text = "".join(self.words).strip()
            self.words = ended.words
            self.elsewhere -= 1
            self._take(ended.destination, text)
        return bool(self.groups)

    def _take(self, destination: str, text: str) -> None:
        """Take the content of a destination's group."""
        if destination in _ASIDES and text:
            self.asides.append(" ".join(text.split()))
        elif destination in _MARGINS:
            if text not in self.margins and any(character.isalpha() for character in text):
                self.margins.append(text)
        elif destination == "title":
            self.title = self.title or text
        elif destination == "stylesheet":
            self._named_style(text)

    def _named_style(self, text: str) -> None:
        for line in text.split(";"):
            number, _, name = line.partition("=")
            heading = _HEADING.search(name)
            if heading and number.isdecimal() and len(number) < 10:
                self.styles[int(number)] = int(heading[1]) - 1

    def _destination(self, word: str) -> None:
        self.group.shown = True
        if not self.group.destination:
            self.elsewhere += 1
            self.words = []
        self.group.destination = word

    def _word(self, word: str, number: int | None) -> None:
        self.left = 0
        optional, self.optional = self.optional, False
        if word == "u":
            self._unicode(number)
            return
        self._flush()
        if word in _ASIDES or word in _MARGINS or word in _TABLES:
            self._destination(word)
        elif word in _SHOWN:
            self.group.shown = self.group.shown or word in ("shptxt", "result")
        elif word in _HIDDEN or optional:
            self.group.shown = False
        elif word in _SIGNS:
            self._say(_SIGNS[word])
        elif word in _WORDS:
            _WORDS[word](self, number)

    def _sign(self, sign: str) -> None:
        self.left = 0
        self._flush()
        if sign == "*":
            self.optional = True
        elif sign in "\r\n":
            self._end_paragraph()
        elif sign in _SIGNS:
            self._say(_SIGNS[sign])

    def _plain(self, text: str) -> None:
        if self.left:
            skipped = min(self.left, len(text))
            self.left -= skipped
            text = text[skipped:]
        if self.group.seen:
            self.buffer += text.encode("latin-1")

    def _code(self, code: str) -> None:
        if self.left:
            self.left -= 1
        elif self.group.seen:
            self.buffer.append(int(code, 16))

    def _unicode(self, number: int | None) -> None:
        self._flush()
        if number is not None and -0x8000 <= number <= 0x10FFFF:
            self._say(chr(number & 0xFFFF if number < 0 else number))
        self.left = self.group.skip

    def _say(self, text: str) -> None:
        if self.group.seen:
            self._append(text)

    def _flush(self) -> None:
        if self.buffer:
            page = self.fonts.get(self.group.font, self.code_page)
            self._append(self.buffer.decode(page, "replace"))
            self.buffer.clear()

    def _append(self, text: str) -> None:
        begins = self.group.raised and not self.was_raised and self.words
        self.words.append(raised(text, self.words[-1]) if begins else text)
        self.was_raised = self.group.raised

    @property
    def _aside(self) -> bool:
        """Return True if text belongs to a note, a margin or a table of the file, or is dropped."""
        return self.elsewhere > 0 or not self.group.shown

    def _end_paragraph(self, _: int | None = None) -> None:
        if self._aside or self.group.in_table:
            self._say("\n")
            return
        text = _whole("".join(self.words))
        self.words.clear()
        outline = self.styles.get(self.group.style) if self.group.outline is None else self.group.outline
        if outline is not None and outline < _BODY_TEXT:
            self.body.heading(text, outline + 1)
        else:
            self.body.add(text, PARAGRAPH)
        self._end_asides()

    def _end_asides(self) -> None:
        for text in self.asides:
            self.body.add(text, LINE)
        self.asides.clear()

    def _end_cell(self, _: int | None) -> None:
        if not self._aside:
            self.cells.append(_whole("".join(self.words)))
            self.words.clear()

    def _end_row(self, _: int | None) -> None:
        if not self._aside:
            self.body.add(table_line(self.cells), LINE)
            self.cells.clear()
            self._end_asides()

    def _plain_paragraph(self, _: int | None) -> None:
        self.group.in_table, self.group.outline, self.group.style = False, None, 0

    def _into_table(self, _: int | None) -> None:
        self.group.in_table = True

    def _set_outline(self, number: int | None) -> None:
        self.group.outline = number

    def _set_style(self, number: int | None) -> None:
        self.group.style = number or 0
        if any(group.destination == "stylesheet" for group in self.groups):
            self.words.append(f"{self.group.style}=")

    def _set_font(self, number: int | None) -> None:
        self.group.font = self.named = -1 if number is None else number

    def _set_charset(self, number: int | None) -> None:
        page = _CHARSETS.get(-1 if number is None else number)
        if page:
            self.fonts[self.named] = page

    def _set_code_page(self, number: int | None) -> None:
        self.code_page = _known(f"cp{number}")

    def _set_raised(self, number: int | None) -> None:
        self.group.raised = number != 0

    def _set_level(self, _: int | None) -> None:
        self.group.raised = False

    def _set_deleted(self, number: int | None) -> None:
        self.group.deleted = number != 0

    def _set_plain(self, _: int | None) -> None:
        self.group.raised = self.group.deleted = False

    def _set_skip(self, number: int | None) -> None:
        self.group.skip = max(0, number or 0)


_WORDS = {
    "par": _Reading._end_paragraph,
    "sect": _Reading._end_paragraph,
    "page": _Reading._end_paragraph,
    "cell": _Reading._end_cell,
    "row": _Reading._end_row,
    "pard": _Reading._plain_paragraph,
    "plain": _Reading._set_plain,
    "super": _Reading._set_raised,
    "nosupersub": _Reading._set_level,
    "sub": _Reading._set_level,
    "deleted": _Reading._set_deleted,
    "intbl": _Reading._into_table,
    "outlinelevel": _Reading._set_outline,
    "s": _Reading._set_style,
    "f": _Reading._set_font,
    "fcharset": _Reading._set_charset,
    "ansicpg": _Reading._set_code_page,
    "uc": _Reading._set_skip,
}


def _known(page: str) -> str:
    """Return the code page, or the usual one if Python lacks it."""
    try:
        codecs.lookup(page)
    except LookupError:
        return "utf-8" if page == "cp65001" else "cp1252"
    return page


def _whole(text: str) -> str:
    """Return text with surrogate pairs joined."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
