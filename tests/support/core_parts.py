"""Parts of the core, which is frozen, replaced for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import force_setattr

from memoranda.store.core import Core


@contextmanager
def replaced(core: Core, **parts: Any) -> Iterator[None]:
    """Let a library use other parts meanwhile."""
    before = {name: getattr(core, name) for name in parts}
    for name, part in parts.items():
        force_setattr(core, name, part)
    try:
        yield
    finally:
        for name, part in before.items():
            force_setattr(core, name, part)
