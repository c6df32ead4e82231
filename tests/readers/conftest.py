"""Documents made of their parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.zip_members import Zipped, zipped_in


@pytest.fixture
def zipped(tmp_path: Path) -> Zipped:
    """Writes members into a zip file."""
    return zipped_in(tmp_path)
