"""A configuration file as a nested mapping: YAML with `${NAME}` taken from the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import ConfigError

_VARIABLE = re.compile(r"\$?\$\{([^}]*)\}")


def read(path: Path) -> dict[str, Any]:
    """Return the mapping in the YAML file; {} if it is empty.

    Raises:
        ConfigError: the file cannot be read, is not YAML, writes a key twice, or is not a mapping.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        reason = "it is not UTF-8 text"
        if isinstance(wrong, OSError):
            reason = (wrong.strerror or str(wrong)).lower()
        if isinstance(wrong, FileNotFoundError):
            reason = "it is not there; name an existing YAML file"
        raise ConfigError(str(path), f"cannot be read: {reason}") from wrong
    document = parse(str(path), text)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(str(path), "must hold `key: value` lines at the top, such as `data: ./memory`")
    return document


def parse(name: str, text: str) -> Any:
    """Return the value of the YAML `text`; `name` is its place, for the error.

    Raises:
        ConfigError: it is not YAML, or writes a key twice.
    """
    import yaml  # saves 40 ms without a file

    try:
        node = yaml.compose(text, yaml.SafeLoader)
        _refuse_twins(name, node)
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError(name, f"is not valid YAML: {where}{wrong.problem}") from wrong
    except (yaml.YAMLError, ValueError) as wrong:
        raise ConfigError(name, f"is not valid YAML: {wrong}") from wrong


def _refuse_twins(name: str, node: Any) -> None:
    # PyYAML silently keeps the last of two equal keys.
    stack, visited = [node] if node else [], set()
    while stack:
        part = stack.pop()
        if id(part) in visited or part.id == "scalar":
            continue
        visited.add(id(part))
        if part.id == "sequence":
            stack.extend(part.value)
            continue
        seen: set[str] = set()
        for key, value in part.value:
            if key.id == "scalar" and key.value in seen:
                line = key.start_mark.line + 1
                raise ConfigError(name, f"line {line}: `{key.value}` is written twice; keep one")
            seen.add(str(key.value))
            stack.append(value)


def filled(value: Any, env: Mapping[str, str], used: set[str]) -> tuple[Any, bool]:
    """Return the value with every `${NAME}` replaced by that variable, and whether there was one.

    `$${` stands for a literal `${`. Lists and mappings are filled through and through. The names of the variables are
    added to `used`.

    Raises:
        KeyError: a variable is not set; the argument is its name.
    """
    replaced = False

    def fill(part: Any) -> Any:
        nonlocal replaced
        if isinstance(part, list):
            return [fill(each) for each in part]
        if isinstance(part, dict):
            return {key: fill(each) for key, each in part.items()}
        if not isinstance(part, str) or "${" not in part:
            return part
        replaced = True
        return _VARIABLE.sub(_replacement(env, used), part)

    return fill(value), replaced


def _replacement(env: Mapping[str, str], used: set[str]) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        used.add(match[1])
        return env[match[1]]

    return replace
