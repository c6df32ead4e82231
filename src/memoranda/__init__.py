"""Memoranda: memory and knowledge for AI agents, in one folder and no network.

`open` gives blocking callers a folder to remember in; `Memoranda.open` the same for coroutines.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoranda.app.blocking.memoranda import open
    from memoranda.app.memoranda import Memoranda
    from memoranda.client.client import AsyncClient, Client, connect
    from memoranda.config import Config
    from memoranda.knowledge.values import NewStoreFile, Passage, PassageQuery
    from memoranda.responses.values import Response, ResponseRequest
    from memoranda.text.splitting import Chunking
    from memoranda.types import Hit, Memory, NewMemory, Query, SearchResult, Subject

__all__ = [
    "AsyncClient", "Chunking", "Client", "Config", "Hit", "Memoranda", "Memory", "NewMemory", "NewStoreFile", "Passage",
    "PassageQuery", "Query", "Response", "ResponseRequest", "SearchResult", "Subject", "connect", "open",
]  # fmt: skip

_PLACES = {
    "AsyncClient": "memoranda.client.client",
    "Chunking": "memoranda.text.splitting",
    "Client": "memoranda.client.client",
    "Config": "memoranda.config",
    "NewStoreFile": "memoranda.knowledge.values",
    "Passage": "memoranda.knowledge.values",
    "PassageQuery": "memoranda.knowledge.values",
    "Memoranda": "memoranda.app.memoranda",
    "Response": "memoranda.responses.values",
    "ResponseRequest": "memoranda.responses.values",
    "connect": "memoranda.client.client",
    "open": "memoranda.app.blocking.memoranda",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":  # read once: metadata of packages are files
        from importlib.metadata import version  # loads much that a reader's process does not need

        return globals().setdefault(name, version("memoranda"))
    # The library takes a third of a second to import, which `memoranda --help` need not spend.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_PLACES.get(name, "memoranda.types")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
