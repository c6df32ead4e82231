"""Google's embedding models, at the Gemini API or on Vertex AI.

References: https://ai.google.dev/api/embeddings and
https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memoranda.config.data_sections import Embedder as Settings
from memoranda.errors import ConfigError
from memoranda.providers.embeddings.base import Task
from memoranda.providers.embeddings.http import Unusable
from memoranda.providers.embeddings.remote import Answer, RemoteEmbedder, addressed

TASKS: dict[Task, str] = {"query": "RETRIEVAL_QUERY", "document": "RETRIEVAL_DOCUMENT"}
LOCATION = "us-central1"


class GeminiEmbedder(RemoteEmbedder):
    """The Gemini API. The task is a field of the request before the second generation of models, then part of the
    text."""

    provider = "Gemini"
    home = "https://generativelanguage.googleapis.com/v1beta"
    key_variable = "GEMINI_API_KEY"
    key_needed = True
    batch_size = 100
    """The most that one request may hold."""

    def headers(self) -> Mapping[str, str]:
        key = self.secret.now()
        return {"x-goog-api-key": key} if key else {}

    @property
    def sends_task(self) -> bool:
        return not self.name.startswith("gemini-embedding-2")

    def path(self, task: Task) -> str:
        return f"/models/{self.name}:batchEmbedContents"

    def body(self, texts: Sequence[str], task: Task) -> Mapping[str, Any]:
        rest: dict[str, Any] = {"taskType": TASKS[task]} if self.sends_task else {}
        if self.shortened:
            rest["outputDimensionality"] = self.dim
        model = f"models/{self.name}"
        return {
            "requests": [{"model": model, "content": {"parts": [{"text": text}]}, **rest} for text in texts]
        }

    def read(self, document: dict[str, Any], count: int) -> Answer:
        vectors = [_values(item) for item in _items(document, "embeddings")]
        return Answer(vectors, _prompt_tokens(document))


class VertexEmbedder(RemoteEmbedder):
    """Vertex AI, with an access token as the key. It takes the `gemini-` models one text at a time."""

    provider = "Vertex AI"
    key_variable = "GOOGLE_OAUTH_ACCESS_TOKEN"
    key_needed = True
    batch_tokens = 20_000
    """The most that one request may hold."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.location = settings.location or LOCATION
        region = "" if self.location == "global" else f"{self.location}-"
        self.home = f"https://{region}aiplatform.googleapis.com/v1"
        self.single = name.startswith("gemini-embedding-2")
        if name.startswith("gemini-"):
            settings = msgspec.structs.replace(settings, batch_size=1)
        super().__init__(name, settings)

    def path(self, task: Task) -> str:
        project = f"/projects/{self.settings.project_id}/locations/{self.location}"
        verb = "embedContent" if self.single else "predict"
        return f"{project}/publishers/google/models/{self.name}:{verb}"

    def body(self, texts: Sequence[str], task: Task) -> Mapping[str, Any]:
        rest: dict[str, Any] = {"outputDimensionality": self.dim} if self.shortened else {}
        if self.single:
            return {"content": {"parts": [{"text": texts[0]}]}, "autoTruncate": False, **rest}
        instances = [{"content": text, "task_type": TASKS[task]} for text in texts]
        return {"instances": instances, "parameters": {"autoTruncate": False, **rest}}

    def read(self, document: dict[str, Any], count: int) -> Answer:
        if self.single:
            return Answer([_values(document.get("embedding"))], _prompt_tokens(document))
        embedded = [item.get("embeddings") for item in _items(document, "predictions")]
        counts = [
            item.get("statistics", {}).get("token_count") for item in embedded if isinstance(item, dict)
        ]
        known = [int(each) for each in counts if isinstance(each, int | float)]
        return Answer(
            [_values(item) for item in embedded], sum(known) if len(known) == len(embedded) else None
        )


def _items(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = document.get(name)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Unusable(f"answered without a list `{name}`; check embedder.base_url")
    return items


def _values(item: Any) -> Any:
    if not isinstance(item, dict) or not isinstance(item.get("values"), list):
        raise Unusable("answered a vector without `values`; check embedder.base_url")
    return item["values"]


def _prompt_tokens(document: dict[str, Any]) -> int | None:
    usage = document.get("usageMetadata")
    read = usage.get("promptTokenCount") if isinstance(usage, dict) else None
    return read if isinstance(read, int) else None


def open_gemini(url: str, settings: Settings) -> RemoteEmbedder:
    """Open the model that `gemini:MODEL` names: on Vertex AI when `embedder.project_id` is set, else at the Gemini API.

    Raises:
        ConfigError: no model is named, its dimension is not known, a setting is wrong, or the key is missing.
    """
    name, settings = addressed(url, settings)
    name = name.removeprefix("models/")
    if not name:
        raise ConfigError("embedder.url", f"{url!r} names no model, as in 'gemini:gemini-embedding-001'")
    return VertexEmbedder(name, settings) if settings.project_id else GeminiEmbedder(name, settings)
