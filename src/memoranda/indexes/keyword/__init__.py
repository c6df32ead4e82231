"""Keyword indexes, chosen by URL: one line adds a backend."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from memoranda.errors import ConfigError
from memoranda.indexes.keyword.base import NO_WORDS, WordDoc, WordMatches, Words
from memoranda.storage.sql.base import Database

WORDS = {
    "tantivy": "memoranda.indexes.keyword.tantivy:TantivyWords",
    "fts5": "memoranda.indexes.keyword.fts5:Fts5Words",
    "tsvector": "memoranda.indexes.keyword.tsvector:open_tsvector",
}

__all__ = ["NO_WORDS", "WORDS", "WordDoc", "WordMatches", "Words", "open_words"]


def open_words(url: str, folder: Path | None, database: Database | None = None) -> Words:
    """Open the keyword index that `url` names, in `folder` (None: in memory, lost at close), or beside the rows in
    `database`.

    Raises:
        ConfigError: the scheme is unknown; the message lists the known ones.
    """
    scheme = url.split(":", 1)[0]
    if scheme not in WORDS:
        raise ConfigError("words.url", f"{scheme!r} is unknown; use one of {', '.join(WORDS)}")
    module, name = WORDS[scheme].split(":")
    make = getattr(import_module(module), name)
    words: Words = make(url, database) if scheme == "tsvector" else make(url, folder)
    return words
