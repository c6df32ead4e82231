"""Analysis of text into terms, for keyword indexes, highlights and overlap, and signs that look alike. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from memoranda.text.memo import kept
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
