"""The bundled conversation of a user with an assistant, whose long answers repeat what the questions are about."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.reading import read_yaml
from memoranda.errors import InvalidInput
from memoranda.types import NewMemory

BUNDLED = Path(__file__).parent / "assistant.yaml"
SESSION = "assistant"
ROLES = ("user", "assistant")


class _Session(msgspec.Struct):
    date: str
    turns: list[str]


class _Asked(msgspec.Struct):
    ask: str
    turns: list[float]


class _File(msgspec.Struct):
    sessions: list[_Session]
    questions: list[_Asked]


def read(path: Path = BUNDLED) -> Dataset:
    """Return the turns as messages with the roles `user` and `assistant`, a minute apart, all in one session scope. A
    question about what the user said is of the category `user`, one about what the assistant said of `assistant`.

    Raises:
        InvalidInput: the file is missing or has another shape.
    """
    content = read_yaml(path, BUNDLED.name)
    try:
        content = msgspec.convert(content, _File)
        memories = {
            f"{number}.{place}": NewMemory(
                content=text,
                kind="message",
                session_id=SESSION,
                role=ROLES[(place - 1) % 2],
                occurred_at=datetime.fromisoformat(session.date) + timedelta(minutes=place),
            )
            for number, session in enumerate(content.sessions, start=1)
            for place, text in enumerate(session.turns, start=1)
        }
        questions = [
            Question(
                id=str(number),
                text=asked.ask,
                category=str(memories[str(asked.turns[0])].role),
                grades={str(turn): 1.0 for turn in asked.turns if memories[str(turn)]},
                scopes=[f"session:{SESSION}"],
            )
            for number, asked in enumerate(content.questions, start=1)
        ]
    except (ValueError, KeyError) as exc:
        raise InvalidInput(str(path), f"has another form than {BUNDLED.name}: {exc}") from exc
    return Dataset("assistant", memories, questions)
