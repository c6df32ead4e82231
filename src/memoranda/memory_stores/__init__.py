"""Memory stores: an agent's memories as text files at paths, with every version, as in Anthropic's API."""

from __future__ import annotations

import asyncio

from memoranda.memory_stores.removal import CLEAR_JOB, Removal, count_erased
from memoranda.memory_stores.stores import MemoryStores
from memoranda.store.core import Core

__all__ = ["MemoryStores", "begin"]


def begin(core: Core) -> None:
    """Register the job, hooks and eraser; call it before jobs run."""
    removal = Removal(core, asyncio.get_running_loop())
    core.store.cascades.append(removal.gone)
    core.store.edits.append(removal.edited)
    core.jobs.handlers[CLEAR_JOB] = removal.clear
    core.erasers.append(removal.erase)
    core.derived.append(count_erased)
