"""Denials, and the sides that sentences take: what one likes and another dislikes. Rules, no model, no I/O."""

from __future__ import annotations

import re

import msgspec

from memoranda.text.memo import kept
from memoranda.text.regex import regex
from memoranda.text.terms import term_set, terms

NEGATION = regex(
    r"\b(?:not|no|never|none|without|cannot|nor|neither|nicht|kein\w*)\b|n['’]t\b", re.IGNORECASE
)
ENDS = regex(
    r"\b(?:no longer|not any\s?more|any\s?(?:more|longer)(?=[\s.!]*$)|stopped|quit|gave up|left|cancell?ed|"
    r"nicht mehr)\b",
    re.IGNORECASE,
)
"""What says that something is over."""
_CEASES = regex(
    r"\b(?:no longer|not any\s?more|any\s?(?:more|longer)(?=[\s.!]*$)|(?:stopped|quit|gave up)(?=\s\w+ing\b)|"
    r"nicht mehr)\b",
    re.IGNORECASE,
)
"""What denies the verb after it. Who left Rome may love it."""
_ANY_MORE = regex(r"\bany\s?(?:more|longer)[\s.!]*$", re.IGNORECASE)
_DENIES = regex(r"\b(?:do|does)(?:\s+not|n['’]t)\b|\bnot\b|n['’]t\b", re.IGNORECASE)
_LIKES = term_set("likes loves enjoys prefers adores favours mag liebt")
_DISLIKES = term_set("dislikes hates avoids detests")
_REASON = regex(
    r"(?:,\s*|\s)(?:because|due\s+to|thanks\s+to|so\s+that|(?:as|since)\s+(?:he|she|they|it)|for\s+(?:\w+\s+)?reasons?|"
    r"weil|wegen)\b.*$",
    re.IGNORECASE,
)
_PRESENT = regex(r"(?<!\bright\s)\bnow\b|\b(?:nowadays|these\s+days|jetzt)\b", re.IGNORECASE)
_CEASED = term_set(
    "longer anymore any more stopped quit nicht kein keine keinen keinem keiner keines nie niemals mehr"
)
"""Words of denials that the analyzer keeps."""
_ITEM = r"(?!\d)[\w-]{1,40}"
_LISTED = regex(rf"(?<![\w-]){_ITEM}(?:,\s{_ITEM}){{0,6}},?\s(?:or|nor|oder)\s{_ITEM}", re.IGNORECASE)
_BETWEEN = regex(r",?\s(?:or|nor|oder)\s|,\s", re.IGNORECASE)
_BEGINNING = regex(r"\S+\s+\S+\s+")
"""A subject and a verb."""
_COMPOUND = regex(
    r"\b(?P<word>[^\W\d_]+)\s(?=(?P<noun>(?!(?:called|named|every|each|daily|weekly|twice|often|sometimes|always|usually|"
    r"again|alone|together|outside|outdoors|anyway|gern|gerne|sehr|viel|oft|manchmal|täglich|since|without|within|near|like|"
    r"via|lots?|today|tonight|tomorrow|right|\w+ly|\w+day|\w+days)\b)[^\W\d_]+))",
    re.IGNORECASE,
)


def without_denial(text: str) -> str:
    """Return a sentence that ends with "anymore" without the negation that goes with it: both are one denial."""
    return _DENIES.sub(" ", text) if _ANY_MORE.search(text) else text


def flipped(new: str, old: str) -> bool:
    """Return True if two sentences take opposite sides of one thing: one likes what the other dislikes, or denies what
    the other says. One may have words of its own, if it is no denial."""
    bare = not (_REASON.search(new) and _REASON.search(old))
    return any(_opposite(mine, theirs) for mine in _sides(new, bare) for theirs in _sides(old, bare))


def _opposite(first: _Side, second: _Side) -> bool:
    if first.side == second.side or not first.about or not second.about:
        return False
    if not (first.side or first.about <= second.about) or not (second.side or second.about <= first.about):
        return False  # what is denied is narrower
    shared = first.about & second.about
    whole = first if first.side else second
    if any(word in shared and noun in whole.about - shared for word, noun in whole.compounds):
        return False
    nested = shared in (first.about, second.about)
    return nested and len(shared) > 1 and 2 * len(shared) > len(first.about | second.about)


class _Side(msgspec.Struct, frozen=True):
    side: bool
    about: frozenset[str]
    compounds: frozenset[tuple[str, str]]
    """Terms of words that stand side by side, the second of which may be a noun: a dog allergy."""


@kept(8_192)
def _sides(text: str, bare: bool) -> tuple[_Side, ...]:
    """Return the polarity and the terms of a sentence, without words for the present and, if `bare`, without a reason:
    a like and a dislike are opposites, as are a sentence and its denial. One that denies one thing or another has a
    side for each of them, too."""
    text = _PRESENT.sub("", _CEASES.sub(" not ", without_denial(" ".join(text.split()))))
    text = _REASON.sub("", text) if bare else text
    against = bool(term_set(text) & _DISLIKES)
    denied = len(NEGATION.findall(text)) % 2 == 1
    listed = _LISTED.search(text) if against != denied else None
    sentences = [text]
    if listed is not None:
        things = _BETWEEN.split(listed[0])
        sentences += [f"{text[: listed.start()]}{thing}{text[listed.end() :]}" for thing in things]
    gone = _LIKES | _DISLIKES | _CEASED
    return tuple(
        _Side(against == denied, term_set(sentence) - gone, _compounds(sentence)) for sentence in sentences
    )


@kept(8_192)
def _compounds(text: str) -> frozenset[tuple[str, str]]:
    begin = _BEGINNING.match(text)
    pairs = _COMPOUND.finditer(text, begin.end()) if begin else ()
    return frozenset(
        (first, second) for pair in pairs for first in terms(pair["word"]) for second in terms(pair["noun"])
    )
