"""The sentences of a conversation that tell most, in their order: a summary without a model. No I/O."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memoranda.text.sentences import spans
from memoranda.text.terms import terms
from memoranda.text.tokens import count, locate

MAX_SENTENCES = 1_000
"""Sentences that are looked at: the first hundred and the latest ones, of a conversation that has more."""
FIRST = 100
MISSES = 12
"""Sentences in a row that did not fit, after which the room counts as full."""
LEAST = 0.9
"""What a sentence must tell to be chosen, though there is room for it."""
REPEATED = 3.0
"""How much less a sentence tells that has all its terms in common with a chosen one."""
LONG_TERMS = 60
"""Terms of a sentence beyond which it is no sentence, but a table or code."""
MAX_BYTES = 4
"""Bytes of a character in UTF-8, and so its tokens, at most."""
SURE = 0.95
"""The part of the room up to which the tokens of a text are those of its sentences, near enough."""
_NUMBER = re.compile(r"\d")
NAME = re.compile(r"(?<=\w[ ,;:(])[^\W\d_a-zß-öø-ÿ][\w’'-]+|\b\w+[_./@:]\w+|`[^`]+`")
"""A name inside a sentence: capitalised, or with a sign in it, or quoted as code is."""
DECISION = re.compile(
    r"\b(?:decid|agree|conclu|chose|choose|prefer|must|should|need|deadline|important|remember|never|always|instead"
    r"|because|will use|going with|let's|plan|goal|want|problem|fix|entschied|entscheid|beschl|vereinbar|wichtig|muss"
    r"|immer|nie\b|statt|weil|frist|ziel|décid|choisi|doit|jamais|toujours|parce)"
)
"""Words of decision, in lower case."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, who said it, its distinct terms, how much more it tells for who said it, or when, about how many
    tokens it has (0: not known), and the names in it."""

    speaker: str
    text: str
    terms: frozenset[str]
    bonus: float = 0.0
    tokens: int = 0
    names: tuple[str, ...] = ()


def sentences(texts: Iterable[tuple[str, str, float, int]]) -> Iterator[Sentence]:
    """The sentences of texts, each given with who said it, its bonus, and its tokens, where they are known."""
    for speaker, text, bonus, tokens in texts:
        for start, end in spans(text):
            said = " ".join(text[start:end].split())
            if found := frozenset(terms(said)):
                about = tokens and _part(tokens, end - start, len(text))
                yield Sentence(speaker, said, found, bonus, about, tuple(NAME.findall(said)))


def _part(tokens: int, part: int, whole: int) -> int:
    """About how many of a text's tokens are in a part of it, with a speaker's name."""
    return tokens * part // whole + 4


def looked_at(held: list[Sentence]) -> list[Sentence]:
    """The sentences that are chosen from."""
    return held if len(held) <= MAX_SENTENCES else held[:FIRST] + held[FIRST - MAX_SENTENCES :]


def chosen(held: Sequence[Sentence], most: int, scores: Sequence[float], limit: int = MAX_SENTENCES) -> str:
    """The sentences that tell most by `scores` and repeat each other least, as one text of at most `most` tokens and
    `limit` sentences; always the same for the same."""
    fresh = list(scores)
    scored = list(scores)
    taken: list[int] = []
    spent = 0
    rest = {i for i, score in enumerate(scored) if score >= LEAST}
    misses = 0
    while rest and misses < MISSES and len(taken) < limit:
        best = max(rest, key=lambda i: (scored[i], -i))
        if scored[best] < LEAST:
            break
        rest.remove(best)
        tokens = held[best].tokens or count(f"{held[best].speaker}: {held[best].text}\n")
        if spent + tokens > most:
            misses += 1
            continue
        taken.append(best)
        spent += tokens
        for i in rest:
            scored[i] = min(scored[i], fresh[i] - REPEATED * common(held[i], held[best]))
    if not taken and held:
        first = max(range(len(held)), key=lambda i: (fresh[i], -i))
        return trimmed(joined(held, [first]), most)
    while spent > SURE * most and len(taken) > 1 and count(joined(held, taken)) > most:
        taken.pop()
    return trimmed(joined(held, taken), most) if len(taken) == 1 else joined(held, taken)


def weights(held: Sequence[Sentence]) -> list[float]:
    """How much each sentence tells: numbers, names, words of decision, how far its terms are what the conversation is
    about, how late it was said, and its bonus."""
    often = Counter(term for sentence in held for term in sentence.terms)
    scores: list[float] = []
    for i, one in enumerate(held):
        about = sum(math.log1p(often[term] - 1) for term in one.terms) / math.sqrt(len(one.terms) + 3)
        score = min(about, 2.0)
        score += 1.0 if _NUMBER.search(one.text) else 0.0
        score += 0.5 * min(3, len(one.names))
        score += 1.5 if DECISION.search(one.text.lower()) else 0.0
        score += one.bonus
        score += 0.5 * i / len(held)
        score -= 1.0 if len(one.terms) < 3 else 0.0
        score -= 3.0 if len(one.terms) > LONG_TERMS else 0.0
        scores.append(score)
    return scores


def common(one: Sentence, other: Sentence) -> float:
    """The share of their terms that both have."""
    both = len(one.terms & other.terms)
    return both / (len(one.terms) + len(other.terms) - both)


def joined(held: Sequence[Sentence], places: Sequence[int]) -> str:
    """These sentences in their order, a line for each turn of a speaker."""
    lines: list[str] = []
    speaker = ""
    for i in sorted(places):
        one = held[i]
        if lines and one.speaker == speaker:
            lines[-1] += f" {one.text}"
        else:
            lines.append(f"{one.speaker}: {one.text}")
            speaker = one.speaker
    return "\n".join(lines)


def trimmed(text: str, most: int) -> str:
    """The text, or its beginning of at most `most` tokens: up to the last sentence that is whole, where that keeps half
    of it, else up to a word's end. Never cut inside a character."""
    if len(text) * MAX_BYTES <= most or count(text) <= most:
        return text
    end = int(locate(text).starts[most])
    whole = [stop for _, stop in spans(text[:end]) if stop < end and stop > end // 2]
    if whole:
        end = whole[-1]
    elif (space := text.rfind(" ", 0, end)) > end // 2:
        end = space
    while end and count(text[:end].rstrip()) > most:
        end -= 1
    return text[:end].rstrip()
