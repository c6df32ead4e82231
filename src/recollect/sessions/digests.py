"""What a conversation came to: a summary with its topics, decisions and open ends; made here by rules."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from recollect.text.extracting import NAME, Sentence, chosen, looked_at, sentences, weights
from recollect.text.terms import STOPWORDS, WORD, word_terms

EXTRACTIVE = "extractive"
SENTENCES = 6
"""Sentences of a summary at most."""
TOPICS = 5
LISTED = 10
"""Decisions, questions, ... at most."""
ENTITIES = 12
ITEM_CHARS = 240
"""Characters of a decision, a question, ... at most."""
NEXT = 3
"""Sentences after a question in which another may answer it."""
_DECIDED = re.compile(
    r"\b(?:decided?|agreed|settled on|we(?:'ll| will) (?:use|go|take|do|keep|meet)|going with|let's|it's a deal|chose|"
    r"approved|confirmed|final decision|entschieden|beschlossen|vereinbart|décidé|convenu)\b",
    re.IGNORECASE,
)
_TO_DO = re.compile(
    r"\b(?:i(?:'ll| will)|i'm going to|(?:can|could|would) you|please|to-?do|needs? to|has to|must|"
    r"remember to|don't forget|deadline|due (?:on|by)|by (?:mon|tues|wednes|thurs|fri|satur|sun)day|by tomorrow|"
    r"ich werde|bitte|muss noch|je vais|il faut)\b",
    re.IGNORECASE,
)
_ANSWER = re.compile(
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
"""Words that are said everywhere, and so are no topic."""


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
        """All of it as one text, to be found by: nothing that the summary says is said again."""
        lines = [self.summary]
        for label, items in (
            ("Decided", self.decisions),
            ("Open", self.open_questions),
            ("To do", self.action_items),
        ):
            if fresh := [item for item in items if item.rstrip(".") not in self.summary]:
                lines.append(f"{label}: {'; '.join(fresh)}")
        return "\n".join(lines)


def digest_of(said: Iterable[tuple[str, str, str]], most: int) -> Digest:
    """The digest of what was said, each given as (speaker, role, text); a summary of at most `most` tokens. Always the
    same for the same."""
    turns = [(speaker, text, 0.0 if role in ("assistant", "tool") else 0.5) for speaker, role, text in said]
    held = looked_at(list(sentences(turns)))
    names = dict.fromkeys(speaker for speaker, _, _ in turns)
    return Digest(
        summary=chosen(held, most, weights(held), SENTENCES) or _first(turns, most),
        topics=topics_of(held, names),
        decisions=_listed(one for one in held if _DECIDED.search(one.text) and not _asks(one)),
        open_questions=_listed(one for i, one in enumerate(held) if _asks(one) and not _answered(held, i)),
        action_items=_listed(
            one for one in held if _TO_DO.search(one.text) and not _DECIDED.search(one.text)
        ),
        entities=entities_of(held, names),
    )


def _first(turns: Sequence[tuple[str, str, float]], most: int) -> str:
    """What there is of a conversation without a sentence: signs, single letters."""
    return "\n".join(f"{speaker}: {text.strip()}" for speaker, text, _ in turns[:SENTENCES])[:most]


def _asks(one: Sentence) -> bool:
    return one.text.rstrip("\"'”’») ").endswith(("?", "？", "؟"))


def _answered(held: Sequence[Sentence], place: int) -> bool:
    """Whether somebody else says something to it at once, goes on about it, or just says yes or no."""
    asked, after = held[place], held[place + 1 :]
    if after and after[0].speaker != asked.speaker and not _asks(after[0]):
        return True
    others = [one for one in after if one.speaker != asked.speaker]
    return any(
        _ANSWER.match(one.text) or (asked.terms & one.terms and not _asks(one)) for one in others[:NEXT]
    )


def _listed(found: Iterable[Sentence]) -> list[str]:
    texts = dict.fromkeys(
        one.text if len(one.text) <= ITEM_CHARS else f"{one.text[: ITEM_CHARS - 1].rstrip()}…"
        for one in found
    )
    return list(texts)[:LISTED]


def topics_of(held: Sequence[Sentence], names: Iterable[str]) -> list[str]:
    """The words that most sentences share, as they are mostly written; names of who speaks are none."""
    known = {word for name in names for word in name.lower().split()}
    sentences_with: Counter[str] = Counter()
    written: dict[str, Counter[str]] = defaultdict(Counter)
    for one in held:
        stems = set()
        for word in WORD.findall(one.text):
            low = word.lower()
            if len(low) < 3 or low in STOPWORDS or low in _PLAIN or low in known or low.isdigit():
                continue
            for stem in word_terms(low):
                stems.add(stem)
                written[stem][low] += 1
        sentences_with.update(stems)
    often = [(stem, number) for stem, number in sentences_with.items() if number > 1]
    often.sort(key=lambda one: (-one[1], -len(one[0]), one[0]))
    return [min(written[stem].items(), key=lambda one: (-one[1], one[0]))[0] for stem, _ in often[:TOPICS]]


def entities_of(held: Sequence[Sentence], names: Iterable[str]) -> list[str]:
    """Names of people, places and things that are spoken of: capitalised inside a sentence, or with a sign in them."""
    speakers = set(names)
    found = Counter(
        name.strip("`")
        for one in held
        for name in NAME.findall(one.text)
        if name.lower().split("'")[0].split("’")[0] not in STOPWORDS
    )
    ranked = sorted(found.items(), key=lambda one: -one[1])
    return [name for name, _ in ranked if name not in speakers][:ENTITIES]
