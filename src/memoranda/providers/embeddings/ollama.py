"""Ollama's own endpoint for batches.

Reference: https://docs.ollama.com/api/embed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.config.data_sections import Embedder as Settings
from memoranda.errors import ConfigError
from memoranda.providers.embeddings.base import Task
from memoranda.providers.embeddings.http import Unusable
from memoranda.providers.embeddings.remote import Answer, RemoteEmbedder, addressed


class OllamaEmbedder(RemoteEmbedder):
    """Requests disable truncation by Ollama, so that a text that is too long is cut here, logged and counted."""

    provider = "Ollama"
    home = "http://127.0.0.1:11434"
    batch_size = 16

    def path(self, task: Task) -> str:
        return "/api/embed"

    def body(self, texts: Sequence[str], task: Task) -> Mapping[str, Any]:
        body: dict[str, Any] = {"model": self.name, "input": texts, "truncate": False}
        if self.shortened:
            body["dimensions"] = self.dim
        return body

    def fixes(self) -> Mapping[int, str]:
        return {404: f"run `ollama pull {self.name}` there, or check embedder.url and embedder.base_url"}

    def read(self, document: dict[str, Any], count: int) -> Answer:
        vectors = document.get("embeddings")
        if not isinstance(vectors, list):
            raise Unusable("answered without a list `embeddings`; check embedder.base_url")
        read, model = document.get("prompt_eval_count"), document.get("model")
        return Answer(
            vectors,
            read if isinstance(read, int) else None,
            model if isinstance(model, str) else None,
        )


def open_ollama(url: str, settings: Settings) -> OllamaEmbedder:
    """Open the model that `ollama:MODEL` names, at `embedder.base_url` or on this machine.

    Raises:
        ConfigError: no model is named, its dimension is not known, or a setting is wrong.
    """
    name, settings = addressed(url, settings)
    if not name:
        raise ConfigError("embedder.url", f"{url!r} names no model, as in 'ollama:nomic-embed-text'")
    return OllamaEmbedder(name, settings)
