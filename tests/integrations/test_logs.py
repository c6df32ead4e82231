"""Logs of JSON values, entries that are written once, and what conversations take from memory: what adapters share."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.errors import Conflict, InvalidInput
from memoranda.integrations import payloads
from memoranda.integrations.conversing import Conversing
from memoranda.integrations.entries import Entries
from memoranda.integrations.logs import Line, Logs
from memoranda.integrations.products import whole_of

VALUES: list[Any] = [
    {"text": "What is descaled with vinegar?", "$key": [None, True, 1.5]},
    {"long": 'ä€😀"\\' * 10_000},
    "a\x00b\ud83d",
]


def lines(*values: Any) -> list[Line]:
    return [Line(f"l{number}", value, f"line {number}") for number, value in enumerate(values)]


def test_values_come_back_in_their_order_and_once(folder: Any) -> None:
    logs, others = Logs(folder.memories, "logs", "ana"), Logs(folder.memories, "logs", "ben")
    logs.append({"log": "a"}, lines(VALUES[0]), "s1")
    logs.append({"log": "a"}, lines(*VALUES), "s1")
    logs.append({"log": "b"}, lines(1), None)
    others.append({"log": "a"}, lines(2), None)
    assert logs.read({"log": "a"}) == VALUES
    logs.erase({"log": "a"})
    assert [one.read({"log": name}) for one in (logs, others) for name in "ab"] == [[], [1], [2], []]


def test_parts_fit_and_texts_can_be_stored() -> None:
    parts = payloads.parts_of(payloads.text_of(VALUES[1]))
    assert len(parts) > 1
    assert max(len(part.encode()) for part in parts) <= 56_000
    assert payloads.text_of("\ud83d") == '"\\ud83d"'
    assert payloads.searchable(["a\x00\ud83d", "b"], "else") == "a?\n\nb"
    assert payloads.searchable(["\x00 "], "else") == "else"


def test_entries_are_created_once_and_replaced_in_their_place(folder: Any) -> None:
    entries = Entries(folder.memories, "things", user_id="ana", kinds=("note", "item"))
    entries.create(
        [{"id": "one", "content": "1", "kind": "note", "session_id": "s"}, {"id": "two", "content": "2"}]
    )
    with pytest.raises(Conflict, match="one"):
        entries.create([{"id": "three", "content": "3"}, {"id": "one", "content": "other"}])
    with pytest.raises(Conflict, match="two: this entry is there already"):
        entries.create([{"id": "two", "content": "2"}])
    entries.put([{"id": "one", "content": "changed", "kind": "note", "session_id": "s"}], "value")
    kept = {memory.id: (memory.content, memory.kind, memory.user_id) for memory in entries.listed()}
    assert kept == {"one": ("changed", "note", "ana"), "two": ("2", "item", "ana")}


def test_a_conversation_is_told_of_others_but_not_of_itself(folder: Any) -> None:
    conversing = Conversing(folder, 500)
    said = [{"role": "user", "content": "My bike is blue."}, {"role": "assistant", "content": " "}]
    conversing.observe(said, user_id="ana", session_id="s1")
    conversing.observe([], user_id="ana", session_id="s1")
    assert "My bike is blue." in conversing.recall("blue bike", user_id="ana", session_id="s2")
    assert "My bike is blue." not in conversing.recall("blue bike", user_id="ana", session_id="s1")
    assert "My bike is blue." not in conversing.recall("blue bike", user_id="ben", session_id="s2")
    assert conversing.recall(" ", user_id="ana", session_id=None) == ""
    with pytest.raises(InvalidInput, match="product: is BlockingMemories, which has no sessions"):
        whole_of(folder.memories)
