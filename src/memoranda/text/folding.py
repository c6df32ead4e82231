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
