"""The sentences of some texts that answer a question best, chosen by its words. No I/O, no model.

A sentence counts the question's words that it has (stemmed, without stopwords), the rarer among the sentences the
more (Robertson and Sparck Jones), and more where two of them stand side by side as in the question; less when it is
long. Words that were quoted already count little, so that the next sentence adds something.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memoranda.providers.chat.base import Source
from memoranda.text.highlights import is_boundary
from memoranda.text.sentences import spans
from memoranda.text.terms import query_terms, terms
from memoranda.text.tokens import well_formed

MOST = 4
ENOUGH = 0.45
"""Share of the best sentence's score that another needs."""
PAIR = 0.5
"""What two words side by side count for beside what each counts for."""
SEEN = 0.5
"""What a word counts for that was quoted already."""
FIRST_SOURCE, EACH_SOURCE = 1.25, 0.97
"""The weight of the first source's sentences; each later source's have this of the weight of the one before."""
USUAL_TERMS = 20
"""A sentence of more terms counts for less."""
MAX_CHARS = 400
MAX_SENTENCES = 2_000
FRAGMENT = 3
"""Terms below which a sentence is a heading or a scrap."""
_MARKER = re.compile(r"\[(\d+(?:\s*[,;–-]\s*\d+)*)\]|【([^】]{1,40})】")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of `source` at its place among all."""

    source: Source
    place: int
    weight: float
    text: str
    terms: tuple[str, ...]


def best(question: str, sources: Sequence[Source]) -> list[Sentence]:
    """At most four sentences that answer best, in the sources' order; where none has a word of the question, the first
    that is no heading."""
    sentences = [each for each in _sentences(sources) if each.text]
    asked = query_terms(question)
    wanted, pairs = set(asked), set(pairwise(asked))
    left = [each for each in sentences if wanted.intersection(each.terms)]
    if not left:
        return [each for each in sentences if len(each.terms) >= FRAGMENT][:1] or sentences[:1]
    rarity = _rarity(wanted, sentences)
    chosen: list[Sentence] = []
    least = 0.0
    while left and len(chosen) < MOST:
        top = max(left, key=lambda each: (_score(each, rarity, pairs), -each.place))
        score = _score(top, rarity, pairs)
        least = least or ENOUGH * score
        if score < least:
            break
        chosen.append(top)
        rarity = {term: value * (SEEN if term in top.terms else 1) for term, value in rarity.items()}
        left = [each for each in left if each is not top and set(each.terms) != set(top.terms)]
    return sorted(chosen, key=lambda each: each.place)


def _sentences(sources: Sequence[Source]) -> list[Sentence]:
    found: list[Sentence] = []
    for number, source in enumerate(sources):
        weight = EACH_SOURCE**number * (1 if number else FIRST_SOURCE)
        for start, end in spans(source.text):
            if len(found) == MAX_SENTENCES:
                return found
            text = well_formed(" ".join(source.text[start:end].split()))
            found.append(
                Sentence(source, len(found), weight, _short(text), tuple(terms(text[: 4 * MAX_CHARS])))
            )
    return found


def _rarity(wanted: set[str], sentences: Sequence[Sentence]) -> dict[str, float]:
    """How much each wanted term tells, by how few sentences have it."""
    having = Counter(term for each in sentences for term in wanted.intersection(each.terms))
    total = len(sentences)
    return {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in having.items()}


def _score(sentence: Sentence, rarity: dict[str, float], pairs: set[tuple[str, str]]) -> float:
    found = sum(rarity.get(term, 0.0) for term in set(sentence.terms))
    beside = pairs.intersection(pairwise(sentence.terms))
    found += PAIR * sum(rarity.get(term, 0.0) for pair in beside for term in pair)
    length = len(sentence.terms)
    fragment = 0.5 if length < FRAGMENT else 1.0
    long: float = max(1.0, length / USUAL_TERMS) ** 0.25
    return sentence.weight * fragment * found / long


def _short(text: str) -> str:
    """The sentence, or how a very long one begins, up to where a word ends; its own `[1]` are no markers of ours."""
    if len(text) > MAX_CHARS:
        at = text.rfind(" ", MAX_CHARS // 2, MAX_CHARS)
        at = at if at > 0 else MAX_CHARS
        while not is_boundary(text, at):
            at -= 1
        text = text[:at] + " …"
    return _MARKER.sub(lambda match: f"({match[1] or match[2]})", text)
