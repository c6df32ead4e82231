"""Features of the candidates of a search: terms, speaker, neighbours, sitting, time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoranda.clock import EPOCH, local
from memoranda.filters import Filter, matches
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.where import compile_where
from memoranda.store.retrieval.scoring import FEATURES, MANY, expected
from memoranda.store.rows import attributes, fetch, speaker_of, zone_of
from memoranda.text.numbers import bare, ids_in
from memoranda.text.questions import asks, asks_when, covered_terms, normalise, rarity, timely
from memoranda.text.stored import compact_json
from memoranda.text.terms import query_terms, word_terms
from memoranda.text.when import closeness, times
from memoranda.types import MACHINES

Floats = NDArray[np.float64]
SITTING_GAP = 7_200_000_000
"""Candidates of one place that are further apart, in microseconds, are of two sittings: those between them that are no
candidates are not known, so it is more than the silence that ends a session."""
NEIGHBOUR_GAP = 1_800_000_000
"""The most microseconds between a message and a neighbour."""
USERS = frozenset({"user", "human"})
ROLES = USERS | MACHINES
"""The names of speakers without a name of their own."""
_WORDS = re.compile(r"[^\W_]+")
_YOU = re.compile(r"\byou(?:r|rs|'ve|'d)?\b", re.IGNORECASE)


class Candidate(NamedTuple):
    """A row as the statement `candidates` gives it; times are microseconds. `before` and `after` are seqs."""

    seq: int
    kind: str
    session_id: str | None
    channel_id: str | None
    role: str | None
    occurred_at: int
    created_at: int
    last_accessed_at: int | None
    importance: int
    metadata: str
    content: str
    user_id: str | None
    before: int | None
    after: int | None


Around = Mapping[int, tuple[str, int]]
"""Messages by seq: what was said, and when."""


def read(c: Connection, tenant: str, seqs: Sequence[int]) -> dict[int, Candidate]:
    """Return the existing rows of these seqs."""
    rows = c.all("candidates", [tenant, compact_json(list(seqs))])
    return {row[0]: Candidate._make(row) for row in rows}


def read_neighbours(
    c: Connection, tenant: str, candidates: Mapping[int, Candidate], where: Filter
) -> dict[int, tuple[str, int]]:
    """Return the messages among candidates, and their neighbours that pass `where`: messages that the subject may not
    see must not affect the ranking."""
    known = {row.seq: (row.content, row.occurred_at) for row in candidates.values() if row.kind == "message"}
    beside = {seq for row in candidates.values() for seq in (row.before, row.after) if seq is not None}
    return known | visible(c, tenant, sorted(beside - known.keys()), where)


def visible(c: Connection, tenant: str, seqs: Sequence[int], where: Filter) -> dict[int, tuple[str, int]]:
    """Return what was said and when, by seq, in those of these messages that pass `where`."""
    if not seqs:
        return {}
    compiled = compile_where(where)
    if not compiled.exact:
        rows = fetch(c, tenant, seqs).values()
        return {row.seq: (row.content, row.occurred_at) for row in rows if matches(where, attributes(row))}
    rows_seen = c.select(
        "SELECT seq, substr(content, 1, 2000), occurred_at FROM {seqs ?} wanted"
        f" {{join}} memories m ON m.tenant_id = ? AND m.seq = wanted.value WHERE {compiled.sql}",
        [compact_json(list(seqs)), tenant, *compiled.params],
    )
    return {seq: (content, at) for seq, content, at in rows_seen}


def beside(c: Connection, tenant: str, seqs: Sequence[int], where: Filter) -> list[int]:
    """Return the seqs of the messages right before and after those of these rows that are messages, as far as they pass
    `where`."""
    rows = read(c, tenant, seqs).values()
    wanted = {seq for row in rows for seq in (row.before, row.after) if seq is not None}
    return list(visible(c, tenant, sorted(wanted), where))


def speakers(messages: Sequence[Candidate]) -> list[str | None]:
    """Return the speaker of each message: a name, else a role, else None."""
    return [speaker_of(message.metadata, message.role) for message in messages]


def style_of(said_by: Sequence[str | None]) -> str:
    """Return the style of a conversation by its speakers: `people` if most known speakers have names, `assistant` if
    most are roles, `plain` if no speaker is known."""
    known = [who.lower() in ROLES for who in said_by if who]
    if not known:
        return "plain"
    return "assistant" if 2 * sum(known) > len(known) else "people"


def features(
    question: str,
    now: datetime,
    rows: Sequence[Candidate],
    around: Around,
    similar: Floats,
    tokens: Floats | None = None,
    *,
    timed: bool = True,
) -> Floats:
    """Return the features of candidates, (n, len(FEATURES)), see `scoring.FEATURES`.

    `around` holds messages and neighbours by seq, `similar` (n,) the similarities (NaN: not known), `tokens` (n,) the
    token similarities if there are any. Times that the question names are seen from `now`; without `timed` they count
    for nothing.
    """
    columns: dict[str, Floats] = {} if tokens is None else {"tokens": tokens}
    pairs = [_neighbours(row, around) for row in rows]
    columns["coverage"], columns["around"] = _overlaps(question, rows, speakers(rows), around, pairs)
    similar = np.where(np.isnan(similar), expected(columns["coverage"]), similar)
    columns["similarity"] = similar
    columns["length"] = np.log([2.0 + min(100, row.content.count(" ")) for row in rows])
    if ids := ids_in(question):
        texts = [bare(row.content) for row in rows]
        columns["lacks"] = np.array([sum(id_ not in text for id_ in ids) / len(ids) for text in texts])
    asking = {row.seq: asks(row.content) for row in rows}
    columns["asks"] = np.fromiter(asking.values(), np.float64)
    at = [place for place, row in enumerate(rows) if row.kind == "message"]
    if at:
        base = similar + columns["coverage"] / 2
        told = _of_messages(question, now, [rows[i] for i in at], [pairs[i] for i in at], base[at], timed)
        answered = [
            before is not None and _asks(before, around, asking) for before, _ in (pairs[i] for i in at)
        ]
        told["answers"] = np.array(answered, np.float64)
        for name, values in told.items():
            columns[name] = np.zeros(len(rows))
            columns[name][at] = values
    nothing = np.zeros(len(rows))
    return np.stack([columns.get(name, nothing) for name in FEATURES], axis=1)


def _of_messages(
    question: str,
    now: datetime,
    messages: Sequence[Candidate],
    pairs: Sequence[tuple[int | None, int | None]],
    base: Floats,
    timed: bool,
) -> dict[str, Floats]:
    """Return the features that only messages have, by name; `base` (n,) is their similarity + coverage / 2."""
    said_by = speakers(messages)
    columns = {
        "sitting": _sittings(messages, base),
        "speaker": speaker_match(question, said_by),
        "author": _authored(question, said_by),
    }
    if asks_when(question):
        columns["dated"] = np.array([float(timely(message.content)) for message in messages])
    if timed and (spans := times(question, now)):
        columns["when"] = closeness(spans, np.array([_local(message) for message in messages], np.int64))
    return columns


def _asks(seq: int, around: Around, asking: Mapping[int, bool]) -> bool:
    return asking[seq] if seq in asking else asks(around[seq][0])


def _local(message: Candidate) -> int:
    """Return when a message was said where it was said, as if that were UTC."""
    zone = zone_of(message.metadata)
    if zone is None:
        return message.occurred_at
    away = local(EPOCH, zone).utcoffset()
    return message.occurred_at + (away // timedelta(microseconds=1) if away else 0)


def _neighbours(message: Candidate, around: Around) -> tuple[int | None, int | None]:
    """Return the messages right before and after by time, of those stored beside the message."""
    now = message.occurred_at
    if message.before is not None and message.after is not None:
        first, last = around.get(message.before), around.get(message.after)
        if first and last and now - NEIGHBOUR_GAP <= first[1] <= now <= last[1] <= now + NEIGHBOUR_GAP:
            return message.before, message.after
    near = [
        (said[1], seq)
        for seq in (message.before, message.after)
        if seq is not None and (said := around.get(seq)) and abs(said[1] - now) <= NEIGHBOUR_GAP
    ]
    before = max((at for at in near if at < (now, message.seq)), default=None)
    after = min((at for at in near if at > (now, message.seq)), default=None)
    return before and before[1], after and after[1]


def _overlaps(
    question: str,
    messages: Sequence[Candidate],
    said_by: Sequence[str | None],
    around: Around,
    pairs: Sequence[tuple[int | None, int | None]],
) -> tuple[Floats, Floats]:
    beside = sorted({seq for pair in pairs for seq in pair if seq is not None})
    texts = [message.content for message in messages] + [around[seq][0] for seq in beside]
    covered, wanted = covered_terms(question, texts)
    names = named(said_by)
    kept = [column for column, term in enumerate(wanted) if term not in names]
    covered, wanted = covered[:, kept], [wanted[column] for column in kept]
    own = covered[: len(messages)]
    weights = rarity(own, MANY)
    at = {seq: len(messages) + i for i, seq in enumerate(beside)}
    blank = len(texts)
    padded = np.vstack([covered, np.zeros((1, len(wanted)), np.bool_)])
    before, after = (
        padded[[blank if pair[side] is None else at[pair[side]] for pair in pairs]]  # type: ignore[index]
        for side in (0, 1)
    )
    overlap: Floats = own @ weights
    return overlap, (own | before | after) @ weights - overlap


def _sittings(messages: Sequence[Candidate], scores: Floats) -> Floats:
    """The best base of another candidate of the same sitting; 0 where there is none."""
    best = np.zeros(len(messages))
    keys = [(message.session_id or "", message.channel_id or "", message.occurred_at) for message in messages]
    order = sorted(range(len(messages)), key=keys.__getitem__)
    begin = 0
    for end in range(1, len(order) + 1):
        if end < len(order):
            previous, current = keys[order[end - 1]], keys[order[end]]
            if previous[:2] == current[:2] and current[2] - previous[2] <= SITTING_GAP:
                continue
        group = order[begin:end]
        if len(group) > 1:
            first, second = sorted(group, key=lambda i: -scores[i])[:2]
            best[group] = scores[first]
            best[first] = scores[second]
        begin = end
    return best


def term_coverage(question: str, texts: Sequence[str], said_by: Sequence[str | None]) -> Floats:
    """Return the share (n,) of the question's terms that each text has, without names of speakers; rare ones count
    more."""
    covered, wanted = covered_terms(question, texts)
    names = named(said_by)
    own = covered[:, [column for column, term in enumerate(wanted) if term not in names]]
    result: Floats = own @ rarity(own, MANY)
    return result


def without_names(question: str, said_by: Sequence[str | None]) -> list[str]:
    """The terms of a question that are no name of a speaker."""
    names = named(said_by)
    return [term for term in query_terms(question) if term not in names]


def named(said_by: Sequence[str | None]) -> set[str]:
    """Return the terms of the names of speakers."""
    called = {who for who in said_by if who and who.lower() not in ROLES}
    return {term for who in called for word in _WORDS.findall(who) for term in word_terms(word)}


def speaker_match(question: str, said_by: Sequence[str | None]) -> Floats:
    """1 for the messages of speakers that the question names, -1 for the others' when it names any."""
    asked = set(_WORDS.findall(question))
    cased = question != question.lower()
    called: dict[str, bool] = {}
    for who in set(said_by):
        if who and who.lower() not in ROLES:
            words = _WORDS.findall(who if cased else who.lower())
            called[who] = any(len(word) > 1 and word in asked for word in words)
    if not any(called.values()):
        return np.zeros(len(said_by))
    return np.array([1.0 if who and called.get(who) else -1.0 for who in said_by])


def _authored(question: str, said_by: Sequence[str | None]) -> Floats:
    """1 for what the user of an assistant said; for what the assistant did, where the question says "you" to it."""
    roles = ROLES - USERS if _YOU.search(normalise(question)) else USERS
    return np.array([float(who is not None and who.lower() in roles) for who in said_by])
