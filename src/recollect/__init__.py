"""Recollect: memory and knowledge for AI agents, in one folder and no network.

`open` gives blocking callers a folder to remember in; `Recollect.open` the same for coroutines.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.agent.values import Response, ResponseRequest
    from recollect.config import Config
    from recollect.knowledge.values import NewStoreFile, Passage, PassageQuery
    from recollect.recollect import Recollect
    from recollect.sync import open
    from recollect.text.splitting import Chunking
    from recollect.types import Hit, Memory, NewMemory, Query, SearchResult, Subject

__all__ = [
    "Chunking", "Config", "Hit", "Memory", "NewMemory", "NewStoreFile", "Passage", "PassageQuery", "Query", "Recollect",
    "Response", "ResponseRequest", "SearchResult", "Subject", "open",
]  # fmt: skip

_PLACES = {
    "Chunking": "recollect.text.splitting",
    "Config": "recollect.config",
    "NewStoreFile": "recollect.knowledge.values",
    "Passage": "recollect.knowledge.values",
    "PassageQuery": "recollect.knowledge.values",
    "Recollect": "recollect.recollect",
    "Response": "recollect.agent.values",
    "ResponseRequest": "recollect.agent.values",
    "open": "recollect.sync",
}


def __getattr__(name: str) -> Any:
    # The library takes a third of a second to import, which `recollect --help` need not spend.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_PLACES.get(name, "recollect.types")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
