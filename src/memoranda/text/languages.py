"""The language of a text, by its script and its stop words, and the stemmers of languages. No I/O but at import."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec
from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from memoranda.text.folding import same_letters
from memoranda.text.regex import regex
from memoranda.text.terms import STOPWORDS

ENGLISH = "en"
STEMMERS = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
"""Snowball stemmers by ISO 639-1 code."""
_SCRIPTS = {
    "el": regex("[\u0370-\u03ff\u1f00-\u1fff]"),
    "ru": regex("[\u0400-\u04ff]"),
    "he": regex("[\u0590-\u05ff]"),
    "ar": regex("[\u0600-\u06ff]"),
    "hi": regex("[\u0900-\u097f]"),
    "ta": regex("[\u0b80-\u0bff]"),
}
"""Scripts other than the Latin one, by the language that is assumed where no stop word says another."""
_ABSENT = {"bg": regex("[ыэ]"), "uk": regex("[ыэъ]"), "ru": regex("[іїєґ]")}
"""Letters that an alphabet does not have, of languages that share stop words."""
LOOKED_AT = 500
"""Words of a text that are looked at."""
LEAST, LEAST_WORDS = 0.5, 2
"""The least weight of stop words that names a language, and how many different ones there must be."""


@cache
def stopwords() -> Mapping[str, frozenset[str]]:
    """Return the stop words of each language, by its code."""
    data = msgspec.json.decode(files("memoranda.text").joinpath("stopwords.json").read_bytes())
    lists = {code: frozenset(same_letters(words).split()) for code, words in data["stopwords"].items()}
    return {ENGLISH: STOPWORDS, **lists}


@cache
def _languages_by_word() -> Mapping[str, tuple[Sequence[str], float]]:
    """Return the languages that have a stop word, and its weight: the fewer they are, the greater."""
    by_word: dict[str, list[str]] = defaultdict(list)
    for code, words in stopwords().items():
        for word in words:
            by_word[word].append(code)
    return {word: (tuple(codes), 1.0 / len(codes)) for word, codes in by_word.items()}


def language_of(words: Sequence[str], among: Collection[str] | None = None) -> str:
    """Return the code of the language of a text with these words, in lower case; "" if it is not known. `among` are the
    languages that it can be in; None: all.

    Each stop word counts as much as few languages have it. A single one names English only: "dog" is Danish, too.
    """
    some = words[:LOOKED_AT]
    by_word, weights, counts = _languages_by_word(), dict[str, float](), dict[str, int]()
    for word in set(some):
        if (known := by_word.get(word)) is not None:
            codes, weight = known
            for code in codes:
                weights[code] = weights.get(code, 0.0) + weight
                counts[code] = counts.get(code, 0) + 1
    joined = " ".join(some)
    script = "" if joined.isascii() else joined
    possible = [
        code
        for code, weight in weights.items()
        if weight >= LEAST
        and (code == ENGLISH or counts[code] >= LEAST_WORDS)
        and (among is None or code in among)
        and not (script and code in _ABSENT and _ABSENT[code].search(script))
    ]
    if possible:
        return max(possible, key=lambda code: (round(weights[code], 9), code == ENGLISH, code))
    found = (code for code, letters in _SCRIPTS.items() if script and letters.search(script))
    return next((code for code in found if among is None or code in among), "")


@cache
def _stemmer(language: str) -> TextAnalyzer:
    return TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stemmer(STEMMERS[language])).build()


def stems(words: Sequence[str], language: str) -> list[str]:
    """Return the stem of each word, which are in lower case and without spaces; the words if there is no stemmer. A
    word of which the stemmer leaves nothing (όταν) is its own stem."""
    if language not in STEMMERS:
        return list(words)
    found = _stemmer(language).analyze(" ".join(words))
    return [stem or word for word, stem in zip(words, found, strict=True)]
