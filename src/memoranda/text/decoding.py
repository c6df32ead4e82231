"""Decode bytes: by their byte order mark, as UTF-8, as UTF-16 or UTF-32 without a mark, or by a guess."""

from __future__ import annotations

import codecs
import re

import msgspec

HEAD = 8_192
"""Bytes at the beginning of a file that identify its type."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks; UTF-32's little-endian mark begins with UTF-16's, so it is tested first."""
MOST_CONTROLS = 0.05
"""The share of control characters above which bytes are no text."""
MOST_ZEROS = 0.01
"""The same share if NULs are among them: a text may contain one by accident."""
VALID_TO_INVALID = 3
"""Other encodings seldom look like UTF-8: hardly one sequence in three is valid, even in Chinese and Thai ones."""
SAMPLE = 65_536
NOT_WESTERN = [
    *("cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1251", "koi8_r", "cp866"),
    *("cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"),
]
"""Encodings of texts in other than Western European letters."""

_CONTROLS = bytes(set(range(32)) - {8, 9, 10, 12, 13, 27})
_HIGH = re.compile(rb"[\x80-\xff]")
_FOREIGN = re.compile(r"[\x80-\xff]{3,}|(?<=[A-Za-z])[¡-©«-±´-»¼-¿×÷](?=[A-Za-z])")
"""Sequences that Western European text in Windows-1252 does not contain: three upper characters in a row, or a sign
inside a word."""
_NAMES = {
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "latin1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "windows-874": "cp874",
    "iso-8859-8-i": "iso-8859-8",
    "unicode": "utf-16",
}
"""Names that browsers map to another encoding."""
_SEVEN_BITS = ("iso2022", "hz")


class NotText(ValueError):
    """The bytes are not text; the message gives the reason in a few words."""


class Decoded(msgspec.Struct, frozen=True):
    """A decoded text, with its original line ends. `guessed` is True if neither a mark, valid UTF-8 nor a declaration
    gave the encoding; `replaced` if some bytes fit no encoding and are U+FFFD now."""

    text: str
    encoding: str
    guessed: bool = False
    replaced: bool = False


def decoded(data: bytes, declared: str | None = None) -> Decoded:
    """Decode bytes. `declared` is the encoding that a header or a tag names; valid UTF-8 takes precedence.

    Raises:
        NotText: they have more than a few NULs, many control characters, or do not fit their mark.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return _marked(data, encoding)
    if wide := _wide(data):
        return _marked(data, wide)
    if _controls(data[:HEAD]) > (MOST_ZEROS if b"\0" in data else MOST_CONTROLS):
        raise NotText("binary")
    named = _codec(declared)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        if b"\0" in data or _controls(data) > MOST_CONTROLS:
            raise NotText("binary") from None
        return _as(data, named) if named else _guess(data)
    if "\0" in text and _controls(data) > MOST_ZEROS:
        raise NotText("binary")
    if named and named.startswith(_SEVEN_BITS) and data.isascii():
        return _as(data, named)
    return Decoded(text, "utf-8")


def is_text(head: bytes) -> bool:
    """Return True if a file that begins with these bytes may be text."""
    marked = any(head.startswith(mark) for mark, _ in MARKS) or _wide(head) is not None
    return marked or _controls(head) <= (MOST_ZEROS if b"\0" in head else MOST_CONTROLS)


def _marked(data: bytes, encoding: str) -> Decoded:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        text = data.decode(encoding, "replace")
        if text.count("\ufffd") * 100 > len(text):
            raise NotText(f"begins with a {encoding} mark but is not {encoding}") from exc
        return Decoded(text, encoding, replaced=True)
    if text.count("\0") * 100 > len(text):
        raise NotText("binary")
    return Decoded(text, encoding)


def _wide(data: bytes) -> str | None:
    """Return UTF-32 or UTF-16 without a mark, detected by the zero bytes of ASCII characters; else None."""
    head = data[: HEAD // 4 * 4]
    if len(head) < 4 or b"\0" not in head or len(data) % 2:
        return None
    zeros = [head[place::4].count(0) / len(head[place::4]) for place in range(4)]
    if len(data) % 4 == 0 and zeros[0] < 0.1 and min(zeros[1:]) > 0.6:
        return _fitting(data, "utf-32-le")
    if len(data) % 4 == 0 and zeros[3] < 0.1 and min(zeros[:3]) > 0.6:
        return _fitting(data, "utf-32-be")
    if max(zeros[0], zeros[2]) < 0.05 and min(zeros[1], zeros[3]) > 0.4:
        return _fitting(data, "utf-16-le")
    if max(zeros[1], zeros[3]) < 0.05 and min(zeros[0], zeros[2]) > 0.4:
        return _fitting(data, "utf-16-be")
    return None


def _fitting(data: bytes, encoding: str) -> str | None:
    """Return the encoding if the first bytes are text in it."""
    text = data[: HEAD // 4 * 4].decode(encoding, "replace")
    odd = sum(not (sign.isprintable() or sign.isspace()) or sign == "\ufffd" for sign in text)
    return encoding if odd <= MOST_CONTROLS * len(text) else None


_NO_TEXT = ("utf-7", "punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape")
"""Encodings of Python that no document is in."""


def _codec(declared: str | None) -> str | None:
    """Return Python's name of an encoding; None for an unknown encoding, or one that is not a text encoding."""
    name = (declared or "").strip().strip("\"'").lower()
    name = _NAMES.get(name, name)
    try:
        info = codecs.lookup(name) if name.isascii() and name.isprintable() else None
    except LookupError:
        return None
    if info is None or not getattr(info, "_is_text_encoding", True):
        return None
    return None if info.name in _NO_TEXT else info.name


def _as(data: bytes, encoding: str) -> Decoded:
    """Decode bytes in their declared encoding if they mostly fit it, else guess."""
    try:
        return Decoded(data.decode(encoding), encoding)
    except UnicodeError:
        text = data.decode(encoding, "replace")
    if text.count("\ufffd") * 100 > len(text) and not encoding.startswith(_SEVEN_BITS):
        return _guess(data)
    return Decoded(text, encoding, replaced=True)


def _guess(data: bytes) -> Decoded:
    """Decode as UTF-8 if few bytes are invalid in it, as Windows-1252 or Latin-1 if the text looks Western European,
    else as the most likely of `NOT_WESTERN`."""
    if mostly := _mostly_utf_8(data):
        return mostly
    sample = _sample(data)
    for encoding in ("cp1252", "latin-1"):
        try:
            looks = sample.decode(encoding)
            if _western(looks):
                return Decoded(data.decode(encoding), encoding, guessed=True)
        except UnicodeDecodeError:
            continue
    if other := _other(sample):
        text = data.decode(other, "replace")
        if text.count("\ufffd") * 100 <= len(text):
            return Decoded(text, other, guessed=True, replaced="\ufffd" in text)
    return Decoded(data.decode("cp1252", "replace"), "cp1252", guessed=True, replaced=True)


def _mostly_utf_8(data: bytes) -> Decoded | None:
    """Return the text if it has at least `VALID_TO_INVALID` valid sequences of several bytes for each invalid one."""
    valid, text = data.decode("utf-8", "ignore"), data.decode("utf-8", "replace")
    sequences = len(valid) - len(valid.encode("ascii", "ignore"))
    invalid = text.count("\ufffd") - valid.count("\ufffd")
    if sequences < VALID_TO_INVALID * invalid:
        return None
    return Decoded(text, "utf-8", guessed=True, replaced=True)


def _western(text: str) -> bool:
    high = sum(sign > "\x7f" for sign in text)
    return sum(len(match[0]) for match in _FOREIGN.finditer(text)) * 10 <= high


def _other(sample: bytes) -> str | None:
    # Only a text that is in none of the usual encodings needs the library.
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=NOT_WESTERN, threshold=0.4).best()
    return best.encoding if best else None


def _sample(data: bytes) -> bytes:
    """Return a sample of lines from the first line that is not ASCII."""
    match = _HIGH.search(data)
    at = data.rfind(b"\n", 0, match.start()) + 1 if match else 0
    part = data[max(at, (match.start() if match else 0) - 1_000) :][:SAMPLE]
    return part[: part.rfind(b"\n") + 1] or part if len(part) == SAMPLE else part


def _controls(data: bytes) -> float:
    """Return the share of control characters."""
    return 1 - len(data.translate(None, _CONTROLS)) / len(data) if data else 0.0
