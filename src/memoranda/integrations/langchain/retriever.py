"""A LangChain retriever over what a product knows: memories, or files in vector stores."""

from __future__ import annotations

from typing import Any

import msgspec
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr

from memoranda.integrations.products import knowledge_of, memories_of
from memoranda.knowledge.values import Passage
from memoranda.types import Hit

PLACES = (
    "kind", "user_id", "agent_id", "channel_id", "session_id", "role", "source", "tags", "occurred_at",
)  # fmt: skip
"""Fields of a memory that its document has as metadata, where they are set."""


class MemorandaRetriever(BaseRetriever):
    """Retrieves memories, or passages of the files in `stores`.

    `product` is a folder or a server, as for every adapter. `search` has further fields of the search:
    `{"scopes": ["user:ana"], "kinds": ["fact"]}` for memories, `{"filters": {...}, "diversity": 0.3}` for passages.
    `score` and `similarity` are in the metadata of each document.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    product: Any
    k: int = Field(default=4, ge=1)
    """How many documents are retrieved, at most."""
    stores: list[str] | None = None
    """The ids of vector stores; memories are searched without them."""
    search: dict[str, Any] = Field(default_factory=dict)
    _source: Any = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Refuses what is no product."""
        super().model_post_init(context)
        self._source = memories_of(self.product) if self.stores is None else knowledge_of(self.product)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        limit = self.k if k is None else k
        if self.stores is None:
            hits = self._source.search(query, limit=limit, **self.search).results
            return [_of_memory(hit) for hit in hits]
        passages = self._source.stores.search(self.stores, query, limit=limit, **self.search).data
        return [_of_passage(passage) for passage in passages]


def _of_memory(hit: Hit) -> Document:
    fields = msgspec.to_builtins(hit.memory)
    known = {name: fields[name] for name in PLACES if fields[name]}
    scores = {"score": hit.score, "similarity": hit.similarity}
    return Document(
        id=hit.memory.id, page_content=hit.memory.content, metadata={**hit.memory.metadata, **known, **scores}
    )


def _of_passage(passage: Passage) -> Document:
    fields = msgspec.to_builtins(passage)
    content, id_, attributes = fields.pop("text"), fields.pop("chunk_id"), fields.pop("attributes")
    known = {name: value for name, value in fields.items() if value is not None}
    return Document(id=id_, page_content=content, metadata={**attributes, **known})
