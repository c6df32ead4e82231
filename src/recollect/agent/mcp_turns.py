"""The MCP servers of one response: listed before the first call, asked for what was approved, let go at the end."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from recollect.agent.events import Telling
from recollect.agent.loop import Loop
from recollect.agent.tools.base import Tool, Turn
from recollect.agent.values import Item


class Servers:
    """The servers that a request declares."""

    def __init__(self, declared: Sequence[dict[str, Any]], turn: Turn, open_to_all: bool) -> None:
        self.tools: list[Tool] = []

    async def __aenter__(self) -> Servers:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    async def list(self, telling: Telling, past: Sequence[Item]) -> None:
        """Lists."""

    async def answer(self, loop: Loop, items: Sequence[Item]) -> None:
        """Answers."""
