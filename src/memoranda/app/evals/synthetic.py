"""The bundled set: memories of a small group of people, with near misses written beside each answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.reading import read_yaml
from memoranda.errors import InvalidInput
from memoranda.types import NewMemory

BUNDLED = Path(__file__).parent / "synthetic.yaml"
SESSION = "synthetic"

_LINE = re.compile(r"(\d{4}-\d\d-\d\d) ([^|]+?) \| (.+)", re.DOTALL)


def read(path: Path = BUNDLED) -> Dataset:
    """Return the set in one YAML file: `cases`, each with a query, its category, the lines that answer it and the lines
    that mislead, and `chatter`, lines that belong to no question. A line is `2024-03-05 Ana | what she said`.

    Raises:
        InvalidInput: the file is missing or has another shape; names the case.
    """
    content = read_yaml(path, BUNDLED.name)
    memories: dict[str, NewMemory] = {}
    questions: list[Question] = []
    for number, case in enumerate(content["cases"], start=1):
        where = f"{path.name}, case {number}"
        answers = _add(memories, f"{number}.answer", case.get("answers"), where)
        wrong = _add(memories, f"{number}.wrong", case.get("wrong", []), where)
        if not answers:
            raise InvalidInput(where, "needs `answers`, the lines that answer its query")
        questions.append(
            Question(
                id=str(number),
                text=case["query"],
                category=case["category"],
                grades=dict.fromkeys(answers, 1.0),
                wrong=frozenset(wrong),
                scopes=[f"session:{SESSION}"],
            )
        )
    _add(memories, "chatter", content.get("chatter", []), f"{path.name}, chatter")
    return Dataset("synthetic", _by_time(memories), questions)


def _add(memories: dict[str, NewMemory], name: str, lines: Any, where: str) -> list[str]:
    added = {f"{name}.{i}": memory for i, memory in enumerate(_messages(lines, where), start=1)}
    memories |= added
    return list(added)


def _messages(lines: Any, where: str) -> Iterator[NewMemory]:
    for line in lines or []:
        match = _LINE.fullmatch(str(line).strip())
        if match is None:
            raise InvalidInput(where, f"{line!r} is not like `2024-03-05 Ana | what she said`")
        date, speaker, text = match.groups()
        yield NewMemory(
            content=text,
            kind="message",
            session_id=SESSION,
            metadata={"speaker": speaker},
            occurred_at=datetime.fromisoformat(date),
        )


def _by_time(memories: dict[str, NewMemory]) -> dict[str, NewMemory]:
    """Return the memories oldest first; lines of one day are a minute apart."""
    ordered = sorted(memories.items(), key=lambda item: item[1].occurred_at or datetime.min)
    for number, (_, memory) in enumerate(ordered):
        assert memory.occurred_at is not None
        memory.occurred_at += timedelta(minutes=number)
    return dict(ordered)
