"""Grounding: checks that a fact can come from the messages it rests on, and what it loses when one of them goes.

The rule: of the fact's content terms (stemmed, without stopwords, the names of speakers and words that every fact has),
at least a quarter and at least one are in the messages it rests on; and every number of it that is not part of a date
is in them, in what was shown before them, or in the name of a speaker.

A fact loses the words and numbers that a source said which goes, and none that is left. Words of its own that no source
said, as those of a paraphrase, are not lost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence, Set
from typing import NamedTuple

from memoranda.text.calendar import MONTH_BEGINS
from memoranda.text.memo import kept
from memoranda.text.numbers import worded
from memoranda.text.regex import regex
from memoranda.text.terms import MAX_TERM_BYTES, WORD, terms

SHARE = 0.25
COMMON = frozenset(
    terms(
        "user users person speaker assistant someone they fact prefer prefers preference like likes want wants use uses"
        " live lives work works name names called decided plan plans der die das nutzer nutzerin ist und mag"
    )
)
"""Terms that say nothing of what a fact is about."""
FUNCTION = frozenset(
    terms(
        "also ever just often really still therefore upon usually within yes "
        "aber als auch auf aus bei bist dann das dass dem denn der des dich dir doch dort du durch ein eine einem "
        "einen einer eines er es euch für gegen gern gerne habe haben hatte hier ich ihm ihn ihr ihre im immer ist ja "
        "jetzt kann kein keine mein meine meinem meinen meiner mich mir mit nach nein nicht noch nur ohne schon sehr "
        "seit sein seine sich sie sind um und uns unser unsere vom von vor was weil wenn wie wir wird zu zum zur"
    )
)
"""Terms that join others, which the analyzer keeps: English adverbs, and German words of all kinds of that sort."""
_DATES = regex(
    r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b(?:19|20)\d\d\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{MONTH_BEGINS}[a-zä]*\b"
    rf"|\b{MONTH_BEGINS}[a-z]*\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\b"
    r"|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b",
    re.IGNORECASE,
)
_NUMBER = regex(r"\d+(?:[.,]\d+)*")


def grounded(
    fact: str, said: Sequence[str], before: Sequence[str] = (), speakers: Iterable[str] = ()
) -> bool:
    """Return True if `fact` can rest on the texts `said`, given the texts `before` them and the names of who spoke."""
    speakers = list(speakers)
    numbers = set(_NUMBER.findall(_DATES.sub(" ", fact)))
    if numbers and not numbers <= _numbers((*said, *before, *speakers)):
        return False
    return related(fact, said, speakers, SHARE)


def support(fact: str, said: Sequence[str], speakers: Iterable[str]) -> float:
    """Return the share, in 0..1, of the content terms of `fact` that the texts `said` have; 1 if it has none."""
    mine, shared = _content(fact, said, speakers)
    return len(shared) / len(mine) if mine else 1.0


def related(fact: str, said: Sequence[str], speakers: Collection[str], share: float = 0.0) -> bool:
    """Return True if the texts `said` have a content term of `fact`, and at least `share` of all of them."""
    mine, shared = _content(fact, said, speakers)
    if not mine:  # all its words are names, dates and what every fact has: then those must have been said
        names = {term for name in speakers for term in terms(name)}
        return bool((set(terms(fact)) - names) & _said(said))
    return bool(shared) and len(shared) >= share * len(mine)


def _content(fact: str, said: Sequence[str], speakers: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the content terms of a fact, and those of them that the texts have."""
    names = {term for name in speakers for term in terms(name)}
    mine = set(terms(_DATES.sub(" ", fact))) - names - COMMON
    return mine, mine & _said(said)


def _said(texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in (*terms(text), *worded(text))}


def _numbers(texts: Sequence[str]) -> set[str]:
    return {number for text in texts for number in (*_NUMBER.findall(text), *worded(text))}


class Source(NamedTuple):
    """The text of a source of facts, and the name of who said it."""

    text: str
    name: str | None = None


def words_of(source: Source) -> frozenset[str]:
    """Return the content terms and numbers of a source. Of the name only words count: a number in the id of a user is
    none that the user said."""
    text = source.text
    named = {term for term in terms(source.name or "") if not term.isdigit()}
    return frozenset({*terms(text), *(worded(text) - {"1"}), *_long(text), *named} - COMMON - FUNCTION)


def lost_words(
    text: str, gone: Iterable[frozenset[str]] | None, left: Iterable[frozenset[str]]
) -> frozenset[str]:
    """Return the words of a text, see `words_of`, that are among those of a source that goes, and of none that is left.
    While it is not known what the former said (None), all that none of the latter said are."""
    mine = words_of(Source(text))
    if gone is not None:
        mine = mine.intersection(frozenset[str]().union(*gone))
    for words in left:
        if not mine:
            break
        mine -= words
    return mine


def positions(words: Set[str], text: str) -> list[tuple[int, int]]:
    """Return where a text has some of these words: of each the first place, as (start, stop)."""
    spans, missing = list[tuple[int, int]](), words
    for match in WORD.finditer(text):
        if found := missing & _of_word(match[0]):
            spans.append(match.span())
            missing = missing - found
    return spans


def mostly_in(fact: str, text: str, spans: Iterable[Sequence[int]]) -> bool:
    """Return True if more than half of the words that a fact shares with a text are in these parts of the text."""
    shared = words_of(Source(fact)) & words_of(Source(text))
    parts = words_of(Source(" ".join(text[start:stop] for start, stop in spans)))
    return 2 * len(shared & parts) > len(shared)


@kept(8_192)
def _of_word(word: str) -> frozenset[str]:
    return words_of(Source(word))


def _long(text: str) -> set[str]:
    """Return the words that are too long for the analyzer, such as keys."""
    if len(text.encode(errors="replace")) < MAX_TERM_BYTES:
        return set()
    return {
        word.casefold() for word in WORD.findall(text) if len(word.encode(errors="replace")) >= MAX_TERM_BYTES
    }
