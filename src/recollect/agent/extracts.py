"""A summary without a model: the sentences of a conversation that tell most, in their order."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.agent import compaction
from recollect.agent.items import text_of
from recollect.agent.values import Item
from recollect.text.sentences import spans
from recollect.text.terms import terms
from recollect.text.tokens import count, locate

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
_NUMBER = re.compile(r"\d")
_NAME = re.compile(r"(?<=\w[ ,;:(])[^\W\d_a-zß-öø-ÿ][\w’'-]+|\w+[_./@:]\w+|`[^`]+`")
_DECISION = re.compile(
    r"\b(?:decid|agree|conclu|chose|choose|prefer|must|should|need|deadline|important|remember|never|always|instead"
    r"|because|will use|going with|let's|plan|goal|want|problem|fix|entschied|entscheid|beschl|vereinbar|wichtig|muss"
    r"|immer|nie\b|statt|weil|frist|ziel|décid|choisi|doit|jamais|toujours|parce)",
    re.IGNORECASE,
)
SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System", "developer": "System"}
EARLIER = "Earlier"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, who said it, its distinct terms, and whether an earlier summary told it."""

    speaker: str
    text: str
    terms: frozenset[str]
    told: bool


def extract(items: Sequence[Item], before: str, most: int) -> str:
    """The sentences that tell most of `before` (an earlier summary) and `items`, as one text of at most `most` tokens;
    always the same for the same conversation. The user's first request goes before all."""
    sentences = _looked_at(list(_sentences(items, before)))
    fresh = _scores(sentences)
    scores = list(fresh)
    chosen: list[int] = []
    rest = {i for i, score in enumerate(scores) if score >= LEAST}
    misses = 0
    while rest and misses < MISSES:
        best = max(rest, key=lambda i: (scores[i], -i))
        if scores[best] < LEAST:
            break
        rest.remove(best)
        if count(_joined(sentences, [*chosen, best])) > most:
            misses += 1
            continue
        chosen.append(best)
        for i in rest:
            scores[i] = min(scores[i], fresh[i] - REPEATED * _common(sentences[i], sentences[best]))
    if not chosen and sentences:
        first = max(range(len(sentences)), key=lambda i: (fresh[i], -i))
        return trimmed(_joined(sentences, [first]), most)
    return _joined(sentences, chosen)


def _sentences(items: Sequence[Item], before: str) -> Iterator[Sentence]:
    for speaker, text, told in _texts(items, before):
        for start, end in spans(text):
            said = " ".join(text[start:end].split())
            if found := frozenset(terms(said)):
                yield Sentence(speaker, said, found, told)


def _texts(items: Sequence[Item], before: str) -> Iterator[tuple[str, str, bool]]:
    """Who said what, and whether an earlier summary has it."""
    for line in before.splitlines():
        speaker, _, said = line.partition(": ")
        known = said and speaker in (*SPEAKERS.values(), EARLIER)
        yield (speaker, said, True) if known else (EARLIER, line, True)
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            yield SPEAKERS.get(item["role"], "System"), text_of(item), False
        elif kind == "compaction":
            yield EARLIER, compaction.told(item), True


def _looked_at(sentences: list[Sentence]) -> list[Sentence]:
    if len(sentences) <= MAX_SENTENCES:
        return sentences
    return sentences[:FIRST] + sentences[FIRST - MAX_SENTENCES :]


def _scores(sentences: Sequence[Sentence]) -> list[float]:
    """How much each sentence tells: numbers, names, words of decision, and how far its terms are what the conversation
    is about. Its first request stands above all, what was told in an earlier summary above the rest."""
    often = Counter(term for sentence in sentences for term in sentence.terms)
    first = next((i for i, one in enumerate(sentences) if one.speaker == "User"), -1)
    scores: list[float] = []
    for i, one in enumerate(sentences):
        about = sum(math.log1p(often[term] - 1) for term in one.terms) / math.sqrt(len(one.terms) + 3)
        score = min(about, 2.0)
        score += 1.0 if _NUMBER.search(one.text) else 0.0
        score += 0.5 * min(3, len(_NAME.findall(one.text)))
        score += 1.5 if _DECISION.search(one.text) else 0.0
        score += 1.5 if one.told else 0.5 if one.speaker == "User" else 0.0
        score += 0.5 * i / len(sentences)
        score -= 1.0 if len(one.terms) < 3 else 0.0
        score -= 3.0 if len(one.terms) > LONG_TERMS else 0.0
        scores.append(score + (100.0 if i == first else 0.0))
    return scores


def _common(one: Sentence, other: Sentence) -> float:
    """The share of their terms that both have."""
    both = len(one.terms & other.terms)
    return both / (len(one.terms) + len(other.terms) - both)


def _joined(sentences: Sequence[Sentence], chosen: Sequence[int]) -> str:
    """The chosen sentences in their order, a line for each turn of a speaker."""
    lines: list[str] = []
    speaker = ""
    for i in sorted(chosen):
        one = sentences[i]
        if one.speaker == speaker:
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
