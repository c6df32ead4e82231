"""Claude Agent SDK: `MemorandaSessionStore`, its session transcripts in Memoranda."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from memoranda.integrations.frameworks import require

require("claude_agent_sdk.types", "claude-agent-sdk")

from claude_agent_sdk import fold_session_summary  # noqa: E402 - says first what is missing
from claude_agent_sdk.types import (  # noqa: E402
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from memoranda.integrations import payloads  # noqa: E402
from memoranda.integrations.logs import HEAD, Line, Logs  # noqa: E402
from memoranda.integrations.products import Product, memories_of  # noqa: E402

MAIN = ""
"""The subpath of a session's main transcript."""


class MemorandaSessionStore(SessionStore):
    """The SDK's session transcripts in a folder or on a server of Memoranda.

    An entry is one memory of kind `item`, or several if it is long, found by what was said in it; other searches of
    the product see items only if they name that kind. An entry with a `uuid` is stored once. Transcripts belong to the
    user `user_id`, or to the tenant; `name` keeps several stores apart. Methods run in worker threads.

    Summaries are kept up to date under a lock of this store: one store at a time writes a session, as the SDK does.
    """

    def __init__(
        self, product: Product, *, user_id: str | None = None, name: str = "claude-sessions"
    ) -> None:
        self._logs = Logs(memories_of(product), name, user_id)
        self._appending = threading.Lock()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Adds entries to the end of a transcript.

        Raises:
            InvalidInput: the key or an entry cannot be stored.
        """
        await asyncio.to_thread(self._append, key, list(entries))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The entries of a transcript in their order; None if it was never written."""
        return await asyncio.to_thread(self._load, key)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project with the time of their last change, in milliseconds since 1970."""
        heads = await asyncio.to_thread(self._heads, project=project_key, subpath=MAIN)
        return [{"session_id": head["session"], "mtime": head["mtime"]} for head in heads]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """The SDK's summaries of the sessions of a project."""
        heads = await asyncio.to_thread(self._heads, project=project_key, subpath=MAIN)
        return [_summary(head) for head in heads]

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of a session's other transcripts."""
        heads = await asyncio.to_thread(self._heads, project=key["project_key"], session=key["session_id"])
        return [head["subpath"] for head in heads if head["subpath"] != MAIN]

    async def delete(self, key: SessionKey) -> None:
        """Erases a transcript; the main one with all others of its session."""
        place = _place(key)
        if place["subpath"] == MAIN:
            del place["subpath"]
        await asyncio.to_thread(self._logs.erase, place)

    def _append(self, key: SessionKey, added: Sequence[SessionStoreEntry]) -> None:
        if not added:
            return
        with self._appending:
            self._logs.append(_place(key), [_line(entry) for entry in added], key["session_id"])
            self._logs.entries.put([self._head(key, added)], "entries")

    def _head(self, key: SessionKey, added: Sequence[SessionStoreEntry]) -> dict[str, Any]:
        """The row of a transcript after entries were added. Its time is later than it was before."""
        place = _place(key)
        id_ = self._logs.id_of(HEAD, place)
        memory = self._logs.entries.get(id_)
        known = {} if memory is None else memory.metadata
        head = {**place, "holds": HEAD, "mtime": max(int(time.time() * 1000), known.get("mtime", 0) + 1)}
        if place["subpath"] == MAIN:
            folded = fold_session_summary(_summary(known) if known else None, key, list(added))
            head["parts"] = payloads.parts_of(payloads.text_of(folded["data"]))
        return {
            "id": id_,
            "content": "/".join(filter(None, place.values())),
            "session_id": place["session"],
            "metadata": head,
        }

    def _load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return self._logs.read(_place(key)) or None

    def _heads(self, **place: str) -> list[dict[str, Any]]:
        return [memory.metadata for memory in self._logs.rows(holds=HEAD, **place)]


def _line(entry: Mapping[str, Any]) -> Line:
    id_ = entry.get("uuid") or str(uuid4())
    return Line(id_, entry, payloads.searchable(_said(entry), f"{entry.get('type')} {id_}"))


def _place(key: Mapping[str, Any]) -> dict[str, str]:
    return {
        "project": key["project_key"],
        "session": key["session_id"],
        "subpath": key.get("subpath") or MAIN,
    }


def _summary(head: Mapping[str, Any]) -> SessionSummaryEntry:
    return {
        "session_id": head["session"],
        "mtime": head["mtime"],
        "data": json.loads("".join(head["parts"])),
    }


def _said(entry: Mapping[str, Any]) -> list[str]:
    """The texts of a message of a person or of the assistant."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return [text for text in texts if isinstance(text, str)]
