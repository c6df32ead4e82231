"""`/v1/embeddings` in OpenAI's shape, answered by the configured embedder."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from memoranda.errors import DimensionMismatch, InvalidInput
from memoranda.server import wire
from memoranda.server.models import named
from memoranda.server.route import Call, Route
from memoranda.text import tokens

TOKENS = "cl100k_base"
"""The encoding of OpenAI clients that send tokens instead of text."""


async def create(call: Call[wire.EmbeddingsBody, None]) -> wire.EmbeddingList:
    body, embedder = call.body, call.state.memoranda.core.embedder
    model = named(call.state.memoranda, body.model or embedder.model)
    if body.dimensions is not None and body.dimensions != embedder.dim:
        raise DimensionMismatch(
            "dimensions", f"is {body.dimensions}; {model.id} has {embedder.dim} and cannot be shortened"
        )
    texts = await call.state.memoranda.core.threads.run(_texts, body.input)
    try:
        embedded = await call.workspace.memories.embed(texts, body.input_type)
    except InvalidInput as exc:
        says = str(exc).removeprefix(f"{exc.field}: ")
        raise InvalidInput(exc.field.replace("texts", "input", 1), says) from exc
    vectors = np.ascontiguousarray(embedded.vectors, dtype="<f4")
    if body.encoding_format == "base64":
        shown: Sequence[list[float] | str] = [
            base64.b64encode(row.tobytes()).decode("ascii") for row in vectors
        ]
    else:
        shown = vectors.tolist()
    return wire.EmbeddingList(
        data=[wire.EmbeddingObject(index=i, embedding=vector) for i, vector in enumerate(shown)],
        model=model.id,
        usage=wire.Usage(prompt_tokens=embedded.tokens, total_tokens=embedded.tokens),
    )


def _texts(given: str | list[str | int | list[int]]) -> list[str]:
    """The inputs to embed, as texts."""
    items = [given] if isinstance(given, str) or _tokens(given) else given
    return [
        item if isinstance(item, str) else _decoded(item, f"input[{i}]" if len(items) > 1 else "input")
        for i, item in enumerate(items)
    ]


def _tokens(given: object) -> bool:
    return isinstance(given, list) and bool(given) and all(isinstance(item, int) for item in given)


def _decoded(item: object, where: str) -> str:
    if not isinstance(item, list) or not _tokens(item):
        raise InvalidInput(where, "mixes texts and tokens; send strings, or lists of token ids")
    return tokens.decode(item, TOKENS, where)


ROUTES = (
    Route("POST", "/v1/embeddings", "Embed texts", create, "read", wire.EmbeddingList, wire.EmbeddingsBody),
)
