"""What the OpenAI Agents SDK's tests take for its `SQLiteSession`, with Memoranda behind it: a plugin that takes its
place in the SDK."""

from __future__ import annotations

from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any

import agents
import agents.memory

import memoranda
from memoranda.integrations.openai_agents import MemorandaSession

OPEN: dict[str, Any] = {}
"""The product for each database file that a test names."""
EVERYTHING = ExitStack()


def product_of(path: Any) -> Any:
    """The product that keeps what a test keeps in a database; each `:memory:` is one of its own."""
    if str(path) == ":memory:":
        return EVERYTHING.enter_context(memoranda.open(":memory:", embedder={"url": "hash:64"}))
    if str(path) not in OPEN:
        folder = EVERYTHING.enter_context(TemporaryDirectory())
        OPEN[str(path)] = EVERYTHING.enter_context(
            memoranda.open(f"{folder}/data", embedder={"url": "hash:64"})
        )
    return OPEN[str(path)]


class SQLiteSession(MemorandaSession):
    """`MemorandaSession` on a folder, made as `SQLiteSession` is."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", session_settings: Any = None) -> None:
        super().__init__(product_of(db_path), session_id, session_settings=session_settings)

    def close(self) -> None:
        """The folder stays open for other sessions."""


agents.SQLiteSession = agents.memory.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]


def pytest_unconfigure() -> None:
    """Closes what the tests opened."""
    EVERYTHING.close()
