"""One configuration: what it takes, what it refuses, and what it says then."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from memoranda.config import (
    Config,
    Embedder,
    Model,
    Responses,
    Setting,
    Summarization,
    explain,
    load,
    sources,
)
from memoranda.config.agent_sections import ServerKey
from memoranda.config.layers import RESERVED, nested, variable
from memoranda.config.sections import field_types, own_types, value_of
from memoranda.errors import ConfigError
from memoranda.providers.embeddings import open_embedder
from memoranda.responses.profiles import NewProfile, configured_profiles

DOCS = Path(__file__).parent.parent / "docs" / "guides" / "configuration.md"
OWN = own_types()
EPISODIC = {f"memory.{key}" for key in sources.EPISODIC}
VECTOR = {f"vector_memory.{key}" for key in sources.VECTOR}
SOURCES = EPISODIC | VECTOR | set(sources.OUTSIDE_MEMORY)


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def from_file(text: str, env: Mapping[str, str] | None = None, **overrides: object) -> Config:
    path = Path("memoranda.yaml")
    path.write_text(text)
    return load(env=env or {}, overrides=overrides)


def refusal(text: str, env: Mapping[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        from_file(text, env)
    return caught.value


def setting(config: Config, key: str) -> Setting:
    return next(each for each in explain(config) if each.key == key)


# What it takes


def test_nothing_given_is_the_defaults() -> None:
    assert load(env={}) == Config()
    assert {each.origin for each in explain(load(env={}))} == {"default"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "server:\n", "server: {}\n"])
def test_an_empty_file_or_section_is_the_defaults(text: str) -> None:
    assert from_file(text) == Config()


@pytest.mark.parametrize("key", [key for key in OWN if key not in ("keys", "agents")])
def test_every_default_may_be_written_in_file_and_environment(key: str) -> None:
    value = value_of(Config(), key)
    text = yaml.safe_dump(nested({key: value}))
    assert value_of(from_file(text), key) == value
    Path("memoranda.yaml").unlink()
    told = "null" if value is None else str(value)
    assert value_of(load(env={variable(key): told}), key) == value


def test_overrides_before_environment_before_file_before_default() -> None:
    text = "server: {port: 1, host: file, log_level: error}"
    env = {"MEMORANDA_SERVER__PORT": "2", "MEMORANDA_SERVER__HOST": "environment"}
    config = from_file(text, env, **{"server.port": 3})
    assert (config.server.port, config.server.host, config.server.log_level) == (3, "environment", "error")
    assert config.server.request_timeout == 30.0
    origins = {name: setting(config, f"server.{name}").origin for name in ("port", "host", "log_level")}
    assert origins == {
        "port": "override",
        "host": "environment MEMORANDA_SERVER__HOST",
        "log_level": "memoranda.yaml",
    }
    assert setting(config, "server.request_timeout").origin == "default"


def test_overrides_are_dotted_or_nested_and_take_paths(tmp_path: Path) -> None:
    config = load(
        env={}, overrides={"data": tmp_path, "search": {"candidates": 7}, "search.default_limit": 3}
    )
    assert (config.data, config.search.candidates, config.search.default_limit) == (str(tmp_path), 7, 3)


def test_the_file_is_the_argument_then_the_variable_then_the_usual_name() -> None:
    for name in ("argument", "variable", "memoranda"):
        Path(f"{name}.yaml").write_text(f"data: {name}")
    env = {"MEMORANDA_CONFIG": "variable.yaml"}
    assert load(Path("argument.yaml"), env).data == "argument"
    assert load(env=env).data == "variable"
    assert load(env={}).data == "memoranda"


def test_one_scope_weight_leaves_the_others() -> None:
    weights = from_file("search: {scope_weights: {user: 0.25}}").search.scope_weights
    assert weights == {**Config().search.scope_weights, "user": 0.25}
    assert Config().search.scope_weights["user"] == 0.9


def test_a_home_folder_is_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert from_file("data: ~/memory").data == "/home/someone/memory"
    assert from_file('data: ":memory:"').data == ":memory:"


def test_an_empty_variable_is_not_set() -> None:
    assert load(env={"MEMORANDA_SERVER__PORT": "", "MEMORANDA_CONFIG": ""}) == Config()


def test_reserved_variables_are_left_alone() -> None:
    Path("other.yaml").write_text("")
    env = dict.fromkeys(RESERVED, "other.yaml") | {"PATH": "/bin"}
    assert load(env=env | {"CONTEXT_SESSION_OF_SOMETHING_ELSE_ENTIRELY": "1"}) == Config()


def test_values_are_filled_from_the_environment() -> None:
    env = {"PORT": "99", "FOLDER": "/srv", "MEMORANDA_PART": "x"}
    config = from_file("data: ${FOLDER}/memory-${MEMORANDA_PART}\nserver: {port: '${PORT}'}", env)
    assert (config.data, config.server.port) == ("/srv/memory-x", 99)
    assert from_file("data: a$${FOLDER}$").data == "a${FOLDER}$"


# Server keys


def test_server_keys_take_the_secret_from_one_of_three_places() -> None:
    Path("secret").write_text("from-file\n")
    text = """keys:
      - {name: a, role: admin, key: written}
      - {name: b, role: service, key_env: MEMORANDA_KEY_B, tenant: acme}
      - {name: c, role: member, key_file: secret, user: ada}
      - {name: d, role: reader, key: "${D}"}"""
    config = from_file(text, {"MEMORANDA_KEY_B": "from-environment", "D": "filled"})
    assert [key.key for key in config.keys] == ["written", "from-environment", "from-file", "filled"]
    assert [(key.tenant, key.user) for key in config.keys[1:3]] == [("acme", None), ("default", "ada")]


def test_server_keys_from_a_variable() -> None:
    config = load(env={"MEMORANDA_KEYS": "[{name: ci, role: reader, key: s}]"})
    assert config.keys == (ServerKey(name="ci", role="reader", key="s"),)


@pytest.mark.parametrize(
    ("entry", "field", "says"),
    [
        ("{name: a, role: admin}", "keys[0]", "exactly one of `key`, `key_env` and `key_file`, and has none"),
        ("{name: a, role: admin, key: x, key_env: Y}", "keys[0]", "exactly one .*, not key and key_env"),
        ("{name: a, role: admin, key: '  '}", "keys[0].key", "is empty"),
        ("{name: a, role: admin, key_env: NOPE}", "keys[0].key_env", "variable `NOPE` is not set"),
        ("{name: a, role: admin, key_file: nope}", "keys[0].key_file", "nope cannot be read: No such file"),
        (
            "{name: a, role: root, key: x}",
            "keys[0].role",
            "must be one of admin, member, reader, service, not 'root'",
        ),
        ("{name: a, key: x}", "keys[0].role", "is missing; .*admin, service, member or reader"),
        ("{role: admin, key: x}", "keys[0].name", "is missing"),
        ("{name: a, rolle: admin, role: admin, key: x}", "keys[0].rolle", "did you mean `keys\\[0\\].role`"),
        ("word", "keys[0]", "is a section and takes `keys\\[0\\].key`"),
        ("{name: a, role: admin, key: x}, {name: a, role: admin, key: y}", "keys", "'a' is there twice"),
        (
            "{name: a, role: admin, key: x}, {name: b, role: admin, key: x}",
            "keys",
            "one secret is there twice",
        ),
    ],
)
def test_a_wrong_server_key_says_which_and_why(entry: str, field: str, says: str) -> None:
    wrong = refusal(f"keys: [{entry}]")
    assert wrong.field == field
    assert re.search(says, str(wrong))


def test_secrets_are_shown_nowhere() -> None:
    text = """
    keys: [{name: a, role: admin, key: hush-1}]
    vector_memory: {embeddings: {provider: local, api_key: hush-2}, pgvector: {conn_string: "postgresql://u:hush-3@h/d"}}
    builtins: {file_search: {qdrant: {url: "http://h/?api_key=hush-4"}}}
    embedder: {api_key: hush-5}
    """
    config = from_file(text)
    shown = repr(config) + repr(config.keys) + repr(config.embedder) + repr(explain(config))
    assert "hush" not in shown
    assert config.embedder.api_key == "hush-5"
    assert config.keys[0].key == "hush-1"
    assert config.sources["vector_memory.embeddings.api_key"].value == "hush-2"
    assert "postgresql://u:***@h/d" in shown
    assert "hush" not in str(refusal("keys: hush"))
    assert "hush" not in str(refusal("vector_memory: {embeddings: {api_key: [hush]}}"))
    assert "hush" not in str(refusal("database: {url: 'mysql://u:hush@h'}"))


# What it refuses


@pytest.mark.parametrize(
    ("text", "field", "says"),
    [
        ("embeder: {}", "embeder", "unknown key `embeder`; did you mean `embedder`?"),
        ("Server: {port: 1}", "Server", "did you mean `server`?"),
        ("server: {prot: 1}", "server.prot", "did you mean `server.port`?"),
        ("port: 1", "port", "did you mean `server.port`?"),
        ("search: {defaultLimit: 1}", "search.defaultLimit", "did you mean `search.default_limit`?"),
        ("search: {scope_weights: {usr: 1}}", "search.scope_weights.usr", "`search.scope_weights.user`?"),
        ("jobs: {qqqq: 1}", "jobs.qqqq", "known here: `jobs.lease_seconds`, `jobs.max_attempts`, `jobs.workers`"),
        ("embedder: hash", "embedder", "is a section and takes `embedder.api_key`, .*, not 'hash'"),
        ("server: {port: 65536}", "server.port", "must be a whole number between 0 and 65535, not 65536"),
        ("server: {port: -1}", "server.port", "between 0 and 65535, not -1"),
        ("server: {port: '1'}", "server.port", "must be a whole number"),
        ("server: {port: true}", "server.port", "must be a whole number .*, not True"),
        ("server: {port: null}", "server.port", "must be a whole number .*, not None"),
        ("server: {request_timeout: 0}", "server.request_timeout", "must be a number above 0, not 0"),
        ("server: {request_timeout: .inf}", "server.request_timeout", "must be a number above 0, not inf"),
        ("server: {log_level: loud}", "server.log_level", "must be one of debug, error, info, warning, not 'loud'"),
        ("server: {public_url: memory.test}", "server.public_url", "begins with http:// or https://, or null"),
        ("search: {default_threshold: high}", "search.default_threshold", "between 0 and 1, or null, not 'high'"),
        ("search: {default_threshold: 1.1}", "search.default_threshold", "a number between 0 and 1"),
        ("search: {default_threshold: .nan}", "search.default_threshold", "a number between 0 and 1"),
        ("search: {default_scope: room}", "search.default_scope", "must be one of .*channel.*, or null, not 'room'"),
        ("search: {dense_weight: -0.1}", "search.dense_weight", "must be a number of 0 or more"),
        ("search: {dense_weight: 0, words_weight: 0}", "search.dense_weight", "0 when `search.words_weight` is 0"),
        ("limits: {max_batch: 0}", "limits.max_batch", "must be a whole number of 1 or more"),
        ("data: ''", "data", "must be text that is not empty, not ''"),
        ("data: ${NOPE}", "data", "variable `NOPE` is not set; set it, or write the value in place of `\\${NOPE}`"),
        ("index: {url: 'milvus:'}", "index.url", "'milvus' is not in this version; use one of memory, pgvector"),
        ("words: {url: 'lucene:'}", "words.url", "use one of tantivy, fts5"),
        ("database: {url: 'mysql://h/d'}", "database.url", "use one of sqlite, postgresql"),
        ("database: {url: 'postgresql://h/d', url_file: x}", "database.url_file", "is there beside `database.url`"),
        ("embedder: {url: 'cohere:x'}", "embedder.url", "use one of local, hash, openai, gemini, ollama"),
        ("embedder: {base_url: here}", "embedder.base_url", "begins with http:// or https://, or null"),
        ("embedder: {timeout: 0}", "embedder.timeout", "must be a number above 0, not 0"),
        ("embedder: {api_key: x, api_key_file: y}", "embedder.api_key_file", "beside `embedder.api_key`; keep one"),
        ("model: {url: 'ftp://h/v1'}", "model.url", "'ftp' is not in this version; use one of .*https"),
        ("model: {url: gpu}", "model.url", "must be a URL such as"),
        ("model: {api_key: x, api_key_env: Y}", "model.api_key_env", "beside `model.api_key`; keep one"),
        ("model: {nmae: x}", "model.nmae", "did you mean `model.name`?"),
        ("responses: {file_min_score: 2}", "responses.file_min_score", "must be a number between 0 and 1, not 2"),
        ("summarization: {window_size: 0}", "summarization.window_size", "must be a whole number of 1 or more"),
        ("agents: {}", "agents", "must be a list of agent profiles"),
        ("embedder: {url: minilm}", "embedder.url", "must be `auto` or a URL such as `local:arctic-embed"),
        ("keys: {}", "keys", "must be a list of keys"),
        ("- a", "memoranda.yaml", "must hold `key: value` lines"),
        ("data: [", "memoranda.yaml", "is not valid YAML: line 1"),
        ("data: a\nserver: {}\ndata: b", "memoranda.yaml", "line 3: `data` is written twice; keep one"),
        ("server:\n  port: 1\n  port: 2", "memoranda.yaml", "line 3: `port` is written twice"),
        ("summarization: {strategy: sometimes}", "summarization.strategy", "one of eager, lazy, not 'sometimes'"),
        ("memory: {consolidation: {interval: daily}}", "memory.consolidation.interval", "a duration such as 24h"),
        ("uploadask: {memory: {topKMem: 3}}", "uploadask.memory.topKMem", "did you mean `uploadask.memory.topKMems`?"),
        ("builtins: {file_search: {chunking: {chunk_size: 50, chunk_overlap: 50}}}",
         "builtins.file_search.chunking.chunk_overlap", "overlap \\(50\\) must be at most half of its size \\(50\\)"),
    ],
)  # fmt: skip
def test_a_wrong_file_names_the_key_and_the_fix(text: str, field: str, says: str) -> None:
    wrong = refusal(text)
    assert wrong.field == field
    assert str(wrong).startswith(f"{field}: ")
    assert re.search(says, str(wrong))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MEMORANDA_SERVER__PORT", "many", "must be a whole number between 0 and 65535, not 'many'"),
        ("MEMORANDA_SERVER_PORT", "1", "did you mean `MEMORANDA_SERVER__PORT`?"),
        ("MEMORANDA_SERVR__PORT", "1", "did you mean `MEMORANDA_SERVER__PORT`?"),
        ("MEMORANDA_PORT", "1", "did you mean `MEMORANDA_SERVER__PORT`?"),
        ("MEMORANDA_DATTA", "1", "did you mean `MEMORANDA_DATA`?"),
        ("MEMORANDA_QQ", "1", "see `docs/reference/configuration.md`"),
        ("MEMORANDA_KEYS", "[", "is not valid YAML"),
        ("MEMORANDA_KEYS", "word", "must be a list of keys"),
        ("CONTEXT_SESSION_GAP_MINUTE", "1", "did you mean `CONTEXT_SESSION_GAP_MINUTES`?"),
        ("ANTWORT_FILESEARCH_MAX_RESULT", "1", "did you mean `ANTWORT_FILESEARCH_MAX_RESULTS`?"),
        ("CONTEXT_SESSION_GAP_MINUTES", "0", "must be a number above 0, not '0'"),
        ("ANTWORT_SUMMARIZATION_STRATEGY", "late", "must be one of eager, lazy, not 'late'"),
        (
            "VECTOR_EMBEDDING_PROVIDER",
            "cohere",
            "'cohere' is not in this version; use one of deterministic, openai",
        ),
    ],
)
def test_a_wrong_variable_is_named_with_the_fix(name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)) as caught:
        load(env={name: value})
    assert caught.value.field == name


@pytest.mark.parametrize("name", ["nope.yaml", "."])
def test_a_file_that_cannot_be_read_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(name)}: cannot be read: "):
        load(Path(name), {})
    with pytest.raises(ConfigError, match="cannot be read"):
        load(env={"MEMORANDA_CONFIG": name})


def test_all_mistakes_are_told_at_once_one_line_each() -> None:
    wrong = refusal("server: {port: x}\nembeder: {}\ndata: ${NOPE}", {"MEMORANDA_QQ": "1"})
    first, *lines = str(wrong).splitlines()
    assert first == "4 mistakes in the configuration"
    assert [line.split(":")[0].strip() for line in lines] == [
        "server.port",
        "embeder",
        "data",
        "MEMORANDA_QQ",
    ]


# The edits of a slipping finger: one letter dropped, doubled, swapped or hit beside.
@st.composite
def slips(draw: st.DrawFn, word: str) -> str:
    at = draw(st.integers(0, len(word) - 1))
    letter = draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz"))
    forms = [
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at:],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    ]
    return draw(st.sampled_from(forms))


@given(data=st.data(), key=st.sampled_from(sorted(OWN.keys() | SOURCES)))
def test_a_slip_in_any_key_is_refused_and_named(data: Any, key: str) -> None:
    parts = key.split(".")
    at = data.draw(st.integers(0, len(parts) - 1))
    parts[at] = data.draw(slips(parts[at]))
    wrong_key = ".".join(parts)
    prefixes = {".".join(each.split(".")[: at + 1]) for each in OWN.keys() | SOURCES}
    assume(parts[at] and ".".join(parts[: at + 1]) not in prefixes)
    with pytest.raises(ConfigError) as caught:
        load(env={}, overrides={wrong_key: 1})
    assert caught.value.field == ".".join(parts[: at + 1])
    assert f"`{caught.value.field}`" in str(caught.value)


@given(data=st.data(), name=st.sampled_from(sorted([*map(variable, OWN), *sources.ENVIRONMENT])))
def test_a_slip_in_any_variable_is_refused_and_named(data: Any, name: str) -> None:
    prefix = next(each for each in ("MEMORANDA_", *sources.PREFIXES) if name.startswith(each))
    wrong_name = prefix + data.draw(slips(name.removeprefix(prefix))).upper()
    known = {*map(variable, OWN), *sources.ENVIRONMENT} | RESERVED
    assume(wrong_name not in known and wrong_name != prefix)
    with pytest.raises(ConfigError) as caught:
        load(env={wrong_name: "1"})
    assert caught.value.field == wrong_name


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
), st.sampled_from(sorted(OWN.keys() | SOURCES)))  # fmt: skip
def test_any_value_is_taken_or_refused_with_its_key(value: Any, key: str) -> None:
    try:
        load(env={}, overrides={key: value})
    except ConfigError as wrong:
        told = str(wrong)
    else:
        return
    assert key.split(".")[-1] in told


# The key names of other systems


def test_the_two_memory_blocks_are_told_apart() -> None:
    vector = from_file("memory: {embeddings: {provider: hash}, enabled: true}")
    assert set(vector.sources) == {"vector_memory.embeddings.provider", "vector_memory.enabled"}
    episodic = from_file("memory: {enabled: true, decay: {half_life_days: 30}}")
    assert set(episodic.sources) == {"memory.enabled", "memory.decay.half_life_days"}
    both = from_file("memory: {enabled: true}\nvector_memory: {backend: memory}")
    assert set(both.sources) == {"memory.enabled", "vector_memory.backend"}


def test_a_mixed_memory_block_is_refused() -> None:
    wrong = refusal("memory: {backend: memory, retrieval: {max_results: 3}}")
    assert wrong.field == "memory.retrieval"
    assert "rename the block with those two to `vector_memory`" in str(wrong)
    wrong = refusal("memory: {enabled: true, search: {default_limit: 3}}")
    assert wrong.field == "memory.search"
    assert "move it to `vector_memory`" in str(wrong)


@pytest.mark.parametrize("block", ["memory", "vector_memory"])
def test_vector_memory_sets_search_index_and_embedder(block: str) -> None:
    config = from_file(f"""
    {block}:
      backend: memory
      dimension: 128
      embeddings: {{provider: hash, model: unused}}
      search: {{default_limit: 4, default_threshold: 0.7, default_scope: session}}
    """)
    assert config.search.default_limit == 4
    assert (config.search.default_threshold, config.search.default_scope) == (0.7, "session")
    assert (config.index.url, config.embedder.url) == ("memory:", "hash:128")
    assert setting(config, f"{block}.search.default_limit").note == "in force as search.default_limit"
    assert setting(config, f"{block}.dimension").note == "in force as embedder.url"
    assert setting(config, f"{block}.embeddings.model").note == "accepted, no effect yet"
    assert setting(config, "search.default_limit").origin == f"memoranda.yaml ({block}.search.default_limit)"


def test_providers_make_embedder_urls() -> None:
    assert from_file("vector_memory: {embeddings: {provider: local}}").embedder.url == "local:arctic-embed-s"
    assert from_file("vector_memory: {embeddings: {model: x}}").embedder.url == "local:x"
    usual = {
        "openai": "text-embedding-3-small",
        "gemini": "gemini-embedding-001",
        "ollama": "nomic-embed-text",
    }
    for provider, model in usual.items():
        config = from_file(f"vector_memory: {{embeddings: {{provider: {provider}}}}}")
        assert config.embedder.url == f"{provider}:{model}"
    assert load(env={"VECTOR_EMBEDDING_PROVIDER": "deterministic"}).embedder.url == "hash:256"


def test_vector_memory_sets_what_its_provider_takes() -> None:
    given = """
    vector_memory:
      dimension: 512
      embeddings: {provider: %s, api_key: "k", model: m, project_id: acme, location: europe-west4,
                   ollama_url: "http://gpu:11434"}
    """

    def asked(provider: str) -> tuple[Embedder, dict[str, str]]:
        config = from_file(given % provider)
        return config.embedder, {key.rpartition(".")[2]: each.note for key, each in config.sources.items()}

    remote = {"api_key": "k", "dimension": 512}
    openai, notes = asked("openai")
    assert openai == Embedder(url="openai:m", **remote)
    assert notes["api_key"] == "in force as embedder.api_key"
    assert notes["ollama_url"] == notes["project_id"] == "accepted, no effect yet"
    gemini, notes = asked("gemini")
    assert gemini == Embedder(url="gemini:m", project_id="acme", location="europe-west4", **remote)
    assert notes["location"] == "in force as embedder.location"
    ollama, notes = asked("ollama")
    assert ollama == Embedder(url="ollama:m", base_url="http://gpu:11434", **remote)
    assert notes["ollama_url"] == "in force as embedder.base_url"
    local, notes = asked("local")
    assert local == Embedder(url="local:m")
    assert notes["api_key"] == notes["dimension"] == "accepted, no effect yet"


def test_empty_texts_of_the_vector_memory_set_nothing() -> None:
    text = "vector_memory: {embeddings: {provider: gemini, api_key: '', project_id: '', location: ''}}"
    assert from_file(text).embedder == Embedder(url="gemini:gemini-embedding-001")


def test_file_search_sets_an_endpoint_that_speaks_as_openai_does() -> None:
    config = from_file(BLOCKS["file_search"])
    assert config.embedder == Embedder(
        url="openai:", base_url="http://llm-predictor:8080/v1/embeddings", dimension=768, batch_size=32
    )
    assert setting(config, "builtins.file_search.embedding.model").note == "in force as embedder.url"
    assert (
        setting(config, "builtins.file_search.embedding.batch_size").note == "in force as embedder.batch_size"
    )
    opened = open_embedder(config.embedder.url, settings=config.embedder)
    assert (opened.model, opened.dim) == ("default@llm-predictor:8080", 768)
    named = from_file("builtins: {file_search: {embedding: {url: 'http://h/v1', model: bge-m3}}}")
    assert (named.embedder.url, named.embedder.base_url) == ("openai:bge-m3", "http://h/v1")
    assert from_file("builtins: {file_search: {embedding: {dimension: 768}}}").embedder == Embedder()


def test_chat_sessions_set_the_embedder_its_time_and_its_input() -> None:
    env = {"VECTOR_EMBEDDING_MODEL": "text-embedding-3-large", "VECTOR_EMBEDDING_TIMEOUT_MS": "2500",
           "VECTOR_EMBEDDING_MAX_CHARS": "8000"}  # fmt: skip
    config = load(env=env | {"VECTOR_EMBEDDING_PROVIDER": "openai"})
    assert config.embedder == Embedder(
        url="openai:text-embedding-3-large", timeout=2.5, max_input_tokens=2000
    )
    assert load(env={"VECTOR_EMBEDDING_PROVIDER": "openai"}).embedder.url == "openai:text-embedding-3-small"
    small = {"VECTOR_EMBEDDING_PROVIDER": "openai", "VECTOR_EMBEDDING_MAX_CHARS": "10"}
    assert load(env=small).embedder.max_input_tokens == 16
    assert load(env=env | {"VECTOR_EMBEDDING_PROVIDER": "deterministic"}).embedder == Embedder(url="hash:256")


def test_two_systems_that_name_two_embedders_are_told_apart() -> None:
    text = "vector_memory: {embeddings: {provider: hash}}\nbuiltins: {file_search: {embedding: {url: 'http://h/v1'}}}"
    wrong = refusal(text)
    assert wrong.field == "builtins.file_search.embedding.url"
    assert "says 'openai:', but `vector_memory.embeddings.provider` says 'hash:256'; keep one" in str(wrong)


def test_a_key_of_the_embedder_may_be_in_a_variable_of_any_name() -> None:
    env = {"MEMORANDA_MY_EMBEDDING_KEY": "k"}
    assert from_file("embedder: {api_key_env: MEMORANDA_MY_EMBEDDING_KEY}", env).embedder.api_key is None
    with pytest.raises(ConfigError, match="MEMORANDA_MY_EMBEDDING_KEY"):
        from_file("", env)


def test_backends_make_index_and_database_urls() -> None:
    def urls(text: str) -> tuple[str | None, str, str | None]:
        config = from_file(text)
        return config.index.url, config.database.url, config.database.url_file

    paths = (
        "sqlite_vec: {path: /m.db}, lancedb: {path: /m.lance}, pgvector: {conn_string: 'postgresql://h/d'}"
    )
    for backend, made in (
        ("memory", ("memory:", "sqlite:", None)),
        ("sqlite-vec", ("sqlitevec:/m.db", "sqlite:", None)),
        ("lancedb", ("lancedb:/m.lance", "sqlite:", None)),
        ("pgvector", ("pgvector:", "postgresql://h/d", None)),
    ):
        assert urls(f"vector_memory: {{backend: {backend}, {paths}}}") == made
    assert urls("vector_memory: {backend: sqlite-vec}") == ("sqlitevec:", "sqlite:", None)
    search = "builtins: {file_search: {vector_backend: %s, pgvector: {dsn_file: /run/dsn}, qdrant: {url: 'http://q:1'}}}"
    assert urls(search % "pgvector") == ("pgvector:", "sqlite:", "/run/dsn")
    assert urls(search % "qdrant") == ("qdrant:http://q:1", "sqlite:", "/run/dsn")
    assert urls("dsn_file: /run/dsn") == (None, "sqlite:", "/run/dsn")


@pytest.mark.parametrize("backend", ["weaviate", "faiss"])
def test_a_backend_that_is_not_there_lists_those_that_are(backend: str) -> None:
    text = f"memory: {{backend: {backend}, embeddings: {{provider: cohere}}}}"
    _, first, second = str(refusal(text)).splitlines()
    assert (
        first.strip()
        == f"memory.backend: {backend!r} is not in this version; use one of memory, sqlite-vec, lancedb, pgvector"
    )
    assert (
        second.strip() == "memory.embeddings.provider: 'cohere' is not in this version;"
        " use one of local, hash, openai, gemini, ollama"
    )


def test_a_source_key_and_ours_that_disagree_are_both_named() -> None:
    wrong = refusal("vector_memory: {search: {default_limit: 4}}\nsearch: {default_limit: 5}")
    assert wrong.field == "vector_memory.search.default_limit"
    assert "says 4, but `search.default_limit` says 5; keep one of the two" in str(wrong)
    wrong = refusal("memory: {backend: memory, dimension: 3}\nvector_memory: {dimension: 4}")
    assert "`memory.dimension`" in str(wrong)
    assert wrong.field == "vector_memory.dimension"
    config = from_file("vector_memory: {search: {default_limit: 4}}\nsearch: {default_limit: 4}")
    assert config.search.default_limit == 4


def test_a_later_layer_overrules_a_source_key() -> None:
    env = {"MEMORANDA_SEARCH__DEFAULT_LIMIT": "9"}
    config = from_file("vector_memory: {search: {default_limit: 4}}", env)
    assert config.search.default_limit == 9
    note = setting(config, "vector_memory.search.default_limit").note
    assert note.startswith("overruled by MEMORANDA_SEARCH__DEFAULT_LIMIT")


@pytest.mark.parametrize(
    ("text", "memory", "indexed"),
    [
        ("vector_memory: {enabled: false}", False, False),
        ("vector_memory: {enabled: false, indexing: {auto_index_messages: true}}", False, False),
        ("vector_memory: {enabled: true, indexing: {auto_index_messages: false}}", True, False),
        ("vector_memory: {enabled: true}", True, True),
        ("memory: {backend: memory, enabled: false}", False, False),
    ],
)
def test_without_the_vector_memory_nothing_is_taken_from_it_or_indexed(
    text: str, memory: bool, indexed: bool
) -> None:
    config = from_file(text)
    assert (config.responses.memory, config.sessions.index_messages) == (memory, indexed)
    assert "in force as" in config.sources["vector_memory.enabled"].note


def test_keys_for_later_are_kept_and_said_to_do_nothing() -> None:
    text = "memory: {extraction: {strategy: lazy}}"
    config = from_file(text, {"VECTOR_EMBEDDING_MODEL": "any"})
    assert {key: given.value for key, given in config.sources.items()} == {
        "memory.extraction.strategy": "lazy",
        "VECTOR_EMBEDDING_MODEL": "any",
    }
    assert {given.note for given in config.sources.values()} == {"accepted, no effect yet"}
    assert setting(config, "VECTOR_EMBEDDING_MODEL").origin == "environment VECTOR_EMBEDDING_MODEL"


# The language model, responses and summaries


def test_the_short_variables_name_the_model() -> None:
    env = {
        "MEMORANDA_MODEL_URL": "http://gpu:8000/v1",
        "MEMORANDA_MODEL": "qwen3",
        "MEMORANDA_MODEL_API_KEY": "hush",
    }
    config = load(env=env)
    assert config.model == Model(url="http://gpu:8000/v1", name="qwen3", api_key="hush")
    assert setting(config, "model.url").origin == "environment MEMORANDA_MODEL_URL"
    assert "hush" not in repr(explain(config)) + repr(config) + repr(config.model)
    assert load(env=env | {"MEMORANDA_MODEL__NAME": "qwen3"}).model == config.model
    assert from_file("model: {name: other}", env).model.name == "qwen3"


@pytest.mark.parametrize(
    ("env", "field", "says"),
    [
        ({"MEMORANDA_MODEL": "a", "MEMORANDA_MODEL__NAME": "b"}, "MEMORANDA_MODEL",
         "says 'a', but `MEMORANDA_MODEL__NAME` says 'b'; keep one of the two"),
        ({"MEMORANDA_MODEL_API_KEY": "hush", "MEMORANDA_MODEL__API_KEY": "hush too"}, "MEMORANDA_MODEL_API_KEY",
         "says '***', but `MEMORANDA_MODEL__API_KEY` says '***'"),
        ({"MEMORANDA_MODEL_API_KEY": "hush", "MEMORANDA_MODEL__API_KEY_FILE": "/key"}, "MEMORANDA_MODEL__API_KEY_FILE",
         "is there beside `MEMORANDA_MODEL_API_KEY`; keep one of the two"),
        ({"MEMORANDA_MODEL_URL": "gpu"}, "MEMORANDA_MODEL_URL", "must be a URL such as `http://localhost:8000/v1`"),
        ({"MEMORANDA_MODEL_URL": "gpu:8000/v1"}, "MEMORANDA_MODEL_URL", "names no protocol; write http://gpu:8000/v1"),
        ({"MEMORANDA_MODEL_NAME": "a"}, "MEMORANDA_MODEL_NAME", "did you mean `MEMORANDA_MODEL__NAME`?"),
    ],
)  # fmt: skip
def test_variables_of_the_model_that_disagree_are_refused(env: dict[str, str], field: str, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)) as caught:
        load(env=env)
    assert caught.value.field == field
    assert "hush" not in str(caught.value)


def test_a_variable_that_holds_the_models_key_may_have_any_name() -> None:
    env = {"MEMORANDA_MY_MODEL_KEY": "k"}
    assert from_file("model: {api_key_env: MEMORANDA_MY_MODEL_KEY}", env).model.api_key is None


def test_file_search_sets_what_a_response_takes_from_files() -> None:
    env = {"ANTWORT_FILESEARCH_MIN_SCORE": "0.25", "ANTWORT_FILESEARCH_MAX_RESULTS": "7",
           "ANTWORT_FILESEARCH_CONTEXT_BUDGET": "900"}  # fmt: skip
    config = load(env=env)
    assert config.responses == Responses(file_results=7, file_min_score=0.25, file_tokens=900)
    assert setting(config, "ANTWORT_FILESEARCH_MIN_SCORE").note == "in force as responses.file_min_score"
    block = "enabled: false, search: {max_results: 3, min_score: 0, context_token_budget: 1}"
    search = f"builtins: {{file_search: {{{block}}}}}"
    assert from_file(search).responses == Responses(
        file_results=3, file_min_score=0, file_tokens=1, file_search=False
    )
    wrong = refusal(f"{search}\nresponses: {{file_results: 4}}")
    assert "says 3, but `responses.file_results` says 4; keep one of the two" in str(wrong)


def test_the_episodic_block_sets_what_a_response_takes_from_memory() -> None:
    config = from_file("memory: {enabled: true, retrieval: {max_results: 3, min_score: 0.2}}")
    assert config.responses == Responses(memory_results=3, memory_min_score=0.2)
    assert setting(config, "memory.retrieval.min_score").note == "in force as responses.memory_min_score"
    assert setting(config, "memory.enabled").note == "in force as facts.extraction"


@pytest.mark.parametrize(
    ("block", "key", "value"),
    [
        ("{enabled: true}", "facts.extraction", "lazy"),
        ("{enabled: true, extraction: {strategy: eager}}", "facts.extraction", "eager"),
        ("{enabled: false, extraction: {strategy: eager}}", "facts.extraction", "off"),
        ("{extraction: {strategy: eager, model: small}}", "facts.extraction", "off"),
        ("{extraction: {strategy: eager, model: small}}", "facts.model", "small"),
        ("{consolidation: {interval: 2d}}", "facts.consolidation_hours", 48),
        ("{consolidation: {interval: 90m}}", "facts.consolidation_hours", 2),
        ("{consolidation: {interval: 0h}}", "facts.consolidation_hours", 0),
        ("{decay: {enabled: false}}", "facts.decay", False),
        ("{decay: {enabled: false}}", "search.recency", "off"),
        ("{decay: {half_life_days: 30}}", "search.half_life_days", 30.0),
    ],
)
def test_the_episodic_block_sets_what_becomes_of_facts(block: str, key: str, value: Any) -> None:
    assert value_of(from_file(f"memory: {block}"), key) == value


def test_summaries_are_set_by_file_and_by_the_variables_of_their_source() -> None:
    env = {"ANTWORT_SUMMARIZATION_ENABLED": "true", "ANTWORT_SUMMARIZATION_WINDOW_SIZE": "6",
           "ANTWORT_SUMMARIZATION_STRATEGY": "eager", "ANTWORT_SUMMARIZATION_TOKEN_THRESHOLD": "99",
           "ANTWORT_SUMMARIZATION_MAX_TOKENS": "50"}  # fmt: skip
    wanted = Summarization(
        enabled=True, strategy="eager", token_threshold=99, window_size=6, summary_max_tokens=50
    )
    assert load(env=env).summarization == wanted
    config = from_file("summarization: {window_size: 4, model: ''}", env)
    assert config.summarization == wanted
    assert config.sources == {}
    assert from_file("summarization: {model: small}").summarization.model == "small"


# Agents

SUPPORT = """
agents:
  - id: agent_support
    name: Support
    instructions: You help customers of {{company}}.
    tools:
      - {type: file_search, vector_store_ids: [vs_1]}
      - {type: mcp, server_label: t, server_url: "http://u:hush-1@h", authorization: "${TOKEN}", headers: {x: hush-3}}
    memory: {episodic: true, summarization: true}
"""


def test_agents_are_profiles_with_an_id() -> None:
    config = from_file(SUPPORT, {"TOKEN": "hush-2"})
    (profile,) = configured_profiles(config)
    assert (profile.id, profile.name, profile.read_only) == ("agent_support", "Support", True)
    assert profile.memory is not None
    assert profile.memory.episodic is profile.memory.summarization is True
    assert profile.tools[1]["authorization"] == "hush-2"
    assert setting(config, "agents").value == ["agent_support: Support"]
    assert "hush" not in repr(explain(config)) + repr(config)
    env = {"MEMORANDA_AGENTS": "[{id: agent_a, name: A}]"}
    assert [each["name"] for each in from_file("", env).agents] == ["A"]


@pytest.mark.parametrize(
    ("entry", "field", "says"),
    [
        ("word", "agents[0]", "must be an agent profile: a mapping with an `id` and a `name`"),
        ("{name: A}", "agents[0].id", "must be agent_ and then"),
        ("{id: support, name: A}", "agents[0].id", "such as agent_support"),
        ("{id: agent_a}", "agents[0].name", "is required"),
        ("{id: agent_a, name: ''}", "agents[0].name", "must hold some text, at most 256 characters"),
        ("{id: agent_a, nam: A, name: A}", "agents[0].nam", "did you mean `name`?"),
        ("{id: agent_a, name: A, temperature: hot}", "agents[0].temperature", "must be a number or null"),
        ("{id: agent_a, name: A, temperature: 3}", "agents[0].temperature", "must be between 0 and 2"),
        ("{id: agent_a, name: A, memory: {episodic: perhaps}}", "agents[0].memory.episodic", "must be true or false"),
        ("{id: agent_a, name: A, tools: [{type: memory_search}, {type: code}]}", "agents[0].tools[1].type",
         "must be one of function, custom, file_search, mcp"),
        ("{id: agent_a, name: A, tools: [{type: file_search}]}", "agents[0].tools[0].vector_store_ids", "is required"),
        ("{id: agent_a, name: A, tools: [{type: mcp, server_label: a, server_url: here}]}",
         "agents[0].tools[0].server_url", "https?"),
        ("{id: agent_a, name: A, variables: {a b: c}}", "agents[0].variables.a b", "letters, digits and _"),
        ("{id: agent_a, name: A}, {id: agent_a, name: B}", "agents", "'agent_a' is there twice"),
        ("{id: agent_a, name: A}, {id: agent_b, name: A}", "agents", "'A' is there twice; each profile needs its own"),
    ],
)  # fmt: skip
def test_a_wrong_agent_says_which_and_why(entry: str, field: str, says: str) -> None:
    wrong = refusal(f"agents: [{entry}]")
    assert wrong.field == field
    assert says in str(wrong)


def test_a_list_in_a_variable_is_yaml() -> None:
    env = {"MEMORANDA_RESPONSES__MCP_HOSTS": "[mcp.example.com, localhost]"}
    assert load(env=env).responses.mcp_hosts == ["mcp.example.com", "localhost"]


BLOCKS = {
    "file_search": """
builtins:
  file_search:
    enabled: true
    vector_backend: pgvector
    embedding: {url: "http://llm-predictor:8080/v1/embeddings", model: "", dimension: 768, batch_size: 32}
    chunking: {strategy: fixed, chunk_size: 512, chunk_overlap: 50}
    search: {max_results: 10, min_score: 0.5, context_token_budget: 4000}
    pgvector: {dsn_file: /run/secrets/postgres/dsn}
    qdrant: {url: "http://qdrant:6333", collection_prefix: antwort_}
memory:
  enabled: false
  extraction: {model: "", strategy: lazy}
  retrieval: {max_results: 10, min_score: 0.6}
  consolidation: {interval: 24h}
  decay: {enabled: true, half_life_days: 90}
summarization: {enabled: false, strategy: lazy, token_threshold: 8000, window_size: 10,
                summary_max_tokens: 500, model: ""}
retention:
  vector_stores: {max_storage_bytes: 10737418240, max_files_per_store: 1000, max_file_size_bytes: 52428800}
  memory: {max_entries: 10000, auto_archive_days: 180}
""",
    "vector": """
memory:
  enabled: true
  backend: memory
  dimension: 1536
  sqlite_vec: {path: ~/.nexus/memory.db}
  lancedb: {path: ~/.nexus/memory.lance}
  pgvector: {conn_string: "${DATABASE_URL}"}
  embeddings: {provider: local, api_key: "${OPENAI_API_KEY}", model: arctic-embed-s, project_id: my-project,
               location: us-central1, ollama_url: "http://localhost:11434"}
  indexing: {auto_index_messages: true, min_content_length: 10, max_content_length: 0, batch_size: 100,
             allowed_roles: ["user", "assistant"]}
  search: {default_limit: 10, default_threshold: 0.7, default_scope: session}
""",
}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_blocks_of_the_other_systems_are_taken_whole(name: str) -> None:
    env = {"DATABASE_URL": "postgresql://h/d", "OPENAI_API_KEY": "k"}
    config = from_file(BLOCKS[name], env)
    wanted = EPISODIC | {key for key in SOURCES if key.startswith(("builtins", "retention"))}
    assert set(config.sources) == (VECTOR if name == "vector" else wanted)


# The page about it


def rows() -> dict[str, str]:
    """The keys and variables that the tables of the guide describe, with the text of the second column."""
    return dict(re.findall(r"^\| `([^`]+)` \| (.*?) \|", DOCS.read_text(), re.MULTILINE))


def test_every_key_that_is_not_ours_is_documented_and_every_documented_key_exists() -> None:
    agents = {f"agents[].{name}" for name in ("id", *field_types(NewProfile))}
    assert set(rows()) == agents | SOURCES | set(sources.ENVIRONMENT) | RESERVED


def test_the_example_of_the_page_loads() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert examples
    for text in examples:
        from_file(
            text,
            {
                name: name.lower()
                for name in ("MEMORANDA_CI_KEY", "ACME_KEY", "TICKETS_TOKEN")
                if name in text
            },
        )


def test_reading_no_file_needs_neither_yaml_nor_numpy() -> None:
    program = """
import sys, types, pathlib
package = types.ModuleType("memoranda")
package.__path__ = [sys.argv[1]]
sys.modules["memoranda"] = package
from memoranda.config import load
load(env={})
print(*sorted({"yaml", "numpy", "pydantic", "onnxruntime"} & set(sys.modules)))
"""
    source = Path(sources.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", program, source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
