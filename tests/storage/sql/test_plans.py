"""No statement walks through a tenant's rows where an index leads to the ones it wants."""

from __future__ import annotations

import re
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.clock import now_micros
from memoranda.filters import all_of
from memoranda.storage.sql.sqlite import SqliteConnection, SqliteDatabase
from memoranda.storage.sql.statements import statements
from memoranda.storage.sql.where import compile_where
from memoranda.store import listing
from memoranda.store.access import scopes_filter, selection_filter
from memoranda.types import Selection, Subject

WALKS = {
    "has_embedding",
    "count_memories", "stats_by_kind", "count_embeddings", "add_missing_pending",
    "drop_foreign_spaces", "page_end", "drop_removals", "count_pending", "list_jobs", "drop_ended_jobs", "tenants",
    "spaces", "release_jobs", "add_space", "next_job_at", "count_jobs", "pending_embeddings", "removals_after",
    "unsettled_before", "settle_before",
    "changed_tenants", "newest", "misses_model", "go_on_spending", "unsummarized", "count_unsummarized",
    "sessions_of_users", "has_rows",
    # at most one row, the first after a seq
    "changed_beyond", "salts_of_forgotten",
    # a page
    "hashes_of_files",
    # of knowledge
    "usage_of_files", "count_stores", "count_chunks", "quotas_of", "pending_bytes", "blobs_known", "drop_upload_of",
    "drop_ended_uploads", "idle_stores", "remodel_stores", "all_removing",
    # of what was written after something was read, by an index of these rows alone
    "count_written_after",
    # of switches
    "switched_on_anywhere",
    # of agents
    "count_agents",
    # of the log of questions: what became no memory, row by row
    "count_underived", "underived_queries",
    # of facts
    "idle_facts", "count_live_facts", "live_facts", "tenants_with_facts", "unread_sessions", "facts_after",
}  # fmt: skip
"""Statements whose business is all rows of a tenant, or that read a small table in order: the parts of uploads are
those of pending ones, the uploads those of a day."""
MADE = ("wanted", "chain", "held")
"""How tables are called that a statement makes itself, of what it was given or found."""
WALK = re.compile(r"SEARCH .*\(tenant_id=\?( AND seq[<>]\?)?\)$")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteDatabase]:
    """The tables, without rows."""
    with closing(SqliteDatabase(tmp_path_factory.mktemp("plans"))) as db:
        yield db


def plan_of(db: SqliteDatabase, sql: str, params: Sequence[Any]) -> list[str]:
    """The steps of a statement."""
    return [row[3] for row in db._writer.raw.execute(f"EXPLAIN QUERY PLAN {sql}", params)]


def plan_named(db: SqliteDatabase, name: str) -> list[str]:
    """The steps of a named statement."""
    sql = statements("sqlite")[name]
    numbered = re.findall(r"\?(\d+)", sql)
    count = max(map(int, numbered)) if numbered else sql.count("?")
    return plan_of(db, sql, ["1"] * count)


@pytest.mark.parametrize("name", sorted(set(statements("sqlite")) - WALKS))
def test_plan(name: str, database: SqliteDatabase) -> None:
    walks = [
        step
        for step in plan_named(database, name)
        if (
            step.startswith("SCAN")
            and not step.removeprefix("SCAN ").startswith(MADE)
            and "json_each" not in step
        )
        or WALK.search(step)
    ]
    assert walks == []


@pytest.mark.parametrize(
    ("name", "index"),
    [("items_of_responses", "conversation_items_response"), ("drop_later_summaries", "responses_summary")],
)
def test_deleting_responses_reads_what_goes_with_them_by_an_index(
    name: str, index: str, database: SqliteDatabase
) -> None:
    assert [step for step in plan_named(database, name) if f" USING INDEX {index} (" in step]


@pytest.mark.parametrize("scope", ["session", "user", "agent", "channel"])
def test_a_scope_is_listed_by_its_own_index(scope: str, database: SqliteDatabase) -> None:
    where = all_of(
        scopes_filter([f"{scope}:x"], Subject()), selection_filter(Selection(), Subject(), now_micros())
    )
    compiled = compile_where(where)
    assert compiled.exact
    sql = f"SELECT id FROM memories WHERE tenant_id = ? AND ({compiled.sql}) ORDER BY seq DESC LIMIT 20"
    plan = plan_of(database, sql, ["t", *compiled.params])
    assert plan == [f"SEARCH memories USING INDEX memories_{scope} (tenant_id=? AND {scope}_id=?)"]


def test_rows_are_counted_in_the_order_of_their_table(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Sequence[Any]]] = [(statements("sqlite")["stats_by_kind"], ["t"])]

    def noted(self: SqliteConnection, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        asked.append((sql, params))
        return [(0,) * (3 if "GROUP BY" in sql else 1)]

    where = selection_filter(Selection(), Subject(), now_micros())
    monkeypatch.setattr(SqliteConnection, "select", noted)
    listing.count(database, "t", where)
    listing.seqs(database, "t", where)
    database.read(lambda c: listing.by_kind(c, "t", where))
    assert len(asked) == 4
    for sql, params in asked:
        assert (
            plan_of(database, sql, params)[0] == "SEARCH memories USING PRIMARY KEY (tenant_id=? AND seq>?)"
        )


def test_lists_of_knowledge_are_read_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page by page from an index, nothing sorted, whoever asks."""
    asked: list[tuple[str, Sequence[Any]]] = []
    select = SqliteConnection.select

    def noted(self: SqliteConnection, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        asked.append((sql, params))
        return select(self, sql, params)

    with memoranda.open(tmp_path, embedder={"url": "hash:16"}) as rc:
        monkeypatch.setattr(SqliteConnection, "select", noted)

        def run(work: Coroutine[Any, Any, Any]) -> Any:
            return rc.portal.call(work)

        for subject in (Subject(), Subject(user_id="ann", role="member")):
            knowledge = rc.inner.as_subject(subject).knowledge
            stores = [run(knowledge.stores.create()).id for _ in range(2)]
            files = [run(knowledge.files.upload(b"x", "a.txt")).id for _ in range(2)]
            run(knowledge.stores.attach(stores[0], files))
            asked.clear()
            for order in ("asc", "desc"):
                run(knowledge.files.list(order=order, after=files[0]))
                run(knowledge.stores.list(order=order, before=stores[1]))
                run(knowledge.stores.files(stores[0], order=order, after=files[0]))
                run(knowledge.stores.files(stores[0], order=order, state="failed"))
            assert len(asked) == 8
            for sql, params in asked:
                plan = [row[3] for row in rc.inner.core.store.db.read(
                    lambda c, sql=sql, params=params: select(c, f"EXPLAIN QUERY PLAN {sql}", params)
                )]  # fmt: skip
                assert not any(step.startswith(("SCAN", "USE TEMP")) for step in plan), plan
