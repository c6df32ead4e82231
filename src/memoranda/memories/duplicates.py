"""Near-duplicates of memories, and the differences that make similar texts distinct."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Compare, Filter, all_of
from memoranda.memories.overviews import NearDuplicate, NearDuplicatePage
from memoranda.memories.pages import seq_of
from memoranda.storage.sql.base import Connection
from memoranda.store.listing import page
from memoranda.store.rows import Record
from memoranda.store.rows import fetch as fetch_rows
from memoranda.store.store import Store
from memoranda.text.numbers import in_digits
from memoranda.text.stored import compact_json
from memoranda.text.terms import terms
from memoranda.types import Subject

COMPARED = 1_000
"""The most memories that one report compares with older ones."""
BATCH = 50
_LIKENESS = attrgetter("likeness")
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
        or negated(a) != negated(b)
        or _other_names(a, b)
    )


def negated(text: str) -> bool:
    """Return True if a text has an odd number of negations, English or German."""
    return len(_NEGATION.findall(text)) % 2 == 1


def lacks(text: str, other: str) -> bool:
    """Return True if `text` lacks a number of `other`, or a name that stands inside its sentences."""
    numbers, others = (set(_NUMBER.findall(in_digits(each))) for each in (text, other))
    return bool(others - numbers or _missing(other, text)[0])


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


def report(store: Store, subject: Subject, where: Filter, limit: int, after: str | None) -> NearDuplicatePage:
    """Return pairs among the rows that pass `where`: cosine >= 0.95 or stemmed Jaccard >= 0.6, the same scope and kind,
    no contradiction; most similar first.

    Rows are compared from the newest on, or from the next older one than `after`, each with its five nearest older rows
    by vector and by keyword, until 1 000 are compared or the next one would make it more than `limit` pairs. Of one row
    the `limit` closest pairs are returned; there are at most ten.

    Raises:
        InvalidInput: `after` names no memory that the subject may see.
    """
    tenant = subject.tenant_id

    def read(c: Connection) -> list[Record]:
        cursor = None if after is None else seq_of(c, subject, "after", after)
        return page(c, tenant, where, limit=COMPARED + 1, after=cursor, descending=True)

    rows = store.db.read(read, tenant)
    pairs: list[NearDuplicate] = []
    compared = 0
    for found in _each(store, tenant, rows[:COMPARED], where):
        if pairs and len(pairs) + len(found) > limit:
            break
        pairs += found[:limit]
        compared += 1
    return NearDuplicatePage(
        data=sorted(pairs, key=_LIKENESS, reverse=True),
        compared=compared,
        last_id=rows[compared - 1].id if compared else None,
        has_more=compared < len(rows),
    )


def _each(store: Store, tenant: str, rows: Sequence[Record], where: Filter) -> Iterator[list[NearDuplicate]]:
    """Yield the pairs of each row, most similar first."""
    for start in range(0, len(rows), BATCH):
        yield from _pairs(store, tenant, rows[start : start + BATCH], where)


def _pairs(store: Store, tenant: str, rows: Sequence[Record], where: Filter) -> Iterator[list[NearDuplicate]]:
    vectors = _vectors(store, tenant, [row.seq for row in rows])
    near = [_nearest(store, tenant, row, vectors.get(row.seq), where) for row in rows]
    wanted = set[int]().union(*near)
    others = store.db.read(lambda c: fetch_rows(c, tenant, wanted), tenant)
    for row, nearest in zip(rows, near, strict=True):
        pairs = (_pair(others[seq], row, cosine) for seq, cosine in nearest.items() if seq in others)
        yield sorted(filter(None, pairs), key=_LIKENESS, reverse=True)


def _nearest(
    store: Store, tenant: str, row: Record, vector: NDArray[np.float32] | None, where: Filter
) -> dict[int, float | None]:
    """Return the nearest older rows by vector and by keyword, with their cosine if it is known."""
    elders = all_of(Compare("$seq", "lt", row.seq), same_scope(row), Compare("$kind", "eq", row.kind), where)
    near: dict[int, float | None] = {}
    if vector is not None:
        nearest = store.index.search(tenant, vector, NEIGHBOURS, elders)
        near.update(zip(nearest.seqs.tolist(), nearest.scores.tolist(), strict=True))
    for seq in store.words.search(tenant, row.content, NEIGHBOURS, elders).seqs.tolist():
        near.setdefault(seq, None)
    return near


def _pair(elder: Record, row: Record, cosine: float | None) -> NearDuplicate | None:
    overlap = jaccard(row.content, elder.content)
    alike = cosine is not None and cosine >= COSINE
    if not (alike or overlap >= JACCARD) or contradict(row.content, elder.content):
        return None
    return NearDuplicate(
        first=elder.id,
        second=row.id,
        cosine=cosine,
        jaccard=round(overlap, 4),
        reason="cosine" if alike else "jaccard",
    )


def _vectors(store: Store, tenant: str, seqs: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """Return the first vector of each row that has one."""
    key = [tenant, store.space, compact_json(seqs)]
    rows = store.db.read(lambda c: c.all("embeddings_of", key), tenant)
    return {seq: np.frombuffer(data, dtype="<f4") for seq, part, _, _, data in rows if part == 0}
