"""Summaries of sessions and weeks in exports and archives: restored with their headers, and in another scope."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.sessions import summary_jobs, summary_memories
from memoranda.store.rows import COLUMNS, Record, searched_text
from memoranda.types import Subject
from support.waiting import until


@pytest.fixture
def orangery(chat: Any, monkeypatch: Any) -> Any:
    """A tenant with two summarized sessions of a week in the channel `orangery`, and their rollup."""
    monkeypatch.setattr(summary_memories, "QUIET", 0)
    monkeypatch.setattr(summary_jobs, "QUIET", 0)
    for day in (0, 1):
        id = chat.talk(day, channel="orangery")
        chat.sessions.close(id)
        chat.summarized(id)
    until(lambda: chat.kept("rollup"), "a roll-up")
    return chat


@pytest.fixture
def other(home: Any) -> Iterator[BlockingMemoranda]:
    """An empty product."""
    with home.open("other", sessions={"min_messages": 2}) as opened:
        yield opened


def archived(chat: Any, tmp_path: Path) -> Path:
    path = tmp_path / "all.zip"
    chat.rc.as_subject(Subject(tenant_id=chat.tenant)).archives.export_to(path)
    return path


def searched_texts(rc: BlockingMemoranda, tenant: str) -> dict[str, str]:
    sql = f"SELECT {COLUMNS} FROM memories WHERE tenant_id = ?"
    rows = map(Record._make, rc.inner.core.store.db.read(lambda c: c.select(sql, [tenant])))
    return {row.id: searched_text(row) for row in rows}


@pytest.mark.parametrize("form", ["zip", "jsonl"])
def test_a_summary_is_found_by_its_header_after_a_restore(
    orangery: Any, other: BlockingMemoranda, tmp_path: Path, form: str
) -> None:
    if form == "zip":
        assert other.archives.import_from(archived(orangery, tmp_path)).skipped == []
    else:
        assert other.memories.import_from(orangery.memories.export()).conflicts == []
    assert searched_texts(other, "default") == searched_texts(orangery.rc, orangery.tenant)
    summaries = orangery.kept("session_summary", "rollup")
    assert len(summaries) == 3
    assert not any("orangery" in summary.content for summary in summaries)
    hits = other.memories.search("orangery", mode="keyword", kinds=["session_summary", "rollup"]).results
    assert {hit.memory.id for hit in hits} == {summary.id for summary in summaries}


@pytest.mark.rows_in("sqlite", "postgresql")
def test_in_another_scope_weeks_are_summarized_again(
    orangery: Any, other: BlockingMemoranda, tmp_path: Path
) -> None:
    archive = archived(orangery, tmp_path)
    report = other.archives.import_from(archive, user_id="bob")
    reason = "is not moved to another scope: the weeks of a channel are summarized there again"
    assert {(skipped.kind, skipped.reason) for skipped in report.skipped} == {
        ("weekly summary", reason), ("memory", reason),
    }  # fmt: skip
    (rollup,) = until(lambda: other.memories.list(kinds=["rollup"]).data, "a roll-up")
    assert rollup.id != orangery.kept("rollup")[0].id
    first, second = other.sessions.list(order="asc").data
    assert (rollup.user_id, rollup.channel_id) == ("bob", "orangery")
    assert rollup.source_refs == [first.id, second.id]

    other.archives.import_from(archive, user_id="bob")
    rollups = "SELECT owner, stale, memory_id FROM rollups"
    rows = other.inner.core.store.db.read(lambda c: c.select(rollups))
    assert [tuple(row) for row in rows] == [("bob", 0, rollup.id)]
    other.sessions.delete(first.id)
    assert other.memories.list(kinds=["rollup"]).data == []
    hits = other.memories.search("orangery", mode="keyword", kinds=["session_summary", "rollup"]).results
    assert [hit.memory.session_id for hit in hits] == [second.id]


def test_without_a_channel_there_are_no_weeks(
    orangery: Any, other: BlockingMemoranda, tmp_path: Path
) -> None:
    other.archives.import_from(archived(orangery, tmp_path), scope="user:bob")
    assert len(other.memories.list(kinds=["session_summary"]).data) == 2
    assert other.memories.list(kinds=["rollup"]).data == []
