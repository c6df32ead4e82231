"""The text of a compacted conversation, packed into a string that a client carries and sends again.

It is checked against damage, not kept secret: it holds only what its bearer was told anyway.
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
"""Characters of a packed string, and bytes of the text in it, beyond which it is not looked at."""
CHECK = 4
"""Bytes of the checksum that goes before the packed text."""
_PACKED = re.compile(rf'"encrypted_content"\s*:\s*"({re.escape(VERSION)}[A-Za-z0-9_=-]+)"')


def compaction_item(text: str) -> Item:
    """The item that stands for a conversation told by `text`."""
    return {"id": new_id("cmp_"), "type": "compaction", "encrypted_content": encode(text)}


def encode(text: str) -> str:
    """The text as `encrypted_content`."""
    raw = text.encode("utf-8", "replace")
    body = zlib.crc32(raw).to_bytes(CHECK, "big") + zlib.compress(raw, 9)
    return VERSION + base64.urlsafe_b64encode(body).decode("ascii")


def decode(content: Any, where: str = "encrypted_content") -> str:
    """The text that `encode` packed.

    Raises:
        InvalidInput: it is no string of this server's making, or was changed on the way.
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
    """Return what is packed in the compaction items of JSON texts."""
    found = (match for text in texts if text for match in _PACKED.findall(text))
    return [told({"encrypted_content": content}) for content in found]


def told(item: Item) -> str:
    """The text of a compaction item that was checked before; "" where it cannot be read any more."""
    try:
        return decode(item.get("encrypted_content"))
    except InvalidInput:
        return ""
