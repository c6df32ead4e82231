"""Embeddings by looking up a vector per token and taking the mean: a tenth of a millisecond per text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.errors import ConfigError
from memoranda.providers.embeddings.base import Embedded, Span, Task, ThreadedEmbedder, Vectors, unit
from memoranda.providers.embeddings.manifest import ModelFolder
from memoranda.providers.embeddings.wordpieces import Wordpieces

_DTYPES: dict[str, str] = {"F32": "<f4", "F16": "<f2"}


class Table(msgspec.Struct, frozen=True):
    """A vector per token: `rows` (vocabulary, dim) in any number type, mapped from its file, times `scales`
    (vocabulary,) where there are any."""

    rows: NDArray[np.float32 | np.float16 | np.int8]
    scales: NDArray[np.float32] | None

    def mean(self, ids: list[int]) -> Vectors:
        """The mean vector (dim,) of these tokens; zero when there are none."""
        if not ids:
            return np.zeros(self.rows.shape[1], np.float32)
        rows = self.rows[ids].astype(np.float32)
        weights = np.ones(len(ids), np.float32) if self.scales is None else self.scales[ids]
        mean: Vectors = weights @ rows / np.float32(len(ids))
        return mean


class StaticEmbedder(ThreadedEmbedder):
    """A table of token vectors. A text without a known token has a direction of its own."""

    slice_chars = 65_536

    def __init__(self, folder: ModelFolder, threads: int) -> None:
        super().__init__(threads)
        manifest = folder.manifest
        self.model = manifest.name
        self.max_tokens = manifest.max_tokens
        self.calibration = manifest.calibration
        self.dense_weight = manifest.dense_weight
        self.languages = manifest.languages
        self.folder = folder
        self._loading = Lock()
        self.dim = manifest.dim or self._loaded().rows.shape[1]

    def compute(self, texts: Sequence[str], task: Task) -> Embedded:
        table, unknown = self._loaded(), self._wordpieces.unknown
        vectors = np.empty((len(texts), self.dim), np.float32)
        tokens = 0
        for row, text in enumerate(texts):
            ids = self._wordpieces.head(text, self.max_tokens)
            vectors[row] = unit(table.mean([i for i in ids if i != unknown]), text)
            tokens += len(ids)
        return Embedded(vectors, tokens)

    def split(self, text: str) -> list[Span]:
        return self._wordpieces.split(text, self.max_tokens)

    @cached_property
    def _wordpieces(self) -> Wordpieces:
        manifest = self.folder.manifest
        return Wordpieces(self.folder.checked(manifest.tokenizer), manifest.max_tokens)

    def _loaded(self) -> Table:
        with self._loading:
            return self._table

    @cached_property
    def _table(self) -> Table:
        manifest = self.folder.manifest
        weights = self.folder.checked(manifest.weights)
        if weights.suffix == ".safetensors":
            return Table(read_safetensors(weights), None)
        scales = np.load(self.folder.checked(manifest.scales)) if manifest.scales else None
        return Table(np.load(weights, mmap_mode="r").view(np.ndarray), scales)


def read_safetensors(path: Path) -> NDArray[np.float32 | np.float16]:
    """The one matrix of a safetensors file, mapped and not read.

    The format: 8 bytes with the header's length N, little-endian; N bytes of JSON; the numbers.

    Raises:
        ConfigError: the file holds anything but one matrix of 32 or 16-bit floats.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = file.read(size)
    try:
        tensors = msgspec.json.decode(header, type=dict[str, dict[str, Any]])
    except msgspec.DecodeError as exc:
        raise ConfigError("embedder.url", f"{path} is not a safetensors file: {exc}") from exc
    tensors.pop("__metadata__", None)
    matrices = [tensor for tensor in tensors.values() if len(tensor["shape"]) == 2]
    if len(tensors) != 1 or not matrices or matrices[0]["dtype"] not in _DTYPES:
        raise ConfigError("embedder.url", f"{path} must hold one F32 or F16 matrix, not {', '.join(tensors)}")
    (only,) = matrices
    begin = 8 + size + int(only["data_offsets"][0])
    mapped: NDArray[Any] = np.memmap(path, _DTYPES[only["dtype"]], "r", begin, tuple(only["shape"]))
    return mapped.view(np.ndarray)
