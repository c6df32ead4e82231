"""Servers of models, for the tests of this folder: `server` plays scripts, `raw` sends bytes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

for name in ("server", "raw"):
    full = f"memoranda_tests_model_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).parent / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
