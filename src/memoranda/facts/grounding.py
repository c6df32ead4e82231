"""Grounding: checks that a fact can come from the messages it rests on. No I/O.

The rule: of the fact's content terms (stemmed, without stopwords, the names of speakers and words that every fact has),
at least a quarter and at least one are in the messages it rests on; and every number of it that is not part of a date
is in them, in what was shown before them, or in the name of a speaker.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from memoranda.text.regex import regex
from memoranda.text.terms import terms

SHARE = 0.25
COMMON = frozenset(
    terms(
        "user users person speaker assistant someone they fact prefer prefers preference like likes want wants use uses"
        " live lives work works name names called decided plan plans der die das nutzer nutzerin ist und mag"
    )
)
"""Terms that say nothing of what a fact is about."""
_DATES = regex(
    r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b(?:19|20)\d\d\b"
    r"|\b\d{1,2}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?:jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-zä]*\b"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,2}(?:st|nd|rd|th)?\b"
    r"|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b",
    re.IGNORECASE,
)
_NUMBER = regex(r"\d+(?:[.,]\d+)*")
_WORDS = {
    word: str(value)
    for value, words in enumerate(
        ("zero", "one ein eine", "two zwei", "three drei", "four vier", "five fünf", "six sechs", "seven sieben",
         "eight acht", "nine neun", "ten zehn", "eleven elf", "twelve zwölf dozen")
    )
    for word in words.split()
}  # fmt: skip
_WORD = regex(r"[^\W\d_]+")


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
    return {term for text in texts for term in terms(text)} | _worded(texts)


def _numbers(texts: Sequence[str]) -> set[str]:
    return {number for text in texts for number in _NUMBER.findall(text)} | _worded(texts)


def _worded(texts: Sequence[str]) -> set[str]:
    """Return numbers that are written as words."""
    return {_WORDS[word] for text in texts for word in _WORD.findall(text.lower()) if word in _WORDS}
