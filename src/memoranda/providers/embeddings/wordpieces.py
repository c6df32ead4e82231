"""A model's tokenizer, loaded on first use."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import EmbedderUnavailable
from memoranda.providers.embeddings.base import Span, windows
from memoranda.text.tokens import well_formed

SPARE = 8
"""Tokens that a window stays below the limit, since a cut inside a word may add tokens."""
CHARS_PER_TOKEN = 16
"""Characters read per token wanted, at first; English has 4 to 5."""


class Wordpieces:
    """Texts to a model's token ids. `max_tokens` counts the tokens that the model puts around a text."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        self._path = path
        self._max_tokens = max_tokens

    @cached_property
    def _tokenizer(self) -> Any:
        return load(self._path)

    @cached_property
    def around(self) -> tuple[list[int], list[int]]:
        """The ids that the model expects before and after a text."""
        inner = self._tokenizer.encode("a", add_special_tokens=False).ids
        full: list[int] = self._tokenizer.encode("a").ids
        at = next(i for i in range(len(full)) if full[i : i + len(inner)] == inner)
        return full[:at], full[at + len(inner) :]

    @cached_property
    def unknown(self) -> int | None:
        """The id of the unknown token."""
        unknown: int | None
        if (token := getattr(self._tokenizer.model, "unk_token", None)) is not None:
            unknown = self._tokenizer.token_to_id(token)
        else:  # a Unigram model has it in its file alone
            unknown = json.loads(self._path.read_bytes())["model"].get("unk_id")
        return unknown

    def head(self, text: str, limit: int) -> list[int]:
        """Return the first `limit` ids of the text alone, without tokenizing much more of it."""
        chars = limit * CHARS_PER_TOKEN
        while True:
            ids: list[int] = self._tokenizer.encode(well_formed(text[:chars]), add_special_tokens=False).ids
            if len(ids) > limit or chars >= len(text):
                return ids[:limit]
            chars *= 4

    def split(self, text: str, limit: int) -> list[Span]:
        """Windows of the text that have at most `limit` tokens, a tenth of them shared with the next."""
        if len(text) < limit and text.isascii():  # XLM-R's has a token more, for the space before a text
            return [Span(0, len(text))]
        encoding = self._tokenizer.encode(well_formed(text), add_special_tokens=False)
        if len(encoding) <= limit:
            return [Span(0, len(text))]
        starts: NDArray[np.int64] = np.array(encoding.offsets, np.int64)[:, 0]
        return windows(text, np.maximum.accumulate(starts), limit - SPARE, limit // 10)


def load(path: Path) -> Any:
    """Return the tokenizer in a file, which cuts and pads nothing."""
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(path))
    except Exception as exc:  # tokenizers raises bare Exception
        raise EmbedderUnavailable(f"the tokenizer {path} cannot be loaded: {exc}") from exc
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
