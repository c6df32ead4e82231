"""What ranks a message beside its own score: its words, its speaker, its neighbours, its sitting, its time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Filter, matches
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.where import compile_where
from memoranda.store.retrieval.rerank_weights import FEATURES
from memoranda.store.rows import attributes, fetch, speaker_of
from memoranda.text.cover import asks, asks_when, held, rarity, timely
from memoranda.text.json import compact_json
from memoranda.text.questions import normalise
from memoranda.text.terms import query_terms, word_terms
from memoranda.text.when import closeness, times
from memoranda.types import MACHINES

Floats = NDArray[np.float64]
SITTING_GAP = 7_200_000_000
"""Candidates of one place that are further apart, in microseconds, are of two sittings: those between them that are no
candidates are not known, so it is more than the silence that ends a session."""
NEIGHBOUR_GAP = 1_800_000_000
"""What was said longer before or after, in microseconds, is no neighbour."""
USERS = frozenset({"user", "human"})
ROLES = USERS | MACHINES
"""How a speaker is called who has no name."""
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
    before: int | None
    after: int | None


Around = Mapping[int, tuple[str, int]]
"""Messages by seq: what was said, and when."""


def read(c: Connection, tenant: str, seqs: Sequence[int], all_kinds: bool) -> dict[int, Candidate]:
    """The rows of these seqs that are there, messages and facts alone unless `all_kinds` are wanted."""
    rows = c.all("candidates", [tenant, compact_json(list(seqs)), int(all_kinds)])
    return {row[0]: Candidate._make(row) for row in rows}


def read_neighbours(
    c: Connection, tenant: str, candidates: Mapping[int, Candidate], where: Filter
) -> dict[int, tuple[str, int]]:
    """The messages among candidates and those beside them that pass `where`: what a search must not see has no say in
    it."""
    messages = [one for one in candidates.values() if one.kind == "message"]
    known = {one.seq: (one.content, one.occurred_at) for one in messages}
    wanted = {one.before for one in messages} | {one.after for one in messages}
    missing = sorted(seq for seq in wanted if seq is not None and seq not in known)
    if not missing:
        return known
    compiled = compile_where(where)
    if not compiled.exact:
        rows = fetch(c, tenant, missing).values()
        seen = [row for row in rows if matches(where, attributes(row))]
        return known | {row.seq: (row.content, row.occurred_at) for row in seen}
    found = c.select(
        "SELECT seq, substr(content, 1, 2000), occurred_at FROM {seqs ?} wanted"
        f" {{join}} memories m ON m.tenant_id = ? AND m.seq = wanted.value WHERE {compiled.sql}",
        [compact_json(missing), tenant, *compiled.params],
    )
    return known | {seq: (content, at) for seq, content, at in found}


def speakers(messages: Sequence[Candidate]) -> list[str | None]:
    """Who said each message, as far as is known: a name, else a role."""
    return [speaker_of(one.metadata, one.role) for one in messages]


def style_of(said_by: Sequence[str | None]) -> str:
    """The style of a conversation by its speakers: `people` when most that are known have names, `assistant` when most
    are roles, `plain` when nobody is known."""
    known = [who.lower() in ROLES for who in said_by if who]
    if not known:
        return "plain"
    return "assistant" if 2 * sum(known) > len(known) else "people"


def features(
    question: str,
    now: datetime,
    messages: Sequence[Candidate],
    said_by: Sequence[str | None],
    around: Around,
    fused: Mapping[int, float],
    *,
    timed: bool = True,
) -> Floats:
    """The features of messages, (n, len(FEATURES)), see `rerank_weights.FEATURES`.

    `around` holds messages and neighbours by seq, `fused` the fused scores of the candidates. Times that the question
    names are seen from `now`; without `timed` they count for nothing.
    """
    columns: dict[str, Floats] = {}
    scores = np.array([fused[one.seq] for one in messages])
    pairs = [_neighbours(one, around) for one in messages]
    columns["near"] = np.array(
        [sum(fused.get(seq, 0.0) for seq in pair if seq is not None) for pair in pairs]
    )
    columns["overlap"], columns["around"] = _overlaps(question, messages, said_by, around, pairs)
    columns["sitting"] = _sittings(messages, scores)
    columns["speaker"] = speaker_match(question, said_by)
    columns["length"] = np.log([2.0 + min(100, one.content.count(" ")) for one in messages])
    asking = {one.seq: asks(one.content) for one in messages}
    columns["asks"] = np.fromiter(asking.values(), np.float64)
    columns["answers"] = np.zeros(len(messages))
    for i, (before, _) in enumerate(pairs):
        if before is not None and (asking[before] if before in asking else asks(around[before][0])):
            columns["answers"][i] = 1.0
    if asks_when(question):
        columns["dated"] = np.array([float(timely(one.content)) for one in messages])
    if timed and (named := times(question, now)):
        columns["when"] = closeness(named, np.array([one.occurred_at for one in messages], np.int64))
    columns["author"] = _authored(question, said_by)
    nothing = np.zeros(len(messages))
    return np.stack([columns.get(name, nothing) for name in FEATURES], axis=1)


def _neighbours(one: Candidate, around: Around) -> tuple[int | None, int | None]:
    """What was said right before and right after: of those stored beside it, by when they were said."""
    now = one.occurred_at
    if one.before is not None and one.after is not None:
        first, last = around.get(one.before), around.get(one.after)
        if first and last and now - NEIGHBOUR_GAP <= first[1] <= now <= last[1] <= now + NEIGHBOUR_GAP:
            return one.before, one.after
    near = [
        (said[1], seq)
        for seq in (one.before, one.after)
        if seq is not None and (said := around.get(seq)) and abs(said[1] - now) <= NEIGHBOUR_GAP
    ]
    before = max((at for at in near if at < (now, one.seq)), default=None)
    after = min((at for at in near if at > (now, one.seq)), default=None)
    return before and before[1], after and after[1]


def _overlaps(
    question: str,
    messages: Sequence[Candidate],
    said_by: Sequence[str | None],
    around: Around,
    pairs: Sequence[tuple[int | None, int | None]],
) -> tuple[Floats, Floats]:
    wanted = without_names(question, said_by)
    beside = sorted({seq for pair in pairs for seq in pair if seq is not None})
    texts = [one.content for one in messages] + [around[seq][0] for seq in beside]
    found = held(texts, wanted)
    own = found[: len(messages)]
    weights = rarity(own)
    at = {seq: len(messages) + i for i, seq in enumerate(beside)}
    nobody = len(texts)
    padded = np.vstack([found, np.zeros((1, len(wanted)), np.bool_)])
    before, after = (
        padded[[nobody if pair[side] is None else at[pair[side]] for pair in pairs]]  # type: ignore[index]
        for side in (0, 1)
    )
    overlap: Floats = own @ weights
    return overlap, (own | before | after) @ weights - overlap


def _sittings(messages: Sequence[Candidate], scores: Floats) -> Floats:
    """The best score of another candidate of the same sitting; 0 where there is none."""
    best = np.zeros(len(messages))
    keys = [(one.session_id or "", one.channel_id or "", one.occurred_at) for one in messages]
    order = sorted(range(len(messages)), key=keys.__getitem__)
    begin = 0
    for end in range(1, len(order) + 1):
        if end < len(order):
            last, one = keys[order[end - 1]], keys[order[end]]
            if last[:2] == one[:2] and one[2] - last[2] <= SITTING_GAP:
                continue
        group = order[begin:end]
        if len(group) > 1:
            first, second = sorted(group, key=lambda i: -scores[i])[:2]
            best[group] = scores[first]
            best[first] = scores[second]
        begin = end
    return best


def without_names(question: str, said_by: Sequence[str | None]) -> list[str]:
    """The terms of a question that are no name of a speaker."""
    called = {who for who in said_by if who and who.lower() not in ROLES}
    names = {term for who in called for word in _WORDS.findall(who) for term in word_terms(word)}
    return [term for term in query_terms(question) if term not in names]


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
