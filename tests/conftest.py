"""What tests share: a folder that remembers with a model that costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.sync import BlockingMemories, BlockingRecollect

QUICK = {"url": "hash:64"}


@pytest.fixture
def rc(tmp_path: Path) -> Iterator[BlockingRecollect]:
    """A product on a real folder, with the hash embedder."""
    with recollect.open(tmp_path / "data", embedder=QUICK) as opened:
        yield opened


@pytest.fixture
def memories(rc: BlockingRecollect) -> BlockingMemories:
    """The admin's memories in `rc`."""
    return rc.memories
