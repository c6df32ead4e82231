"""The settings by section, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memoranda.config.agent_sections import (
    OPERATOR_TENANT,
    Console,
    Facts,
    Mcp,
    Model,
    Prices,
    Responses,
    ServerKey,
    Sessions,
    Spending,
    Summarization,
    UploadAsk,
)
from memoranda.config.data_sections import (
    WEIGHTS,
    Database,
    Embedder,
    Files,
    Index,
    Jobs,
    Knowledge,
    Limits,
    Quotas,
    Readers,
    Search,
    Server,
    Words,
)
from memoranda.config.sources import Section, Text, Weight
from memoranda.errors import ConfigError

KeyList = Annotated[list[Any], Meta(description="a list of keys, each with a `name`, a `role` and a `key`")]
AgentList = Annotated[list[Any], Meta(description="a list of agent profiles, each with an `id` and a `name`")]


class Setting(msgspec.Struct, frozen=True):
    """One key in force: its value without secrets, where it comes from, and what to know about it."""

    key: str
    value: Any
    origin: str
    note: str = ""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set. `Config()` is the defaults; `config.load` reads and checks the rest."""

    data: Text = "./memoranda-data"
    """The folder everything is kept in; `:memory:` keeps nothing; `~` is the home folder. Only its owner may read it,
    and one process has it open. It is not used when rows, vectors, words and files are all elsewhere."""
    database: Database = Database()
    index: Index = Index()
    words: Words = Words()
    embedder: Embedder = Embedder()
    search: Search = Search()
    limits: Limits = Limits()
    server: Server = Server()
    keys: tuple[ServerKey, ...] = ()
    """Who may call the server; see `keys[]`."""
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
