"""Embeddings from a transformer in an ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import EmbedderUnavailable
from memoranda.providers.embeddings.base import (
    Embedded,
    Span,
    Task,
    ThreadedEmbedder,
    TokenVectors,
    Vectors,
    unit,
)
from memoranda.providers.embeddings.manifest import ModelFolder
from memoranda.providers.embeddings.wordpieces import Wordpieces

Floats = NDArray[np.float32]
BITS = 8


class TokenProjection:
    """A projection of a model's token vectors (hidden) to `dim` dimensions, and the weights of a question's tokens.

    A file of it is an `.npz` with `projection` (hidden, dim) and `weights` (hidden,), as
    `benchmarks/token_projection.py` writes it.
    """

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as stored:
            self._projection: Floats = stored["projection"].astype(np.float32)
            self._weights: Floats = stored["weights"].astype(np.float32)
        self.dim = self._projection.shape[1]

    def codes(self, states: Floats) -> NDArray[np.uint8]:
        """Return the signs of a text's projected token vectors (t, hidden) as bits, (t, dim / 8)."""
        return np.packbits(states @ self._projection > 0, axis=1)

    def weighted(self, states: Floats) -> Floats:
        """Return a question's projected token vectors (t, dim) at length 1, times the weights of the tokens: the
        softmax of <unit state, weights>."""
        units = _units(states)
        logits = units @ self._weights
        weights = np.exp(logits - logits.max())
        projected: Floats = _units(units @ self._projection) * (weights / weights.sum())[:, None]
        return projected


def max_sim(question: Floats, texts: Sequence[bytes]) -> NDArray[np.float64]:
    """Return the token similarity of texts (n,) to a question, in -1..1: the sum over the question's weighted token
    vectors (t, dim) of each one's greatest cosine to a token of the text (Khattab and Zaharia, "ColBERT", 2020).
    `texts` are the bytes of their codes, each of at least one token."""
    if not texts:
        return np.empty(0)
    width = question.shape[1] // BITS
    lengths = np.array([len(text) for text in texts]) // width
    codes = np.frombuffer(b"".join(texts), np.uint8).reshape(-1, width)
    signs = np.unpackbits(codes, axis=1).astype(np.float32)
    signs *= 2.0
    signs -= 1.0
    cosines = signs @ question.T
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    best = np.maximum.reduceat(cosines, starts, axis=0)
    similarities: NDArray[np.float64] = best.sum(axis=1, dtype=np.float64) / np.sqrt(question.shape[1])
    return similarities


def _units(vectors: Floats) -> Floats:
    units: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return units


_T = TypeVar("_T", list[int], Vectors)


class OnnxEmbedder(ThreadedEmbedder):
    """A transformer on the CPU, one text per run of the model.

    One text per run makes a vector depend on its text alone: int8 models scale their activations over the
    whole batch, which moves vectors by up to .005 in cosine. It costs nothing measurable, as there is no padding.
    Parallelism is across texts: each run has one thread.
    """

    slice_chars = 1024

    def __init__(self, folder: ModelFolder, threads: int) -> None:
        super().__init__(threads)
        manifest = folder.manifest
        self.model = manifest.name
        self.max_tokens = manifest.max_tokens
        self.calibration = manifest.calibration
        self.dense_weight = manifest.dense_weight
        self.languages = manifest.languages
        self.prefixes: dict[Task, str] = {"query": manifest.query_prefix, "document": manifest.passage_prefix}
        self.folder = folder
        projection = manifest.token_projection
        self._projection = None if projection is None else TokenProjection(folder.checked(projection))
        self.token_dim = 0 if self._projection is None else self._projection.dim
        self._loading = Lock()
        self.dim = manifest.dim or self._measured_dim()

    def compute(self, texts: Sequence[str], task: Task) -> Embedded:
        vectors = np.empty((len(texts), self.dim), np.float32)
        token_vectors: list[TokenVectors] = []
        tokens = 0
        for row, text in enumerate(texts):
            ids = self._ids(self.prefixes[task] + text)
            states = self._states(ids)
            vectors[row] = unit(self._pooled(states), text)
            if self._projection is not None:
                own = self._without_prefix(states, task)
                made = self._projection.codes(own) if task == "document" else self._projection.weighted(own)
                token_vectors.append(made)
            tokens += len(ids)
        return Embedded(vectors, tokens, token_vectors=token_vectors if self.token_dim else None)

    def token_states(self, text: str, task: Task) -> tuple[list[int], Vectors]:
        """Return the ids of the tokens of a text, and their states in the last layer (t, hidden), without those of the
        prefix: what a projection of token vectors is fitted on."""
        ids = self._ids(self.prefixes[task] + text)
        return self._without_prefix(ids, task), self._without_prefix(self._states(ids), task)

    def split(self, text: str) -> list[Span]:
        prefix = self._wordpieces.head(self.prefixes["document"], self.max_tokens)
        return self._wordpieces.split(text, self._capacity - len(prefix))

    @cached_property
    def _wordpieces(self) -> Wordpieces:
        manifest = self.folder.manifest
        return Wordpieces(self.folder.checked(manifest.tokenizer), manifest.max_tokens)

    @property
    def _capacity(self) -> int:
        """Return how many tokens of a text the model reads."""
        before, after = self._wordpieces.around
        return self.max_tokens - len(before) - len(after)

    @cached_property
    def _prefix_tokens(self) -> dict[Task, int]:
        """The number of tokens of the prefix of a query, and of a passage."""
        heads = {
            task: self._wordpieces.head(text.rstrip(), self.max_tokens)
            for task, text in self.prefixes.items()
        }
        return {task: len(head) for task, head in heads.items()}

    def _ids(self, text: str) -> list[int]:
        before, after = self._wordpieces.around
        return [*before, *self._wordpieces.head(text, self._capacity), *after]

    def _without_prefix(self, tokens: _T, task: Task) -> _T:
        """Return what a text has for each of its tokens, without those of the prefix."""
        begin: int = len(self._wordpieces.around[0])
        end: int = begin + self._prefix_tokens[task]
        if isinstance(tokens, list):
            return [*tokens[:begin], *tokens[end:]]
        return np.concatenate((tokens[:begin], tokens[end:]))

    def _pooled(self, states: Vectors) -> Vectors:
        """Return the vector of a text, from the states of its tokens (t, hidden) or as the model gives it."""
        if states.ndim == 1:
            return states
        pooled: Vectors = states[0] if self.folder.manifest.pooling == "cls" else states.mean(axis=0)
        return pooled

    def _states(self, ids: list[int]) -> Vectors:
        """Return what the model gives for these tokens."""
        row = np.array([ids], np.int64)
        inputs = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        session, names, output = self._loaded()
        try:
            states: Vectors = session.run([output], {name: inputs[name] for name in names})[0][0]
        except Exception as exc:  # onnxruntime's errors share no base but Exception
            raise EmbedderUnavailable(f"the model {self.model} did not answer: {exc}") from exc
        return states

    def _loaded(self) -> tuple[Any, list[str], str]:
        with self._loading:
            return self._session

    @cached_property
    def _session(self) -> tuple[Any, list[str], str]:
        """Return the model, the names of its inputs, and the name of the output to read."""
        session = load(self.folder.checked(self.folder.manifest.weights))
        return session, [given.name for given in session.get_inputs()], session.get_outputs()[0].name

    def _measured_dim(self) -> int:
        return len(self._pooled(self._states(self._ids("a"))))


def load(weights: Path) -> Any:
    """Return the model in a file, which any thread may run."""
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # onnxruntime's errors share no base but Exception
        raise EmbedderUnavailable(f"the model {weights} cannot be loaded: {exc}") from exc
