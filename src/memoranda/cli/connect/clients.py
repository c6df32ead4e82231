"""The MCP clients: which files of theirs name servers and hooks, and in which form.

Sources, by client:

- `claude-code`: https://code.claude.com/docs/en/mcp and https://code.claude.com/docs/en/hooks
- `claude-desktop`: https://modelcontextprotocol.io/docs/develop/connect-local-servers
- `codex`: https://developers.openai.com/codex/mcp and https://developers.openai.com/codex/hooks
- `cursor`: https://cursor.com/docs/mcp and https://cursor.com/docs/hooks
- `vscode`: https://code.visualstudio.com/docs/agents/reference/mcp-configuration and
  https://code.visualstudio.com/docs/agent-customization/hooks: context is taken at the start of a session only, and the
  form of transcripts is not documented
- `opencode`: https://opencode.ai/docs/mcp-servers and https://opencode.ai/docs/config
- `gemini`: https://geminicli.com/docs/tools/mcp-server and https://geminicli.com/docs/hooks/reference
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

NAME = "memoranda"
"""The name of the server in each client."""
SECONDS = {"session-start": 10, "prompt": 5, "stop": 120, "compact": 120}
"""For how long a client waits for a hook at most. The last two may have to open the folder."""
Env = Mapping[str, str]


class HookFile(msgspec.Struct, frozen=True):
    """Where a client reads hooks: `events` are its names of those of `memoranda hook`. `flat` entries are hooks, others
    are groups of hooks. `milliseconds` is the unit of its timeouts. `fresh` is what a new file begins with."""

    user: Callable[[Env], Path]
    project: str
    events: Mapping[str, str]
    flat: bool = False
    milliseconds: bool = False
    fresh: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Client(msgspec.Struct, frozen=True):
    """Where a client reads its servers: the file of the user, that of a project, and the keys above their names."""

    user: Callable[[Env], Path]
    project: str | None
    keys: tuple[str, ...]
    form: Literal["stdio", "plain", "local", "toml"] = "plain"
    hooks: HookFile | None = None

    def entry(self, program: list[str]) -> dict[str, Any]:
        """Return what describes a server that is started by these words."""
        if self.form == "local":
            return {"type": "local", "command": program, "enabled": True}
        entry = {"command": program[0], "args": program[1:]}
        return {"type": "stdio", **entry} if self.form == "stdio" else entry


def home(*parts: str) -> Callable[[Env], Path]:
    """Return a function that gives a place below the home folder."""
    return lambda _: Path.home().joinpath(*parts)


def dotconfig(*parts: str) -> Callable[[Env], Path]:
    """Return a function that gives a place below `~/.config`, on every system."""
    return lambda env: Path(env.get("XDG_CONFIG_HOME") or Path.home() / ".config").joinpath(*parts)


def application(*parts: str) -> Callable[[Env], Path]:
    """Return a function that gives a place below the folder of applications' settings, which each system has."""

    def place(env: Env) -> Path:
        if sys.platform == "darwin":
            return (Path.home() / "Library" / "Application Support").joinpath(*parts)
        if sys.platform == "win32":
            return Path(env.get("APPDATA") or Path.home() / "AppData" / "Roaming").joinpath(*parts)
        return dotconfig(*parts)(env)

    return place


def configured(variable: str, folder: str, name: str, outside: bool = False) -> Callable[[Env], Path]:
    """Return a function that gives a file of a client's folder, which an environment variable may move. `outside`: the
    file stands beside the folder until it is moved."""

    def place(env: Env) -> Path:
        moved = env.get(variable)
        return Path(moved) / name if moved else Path.home() / ("" if outside else folder) / name

    return place


CLAUDE_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "PreCompact": "compact",
}
"""The events of Claude Code, which Codex has under the same names."""
CLIENTS: dict[str, Client] = {
    "claude-code": Client(
        configured("CLAUDE_CONFIG_DIR", ".claude", ".claude.json", outside=True),
        ".mcp.json",
        ("mcpServers",),
        "stdio",
        HookFile(
            configured("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
            ".claude/settings.json",
            CLAUDE_EVENTS,
        ),
    ),
    "claude-desktop": Client(application("Claude", "claude_desktop_config.json"), None, ("mcpServers",)),
    "codex": Client(
        configured("CODEX_HOME", ".codex", "config.toml"),
        ".codex/config.toml",
        ("mcp_servers",),
        "toml",
        HookFile(configured("CODEX_HOME", ".codex", "hooks.json"), ".codex/hooks.json", CLAUDE_EVENTS),
    ),
    "cursor": Client(
        home(".cursor", "mcp.json"),
        ".cursor/mcp.json",
        ("mcpServers",),
        "stdio",
        HookFile(
            home(".cursor", "hooks.json"),
            ".cursor/hooks.json",
            {"sessionStart": "session-start"},
            flat=True,
            fresh={"version": 1},
        ),
    ),
    "vscode": Client(
        application("Code", "User", "mcp.json"),
        ".vscode/mcp.json",
        ("servers",),
        "stdio",
        HookFile(
            home(".copilot", "hooks", "memoranda.json"),
            ".github/hooks/memoranda.json",
            {"SessionStart": "session-start"},
            flat=True,
        ),
    ),
    "opencode": Client(dotconfig("opencode", "opencode.json"), "opencode.json", ("mcp",), "local"),
    "gemini": Client(
        home(".gemini", "settings.json"),
        ".gemini/settings.json",
        ("mcpServers",),
        "plain",
        HookFile(
            home(".gemini", "settings.json"),
            ".gemini/settings.json",
            {
                "SessionStart": "session-start",
                "BeforeAgent": "prompt",
                "AfterAgent": "stop",
                "PreCompress": "compact",
            },
            milliseconds=True,
        ),
    ),
}
