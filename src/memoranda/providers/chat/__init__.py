"""Language models, chosen by `model.url`."""

from __future__ import annotations

from importlib import import_module

from memoranda.config.sections import Model as Settings
from memoranda.errors import ConfigError
from memoranda.providers.chat.base import Model

MODELS = {
    "http": "memoranda.providers.chat.completions:open_chat",
    "https": "memoranda.providers.chat.completions:open_chat",
    "scripted": "memoranda.providers.chat.scripted:open_scripted",
    "extractive": "memoranda.providers.chat.extractive:open_extractive",
}

__all__ = ["MODELS", "Model", "open_model"]


def open_model(settings: Settings) -> Model:
    """Open the model that `settings.url` names: `http://HOST/v1` and `https://` for chat completions, `scripted:PATH`,
    `extractive:`, which is also the default. No server is contacted before the first answer.

    Raises:
        ConfigError: the scheme is unknown, or a setting is missing or wrong; the message says which.
    """
    scheme = (settings.url or "extractive:").split(":", 1)[0]
    if scheme not in MODELS:
        raise ConfigError("model.url", f"{scheme!r} is unknown; use one of {', '.join(MODELS)}")
    module, name = MODELS[scheme].split(":")
    model: Model = getattr(import_module(module), name)(settings)
    return model
