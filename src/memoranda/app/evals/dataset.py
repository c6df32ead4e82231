"""Datasets of labelled questions: memories to write, and questions with known answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from memoranda.types import NewMemory


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
