"""A preview counts what `forget` erases with the same arguments, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import Forbidden, InvalidInput
from memoranda.types import Receipt, Subject

from .places import WORD, Planted, begun, settled

UNCOUNTED = {"vectors", "jobs"}
STEPS: list[tuple[str | None, Callable[[Planted], dict[str, Any]], bool]] = [
    (None, lambda planted: {"ids": [planted.kept, "mem_nothing"]}, True),
    (None, lambda _: {"tags": ["nowhere"]}, False),
    (None, lambda _: {"source": "note"}, True),
    ("dan", lambda _: {"text": "behind the door"}, False),
    ("mara", lambda _: {"scopes": ["session:private talk"]}, True),
    (None, lambda planted: {"scopes": [f"session:{planted.session}"], "text": "paint"}, True),
    (None, lambda _: {"since": "2026-03-03T10:02:00Z", "until": "2026-03-03T10:03:00Z"}, True),
    (None, lambda _: {"scopes": ["channel:house"], "until": "2026-03-02T10:02:00Z"}, True),
    ("mara", lambda _: {"text": WORD}, True),
    (None, lambda _: {"scopes": ["user:mara"]}, True),
    (None, lambda _: {"scopes": ["all"]}, True),
]
"""Who forgets, what, and whether there is any: one after the other, from little to everything."""


def counted(receipt: Receipt) -> dict[str, int]:
    return {kind: number for kind, number in receipt.counts.items() if kind not in UNCOUNTED}


@pytest.mark.parametrize("start", [0, 9, 10])
def test_a_preview_counts_what_is_erased(home: Any, tmp_path: Path, start: int) -> None:
    with begun(home, tmp_path, {}) as rc:
        planted = Planted(rc)
        planted.plant()
        for user, chosen, any_ in STEPS[start:]:
            memories = rc.acting_as(Subject(user_id=user, role="member") if user else Subject())
            fields = chosen(planted)
            preview = memories.preview_forget(**fields)
            assert memories.preview_forget(**fields) == preview
            assert bool(preview.counts) is any_, fields
            assert sum(kind.count for kind in preview.kinds) == preview.counts.get("memories", 0)
            assert counted(memories.forget(**fields)) == preview.counts, fields
            assert memories.preview_forget(**fields).counts == {}, fields
            settled(rc)


def test_what_rests_on_messages_goes_with_the_last_of_them(home: Any) -> None:
    with home.open() as rc:
        said = [
            rc.observe([{"content": f"I have {n} goats.", "role": "user"}], session_id="s", user_id="ada")[
                0
            ].message.id
            for n in range(320)  # more than two pages
        ]
        rc.memories.add("Ada has goats.", kind="fact", user_id="ada", source_refs=[said[0], said[-1]])
        both = rc.memories.preview_forget([said[0], said[-1]])
        assert both.counts == {"memories": 3, "messages": 2}
        assert {kind.kind: kind.count for kind in both.kinds} == {"message": 2, "fact": 1}
        assert rc.memories.preview_forget([said[0]]).counts == {"memories": 1, "messages": 1}
        everything = rc.memories.preview_forget(scopes=["session:s"])
        assert everything.counts == {"memories": 321, "messages": 320}
        assert counted(rc.memories.forget(scopes=["session:s"])) == everything.counts


def test_examples_are_those_that_the_subject_may_see(home: Any) -> None:
    with home.open() as rc:
        ada = Subject(user_id="ada", role="member")
        seen = rc.portal.call(
            rc.inner.sessions_as(ada).observe(
                [{"content": "My goat is Bo.", "role": "user"}], session_id="mine"
            )
        )
        rc.memories.add("Dan knows Bo.", kind="fact", user_id="dan", source_refs=[seen[0].message.id])
        rc.acting_as(ada).add("an old note", tags=["old"])
        (note,) = rc.acting_as(ada).preview_forget(tags=["old"]).kinds
        assert (note.kind, note.count, note.ended) == ("note", 1, 0)
        assert [memory.content for memory in note.examples] == ["an old note"]
        kinds = {kind.kind: kind for kind in rc.acting_as(ada).preview_forget([seen[0].message.id]).kinds}
        assert (kinds["fact"].count, kinds["fact"].examples) == (1, [])
        assert [memory.content for memory in kinds["message"].examples] == ["My goat is Bo."]


def test_what_cannot_be_forgotten_has_no_preview(home: Any) -> None:
    with home.open() as rc:
        with pytest.raises(InvalidInput, match="name what to forget"):
            rc.memories.preview_forget()
        with pytest.raises(InvalidInput, match="go alone"):
            rc.memories.preview_forget(["mem_1"], tags=["a"])
        with pytest.raises(Forbidden):
            rc.acting_as(Subject(user_id="ada", role="member")).preview_forget(scopes=["all"])
        with pytest.raises(InvalidInput, match="examples: must be a whole number between 1 and 100"):
            rc.memories.preview_forget(["mem_1"], examples=0)
        reader = rc.acting_as(Subject(user_id="ada", role="reader"))
        assert reader.preview_forget(tags=["a"]).counts == {}
        with pytest.raises(Forbidden):
            reader.forget(tags=["a"])
