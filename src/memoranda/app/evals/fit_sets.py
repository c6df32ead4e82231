"""Questions made of a dataset, so that scores are probabilities in short talks too, and where nothing answers."""

from __future__ import annotations

import random
from collections import defaultdict

from msgspec.structs import replace

from memoranda.app.evals import assistant, current, synthetic
from memoranda.app.evals.dataset import Dataset, Question
from memoranda.types import NewMemory

EXCERPTS = 250
"""The most excerpts of a dataset."""
SHORTEST, LONGEST = 1, 49
"""The fewest and the most messages of an excerpt."""


def bundled(style: str) -> list[Dataset]:
    """Return the bundled sets of a style that weights may be fitted on."""
    if style == "assistant":
        return [assistant.read()]
    return [synthetic.read(), _changing()] if style == "people" else []


def _changing() -> Dataset:
    """Return the first conversation in which things change, where what holds now answers."""
    case = current.read()[0]
    session = f"current-{case.name}"
    memories = {
        f"{session}.{number}": NewMemory(
            content=message.content,
            kind="message",
            session_id=session,
            role=message.role if message.speaker is None else None,
            metadata={} if message.speaker is None else {"speaker": message.speaker},
            occurred_at=message.occurred_at,
        )
        for number, message in enumerate(case.messages)
    }
    questions = [
        Question(
            id=f"{session}.{number}",
            text=asked.ask,
            category="current",
            grades={
                key: 1.0 for key, one in memories.items() if asked.now.casefold() in one.content.casefold()
            },
            scopes=[f"session:{session}"],
        )
        for number, asked in enumerate(case.questions)
    ]
    return Dataset("current", memories, questions)


def excerpts(dataset: Dataset, seed: int = 0) -> Dataset:
    """Return questions with consecutive messages around what answers each, as a session of its own."""
    rng = random.Random(seed)
    places: dict[str | None, list[str]] = defaultdict(list)
    for key, memory in dataset.memories.items():
        places[memory.channel_id or memory.session_id].append(key)
    at = {key: (place, number) for place, keys in places.items() for number, key in enumerate(keys)}
    memories: dict[str, NewMemory] = {}
    questions: list[Question] = []
    asked = [one for one in dataset.questions if dataset.overall is None or one.category in dataset.overall]
    for question in rng.sample(asked, len(asked)):
        right = [at[key] for key in question.grades]
        size = round(SHORTEST * (LONGEST / SHORTEST) ** rng.random())
        first, last = min(number for _, number in right), max(number for _, number in right)
        if len({place for place, _ in right}) > 1 or last - first >= size or len(questions) == EXCERPTS:
            continue
        keys = places[right[0][0]]
        start = max(0, min(len(keys) - size, first - rng.randrange(size - (last - first))))
        session = f"{dataset.name}-excerpt-{len(questions)}"
        memories |= {
            f"{session}/{key}": replace(dataset.memories[key], session_id=session, channel_id=None)
            for key in keys[start : start + size]
        }
        grades = {f"{session}/{key}": grade for key, grade in question.grades.items()}
        questions.append(
            replace(question, id=f"{session}/{question.id}", grades=grades, scopes=[f"session:{session}"])
        )
    return Dataset(f"{dataset.name}, excerpts", memories, questions, overall=dataset.overall)


def unanswered(dataset: Dataset, seed: int = 0) -> Dataset:
    """Return the questions, each asked where another one is answered and it is not; if all are answered in one place,
    those of a bundled set."""
    rng = random.Random(seed)
    scopes = {tuple(one.scopes or ()): one.scopes for one in dataset.questions}
    asked = dataset.questions
    if len(scopes) == 1:
        asked = (synthetic.read() if dataset.name == "assistant" else assistant.read()).questions
    questions = [
        replace(one, id=f"{one.id}/elsewhere", grades={}, scopes=scopes[rng.choice(others)])
        for one in asked
        if (others := sorted(scopes.keys() - {tuple(one.scopes or ())}))
    ]
    return Dataset(f"{dataset.name}, elsewhere", dataset.memories, questions, overall=dataset.overall)
