"""Sessions of browsers: a cookie that is signed with the key that was entered, so that every server with that key
accepts it and none has to store it.

A cookie is `END.NONCE.MAC`: seconds since 1970, 128 random bits, and HMAC-SHA256 with the key over both. It does not
contain the key, and it is worth nothing on a server that does not have the key any more.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256

from memoranda.config.agent_sections import ServerKey

COOKIE = "memoranda_session"
SECONDS = 12 * 3600
"""How long a session lasts."""


def new_session(secret: str, now: float) -> str:
    """Return a cookie for the key with this secret; `now` in seconds since 1970."""
    body = f"{int(now) + SECONDS}.{secrets.token_urlsafe(16)}"
    return f"{body}.{_mac(secret, 'session', body)}"


def key_of(session: str, keys: Iterable[ServerKey], now: float) -> ServerKey | None:
    """Return the key that signed a cookie; None if none of `keys` did, or if the session has ended."""
    body, _, mac = session.rpartition(".")
    end = end_of(session)
    if end is None or end <= now:
        return None
    for key in keys:
        if hmac.compare_digest(mac.encode(), _mac(key.key, "session", body).encode()):
            return key
    return None


def end_of(session: str) -> int | None:
    """Return when a session ends, in seconds since 1970; None if the cookie has no such number."""
    text = session.partition(".")[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def csrf_token(secret: str, session: str) -> str:
    """Return what a request with this cookie has to carry in a header, which only a page of this server can read."""
    return _mac(secret, "csrf", session)


def _mac(secret: str, purpose: str, text: str) -> str:
    key = secret.encode("utf-8", "surrogateescape")
    return hmac.new(
        key, f"memoranda console {purpose}\n{text}".encode("utf-8", "surrogateescape"), sha256
    ).hexdigest()
