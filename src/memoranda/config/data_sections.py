"""Settings of what is stored and searched: databases, indexes, files, the server."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memoranda.config.sources import Count, Scope, Seconds, Section, Size, Text, Unit, Url, WebUrl, Weight
from memoranda.types import KINDS

EmbedderUrl = Annotated[
    str,
    Meta(
        pattern=r"^(auto$|[a-z][a-z0-9+.-]*:)", description="`auto` or a URL such as `local:arctic-embed-s`"
    ),
]
Port = Annotated[int, Meta(ge=0, le=65535)]
SCOPE_WEIGHTS = {"session": 1.0, "user": 0.9, "agent": 0.8, "channel": 0.7, "global": 0.5}
WEIGHTS = {"search.scope_weights": SCOPE_WEIGHTS, "search.kind_weights": dict.fromkeys(KINDS, 1.0)}
"""Settings that are mappings, with their names and defaults; those not set keep their default."""


class Database(Section, frozen=True, kw_only=True):
    """Where rows are stored."""

    url: Url = "sqlite:"
    """Where rows live: `sqlite:` (in the data folder) or `postgresql://user@host:5432/name`."""
    url_file: Text | None = None
    """A file that holds the URL instead, with its password; not both."""
    replica_url: Url | None = None
    """A PostgreSQL that follows the first, for searches; it is asked only when it has all that this process wrote."""
    pool_size: Count = 10
    """Connections of this process that read PostgreSQL at once; one more writes."""
    statement_timeout: Seconds = 30.0
    """Seconds one PostgreSQL statement may take."""
    retry_seconds: Seconds = 10.0
    """Seconds a read or a write waits for a PostgreSQL that went away, or for a free connection."""


class Index(Section, frozen=True, kw_only=True):
    """The vector index."""

    url: Url | None = None
    """The vector index: `memory:`, `pgvector:`, `sqlitevec:`, `lancedb:` or `qdrant:`, with the options of Backends;
    unset, `memory:` beside `sqlite:` and `pgvector:` beside PostgreSQL."""


class Words(Section, frozen=True, kw_only=True):
    """The keyword index."""

    url: Url | None = None
    """The word index: `tantivy:`, `fts5:` or, with rows in PostgreSQL, `tsvector:`; unset, `tantivy:` beside `sqlite:`
    and `tsvector:` beside PostgreSQL."""


class Embedder(Section, frozen=True, kw_only=True):
    """The embedding model. The keys after `cache_size` are for models that a provider serves."""

    url: EmbedderUrl = "auto"
    """The embedding model: `auto` follows the languages of the texts, and `local:arctic-embed-s` or another pins one:
    `local:NAME`, `local:/folder`, `hash:DIMENSIONS`, `openai:MODEL`, `gemini:MODEL` or
    `ollama:MODEL?dimension=768`; the default is for English."""
    threads: Count = 1
    """Texts the model works on at once."""
    cache_size: Size = 1000
    """Queries whose vectors are kept; 0 keeps none."""
    base_url: WebUrl | None = None
    """Where a provider is, when not at its usual address; for servers that speak as OpenAI does it usually ends in
    `/v1`."""
    api_key: Text | None = None
    """A provider's key, or Vertex AI's access token; at most one of `api_key`, `api_key_env` and `api_key_file`."""
    api_key_env: Text | None = None
    """The environment variable that holds it; unset, `OPENAI_API_KEY`, `GEMINI_API_KEY` or
    `GOOGLE_OAUTH_ACCESS_TOKEN`, and only for the provider's own address."""
    api_key_file: Text | None = None
    """The file that holds it, read anew for each request."""
    project_id: Text | None = None
    """The Google Cloud project; makes `gemini:` go to Vertex AI."""
    location: Text | None = None
    """The region of Vertex AI; unset, `us-central1`."""
    served_as: Text | None = None
    """The name a server answers with, when it is the same model under another name."""
    dimension: Count | None = None
    """The length of a provider's vectors: needed for a model not known here, and shortens those that can be."""
    batch_size: Count | None = None
    """Texts in one request; unset, 128 for OpenAI, 100 for Gemini, 64 for Vertex AI (1 for its `gemini-` models), 16
    for servers of one's own."""
    max_input_tokens: Count | None = None
    """Tokens of one text, at most what the model takes; unset, that, and 512 for a model not known here."""
    query_prefix: str | None = None
    """Goes before a question; unset, what the model was trained with."""
    document_prefix: str | None = None
    """Goes before a document; unset, what the model was trained with."""
    timeout: Seconds = 30.0
    """Seconds one request to a provider may take; a batch of documents may take four times that, tries and waits
    included."""
    query_timeout: Seconds = 5.0
    """Seconds a question waits for a provider, tries and waits included; then the search goes by words."""
    concurrency: Count = 4
    """Requests for documents that run at once, and as many for questions."""

    def __repr__(self) -> str:
        return f"Embedder(url={self.url!r}, base_url={self.base_url!r})"


class Search(Section, frozen=True, kw_only=True):
    """What a search does when it does not say."""

    default_limit: Count = 10
    """Hits when a search names no limit."""
    default_threshold: Unit | None = None
    """Floor on similarity, 0 to 1, when a search names none; null or 0 is no floor."""
    default_scope: Scope | None = None
    """`session`, `channel`, `agent`, `user`, `global` or `all`, when a search names no scope; one that a request
    cannot mean (it has no id of a session, channel or agent; `all` without the admin role) is as none."""
    dense_weight: Weight | None = None
    """Weight of vectors in the score; unset, what the model ships (.65 with the default); not both weights 0. For a
    question with a number of three digits or more that is no year, the weights change places if this one is the
    greater."""
    words_weight: Weight | None = None
    """Weight of words in the score; unset, 1 less the weight of vectors."""
    scope_weights: dict[str, Weight] = msgspec.field(default_factory=SCOPE_WEIGHTS.copy)
    """Weight of hits of this scope in a `hierarchy` search."""
    kind_weights: dict[str, Weight] = msgspec.field(default_factory=WEIGHTS["search.kind_weights"].copy)
    """Factor of the score of memories of this kind in a context."""
    candidates: Count = 50
    """How deep each side is looked into before they are fused, and how many hits this gives at most; a greater limit
    takes a second look, 1 000 deep, for the others."""
    rerank: Literal["auto", "people", "assistant", "plain", "sessions", "off"] = "auto"
    """The weights by which messages are scored: `people`, `assistant` or `plain` conversations, `auto` chooses by
    their speakers; `sessions` merges messages and session summaries; `off` scores by similarity and keywords alone."""
    rerank_weights: Text | None = None
    """A file that `memoranda eval fit` wrote, whose styles replace the built-in ones: `{style: {intercept, weights,
    means, few, level, behind}}`."""
    recency: Literal["off", "decay", "boost"] = "decay"
    """`decay` makes less of facts not used for long, `boost` more of what is important or new, `off` nothing."""
    half_life_days: Annotated[float, Meta(gt=0)] = 90.0
    """Days without use after which a fact counts half, with `decay`; after twice that it counts nothing."""
    times: bool = True
    """Whether times that a question names ("last May") count for messages of that time."""
    enrich: bool = False
    """Whether a question is embedded under a header, as messages and summaries are: the time and person that it names,
    and the channel in which it is searched."""
    hyde: bool = False
    """Whether a search that is unsure is made again near a passage that the language model imagines."""
    hyde_below: Unit = 0.5
    """The similarity, 0 to 1, that the best hit must have for a search to be sure."""
    model_rerank: Annotated[int, Meta(ge=0, le=50)] = 0
    """How many of the first hits the language model puts in order, at most 50; 0 is none."""
    model_seconds: Seconds = 5.0
    """Seconds that the model has for either; then the answer goes without, and says so."""


class Limits(Section, frozen=True, kw_only=True):
    """Limits of one call."""

    max_content_bytes: Count = 1 << 20
    """UTF-8 bytes of one memory's text."""
    max_tags: Size = 64
    """Tags of one memory."""
    max_metadata_bytes: Size = 64 << 10
    """Bytes of one memory's metadata as JSON, which has at most 64 levels of objects and lists."""
    max_batch: Count = 10_000
    """Memories in one call."""
    max_query_chars: Count = 10_000
    """Characters of one query."""


class Server(Section, frozen=True, kw_only=True):
    """The HTTP server."""

    host: Text = "127.0.0.1"
    """Address to listen on."""
    port: Port = 8377
    """Port to listen on; 0 takes a free one."""
    max_body_bytes: Count = 64 << 20
    """Bytes of one request."""
    max_buffered_bytes: Count = 256 << 20
    """Bytes of the bodies of all requests that are in memory, counted as they arrive; where there is no room, one is
    refused with 503 unless it is alone."""
    max_connections: Count = 1_000
    """Connections; beyond them the one that is idle for longest is closed, and without one the new one is refused with
    503."""
    request_timeout: Seconds = 30.0
    """Seconds a request may take."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """`debug`, `info`, `warning` or `error`."""
    log_format: Literal["auto", "json", "text"] = "auto"
    """`json`, one object a line; `text`, lines for people; `auto` is `text` when standard error is a terminal, else
    `json`."""
    public_url: WebUrl | None = None
    """How clients reach the server, `http://` or `https://`."""
    require_keys: bool = False
    """The server does not start without `keys`; set it wherever a proxy may be put before it."""


class Jobs(Section, frozen=True, kw_only=True):
    """Durable work in the background."""

    workers: Size = 2
    """Jobs that run at once; with 0, jobs are left to the other processes of the same PostgreSQL, such as `memoranda
    worker`."""
    lease_seconds: Count = 60
    """Seconds after which the job of a dead worker is taken over."""
    max_attempts: Count = 5
    """Tries before a job has failed; a job that completes a deletion is tried until it succeeds."""


class Files(Section, frozen=True, kw_only=True):
    """Where the bytes of uploaded files are stored."""

    url: Url | None = None
    """Where the bytes of uploaded files are kept: `folder:` (the data folder's `files`), `folder:/some/path` (which
    servers may share), or `database:` (with the rows); unset, `folder:` beside `sqlite:` and `database:` beside
    PostgreSQL."""


class Readers(Section, frozen=True, kw_only=True):
    """The processes that read documents, and what one file may cost them."""

    workers: Count = 2
    """Processes that read documents, started when they are needed."""
    seconds: Seconds = 60.0
    """Seconds one file may take to be read; then its process is killed."""
    memory_bytes: Count = 1 << 30
    """Bytes of memory one file may take, over an idle process."""
    pages: Count = 5_000
    """Pages, slides or sheets of one file."""
    parts: Count = 10_000
    """Members of an archive, attachments of a message."""
    unpacked_bytes: Count = 512 << 20
    """Bytes an archive may unpack to."""
    characters: Count = 50_000_000
    """Characters of text of one file."""
    hidden_text: bool = False
    """Whether text that is hidden or struck out is read, too."""


class Knowledge(Section, frozen=True, kw_only=True):
    """How documents are indexed, and how they are split when neither store nor upload says it."""

    files_at_once: Size = 8
    """Files that are indexed at once; 0 leaves it to the other processes of the same PostgreSQL, and so does
    `jobs.workers` 0."""
    chunking: Literal["fixed", "recursive", "semantic"] = "fixed"
    """How documents are split: `fixed`, `recursive` or `semantic`."""
    chunk_size: Count = 200
    """Tokens of one chunk at most (`o200k_base`)."""
    chunk_overlap: Size = 50
    """Tokens a chunk repeats of the one before it, at most half of its size."""
    contextual_header: bool = True
    """Whether chunks are embedded and found under the title and headings they stand below."""


class Quotas(Section, frozen=True, kw_only=True):
    """The default quotas of a tenant."""

    max_storage_bytes: Size = 10 << 30
    """Bytes of uploaded files a tenant may hold."""
    max_files_per_store: Size = 1_000
    """Files in one vector store."""
    max_file_bytes: Size = 50 << 20
    """Bytes of one file."""
    max_stores: Size = 1_000
    """Vector stores of a tenant."""
    max_entries: Size = 10_000
    """Live facts of a tenant; of more, the least valuable are archived."""
    auto_archive_days: Size = 180
    """A fact that was not used for so long is archived; 0: never."""
