"""Language models, chosen by `model.url`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from memoranda.config.agent_sections import Model as Settings
from memoranda.errors import ConfigError
from memoranda.providers.chat.base import Model
from memoranda.providers.embeddings.base import Embedder

QUOTING = "extractive"
MODELS = {
    "http": "memoranda.providers.chat.completions:open_chat",
    "https": "memoranda.providers.chat.completions:open_chat",
    "scripted": "memoranda.providers.chat.scripted:open_scripted",
    QUOTING: "memoranda.providers.chat.extractive:open_extractive",
}

__all__ = ["MODELS", "Model", "open_model"]


def open_model(settings: Settings, embedder: Callable[[], Embedder] | None = None) -> Model:
    """Open the model that `settings.url` names: `http://HOST/v1` and `https://` for chat completions, `scripted:PATH`,
    `extractive:`, which is also the default and compares sentences by the embedding model that `embedder` returns. No
    server is contacted before the first answer.

    Raises:
        ConfigError: the scheme is unknown, or a setting is missing or wrong; the message says which.
    """
    scheme = (settings.url or f"{QUOTING}:").split(":", 1)[0]
    if scheme not in MODELS:
        raise ConfigError("model.url", f"{scheme!r} is unknown; use one of {', '.join(MODELS)}")
    module, name = MODELS[scheme].split(":")
    opened: Callable[..., Model] = getattr(import_module(module), name)
    return opened(settings, embedder) if scheme == QUOTING else opened(settings)
