"""A fake model that reads the facts of the few sentences that tests say, and what they end."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from memoranda.app.blocking import BlockingMemoranda
from memoranda.providers.chat.base import Ask, Ended, Model, Piece, TextDelta
from memoranda.text import prompts
from support.core_parts import replaced

_LINE = re.compile(r"^\[(\d+)\] \S+ \S+ (.*?): (.*)$", re.MULTILINE)
_KNOWN = re.compile(r"^F(\d+)\. \S+: (.*)$", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d+)\. \S+: (.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"(?:(?!,? and I )[^.!?])+(?:\.\d+[^.!?]*)*[.!?]*")
"""Also a clause before "and I"."""
_SAID = [
    (re.compile(pattern), fact)
    for pattern, fact in (
        (r"I live in (.+)", "{name} lives in {0}"),
        (r"I moved to (.+)", "{name} moved to {0}"),
        (r"I don't live in (.+) anymore", "{name} no longer lives in {0}"),
        (r"I (prefer|like|own|use|work|drink|speak|play|love|drive|hate)s? (.+)", "{name} {0}s {1}"),
        (r"I don't (eat|like) (.+)", "{name} does not {0} {1}"),
        (r"I(?:'m| am) (allergic to .+|vegan|vegetarian|from .+|an? .+)", "{name} is {0}"),
        (r"[Mm]y ([\w ]+) is (.+)", "{name}'s {0} is {1}"),
        (r"[Oo]ur ([\w ]+) is (.+)", "The {0} is {1}"),
        (r"(.+) is on (.+)", "{0} is on {1}"),
        (r"We decided to (.+)", "It was decided to {0}"),
    )
]
_MATTERS = [
    re.compile(r"(?P<matter>.+?) (?:no longer )?(?:lives in|moved to) "),
    re.compile(r"(?P<matter>.+?'s (?:budget|favourite colour|dentist appointment|doctor|name)) is "),
]
"""Of which a person has one at a time."""


@contextmanager
def reading(rc: BlockingMemoranda) -> Iterator[None]:
    """Let a product read facts with a `FactReader` meanwhile."""
    with replaced(rc.inner.core, model=FactReader()):
        yield


class FactReader(Model):
    """Answers extraction with the facts of known sentences and what they end, merging with all the facts as one.
    `asked` are the calls so far."""

    name = "reader"

    def __init__(self) -> None:
        self.asked: list[Ask] = []

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        self.asked.append(ask)
        system, user = (str(message["content"]) for message in ask.messages)
        yield TextDelta(json.dumps(_merged(user) if system == prompts.MERGING else {"facts": _facts(user)}))
        yield Ended("stop", None, self.name)

    async def names(self) -> list[str]:
        return [self.name]


def _merged(text: str) -> dict[str, Any]:
    facts = _NUMBERED.findall(text)
    return {
        "facts": [int(number) for number, _ in facts],
        "text": " ".join(f"{fact.rstrip('.')}." for _, fact in facts),
    }


def _facts(text: str) -> list[dict[str, Any]]:
    known = {fact: int(number) for number, fact in _KNOWN.findall(text)}
    facts: list[dict[str, Any]] = []
    for number, name, said in _LINE.findall(text.partition("Conversation:\n")[2]):
        for sentence in _SENTENCE.findall(said):
            quote = sentence.removeprefix(",").strip(" .!?").removeprefix("and ")
            fact = _fact_of(quote, "The user" if name == "user" else name)
            if fact is None or sentence.rstrip().endswith("?"):
                continue
            ended = [
                at
                for other, at in known.items()
                if other != fact and matter_of(other) == matter_of(fact) is not None
            ]
            same = [at for other, at in known.items() if other.startswith(fact)]
            op = f"same F{same[0]}" if same else "add"
            if ended and not same:
                op = f"replaces {', '.join(f'F{at}' for at in ended)}"
            facts.append(
                {"text": fact, "messages": [int(number)], "op": op, "quote": quote, "confidence": 0.9}
            )
    return facts


def _fact_of(said: str, name: str) -> str | None:
    if any(pattern.match(said) for pattern in _MATTERS) and not said.startswith("I "):
        return said
    for pattern, fact in _SAID:
        if match := pattern.fullmatch(said):
            return fact.format(*match.groups(), name=name)
    return None


def matter_of(fact: str) -> str | None:
    """What a fact is about, of which there is one value at a time; None for all others."""
    for pattern in _MATTERS:
        if match := pattern.match(fact):
            return match["matter"]
    return None
