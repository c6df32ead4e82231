"""Numbers that are written as words, English and German, from zero to twelve; and numbers that name a thing. No I/O."""

from __future__ import annotations

import re

from memoranda.text.memo import kept
from memoranda.text.regex import in_ascii, regex

ENGLISH = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
"""The English words for the numbers from zero on."""
_GERMAN = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
_VALUES = (
    {word: str(value) for value, word in enumerate(ENGLISH)}
    | {word: str(value) for value, word in enumerate(_GERMAN, 1)}
    | {"eine": "1", "dozen": "12"}
)
_SEVERAL = regex(
    rf"\b(?:{'|'.join(word for word, value in _VALUES.items() if int(value) > 1)})\b", re.IGNORECASE
)
_WORD = regex(r"[^\W\d_]+")


def worded(text: str) -> set[str]:
    """Return the numbers that a text has as words, in digits."""
    return {_VALUES[word] for word in _WORD.findall(text.lower()) if word in _VALUES}


@kept(8_192)
def in_digits(text: str) -> str:
    """Return the text with the numbers from two to twelve in digits: "one" may be no number."""
    return _SEVERAL.sub(lambda word: _VALUES[in_ascii(word[0]).lower()], text)


_YEAR = regex(r"(?<![A-Z]{2}[-_/#])\b(?:19|20)\d\d\b")
_LONG = regex(r"(?<!,)\d{3}")
_ID = regex(r"(?<![\w-])(?:[^\W\d_]|#)[\w/-]*")
_DIGIT = regex(r"\d")
_BETWEEN = regex(r"[\W_]+")


def has_long_number(text: str) -> bool:
    """Return True for a number of three digits or more that is neither a year nor behind a comma."""
    return _LONG.search(_YEAR.sub("", text)) is not None


def ids_in(text: str) -> list[str]:
    """Return the words that begin with a letter or `#` and have a number that is no year, such as ORD-12222 and E09,
    each as in `bare`."""
    return [bare(match[0]) for match in _ID.finditer(text) if _DIGIT.search(_YEAR.sub("", match[0]))]


def bare(text: str) -> str:
    """Return the letters and digits of a text, in lower case: ord12222 for "ORD-12222" and "ord 12222"."""
    return _BETWEEN.sub("", text).lower()
