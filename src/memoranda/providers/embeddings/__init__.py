"""Embedders, chosen by URL: one line adds a provider."""

from __future__ import annotations

from importlib import import_module

import msgspec

from memoranda.config.data_sections import Embedder as Settings
from memoranda.errors import ConfigError
from memoranda.providers.embeddings.base import Calibration, Embedded, Embedder, Span, Task
from memoranda.providers.embeddings.cache import CachedEmbedder

EMBEDDERS = {
    "local": "memoranda.providers.embeddings.local:open_local",
    "hash": "memoranda.providers.embeddings.hash:open_hash",
    "openai": "memoranda.providers.embeddings.openai:open_openai",
    "gemini": "memoranda.providers.embeddings.gemini:open_gemini",
    "ollama": "memoranda.providers.embeddings.ollama:open_ollama",
    "auto": "memoranda.providers.embeddings.local:open_auto",
}
DEFAULT_EMBEDDER = "local:arctic-embed-s"

__all__ = [
    "DEFAULT_EMBEDDER",
    "EMBEDDERS",
    "CachedEmbedder",
    "Calibration",
    "Embedded",
    "Embedder",
    "Span",
    "Task",
    "open_embedder",
]


def open_embedder(
    url: str, *, threads: int = 1, cache_size: int = 1000, settings: Settings | None = None
) -> CachedEmbedder:
    """Open the embedder that `url` names: `local:arctic-embed-s`, `local:/folder`, `hash:256`, `openai:MODEL`,
    `gemini:MODEL`, `ollama:MODEL`, the last three with settings of their own, as in `ollama:x?dimension=768`. `auto` is
    the default one; which model it stands for in a store depends on the texts there.

    `threads` is how many texts a model in this process embeds at once. `cache_size` is how many queries are cached
    with their vectors; 0 caches none. `settings` are those of a provider: its address, key, limits. No large file is
    read, and no provider is contacted, before the first text.

    Raises:
        ConfigError: the scheme or the model is unknown, and the message lists the known ones; a file of the
            model is missing or has the wrong size; or a provider's setting is wrong or missing.
    """
    scheme = url.split(":", 1)[0]
    if scheme not in EMBEDDERS:
        raise ConfigError("embedder.url", f"{scheme!r} is unknown; use one of {', '.join(EMBEDDERS)}")
    if threads < 1:
        raise ConfigError("embedder.threads", f"is {threads}; use 1 or more")
    module, name = EMBEDDERS[scheme].split(":")
    given = msgspec.structs.replace(settings or Settings(), url=url, threads=threads)
    embedder: Embedder = getattr(import_module(module), name)(url, given)
    return CachedEmbedder(embedder, cache_size)
