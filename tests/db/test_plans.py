"""No statement walks through a tenant's rows where an index leads to the ones it wants."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recollect.db.sqlite import SqliteDatabase
from recollect.db.statements import statements
from recollect.db.where import compile_where
from recollect.filters import all_of
from recollect.rows import now_micros
from recollect.types import Selection, Subject
from recollect.visibility import scopes_filter, selection_filter

WALKS = {
    "count_memories", "stats_by_kind", "count_embeddings", "owe_missing", "owe_all", "drop_foreign_spaces",
    "drop_removals", "count_owed", "list_jobs", "drop_ended_jobs", "tenants", "spaces", "release_jobs",
    "add_space", "next_job_at", "count_jobs", "owed_embeddings", "removals_after", "unsettled_before", "settle_before",
    "changed_tenants", "newest", "misses_model",
}  # fmt: skip
"""Statements whose business is all rows of a tenant, or that read a small table in order."""


@pytest.mark.parametrize("name", sorted(set(statements("sqlite")) - WALKS))
def test_plan(name: str, tmp_path: Path) -> None:
    db = SqliteDatabase(tmp_path)
    sql = statements("sqlite")[name]
    numbered = re.findall(r"\?(\d+)", sql)
    count = max(map(int, numbered)) if numbered else sql.count("?")
    plan = [row[3] for row in db._writer.raw.execute(f"EXPLAIN QUERY PLAN {sql}", ["1"] * count)]
    db.close()
    walks = [
        step
        for step in plan
        if (step.startswith("SCAN") and "json_each" not in step and "wanted" not in step)
        or re.search(r"SEARCH (memories|embeddings|m|e)\b.*\(tenant_id=\?\)$", step)
    ]
    assert walks == []


@pytest.mark.parametrize("scope", ["session", "user", "agent", "channel"])
def test_a_scope_is_listed_by_its_own_index(scope: str, tmp_path: Path) -> None:
    where = all_of(
        scopes_filter([f"{scope}:x"], Subject()), selection_filter(Selection(), Subject(), now_micros())
    )
    compiled = compile_where(where)
    assert compiled.exact
    sql = f"SELECT id FROM memories WHERE tenant_id = ? AND ({compiled.sql}) ORDER BY seq DESC LIMIT 20"
    db = SqliteDatabase(tmp_path)
    plan = [row[3] for row in db._writer.raw.execute(f"EXPLAIN QUERY PLAN {sql}", ["t", *compiled.params])]
    db.close()
    assert plan == [f"SEARCH memories USING INDEX memories_{scope} (tenant_id=? AND {scope}_id=?)"]
