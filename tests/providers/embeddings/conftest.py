"""The providers' servers, one for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.embedding_providers import Provider


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider that answers by the references and fails on demand."""
    served = Provider()
    yield served
    served.close()
