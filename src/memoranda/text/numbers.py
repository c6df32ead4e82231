"""Numbers that are written as words: English and German, from zero to twelve. No I/O."""

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
