"""Plain text, Markdown, JSON, source code: the text is unchanged, but for the escapes of JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from memoranda.readers.base import Document, Heading, Limits, Unreadable
from memoranda.text.decoding import Decoded, NotText, decoded

PLAIN = "text/plain"
MARKDOWN = "text/markdown"

_UNWANTED = re.compile("[\0\ud800-\udfff\ufffe\uffff]")
_ESCAPE = re.compile(
    r"\\(?:u(?P<pair>[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|u(?P<one>[0-9a-fA-F]{4})|.)"
)
_LINE = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>[^\n]*)"
    r"|(?P<marks>#{1,6})[ \t]+(?P<words>[^ \t\n][^\n]*)"
    r"|(?P<under>=+|-+)[ \t]*)$",
    re.MULTILINE,
)
"""Lines of Markdown that open or close a fence, are a heading, or underline one."""
_NO_PARAGRAPH = re.compile(r" {4}|\t| {0,3}(?:[>|#<]|[-*+][ \t]|\d{1,9}[.)][ \t]|`{3}|~{3})")
_BEFORE = re.compile(r"\s*\Z| {0,3}(?:#{1,6}[ \t]|`{3}|~{3}|(?:[-=*_][ \t]*)+\s*\Z)")
"""A line after which a paragraph begins."""
_FRONT = re.compile(
    r"---[ \t]*\n(?P<front>(?:(?!---[ \t]*$|\.\.\.[ \t]*$)[^\n]*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
_TITLE = re.compile(r"^title:[ \t]*(?P<title>\S[^\n]*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)


def read(path: Path, limits: Limits) -> Document:
    """Return the text with its line ends as `\\n`, without NULs. No title, no headings, no pages."""
    notes: list[str] = []
    return Document(text=_text(path, limits, notes), media_type=PLAIN, notes=notes)


def markdown(path: Path, limits: Limits) -> Document:
    """Return the text unchanged, its headings, and as title that of its front matter or its first heading of level
    1."""
    notes: list[str] = []
    text = _text(path, limits, notes)
    front = _FRONT.match(text)
    found_headings = list(headings(text, front.end() if front else 0))
    match = _TITLE.search(front["front"]) if front else None
    title = _unquoted(match["title"]) if match else ""
    title = title or next((heading.text for heading in found_headings if heading.level == 1), "")
    return Document(text=text, media_type=MARKDOWN, title=title or None, headings=found_headings, notes=notes)


def json(path: Path, limits: Limits) -> Document:
    """Return JSON, or JSON Lines, with `\\u` escapes as the characters they stand for, unless those are ASCII or not
    printable."""
    document = read(path, limits)
    if "\\u" in document.text:
        document.text = _ESCAPE.sub(_unescaped, document.text)
    return document


def _unescaped(escape: re.Match[str]) -> str:
    digits = (escape["pair"] or escape["one"] or "").replace("\\u", "")
    character = bytes.fromhex(digits).decode("utf-16-be", "replace")
    return (
        character if character > "\x7f" and character.isprintable() and character != "\ufffd" else escape[0]
    )


def headings(text: str, begin: int = 0) -> Iterator[Heading]:
    """Yield the headings of a Markdown text from character `begin` on, fenced code left out. A heading starts at its
    words, behind the marks."""
    fence = ""
    for line in _LINE.finditer(text, begin):
        if fence:
            closing = line["fence"] and line["fence"].startswith(fence) and not line["info"].strip()
            fence = "" if closing else fence
        elif line["fence"]:
            fence = line["fence"]
        elif line["marks"]:
            if words := _without_closing(line["words"]):
                yield Heading(line.start("words"), len(line["marks"]), words)
        elif line["under"] and (heading := _underlined(text, begin, line)):
            yield heading


def _underlined(text: str, begin: int, line: re.Match[str]) -> Heading | None:
    """Return the heading above a line of `=` or `-`, a paragraph of one line; else None."""
    last = line.start() - 1
    start = text.rfind("\n", begin, max(begin, last)) + 1 or begin
    above = text[start : max(start, last)]
    before = text[text.rfind("\n", begin, max(begin, start - 1)) + 1 or begin : start]
    words = above.strip()
    if not words or _NO_PARAGRAPH.match(above) or not _BEFORE.match(before):
        return None
    return Heading(start + above.index(words), 1 if line["under"][0] == "=" else 2, words)


def _without_closing(words: str) -> str:
    """Return the words of a heading without the marks that may close it."""
    words = words.rstrip()
    bare = words.rstrip("#")
    return bare.rstrip() if bare != bare.rstrip() or not bare else words


def clean(source: Decoded, notes: list[str]) -> str:
    """Return a decoded text that can be stored, with `\\n` as line ends; `notes` gets what was guessed and removed."""
    if source.guessed:
        notes.append(f"the encoding is not declared; it was read as {source.encoding}")
    if source.replaced:
        notes.append(f"some bytes are not {source.encoding} and are left as \ufffd")
    text = source.text
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text, gone = _UNWANTED.subn("", text) if not text.isascii() or "\0" in text else (text, 0)
    if gone:
        notes.append(f"{gone:,} characters that no text can hold (NUL, half a surrogate pair) are left out")
    return text


def too_long(limits: Limits) -> Unreadable:
    """Return a text of more characters than allowed."""
    most = f"{limits.characters:,}"
    return Unreadable(
        "invalid_file", f"holds more than {most} characters of text; split it, or raise readers.characters"
    )


def _text(path: Path, limits: Limits, notes: list[str]) -> str:
    if path.stat().st_size > 4 * limits.characters + 4:  # four bytes are the most that a character takes
        raise too_long(limits)
    try:
        text = clean(decoded(path.read_bytes()), notes)
    except NotText as exc:
        raise Unreadable("unsupported_file", f"is no text: {exc}") from exc
    if len(text) > limits.characters:
        raise too_long(limits)
    if not text.strip():
        raise Unreadable("invalid_file", "holds no text")
    return text


def _unquoted(words: str) -> str:
    """Return a value of front matter without its quotes."""
    return words[1:-1].strip() if len(words) > 1 and words[0] == words[-1] and words[0] in "\"'" else words
