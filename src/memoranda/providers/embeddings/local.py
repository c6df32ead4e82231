"""Models that run in this process: shipped, installed, or in a folder of the user's own."""

from __future__ import annotations

from pathlib import Path

from memoranda.config.data_sections import Embedder as Settings
from memoranda.errors import ConfigError
from memoranda.providers.embeddings.base import ThreadedEmbedder
from memoranda.providers.embeddings.manifest import MANIFEST, open_folder
from memoranda.providers.embeddings.onnx import OnnxEmbedder
from memoranda.providers.embeddings.static import StaticEmbedder

MODELS = Path(__file__).parent / "models"


def known_models() -> list[str]:
    """Return the names of known local models, including those whose package is not installed."""
    return sorted(path.parent.name for path in MODELS.glob(f"*/{MANIFEST}"))


def open_auto(url: str, settings: Settings) -> ThreadedEmbedder:
    """Open the model that `auto` begins with; a store knows what it uses by now."""
    if url != "auto":
        raise ConfigError("embedder.url", f"{url!r}: `auto` takes nothing; to pin a model write local:NAME")
    return open_local("local:arctic-embed-s", settings)


def open_local(url: str, settings: Settings) -> ThreadedEmbedder:
    """Open the model that `local:NAME` or `local:/path/to/folder` names.

    Raises:
        ConfigError: there is no such model, and the message lists the known ones; or a file is missing.
    """
    name = url.partition(":")[2]
    if name in known_models():
        folder = open_folder(MODELS / name)
    elif name and Path(name).expanduser().is_dir():
        folder = open_folder(Path(name).expanduser())
    else:
        raise ConfigError(
            "embedder.url",
            f"{url!r} names no model; use one of {', '.join(f'local:{known}' for known in known_models())},"
            " or local:/folder with model.onnx or model.safetensors and tokenizer.json",
        )
    kind = OnnxEmbedder if folder.manifest.kind == "onnx" else StaticEmbedder
    return kind(folder, settings.threads)
