"""Claude's memory tool in a product, compared with the one of Anthropic's SDK that keeps files on disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import memoranda
from memoranda.client import Client

pytest.importorskip("anthropic.tools")

from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool

from memoranda.integrations.anthropic import AsyncMemorandaMemoryTool, MemorandaMemoryTool
from support.chat_server import running

from .conftest import QUICK

EXAMPLE = Path(__file__).parents[2] / "examples" / "anthropic_memory.py"

NAMES = ["a", "b.md", "c", ".hidden", "with space", "größe", '"quoted"', "line\nbreak", "%2e%2e", "..."]
PARTS = st.sampled_from([*NAMES, *NAMES, ".", "..", ""])
SEED = [
    {"command": "create", "path": "/memories/a", "file_text": "a\nb\na\n"},
    {"command": "create", "path": "/memories/b.md", "file_text": ""},
    {"command": "create", "path": "/memories/c/a", "file_text": "one\r\ntwo\r\n\n\nend"},
    {"command": "create", "path": "/memories/c/deep/er/a", "file_text": "x" * 1500},
]
"""What is there before the commands, so that many of them find something."""
PATHS = st.one_of(
    st.sampled_from(
        ["/memories/a", "/memories/b.md", "/memories/c", "/memories/c/a", "/memories/c/deep", "/memories"]
    ),
    st.lists(st.sampled_from(NAMES[:3]), max_size=3).map(lambda parts: "/".join(["/memories", *parts])),
    st.lists(PARTS, max_size=5)
    .map(lambda parts: "/".join(["/memories", *parts]))
    .filter(lambda p: not leaves(p)),
    st.sampled_from(
        ["/memories/..", "/memories/../../etc/passwd", "/etc/passwd", "memories/a", "", "/memoriesa", "/"]
    ),
)
TEXTS = st.one_of(
    st.sampled_from(["", "\n", "a", "aa", "a\nb\na\n", "one\r\ntwo\r\n", " \t", "no end", "ä\u2028ö"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20),
    st.integers(2_000, 3_000).map(lambda n: "\n".join(f"line {i % 97}" for i in range(n))),
)
PIECES = st.one_of(st.sampled_from(["a", "b", "\nb", "one\r", "end", "\n", "", "line 9", "two"]), TEXTS)
LINES = st.integers(-2, 5)
COMMANDS = st.one_of(
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS},
        optional={"view_range": st.none() | st.lists(LINES, min_size=1, max_size=3)},
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": PATHS, "old_str": PIECES, "new_str": PIECES}
    ),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PATHS, "insert_line": LINES, "insert_text": PIECES}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)
REFUSED = "refused by the disk"


def leaves(path: str) -> bool:
    """Whether a path goes out of /memories and in again: on disk that depends on the folder's name."""
    depth = 0
    for part in path.split("/")[2:]:
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def answer(tool: Any, command: Mapping[str, Any]) -> tuple[str, str]:
    """What a tool says to a command, and whether it is an error."""
    try:
        said = ("ok", tool.call(dict(command)))
    except ToolError as exc:
        return "error", str(exc)
    except OSError:
        return "error", REFUSED
    if command["command"] != "view" or not said[1].startswith("Here're the files"):
        return said
    header, folder, *shown = re.split(r"\n(?=[\d.]+[BKMG]\t)", said[1])
    return "ok", "\n".join([header, *map(sizeless, [folder + "/", *shown])])


def sizeless(line: str) -> str:
    """A line of a view; of a folder without its size, which on disk is that of its blocks."""
    return line.partition("\t")[2] if line.endswith("/") else line


def undo_folders(root: Path, before: set[Path]) -> None:
    """Deletes folders that a command has left on disk though it failed."""
    for path in sorted(set(root.rglob("*")) - before, reverse=True):
        path.rmdir()


def compare(tool: Any, commands: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as folder:
        local = BetaLocalFilesystemMemoryTool(folder)
        for command in [*SEED, *commands, {"command": "view", "path": "/memories"}]:
            before = set(local.memory_root.rglob("*"))
            expected = answer(local, command)
            if expected[0] == "error":
                undo_folders(local.memory_root, before)
            got = answer(tool, command)
            assert got[0] == expected[0], (command, expected, got)
            if expected[1] != REFUSED:
                assert got[1] == expected[1], command


@pytest.fixture(scope="module")
def one_folder() -> Any:
    with memoranda.open(":memory:", embedder=QUICK) as opened:
        yield opened


@settings(max_examples=30, deadline=None)
@given(st.lists(COMMANDS, min_size=1, max_size=15))
def test_commands_are_answered_as_by_the_tool_of_the_sdk(
    one_folder: Any, commands: list[dict[str, Any]]
) -> None:
    tool = MemorandaMemoryTool(one_folder)
    assert tool.clear_all_memory() == "All memory cleared"
    compare(tool, commands)


def test_commands_of_one_story_are_answered_alike_on_folder_and_server(product: Any) -> None:
    compare(
        MemorandaMemoryTool(product),
        [
            {"command": "view", "path": "/memories"},
            {"command": "str_replace", "path": "/memories/a", "old_str": "b", "new_str": "B\nC"},
            {"command": "str_replace", "path": "/memories/a", "old_str": "a", "new_str": "z"},
            {"command": "insert", "path": "/memories/b.md", "insert_line": 0, "insert_text": "first\n\n"},
            {"command": "insert", "path": "/memories/b.md", "insert_line": 9, "insert_text": "last"},
            {"command": "view", "path": "/memories/a", "view_range": [2, -1]},
            {"command": "rename", "old_path": "/memories/c", "new_path": "/memories/new/place"},
            {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/a/b"},
            {"command": "view", "path": "/memories/new"},
            {"command": "delete", "path": "/memories/new/place/deep"},
            {"command": "view", "path": "/memories/new/"},
            {"command": "create", "path": "/memories/a/below", "file_text": "below a file"},
        ],
    )


def test_files_are_found_by_searches_and_folders_are_not(product: Any) -> None:
    memories = product if isinstance(product, Client) else product.memories
    tool = MemorandaMemoryTool(product)
    create(tool, "/memories/people/ana.md", "Ana is allergic to peanuts.")
    create(tool, "/memories/people/empty.md", "")
    found = memories.search("Who must not eat peanuts?").results
    assert found[0].memory.source == "/memories/people/ana.md"
    assert found[0].memory.content == "/memories/people/ana.md\n\nAna is allergic to peanuts."
    assert {hit.memory.kind for hit in found} == {"note"}
    memories.update(found[0].memory.id, content="Ana may eat peanuts again.")
    assert tool.call({"command": "view", "path": "/memories/people/ana.md"}).endswith(
        "1\tAna may eat peanuts again."
    )


def test_users_and_names_have_files_of_their_own(folder: Any) -> None:
    ana, ben = (MemorandaMemoryTool(folder, user_id=user) for user in ("ana", "ben"))
    create(ana, "/memories/a", "tea")
    create(ben, "/memories/a", "coffee")
    create(MemorandaMemoryTool(folder, name="other"), "/memories/a", "milk")
    assert ana.call({"command": "view", "path": "/memories/a"}).endswith("\ttea")
    assert [hit.memory.user_id for hit in folder.memories.search("coffee", scopes=["user:ben"]).results] == [
        "ben"
    ]
    ana.clear_all_memory()
    assert ana.call({"command": "view", "path": "/memories"}).endswith(":\n0B\t/memories")
    assert ben.call({"command": "view", "path": "/memories/a"}).endswith("\tcoffee")


def test_what_the_product_refuses_is_told_to_the_model(folder: Any) -> None:
    tool = MemorandaMemoryTool(folder)
    with pytest.raises(ToolError, match="is longer than 1048576 bytes"):
        create(tool, "/memories/a", "x" * (1 << 20))
    with pytest.raises(ToolError, match=r"^content: must hold some text, without NUL characters"):
        create(tool, "/memories/a", "\x00")
    with pytest.raises(ToolError, match="is longer than 256 characters"):
        create(tool, "/memories/" + "a" * 300, "x")
    with pytest.raises(ToolError, match="would escape /memories"):
        create(tool, "/memories/../memories/a", "x")
    create(tool, "/memories/f", "x")
    with pytest.raises(ToolError, match="/memories/f is a file"):
        create(tool, "/memories/f/a", "x")


async def test_the_tool_in_an_event_loop() -> None:
    async with await memoranda.Memoranda.open(":memory:", embedder=QUICK) as opened:
        tool = AsyncMemorandaMemoryTool(opened, cache_control={"type": "ephemeral"})
        assert tool.to_dict() == {
            "type": "memory_20250818",
            "name": "memory",
            "cache_control": {"type": "ephemeral"},
        }
        for command in [
            *SEED,
            {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "0"},
        ]:
            await tool.call(command)
        await tool.call({"command": "str_replace", "path": "/memories/a", "old_str": "b", "new_str": "B"})
        await tool.call({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/z"})
        await tool.call({"command": "delete", "path": "/memories/c"})
        assert (await tool.call({"command": "view", "path": "/memories/z"})).endswith(
            "3\tB\n     4\ta\n     5\t"
        )
        await tool.clear_all_memory()
        with pytest.raises(ToolError, match="does not exist"):
            await tool.call({"command": "view", "path": "/memories/z"})


def test_the_example_remembers_what_claude_writes(tmp_path: Path) -> None:
    asked: list[Any] = []

    async def answered(request: Request) -> JSONResponse:
        asked.append(await request.json())
        note = {"command": "create", "path": "/memories/ana.md", "file_text": "Ana is allergic to peanuts."}
        use = {"type": "tool_use", "id": "t1", "name": "memory", "input": note}
        content = [use] if len(asked) == 1 else [{"type": "text", "text": "I will remember that."}]
        return JSONResponse(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": asked[-1]["model"],
                "content": content,
                "stop_reason": "tool_use" if len(asked) == 1 else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        )

    with running(Starlette(routes=[Route("/v1/messages", answered, methods=["POST"])])) as url:
        words = [str(tmp_path / "data"), "I am allergic to peanuts.", "What must Ana not eat?"]
        env = {**os.environ, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
        ran = subprocess.run(
            [sys.executable, str(EXAMPLE), *words], env=env, capture_output=True, text=True, check=False
        )
    assert ran.stdout.splitlines() == [
        "I will remember that.",
        "/memories/ana.md: Ana is allergic to peanuts.",
    ], ran.stderr
    assert {"type": "memory_20250818", "name": "memory"} in asked[0]["tools"]
    result = asked[1]["messages"][-1]["content"][0]
    assert result["content"] == "File created successfully at: /memories/ana.md"


def create(tool: Any, path: str, text: str) -> None:
    tool.call({"command": "create", "path": path, "file_text": text})
