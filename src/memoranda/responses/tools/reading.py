"""What a response has read, and what it may do because of it: a model may obey what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from memoranda.contexts.telling import author_of, class_of
from memoranda.responses.items import OUTPUTS, output_text
from memoranda.responses.values import OWN_LABEL, Item
from memoranda.text.sentences import spans
from memoranda.text.statements import own_text
from memoranda.text.terms import query_terms, term_set
from memoranda.types import Memory

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
