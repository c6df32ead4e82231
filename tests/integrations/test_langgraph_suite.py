"""LangGraph's own tests of its SQLite stores, with `MemorandaStore` in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import published_suites

PACKAGE = "langgraph-checkpoint-sqlite==3.1.2"
FILES = ("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py")
LEFT_OUT = {
    "test_vector_store_initialization": "reads the tables of SQLite",
    "test_nonnull_migrations": "reads the migrations of SqliteStore",
    "test_escape_glob_literal": "tests a private function",
    "test_namespace_match_pattern": "tests a private function",
    "test_list_namespaces_prefix_uses_indexable_condition": "reads the SQL of SqliteStore",
    "test_sql_injection_vulnerability": "refuses keys of filters that would be SQL; here a key never is",
}
"""Tests of `tests/test_store.py` that are about SQLite, and why."""


@pytest.mark.slow
def test_the_suite_of_langgraph(tmp_path: Path) -> None:
    folder = published_suites.source_of(PACKAGE, tmp_path)
    names = [f"{FILES[0]}::{name}" for name in LEFT_OUT]
    ran = published_suites.run(folder, FILES, "langgraph.store.sqlite", "support.langgraph_sqlite", names)
    assert (ran.counts.get("passed"), ran.counts.get("failed")) == (146, None), ran.printed
