"""Configuration: a YAML file and the environment, validated as a whole before anything starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from memoranda.config.agent_sections import Model, Responses, ServerKey, Summarization
from memoranda.config.data_sections import Database, Embedder, Index, Jobs, Limits, Search, Server, Words
from memoranda.config.keys import masked
from memoranda.config.layers import gather
from memoranda.config.sections import Config, Setting, own_types, value_of

__all__ = [
    "Config",
    "Database",
    "Embedder",
    "Index",
    "Jobs",
    "Limits",
    "Model",
    "Responses",
    "Search",
    "Server",
    "ServerKey",
    "Setting",
    "Summarization",
    "Words",
    "explain",
    "load",
]


def load(
    path: Path | None = None,
    env: Mapping[str, str] = os.environ,
    overrides: Mapping[str, object] | None = None,
) -> Config:
    """Return the configuration in force: overrides before environment before file before defaults.

    The file is `path`, else the one `MEMORANDA_CONFIG` names, else `./memoranda.yaml` when it is there. `overrides` are
    keyed by dotted key (`server.port`), or nested like the file.

    Raises:
        ConfigError: anything is wrong; one line for each mistake, naming the key and the fix.
    """
    return gather(path, env, overrides or {})


def explain(config: Config) -> list[Setting]:
    """Return every key of ours with its value and origin, then the given source keys and their effect.

    Secrets are masked.
    """
    own = [Setting(key, _listed(config, key), config.origins.get(key, "default")) for key in own_types()]
    theirs = [
        Setting(given.key, masked(given.key, given.value), given.origin, given.note)
        for given in config.sources.values()
    ]
    return own + theirs


def _listed(config: Config, key: str) -> object:
    if key == "keys":
        return [f"{each.name}: {each.role} in tenant {each.tenant}" for each in config.keys]
    if key == "agents":
        return [f"{each['id']}: {each['name']}" for each in config.agents]
    return masked(key, value_of(config, key))
