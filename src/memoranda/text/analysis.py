"""The terms under which keyword indexes store texts and look them up, in every script and language. No I/O.

A word is its stem in the language of the text, and beside it the word as it is written. Scripts without spaces, and
Korean, are pairs of characters. Names of code (`c++`, `user_name`, `getUserName`) are terms as a whole and in parts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import NamedTuple
from unicodedata import name

import msgspec
from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from memoranda.text.memo import kept
from memoranda.text.regex import regex
from memoranda.text.terms import (
    INVISIBLE,
    MAX_QUERY_CHARS,
    MAX_QUERY_TERMS,
    MAX_TERM_BYTES,
    STOPWORDS,
    encodable,
    same_letters,
)

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


STAMP = "analysis 1"
"""Changes whenever the same text would give other terms: an index built under another stamp is stale."""
MARKER = "lang:"
MARKERS = tuple(f"{MARKER}{code}" for code in STEMMERS if code != ENGLISH)
"""Terms that name the language of a text, for what a query is stemmed by."""
LEAST_SHARE = 0.02
"""The share of a tenant's texts in a language beyond which it is one of the tenant's."""

LANGUAGE_CHARS, LANGUAGE_LETTERS = 2_000, 200
"""Characters of a text, and letters of those, by which `language_in` tells its language."""
LATIN = "LATIN"
SCRIPTS = {
    "ARABIC": "ar",
    "ARMENIAN": "hy",
    "BENGALI": "bn",
    "CJK": "zh",
    "CYRILLIC": "ru",
    "DEVANAGARI": "hi",
    "ETHIOPIC": "am",
    "FULLWIDTH": "zh",
    "GEORGIAN": "ka",
    "GREEK": "el",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "HALFWIDTH": "ja",
    "HANGUL": "ko",
    "HEBREW": "he",
    "HIRAGANA": "ja",
    "KANNADA": "kn",
    "KATAKANA": "ja",
    "KHMER": "km",
    "LAO": "lo",
    "MALAYALAM": "ml",
    "MYANMAR": "my",
    "ORIYA": "or",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
}
"""The language with most speakers of each script, by how Unicode's names of its letters begin."""

LONGEST_STEMMED = 40
"""Characters of a word that is stemmed: longer ones are hashes and the like."""

_HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HANGUL = "\uac00-\ud7a3"
_OTHERS = "\u0e01-\u0e5b\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u31f0-\u31ff"
"""Thai, Lao, Burmese, Khmer, kana."""
_RUN = regex(f"[{_HANGUL}]+|[{_HAN}{_OTHERS}]+")
_LETTER = f"(?:[^\\W{_HANGUL}{_HAN}{_OTHERS}]|[\u0900-\u0963\u0966-\u0dff])"
_MARK = f"[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670{INVISIBLE}]"
_PLACE = regex(f"(?P<run>[{_HANGUL}]+|[{_HAN}{_OTHERS}]+)|{_LETTER}+(?:{_MARK}+{_LETTER}*)*")
_PLAIN_PLACE = regex("[A-Za-z0-9]+")
"""A run, or a word, also with invisible signs, and with its marks as characters of their own."""
_IS_HAN = regex(f"[{_HAN}]")
_IS_HANGUL = regex(f"[{_HANGUL}]")

_NAME = regex(
    r"(?<![\w.])(?:[A-Za-z]\+\+|[A-Za-z]#|\.[A-Za-z]{2,}\w*)(?![\w+#])|(?<![^\W_])[^\W_]++(?:[._][^\W_]++)+"
)
"""`c++`, `c#`, `.net`, and names with dots or underscores between their parts."""
_HUMPED = regex(r"(?<![^\W_])[A-Za-z]*[a-z0-9][A-Z][^\W_]*")
_HUMP = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_LIKE_CODE = regex(r"\+\+|#|[._]\w|[a-z0-9][A-Z]")
_CAPITAL = regex(r"(?<=[^\W\d_] )[A-Z][A-Za-z]*(?!['\w])|(?<=[^\W\d_], )[A-Z][A-Za-z]*(?!['\w])")
"""A word that begins with a capital inside a sentence."""


_NONE = frozenset[str]()
_WORDS = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.lowercase()).build()
_PLAIN = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.ascii_fold()).build()


class Analyzed(NamedTuple):
    """The words of a text in lower case, without stop words; its language, "" if unknown; its names of code; its runs
    of characters without spaces."""

    words: list[str]
    language: str
    names: list[str]
    runs: list[str]


def index_terms(text: str) -> list[str]:
    """Return the terms under which a text is stored, with repetitions."""
    analyzed = _analyzed(text)
    words, language = analyzed.words, analyzed.language
    terms = []
    for word, stem in zip(_plain(words), _stemmed(words, language or ENGLISH), strict=True):
        terms += [stem] if word == stem else [stem, _bounded(word)]
    for run in analyzed.runs:
        terms += _pairs(run)
        if len(run) > 1:
            terms += run[0] if _IS_HANGUL.match(run) else _IS_HAN.findall(run)
    if language != ENGLISH and language in STEMMERS:
        terms.append(f"{MARKER}{language}")
    return [*terms, *analyzed.names]


def search_terms(query: str, languages: Collection[str] = ()) -> list[str]:
    """Return the first 128 distinct terms to look a query up by; `languages` are those of the tenant's texts beside
    English. Where the query does not show which of them it is in, they are the stems in all of them, and the words as
    they are written."""
    return list(_search_terms(query[:MAX_QUERY_CHARS], frozenset(languages)))


class Wanted(msgspec.Struct, frozen=True):
    """Terms that are looked for in texts, and the languages in which words are stemmed for them."""

    terms: frozenset[str]
    languages: tuple[str, ...] = (ENGLISH,)


def wanted_by(query: str) -> Wanted:
    """Return the terms of a query, in its own language and as they are written."""
    language = _analyzed(query[:MAX_QUERY_CHARS]).language
    own = () if language not in STEMMERS or language == ENGLISH else (language,)
    return Wanted(frozenset(_search_terms(query[:MAX_QUERY_CHARS], frozenset(own))), (ENGLISH, *own))


def occurrences(text: str, wanted: Wanted) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and term of each place of a text that has one of the terms, in order."""
    terms, languages = wanted.terms, wanted.languages
    for match in (_PLAIN_PLACE if text.isascii() else _PLACE).finditer(text):
        if match.lastgroup and match.end() - match.start() > 1:
            start, run = match.start(), same_letters(match[0])
            folded = run if len(run) == match.end() - start else match[0]
            for at in range(len(folded) - 1):
                if (pair := folded[at : at + 2]) in terms:
                    yield start + at, start + at + 2, pair
            continue
        for term in _forms(match[0], languages):
            if term in terms:
                yield match.start(), match.end(), term
                break


@kept(65_536)
def _forms(word: str, languages: tuple[str, ...]) -> Sequence[str]:
    """Return the terms of one word: its stem in each of the languages, and the word as it is written; () for a stop
    word."""
    if any(word in stopwords().get(language, _NONE) for language in languages):
        return ()
    words = _WORDS.analyze(word if word.isascii() else same_letters(encodable(word)))
    stemmed = [_stemmed(words, language) for language in languages]
    return tuple(dict.fromkeys(term for some in (*stemmed, map(_bounded, _plain(words))) for term in some))


def language_in(text: str) -> str:
    """Return the code of the language that a text is in: by its stop words, or by its script if that is not Latin; ""
    if nothing tells, and "und" (ISO 639-2) for a script of a language that is not known here."""
    beginning = text[:LANGUAGE_CHARS]
    if not beginning.isascii():
        letters = [letter for letter in beginning if letter.isalpha()][:LANGUAGE_LETTERS]
        scripts = Counter(name(letter, "").partition(" ")[0] for letter in letters)
        script = max(scripts, key=lambda each: scripts[each], default=LATIN)
        if script != LATIN:
            return SCRIPTS.get(script, "und")
    return _analyzed(beginning).language


def spoken(counts: Mapping[str, int], texts: int) -> frozenset[str]:
    """Return the languages of a tenant from the number of its `texts` by `MARKERS`; a few texts may be mistaken."""
    least = LEAST_SHARE * texts
    return frozenset(marker.removeprefix(MARKER) for marker, count in counts.items() if count > least)


@kept(2_048)
def _search_terms(query: str, languages: frozenset[str]) -> Sequence[str]:
    analyzed = _analyzed(query, languages)
    words, language = analyzed.words, analyzed.language
    if language:
        terms = dict.fromkeys(_stemmed(words, language))
    else:
        stemmed = [_stemmed(words, code) for code in (ENGLISH, *sorted(languages))]
        terms = dict.fromkeys(term for some in (*stemmed, map(_bounded, _plain(words))) for term in some)
    terms |= dict.fromkeys(pair for run in analyzed.runs for pair in _pairs(run))
    return tuple([*terms, *dict.fromkeys(analyzed.names)][:MAX_QUERY_TERMS])


def _analyzed(text: str, languages: Collection[str] | None = None) -> Analyzed:
    """Analyze a text, or a query to texts in `languages`: of a query that consists of stop words, all are kept."""
    text = encodable(text)
    runs: list[str] = []
    if not text.isascii():
        text = same_letters(text)
        runs = _RUN.findall(text)
        if runs:
            text = _RUN.sub(" ", text)
    words: list[str] = _WORDS.analyze(text)
    among = None if languages is None else (ENGLISH, *languages)
    language = "" if sum(map(len, runs)) > sum(map(len, words)) else language_of(words, among)
    lists = stopwords()
    if language or among is None:
        dropped = lists.get(language or ENGLISH, _NONE)
    else:
        dropped = _NONE.union(*(lists.get(code, _NONE) for code in among))
    if any(word in dropped for word in words):
        named = set(_named(text))
        left = [word for word in words if word not in dropped or word in named]
        words = words if languages is not None and not left and not runs else left
    names: list[str] = []
    if _LIKE_CODE.search(text):
        names = [_bounded(name.lower()) for name in _NAME.findall(text)]
        for humped in _HUMPED.findall(text):
            words += [part.lower() for part in _HUMP.findall(humped)]
    return Analyzed(words, language, names, runs)


def _named(text: str) -> Iterator[str]:
    """Yield the words that begin with a capital inside a sentence, in lower case; not "I", nor words of a text that is
    all in capitals."""
    for match in _CAPITAL.finditer(text):
        word = match[0]
        before = text[max(0, match.start() - 4) : match.start()].rstrip(" ,")[-2:]
        if word == "I" or (word.isupper() and before.isupper()):
            continue
        yield word.lower()


def _stemmed(words: Sequence[str], language: str) -> list[str]:
    found = zip(words, _plain(stems(words, language)), strict=True)
    return [_bounded(word if len(word) > LONGEST_STEMMED else stem) for word, stem in found]


def _plain(words: Sequence[str]) -> list[str]:
    """Return the words with letters of ASCII for Latin letters with marks."""
    joined = " ".join(words)
    return list(words) if joined.isascii() else list(_PLAIN.analyze(joined))


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]


def _bounded(term: str) -> str:
    """Return a term, or the hash of one that is longer than an index takes."""
    if len(term) * 4 <= MAX_TERM_BYTES or len(raw := term.encode()) <= MAX_TERM_BYTES:
        return term
    return f"#{blake2b(raw, digest_size=16).hexdigest()}"
