"""Bytes as text: by their byte order mark, as UTF-8, as UTF-16 or UTF-32 without a mark, or as what they look like."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

HEAD = 8_192
"""Bytes at the beginning of a file that tell what it is."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks; UTF-32's little-endian one begins with UTF-16's, so it is asked first."""
MOST_CONTROLS = 0.05
"""The share of control characters above which bytes are no text."""
MOST_ZEROS = 0.01
"""The same share where NULs are among them: a text may hold one by accident."""
SAMPLE = 65_536
OTHERS = [
    *("cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1251", "koi8_r", "cp866"),
    *("cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"),
]
"""Encodings that a text may have whose letters are not those of Western Europe."""

_CONTROLS = bytes(set(range(32)) - {8, 9, 10, 12, 13, 27})
_HIGH = re.compile(rb"[\x80-\xff]")
_FOREIGN = re.compile(r"[\x80-\xff]{3,}|(?<=[A-Za-z])[¡-©«-±´-»¼-¿×÷](?=[A-Za-z])")
"""What Western European text in Windows-1252 does not hold: three of its upper characters in a row, or a sign inside
a word."""
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
"""Names that stand for more than they say, as browsers read them."""
_SEVEN_BITS = ("iso2022", "hz")


class NotText(ValueError):
    """The bytes are no text; the message says why, in a few words."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text as it was, line ends and all. `guessed` is True when neither a mark, valid UTF-8 nor a declaration told
    the encoding; `replaced` when some bytes fit no encoding and are U+FFFD now."""

    text: str
    encoding: str
    guessed: bool = False
    replaced: bool = False


def decoded(data: bytes, declared: str | None = None) -> Decoded:
    """The bytes as text. `declared` is the encoding that a header or a tag names: valid UTF-8 weighs more.

    Raises:
        NotText: they hold more than a few NULs, many control characters, or are not what their mark says.
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
    """Whether a file that begins with these bytes may be a text."""
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
    """UTF-32 or UTF-16 without a mark, told by where the zeros are that ASCII characters have there."""
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
    """The encoding, if the first bytes are text in it."""
    text = data[: HEAD // 4 * 4].decode(encoding, "replace")
    odd = sum(not (sign.isprintable() or sign.isspace()) or sign == "\ufffd" for sign in text)
    return encoding if odd <= MOST_CONTROLS * len(text) else None


def _codec(declared: str | None) -> str | None:
    """The name under which Python knows an encoding; None for one it does not, and for what is no text encoding."""
    name = (declared or "").strip().strip("\"'").lower()
    name = _NAMES.get(name, name)
    try:
        info = codecs.lookup(name) if name.isascii() and name.isprintable() else None
    except LookupError:
        return None
    if info is None or not getattr(info, "_is_text_encoding", True):
        return None
    return (
        None
        if info.name in ("utf-7", "punycode", "idna", "unicode_escape", "raw_unicode_escape")
        else info.name
    )


def _as(data: bytes, encoding: str) -> Decoded:
    """The bytes in the encoding that they declare, if they mostly fit it."""
    try:
        return Decoded(data.decode(encoding), encoding)
    except UnicodeError:
        text = data.decode(encoding, "replace")
    if text.count("\ufffd") * 100 > len(text) and not encoding.startswith(_SEVEN_BITS):
        return _guess(data)
    return Decoded(text, encoding, replaced=True)


def _guess(data: bytes) -> Decoded:
    """Windows-1252 or Latin-1 for what looks Western European, else the most likely of `OTHERS`."""
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


def _western(text: str) -> bool:
    high = sum(sign > "\x7f" for sign in text)
    return sum(len(match[0]) for match in _FOREIGN.finditer(text)) * 10 <= high


def _other(sample: bytes) -> str | None:
    # Only a text that is in none of the usual encodings needs the library.
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=OTHERS, threshold=0.4).best()
    return best.encoding if best else None


def _sample(data: bytes) -> bytes:
    """Lines from the first one that is not ASCII."""
    found = _HIGH.search(data)
    at = data.rfind(b"\n", 0, found.start()) + 1 if found else 0
    part = data[max(at, (found.start() if found else 0) - 1_000) :][:SAMPLE]
    return part[: part.rfind(b"\n") + 1] or part if len(part) == SAMPLE else part


def _controls(data: bytes) -> float:
    """The share of control characters."""
    return 1 - len(data.translate(None, _CONTROLS)) / len(data) if data else 0.0
