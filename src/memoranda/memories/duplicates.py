"""Near-duplicates of memories, and the differences that make similar texts distinct."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Compare, Filter, all_of
from memoranda.store.listing import scan
from memoranda.store.rows import Record
from memoranda.store.rows import fetch as fetch_rows
from memoranda.store.store import Store
from memoranda.text.json import compact_json
from memoranda.text.numbers import in_digits
from memoranda.text.terms import terms
from memoranda.types import NearDuplicate

COSINE = 0.95
JACCARD = 0.6
NEIGHBOURS = 5
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|without|cannot|nor|neither|nicht|nie|niemals|ohne|kein\w*)\b|n['’]t\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?P<begins>^\W*|[.!?]\s+)?(?P<word>[^\W\d_][\w'-]+)")


def jaccard(a: str, b: str) -> float:
    """Return the shared over all distinct stemmed terms of two texts, 0..1; 0 if neither has a term."""
    first, second = set(terms(a)), set(terms(b))
    union = len(first | second)
    return len(first & second) / union if union else 0.0


def contradict(a: str, b: str) -> bool:
    """Return True if two texts differ in a number, a date, a name or a negation: then they are never duplicates,
    however similar."""
    return (
        sorted(_NUMBER.findall(in_digits(a))) != sorted(_NUMBER.findall(in_digits(b)))
        or len(_NEGATION.findall(a)) % 2 != len(_NEGATION.findall(b)) % 2
        or _other_names(a, b)
    )


def _other_names(a: str, b: str) -> bool:
    """Return True if one text has a name that the other lacks. A capital at the beginning of a sentence may be no name:
    it counts if the other text begins with another one ("Ann likes tea", "Bob likes tea")."""
    (inside, first), (other_inside, other_first) = _missing(a, b), _missing(b, a)
    return bool(inside or other_inside or (first and other_first))


def _missing(text: str, other: str) -> tuple[set[str], set[str]]:
    """Return capitalised words of `text` that `other` lacks in any case: inside sentences, and at their beginnings."""
    words = {match["word"].lower() for match in _WORD.finditer(other)}
    inside: set[str] = set()
    first: set[str] = set()
    for match in _WORD.finditer(text):
        word = match["word"]
        if word[0].isupper() and word.lower() not in words and terms(word):
            (inside if match["begins"] is None else first).add(word.lower())
    return inside, first


def same_scope(row: Record) -> Filter:
    """Return a filter for the rows of exactly the scope of `row`."""
    return all_of(
        Compare("$user_id", "eq", row.user_id),
        Compare("$agent_id", "eq", row.agent_id),
        Compare("$channel_id", "eq", row.channel_id),
        Compare("$session_id", "eq", row.session_id),
    )


def report(store: Store, tenant: str, where: Filter, limit: int) -> list[NearDuplicate]:
    """Return pairs among the rows that pass `where`: cosine >= 0.95 or stemmed Jaccard >= 0.6, the same scope and kind,
    no contradiction. Each row is compared with its five nearest older rows by vector and by keyword; the `limit`
    closest pairs are returned, most similar first."""
    duplicates: list[NearDuplicate] = []
    for rows in scan(store.db, tenant, where):
        for row in rows:
            duplicates.extend(_pairs(store, tenant, row, where))
    duplicates.sort(key=lambda pair: -max(pair.cosine or 0.0, pair.jaccard))
    return duplicates[:limit]


def _pairs(store: Store, tenant: str, row: Record, where: Filter) -> Iterator[NearDuplicate]:
    elders = all_of(Compare("$seq", "lt", row.seq), same_scope(row), Compare("$kind", "eq", row.kind), where)
    near: dict[int, float | None] = {}
    for vector in _vectors(store, tenant, row.seq)[:1]:
        nearest = store.index.search(tenant, vector, NEIGHBOURS, elders)
        near.update(zip(nearest.seqs.tolist(), nearest.scores.tolist(), strict=True))
    for seq in store.words.search(tenant, row.content, NEIGHBOURS, elders).seqs.tolist():
        near.setdefault(seq, None)
    others = store.db.read(lambda c: fetch_rows(c, tenant, near), tenant)
    for seq, other in others.items():
        cosine, overlap = near[seq], jaccard(row.content, other.content)
        alike = cosine is not None and cosine >= COSINE
        if (alike or overlap >= JACCARD) and not contradict(row.content, other.content):
            yield NearDuplicate(
                first=other.id,
                second=row.id,
                cosine=cosine,
                jaccard=round(overlap, 4),
                reason="cosine" if alike else "jaccard",
            )


def _vectors(store: Store, tenant: str, seq: int) -> list[NDArray[np.float32]]:
    key = [tenant, store.space, compact_json([seq])]
    rows = store.db.read(lambda c: c.all("embeddings_of", key), tenant)
    return [np.frombuffer(data, dtype="<f4") for _, _, _, _, data in rows]
