"""File, environment and overrides, read into validated values and merged in layers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from memoranda.config import file as yaml_file
from memoranda.config import sources
from memoranda.config.keys import checked, closest, leaves, shown, takes_list
from memoranda.config.rules import agent_profiles, check_together, check_urls, server_keys
from memoranda.config.sections import Config, Setting, assembled, own_types
from memoranda.config.sources import Given
from memoranda.errors import ConfigError

PREFIX = "MEMORANDA_"
RESERVED = frozenset({"MEMORANDA_CONFIG", "MEMORANDA_KEY"})
"""Variables read elsewhere: the path of the file, and the key of a client."""
EMPTY_IS_NULL = frozenset({"summarization.model"})
"""Keys of ours that are empty in other systems where ours are null."""


class Reading:
    """One reading of the configuration: collects all mistakes, to report them together."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = dict(env)
        self.types = own_types()
        self.problems: list[ConfigError] = []
        self.used = set(RESERVED)

    def document(self, node: Mapping[Any, Any], origin: str) -> Iterator[Given]:
        """Yield the values of a nested mapping, our own keys and source keys alike."""
        block = sources.block_of(node)
        names = {key: (key, kind) for key, kind in self.types.items()} | sources.names(block)
        for written, raw in leaves(node, names, sources.hints(block), self.problems):
            key, kind = names[written]
            try:
                value, lax = yaml_file.filled(raw, self.env, self.used)
                yield self._given(key, checked(written, value, kind, lax), written, origin)
            except KeyError as missing:
                self._missing_variable(written, missing.args[0])
            except ConfigError as wrong:
                self.problems.append(wrong)

    @staticmethod
    def _given(key: str, value: Any, written: str, origin: str) -> Given:
        return Given(key, None if value == "" and key in EMPTY_IS_NULL else value, written, origin)

    def _missing_variable(self, key: str, name: str) -> None:
        fix = f"set it, or write the value in place of `${{{name}}}`"
        self.problems.append(ConfigError(key, f"the environment variable `{name}` is not set; {fix}"))

    def environment(self) -> Iterator[Given]:
        """Yield the values that variables set. An empty variable counts as not set."""
        ours = {variable(key): (key, kind) for key, kind in self.types.items()}
        kinds = {**self.types, **sources.OUTSIDE_MEMORY}
        theirs = {name: (key, kinds[key]) for name, key in sources.ENVIRONMENT.items()}
        for name, (key, kind) in (ours | theirs).items():
            if not (text := self.env.get(name)):
                continue
            try:
                value = yaml_file.parse(name, text) if takes_list(kind) else text
                yield self._given(key, checked(name, value, kind, lax=True), name, f"environment {name}")
            except ConfigError as wrong:
                self.problems.append(wrong)

    def settle(self, given: Iterator[Given]) -> tuple[dict[str, Given], dict[str, Given]]:
        """Return one layer's values of our keys and of source keys; two that disagree are a mistake."""
        own: dict[str, Given] = {}
        theirs: dict[str, Given] = {}
        for each in given:
            self._add(own if each.key in self.types else theirs, each)
        for rule in sources.RULES:
            try:
                for value in rule(theirs):
                    self._add(own, value)
            except ConfigError as wrong:
                self.problems.append(wrong)
        return own, theirs

    def _add(self, values: dict[str, Given], new: Given) -> None:
        old = values.setdefault(new.key, new)
        if old.value != new.value:
            says = f"says {shown(new.key, new.value)}, but `{old.written}` says {shown(old.key, old.value)}"
            self.problems.append(ConfigError(new.written, f"{says}; keep one of the two"))

    def unknown_variables(self) -> None:
        """Report variables that look like ours, or nearly like a source's, and are unknown."""
        ours = {variable(key): key for key in self.types}
        for name in sorted(self.env):
            known = ours.keys() | sources.ENVIRONMENT.keys() | self.used
            if name.startswith(PREFIX) and name not in known:
                meant = closest(name.removeprefix(PREFIX).lower().replace("__", "."), self.types)
                self._unknown_variable(name, variable(meant) if meant else None)
            elif name.startswith(sources.PREFIXES) and name not in sources.ENVIRONMENT:
                # These prefixes are not ours alone, so only a near match counts as a typo.
                prefix = next(prefix for prefix in sources.PREFIXES if name.startswith(prefix))
                rest = {
                    each.removeprefix(prefix): each for each in sources.ENVIRONMENT if each.startswith(prefix)
                }
                if meant := closest(name.removeprefix(prefix), rest):
                    self._unknown_variable(name, rest[meant])

    def _unknown_variable(self, name: str, meant: str | None) -> None:
        fix = (
            f"did you mean `{meant}`?"
            if meant
            else "see `docs/reference/configuration.md` for those there are"
        )
        self.problems.append(ConfigError(name, f"unknown variable `{name}`; {fix}"))


def gather(path: Path | None, env: Mapping[str, str], overrides: Mapping[str, object]) -> Config:
    """Return the configuration of a file, the environment and overrides, the later over the earlier.

    Raises:
        ConfigError: what is wrong, one line for each mistake.
    """
    reading = Reading(env)
    file = file_of(path, env)
    layers = [
        reading.settle(reading.document(yaml_file.read(file) if file else {}, str(file))),
        reading.settle(reading.environment()),
        reading.settle(reading.document(nested(overrides), "override")),
    ]
    own = {key: given for layer, _ in layers for key, given in layer.items()}
    theirs = {key: given for _, layer in layers for key, given in layer.items()}
    values = {key: given.value for key, given in own.items()}
    if "keys" in own:
        values["keys"] = server_keys(own["keys"], env, reading.used, reading.problems)
    if "agents" in own:
        values["agents"] = agent_profiles(own["agents"], reading.problems)
    reading.used |= {name for key, name in values.items() if key.endswith(".api_key_env") and name}
    if "data" in own:
        values["data"] = os.path.expanduser(values["data"])
    reading.unknown_variables()
    check_urls(own, reading.problems)
    check_together(own, reading.problems)
    if reading.problems:
        raise together(reading.problems)
    return assembled(values, _sources(own, theirs), {key: _origin(given) for key, given in own.items()})


def file_of(path: Path | None, env: Mapping[str, str]) -> Path | None:
    """Return the configuration file to read: `path`, `MEMORANDA_CONFIG`, or `./memoranda.yaml` if it exists."""
    if path or env.get("MEMORANDA_CONFIG"):
        return Path(path or env["MEMORANDA_CONFIG"]).expanduser()
    usual = Path("memoranda.yaml")
    return usual if usual.exists() else None


def nested(flat: Mapping[str, object]) -> dict[str, Any]:
    """Return a mapping keyed by dotted keys as nested mappings."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, name = key.split(".")
        node = tree
        for section in sections:
            node = node.setdefault(section, {})
        if isinstance(value, Mapping) and isinstance(node.get(name), dict):
            node[name] |= value
        else:
            node[name] = value
    return tree


@cache
def variable(key: str) -> str:
    """Return the environment variable that sets a dotted key."""
    return PREFIX + key.replace(".", "__").upper()


def together(problems: list[ConfigError]) -> ConfigError:
    """Return all mistakes as one error, one line each."""
    if len(problems) == 1:
        return problems[0]
    lines = "\n".join(f"  {problem}" for problem in problems)
    return ConfigError("", f"{len(problems)} mistakes in the configuration\n{lines}")


def _origin(given: Given) -> str:
    single = not given.made_of or given.written in given.origin
    return given.origin if single else f"{given.origin} ({given.written})"


def _sources(own: Mapping[str, Given], theirs: Mapping[str, Given]) -> dict[str, Setting]:
    notes = {key: sources.CHECKED.get(key, "accepted, no effect yet") for key in theirs}
    for given in (each for rule in sources.RULES for each in rule(theirs)):
        winner = own[given.key]
        same = winner.value == given.value
        note = f"in force as {given.key}" if same else f"overruled by {winner.written} ({winner.origin})"
        notes |= dict.fromkeys(given.made_of, note)
    return {key: Setting(each.written, each.value, each.origin, notes[key]) for key, each in theirs.items()}
