"""Recollect: memory and knowledge for AI agents, in one folder and no network.

`open` gives blocking callers a folder to remember in; `Recollect.open` the same for coroutines.
"""

from recollect.config import Config
from recollect.recollect import Recollect
from recollect.sync import open
from recollect.types import Hit, Memory, NewMemory, Query, SearchResult, Subject

__all__ = ["Config", "Hit", "Memory", "NewMemory", "Query", "Recollect", "SearchResult", "Subject", "open"]
