"""Names for texts that never change: the same text has the same hash on every machine."""

from __future__ import annotations

from hashlib import blake2b, sha256


def content_hash(text: str) -> str:
    """SHA-256 of the text's UTF-8 bytes, 64 hex digits.

    Nothing is normalised: texts that differ in one character differ here. A lone surrogate, which
    UTF-8 has no bytes for, is hashed as the three bytes it would have.
    """
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash64(text: str) -> int:
    """64 well mixed bits of the text, [0, 2**64): BLAKE2b with an 8-byte digest, read little-endian."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
