"""Reads LongMemEval files (Wu et al. 2024): questions about a user's many sessions with an assistant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.reading import read_json
from memoranda.errors import InvalidInput
from memoranda.types import NewMemory


def is_longmemeval(path: Path) -> bool:
    """Return True for a file that begins as a LongMemEval file does."""
    try:
        with path.open(encoding="utf-8") as file:
            return '"question_type"' in file.read(4_096)
    except (OSError, UnicodeDecodeError):
        return False


def read(path: Path) -> Dataset:
    """Return the sessions of one file, a memory per session with what the user said; each question has its own
    sessions.

    Raises:
        InvalidInput: the file cannot be read, or a part of it has another shape; names the part.
    """
    items = read_json(path, "LoCoMo or LongMemEval")
    memories: dict[str, NewMemory] = {}
    questions: list[Question] = []
    for number, item in enumerate(items):
        try:
            name = str(item["question_id"])
            texts = {f"{name}/{id_}": text for id_, text in _sessions(item) if text.strip()}
            grades = {key: 1.0 for id_ in item["answer_session_ids"] if (key := f"{name}/{id_}") in texts}
            asked, category = str(item["question"]), str(item["question_type"])
        except (KeyError, TypeError, AttributeError) as exc:
            raise InvalidInput(
                str(path), f"question {number + 1} is not shaped as LongMemEval has it: {exc!r}"
            ) from exc
        memories |= {key: NewMemory(content=text, session_id=name) for key, text in texts.items()}
        if grades:
            questions.append(
                Question(
                    name,
                    asked,
                    category,
                    grades,
                    scopes=[f"session:{name}"],
                    group=name,
                    answer=str(item.get("answer", "")),
                )
            )
    return Dataset(path.stem, memories, questions)


def _sessions(item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the id of each session and what the user said in it."""
    if "sessions" in item:
        yield from ((str(session["id"]), str(session["text"])) for session in item["sessions"])
        return
    for id_, turns in zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True):
        yield str(id_), "\n".join(str(turn["content"]) for turn in turns if turn["role"] == "user")
