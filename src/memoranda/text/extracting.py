"""Extractive summaries: the most informative sentences of a conversation, in order, without a model. No I/O."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from memoranda.text.regex import regex
from memoranda.text.sentences import spans
from memoranda.text.terms import terms
from memoranda.text.tokens import count, locate

MAX_SENTENCES = 1_000
"""The most sentences that are scored: of a longer conversation, the first hundred and the latest ones."""
FIRST = 100
MISSES = 12
"""Sentences in a row that did not fit, after which the summary is full."""
LEAST = 0.9
"""The least score of a chosen sentence."""
REPEATED = 3.0
"""The penalty of a sentence that has all its terms in common with a chosen one."""
LONG_TERMS = 60
"""A text of more terms is no sentence, but a table or code."""
MAX_BYTES = 4
"""The most bytes of a character in UTF-8, and so of its tokens."""
SURE = 0.95
"""The share of the limit up to which the sum of the sentences' tokens is accurate enough."""
_NUMBER = regex(r"\d")
NAME = regex(r"(?<=\w[ ,;:(])[^\W\d_a-zß-öø-ÿ][\w’'-]+|\b\w+[_./@:]\w+|`[^`]+`")
"""A name inside a sentence: capitalised, or with a sign in it, or in backquotes."""
DECISION = regex(
    r"\b(?:decid|agree|conclu|chose|choose|prefer|must|should|need|deadline|important|remember|never|always|instead"
    r"|because|will use|going with|let's|plan|goal|want|problem|fix|entschied|entscheid|beschl|vereinbar|wichtig|muss"
    r"|immer|nie\b|statt|weil|frist|ziel|décid|choisi|doit|jamais|toujours|parce)"
)
"""Words of decision, in lower case."""


class Sentence(msgspec.Struct, frozen=True):
    """A sentence, its speaker, its distinct terms, its bonus by speaker or time, its approximate number of tokens (0:
    not known), and the names in it."""

    speaker: str
    text: str
    terms: frozenset[str]
    bonus: float = 0.0
    tokens: int = 0
    names: tuple[str, ...] = ()


def sentences(texts: Iterable[tuple[str, str, float, int]]) -> Iterator[Sentence]:
    """Yield the sentences of texts, each given with its speaker, its bonus, and its tokens (0: not known)."""
    for speaker, text, bonus, tokens in texts:
        for start, end in spans(text):
            said = " ".join(text[start:end].split())
            if distinct := frozenset(terms(said)):
                about = tokens and _part(tokens, end - start, len(text))
                yield Sentence(speaker, said, distinct, bonus, about, tuple(NAME.findall(said)))


def _part(tokens: int, part: int, whole: int) -> int:
    """Return the approximate number of a text's tokens in a part of it, with a speaker's name."""
    return tokens * part // whole + 4


def looked_at(spoken: list[Sentence]) -> list[Sentence]:
    """Return the sentences that are scored."""
    return spoken if len(spoken) <= MAX_SENTENCES else spoken[:FIRST] + spoken[FIRST - MAX_SENTENCES :]


def chosen(spoken: Sequence[Sentence], most: int, scores: Sequence[float], limit: int = MAX_SENTENCES) -> str:
    """Return the sentences with the best `scores` that repeat each other least, as one text of at most `most` tokens
    and `limit` sentences. Deterministic."""
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
        tokens = spoken[best].tokens or count(f"{spoken[best].speaker}: {spoken[best].text}\n")
        if spent + tokens > most:
            misses += 1
            continue
        taken.append(best)
        spent += tokens
        for i in rest:
            scored[i] = min(scored[i], fresh[i] - REPEATED * common(spoken[i], spoken[best]))
    if not taken and spoken:
        first = max(range(len(spoken)), key=lambda i: (fresh[i], -i))
        return trimmed(joined(spoken, [first]), most)
    while spent > SURE * most and len(taken) > 1 and count(joined(spoken, taken)) > most:
        taken.pop()
    return trimmed(joined(spoken, taken), most) if len(taken) == 1 else joined(spoken, taken)


def weights(spoken: Sequence[Sentence]) -> list[float]:
    """Return the score of each sentence: numbers, names, words of decision, how frequent its terms are in the
    conversation, how late it was said, and its bonus."""
    often = Counter(term for item in spoken for term in item.terms)
    scores: list[float] = []
    for i, sentence in enumerate(spoken):
        about = sum(math.log1p(often[term] - 1) for term in sentence.terms) / math.sqrt(
            len(sentence.terms) + 3
        )
        score = min(about, 2.0)
        score += 1.0 if _NUMBER.search(sentence.text) else 0.0
        score += 0.5 * min(3, len(sentence.names))
        score += 1.5 if DECISION.search(sentence.text.lower()) else 0.0
        score += sentence.bonus
        score += 0.5 * i / len(spoken)
        score -= 1.0 if len(sentence.terms) < 3 else 0.0
        score -= 3.0 if len(sentence.terms) > LONG_TERMS else 0.0
        scores.append(score)
    return scores


def common(first: Sentence, second: Sentence) -> float:
    """Return the share of their terms that both have."""
    both = len(first.terms & second.terms)
    return both / (len(first.terms) + len(second.terms) - both)


def joined(spoken: Sequence[Sentence], places: Sequence[int]) -> str:
    """Return these sentences in order, a line for each turn of a speaker."""
    lines: list[str] = []
    speaker = ""
    for i in sorted(places):
        sentence = spoken[i]
        if lines and sentence.speaker == speaker:
            lines[-1] += f" {sentence.text}"
        else:
            lines.append(f"{sentence.speaker}: {sentence.text}")
            speaker = sentence.speaker
    return "\n".join(lines)


def trimmed(text: str, most: int) -> str:
    """Return the text, or its beginning of at most `most` tokens: up to the last whole sentence if that is at least
    half of it, else up to the end of a word. Never cut inside a character."""
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
