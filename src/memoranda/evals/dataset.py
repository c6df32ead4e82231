"""Datasets of labelled questions: memories to write, and questions with known answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from memoranda.errors import InvalidInput
from memoranda.types import NewMemory


def read_json(path: Path, form: str) -> Any:
    """Return the value in a JSON file of questions in the named form.

    Raises:
        InvalidInput: the file cannot be read, or is not JSON.
    """
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise InvalidInput(
            str(path), f"cannot be read: {reason}; give the path of a file in the form of {form}"
        ) from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidInput(
            str(path), f"is not JSON ({exc}); give the path of a file in the form of {form}"
        ) from exc


def read_yaml(path: Path, example: str) -> Any:
    """Return the value in a YAML file in the form of the named example.

    Raises:
        InvalidInput: the file cannot be read, or is not YAML; names the line.
    """
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except OSError as exc:
        says = f"cannot be read: {(exc.strerror or str(exc)).lower()}"
    except UnicodeDecodeError:
        says = "is not UTF-8"
    except yaml.YAMLError as exc:
        at = getattr(exc, "problem_mark", None)
        says = "is not YAML" if at is None else f"is not YAML in line {at.line + 1}"
    raise InvalidInput(str(path), f"{says}; give a file in the form of {example}")


class Question(msgspec.Struct, frozen=True):
    """A question and the memories that answer it, by key.

    `grades` has the relevant keys, each above 0 (1 if the set has no grades). `wrong` are keys that were written to
    mislead. `scopes` is where to search; None is everything. `group` names its conversation, if there are several.
    `answer` is the answer as text, empty if the set has none.
    """

    id: str
    text: str
    category: str
    grades: Mapping[str, float]
    wrong: frozenset[str] = frozenset()
    scopes: list[str] | None = None
    group: str = ""
    answer: str = ""


class Unresolved(msgspec.Struct, frozen=True):
    """Evidence that names no memory of the set. The question is left out if nothing else answers it."""

    question: str
    evidence: list[str]
    left_out: bool


class Dataset(msgspec.Struct, frozen=True):
    """Memories by key, in the order to write them, and the questions over them.

    `overall` are the categories that count under `all` (None: every one); `titles` describes a category.
    """

    name: str
    memories: Mapping[str, NewMemory]
    questions: list[Question]
    unresolved: list[Unresolved] = msgspec.field(default_factory=list)
    overall: frozenset[str] | None = None
    titles: Mapping[str, str] = msgspec.field(default_factory=dict)
