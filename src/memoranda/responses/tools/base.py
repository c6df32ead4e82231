"""A tool that runs here: how it is offered to the model, what it is called with, what it gives back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memoranda.config.sections import Responses as Settings
from memoranda.providers.chat.base import Source
from memoranda.responses.values import Item, MemoryUse
from memoranda.store.core import Core
from memoranda.store.retrieval.evidence import Evidence
from memoranda.types import Subject


@dataclass(frozen=True, slots=True)
class Turn:
    """For whom and where a tool works: the subject, the place (`session_id` is the conversation or the chain), how
    tokens are counted. `listed` are the memories that the user has seen in a list of what would be forgotten."""

    core: Core
    subject: Subject
    settings: Settings
    session_id: str
    agent_id: str | None
    memory: MemoryUse
    count: Callable[[str], int]
    listed: frozenset[str] = frozenset()


@dataclass(slots=True)
class Result:
    """What a call came to: the finished item, what the model is told, and what it can cite.

    `item` goes into the response. `text` is the tool's message to the model where there is nothing to cite. Where there
    is, `sources` hold it (number 0) and `told` writes the message from them once they have their numbers. A search
    reports its `evidence`."""

    item: Item
    text: str = ""
    sources: list[Source] = field(default_factory=list)
    told: Callable[[Sequence[Source]], str] | None = None
    degraded: list[str] = field(default_factory=list)
    evidence: Evidence | None = None


class Tool(ABC):
    """One function that the model may call and this server runs.

    `name` is what the model calls it; the loop gives it another when the client's own function has the same.
    `family` chooses the events of its progress: `file_search_call` or `mcp_call`.
    """

    name: str
    family: str
    description: str
    parameters: dict[str, Any]
    approved: bool = True
    """Whether it runs without asking; otherwise the response ends with an item that asks, see `calls.asking`."""

    def offered(self, name: str) -> dict[str, Any]:
        """The tool as chat completions have it."""
        function = {"name": name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    @abstractmethod
    def begun(self, arguments: str) -> Item:
        """The item of a call that begins, status `in_progress`; `arguments` is the model's JSON as it came."""

    @abstractmethod
    async def run(self, item: Item, arguments: dict[str, Any], turn: Turn) -> Result:
        """Does it.

        Raises:
            MemorandaError: it did not work; the sentence becomes the result that the model sees (see `failed`).
        """

    @abstractmethod
    def failed(self, item: Item, reason: str) -> Result:
        """The result of a call that failed: the model is told `reason`."""

    async def check(self, turn: Turn) -> None:
        """Refuses what the tool can be known not to do for this subject, before the response begins.

        Raises:
            MemorandaError: the request is to be answered with it, as an error.
        """
        return

    async def close(self) -> None:
        """Lets go of what the tool holds for one response; called at its end, however it ended. Idempotent."""
        return
