"""Digests of conversations: a summary with its topics, decisions and open questions; made here by rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from memoranda.providers.chat.completion import EXTRACTIVE
from memoranda.text.calendar import DAY
from memoranda.text.extracting import Sentence, chosen, looked_at, sentences, weights
from memoranda.text.regex import regex
from memoranda.text.sentences import CLOSERS, QUESTION_MARKS
from memoranda.text.terms import STOPWORDS, WORD, visible, word_terms

SENTENCES = 6
"""The most sentences of a summary."""
TOPICS = 5
LISTED = 10
"""The most decisions, questions, ... of a digest."""
ENTITIES = 12
ITEM_CHARS = 240
"""The most characters of a decision, a question, ..."""
NEXT = 3
"""Sentences after a question in which another may answer it."""
_DECIDED = regex(
    r"\b(?:decided?|agreed|settled on|we(?:'ll| will) (?:use|go|take|do|keep|meet)|going with|let's|it's a deal|chose|"
    r"approved|confirmed|final decision|entschieden|beschlossen|vereinbart|décidé|convenu)\b"
)
_TO_DO = regex(
    r"\b(?:i(?:'ll| will)|i'm going to|(?:can|could|would) you|please|to-?do|needs? to|has to|must|"
    rf"remember to|don't forget|deadline|due (?:on|by)|by {DAY}|by tomorrow|"
    r"ich werde|bitte|muss noch|je vais|il faut)\b"
)
_QUESTION = regex(rf"[{QUESTION_MARKS}][{re.escape(CLOSERS)}]*+(?:\s|$)")
_ASIDE = regex(r"\b(?:by the way|btw|fyi|anyway|heads up|unrelated|übrigens|au fait)\b", re.IGNORECASE)
"""Words that change the subject."""
_ANSWER = regex(
    r"^(?:yes|yeah|yep|no\b|nope|sure|ok|okay|of course|definitely|probably|ja\b|nein|oui|non\b)",
    re.IGNORECASE,
)
_PLAIN = frozenset(
    """
    also always anyway back day days done everyone get gets getting give go goes going gone good got great guys haha hey
    hello hi know last let like long look looking lot make makes maybe mean much need new next nice ok okay one people
    please pretty quite really right said say see seem since someone something soon still sure take thank thanks thing
    things think though time today tomorrow tonight took try two use want way week well went wow year yeah yes yesterday
    yet
    """.split()  # noqa: SIM905 - prose reads better than 80 quoted words
)
"""Words of every conversation, which are no topics."""


class Digest(msgspec.Struct, kw_only=True):
    """What was made of a conversation; `by` is the model, or `extractive`."""

    summary: str
    topics: list[str] = []
    decisions: list[str] = []
    open_questions: list[str] = []
    action_items: list[str] = []
    entities: list[str] = []
    by: str = EXTRACTIVE

    def flat(self) -> str:
        """Return the digest as one text for search; what the summary says is not repeated."""
        lines = [self.summary]
        for label, items in (
            ("Decided", self.decisions),
            ("Open", self.open_questions),
            ("To do", self.action_items),
        ):
            if fresh := [item for item in items if item.rstrip(".") not in self.summary]:
                lines.append(f"{label}: {'; '.join(fresh)}")
        return "\n".join(lines)


class Turn(NamedTuple):
    """A message; `tokens` is 0 if unknown."""

    speaker: str
    role: str
    text: str
    tokens: int = 0


def digest_of(said: Iterable[Turn], most: int) -> Digest:
    """Return the digest of a conversation, with a summary of at most `most` tokens. It is deterministic."""
    turns = list(said)
    spoken = looked_at(list(sentences(_sentence_source(turn) for turn in turns)))
    names = dict.fromkeys(turn.speaker for turn in turns)
    asks = [_asks(sentence) for sentence in spoken]
    low = [sentence.text.lower() for sentence in spoken]
    decided = [not ask and _DECIDED.search(text) is not None for text, ask in zip(low, asks, strict=True)]
    return Digest(
        summary=chosen(spoken, most, weights(spoken), SENTENCES) or _first(turns, most),
        topics=topics_of(spoken, names),
        decisions=_listed(sentence for sentence, so in zip(spoken, decided, strict=True) if so),
        open_questions=_listed(
            sentence for i, sentence in enumerate(spoken) if asks[i] and not _answered(spoken, asks, i)
        ),
        action_items=_listed(
            spoken[i] for i, text in enumerate(low) if not decided[i] and _TO_DO.search(text)
        ),
        entities=entities_of(spoken, names),
    )


def _sentence_source(turn: Turn) -> tuple[str, str, float, int]:
    return turn.speaker, turn.text, 0.0 if turn.role in ("assistant", "tool") else 0.5, turn.tokens


def _first(turns: Sequence[Turn], most: int) -> str:
    """Return the beginning of a conversation without a sentence: signs, single letters."""
    return "\n".join(f"{turn.speaker}: {turn.text.strip()}" for turn in turns[:SENTENCES])[:most]


def _asks(sentence: Sentence) -> bool:
    return _QUESTION.search(sentence.text) is not None


def _answered(spoken: Sequence[Sentence], asks: Sequence[bool], place: int) -> bool:
    """Return True if another speaker replies at once, continues on the subject, or just says yes or no."""
    asked = spoken[place]
    others = [i for i in range(place + 1, len(spoken)) if spoken[i].speaker != asked.speaker][:NEXT]
    if others and others[0] == place + 1 and not asks[place + 1]:
        return _ASIDE.search(spoken[place + 1].text) is None
    return any(
        _ANSWER.match(spoken[i].text) or (asked.terms & spoken[i].terms and not asks[i]) for i in others
    )


def _listed(items: Iterable[Sentence]) -> list[str]:
    texts = dict.fromkeys(
        sentence.text if len(sentence.text) <= ITEM_CHARS else f"{sentence.text[: ITEM_CHARS - 1].rstrip()}…"
        for sentence in items
    )
    return list(texts)[:LISTED]


def topics_of(spoken: Sequence[Sentence], names: Iterable[str]) -> list[str]:
    """Return the words that most sentences share, as they are mostly written, without the names of speakers."""
    shared = Counter(term for sentence in spoken for term in sentence.terms)
    often = {term: number for term, number in shared.items() if number > 1 and len(term) > 2}
    if not often:
        return []
    known = {word for name in names for word in name.lower().split()}
    written: dict[str, str] = {}
    for word, _ in Counter(
        WORD.findall(visible(" ".join(sentence.text for sentence in spoken)).lower())
    ).most_common():
        if word not in known and word not in _PLAIN and not word.isdigit():
            for term in word_terms(word):
                written.setdefault(term, word)
    ranked = sorted((-number, -len(term), term) for term, number in often.items() if term in written)
    return [written[term] for _, _, term in ranked[:TOPICS]]


def entities_of(spoken: Sequence[Sentence], names: Iterable[str]) -> list[str]:
    """Return names of people, places and things that are mentioned: capitalised inside a sentence, or with a sign."""
    speakers = set(names)
    counts = Counter(
        name.strip("`")
        for sentence in spoken
        for name in sentence.names
        if name.lower().split("'")[0].split("’")[0] not in STOPWORDS
    )
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return [name for name, _ in ranked if name not in speakers][:ENTITIES]
