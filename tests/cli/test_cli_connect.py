"""`memoranda connect`: the files of every client, in a home of their own."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.cli.connect import jsonc, toml
from memoranda.cli.connect.clients import CLIENTS
from memoranda.cli.connect.files import BACKUP

PROGRAM = "/opt/bin/memoranda"
PLACES = {
    "claude-code": (".claude.json", ".claude/settings.json"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", None),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
    "cursor": (".cursor/mcp.json", ".cursor/hooks.json"),
    "vscode": (".config/Code/User/mcp.json", ".copilot/hooks/memoranda.json"),
    "opencode": (".config/opencode/opencode.json", None),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
}
"""Where each client of a user on Linux has its servers and its hooks."""
EXISTING = {
    "claude-code": '{"numStartups": 7, "mcpServers": {"github": {"command": "gh"}}, "projects": {"/a": {}}}',
    "claude-desktop": '{\n\t"globalShortcut": "",\n\t"mcpServers": {}\n}\n',
    "codex": '# mine\nmodel = "o5"\n\n[mcp_servers.github]\ncommand = "gh"\nargs = [\n  "a",\n]\n\n[tui]\nx = 1',
    "cursor": '{\r\n    "mcpServers": {\r\n        "github": {"command": "gh"}\r\n    }\r\n}\r\n',
    "vscode": '{\n  // mine\n  "servers": {\n    "github": {"command": "gh"}, // k\n  },\n  "inputs": [],\n}\n',
    "opencode": '{\n  "$schema": "https://opencode.ai/config.json", /* c */\n  "theme": "dark" // last\n}\n',
    "gemini": '{\n  "hooks": {\n    "AfterAgent": [\n      {"hooks": [{"command": "x"}]}\n    ]\n  }\n}\n',
}
WORDS = re.compile(r"//.*|/\*.*?\*/|[\w$:/.]+")
"""Comments, keys and values."""
HOOKS = """{
  "permissions": {"allow": ["Bash"]},
  "hooks": {
    "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]
  }
}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home on Linux; the program is an installed one."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys, "argv", [PROGRAM])
    return place


def values(path: Path) -> dict[str, Any]:
    """What a file of a client says."""
    text = path.read_text()
    found: dict[str, Any] = tomllib.loads(text) if path.suffix == ".toml" else jsonc.parse(text).value
    return found


def words(client: str, path: Path) -> list[str]:
    """The command of the server in a client's file."""
    found: Any = values(path)
    for key in (*CLIENTS[client].keys, "memoranda"):
        found = found[key]
    command = found["command"]
    return command if isinstance(command, list) else [command, *found["args"]]


def files(home: Path) -> dict[str, bytes]:
    """Every file of the home, with its bytes."""
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("client", CLIENTS)
def test_fresh_twice_and_undone(client: str, home: Path, run: Callable[..., Any]) -> None:
    options = ("--data", str(home / "memory"), "--user", "ada", "--tools", "full")
    shown = run("connect", client, *options, "--dry-run")
    assert shown.exit_code == 0, shown.stderr
    assert files(home) == {}
    assert shown.stdout.startswith("--- /dev/null\n+++ ")
    assert run("connect", client, *options).exit_code == 0
    servers, hooks = PLACES[client]
    folder = str(home / "memory")
    assert words(client, home / servers) == [
        PROGRAM, "mcp", "--data", folder, "--user", "ada", "--tools", "full",
    ]  # fmt: skip
    if hooks is not None:
        text = json.dumps(values(home / hooks)["hooks"])
        for event in CLIENTS[client].hooks.events.values():  # type: ignore[union-attr]
            assert f"{PROGRAM} hook {event} --data {folder} --user ada" in text
    written = files(home)
    assert written.keys() == {servers, *([hooks] if hooks else [])}
    assert run("connect", client, *options).exit_code == 0
    assert files(home) == written
    assert run("connect", client, "--undo").exit_code == 0
    assert files(home) == {}
    assert {path.name for path in home.iterdir()} <= {".config"}


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_there_is_kept(client: str, home: Path, run: Callable[..., Any]) -> None:
    servers, hooks = PLACES[client]
    given = {servers: EXISTING[client]} | ({hooks: HOOKS} if hooks not in (None, servers) else {})
    for name, text in given.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(text.encode())
    before = files(home)
    assert run("connect", client, "--data", "/m").exit_code == 0
    after = files(home)
    assert words(client, home / servers) == [PROGRAM, "mcp", "--data", "/m"]
    for name, text in given.items():
        assert after[name + BACKUP] == text.encode()
        assert all(word in after[name].decode() for word in WORDS.findall(text))
    if hooks is not None:
        assert "say done" in after[hooks].decode() or client == "gemini"
    assert run("connect", client, "--data", "/other").exit_code == 0
    assert words(client, home / servers) == [PROGRAM, "mcp", "--data", "/other"]
    assert run("connect", client, "--undo").exit_code == 0
    assert files(home) == before


@pytest.mark.parametrize("client", [name for name, one in CLIENTS.items() if one.project])
def test_a_project_has_files_of_its_own(
    client: str, home: Path, tmp_path: Path, run: Callable[..., Any]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    assert run("connect", client, "--data", "/m", "--project", str(project), "--no-hooks").exit_code == 0
    assert files(home) == {}
    assert files(project).keys() == {CLIENTS[client].project}
    assert words(client, project / str(CLIENTS[client].project)) == [PROGRAM, "mcp", "--data", "/m"]


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_the_folder_is_named(options: list[str], home: Path, run: Callable[..., Any]) -> None:
    answer = run("connect", "codex", *options)
    assert (
        f"its memory is in {Path('memoranda-data').absolute()}; --data names another folder" in answer.stderr
    )
    assert "its memory" not in run("connect", "codex", "--undo").stderr


@pytest.mark.parametrize(
    ("client", "name", "text", "says"),
    [
        ("claude-code", ".claude.json", '{\n  "a": 1\n  "b": 2\n}', "line 3: a comma or } must stand here"),
        ("claude-code", ".claude/settings.json", '{"hooks": {"Stop": 3}}', "hooks.Stop must be an array"),
        ("claude-code", ".claude.json", '{"mcpServers": {"memoranda": {"command": "x"}}}', "another program"),
        ("codex", ".codex/config.toml", "a = 1\nb =\n", "line 2"),
        ("codex", ".codex/config.toml", 'mcp_servers = {a = {command = "b"}}\n', "another form"),
        ("gemini", ".gemini/settings.json", "[1]", "must be an object"),
        ("cursor", ".cursor/mcp.json", b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_stays(
    client: str, name: str, text: str | bytes, says: str, home: Path, run: Callable[..., Any]
) -> None:
    (home / name).parent.mkdir(exist_ok=True)
    (home / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    before = files(home)
    answer = run("connect", client, "--data", "/m")
    assert answer.exit_code == 2
    assert str(home / name) in answer.stderr
    assert says in answer.stderr
    assert files(home) == before


def test_what_is_asked_wrongly(home: Path, run: Callable[..., Any]) -> None:
    for asked, says in (
        (("emacs",), "use one of claude-code, claude-desktop"),
        (("claude-desktop", "--project", str(home)), "--project"),
        (("cursor", "--project", str(home / "none")), "is no folder"),
        (("cursor", "--tools", "some"), "tools"),
        (("cursor", "--data", ":memory:"), "keeps nothing"),
    ):
        answer = run("connect", *asked)
        assert answer.exit_code == 2, answer.stderr
        assert says in answer.stderr
    assert files(home) == {}


def test_links_and_permissions_of_a_file_stay(home: Path, tmp_path: Path, run: Callable[..., Any]) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text('{"a": 1}')
    real.chmod(0o640)
    (home / ".claude.json").symlink_to(real)
    assert run("connect", "claude-code", "--data", "/m", "--no-hooks").exit_code == 0
    assert (home / ".claude.json").is_symlink()
    assert "memoranda" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_what_a_client_added_to_the_server_stays(home: Path, run: Callable[..., Any]) -> None:
    assert run("connect", "codex", "--data", "/m").exit_code == 0
    path = home / ".codex" / "config.toml"
    with path.open("a") as file:
        file.write('\n[mcp_servers.memoranda.tools.recall]\napproval_mode = "approve"\n')
    assert run("connect", "codex", "--data", "/other").exit_code == 0
    entry = values(path)["mcp_servers"]["memoranda"]
    assert entry["tools"] == {"recall": {"approval_mode": "approve"}}
    assert entry["args"] == ["mcp", "--data", "/other"]
    assert run("connect", "codex", "--undo").exit_code == 0
    assert not path.exists()


def test_opencode_with_comments_and_with_the_keys_of_version_2(home: Path, run: Callable[..., Any]) -> None:
    path = home / ".config" / "opencode" / "opencode.jsonc"
    path.parent.mkdir(parents=True)
    text = '{\n  // mine\n  "mcp": {"servers": {"a": {"type": "local", "command": ["b"]}}}\n}\n'
    path.write_text(text)
    assert run("connect", "opencode", "--data", "/m").exit_code == 0
    assert values(path)["mcp"]["servers"]["memoranda"]["command"] == [PROGRAM, "mcp", "--data", "/m"]
    assert "// mine" in path.read_text()
    assert {*os.listdir(path.parent)} == {"opencode.jsonc", f"opencode.jsonc{BACKUP}"}
    assert run("connect", "opencode", "--undo").exit_code == 0
    assert path.read_text() == text


TEXTS = st.text('aä"\\ ,}', max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(TEXTS, JSON, max_size=4),
    st.sampled_from([None, 1, 2, "\t"]),
    st.booleans(),
    JSON,
)
def test_what_is_put_in_and_taken_out_leaves_the_bytes(
    given_values: dict[str, Any], indent: Any, comments: bool, value: Any
) -> None:
    text = json.dumps(given_values, indent=indent)
    if comments and indent is not None and given_values:
        head, line, rest = text.partition("\n")
        text = f"{head} // first{line}{rest[:-2]} // last\n/* end */}}\n"
    made = jsonc.with_value(text, ("new key",), value)
    assert jsonc.parse(made).value == {**given_values, "new key": value}
    if given_values:
        assert jsonc.without(made, ("new key",)) == text
    for key in given_values:
        left = jsonc.without(text, (key,))
        assert jsonc.parse(left).value == {name: one for name, one in given_values.items() if name != key}
        assert left.count("//") + left.count("/*") == text.count("//") + text.count("/*")


def test_a_table_is_found_among_arrays_of_several_lines() -> None:
    text = 'a = [\n  ["b"],\n]\n\n[x.own]\nargs = [\n  "d",\n]\n\n[projects."/home/ada"]\ntrust = "yes"\n'
    assert toml.without_table(text, ("x", "own")) == text.replace('\n[x.own]\nargs = [\n  "d",\n]\n', "")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ('[x.own] # mine\nwait = 3\nargs = ["a"] # c\n\n# next\n[y]\nz = 1\n', ('"a"', '"b"')),
        ('x = {own = {args = ["a"]}, b = 1}\n', ('"a"', '"b"')),
        ('x.own.args = ["a"]\r\n\r\n[y]\r\n', ('"a"', '"b"')),
        ('a = """\n[x.own]\n"""\n', ('"""\n', '"""\n\n[x.own]\nargs = ["b"]\n')),
    ],
)
def test_a_table_is_changed_in_the_form_it_has(text: str, made: tuple[str, str]) -> None:
    before, _, after = text.rpartition(made[0])
    assert toml.with_table(text, ("x", "own"), {"args": ["b"]}) == before + made[1] + after


def test_tables_that_would_move_are_refused() -> None:
    text = '[[a]]\nb = 1\n\n[x.own]\nc = "d"\n\n[[a]]\nb = 2\n'
    with pytest.raises(jsonc.Unreadable, match="tables of one array lie apart"):
        toml.without_table(text, ("x", "own"))
