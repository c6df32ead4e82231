"""The interface of a tool that runs here: its offer to the model, its arguments, its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memoranda.config.sections import Responses as Settings
from memoranda.providers.chat.base import Source
from memoranda.responses.tools.reading import Reading
from memoranda.responses.values import Item, MemoryUse
from memoranda.store.core import Core
from memoranda.store.retrieval.evidence import Evidence
from memoranda.types import Subject


class Turn(msgspec.Struct, frozen=True):
    """The context of a tool: the subject, the scope (`session_id` is the conversation or the chain), how tokens are
    counted. `reading` is what the response has read so far. `listed` are the memories that the user has seen in a list
    of what would be forgotten, each with whether the user's own words asked for that list; None where earlier calls are
    not visible. `said` is the last message of the user, `asked` what these lists answered."""

    core: Core
    subject: Subject
    settings: Settings
    session_id: str
    agent_id: str | None
    memory: MemoryUse
    count: Callable[[str], int]
    response_id: str = ""
    reading: Reading = msgspec.field(default_factory=Reading)
    listed: Mapping[str, bool] | None = {}
    said: str = ""
    asked: str = ""


class Result(msgspec.Struct):
    """The result of a call: the finished item, the message to the model, and the sources that it can cite.

    `item` goes into the response. `text` is the tool's message to the model if there is nothing to cite. Otherwise
    `sources` hold the content (number 0) and `render` writes the message from them once they have their numbers. A
    search reports its `evidence`."""

    item: Item
    text: str = ""
    sources: list[Source] = msgspec.field(default_factory=list)
    render: Callable[[Sequence[Source]], str] | None = None
    degraded: list[str] = msgspec.field(default_factory=list)
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
    """True if it runs without asking; otherwise the response ends with an item that asks, see `calls.asking`."""

    def offered(self, name: str) -> dict[str, Any]:
        """The tool as chat completions have it."""
        function = {"name": name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    @abstractmethod
    def begun(self, arguments: str) -> Item:
        """The item of a call that begins, status `in_progress`; `arguments` is the model's JSON as it came."""

    @abstractmethod
    async def run(self, item: Item, arguments: dict[str, Any], turn: Turn) -> Result:
        """Run the call.

        Raises:
            MemorandaError: it did not work; the sentence becomes the result that the model sees (see `failed`).
        """

    @abstractmethod
    def failed(self, item: Item, reason: str) -> Result:
        """The result of a call that failed: the model reads `reason`."""

    def asks(self, arguments: str, turn: Turn) -> bool:
        """Return True if a call with these arguments (JSON) must be approved first."""
        return not self.approved

    async def check(self, turn: Turn) -> None:
        """Check before the response begins that the tool can work for this subject.

        Raises:
            MemorandaError: the request is to be answered with it, as an error.
        """
        return

    async def close(self) -> None:
        """Release the resources of one response; called at its end, however it ended. Idempotent."""
        return
