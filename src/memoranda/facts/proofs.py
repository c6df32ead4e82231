"""Checks that facts that claim to be extracted by rules rest on a stored message."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.facts.instructions import instructions
from memoranda.sessions.records import MessageRow, messages_by_id
from memoranda.storage.sql.base import Connection
from memoranda.store.rows import Record, refs_of
from memoranda.text.instructions import rule_of


def unproven(c: Connection, tenant: str, rows: Sequence[Record]) -> set[str]:
    """Return the ids of those facts that no stored message of their user proves.

    A standing instruction must follow by the rules from a message among its sources; any other fact needs a message
    of a person among them. A message of another user proves nothing.
    """
    refs = {ref for row in rows for ref in refs_of(row)}
    messages = messages_by_id(c, tenant, refs)
    return {row.id for row in rows if not _proven(row, [messages[r] for r in refs_of(row) if r in messages])}


def _proven(row: Record, messages: Sequence[MessageRow]) -> bool:
    own = [message for message in messages if message.personal and message.user_id in (None, row.user_id)]
    rule = rule_of(row.content)
    if rule is None:
        return bool(own)
    stated = (
        candidate.text for message in own for candidate in instructions(message.content, message.author)
    )
    return any(rule_of(text) == rule for text in stated)
