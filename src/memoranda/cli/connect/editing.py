"""What changes in the files of a client: servers and hooks put in and taken out. No file is written here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memoranda.cli.connect import jsonc, toml
from memoranda.cli.connect.clients import NAME, SECONDS, Client, HookFile
from memoranda.cli.connect.files import Change, backup_of, read
from memoranda.errors import InvalidInput

OWN = re.compile(r"memoranda['\"]?(?: .*)? hook (?:session-start|prompt|stop|compact)\b")
"""A command of a hook that `connect` wrote."""


class Editing:
    """The files of one client, for the user or for one project."""

    def __init__(self, client: Client, project: Path | None, env: Mapping[str, str]) -> None:
        """Raises InvalidInput: the client has no file of a project."""
        self._client = client
        if project is not None and client.project is None:
            raise InvalidInput(
                "--project", "this client has one configuration for all projects; leave it out"
            )
        self.servers = _commented(client.user(env) if project is None else project / str(client.project))
        hooks = client.hooks
        self.hooks = None
        if hooks is not None:
            self.hooks = hooks.user(env) if project is None else project / hooks.project
        self._texts: dict[Path, str | None] = {}

    def connect(self, program: list[str], hook: Callable[[str], str] | None) -> list[Change]:
        """Return the changes that put in a server, and the hooks whose commands `hook` returns.

        Raises:
            InvalidInput: a file cannot be read, or has another server of the name.
        """
        self._edit(self.servers, lambda text: self._with_server(text, program))
        if self.hooks is not None and self._client.hooks is not None and hook is not None:
            file, command = self._client.hooks, hook
            self._edit(self.hooks, lambda text: _with_hooks(text, file, command))
        return self._changes()

    def undo(self) -> list[Change]:
        """Return the changes that take out what `connect` put in.

        Raises:
            InvalidInput: a file cannot be read.
        """
        self._edit(self.servers, self._without_server)
        if self.hooks is not None:
            self._edit(self.hooks, lambda text: _without_hooks(text, _before(self.hooks)))
        return [Change(change.path, change.before, self._restored(change)) for change in self._changes()]

    # --- files -------------------------------------------------------------------------------------

    def _edit(self, path: Path, change: Callable[[str], str]) -> None:
        before = self._texts[path] if path in self._texts else read(path)
        try:
            after = change(before or "")
        except jsonc.Unreadable as exc:
            raise InvalidInput(str(path), f"{exc}; nothing was changed") from exc
        self._texts[path] = before if after == (before or "") else after

    def _changes(self) -> list[Change]:
        return [Change(path, read(path), text) for path, text in self._texts.items()]

    def _restored(self, change: Change) -> str | None:
        """The text after an undo: that of the backup if they differ in white space alone; None for what was made."""
        if not change.needed or change.after is None:
            return change.after
        backup = _original(change.path)
        if backup is not None:
            return backup if _dense(backup) == _dense(change.after) else change.after
        fresh = {} if self._client.hooks is None else dict(self._client.hooks.fresh)
        if change.path.suffix == ".toml":
            return change.after if change.after.strip() else None
        return None if jsonc.parse(change.after).value in ({}, fresh) else change.after

    # --- servers -----------------------------------------------------------------------------------

    def _keys(self, text: str) -> tuple[str, ...]:
        """The keys above the name: opencode 2 has `servers` below `mcp`, and reads the keys of opencode 1, too."""
        keys = self._client.keys
        nested = (*keys, "servers")
        node = jsonc.parse(text).at(nested) if self._client.form == "local" else None
        return nested if node is not None and node.keys is not None and "command" not in node.keys else keys

    def _with_server(self, text: str, program: list[str]) -> str:
        entry = self._client.entry(program)
        if self._client.form == "toml":
            table = (*self._client.keys, NAME)
            _check(toml.table_of(toml.parse(text), table))
            return toml.with_table(text, table, entry)
        path = (*self._keys(text), NAME)
        node = jsonc.parse(text).at(path)
        if node is None:
            return jsonc.with_value(text, path, entry)
        _check(node.value)
        return jsonc.with_value(text, path, {**node.value, **entry})

    def _without_server(self, text: str) -> str:
        if self._client.form == "toml":
            table = (*self._client.keys, NAME)
            return text if toml.table_of(toml.parse(text), table) is None else toml.without_table(text, table)
        path = (*self._keys(text), NAME)
        node = jsonc.parse(text).at(path)
        if node is None:
            return text
        _check(node.value)
        return _pruned(jsonc.without(text, path), path[:-1], _before(self.servers))


def _original(path: Path | None) -> str | None:
    """The text of a file from before it had a server or hooks of this program; None if none is there."""
    text = None if path is None else read(backup_of(path))
    return None if text is None or NAME in text else text


def _before(path: Path | None) -> jsonc.Node:
    """The values of a file from before; no values where none are there."""
    try:
        return jsonc.parse(_original(path) or "")
    except jsonc.Unreadable:
        return jsonc.parse("")


def _commented(path: Path) -> Path:
    """The file with comments, where there is that one instead."""
    other = path.with_suffix(".jsonc")
    return other if path.suffix == ".json" and not path.exists() and other.exists() else path


def _check(entry: Any) -> None:
    """Check that a server is this program's.

    Raises:
        Unreadable: it is another one.
    """
    words: list[Any] = []
    if isinstance(entry, dict):
        for name in ("command", "args"):
            part = entry.get(name, [])
            words += part if isinstance(part, list) else [part]
    elif entry is None:
        return
    if "mcp" not in words:
        raise jsonc.Unreadable(f"the server {NAME!r} there is another program; rename it or take it out")


def _pruned(text: str, path: jsonc.Path, before: jsonc.Node) -> str:
    """The text without the objects and arrays at a path that are empty now, and were not there before."""
    while path and (node := jsonc.parse(text).at(path)) is not None:
        if node.children or before.at(path) is not None:
            break
        text, path = jsonc.without(text, path), path[:-1]
    return text


def _dense(text: str) -> str:
    return "".join(text.split())


# --- hooks -----------------------------------------------------------------------------------------


def _with_hooks(text: str, file: HookFile, command: Callable[[str], str]) -> str:
    if not text.strip():
        for key, value in file.fresh.items():
            text = jsonc.with_value(text, (key,), value)
    for name, event in file.events.items():
        seconds = SECONDS[event]
        hook = {
            "type": "command",
            "command": command(event),
            "timeout": seconds * 1_000 if file.milliseconds else seconds,
        }
        root = jsonc.parse(text)
        path = _own(root, ("hooks", name))
        if path is None:
            text = jsonc.with_item(text, ("hooks", name), hook if file.flat else {"hooks": [hook]})
        elif (node := root.at(path)) is not None and {**node.value, **hook} != node.value:
            text = jsonc.replaced(text, node, {**node.value, **hook})
    return text


def _without_hooks(text: str, before: jsonc.Node) -> str:
    events = jsonc.parse(text).at(("hooks",))
    for name in (events.keys if events is not None else None) or []:
        while (path := _own(jsonc.parse(text), ("hooks", name))) is not None:
            text = jsonc.without(text, path)
            group = jsonc.parse(text).at(path[:-2]) if path[-2] == "hooks" else None
            if group is not None and group.value == {"hooks": []}:
                text = jsonc.without(text, path[:-2])
            text = _pruned(text, ("hooks", name), before)
    return text


def _own(root: jsonc.Node, path: jsonc.Path) -> list[str | int] | None:
    """The path of the first hook of an event that `connect` wrote, in a group or by itself."""
    node = root.at(path)
    for index, entry in enumerate(node.value if node is not None and isinstance(node.value, list) else []):
        inner = entry.get("hooks") if isinstance(entry, dict) else None
        if _is_own(entry):
            return [*path, index]
        for number, hook in enumerate(inner if isinstance(inner, list) else []):
            if _is_own(hook):
                return [*path, index, "hooks", number]
    return None


def _is_own(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and OWN.search(command) is not None
