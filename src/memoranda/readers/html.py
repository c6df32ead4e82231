"""Text of HTML and XHTML: one pass over its tags, without a tree.

Hostile markup makes a tree expensive: a million nested tags or 300 000 attributes keep every parser of whole documents
busy for minutes. Text, lines, headings and tables need only the tags in their order.
"""

from __future__ import annotations

import re
from collections.abc import Set
from pathlib import Path

import msgspec

from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import Body, raised, tidy
from memoranda.readers.html_tables import Block, Tables
from memoranda.readers.html_tags import TOKEN, Tag, box, chosen, equation, plain_words
from memoranda.readers.numerals import numeral
from memoranda.readers.plain import clean
from memoranda.text.decoding import NotText, decoded

MEDIA_TYPE = "text/html"
LONGEST_HEADING = 500

_COMMENT_END = re.compile(r"--!?>")
_CHARSET = re.compile(
    rb"<meta[^>]+?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]+?encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE
)
_XHTML = re.compile(r"\s*<\?xml|<html[^>]+xmlns\s*=", re.IGNORECASE)

_RAW = {"script", "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea"}
"""Elements that contain no tags but their own end tag."""
_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
_UNSEEN = {"nav", "template", "noscript", "svg", "datalist", "annotation", "audio", "video", "canvas"}
_STRUCK = {"del", "s", "strike"}
_EMPTY = {
    *(
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    )
}
"""Elements that have no content, and no end tag."""
_WHOLE = {"html", "body", "head"}
"""Elements that scripts make visible: a document is not hidden."""
MOST_UNCLOSED = 20
"""The most names of hidden elements whose end is looked for in vain."""
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = {"ul", "ol", "menu", "dir"}
_WIDE = {
    *("p", "dl", "pre", "blockquote", "section", "article", "header", "footer", "aside", "main", "figure"),
    *("fieldset", "form", "hr", "details", "hgroup", "address", "body", "center", "listing", "head"),
}
"""Elements with an empty line before and after them."""
_NARROW = {
    *(
        "div",
        "dt",
        "dd",
        "caption",
        "thead",
        "tbody",
        "tfoot",
        "option",
        "optgroup",
        "select",
        "legend",
        "figcaption",
    ),
    *("summary", "dialog", "button", "textarea", "search"),
}
"""Elements on lines of their own."""


class Items(msgspec.Struct):
    """The last number of an ordered list so far, and the form of its numbers: 1, a, A, i or I."""

    count: int
    form: str


def read(path: Path, limits: Limits) -> Document:
    """Return the text without scripts, styles and navigation; a line for each row of a table, ` | ` between cells."""
    if path.stat().st_size > limits.unpacked_bytes:
        raise Unreadable("invalid_file", f"is larger than {limits.unpacked_bytes >> 20:,} MB; split it")
    body, data = Body(limits), path.read_bytes()
    title = fill(body, data)
    if body.empty:
        body.notes.clear()
        body.hidden = 0
        fill(body, data, unseen=_UNSEEN - {"nav", "noscript"})
    return body.document(
        MEDIA_TYPE, title or next((heading.text for heading in body.headings if heading.level == 1), None)
    )


def fill(body: Body, data: bytes, declared: str | None = None, unseen: Set[str] = _UNSEEN) -> str:
    """Add a document's text and headings to `body` and return its title. `declared` is the encoding that a header
    outside of the document names; `unseen` are elements to leave out."""
    try:
        text = decoded(data, declared or _declared(data))
    except NotText as exc:
        raise Unreadable("invalid_file", f"is no HTML: {exc}") from exc
    flow = Flow(body, clean(text, body.notes), unseen)
    flow.run()
    return flow.title


def _declared(data: bytes) -> str | None:
    """Return the encoding that the document declares. That it is readable rules out encodings of 16 or 32 bits."""
    match = _CHARSET.search(data[:4_096])
    name = (match[1] or match[2]).decode("ascii", "replace") if match else ""
    return None if name.lower().startswith(("utf-16", "utf-32", "ucs")) else name or None


class Flow:
    """Reads one document into a `Body`."""

    def __init__(self, body: Body, text: str, unseen: Set[str]) -> None:
        self.title = ""
        self._text = text
        self._xml = _XHTML.search(text[:2_000]) is not None
        self._body = body
        self._unseen = set(unseen)
        self._unclosed: set[str] = set()
        self._sized = False  # a size of zero was for elements inside that have their own
        self._endless: set[str] = set()
        self._runs: list[str] = []
        self._broken: list[str] = []
        self._tables = Tables(body)
        self._level = 0
        self._exact = False
        self._raised = False
        self._lists: list[Items | None] = []
        self._mark = ""

    def run(self) -> None:
        """Read the document to its end."""
        text, at = self._text, 0
        while token := TOKEN.search(text, at):
            if token.start() > at:
                self._say(text[at : token.start()])
            at = self._tag(token) if token["name"] else self._aside(token)
        self._say(text[at:])
        while self._tables.depth:
            self._end_table()
        self._end_block(wide=True)

    def _say(self, words: str) -> None:
        words = plain_words(words)
        if self._raised and self._runs:
            words = raised(words, self._runs[-1])
        self._raised = False
        self._runs.append(words)

    def _aside(self, token: re.Match[str]) -> int:
        """Return where a comment or a declaration ends. In XHTML, CDATA is text."""
        if token["comment"]:
            if self._text.startswith((">", "->"), token.end()):
                return self._text.index(">", token.end()) + 1
            match = _COMMENT_END.search(self._text, token.end())
            return match.end() if match else len(self._text)
        if token["cdata"] and self._xml:
            end = self._text.find("]]>", token.end())
            self._runs.append(self._text[token.end() : end if end >= 0 else len(self._text)])
            return end + 3 if end >= 0 else len(self._text)
        end = self._text.find(">", token.end() - 1)
        return end + 1 if end >= 0 else len(self._text)

    def _tag(self, token: re.Match[str]) -> int:
        """Process a tag, and return where reading continues."""
        name, at = token["name"].lower(), token.end()
        if token["close"]:
            self._close(name)
            return at
        empty = self._is_empty(at)
        if name in _RAW:
            return at if empty else self._raw(name, at)
        if name in self._unseen and not empty:
            return self._past(name, at) or at
        tag = Tag(token)
        if not empty and (after := self._special(name, tag, at)):
            return after
        self._open(name, tag)
        if empty:
            self._close(name)
        return at

    def _is_empty(self, end: int) -> bool:
        """Return True if a tag that ends there is an element without content, as XHTML has them."""
        return self._xml and self._text.endswith("/>", 0, end)

    def _raw(self, name: str, at: int) -> int:
        """Return the position after an element without tags; an unclosed title ends at the next tag."""
        end = self._end_of(name, at)
        if end is not None:
            inner = self._text[at:end]
        elif name in ("title", "textarea"):
            end = self._text.find("<", at)
            end = len(self._text) if end < 0 else end
            inner = self._text[at:end]
        else:
            return len(self._text)
        if name == "title":
            self.title = self.title or " ".join(plain_words(inner).split())
        elif name in ("textarea", "xmp"):
            self._end_block()
            self._say(inner)
        return end

    def _end_of(self, name: str, at: int) -> int | None:
        """Return where the next end tag of this name begins; None if there is none, which is cached."""
        if name in self._endless:
            return None
        match = _ENDS[name].search(self._text, at)
        if match is None:
            self._endless.add(name)
        return match.start() if match else None

    def _special(self, name: str, tag: Tag, at: int) -> int | None:
        """Return the position after an element that is not read by its tags: one that is hidden or struck out, an
        equation, a list of choices."""
        if name in ("math", "select"):
            end = self._past(name, at)
            if end is not None and name == "select":
                self._boundary(name)
                self._runs.append(chosen(self._text[at:end], multiple=tag.get("multiple") is not None))
                self._boundary(name)
            elif end is not None and (words := equation(self._text[at:end])):
                self._runs.append(words)
            else:
                self._unclosed.add(name)
                return None
            return end
        if self._body.limits.hidden_text or name in _EMPTY or name in _WHOLE:
            return None
        unseen = name in _STRUCK or tag.is_hidden
        size = not unseen and not self._sized and tag.has_no_size
        end = self._past(name, at) if unseen or size else None
        if end is None:
            return None
        if size and "font-size" in self._text[at:end].lower():
            self._sized = True
            return None
        self._body.hidden += bool(TOKEN.sub("", self._text[at:end]).strip())
        self._boundary(name)
        return end

    def _past(self, name: str, at: int) -> int | None:
        """Return the position after an element that is not shown. One that is never closed hides nothing, nor do others
        of its name; then it is None."""
        if name in self._unclosed or len(self._unclosed) >= MOST_UNCLOSED:
            return None
        depth, here = 1, at
        while token := TOKEN.search(self._text, here):
            here = token.end()
            inner = (token["name"] or "").lower()
            if not inner:
                here = self._skip(token)
            elif inner == name:
                depth += -1 if token["close"] else 1
                if not depth:
                    return here
            elif inner in _RAW and not token["close"] and not self._is_empty(here):
                here = self._end_of(inner, here) or here
        self._unclosed.add(name)
        return None

    def _skip(self, token: re.Match[str]) -> int:
        """Return the position after a comment or a declaration that is not shown."""
        length = len(self._runs)
        end = self._aside(token)
        del self._runs[length:]
        return end

    def _open(self, name: str, tag: Tag) -> None:
        self._raised = self._raised or name == "sup"
        if name == "br":
            self._line()
        elif name == "input":
            self._runs.append(box(tag))
        elif name in _HEADINGS:
            self._end_block(wide=True)
            self._level, self._mark = _HEADINGS[name], ""
        elif name in ("pre", "listing"):
            self._end_block(wide=True)
            self._exact = True
        elif name == "li":
            self._item(tag)
        elif name in _LISTS:
            self._end_block(wide=not self._lists)
            items = Items(tag.number("start") - 1, tag.word("type")) if name == "ol" else None
            self._lists.append(items)
        elif name == "table":
            self._end_block(wide=True)
            self._tables.begin()
        elif name == "tr":
            self._end_cell(row=True)
        elif name in ("td", "th"):
            self._end_cell(row=False)
            self._tables.begin_cell(tag.number("colspan"), tag.number("rowspan"))
        else:
            self._boundary(name)

    def _close(self, name: str) -> None:
        self._raised = self._raised and name != "sup"
        if name in _LISTS:
            if self._lists:
                self._lists.pop()
            self._end_block(wide=not self._lists)
        elif name == "table":
            self._end_table()
        elif name in ("td", "th", "tr"):
            self._end_cell(row=name == "tr")
        elif name == "li":
            self._end_block()
            self._mark = ""
        elif name in _HEADINGS or name in ("pre", "listing"):
            self._end_block(wide=True)
        else:
            self._boundary(name)

    def _boundary(self, name: str) -> None:
        """Process the beginning or end of any other element. Inside a heading or a listing a block is only a line."""
        wide = name in _WIDE
        if not wide and name not in _NARROW:
            return
        if self._exact or (self._level and not wide):
            self._line()
        else:
            self._end_block(wide=wide)

    def _line(self) -> None:
        if self._exact:
            if self._runs and not self._runs[-1].endswith("\n"):
                self._runs.append("\n")
            return
        self._broken.append(" ".join("".join(self._runs).split()))
        self._runs.clear()

    def _item(self, tag: Tag) -> None:
        """Begin an item of a list: its mark precedes its text."""
        self._end_block()
        items = self._lists[-1] if self._lists else None
        if items is None:
            self._mark = "- "
            return
        items.count = tag.number("value", items.count + 1)
        self._mark = f"{numeral(items.count, items.form)}. "

    def _end_block(self, wide: bool = False) -> None:
        """End the current block: a line, and with `wide` the end of its paragraph."""
        level, exact = self._level, self._exact
        self._level, self._exact = 0, False
        if exact:
            words = tidy("".join(self._runs)).strip("\n")
        else:
            self._line()
            words = "\n".join(self._broken).strip()
        self._runs.clear()
        self._broken.clear()
        if words and not words.isspace():
            self._tables.leave_rows()
            if level and len(words) <= LONGEST_HEADING:
                self._tables.put(Block(" ".join(words.split()), level=level))
            elif exact:
                self._tables.put(Block(words, exact=True))
            else:
                self._tables.add_line(self._mark + words)
                self._mark = ""
        if wide:
            self._tables.end_lines()

    def _end_table(self) -> None:
        self._end_block(wide=not self._tables.between_cells)
        self._tables.end()

    def _end_cell(self, row: bool) -> None:
        """End the open cell, and with `row` its row."""
        self._end_block(wide=self._tables.in_cell)
        self._tables.end_cell(row)
