"""What tests share: a folder that remembers with a model that costs nothing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.sync import BlockingMemories, BlockingRecollect

QUICK = {"url": "hash:64"}

_spec = importlib.util.spec_from_file_location(
    "recollect_tests_postgres", Path(__file__).parent / "postgres.py"
)
assert _spec is not None and _spec.loader is not None
postgres = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = postgres
_spec.loader.exec_module(postgres)


@pytest.fixture
def postgres_url() -> str:
    """A real PostgreSQL with pgvector: a schema of its own, owned by a role that row security binds."""
    return str(postgres.fresh_url())


@pytest.fixture
def rc(tmp_path: Path) -> Iterator[BlockingRecollect]:
    """A product on a real folder, with the hash embedder."""
    with recollect.open(tmp_path / "data", embedder=QUICK) as opened:
        yield opened


@pytest.fixture
def memories(rc: BlockingRecollect) -> BlockingMemories:
    """The admin's memories in `rc`."""
    return rc.memories
