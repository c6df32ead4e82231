"""Reads BEIR folders (Thakur et al. 2021): corpus.jsonl, queries.jsonl, and the judgements in qrels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from memoranda.app.evals.dataset import Dataset, Question, Unresolved
from memoranda.errors import InvalidInput
from memoranda.types import NewMemory

T = TypeVar("T")


class _Document(msgspec.Struct):
    id: str = msgspec.field(name="_id")
    text: str = ""
    title: str = ""


class _Query(msgspec.Struct):
    text: str
    id: str = msgspec.field(name="_id")


def read(folder: Path, split: str = "test") -> Dataset:
    """Return the documents and the judged queries of one split; a document's text is its title and its body.

    Raises:
        InvalidInput: a file is missing or a line has another shape; names the file and line.
    """
    judged = _judgements(_qrels(folder, split))
    memories = {
        document.id: NewMemory(content=text, kind="document", metadata={"doc_id": document.id})
        for document in _lines(folder / "corpus.jsonl", _Document)
        if (text := "\n".join(part for part in (document.title.strip(), document.text.strip()) if part))
    }
    questions: list[Question] = []
    unresolved: list[Unresolved] = []
    for query in _lines(folder / "queries.jsonl", _Query):
        wanted = judged.get(query.id, {})
        grades = {key: grade for key, grade in wanted.items() if key in memories}
        if len(grades) < len(wanted):
            lost = [key for key in wanted if key not in memories]
            unresolved.append(Unresolved(query.id, lost, left_out=not grades))
        if grades:
            questions.append(Question(query.id, query.text, split, grades, scopes=["global"]))
    return Dataset(folder.name, memories, questions, unresolved)


def _qrels(folder: Path, split: str) -> Path:
    places = [folder / "qrels" / f"{split}.tsv", folder / f"qrels_{split}.tsv"]
    for place in places:
        if place.is_file():
            return place
    raise InvalidInput(str(folder), f"has neither {' nor '.join(str(p.relative_to(folder)) for p in places)}")


def _judgements(path: Path) -> dict[str, dict[str, float]]:
    """Return grades above 0 by query and document; a heading is skipped."""
    judged: dict[str, dict[str, float]] = defaultdict(dict)
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            query, document, grade = line.split("\t")
            value = float(grade)
        except ValueError as exc:
            if number == 1:
                continue
            raise InvalidInput(f"{path}, line {number}", "must be query, document, grade in tabs") from exc
        if value > 0:
            judged[query][document] = value
    return judged


def _lines(path: Path, shape: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(shape)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    yield decoder.decode(line)
                except msgspec.DecodeError as exc:
                    raise InvalidInput(f"{path}, line {number}", str(exc)) from exc
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise InvalidInput(str(path), f"cannot be read: {reason}; give the folder of a BEIR dataset") from exc
