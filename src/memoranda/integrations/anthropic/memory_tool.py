"""Claude's memory tool on the memories of a product."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anthropic.lib.tools import ToolError
from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from memoranda.errors import Conflict, InvalidInput
from memoranda.integrations.anthropic import editing
from memoranda.integrations.anthropic.editing import EditError
from memoranda.integrations.anthropic.files import Files, Node
from memoranda.integrations.anthropic.paths import ROOT, PathError, folder_of, folders_above, resolved
from memoranda.integrations.products import Product, memories_of

LEVELS = 2
"""How deep the view of a folder is."""


class MemorandaMemoryTool(BetaAbstractMemoryTool):
    """The tool `memory_20250818` in a folder or on a server of Memoranda.

    A file is a memory of kind `note`, which searches of the product find: its text is the path and the file's text, its
    source the path. Files belong to the user `user_id`, or to the tenant; `name` keeps several trees of files apart.

    Answers and errors are those of the SDK's own `BetaLocalFilesystemMemoryTool`, which keeps files on disk; the size
    of a folder is that of the files in it. What the product refuses is an error that the model reads. Thread-safe.
    """

    def __init__(
        self,
        product: Product,
        *,
        user_id: str | None = None,
        name: str = "claude",
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = Files(memories_of(product), name, user_id)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """The contents of a folder, two levels deep, or the numbered lines of a file."""
        with _tool_errors():
            node = self._files.get(resolved(command.path))
            if node is None:
                raise _missing(command.path)
            if node.text is None:
                return self._listing(node.path, command.path)
            lines = editing.lines_of(node.text, command.view_range, command.path)
            return f"Here's the content of {command.path} with line numbers:\n{lines}"

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Writes a new file."""
        with _tool_errors():
            path = resolved(command.path)
            if self._files.get(path) is not None:
                raise ToolError(f"File {command.path} already exists")
            self._check_folders(path, command.path)
            self._files.create([Node(path, command.file_text)])
            return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replaces a text that is once in a file."""
        with _tool_errors():
            path, text = self._file(command.path)
            changed, lines = editing.replaced(text, command.old_str, command.new_str, command.path)
            self._files.write(path, changed)
            return (
                "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
                + lines
            )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Inserts lines into a file."""
        with _tool_errors():
            path, text = self._file(command.path)
            self._files.write(path, editing.inserted(text, command.insert_line, command.insert_text))
            return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Deletes a file, or a folder with its contents."""
        with _tool_errors():
            path = resolved(command.path)
            if path == ROOT:
                raise ToolError(f"Cannot delete the {ROOT} directory itself")
            node = self._files.get(path)
            if node is None:
                raise ToolError(f"The path {command.path} does not exist")
            self._files.delete(node)
            return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Moves a file or a folder. The new files are written before the old ones are deleted."""
        with _tool_errors():
            old, new = resolved(command.old_path), resolved(command.new_path)
            if old == ROOT:
                raise ToolError(f"Cannot rename the {ROOT} directory itself")
            if self._files.get(new) is not None:
                raise ToolError(f"The destination {command.new_path} already exists")
            node = self._files.get(old)
            if node is None:
                raise ToolError(f"The path {command.old_path} does not exist")
            if new.startswith(f"{old}/"):
                raise ToolError(f"Cannot move {command.old_path} into itself: {command.new_path}")
            self._check_folders(new, command.new_path)
            moved = [node, *(self._files.below(old) if node.is_folder else ())]
            self._files.create([Node(resolved(new + each.path[len(old) :]), each.text) for each in moved])
            self._files.delete(node)
            return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Deletes every file and folder."""
        for node in self._files.below(ROOT):
            if folder_of(node.path) == ROOT:
                self._files.delete(node)
        return "All memory cleared"

    def _file(self, path: str) -> tuple[str, str]:
        """The resolved path of a file, and its text."""
        node = self._files.get(resolved(path))
        if node is None:
            raise _missing(path)
        if node.text is None:
            raise ToolError(f"The path {path} is not a file.")
        return node.path, node.text

    def _check_folders(self, path: str, given: str) -> None:
        for folder in folders_above(path):
            node = self._files.get(folder)
            if node is not None and not node.is_folder:
                raise ToolError(f"Cannot write {given}: {folder} is a file")

    def _listing(self, folder: str, given: str) -> str:
        nodes = self._files.below(folder)
        lines = [f"{editing.size(sum(node.size for node in nodes))}\t{given}"]
        for node in _shown(nodes, folder):
            inside = sum(inner.size for inner in nodes if inner.path.startswith(f"{node.path}/"))
            name = f"{given}{node.path[len(folder) :]}"
            lines.append(f"{editing.size(node.size + inside)}\t{name}{'/' if node.is_folder else ''}")
        header = f"Here're the files and directories up to {LEVELS} levels deep in {given}, excluding hidden items:"
        return "\n".join([header, *lines])


class AsyncMemorandaMemoryTool(BetaAsyncAbstractMemoryTool):
    """`MemorandaMemoryTool` for `AsyncAnthropic`: the same commands, in worker threads."""

    def __init__(self, product: Product, **fields: Any) -> None:
        super().__init__(cache_control=fields.get("cache_control"))
        self._tool = MemorandaMemoryTool(product, **fields)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """As `MemorandaMemoryTool.view`."""
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """As `MemorandaMemoryTool.create`."""
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """As `MemorandaMemoryTool.str_replace`."""
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """As `MemorandaMemoryTool.insert`."""
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """As `MemorandaMemoryTool.delete`."""
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """As `MemorandaMemoryTool.rename`."""
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """As `MemorandaMemoryTool.clear_all_memory`."""
        return await asyncio.to_thread(self._tool.clear_all_memory)


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Turns errors of a command into a `ToolError` that the model reads."""
    try:
        yield
    except (PathError, EditError, InvalidInput, Conflict) as exc:
        raise ToolError(str(exc)) from exc


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _shown(nodes: list[Node], folder: str) -> list[Node]:
    """The nodes in a view of a folder: two levels without hidden names, each folder before its contents."""
    by_parts = {tuple(node.path[len(folder) + 1 :].split("/")): node for node in nodes}
    shown = [
        parts for parts in by_parts if len(parts) <= LEVELS and not any(p.startswith(".") for p in parts)
    ]
    return [by_parts[parts] for parts in sorted(shown)]
