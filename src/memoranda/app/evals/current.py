"""Measures whether contexts have the current values, not the earlier ones, of conversations in which things change."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from memoranda.app.evals.observed import embed_pending
from memoranda.app.evals.reading import read_yaml
from memoranda.app.evals.run import Progress
from memoranda.app.evals.written import measured
from memoranda.app.memoranda import Memoranda
from memoranda.contexts.result_text import LATEST
from memoranda.errors import InvalidInput
from memoranda.sessions.values import NewMessage
from memoranda.text import tokens

BUNDLED = Path(__file__).parent / "current.yaml"
ASSISTANT = "assistant"
CHANNEL = "team"
MOST = 1_000
"""The most facts of one conversation."""
_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d) ([^|]+?) \| (.+)", re.DOTALL)


class CurrentQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, words of the message that answers it now, and words of the one that did before."""

    ask: str
    now: str
    before: str


class _Case(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    said: list[str]
    questions: list[CurrentQuestion]


class _File(msgspec.Struct):
    cases: list[_Case]


class Case(msgspec.Struct, frozen=True):
    """A conversation, and questions about what changed in it."""

    name: str
    messages: list[NewMessage]
    questions: list[CurrentQuestion]


class CurrentQuality(msgspec.Struct, kw_only=True):
    """How current the contexts of a conversation are.

    `current` is the share of questions whose context has the current value, `first` the share where the earlier value
    does not stand before it, or it is marked as the latest; `search_first` is the share whose first search result has
    it. `tokens` are those of a context without the question, on average. Of `facts` at the end, `stale` have an earlier
    value.
    """

    case: str
    questions: int
    current: float
    first: float
    search_first: float
    tokens: float
    facts: int
    stale: int
    wrong: list[str]


class CurrentReport(msgspec.Struct, kw_only=True):
    """All conversations of a file; `budget` is that of each context in tokens."""

    dataset: str
    model: str
    budget: int
    cases: list[CurrentQuality]


def read(path: Path = BUNDLED) -> list[Case]:
    """Return the conversations of a YAML file, see the bundled one.

    Raises:
        InvalidInput: the file is missing or has another shape.
    """
    try:
        content = msgspec.convert(read_yaml(path, BUNDLED.name), _File)
    except msgspec.ValidationError as exc:
        raise InvalidInput(str(path), f"{exc}; give a file like {BUNDLED.name}") from exc
    return [
        Case(case.name, [_message(line, f"{path.name}, {case.name}") for line in case.said], case.questions)
        for case in content.cases
    ]


def _message(line: str, where: str) -> NewMessage:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise InvalidInput(where, f"{line!r} is not like `2026-03-05 09:10 Ana | what she said`")
    at = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    if match[2] == ASSISTANT:
        return NewMessage(content=match[3], role="assistant", occurred_at=at)
    return NewMessage(content=match[3], user_id=match[2].lower(), speaker=match[2], occurred_at=at)


async def measure(
    path: Path, cases: Sequence[Case], *, embedder: str | None, budget: int, progress: Progress
) -> CurrentReport:
    """Observe each conversation in a tenant of its own, extract its facts by the configured language model, or by rules
    without one, and ask for the context of each question."""
    config = measured(
        ":memory:",
        embedder={} if embedder is None else {"url": embedder},
        facts={"extraction": "eager", "capture_rules": True},
        jobs={"workers": 0},
    )
    async with await Memoranda.open(config=config) as product:
        results = []
        for number, case in enumerate(cases, 1):
            results.append(await _measured(product, case, budget))
            progress("asking", number, len(cases))
        return CurrentReport(dataset=path.stem, model=product.core.store.model, budget=budget, cases=results)


async def _measured(product: Memoranda, case: Case, budget: int) -> CurrentQuality:
    workspace = product.as_subject(msgspec.structs.replace(product.subject, tenant_id=case.name))
    kept = await workspace.sessions.observe(case.messages, channel_id=CHANNEL)
    for session in dict.fromkeys(message.message.session_id for message in kept):
        await workspace.facts.extract(session)
    await embed_pending(product.core, case.name)
    facts = (await workspace.memories.list(kinds=["fact"], limit=MOST)).data
    scopes = [f"channel:{CHANNEL}"]
    answers = []
    for asked in case.questions:
        found = await workspace.memories.search(asked.ask, scopes=scopes, limit=1)
        context = await workspace.contexts.context(asked.ask, scopes=scopes, budget=budget)
        text = context.text.removesuffix(asked.ask)
        lines = text.casefold().splitlines()
        first = bool(found.results) and asked.now.casefold() in found.results[0].memory.content.casefold()
        answers.append((asked, _place(lines, asked), first, tokens.count(text)))
    return CurrentQuality(
        case=case.name,
        questions=len(answers),
        current=_share([place is not None for _, place, _, _ in answers]),
        first=_share([place is True for _, place, _, _ in answers]),
        search_first=_share([first for _, _, first, _ in answers]),
        tokens=round(statistics.fmean(spent for *_, spent in answers), 1),
        facts=len(facts),
        stale=sum(
            any(asked.before.casefold() in fact.content.casefold() for asked in case.questions)
            for fact in facts
        ),
        wrong=[
            f"{'missing' if place is None else 'behind'}: {asked.ask}"
            for asked, place, _, _ in answers
            if place is not True
        ],
    )


def _place(lines: Sequence[str], asked: CurrentQuestion) -> bool | None:
    """Return True if the current value stands before the earlier one, or is marked as the latest; None if the context
    does not have it."""
    now, before = asked.now.casefold(), asked.before.casefold()
    current = next((line for line in lines if now in line), None)
    if current is None:
        return None
    earlier = next((line for line in lines if before in line and now not in line), None)
    marked = LATEST.casefold() in current
    return earlier is None or marked or lines.index(current) < lines.index(earlier)


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 4)
