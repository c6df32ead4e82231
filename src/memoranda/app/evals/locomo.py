"""Reads LoCoMo-style files (Maharana et al. 2024, snap-research/locomo): long talks, questions, evidence turns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from memoranda.app.evals.dataset import Dataset, Question, Unresolved
from memoranda.app.evals.reading import read_json
from memoranda.errors import InvalidInput
from memoranda.types import NewMemory

TITLES = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop", "5": "adversarial"}
OVERALL = frozenset("1234")
"""Category 5 asks for what was never said; its evidence is the turn that misleads. It is reported by itself."""

_TURN = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)", re.IGNORECASE)
_SESSION = re.compile(r"session_(\d+)")
_TIMES = ("%I:%M %p on %d %B, %Y", "%I:%M %p on %d %B %Y")


def read(path: Path) -> Dataset:
    """Return the conversations of one file: a message per turn, a session scope per conversation.

    Raises:
        InvalidInput: the file is missing, is no JSON, or a part of it has another shape; names the part.
    """
    memories: dict[str, NewMemory] = {}
    questions: list[Question] = []
    unresolved: list[Unresolved] = []
    for number, sample in enumerate(_samples(path)):
        name = str(sample.get("sample_id", f"conversation-{number + 1}"))
        try:
            turns = dict(_turns(name, sample["conversation"]))
            asked = list(_questions(name, sample.get("qa", []), turns.keys(), unresolved))
        except (KeyError, TypeError, AttributeError) as exc:
            raise InvalidInput(str(path), f"{name} is not shaped as LoCoMo has it: {exc!r}") from exc
        memories |= turns
        questions += asked
    return Dataset(path.stem, memories, questions, unresolved, OVERALL, TITLES)


def turn_ids(evidence: str) -> list[str]:
    """Return the turns that a piece of evidence names, as `D3:14`.

    Files in circulation put several into one string (`D8:6; D9:17`), add colons (`D:11:26`) or leading zeros
    (`D30:05`); all of these are read. Empty when no turn is named.
    """
    return [f"D{int(session)}:{int(turn)}" for session, turn in _TURN.findall(evidence)]


def session_time(text: str) -> datetime:
    """When a session began, from `1:56 pm on 8 May, 2023` or an ISO 8601 time.

    Raises:
        InvalidInput: the text is neither.
    """
    for shape in _TIMES:
        try:
            return datetime.strptime(text.strip(), shape)
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as exc:
        raise InvalidInput("date_time", f"{text!r} is not like `1:56 pm on 8 May, 2023`") from exc


def _samples(path: Path) -> list[dict[str, Any]]:
    content = read_json(path, "LoCoMo or LongMemEval")
    samples = content if isinstance(content, list) else [content]
    if not all(isinstance(sample, dict) for sample in samples):
        raise InvalidInput(str(path), "must hold conversations: an object, or a list of them")
    return samples


def _turns(name: str, talk: dict[str, Any]) -> Iterator[tuple[str, NewMemory]]:
    """Yield every turn as a message, oldest session first. Turns of a session are a second apart, so that a repeated
    text stays two messages."""
    sessions = {int(match[1]): talk[key] for key in talk if (match := _SESSION.fullmatch(key))}
    for number, turns in sorted(sessions.items()):
        date = talk.get(f"session_{number}_date_time")
        began = session_time(date) if date else None
        for place, turn in enumerate(turns):
            said = content(turn)
            if not said:
                continue
            dia_id = (turn_ids(turn["dia_id"]) or [turn["dia_id"]])[0]
            yield (
                f"{name}/{dia_id}",
                NewMemory(
                    content=said,
                    kind="message",
                    session_id=name,
                    metadata={"speaker": turn["speaker"], "dia_id": dia_id},
                    occurred_at=None if began is None else began + timedelta(seconds=place),
                ),
            )


def content(turn: dict[str, Any]) -> str:
    """Return the text of a turn, and the caption of its picture."""
    text, caption = str(turn.get("text") or "").strip(), str(turn.get("blip_caption") or "").strip()
    return f"{text} [photo: {caption}]".strip() if caption else text


def _questions(
    name: str, asked: Sequence[dict[str, Any]], known: Any, unresolved: list[Unresolved]
) -> Iterator[Question]:
    for number, item in enumerate(asked):
        id_ = f"{name}/q{number + 1}"
        grades: dict[str, float] = {}
        lost: list[str] = []
        for piece in item.get("evidence") or []:
            keys = [f"{name}/{turn}" for turn in turn_ids(str(piece))]
            grades |= {key: 1.0 for key in keys if key in known}
            if not keys or any(key not in known for key in keys):
                lost.append(str(piece))
        if lost or not grades:
            unresolved.append(Unresolved(id_, lost, left_out=not grades))
        if grades:
            category, scopes = str(item.get("category", "")), [f"session:{name}"]
            answer = str(item.get("answer") or "") if category in OVERALL else ""
            yield Question(id_, item["question"], category, grades, scopes=scopes, group=name, answer=answer)
