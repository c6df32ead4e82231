"""Summaries of sessions that callers supply, checked and converted to digests."""

from __future__ import annotations

from memoranda.sessions.digests import Digest
from memoranda.sessions.records import LISTS
from memoranda.sessions.values import NewSummary
from memoranda.store.validation import Bounds, check_name, check_text


def digest_given(new: NewSummary, bounds: Bounds) -> Digest:
    """Return the digest of a summary that a caller supplies; an item listed twice counts once.

    Raises:
        InvalidInput: names the field that is empty or cannot be stored.
    """
    check_text(new.summary, "summary", bounds)
    check_name(new.model, "model")
    lists: dict[str, list[str]] = {}
    for name in LISTS:
        for i, item in enumerate(getattr(new, name)):
            check_text(item, f"{name}[{i}]", bounds)
        lists[name] = list(dict.fromkeys(getattr(new, name)))
    digest = Digest(summary=new.summary.strip(), by=new.model, **lists)
    check_text(digest.flat(), "summary", bounds)
    return digest
