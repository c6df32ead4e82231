"""A preview counts what `forget` erases with the same arguments, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import Forbidden, InvalidInput
from memoranda.memory_stores.values import NewStore, NewStoreMemory
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
    (None, lambda _: {"filters": {"speaker": "dan"}}, True),
    (None, lambda _: {"text": "assistant"}, True),
    (None, lambda _: {"kinds": ["session_summary"]}, True),
    (None, lambda _: {"scopes": ["all"]}, True),
]
"""Who forgets, what, and whether there is any: one after the other, from little to everything."""


def counted(receipt: Receipt) -> dict[str, int]:
    return {kind: number for kind, number in receipt.counts.items() if kind not in UNCOUNTED}


@pytest.mark.parametrize(("start", "end"), [(0, 11), (9, 10), (10, 11), (11, 13), (13, 15)])
def test_a_preview_counts_what_is_erased(home: Any, tmp_path: Path, start: int, end: int) -> None:
    with begun(home, tmp_path, {}) as rc:
        planted = Planted(rc)
        planted.plant()
        for user, chosen, any_ in STEPS[start:end]:
            memories = rc.as_subject(Subject(user_id=user, role="member") if user else Subject()).memories
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


def test_what_has_words_of_a_message_goes_with_it(home: Any) -> None:
    with home.open() as rc:
        said = [{"content": text, "role": "user"} for text in ("My goat is Bo.", "It is brown.")]
        first, second = (kept.message.id for kept in rc.observe(said, session_id="s", user_id="ada"))
        brown = {"source_refs": [second], "metadata": {"context_refs": [first]}}
        rc.memories.add("Ada's goat Bo is brown.", kind="fact", user_id="ada", **brown)
        preview = rc.memories.preview_forget([first])
        assert preview.counts == {"memories": 2, "messages": 1}
        assert counted(rc.memories.forget([first])) == preview.counts


@pytest.mark.parametrize("refs", ["x", 5, {"a": 1}, [None, 7, "", "a" * 2_000]])
def test_a_context_of_another_form_is_none(home: Any, refs: Any) -> None:
    with home.open() as rc:
        fact = rc.memories.add("Ada has a goat.", kind="fact", metadata={"context_refs": refs, "n": 1})
        rc.memories.update(fact.memory.id, importance=9)
        assert rc.memories.get(fact.memory.id).metadata["n"] == 1


def test_examples_are_those_that_the_subject_may_see(home: Any) -> None:
    with home.open() as rc:
        ada = Subject(user_id="ada", role="member")
        seen = rc.portal.call(
            rc.inner.as_subject(ada).sessions.observe(
                [{"content": "My goat is Bo.", "role": "user"}], session_id="mine"
            )
        )
        rc.memories.add("Dan knows Bo.", kind="fact", user_id="dan", source_refs=[seen[0].message.id])
        rc.as_subject(ada).memories.add("an old note", tags=["old"])
        (note,) = rc.as_subject(ada).memories.preview_forget(tags=["old"]).kinds
        assert (note.kind, note.count, note.ended) == ("note", 1, 0)
        assert [memory.content for memory in note.examples] == ["an old note"]
        kinds = {
            kind.kind: kind for kind in rc.as_subject(ada).memories.preview_forget([seen[0].message.id]).kinds
        }
        assert (kinds["fact"].count, kinds["fact"].examples) == (1, [])
        assert [memory.content for memory in kinds["message"].examples] == ["My goat is Bo."]


def test_a_preview_names_the_files(home: Any) -> None:
    with home.empty() as rc:
        for name in ("one.txt", "two.txt", "three.txt"):
            rc.knowledge.files.upload(f"{name} is about the blue pot.".encode(), name)
        rc.memories.add("The key is under the blue pot.")
        preview = rc.memories.preview_forget(text="blue", examples=2)
        assert (preview.counts, preview.files) == ({"files": 3, "memories": 1}, ["one.txt", "two.txt"])


def test_what_cannot_be_forgotten_has_no_preview(home: Any) -> None:
    with home.open() as rc:
        with pytest.raises(InvalidInput, match="name what to forget"):
            rc.memories.preview_forget()
        with pytest.raises(InvalidInput, match="go alone"):
            rc.memories.preview_forget(["mem_1"], tags=["a"])
        with pytest.raises(Forbidden):
            rc.as_subject(Subject(user_id="ada", role="member")).memories.preview_forget(scopes=["all"])
        with pytest.raises(InvalidInput, match="examples: must be a whole number between 1 and 100"):
            rc.memories.preview_forget(["mem_1"], examples=0)
        reader = rc.as_subject(Subject(user_id="ada", role="reader")).memories
        assert reader.preview_forget(tags=["a"]).counts == {}
        with pytest.raises(Forbidden):
            reader.forget(tags=["a"])


def test_what_only_names_erased_messages_stays(home: Any) -> None:
    """A summary that a caller wrote, and a fact that names a session, are not made of its messages."""
    with home.open() as rc:
        said = rc.observe([{"content": "The gate is open.", "role": "user"}], session_id="s")[0].message.id
        rc.memories.add("A gate was open.", kind="session_summary", source_refs=[said], session_id="s")
        rc.memories.add("The gate opens.", kind="fact", source_refs=["s"])
        preview = rc.memories.preview_forget([said, said])
        assert preview.counts == {"memories": 1, "messages": 1}
        assert counted(rc.memories.forget([said, said])) == preview.counts
        assert rc.memories.count() == 2


def test_an_upload_that_became_a_file_is_counted_once(home: Any) -> None:
    with home.open() as rc:
        uploads = rc.knowledge.uploads
        text = b"the green kettle"
        made = uploads.create(
            filename="a.txt", bytes=len(text), purpose="assistants", media_type="text/plain"
        )
        part = uploads.add_part(made.id, text)
        uploads.complete(made.id, [part.id])
        preview = rc.memories.preview_forget(text="kettle")
        assert preview.counts == {"files": 1}
        assert counted(rc.memories.forget(text="kettle")) == preview.counts


def test_versions_without_their_memory_are_redacted(home: Any) -> None:
    """A deletion that was interrupted leaves versions whose memory has no row any more."""
    with home.open() as rc:
        stores = rc.inner.as_subject(Subject()).memory_stores
        store = rc.portal.call(stores.create(NewStore(name="house")))
        memories = stores.memories(store.id)
        rc.portal.call(memories.create(NewStoreMemory(path="/a.md", content="Willow Street 12")))
        drop = "DELETE FROM store_memories WHERE tenant_id = ? RETURNING id"
        rc.inner.core.store.db.write(lambda c: c.select(drop, ["default"])).result()
        rc.memories.forget(text="Willow Street 12")
        left = rc.inner.core.store.db.read(lambda c: c.select("SELECT content FROM memory_versions"))
        assert [content for (content,) in left] == [None]
