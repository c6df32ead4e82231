"""Analysis of text into terms, for keyword indexes, highlights and overlap. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from memoranda.text.folding import INVISIBLE, visible
from memoranda.text.memo import kept
from memoranda.text.regex import regex

MAX_TERM_BYTES = 60
MAX_QUERY_CHARS = 20_000
MAX_QUERY_TERMS = 128
SHORT_CHARS = 300
"""Length of the longest texts whose terms are cached."""

# Snowball's English list, plus the parts into which a tokenizer splits contractions ("don't" -> don, t).
STOPWORDS = frozenset(
    """
    a about above after again against ain all am an and any are aren as at be because been before being
    below between both but by can cannot could couldn d did didn do does doesn doing don down during each
    few for from further had hadn has hasn have haven having he her here hers herself him himself his how
    i if in into is isn it its itself just let ll m ma me mightn more most mustn my myself needn no nor not
    now o of off on once only or other ought our ours ourselves out over own re s same shan she should
    shouldn so some such t than that the their theirs them themselves then there these they this those
    through to too under until up ve very was wasn we were weren what when where which while who whom why
    will with won would wouldn y you your yours yourself yourselves
    """.split()  # noqa: SIM905 - prose reads better than 170 quoted words
)

# Han and kana are written without spaces: each character is a term of its own.
UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
_UNSPACED = regex(f"[{UNSPACED}]")
_SURROGATE = regex("[\ud800-\udfff]")
_LETTERS, _MARKS = f"[^\\W_{UNSPACED}]", f"[\u0300-\u036f{INVISIBLE}]"
WORD = regex(f"[{UNSPACED}]|{_LETTERS}+(?:{_MARKS}+{_LETTERS}*)*")
"""A word, also with soft hyphens, and with its accents as characters of their own, as in names of files on macOS and in
many PDFs."""


def analyzer() -> TextAnalyzer:
    """A new analyzer: words of letters and digits, lower-cased, accents folded, no stopwords, stemmed."""
    return (
        TextAnalyzerBuilder(Tokenizer.simple())
        .filter(Filter.remove_long(MAX_TERM_BYTES))
        .filter(Filter.lowercase())
        .filter(Filter.ascii_fold())
        .filter(Filter.custom_stopword(sorted(STOPWORDS)))
        .filter(Filter.stemmer("english"))
        .build()
    )


_ANALYZER = analyzer()


def encodable(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 cannot encode, replaced by U+FFFD; the same length."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def spaced(text: str) -> str:
    """Return the text for the analyzer: encodable, without signs that cannot be seen, with composed accents (Unicode's
    form NFC), with "I" for the Turkish capital with a dot, and with a space around each Han or kana character."""
    if text.isascii():
        return text
    composed = normalize("NFC", visible(encodable(text))).replace("\u0130", "I")
    return _UNSPACED.sub(r" \g<0> ", composed)


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, with repetitions; those of short texts are cached, since facts and messages
    are compared with many others."""
    return list(_short_terms(text)) if len(text) <= SHORT_CHARS else _analyzed(text)


def _analyzed(text: str) -> list[str]:
    analyzed: list[str] = _ANALYZER.analyze(spaced(text))
    return analyzed


@kept(2_048)
def _short_terms(text: str) -> Sequence[str]:
    return tuple(_analyzed(text))


def term_set(text: str) -> frozenset[str]:
    """Return the distinct terms of a text."""
    return frozenset(terms(text))


def query_terms(query: str) -> list[str]:
    """Return the first 128 distinct terms of a query, so that a pasted book is cheap."""
    return list(dict.fromkeys(terms(query[:MAX_QUERY_CHARS])))[:MAX_QUERY_TERMS]


@kept(65_536)
def word_terms(word: str) -> Sequence[str]:
    """Return the terms of one word: () for a stopword, usually one; cached, since words repeat."""
    return tuple(terms(word))
