"""The interface of a tool that runs here: its offer to the model, its arguments, its result, the item of its call, and
what it may do because of what the response has read, since a model may obey what it reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from memoranda.config.agent_sections import Responses as Settings
from memoranda.contexts.result_text import author_of, class_of
from memoranda.errors import Forbidden
from memoranda.providers.chat.base import Source
from memoranda.responses.values import OUTPUTS, OWN_LABEL, Item, MemoryUse, output_text
from memoranda.store.access import default_scopes, sees_all
from memoranda.store.core import Core
from memoranda.store.ids import new_id
from memoranda.store.retrieval.evidence import Evidence
from memoranda.text import prompts
from memoranda.text.sentences import own_text, spans
from memoranda.text.terms import query_terms, term_set
from memoranda.types import Memory, Subject
from memoranda.validation import converted

TRUSTED = ("user", "assistant")
"""Classes of memories that were written by the user, or by the assistant where it had read nothing else."""
WRITTEN = "memory_write"
"""The `source` of memories that the tool wrote; where it had read nothing else, they are the assistant's."""
FEWEST = 2
"""Words that a text must share with a memory to carry it away, and half of the memory's words."""


class Reading(msgspec.Struct):
    """What a response has read that its user did not write, and the user's own memories that it was shown.

    `names` are ids of files, `user:X` for memories of others, `tool:X` for results of tools, `import:X`; `others` are
    these texts, `own` those of the user's memories."""

    names: dict[str, None] = msgspec.field(default_factory=dict)
    others: list[str] = msgspec.field(default_factory=list)
    own: list[str] = msgspec.field(default_factory=list)

    def note(self, names: Iterable[str], texts: Iterable[str]) -> None:
        """Add texts that others wrote."""
        self.names |= dict.fromkeys(names)
        self.others += texts

    def take(self, memories: Iterable[Memory], user: str | None) -> list[str]:
        """Add memories as `user` sees them; return the names of those that others wrote."""
        taken: list[str] = []
        for memory in memories:
            names = names_of(memory, user)
            if names:
                self.note(names, [memory.content])
                taken += names
            else:
                self.own.append(memory.content)
        return taken

    def take_items(self, items: Iterable[Item]) -> None:
        """Add what earlier calls, the client's functions and attached files have brought into a conversation."""
        for item in items:
            kind = item["type"]
            if kind == "file_search_call":
                results = item.get("_results") or item.get("results") or []
                self.note(
                    [str(result.get("file_id") or "file-") for result in results],
                    [str(result.get("text") or "") for result in results],
                )
            elif kind == "mcp_call" and item.get("server_label") == OWN_LABEL:
                self.note(item.get("_read") or (), [item.get("output") or ""] if item.get("_read") else ())
            elif kind == "mcp_call":
                self.note([f"tool:{item['server_label']}.{item['name']}"], [item.get("output") or ""])
            elif kind in OUTPUTS:
                self.note([f"tool:{item['call_id']}"], [output_text(item)])
            elif kind == "message":
                files = [part for part in item["content"] if part.get("type") == "input_file"]
                self.note(
                    [str(part.get("file_id") or f"file-{part.get('filename')}") for part in files],
                    [str(text) for text in item.get("_texts", {}).values()],
                )

    @property
    def trusted(self) -> bool:
        """True if nothing was read that others wrote."""
        return not self.names

    def is_users(self, text: str, said: str, least: float = 0.0) -> bool:
        """Return True if the user said more than the share `least` of the words of a text in the message `said`, and no
        sentence that others wrote has more of them. Quotations and code in the message are not the user's own
        words."""
        words = frozenset(query_terms(text))
        share = _share(words, own_text(said))
        return share > least and all(
            _share(words, other[start:stop]) <= share for other in self.others for start, stop in spans(other)
        )

    def carries_away(self, arguments: str, said: str) -> bool:
        """Return True if the arguments of a call have half of the words of one of the user's memories, of those that
        the user did not say in the message `said`."""
        words, known = term_set(arguments), term_set(said)
        for text in self.own:
            private = frozenset(query_terms(text)) - known
            if len(private & words) >= max(FEWEST, (len(private) + 1) // 2):
                return True
        return False


def names_of(memory: Memory, user: str | None) -> Sequence[str]:
    """Return the names under which a memory was read that `user` and the assistant did not write; none for theirs."""
    origin = class_of(memory, user)
    names = [*memory.read]
    if origin == "member":
        names.append(f"user:{author_of(memory)}")
    elif origin not in TRUSTED and memory.source != WRITTEN:
        names += [name for name in memory.written_by if not name.startswith("key:")] or [f"{origin}:"]
    return list(dict.fromkeys(names))


def _share(words: frozenset[str], text: str) -> float:
    """Return the share of the words that a text has, 0 for none."""
    return len(words & term_set(text)) / len(words) if words else 0.0


class Turn(msgspec.Struct, frozen=True):
    """The context of a tool: the subject, the scope (`session_id` is the conversation or the chain), how tokens are
    counted. `reading` is what the response has read so far. `listed` are the memories that the user has seen in a list
    of what would be forgotten, each with whether the user's own words asked for that list; None where earlier calls are
    not visible. `said` is the last message of the user, `asked` what these lists answered. With `everywhere` a search
    in memory that names no scope covers all that the key may search, not only the scopes of the conversation."""

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
    everywhere: bool = False


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


def begun_call(label: str, name: str, arguments: str) -> Item:
    """An `mcp_call` that begins."""
    return {
        "id": new_id("mcp_"),
        "type": "mcp_call",
        "status": "in_progress",
        "server_label": label,
        "name": name,
        "arguments": arguments,
        "output": None,
        "error": None,
        "approval_request_id": None,
    }


def asking(begun: Item) -> Item:
    """The item that asks whether this call may begin."""
    named = {key: begun[key] for key in ("server_label", "name", "arguments")}
    return {"id": new_id("mcpr_"), "type": "mcp_approval_request", **named}


def done_call(item: Item, output: str) -> Item:
    """The call with its output."""
    return {**item, "status": "completed", "output": output}


def failed_call(item: Item, reason: str, error: dict[str, Any] | None = None) -> Result:
    """The result of a call that failed; `error` is the item's, a tool execution error where none is given."""
    failure = error or {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": reason}]}
    return Result({**item, "status": "failed", "error": failure}, prompts.failed(reason))


def acting(turn: Turn) -> Subject:
    """The subject for whom the tool acts. If a user is named, it sees that user's rows and rows without a user, also
    with a key that sees all.

    Raises:
        Forbidden: the key acts for another user alone.
    """
    subject, user = turn.subject, turn.memory.user_id or turn.subject.user_id
    if user is None:
        return subject
    if not sees_all(subject):
        if user != subject.user_id:
            raise Forbidden(f"memory.user_id: this key acts for {subject.user_id!r} alone")
        return subject
    return replace(subject, user_id=user, role="service")


def places(turn: Turn) -> dict[str, str]:
    """The ids of the scopes that this conversation is in, by scope; `global`, which has none, is left out."""
    ids = {
        "session": turn.memory.session_id or turn.session_id,
        "user": turn.memory.user_id or turn.subject.user_id,
        "agent": turn.agent_id,
        "channel": turn.memory.channel_id,
    }
    return {scope: id_ for scope, id_ in ids.items() if id_}


def searched(turn: Turn) -> dict[str, Any]:
    """Return the scopes of a search in memory as fields of a query: all that the key may search with `everywhere`, else
    those of the conversation."""
    if turn.everywhere:
        scopes = default_scopes(turn.subject, turn.core.config.search.default_scope)
        if scopes == ["all"]:
            return {"scopes": scopes}
    return {"hierarchy": places(turn)}


T = TypeVar("T")
SHOWN = 200
"""Characters of a memory that a search shows."""


class MemoryTool(Tool):
    """A tool over the memories that the subject sees."""

    family = "mcp_call"
    server_label = OWN_LABEL

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def declared(cls, raw: dict[str, Any], settings: Settings, where: str) -> MemoryTool:
        """The tool of a declaration, which has no fields beside its type."""
        return cls(str(raw["type"]))

    def begun(self, arguments: str) -> Item:
        """The item of a call that begins."""
        return begun_call(OWN_LABEL, self.name, arguments)

    def failed(self, item: Item, reason: str) -> Result:
        """The result of a call that failed."""
        return failed_call(item, reason)


def arguments_of(arguments: dict[str, Any], type_: type[T]) -> T:
    """Return the arguments of a call.

    Raises:
        InvalidInput: names the field and the fix.
    """
    return converted(arguments, type_, strict=False)
