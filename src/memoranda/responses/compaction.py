"""The text of a compacted conversation, packed into a string that a client carries and sends again.

A checksum detects damage. It is not encrypted: it contains only what the client may see anyway.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.responses.values import Item
from memoranda.store.ids import new_id

VERSION = "rc1."
MAX_CHARS = 1 << 20
"""The most characters of a packed string, and bytes of the text in it, that are decoded."""
CHECK = 4
"""Bytes of the checksum that goes before the packed text."""
_PACKED = re.compile(rf'"encrypted_content"\s*:\s*"({re.escape(VERSION)}[A-Za-z0-9_=-]+)"')


def compaction_item(text: str) -> Item:
    """The item that stands for the conversation that `text` summarizes."""
    return {"id": new_id("cmp_"), "type": "compaction", "encrypted_content": encode(text)}


def encode(text: str) -> str:
    """The text as `encrypted_content`."""
    raw = text.encode("utf-8", "replace")
    body = zlib.crc32(raw).to_bytes(CHECK, "big") + zlib.compress(raw, 9)
    return VERSION + base64.urlsafe_b64encode(body).decode("ascii")


def decode(content: Any, where: str = "encrypted_content") -> str:
    """The text that `encode` packed.

    Raises:
        InvalidInput: this server did not make the string, or it was changed.
    """
    if not isinstance(content, str) or not content.startswith(VERSION) or len(content) > MAX_CHARS:
        says = "is no compacted conversation of this server's; send the item as /v1/responses/compact gave it"
        raise InvalidInput(where, says)
    try:
        body = base64.b64decode(content.removeprefix(VERSION).encode("ascii"), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(body[CHECK:], MAX_CHARS)
        if (
            not unpacking.eof
            or unpacking.unused_data
            or zlib.crc32(raw).to_bytes(CHECK, "big") != body[:CHECK]
        ):
            raise ValueError("the checksum is of another text")
        return raw.decode("utf-8")
    except (ValueError, binascii.Error, zlib.error) as exc:
        says = "is damaged; send the item as /v1/responses/compact gave it"
        raise InvalidInput(where, says) from exc


def packed_in(*texts: str | None) -> list[str]:
    """Return the texts that are packed in the compaction items of JSON texts."""
    contents = (match for text in texts if text for match in _PACKED.findall(text))
    return [unpacked({"encrypted_content": content}) for content in contents]


def unpacked(item: Item) -> str:
    """The text of a compaction item that was checked before; "" if it can no longer be read."""
    try:
        return decode(item.get("encrypted_content"))
    except InvalidInput:
        return ""
