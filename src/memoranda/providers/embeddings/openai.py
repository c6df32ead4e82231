"""OpenAI, and every server that answers `/embeddings` as it does.

Reference: https://platform.openai.com/docs/api-reference/embeddings/create
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memoranda.config.data_sections import Embedder as Settings
from memoranda.errors import ConfigError
from memoranda.providers.embeddings.base import Task
from memoranda.providers.embeddings.http import Refused, Unusable
from memoranda.providers.embeddings.remote import Answer, RemoteEmbedder, addressed


class OpenAIEmbedder(RemoteEmbedder):
    """Vectors are requested as base64 of float32, a third of the bytes of decimals. A server may ignore that; one that
    refuses it is asked for decimals from then on."""

    provider = "OpenAI"
    home = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    key_needed = True
    batch_size = 128
    batch_tokens = 250_000
    """The reference allows 300 000 tokens in one request."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.manner = "base64"
        if settings.base_url:
            self.provider = "the OpenAI-compatible server"
            self.batch_size = (
                16  # a server of one's own computes in turn: a question waits for what is under way
            )
        elif not name:
            raise ConfigError("embedder.url", "names no model, as in 'openai:text-embedding-3-small'")
        super().__init__(name, settings)

    def path(self, task: Task) -> str:
        return "/embeddings"

    def body(self, texts: Sequence[str], task: Task) -> Mapping[str, Any]:
        body: dict[str, Any] = {"input": texts, "encoding_format": self.manner}
        if self.name:
            body["model"] = self.name
        if self.shortened:
            body["dimensions"] = self.dim
        return body

    def adapts(self, refused: Refused, manner: str) -> bool:
        reason = refused.reason.lower()
        if manner == "float" or not ("base64" in reason or "encoding_format" in reason):
            return False
        self.manner = "float"
        return True

    def read(self, document: dict[str, Any], count: int) -> Answer:
        data = document.get("data")
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise Unusable(
                "answered without a list `data`; check embedder.base_url, which usually ends in /v1"
            )
        usage = document.get("usage")
        read = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        model = document.get("model")
        return Answer(
            [_vector(item.get("embedding")) for item in _ordered(data)],
            read if isinstance(read, int) else None,
            model if isinstance(model, str) else None,
        )


def _ordered(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items in the order of their texts: by `index`, or unchanged if none has one."""
    places = [item.get("index") for item in data]
    if all(place is None for place in places):
        return data
    by_place = {place: item for place, item in zip(places, data, strict=True) if isinstance(place, int)}
    if sorted(by_place) != list(range(len(data))):
        raise Unusable(
            "answered with an `index` that is missing, there twice, or out of range; nothing of it is used"
        )
    return [by_place[place] for place in range(len(data))]


def _vector(values: Any) -> Any:
    if not isinstance(values, str):
        return values
    try:
        return np.frombuffer(base64.b64decode(values, validate=True), "<f4")
    except (binascii.Error, ValueError) as exc:
        raise Unusable("answered a vector that is not base64 of float32; check embedder.base_url") from exc


def open_openai(url: str, settings: Settings) -> OpenAIEmbedder:
    """Open the model that `openai:MODEL` names, at `embedder.base_url` or at OpenAI.

    Raises:
        ConfigError: the model's dimension is not known, a setting is wrong, or OpenAI's key is missing.
    """
    return OpenAIEmbedder(*addressed(url, settings))
