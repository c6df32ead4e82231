"""Stable hashes of texts. Few imports: a hook that a prompt waits for needs it."""

from __future__ import annotations

from hashlib import blake2b


def digest(*pieces: str) -> str:
    """Return 128 bits of BLAKE2b over the pieces, in hex; each piece is hashed with its length."""
    state = blake2b(digest_size=16)
    for piece in pieces:
        raw = piece.encode("utf-8")
        state.update(len(raw).to_bytes(8, "little"))
        state.update(raw)
    return state.hexdigest()


def hash64(text: str) -> int:
    """64 well mixed bits of the text, [0, 2**64): BLAKE2b with an 8-byte digest, read little-endian."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
