"""Validation across values: URLs, server keys, values that conflict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from memoranda.clock import zone_named
from memoranda.config.agent_sections import ServerKey
from memoranda.config.data_sections import Knowledge, Search
from memoranda.config.keys import checked, leaves
from memoranda.config.sections import field_types
from memoranda.config.sources import Given
from memoranda.errors import ConfigError, InvalidInput

SCHEMES = {
    "database.url": "memoranda.storage.sql:DATABASES",
    "index.url": "memoranda.indexes.vector:INDEXES",
    "words.url": "memoranda.indexes.keyword:WORDS",
    "embedder.url": "memoranda.providers.embeddings:EMBEDDERS",
    "files.url": "memoranda.storage.blobs:BLOBS",
    "model.url": "memoranda.providers.chat:MODELS",
}
"""The tables of known schemes of URLs; imported only if the URL is not the default."""
PROFILES = "memoranda.responses.profiles"
"""The module that validates agent profiles; imported only if there is one."""


def check_urls(own: Mapping[str, Given], problems: list[ConfigError]) -> None:
    """Add a problem for each backend URL whose scheme this version does not have."""
    for key, place in SCHEMES.items():
        if key not in own or own[key].value is None:
            continue
        module, table = place.split(":")
        known = getattr(import_module(module), table)
        url = own[key].value
        scheme, _, rest = url.partition(":")
        if scheme not in known:
            says = f"{scheme!r} is not in this version; use one of {', '.join(known)}"
            if rest[:1].isdigit():
                says = f"names no protocol; write http://{url} or https://{url}"
            problems.append(ConfigError(own[key].written, says))


def check_together(own: Mapping[str, Given], problems: list[ConfigError]) -> None:
    """Add a problem for each pair of values that conflict."""
    default = Search()
    dense, words = (
        own[key].value if (key := f"search.{name}") in own else getattr(default, name)
        for name in ("dense_weight", "words_weight")
    )
    if dense == words == 0:
        problems.append(ConfigError("search.dense_weight", "must be above 0 when `search.words_weight` is 0"))
    if (zone := own.get("sessions.time_zone")) is not None and zone.value is not None:
        _check_zone(zone.value, zone.written, problems)
    for section in ("embedder", "model"):
        ways = [f"{section}.{way}" for way in ("api_key", "api_key_env", "api_key_file")]
        if len(given := [way for way in ways if way in own and own[way].value is not None]) > 1:
            says = f"is there beside `{own[given[0]].written}`; keep one of the two"
            problems.append(ConfigError(own[given[1]].written, says))
    for first, second in (("database.url", "database.url_file"),):
        if first in own and second in own and own[second].value is not None:
            says = f"is there beside `{own[first].written}`; keep one of the two"
            problems.append(ConfigError(own[second].written, says))
    knowledge = Knowledge()
    size, overlap = (
        own[key].value if (key := f"knowledge.{name}") in own else getattr(knowledge, name)
        for name in ("chunk_size", "chunk_overlap")
    )
    if overlap > size // 2:
        wrong = own.get("knowledge.chunk_overlap") or own["knowledge.chunk_size"]
        says = f"a chunk's overlap ({overlap}) must be at most half of its size ({size})"
        problems.append(ConfigError(wrong.written, says))


def _check_zone(name: str, key: str, problems: list[ConfigError]) -> None:
    try:
        zone_named(name)
    except ValueError as wrong:
        problems.append(ConfigError(key, str(wrong)))


def agent_profiles(given: Given, problems: list[ConfigError]) -> tuple[dict[str, Any], ...]:
    """Return the agent profiles as written, validated by their module."""
    profiles: list[dict[str, Any]] = []
    for at, entry in enumerate(given.value):
        name = f"{given.written}[{at}]"
        try:
            import_module(PROFILES).configured(entry, name)
            profiles.append(entry)
        except InvalidInput as wrong:
            problems.append(ConfigError(wrong.field, str(wrong).removeprefix(f"{wrong.field}: ")))
    for field in ("id", "name"):
        twice = [value for value, times in Counter(entry[field] for entry in profiles).items() if times > 1]
        if twice:
            says = f"{twice[0]!r} is there twice; each profile needs its own {field}"
            problems.append(ConfigError(given.written, says))
    return tuple(profiles)


def server_keys(
    given: Given, env: Mapping[str, str], used: set[str], problems: list[ConfigError]
) -> tuple[ServerKey, ...]:
    """Return the server keys with their secrets read; variables they name are added to `used`."""
    keys = []
    for at, entry in enumerate(given.value):
        name = f"{given.written}[{at}]"
        before = len(problems)
        fields = _fields(name, entry, problems)
        if "key_env" in fields:
            used.add(fields["key_env"])
        if fields.get("time_zone") is not None:
            _check_zone(fields["time_zone"], f"{name}.time_zone", problems)
        if len(problems) == before:
            try:
                keys.append(ServerKey(**fields | {"key": _secret(name, fields, env)}))
            except ConfigError as wrong:
                problems.append(wrong)
    for field in ("name", "key"):
        twice = [value for value, times in Counter(getattr(key, field) for key in keys).items() if times > 1]
        if twice:
            says = repr(twice[0]) if field == "name" else "one secret"
            problems.append(
                ConfigError(given.written, f"{says} is there twice; each key needs its own {field}")
            )
    return tuple(keys)


def _fields(name: str, entry: Any, problems: list[ConfigError]) -> dict[str, Any]:
    types = {f"{name}.{field}": kind for field, kind in field_types(ServerKey).items()}
    fields = {}
    for key, value in leaves({name: entry}, types, {}, problems):
        try:
            fields[key.rpartition(".")[2]] = checked(key, value, types[key])
        except ConfigError as wrong:
            problems.append(wrong)
    for field in ("name", "role"):
        if isinstance(entry, Mapping) and field not in entry:
            choices = " (admin, service, member or reader)" if field == "role" else ""
            problems.append(ConfigError(f"{name}.{field}", f"is missing; every key has a {field}{choices}"))
    return fields


def _secret(name: str, fields: Mapping[str, Any], env: Mapping[str, str]) -> str:
    ways = [way for way in ("key", "key_env", "key_file") if fields.get(way)]
    if len(ways) != 1:
        have = f"not {' and '.join(ways)}" if ways else "and has none"
        raise ConfigError(name, f"takes exactly one of `key`, `key_env` and `key_file`, {have}")
    way, value = ways[0], str(fields[ways[0]])
    if way == "key_env":
        secret = env.get(value, "").strip()
        missing = f"the environment variable `{value}` is not set; put the key in it"
    elif way == "key_file":
        secret, missing = (
            _first_line(f"{name}.key_file", value),
            f"the file {value} is empty; put the key in it",
        )
    else:
        secret, missing = value.strip(), "is empty; write the key, or use `key_env` or `key_file`"
    if not secret:
        raise ConfigError(f"{name}.{way}", missing)
    return secret


def _first_line(key: str, path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else "it is not UTF-8 text"
        raise ConfigError(key, f"the file {path} cannot be read: {reason}") from wrong
