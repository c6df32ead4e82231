"""The settings by section, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memoranda.config.sources import Count, Scope, Size, Text, Unit
from memoranda.errors import ConfigError
from memoranda.types import KINDS, Role

Weight = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]
Url = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9+.-]*:", description="a URL such as `memory:`")]
EmbedderUrl = Annotated[
    str,
    Meta(
        pattern=r"^(auto$|[a-z][a-z0-9+.-]*:)", description="`auto` or a URL such as `local:arctic-embed-s`"
    ),
]
ModelUrl = Annotated[
    str, Meta(pattern=r"^[a-z][a-z0-9+.-]*:", description="a URL such as `http://localhost:8000/v1`")
]
WebUrl = Annotated[
    str, Meta(pattern=r"^https?://[^/\s]+", description="a URL that begins with http:// or https://")
]
Port = Annotated[int, Meta(ge=0, le=65535)]
KeyList = Annotated[list[Any], Meta(description="a list of keys, each with a `name`, a `role` and a `key`")]
AgentList = Annotated[list[Any], Meta(description="a list of agent profiles, each with an `id` and a `name`")]
SCOPE_WEIGHTS = {"session": 1.0, "user": 0.9, "agent": 0.8, "channel": 0.7, "global": 0.5}
WEIGHTS = {"search.scope_weights": SCOPE_WEIGHTS, "search.kind_weights": dict.fromkeys(KINDS, 1.0)}
"""Settings that are mappings, with their names and defaults; those not set keep their default."""
OPERATOR_TENANT = "default"
"""The tenant whose admins operate the installation, and which owns the jobs about all tenants."""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A group of settings."""


class Database(Section, frozen=True, kw_only=True):
    """Where rows live; `sqlite:` is a file in the data folder. The others are for PostgreSQL, times in
    seconds; `url_file` is a file that holds the URL, as secrets are mounted."""

    url: Url = "sqlite:"
    url_file: Text | None = None
    replica_url: Url | None = None
    pool_size: Count = 10
    statement_timeout: Seconds = 30.0
    retry_seconds: Seconds = 10.0


class Index(Section, frozen=True, kw_only=True):
    """The vector index; null is the default of the database: `memory:`, or `pgvector:` on PostgreSQL."""

    url: Url | None = None


class Words(Section, frozen=True, kw_only=True):
    """The keyword index; null is the default of the database: `tantivy:`, or `tsvector:` on PostgreSQL."""

    url: Url | None = None


class Embedder(Section, frozen=True, kw_only=True):
    """The embedding model; `cache_size` is the number of cached query embeddings. The other keys are for models that a
    provider serves; `timeout` and `query_timeout` are in seconds."""

    url: EmbedderUrl = "auto"
    threads: Count = 1
    cache_size: Size = 1000
    base_url: WebUrl | None = None
    api_key: Text | None = None
    api_key_env: Text | None = None
    api_key_file: Text | None = None
    project_id: Text | None = None
    location: Text | None = None
    served_as: Text | None = None
    dimension: Count | None = None
    batch_size: Count | None = None
    max_input_tokens: Count | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    timeout: Seconds = 30.0
    query_timeout: Seconds = 5.0
    concurrency: Count = 4

    def __repr__(self) -> str:
        return f"Embedder(url={self.url!r}, base_url={self.base_url!r})"


class Search(Section, frozen=True, kw_only=True):
    """What a search does when it does not say; `candidates` is per side, before fusion. A context multiplies the score
    of a memory by the weight of its kind. `rerank_weights` is a file that `memoranda eval fit` wrote; `half_life_days`
    is for `recency: decay`. `hyde` and `model_rerank` ask the language model, which has `model_seconds` for each."""

    default_limit: Count = 10
    default_threshold: Unit | None = None
    default_scope: Scope | None = None
    dense_weight: Weight | None = None
    words_weight: Weight | None = None
    scope_weights: dict[str, Weight] = msgspec.field(default_factory=SCOPE_WEIGHTS.copy)
    kind_weights: dict[str, Weight] = msgspec.field(default_factory=WEIGHTS["search.kind_weights"].copy)
    candidates: Count = 50
    rerank: Literal["auto", "people", "assistant", "plain", "sessions", "off"] = "auto"
    rerank_weights: Text | None = None
    recency: Literal["off", "decay", "boost"] = "decay"
    half_life_days: Annotated[float, Meta(gt=0)] = 90.0
    times: bool = True
    enrich: bool = False
    hyde: bool = False
    hyde_below: Unit = 0.5
    model_rerank: Annotated[int, Meta(ge=0, le=50)] = 0
    model_seconds: Seconds = 5.0


class Limits(Section, frozen=True, kw_only=True):
    """Limits of one call."""

    max_content_bytes: Count = 1 << 20
    max_tags: Size = 64
    max_metadata_bytes: Size = 64 << 10
    max_batch: Count = 10_000
    max_query_chars: Count = 10_000


class Server(Section, frozen=True, kw_only=True):
    """The HTTP server; `request_timeout` is in seconds, port 0 takes a free one. With `require_keys` it does not start
    without keys, which otherwise leave it to its own machine: behind a proxy everybody comes from there.
    `max_buffered_bytes` bounds the bodies of all requests that are in memory. `log_format: auto` is `text` on a
    terminal and `json` elsewhere."""

    host: Text = "127.0.0.1"
    port: Port = 8377
    max_body_bytes: Count = 64 << 20
    max_buffered_bytes: Count = 256 << 20
    max_connections: Count = 1_000
    request_timeout: Seconds = 30.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "json", "text"] = "auto"
    public_url: WebUrl | None = None
    require_keys: bool = False


class Jobs(Section, frozen=True, kw_only=True):
    """Durable work in the background; with 0 `workers` it is left to the processes of `memoranda worker`."""

    workers: Size = 2
    lease_seconds: Count = 60
    max_attempts: Count = 5


class Files(Section, frozen=True, kw_only=True):
    """Where the bytes of uploaded files are stored; null is the default of the database: `folder:`, the data folder's
    `files`, or `database:` on PostgreSQL, visible to every server."""

    url: Url | None = None


class Readers(Section, frozen=True, kw_only=True):
    """The processes that read documents: how many, and what one file may cost them: seconds, bytes of memory
    over an idle process, pages, parts of an archive, bytes unpacked, characters of text. With `hidden_text` they read
    what is hidden or struck out, too."""

    workers: Count = 2
    seconds: Seconds = 60.0
    memory_bytes: Count = 1 << 30
    pages: Count = 5_000
    parts: Count = 10_000
    unpacked_bytes: Count = 512 << 20
    characters: Count = 50_000_000
    hidden_text: bool = False


class Knowledge(Section, frozen=True, kw_only=True):
    """How documents are indexed: how many at once (0: left to the processes of `memoranda worker`), and how
    they are split when neither store nor upload says it; sizes in tokens, overlap at most half of the size."""

    files_at_once: Size = 8
    chunking: Literal["fixed", "recursive", "semantic"] = "fixed"
    chunk_size: Count = 200
    chunk_overlap: Size = 50
    contextual_header: bool = True


class Quotas(Section, frozen=True, kw_only=True):
    """The default quotas of a tenant: bytes of uploaded files, files in one store, bytes of one file, vector stores;
    live facts (beyond them the least valuable are archived), and days after which an unused one is archived (0:
    never)."""

    max_storage_bytes: Size = 10 << 30
    max_files_per_store: Size = 1_000
    max_file_bytes: Size = 50 << 20
    max_stores: Size = 1_000
    max_entries: Size = 10_000
    auto_archive_days: Size = 180


class Model(Section, frozen=True, kw_only=True):
    """The language model: `url` is that of a chat-completions API (`http://host:8000/v1`); without one, answers are
    quoted from the results. `timeout` (seconds) is the longest wait for more of an answer, `retries` are tries after
    the first, before anything came. `context_tokens` is how much the model reads, `context_role` the
    role of the message that quotes to it what was retrieved, `max_output_tokens` how much it
    writes by default. With `fallback`, a question that the model fails is answered from the results."""

    url: ModelUrl | None = None
    name: Text | None = None
    api_key: Text | None = None
    api_key_env: Text | None = None
    api_key_file: Text | None = None
    provider: Text | None = None
    timeout: Seconds = 60.0
    retries: Size = 2
    context_tokens: Count = 128_000
    context_role: Literal["user", "system"] = "user"
    max_output_tokens: Count | None = None
    fallback: bool = True

    def __repr__(self) -> str:
        return f"Model(url={self.url!r}, name={self.name!r})"


class Responses(Section, frozen=True, kw_only=True):
    """How a response is made: the default limit of tool calls, seconds for one of them, the context from memory and
    from files (results, least similarity, tokens), whether `memory_forget` waits until a user has confirmed, whether
    files are searched at all, and before the model's first turn (null: for small models), seconds between signs of life
    on a stream, background responses at once (0: left to `memoranda worker`), and the hosts of MCP servers that may be
    called: null is any while only this machine reaches the server and no keys are set, and none otherwise."""

    max_tool_calls: Count = 32
    tool_timeout: Seconds = 30.0
    memory: bool = True
    memory_results: Count = 10
    memory_min_score: Unit | None = None
    memory_tokens: Count = 2_000
    memory_forget: Literal["confirmed", "immediately"] = "confirmed"
    file_results: Count = 10
    file_min_score: Unit = 0.5
    file_tokens: Count = 4_000
    file_search: bool = True
    search_first: bool | None = None
    keepalive: Seconds = 15.0
    background_at_once: Size = 8
    mcp_hosts: list[str] | None = None


class Summarization(Section, frozen=True, kw_only=True):
    """Summaries of long conversations: above `token_threshold` tokens, all but the last `window_size` turns are
    replaced by a summary of at most `summary_max_tokens`; `lazy` ones are made by the request that needs them, `eager`
    ones after a response. `model` is another model's name for it; empty text counts as null."""

    enabled: bool = False
    strategy: Literal["lazy", "eager"] = "lazy"
    token_threshold: Count = 8_000
    window_size: Count = 10
    summary_max_tokens: Count = 500
    model: str | None = None


class Sessions(Section, frozen=True, kw_only=True):
    """The message log and its sessions. A channel's messages are cut into sessions where it was silent for more than
    `gap_minutes` (not when not `enabled`: the log goes on); with `summarize`, closed ones of `min_messages` and more
    are summarized, by `summary_model` or the configured one, again when `summary_version` rises, and, with
    `rollups`, week by week. A context shows `max_retrieved` summaries of `snippet_chars` characters each, and the
    last `recent_messages` of its conversation. Callers who do not say where they are have the days of `time_zone`, such
    as `Europe/Berlin` (None: UTC). With `index_messages`, messages of `roles` are indexed if they have
    `min_length` characters and at most `max_length` (0: any number), also those of responses; `batch_size` go into one
    transaction."""

    enabled: bool = True
    gap_minutes: Annotated[float, Meta(gt=0)] = 30.0
    min_messages: Count = 4
    summarize: bool = True
    summary_model: str | None = None
    summary_version: Count = 1
    summary_max_tokens: Count = 300
    rollups: bool = True
    max_retrieved: Size = 3
    snippet_chars: Count = 420
    recent_messages: Size = 10
    time_zone: Text | None = None
    index_messages: bool = True
    min_length: Size = 10
    max_length: Size = 0
    roles: list[str] = msgspec.field(default_factory=lambda: ["user", "assistant"])
    batch_size: Count = 100


class Facts(Section, frozen=True, kw_only=True):
    """Facts of conversations. `extraction` by a language model (`model`, or the configured one): `lazy` when a session
    is closed, `eager` after each turn; `capture_rules` find preferences, decisions and facts without one, at most
    `max_per_turn` in a turn. `reconcile` lets the model compare the facts that callers write with the others, in a job.
    With `decay`, a fact that is not used loses
    half of its worth in `half_life_days`, and is archived in time (see `quotas`). Related ones are consolidated every
    `consolidation_hours` (0: only when asked for)."""

    extraction: Literal["off", "lazy", "eager"] = "off"
    model: str | None = None
    capture_rules: bool = False
    max_per_turn: Count = 3
    reconcile: bool = True
    decay: bool = True
    half_life_days: Annotated[float, Meta(gt=0)] = 90.0
    consolidation_hours: Size = 24


class UploadAsk(Section, frozen=True, kw_only=True):
    """Asking uploaded documents at /api/v1/upload-ask. `memory` is its feature flag: without it no memory is looked up
    or written, and the message log goes on. Results of documents and of memories, the least similarity of a memory,
    tokens of documents, memories and history in a prompt, a summary every so many turns or above so many tokens of a
    session, of so many tokens, memories per user."""

    enabled: bool = True
    memory: bool = True
    document_results: Count = 5
    memory_results: Size = 3
    memory_min_score: Unit = 0.0
    document_tokens: Count = 4_000
    memory_tokens: Count = 1_000
    history_tokens: Size = 800
    summary_every_turns: Count = 6
    summary_above_tokens: Count = 4_000
    summary_max_tokens: Count = 300
    prune_limit: Size = 200


ToolSet = Literal["core", "full", "read", "chatgpt"]


class Mcp(Section, frozen=True, kw_only=True):
    """The MCP server: the tools that are offered where a URL names none, whether clients have sessions, and the origins
    of web pages that may call it beside its own."""

    tools: ToolSet = "core"
    sessions: bool = False
    allowed_origins: list[str] = msgspec.field(default_factory=list)


class Console(Section, frozen=True, kw_only=True):
    """The web console at `/console`."""

    enabled: bool = True


class Spending(Section, frozen=True, kw_only=True):
    """What a tenant may spend in a day (UTC) unless an admin says otherwise; null is as much as it likes."""

    model_calls_per_day: Size | None = None
    model_tokens_per_day: Size | None = None
    background_tokens_per_day: Size | None = None
    embedded_tokens_per_day: Size | None = None


class Prices(Section, frozen=True, kw_only=True):
    """What a provider charges for a million tokens that a model reads, writes and embeds, in a currency; null is not
    known, and counts as nothing beside a price that is."""

    currency: Text = "USD"
    tokens_in: Weight | None = None
    tokens_out: Weight | None = None
    tokens_embedded: Weight | None = None

    def cost(self, tokens_in: int, tokens_out: int, tokens_embedded: int = 0) -> float | None:
        """Return what so many tokens cost, to a millionth of the currency; None if no price is known."""
        prices = (self.tokens_in, self.tokens_out, self.tokens_embedded)
        if not any(price is not None for price in prices):
            return None
        counts = (tokens_in, tokens_out, tokens_embedded)
        return round(sum(n * (price or 0.0) for n, price in zip(counts, prices, strict=True)) / 1e6, 6)


class ServerKey(Section, frozen=True, kw_only=True):
    """A bearer key and whom it stands for. `key` is the secret, wherever it was read from."""

    name: Text
    role: Role
    key: Text = ""
    key_env: Text | None = None
    key_file: Text | None = None
    tenant: Text = OPERATOR_TENANT
    user: Text | None = None
    time_zone: Text | None = None

    def __repr__(self) -> str:
        return (
            f"ServerKey(name={self.name!r}, role={self.role!r}, tenant={self.tenant!r}, user={self.user!r})"
        )


class Setting(msgspec.Struct, frozen=True):
    """One key in force: its value without secrets, where it comes from, and what to know about it."""

    key: str
    value: Any
    origin: str
    note: str = ""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. `Config()` is the defaults; `config.load` reads and checks the rest."""

    data: Text = "./memoranda-data"
    database: Database = Database()
    index: Index = Index()
    words: Words = Words()
    embedder: Embedder = Embedder()
    search: Search = Search()
    limits: Limits = Limits()
    server: Server = Server()
    keys: tuple[ServerKey, ...] = ()
    jobs: Jobs = Jobs()
    files: Files = Files()
    readers: Readers = Readers()
    knowledge: Knowledge = Knowledge()
    quotas: Quotas = Quotas()
    model: Model = Model()
    responses: Responses = Responses()
    summarization: Summarization = Summarization()
    sessions: Sessions = Sessions()
    facts: Facts = Facts()
    upload_ask: UploadAsk = UploadAsk()
    mcp: Mcp = Mcp()
    console: Console = Console()
    spending: Spending = Spending()
    prices: Prices = Prices()
    agents: tuple[dict[str, Any], ...] = ()
    """Agent profiles, each as `POST /v1/agents` takes it, with an `id`."""
    sources: dict[str, Setting] = {}
    """Keys of other systems, by canonical name, values as given (secrets included)."""
    origins: dict[str, str] = {}
    """Where each of our own keys that is not a default comes from."""

    def operator_key(self) -> str | None:
        """Return an admin key of `OPERATOR_TENANT`, one bound to no user if there is one; None without keys.

        Raises:
            ConfigError: there are keys, but none is such a key.
        """
        if not self.keys:
            return None
        keys = [key for key in self.keys if key.role == "admin" and key.tenant == OPERATOR_TENANT]
        if not keys:
            role = f"role admin in tenant {OPERATOR_TENANT!r}"
            raise ConfigError("keys", f"none has {role}, as which commands call the server; add such a key")
        return min(keys, key=lambda key: key.user is not None).key

    def __repr__(self) -> str:
        return f"Config(data={self.data!r}, given={sorted(self.origins)})"


@cache
def own_types() -> Mapping[str, Any]:
    """Return the type of every key of ours, by dotted key. `keys` and `agents` are lists of mappings, see `ServerKey`
    and `memoranda.responses.profiles`. Resolving the annotations takes 5 ms, so it is done once."""
    types: dict[str, Any] = {}
    for field in msgspec.structs.fields(Config):
        if isinstance(field.default, Section):
            types |= {f"{field.name}.{name}": kind for name, kind in field_types(type(field.default)).items()}
    weights = {f"{key}.{name}": Weight for key, names in WEIGHTS.items() for name in names}
    for key in WEIGHTS:
        del types[key]
    return MappingProxyType({"data": Text, "keys": KeyList, "agents": AgentList} | types | weights)


def field_types(section: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the type of every field of a section."""
    return {field.name: field.type for field in msgspec.structs.fields(section)}


def value_of(config: Config, key: str) -> Any:
    """Return the value a dotted key has in `config`."""
    value: Any = config
    for name in key.split("."):
        value = value[name] if isinstance(value, dict) else getattr(value, name)
    return value


def assembled(values: dict[str, Any], sources: dict[str, Setting], origins: dict[str, str]) -> Config:
    """Return a Config of the checked `values` by dotted key; the others have their defaults."""
    parts: dict[str, dict[str, Any]] = {}
    weights = {key: default.copy() for key, default in WEIGHTS.items()}
    top: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section in weights:
            weights[section][name] = value
        elif section:
            parts.setdefault(section, {})[name] = value
        else:
            top[name] = value
    for key, value in weights.items():
        section, _, name = key.rpartition(".")
        parts.setdefault(section, {})[name] = value
    default = Config()
    sections = {name: msgspec.structs.replace(getattr(default, name), **part) for name, part in parts.items()}
    return Config(**top, **sections, sources=sources, origins=origins)
