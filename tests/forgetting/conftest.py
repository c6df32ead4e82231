"""What the tests of this folder share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

NAME = "memoranda_tests_places"
if NAME not in sys.modules:
    spec = importlib.util.spec_from_file_location(NAME, Path(__file__).parent / "places.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
