"""Measures whether the right facts are extracted from conversations, about the right people, and are current."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from memoranda.app.evals.abstention import calibration_error
from memoranda.app.evals.reading import read_yaml
from memoranda.app.evals.run import Progress
from memoranda.app.evals.written import measured
from memoranda.app.memoranda import Memoranda
from memoranda.errors import InvalidInput
from memoranda.sessions.values import NewMessage
from memoranda.text.terms import terms
from memoranda.types import Memory

BUNDLED = Path(__file__).parent / "facts.yaml"
ASSISTANT = "assistant"
MOST = 1_000
"""The most facts of one case."""
_LINE = re.compile(r"(\d{4}-\d\d-\d\d) ([^|]+?) \| (.+)", re.DOTALL)


class FactQuality(msgspec.Struct, kw_only=True):
    """The facts that hold after the conversations of a category.

    `extracted` facts hold, `expected` should. `precision` is the share of the extracted that are right, `recall` that
    of the expected that were extracted. `attribution` is the share about the right person, among those that are right
    of anybody. `current` is the share of changes after which only the new value holds. Shares are None where there is
    nothing to count.
    """

    category: str
    expected: int
    extracted: int
    precision: float | None
    recall: float | None
    attribution: float | None
    current: float | None


class FactReport(msgspec.Struct, kw_only=True):
    """All categories, first `all`. `found_by` is the language model, or `rules`. `confidence` is the mean confidence of
    the facts, and `error` its expected calibration error (ten bins of equal width); None without facts."""

    dataset: str
    found_by: str
    confidence: float | None
    error: float | None
    categories: list[FactQuality]
    wrong: list[str]


class Label(msgspec.Struct, frozen=True):
    """A fact about one person that has all of these terms."""

    who: str
    terms: frozenset[str]

    def fits(self, fact: Memory) -> bool:
        """Return True if a fact says this, about any person."""
        return self.terms <= set(terms(fact.content))


class Case(msgspec.Struct):
    """A conversation, the facts expected after it, and the past ones; then the current facts."""

    category: str
    messages: list[NewMessage]
    facts: list[Label]
    past: list[Label]
    found: list[Memory] = msgspec.field(default_factory=list)

    def right(self, fact: Memory) -> bool:
        """Return True if a fact is among the expected ones."""
        return any(label.who == fact.user_id and label.fits(fact) for label in self.facts)

    def stale(self, fact: Memory) -> bool:
        """Return True if a fact was true before."""
        old = any(label.who == fact.user_id and label.fits(fact) for label in self.past)
        return old and not self.right(fact)


def read(path: Path = BUNDLED) -> list[Case]:
    """Return the cases of a YAML file: `cases`, each with a `category`, what was `said`, the current `facts` and the
    `past` ones. The bundled file says how lines are written.

    Raises:
        InvalidInput: the file is missing or has another shape; names the case.
    """
    content = read_yaml(path, BUNDLED.name)
    if not isinstance(content, dict) or not isinstance(content.get("cases"), list):
        raise InvalidInput(str(path), f"has no list `cases`; give a file like {BUNDLED.name}")
    return [_case(case, f"{path.name}, case {number}") for number, case in enumerate(content["cases"], 1)]


def _case(case: Any, where: str) -> Case:
    if not isinstance(case, dict) or not case.get("said"):
        raise InvalidInput(where, "needs `said`, the lines of a conversation")
    began = timedelta()
    messages = []
    for line in case["said"]:
        match = _LINE.fullmatch(str(line).strip())
        if match is None:
            raise InvalidInput(where, f"{line!r} is not like `2024-03-05 Ana | what she said`")
        began += timedelta(minutes=1)
        messages.append(_message(match[1], match[2], match[3], began))
    expected, past = ([_label(line, where) for line in case.get(name) or []] for name in ("facts", "past"))
    return Case(str(case.get("category", "")), messages, expected, past)


def _message(date: str, speaker: str, text: str, after: timedelta) -> NewMessage:
    at = datetime.fromisoformat(date).replace(tzinfo=UTC) + after
    if speaker == ASSISTANT:
        return NewMessage(content=text, role="assistant", occurred_at=at)
    return NewMessage(content=text, user_id=speaker.lower(), speaker=speaker, occurred_at=at)


def _label(line: Any, where: str) -> Label:
    who, _, words = str(line).partition(" | ")
    if not words:
        raise InvalidInput(where, f"{line!r} is not like `Ana | words of the fact`")
    return Label(who.lower(), frozenset(terms(words)))


async def measure(path: Path, cases: Sequence[Case], progress: Progress) -> FactReport:
    """Observe every conversation, extract its facts, and compare those that hold: by the configured language model, or
    by rules without one. Each case is a tenant of its own."""
    settings = {"extraction": "eager", "capture_rules": True}
    config = measured(":memory:", facts=settings, jobs={"workers": 0})
    async with await Memoranda.open(config=config) as product:
        for number, case in enumerate(cases, 1):
            await _extracted(product, case, f"case-{number}")
            progress("extracting", number, len(cases))
        model = product.engine.model
        found_by = "rules" if model.quotes_only else (product.config.facts.model or model.name)
    return report(path.stem, found_by, cases)


async def _extracted(product: Memoranda, case: Case, name: str) -> None:
    workspace = product.as_subject(msgspec.structs.replace(product.subject, tenant_id=name))
    await workspace.sessions.observe(case.messages, session_id=name, channel_id="room")
    await workspace.facts.extract(name)
    case.found = (await workspace.memories.list(kinds=["fact"], limit=MOST)).data


def report(name: str, found_by: str, cases: Sequence[Case]) -> FactReport:
    """Return how good the facts of some cases are."""
    groups: dict[str, list[Case]] = {"all": list(cases)}
    for case in cases:
        groups.setdefault(case.category, []).append(case)
    judged = [(fact, case.right(fact)) for case in cases for fact in case.found]
    confidences = np.array([fact.confidence for fact, _ in judged])
    right = np.array([good for _, good in judged], np.bool_)
    return FactReport(
        dataset=name,
        found_by=found_by,
        confidence=round(float(confidences.mean()), 4) if judged else None,
        error=round(calibration_error(confidences, right), 4) if judged else None,
        categories=[_quality(category, some) for category, some in groups.items()],
        wrong=[f"{fact.user_id}: {fact.content}" for fact, good in judged if not good],
    )


def _quality(category: str, cases: Sequence[Case]) -> FactQuality:
    facts = [(case, fact) for case in cases for fact in case.found]
    labels = [(case, label) for case in cases for label in case.facts]
    matched = [
        (label, fact)
        for case, fact in facts
        for label in case.facts
        if label.fits(fact) and not case.stale(fact)
    ]
    changed = [case for case in cases if case.past]
    return FactQuality(
        category=category,
        expected=len(labels),
        extracted=len(facts),
        precision=_share([case.right(fact) for case, fact in facts]),
        recall=_share(
            [
                any(label.who == fact.user_id and label.fits(fact) for fact in case.found)
                for case, label in labels
            ]
        ),
        attribution=_share(
            [
                any(label.who == fact.user_id for label, other in matched if other is fact)
                for fact in {id(fact): fact for _, fact in matched}.values()
            ]
        ),
        current=_share([not any(map(case.stale, case.found)) for case in changed]),
    )


def _share(values: Sequence[bool]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None
