"""Several changes as one transaction: rows, indexes and what was made of them, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.clock import now_micros
from memoranda.store.changes import Applied, Put
from memoranda.store.rows import EMPTY, Draft, Record
from memoranda.store.transaction import RemovedMemory, Writing
from memoranda.store.validation import Bounds, draft
from memoranda.text.stored import compact_json
from memoranda.types import NewMemory, Subject

pytestmark = pytest.mark.rows_in("sqlite", "postgresql")
ASKER = Subject()


def drafts(*texts: str, **fields: Any) -> list[Draft]:
    return [
        draft(NewMemory(content=text, **fields), ASKER, now_micros() + at, Bounds(), "")
        for at, text in enumerate(texts)
    ]


def found(r: BlockingMemoranda, word: str, **fields: Any) -> list[str]:
    hits = r.memories.search(word, mode="keyword", scopes=["all"], **fields)
    return [hit.memory.content for hit in hits.results]


def test_a_new_fact_takes_the_place_of_an_old_one_in_one_step(home: Any) -> None:
    with home.empty() as r:
        old = r.memories.add("Ana lives in Munich", kind="fact")

        def work(w: Writing) -> str:
            new = w.insert(drafts("Ana lives in Berlin", kind="fact"))[0].row
            seqs = [row.seq for row in r.inner.core.store.by_id("default", [old.memory.id]).values()]
            w.mark(
                seqs, lambda row: row._replace(superseded_by=new.id, invalid_at=now_micros(), confidence=0.5)
            )
            return new.id

        new = r.inner.core.store.transact("default", work).result()
        assert found(r, "Ana lives") == ["Ana lives in Berlin"]
        held = r.memories.get(old.memory.id)
        assert (held.superseded_by, held.confidence) == (new, 0.5)
        assert held.invalid_at is not None
        assert (r.memories.get(old.memory.id)).access_count == 0


def test_what_fails_half_way_changes_nothing(home: Any) -> None:
    with home.empty() as r:
        old = r.memories.add("the kettle is red")

        def work(w: Writing) -> None:
            w.insert(drafts("the kettle is blue"))
            w.remove([row.seq for row in r.inner.core.store.by_id("default", [old.memory.id]).values()])
            raise ValueError("half way")

        with pytest.raises(ValueError, match="half way"):
            r.inner.core.store.transact("default", work).result()
        assert found(r, "kettle") == ["the kettle is red"]


def test_what_is_put_and_marked_at_once_is_in_the_indexes_once(home: Any) -> None:
    with home.empty() as r:

        def work(w: Writing) -> None:
            rows = [one.row for one in w.insert(drafts("a lamp by the window", "a lamp in the attic"))]
            w.mark([rows[0].seq], lambda row: row._replace(tags='["warm"]', session_id="evening"))
            w.remove([rows[1].seq])

        r.inner.core.store.transact("default", work).result()
        assert found(r, "lamp") == ["a lamp by the window"]
        assert found(r, "lamp", tags=["warm"]) == ["a lamp by the window"]
        inside = r.memories.search("lamp", mode="keyword", scopes=["session:evening"])
        assert len(inside.results) == 1
        assert r.memories.count() == 1


def test_what_was_made_of_a_memory_goes_with_it(home: Any) -> None:
    with home.empty() as r:
        told: list[Sequence[RemovedMemory]] = []

        def cascade(w: Writing, gone: Sequence[RemovedMemory]) -> tuple[int, int]:
            told.append(gone)
            ids = compact_json([one.id for one in gone])
            return w.remove(seq for (seq,) in w.c.all("made_of", [w.tenant, ids]))

        r.inner.core.store.cascades.append(cascade)
        said = r.memories.add("I moved to Berlin", kind="message", session_id="s")
        r.memories.add("lives in Berlin", kind="fact", source_refs=[said.memory.id])
        r.memories.add("likes trains", kind="fact", source_refs=["another"])
        receipt = r.memories.forget([said.memory.id])
        assert receipt.memories == 2
        assert ["message"] in [[one.kind for one in gone] for gone in told]
        assert found(r, "lives likes") == ["likes trains"]


def test_a_rewrite_is_told_with_both_texts(home: Any) -> None:
    with home.empty() as r:
        seen: list[tuple[str, str]] = []

        def edit(w: Writing, before: Record, after: Record) -> None:
            seen.append((before.content, after.content))

        r.inner.core.store.edits.append(edit)
        held = r.memories.add("the shop opens at nine")
        r.memories.update(held.memory.id, content="the shop opens at ten")
        assert seen == [("the shop opens at nine", "the shop opens at ten")]


def test_of_several_puts_of_a_row_the_last_stays_and_is_reworded_if_one_was() -> None:
    row, other = EMPTY._replace(seq=1), EMPTY._replace(seq=2)
    applied = Applied()
    applied.puts["t"] = [Put(row, []), Put(other, [], reworded=False), Put(row, [np.ones(2)], reworded=False)]
    applied.folded()
    assert [(put.row.seq, len(put.vectors), put.reworded) for put in applied.puts["t"]] == [
        (1, 1, True),
        (2, 0, False),
    ]
