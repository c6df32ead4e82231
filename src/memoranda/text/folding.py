"""Signs that look alike, or cannot be seen: what texts are compared by. No I/O."""

from __future__ import annotations

from unicodedata import normalize

from memoranda.text.regex import regex

INVISIBLE = "\u00ad\u200d\u2060\ufeff"
"""Signs inside of words that cannot be seen: soft hyphens, and what joins letters."""
_INVISIBLE = regex(f"[{INVISIBLE}]")
_UNSEEN = regex(f"[{INVISIBLE}\u200b\u200c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufe0f]")
"""These, and what separates words or gives their direction."""
_APOSTROPHE = regex("(?<=\\w)[\u00b4`\u2018\u2032\u02bc\uff07](?=\\w)")
_LOOKS = str.maketrans(
    {
        "\u00b4": "'",
        "`": "'",
        "\u2018": "'",
        "\u2019": "'",
        "\u02bc": "'",
        "\u2032": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2010": "-",
        "\u2011": "-",
        "\u0131": "i",
    }
)


def _table() -> dict[int, str | None]:
    """What characters are folded to, after Unicode's form NFKC: digits, letters with marks, and marks themselves."""
    table: dict[int, str | None] = {}
    for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0x1040, 0x17E0):  # fmt: skip # noqa: E501
        table |= {zero + digit: str(digit) for digit in range(10)}
    for code in (*range(0x370, 0x400), *range(0x1F00, 0x2000)):
        table[code] = normalize("NFD", chr(code))[0]
    table |= {ord(one): other for one, other in zip("ςёЁأإآٱىیکةؤئ", "σеЕااااييكهوي", strict=True)}
    marks = (
        *range(0x300, 0x370), *range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7, 0x640,
        *range(0x64B, 0x660), 0x670, *range(0x6D6, 0x6DD), *range(0x6DF, 0x6E9), *range(0x6EA, 0x6EE),
    )  # fmt: skip
    return table | dict.fromkeys(marks)


_SAME = _table()


def same_letters(text: str) -> str:
    """Return the text with one letter for those that mean the same: in Unicode's form NFKC, with digits of ASCII, and
    without marks of Arabic, Hebrew and Greek. Latin letters keep their marks."""
    return normalize("NFKC", visible(text).replace("\u0130", "I")).translate(_SAME)


def visible(text: str) -> str:
    """Return the text without signs inside of words that cannot be seen."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def with_apostrophes(text: str) -> str:
    """Return the text, of the same length, with "'" for other signs that stand for it inside of words ("I´m")."""
    return _APOSTROPHE.sub("'", text)


def folded_of(text: str) -> str:
    """Return the text for comparison: case-folded, in Unicode's form NFKC, without signs that cannot be seen, and with
    one sign for all apostrophes, hyphens and forms of the letter i."""
    if text.isascii():
        return text.lower().replace("`", "'")
    plain = normalize(
        "NFKC", _UNSEEN.sub("", text).translate(_LOOKS)
    )  # of which an acute accent would be a space
    return normalize("NFKC", plain.casefold().translate(_LOOKS).replace("i\u0307", "i"))
