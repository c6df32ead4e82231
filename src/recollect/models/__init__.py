"""Language models: who answers, chosen by `model.url`."""

from __future__ import annotations

from importlib import import_module

from recollect.config.sections import Model as Settings
from recollect.errors import ConfigError
from recollect.models.base import Model

MODELS = {
    "http": "recollect.models.chat:open_chat",
    "https": "recollect.models.chat:open_chat",
    "scripted": "recollect.models.scripted:open_scripted",
    "extractive": "recollect.models.extractive:open_extractive",
}

__all__ = ["MODELS", "Model", "open_model"]


def open_model(settings: Settings) -> Model:
    """The model that `settings.url` names: `http://HOST/v1` and `https://` for chat completions, `scripted:PATH`,
    `extractive:`, which is also what None means. Nobody is asked before the first answer.

    Raises:
        ConfigError: the scheme is unknown, or a setting is missing or wrong; the message says which.
    """
    scheme = (settings.url or "extractive:").split(":", 1)[0]
    if scheme not in MODELS:
        raise ConfigError("model.url", f"{scheme!r} is unknown; use one of {', '.join(MODELS)}")
    module, name = MODELS[scheme].split(":")
    model: Model = getattr(import_module(module), name)(settings)
    return model
