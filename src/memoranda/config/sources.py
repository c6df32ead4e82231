"""The key names of the systems Memoranda takes over from, and which of our own keys they set.

Every such key is validated and accepted. One that sets a key of ours is in `SETS`; the others have no effect yet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta

from memoranda.errors import ConfigError

Count = Annotated[int, Meta(ge=1)]
Size = Annotated[int, Meta(ge=0)]
Unit = Annotated[float, Meta(ge=0, le=1)]
Scope = Literal["session", "channel", "agent", "user", "global", "all"]
Text = Annotated[str, Meta(min_length=1, description="text that is not empty")]
Duration = Annotated[str, Meta(pattern=r"^[0-9]+(ms|s|m|h|d)$", description="a duration such as 24h")]
When = Literal["lazy", "eager"]
Weight = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]
Url = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9+.-]*:", description="a URL such as `memory:`")]
WebUrl = Annotated[
    str, Meta(pattern=r"^https?://[^/\s]+", description="a URL that begins with http:// or https://")
]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A group of settings."""


class Given(msgspec.Struct, frozen=True):
    """A value that was set: `key` is its canonical name, `written` its name as written, `origin` its place.

    `made_of` are the source keys (canonical) that a value of ours was made of, if it was.
    """

    key: str
    value: Any
    written: str
    origin: str
    made_of: tuple[str, ...] = ()


EPISODIC: dict[str, Any] = {
    "enabled": bool,
    "extraction.model": str,
    "extraction.strategy": When,
    "retrieval.max_results": Count,
    "retrieval.min_score": Unit,
    "consolidation.interval": Duration,
    "decay.enabled": bool,
    "decay.half_life_days": Annotated[float, Meta(gt=0)],
}
"""The `memory` block of a file without `memory.backend` and `memory.embeddings`: facts of conversations."""

VECTOR: dict[str, Any] = {
    "enabled": bool,
    "backend": Text,
    "dimension": Count,
    "sqlite_vec.path": Text,
    "lancedb.path": Text,
    "pgvector.conn_string": Text,
    "embeddings.provider": Text,
    "embeddings.api_key": str,
    "embeddings.model": Text,
    "embeddings.project_id": str,
    "embeddings.location": str,
    "embeddings.ollama_url": str,
    "indexing.auto_index_messages": bool,
    "indexing.min_content_length": Size,
    "indexing.max_content_length": Size,
    "indexing.batch_size": Count,
    "indexing.allowed_roles": list[str],
    "search.default_limit": Count,
    "search.default_threshold": Unit,
    "search.default_scope": Scope,
}
"""The block `vector_memory`, also written `memory` if it has `memory.backend` or `memory.embeddings`."""

OUTSIDE_MEMORY: dict[str, Any] = {
    "dsn_file": Text,
    "builtins.file_search.enabled": bool,
    "builtins.file_search.vector_backend": Literal["pgvector", "qdrant"],
    "builtins.file_search.embedding.url": Text,
    "builtins.file_search.embedding.model": str,
    "builtins.file_search.embedding.dimension": Count,
    "builtins.file_search.embedding.batch_size": Count,
    "builtins.file_search.chunking.strategy": Literal["fixed", "recursive", "semantic"],
    "builtins.file_search.chunking.chunk_size": Count,
    "builtins.file_search.chunking.chunk_overlap": Size,
    "builtins.file_search.search.max_results": Count,
    "builtins.file_search.search.min_score": Unit,
    "builtins.file_search.search.context_token_budget": Count,
    "builtins.file_search.pgvector.dsn_file": Text,
    "builtins.file_search.qdrant.url": Text,
    "builtins.file_search.qdrant.collection_prefix": str,
    "retention.vector_stores.max_storage_bytes": Count,
    "retention.vector_stores.max_files_per_store": Count,
    "retention.vector_stores.max_file_size_bytes": Count,
    "retention.memory.max_entries": Count,
    "retention.memory.auto_archive_days": Count,
    "uploadask.memory.enabled": bool,
    "uploadask.memory.topKMems": Size,
    "uploadask.memory.maxHistoryTokens": Size,
    "uploadask.memory.memoryVectorDim": Count,
    "uploadask.memory.summaryEveryNTurns": Count,
    "uploadask.memory.pruneLimit": Count,
    "CONTEXT_SESSION_MEMORY_ENABLED": bool,
    "CONTEXT_SESSION_GAP_MINUTES": Annotated[float, Meta(gt=0)],
    "CONTEXT_SESSION_MIN_MESSAGES": Count,
    "CONTEXT_SESSION_MAX_RETRIEVED": Size,
    "CONTEXT_SESSION_SUMMARY_MODEL": str,
    "CONTEXT_SESSION_SUMMARY_VERSION": Count,
    "CONTEXT_SESSION_SUMMARIZATION_ENABLED": bool,
    "VECTOR_EMBEDDING_PROVIDER": Text,
    "VECTOR_EMBEDDING_MODEL": Text,
    "VECTOR_EMBEDDING_TIMEOUT_MS": Count,
    "VECTOR_EMBEDDING_MAX_CHARS": Count,
}
"""The source keys that are in neither of these blocks, and the environment variables that are source keys."""

ENVIRONMENT: dict[str, str] = {
    "MEMORANDA_MODEL_URL": "model.url",
    "MEMORANDA_MODEL": "model.name",
    "MEMORANDA_MODEL_API_KEY": "model.api_key",
    "ANTWORT_SUMMARIZATION_ENABLED": "summarization.enabled",
    "ANTWORT_SUMMARIZATION_STRATEGY": "summarization.strategy",
    "ANTWORT_SUMMARIZATION_TOKEN_THRESHOLD": "summarization.token_threshold",
    "ANTWORT_SUMMARIZATION_WINDOW_SIZE": "summarization.window_size",
    "ANTWORT_SUMMARIZATION_MAX_TOKENS": "summarization.summary_max_tokens",
    "ANTWORT_FILESEARCH_MAX_RESULTS": "builtins.file_search.search.max_results",
    "ANTWORT_FILESEARCH_MIN_SCORE": "builtins.file_search.search.min_score",
    "ANTWORT_FILESEARCH_CONTEXT_BUDGET": "builtins.file_search.search.context_token_budget",
} | {key: key for key in OUTSIDE_MEMORY if key.isupper()}
"""Environment variables and the key that each sets, ours or a source key."""

_DURATION = re.compile(r"([0-9]+)(ms|s|m|h|d)")
PREFIXES = ("ANTWORT_SUMMARIZATION_", "ANTWORT_FILESEARCH_", "CONTEXT_SESSION_", "VECTOR_EMBEDDING_")

BACKENDS: dict[str, tuple[str, str]] = {
    "memory": ("memory:", ""),
    "sqlite-vec": ("sqlitevec:", "sqlite_vec.path"),
    "lancedb": ("lancedb:", "lancedb.path"),
    "pgvector": ("pgvector:", ""),
}
"""`vector_memory.backend` to the beginning of the index URL, and the key of the path that ends it: a backend is a line
here."""
CONN_STRING = "vector_memory.pgvector.conn_string"
FILE_SEARCH = "builtins.file_search"
DSN_FILES = ("dsn_file", f"{FILE_SEARCH}.pgvector.dsn_file")


class Provider(msgspec.Struct, frozen=True):
    """The embedder URL of a provider, its default model, and the keys, without `vector_memory.`, that set values of
    ours with this provider."""

    url: str
    model: str = ""
    sets: Mapping[str, str] = msgspec.field(default_factory=dict)


_REMOTE = {"embeddings.api_key": "embedder.api_key", "dimension": "embedder.dimension"}
_VERTEX = {f"embeddings.{name}": f"embedder.{name}" for name in ("project_id", "location")}

PROVIDERS: dict[str, Provider] = {
    "local": Provider("local:{model}", "arctic-embed-s"),
    "hash": Provider("hash:{dimension}"),
    "openai": Provider("openai:{model}", "text-embedding-3-small", _REMOTE),
    "gemini": Provider("gemini:{model}", "gemini-embedding-001", _REMOTE | _VERTEX),
    "ollama": Provider(
        "ollama:{model}", "nomic-embed-text", _REMOTE | {"embeddings.ollama_url": "embedder.base_url"}
    ),
}
"""`vector_memory.embeddings.provider`. A provider is one line here."""

EMBEDDINGS: dict[str, str] = {
    "deterministic": "hash:256",
    "openai": "openai:{model}",
}
"""`VECTOR_EMBEDDING_PROVIDER` as an embedder URL."""

CHARS_PER_TOKEN = 4
LEAST_MAX_TOKENS = 16
"""How `VECTOR_EMBEDDING_MAX_CHARS` is read as tokens, and the fewest that an embedder takes."""

SETS: dict[str, str] = {
    "vector_memory.search.default_limit": "search.default_limit",
    "vector_memory.search.default_threshold": "search.default_threshold",
    "vector_memory.search.default_scope": "search.default_scope",
    "builtins.file_search.chunking.strategy": "knowledge.chunking",
    "builtins.file_search.chunking.chunk_size": "knowledge.chunk_size",
    "builtins.file_search.chunking.chunk_overlap": "knowledge.chunk_overlap",
    "builtins.file_search.enabled": "responses.file_search",
    "builtins.file_search.search.max_results": "responses.file_results",
    "builtins.file_search.search.min_score": "responses.file_min_score",
    "builtins.file_search.search.context_token_budget": "responses.file_tokens",
    "memory.retrieval.max_results": "responses.memory_results",
    "memory.retrieval.min_score": "responses.memory_min_score",
    "memory.extraction.model": "facts.model",
    "memory.decay.enabled": "facts.decay",
    "memory.decay.half_life_days": "facts.half_life_days",
    "retention.memory.max_entries": "quotas.max_entries",
    "retention.memory.auto_archive_days": "quotas.auto_archive_days",
    "vector_memory.indexing.auto_index_messages": "sessions.index_messages",
    "vector_memory.indexing.min_content_length": "sessions.min_length",
    "vector_memory.indexing.max_content_length": "sessions.max_length",
    "vector_memory.indexing.batch_size": "sessions.batch_size",
    "vector_memory.indexing.allowed_roles": "sessions.roles",
    "CONTEXT_SESSION_MEMORY_ENABLED": "sessions.enabled",
    "CONTEXT_SESSION_GAP_MINUTES": "sessions.gap_minutes",
    "CONTEXT_SESSION_MIN_MESSAGES": "sessions.min_messages",
    "CONTEXT_SESSION_MAX_RETRIEVED": "sessions.max_retrieved",
    "CONTEXT_SESSION_SUMMARY_MODEL": "sessions.summary_model",
    "CONTEXT_SESSION_SUMMARY_VERSION": "sessions.summary_version",
    "CONTEXT_SESSION_SUMMARIZATION_ENABLED": "sessions.summarize",
    "uploadask.memory.enabled": "upload_ask.memory",
    "uploadask.memory.topKMems": "upload_ask.memory_results",
    "uploadask.memory.maxHistoryTokens": "upload_ask.history_tokens",
    "uploadask.memory.summaryEveryNTurns": "upload_ask.summary_every_turns",
    "uploadask.memory.pruneLimit": "upload_ask.prune_limit",
    "retention.vector_stores.max_storage_bytes": "quotas.max_storage_bytes",
    "retention.vector_stores.max_files_per_store": "quotas.max_files_per_store",
    "retention.vector_stores.max_file_size_bytes": "quotas.max_file_bytes",
}
"""Keys whose value is that of one of ours, unchanged."""


def block_of(document: Mapping[Any, Any]) -> str:
    """Return the kind of the file's `memory` block: `vector_memory` or `memory` (episodic)."""
    block = document.get("memory")
    vector = isinstance(block, Mapping) and ("backend" in block or "embeddings" in block)
    return "vector_memory" if vector else "memory"


def names(block: str) -> dict[str, tuple[str, Any]]:
    """Return every source key as it may be written, with its one canonical name and its type."""
    memory = VECTOR if block == "vector_memory" else EPISODIC
    return (
        {f"memory.{key}": (f"{block}.{key}", kind) for key, kind in memory.items()}
        | {f"vector_memory.{key}": (f"vector_memory.{key}", kind) for key, kind in VECTOR.items()}
        | {key: (key, kind) for key, kind in OUTSIDE_MEMORY.items()}
    )


def hints(block: str) -> dict[str, str]:
    """Return sentences for keys of the other kind of `memory` block: the two cannot be mixed."""
    vector, episodic = ({key.split(".")[0] for key in table} for table in (VECTOR, EPISODIC))
    if block == "vector_memory":
        says = (
            "is a key of the episodic `memory` block, but `memory.backend` or `memory.embeddings` makes this "
            "the vector memory's block; rename the block with those two to `vector_memory`"
        )
        return {f"memory.{name}": says for name in episodic - vector}
    says = (
        "is a key of the vector memory's block, and this `memory` block has no `memory.backend` or "
        "`memory.embeddings`; move it to `vector_memory`"
    )
    return {f"memory.{name}": says for name in vector - episodic}


def _same(given: Mapping[str, Given]) -> list[Given]:
    """Return the keys of equal value; without the vector memory, responses do not use memory and messages are not
    indexed."""
    enabled, indexed = "vector_memory.enabled", "vector_memory.indexing.auto_index_messages"
    if enabled not in given:
        return _set(given, SETS)
    on = given[enabled].value
    values = [_derived("responses.memory", on, given, [enabled])]
    if on:
        return [*values, *_set(given, SETS)]
    made_of = [enabled, *([indexed] if indexed in given else [])]
    values.append(_derived("sessions.index_messages", False, given, made_of))
    return [*values, *_set(given, {key: target for key, target in SETS.items() if key != indexed})]


def _backend(given: Mapping[str, Given]) -> list[Given]:
    key = "vector_memory.backend"
    if key not in given:
        return []
    url, path = _choice(given[key], BACKENDS)
    place = f"vector_memory.{path}"
    named = [place] if path and place in given else []
    end = os.path.expanduser(given[place].value) if named else ""
    values = [_derived("index.url", f"{url}{end}", given, [key, *named])]
    if url == "pgvector:" and CONN_STRING in given:  # its vectors are stored beside its rows
        values.append(_derived("database.url", given[CONN_STRING].value, given, [CONN_STRING]))
    return values


def _file_search_backend(given: Mapping[str, Given]) -> list[Given]:
    values = [
        _derived("database.url_file", given[key].value, given, [key]) for key in DSN_FILES if key in given
    ]
    key, url, prefix = (
        f"{FILE_SEARCH}.{name}" for name in ("vector_backend", "qdrant.url", "qdrant.collection_prefix")
    )
    if key not in given:
        return values
    if given[key].value == "pgvector":
        return [*values, _derived("index.url", "pgvector:", given, [key])]
    named = [each for each in (url, prefix) if each in given]
    place = given[url].value if url in given else ""
    option = f"?collection_prefix={quote(given[prefix].value)}" if prefix in given else ""
    return [*values, _derived("index.url", f"qdrant:{place}{option}", given, [key, *named])]


def _embedder(given: Mapping[str, Given]) -> list[Given]:
    provider, model, dimension = (
        f"vector_memory.{name}" for name in ("embeddings.provider", "embeddings.model", "dimension")
    )
    if provider not in given and model not in given:
        return []
    chosen = _choice(given[provider], PROVIDERS) if provider in given else PROVIDERS["local"]
    defaults = {"model": chosen.model, "dimension": 256}
    keys = {"model": model, "dimension": dimension}
    read = {
        name: given[key].value for name, key in keys.items() if key in given and f"{{{name}}}" in chosen.url
    }
    made_of = [provider] * (provider in given) + [keys[name] for name in read]
    url = _derived("embedder.url", chosen.url.format(**(defaults | read)), given, made_of)
    return [url, *_set(given, {f"vector_memory.{key}": target for key, target in chosen.sets.items()})]


def _endpoint(given: Mapping[str, Given]) -> list[Given]:
    """Return the settings of the file search endpoint, which has the API of OpenAI; without a model, it has one of its
    own."""
    place = "builtins.file_search.embedding"
    if f"{place}.url" not in given:
        return []
    model = given.get(f"{place}.model")
    made_of = [f"{place}.url"] + [f"{place}.model"] * (model is not None)
    url = _derived("embedder.url", f"openai:{model.value if model else ''}", given, made_of)
    rest = {"url": "base_url", "dimension": "dimension", "batch_size": "batch_size"}
    return [url, *_set(given, {f"{place}.{key}": f"embedder.{name}" for key, name in rest.items()})]


def _session(given: Mapping[str, Given]) -> list[Given]:
    provider, model, timeout, chars = (
        f"VECTOR_EMBEDDING_{name}" for name in ("PROVIDER", "MODEL", "TIMEOUT_MS", "MAX_CHARS")
    )
    if provider not in given:
        return []
    template = _choice(given[provider], EMBEDDINGS)
    if "{model}" not in template:
        return [_derived("embedder.url", template, given, [provider])]
    name = given[model].value if model in given else PROVIDERS[given[provider].value].model
    values = [
        _derived("embedder.url", template.format(model=name), given, [provider] + [model] * (model in given))
    ]
    if timeout in given:
        values.append(_derived("embedder.timeout", given[timeout].value / 1000, given, [timeout]))
    if chars in given:
        most = max(LEAST_MAX_TOKENS, given[chars].value // CHARS_PER_TOKEN)
        values.append(_derived("embedder.max_input_tokens", most, given, [chars]))
    return values


def _episodic(given: Mapping[str, Given]) -> list[Given]:
    """Return the settings of fact extraction: off unless `memory.enabled`, then by the strategy, by default lazy."""
    enabled, strategy, interval, decay = (
        f"memory.{name}"
        for name in ("enabled", "extraction.strategy", "consolidation.interval", "decay.enabled")
    )
    values = []
    if enabled in given:
        on = given[enabled].value
        named = [strategy] if on and strategy in given else []
        value = "off" if not on else given[strategy].value if named else "lazy"
        values.append(_derived("facts.extraction", value, given, [enabled, *named]))
    if interval in given:
        values.append(_derived("facts.consolidation_hours", hours(given[interval].value), given, [interval]))
    if decay in given and not given[decay].value:
        values.append(_derived("search.recency", "off", given, [decay]))
    return [*values, *_set(given, {"memory.decay.half_life_days": "search.half_life_days"})]


def hours(duration: str) -> int:
    """Return a duration in whole hours, at least one; 0 stays 0."""
    number, unit = _DURATION.fullmatch(duration).groups()  # type: ignore[union-attr]
    seconds = int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}[unit]
    return max(1, round(seconds / 3_600)) if seconds else 0


def _set(given: Mapping[str, Given], table: Mapping[str, str]) -> list[Given]:
    """Return values of ours equal to those of the source keys; an empty text counts as not given."""
    return [
        _derived(target, given[key].value, given, [key])
        for key, target in table.items()
        if key in given and given[key].value != ""
    ]


CHECKED = {"uploadask.memory.memoryVectorDim": "must be the dimension of the embedder"}
"""Keys without effect, which are compared with the values in force when a folder is opened."""
RULES = (_same, _episodic, _backend, _file_search_backend, _embedder, _endpoint, _session)
"""Rules that derive values of ours from given source keys, by canonical name. A rule raises ConfigError for a backend
or a provider that this version does not have."""


def _derived(target: str, value: Any, given: Mapping[str, Given], made_of: list[str]) -> Given:
    first = given[made_of[0]]
    return Given(target, value, first.written, first.origin, tuple(made_of))


def _choice(given: Given, table: Mapping[str, Any]) -> Any:
    if given.value not in table:
        raise ConfigError(
            given.written, f"{given.value!r} is not in this version; use one of {', '.join(table)}"
        )
    return table[given.value]
