"""A document of Haystack as a memory of kind `item`, and back."""

from __future__ import annotations

from base64 import b85decode, b85encode
from typing import Any

import numpy as np
from haystack.dataclasses import ByteStream, Document, SparseEmbedding

from memoranda.integrations import entries
from memoranda.types import Memory

OWN = "haystack."
"""Begins the metadata keys that are not the document's."""
SEARCHABLE = {"type": "ne", "key": f"{OWN}searchable", "value": False}
"""The filter of the product that documents with text pass."""
UNSEARCHABLE = "A document without text to search."
"""The text of a document without content."""


def memory_of(document: Document, id_: str) -> dict[str, Any]:
    """The fields of the memory for a document: its content is searched, filters apply to its meta, and its embedding is
    stored unchanged."""
    own: dict[str, Any] = {"id": document.id}
    searchable = bool(document.content and document.content.strip())
    if not searchable:
        own |= {"searchable": False, "content": document.content}
    if document.score is not None:
        own["score"] = document.score
    if document.embedding is not None:
        own["embedding"] = b85encode(np.array(document.embedding, "<f8").tobytes()).decode("ascii")
    if document.sparse_embedding is not None:
        own["sparse"] = document.sparse_embedding.to_dict()
    if document.blob is not None:
        blob = document.blob
        data = b85encode(blob.data).decode("ascii")
        own["blob"] = {"data": data, "meta": blob.meta, "mime_type": blob.mime_type}
    return {
        "id": id_,
        "content": document.content if searchable else UNSEARCHABLE,
        "metadata": entries.metadata_of(document.meta, own, OWN),
    }


def document_of(memory: Memory, score: float | None = None) -> Document:
    """The document that a memory stores; with `score`, as a search result."""
    own = {name.removeprefix(OWN): part for name, part in memory.metadata.items() if name.startswith(OWN)}
    blob, sparse, embedding = own.get("blob"), own.get("sparse"), own.get("embedding")
    return Document(
        id=own["id"],
        content=own.get("content", memory.content),
        meta=entries.value_of(memory, OWN),
        score=own.get("score") if score is None else score,
        embedding=None if embedding is None else np.frombuffer(b85decode(embedding), "<f8").tolist(),
        sparse_embedding=None if sparse is None else SparseEmbedding.from_dict(sparse),
        blob=None if blob is None else ByteStream(b85decode(blob["data"]), blob["meta"], blob["mime_type"]),
    )
