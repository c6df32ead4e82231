"""Published facts about embedding models: dimensions, input lengths, prefixes. One line per model."""

from __future__ import annotations

import msgspec

WEB = "Represent this sentence for searching relevant passages: "
SEARCH = ("search_query: ", "search_document: ")
PASSAGE = ("query: ", "passage: ")
GEMMA = ("task: search result | query: ", "title: none | text: ")
QWEN = ("Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:", "")


class PublishedModel(msgspec.Struct, frozen=True):
    """A model. `shortest` is the least dimension it can be cut to, None if it cannot. `encoding` is its tokenizer, if
    that ships with Memoranda. `prefixes` go before a query and before a document."""

    dim: int
    max_tokens: int
    shortest: int | None = None
    encoding: str | None = None
    prefixes: tuple[str, str] = ("", "")


PUBLISHED = {
    # https://platform.openai.com/docs/guides/embeddings
    "text-embedding-3-small": PublishedModel(1536, 8191, 1, "cl100k_base"),
    "text-embedding-3-large": PublishedModel(3072, 8191, 1, "cl100k_base"),
    "text-embedding-ada-002": PublishedModel(1536, 8191, None, "cl100k_base"),
    # https://ai.google.dev/gemini-api/docs/embeddings
    "gemini-embedding-001": PublishedModel(3072, 2048, 128),
    "gemini-embedding-2": PublishedModel(3072, 8192, 128, None, GEMMA),
    "gemini-embedding-2-preview": PublishedModel(3072, 8192, 128, None, GEMMA),
    "text-embedding-004": PublishedModel(768, 2048, 1),
    # https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api
    "text-embedding-005": PublishedModel(768, 2048, 1),
    "text-multilingual-embedding-002": PublishedModel(768, 2048, 1),
    # https://ollama.com/search?c=embedding
    "nomic-embed-text": PublishedModel(768, 2048, None, None, SEARCH),
    "nomic-embed-text:v1.5": PublishedModel(768, 2048, None, None, SEARCH),
    "mxbai-embed-large": PublishedModel(1024, 512, None, None, (WEB, "")),
    "all-minilm": PublishedModel(384, 256),
    "snowflake-arctic-embed": PublishedModel(1024, 512, None, None, (WEB, "")),
    "snowflake-arctic-embed2": PublishedModel(1024, 8192, None, None, ("query: ", "")),
    "bge-m3": PublishedModel(1024, 8192),
    "embeddinggemma": PublishedModel(768, 2048, 128, None, GEMMA),
    "qwen3-embedding:0.6b": PublishedModel(1024, 32768, 32, None, QWEN),
    "qwen3-embedding:4b": PublishedModel(2560, 32768, 32, None, QWEN),
    "qwen3-embedding:8b": PublishedModel(4096, 32768, 32, None, QWEN),
    # https://huggingface.co, by the models' own cards
    "nomic-ai/nomic-embed-text-v1.5": PublishedModel(768, 8192, 64, None, SEARCH),
    "mixedbread-ai/mxbai-embed-large-v1": PublishedModel(1024, 512, None, None, (WEB, "")),
    "sentence-transformers/all-minilm-l6-v2": PublishedModel(384, 256),
    "snowflake/snowflake-arctic-embed-s": PublishedModel(384, 512, None, None, (WEB, "")),
    "snowflake/snowflake-arctic-embed-m": PublishedModel(768, 512, None, None, (WEB, "")),
    "snowflake/snowflake-arctic-embed-l": PublishedModel(1024, 512, None, None, (WEB, "")),
    "snowflake/snowflake-arctic-embed-l-v2.0": PublishedModel(1024, 8192, None, None, ("query: ", "")),
    "baai/bge-m3": PublishedModel(1024, 8192),
    "baai/bge-small-en-v1.5": PublishedModel(384, 512, None, None, (WEB, "")),
    "baai/bge-base-en-v1.5": PublishedModel(768, 512, None, None, (WEB, "")),
    "baai/bge-large-en-v1.5": PublishedModel(1024, 512, None, None, (WEB, "")),
    "intfloat/e5-base-v2": PublishedModel(768, 512, None, None, PASSAGE),
    "intfloat/e5-large-v2": PublishedModel(1024, 512, None, None, PASSAGE),
    "intfloat/multilingual-e5-small": PublishedModel(384, 512, None, None, PASSAGE),
    "intfloat/multilingual-e5-base": PublishedModel(768, 512, None, None, PASSAGE),
    "intfloat/multilingual-e5-large": PublishedModel(1024, 512, None, None, PASSAGE),
    "google/embeddinggemma-300m": PublishedModel(768, 2048, 128, None, GEMMA),
    "qwen/qwen3-embedding-0.6b": PublishedModel(1024, 32768, 32, None, QWEN),
    "qwen/qwen3-embedding-4b": PublishedModel(2560, 32768, 32, None, QWEN),
    "qwen/qwen3-embedding-8b": PublishedModel(4096, 32768, 32, None, QWEN),
}
"""Models by name, in lower case, without `:latest`."""


def known(name: str) -> PublishedModel | None:
    """Return the published facts about a model, None if it is not listed here."""
    return PUBLISHED.get(name.lower().removesuffix(":latest"))
