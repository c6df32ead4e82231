"""A tree of text files in a product.

A file is a memory of kind `note`, so that searches find it; a folder is an entry of kind `item`. The id follows from
the path, so that each path is there once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from memoranda.app.blocking import BlockingMemories
from memoranda.integrations import entries
from memoranda.integrations.anthropic.paths import ROOT, folder_of, folders_above
from memoranda.integrations.entries import Entries
from memoranda.store.rows import ITEM
from memoranda.types import Memory

FILE = "note"
"""The kind of a file's memory."""


class Node(msgspec.Struct, frozen=True):
    """A file with its text, or a folder, whose text is None."""

    path: str
    text: str | None

    @property
    def is_folder(self) -> bool:
        """True if it is a folder."""
        return self.text is None

    @property
    def size(self) -> int:
        """Bytes of the text."""
        return len((self.text or "").encode())


class Files:
    """The files of one user, or of the tenant, below /memories. Paths are resolved. `name` keeps several trees in one
    tenant apart. Thread-safe; of changes at the same moment the last one counts."""

    def __init__(self, memories: BlockingMemories, name: str, user_id: str | None) -> None:
        self._entries = Entries(memories, name, user_id=user_id, kinds=(FILE, ITEM))
        self._name = name
        self._user_id = user_id

    def get(self, path: str) -> Node | None:
        """The file or folder at a path; None if there is none."""
        if path == ROOT:
            return Node(ROOT, None)
        memory = self._entries.get(self._id(path))
        return None if memory is None else _node(memory)

    def below(self, folder: str) -> list[Node]:
        """The contents of a folder and of its folders, level by level."""
        nodes_below: list[Node] = []
        level = [folder]
        while level:
            nodes = list(self._in(level))
            nodes_below += nodes
            level = [node.path for node in nodes if node.is_folder]
        return nodes_below

    def write(self, path: str, text: str) -> None:
        """Replaces the text of a file.

        Raises:
            InvalidInput: the text is too long or holds NUL characters.
        """
        self._entries.put([self._draft(Node(path, text))], "file_text")

    def create(self, nodes: Iterable[Node]) -> None:
        """Writes new files and folders, with the folders that they lie in; all of them or none.

        Raises:
            InvalidInput: a text is too long or holds NUL characters.
            Conflict: something is at one of the paths.
        """
        wanted = list(nodes)
        above = dict.fromkeys(folder for node in wanted for folder in folders_above(node.path))
        missing = [Node(folder, None) for folder in above if self.get(folder) is None]
        given = {node.path for node in wanted}
        missing = [node for node in missing if node.path not in given]
        self._entries.create([self._draft(node) for node in [*missing, *wanted]])

    def delete(self, node: Node) -> None:
        """Deletes a file, or a folder with its contents, the deepest first."""
        nodes = [node, *(self.below(node.path) if node.is_folder else ())]
        for inner in reversed(nodes):
            self._entries.delete(self._id(inner.path))

    def _in(self, folders: list[str]) -> Iterator[Node]:
        chosen = {"folder": folders, "$user_id": self._user_id}
        return (_node(memory) for memory in self._entries.listed(filters=chosen))

    def _draft(self, node: Node) -> dict[str, Any]:
        return {
            "id": self._id(node.path),
            "kind": ITEM if node.is_folder else FILE,
            "content": _heading(node.path) + (node.text or ""),
            "source": node.path,
            "metadata": {"path": node.path, "folder": folder_of(node.path)},
        }

    def _id(self, path: str) -> str:
        return entries.id_of(self._name, self._user_id, path)


def _node(memory: Memory) -> Node:
    path = memory.metadata["path"]
    return Node(path, None if memory.kind == ITEM else memory.content.removeprefix(_heading(path)))


def _heading(path: str) -> str:
    """The path before a file's text: it is searched with the text, and no two files have the same."""
    return json.dumps(path, ensure_ascii=False)[1:-1] + "\n\n"
