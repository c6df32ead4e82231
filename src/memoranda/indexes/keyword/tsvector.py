"""Keyword search in the rows' own PostgreSQL: an inverted index in plain tables, so that row security applies to it.

PostgreSQL's own full-text index, GIN over `tsvector`, is of no use behind row security: its operator is not leakproof,
so the planner applies it only to rows that passed the policy, one by one. `ts_rank` is no BM25 either. Therefore
`word_terms` has a row for each term in each block of 512 documents; it is selected by equality, which is leakproof.
Its `postings` are packed: the document's seq, the count of the term, and the length of the document.
"""

from __future__ import annotations

import copy
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import ConfigError
from memoranda.filters import EVERYTHING, Filter
from memoranda.indexes.keyword.base import NO_WORDS, WordDoc, WordMatches, Words
from memoranda.indexes.keyword.tail import K1, LENGTHS, B, idf, length_code, rounded
from memoranda.indexes.postgres import NEVER_BEHIND, InPostgres
from memoranda.indexes.ranking import top
from memoranda.storage.sql.base import Connection, Database
from memoranda.storage.sql.jsonb import COLUMNS, DEFINITION, TYPES, Condition, columns, indexes, policy
from memoranda.storage.sql.pgbinary import BYTEA, array, ints, texts
from memoranda.storage.sql.postgres import PostgresDatabase
from memoranda.text.analysis import MARKERS, STAMP, index_terms, search_terms, spoken

T = TypeVar("T")
BLOCK = 512
"""Documents of one block: adding one rewrites the postings of its terms in the block, at most 5 kB each."""
FEW = 512
"""The number of best candidates that are filtered first, each looked up by its seq."""
TABLES = ("words", "word_terms", "word_tenants")
FORMAT = "words 1"
POSTING = np.dtype([("seq", "<i8"), ("count", "u1"), ("length", "u1")])
SCHEMA = f"""
CREATE TABLE words (
    tenant_id TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, block BIGINT NOT NULL, length BIGINT NOT NULL,
    terms TEXT COLLATE "C" NOT NULL, {DEFINITION}, PRIMARY KEY (tenant_id, seq));
CREATE TABLE word_terms (
    tenant_id TEXT COLLATE "C" NOT NULL, term TEXT COLLATE "C" NOT NULL, block BIGINT NOT NULL,
    postings BYTEA NOT NULL, PRIMARY KEY (tenant_id, term, block)
) WITH (fillfactor = 80, toast_tuple_target = 8160);
ALTER TABLE word_terms ALTER COLUMN postings SET STORAGE EXTERNAL;
CREATE TABLE word_tenants (
    tenant_id TEXT COLLATE "C" PRIMARY KEY, documents BIGINT NOT NULL, length BIGINT NOT NULL,
    block BIGINT NOT NULL, filled BIGINT NOT NULL);
{indexes("words")};
{"; ".join(policy(name) for name in TABLES)};
"""
ENTER = """
INSERT INTO word_tenants VALUES ($1::text, 0, 0, 0, 0)
ON CONFLICT (tenant_id) DO UPDATE SET block = word_tenants.block RETURNING block, filled
"""
LEAVE = """
UPDATE word_tenants SET documents = documents + $2::bigint, length = length + $3::bigint,
    block = $4::bigint, filled = $5::bigint WHERE tenant_id = $1::text
"""
DELETE = """
DELETE FROM words WHERE tenant_id = $1::text AND seq = ANY($2::bigint[]) RETURNING seq, block, length, terms
"""
_NAMES = ("seq", "block", "length", "terms", *COLUMNS)
_PLACES = ", ".join(
    f"${n + 2}::{cast}" for n, cast in enumerate(("bigint[]", "bigint[]", "bigint[]", "text[]", *TYPES))
)
INSERT = f"""
INSERT INTO words (tenant_id, {", ".join(_NAMES)}) SELECT $1::text, given.* FROM unnest({_PLACES}) AS given
"""
_KEYED = "unnest($2::text[], $3::bigint[]) AS given (term, block)"
POSTINGS_OF = f"""
SELECT t.term, t.block, t.postings FROM {_KEYED}
JOIN word_terms t ON t.tenant_id = $1::text AND t.term = given.term AND t.block = given.block
"""
ADD = """
INSERT INTO word_terms (tenant_id, term, block, postings)
SELECT $1::text, given.* FROM unnest($2::text[], $3::bigint[], $4::bytea[]) AS given
"""
APPEND = f"""{ADD}
ON CONFLICT (tenant_id, term, block) DO UPDATE SET postings = word_terms.postings || excluded.postings
"""
REPLACE = """
UPDATE word_terms t SET postings = given.postings
FROM unnest($2::text[], $3::bigint[], $4::bytea[]) AS given (term, block, postings)
WHERE t.tenant_id = $1::text AND t.term = given.term AND t.block = given.block
"""
DROP = f"""
DELETE FROM word_terms t USING {_KEYED}
WHERE t.tenant_id = $1::text AND t.term = given.term AND t.block = given.block
"""
LOOK_UP = """
SELECT NULL, NULL, documents, length FROM word_tenants WHERE tenant_id = $1::text
UNION ALL
SELECT term, postings, NULL, NULL FROM word_terms WHERE tenant_id = $1::text AND term = ANY($2::text[])
"""

LANGUAGES = """
SELECT t.term, sum(octet_length(t.postings)) / 10, max(w.documents)
FROM word_terms t JOIN word_tenants w ON w.tenant_id = t.tenant_id
WHERE t.tenant_id = $1::text AND t.term = ANY($2::text[]) GROUP BY t.term
"""
LANGUAGE_SECONDS = 60.0

Key = tuple[str, int]
"""A term in a block."""


class _Doc(NamedTuple):
    """A document to add: its terms with their counts, and the number of its terms."""

    seq: int
    counts: Counter[str]
    length: int


class TsvectorWords(InPostgres, Words):
    """BM25 over tables beside the rows, written in the rows' own transactions: never behind, `flush` does nothing,
    `watermark` is beyond every revision.

    Scores depend only on the tenant's own documents: their number, lengths and document frequencies. A count of a term
    above 255 is stored as 255, and lengths are rounded as in tantivy, see `bm25.stored_length`. The cost of a search
    grows with the postings of its terms, 10 bytes for each document that has the term.

    Raises:
        IndexUnavailable: the database does not answer, or the index is closed.
    """

    inside = True
    shared = True
    _name = "word index"

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._spoken: dict[str, tuple[float, frozenset[str]]] = {}
        with self._translated("opening"):
            database.write(lambda c: _create(c.raw, database.address.schema)).result()  # type: ignore[attr-defined]

    @property
    def identity(self) -> str:
        return f"{type(self).__name__} {STAMP}"

    def within(self, connection: Connection) -> Words:
        """Return the same index, whose methods are part of the open transaction."""
        bound = copy.copy(self)
        bound._connection = connection
        return bound

    @property
    def watermark(self) -> int:
        return NEVER_BEHIND

    def put(self, tenant: str, docs: Sequence[WordDoc]) -> None:
        latest = {doc.seq: doc for doc in docs}
        ordered = [latest[seq] for seq in sorted(latest)]
        read = [_Doc(doc.seq, counts := Counter(index_terms(doc.text)), counts.total()) for doc in ordered]
        rows = columns([doc.seq for doc in ordered], [doc.attributes for doc in ordered])
        if not read:
            with self._translated("adding documents"):
                return

        def work(raw: Any) -> None:
            block, filled = _enter(raw, tenant)
            gone, less = _take_out(raw, tenant, list(latest))
            blocks = [block + (filled + i) // BLOCK for i in range(len(read))]
            seqs, lengths = ints([doc.seq for doc in read]), ints([doc.length for doc in read])
            listed = texts([" ".join(doc.counts) for doc in read])
            position = block + (filled + len(read)) // BLOCK, (filled + len(read)) % BLOCK
            added = sum(doc.length for doc in read) - less
            with raw.pipeline():
                raw.execute(INSERT, [tenant, seqs, ints(blocks), lengths, listed, *rows])
                _append(raw, tenant, read, blocks, block)
                raw.execute(LEAVE, [tenant, len(read) - gone, added, *position])

        self._write("adding documents", tenant, work)
        self._spoken.pop(tenant, None)

    def remove(self, tenant: str, seqs: Sequence[int]) -> None:
        if not len(seqs):
            with self._translated("removing documents"):
                return

        def work(raw: Any) -> None:
            block, filled = _enter(raw, tenant)
            gone, less = _take_out(raw, tenant, seqs)
            raw.execute(LEAVE, [tenant, -gone, -less, block, filled])

        self._write("removing documents", tenant, work)

    def search(self, tenant: str, query: str, limit: int, where: Filter = EVERYTHING) -> WordMatches:
        def work(raw: Any) -> WordMatches:
            asked = search_terms(query, self._languages(raw, tenant))
            if limit <= 0 or not asked:
                return NO_WORDS
            rows = raw.cursor(binary=True).execute(LOOK_UP, [tenant, texts(asked)]).fetchall()
            documents = max((row[2] or 0 for row in rows), default=0)
            seqs, scores = _scored(rows, asked)
            if where == EVERYTHING or not len(seqs):
                return _best(seqs, scores, limit)
            return _filtered(raw, tenant, where, seqs, scores, documents, limit)

        return self._read("searching", tenant, work)

    def _languages(self, raw: Any, tenant: str) -> frozenset[str]:
        """Return the languages of the tenant's texts beside English; those of the last minute count."""
        known = self._spoken.get(tenant)
        now = time.monotonic()
        if known is None or now > known[0] + LANGUAGE_SECONDS:
            rows = raw.execute(LANGUAGES, [tenant, texts(MARKERS)]).fetchall()
            counts = {marker: int(count) for marker, count, _ in rows}
            known = self._spoken[tenant] = (now, spoken(counts, rows[0][2] if rows else 0))
        return known[1]

    def count(self, tenant: str) -> int:
        sql = "SELECT documents FROM word_tenants WHERE tenant_id = $1::text"
        row = self._read("counting", tenant, lambda raw: raw.execute(sql, [tenant]).fetchone())
        return int(row[0]) if row else 0

    def flush(self, rev: int) -> None:
        with self._translated("flushing"):
            return

    def compact(self) -> None:
        with self._translated("compacting"):
            self._database.vacuum(TABLES).result()

    def clear(self) -> None:
        def work(raw: Any) -> None:
            for table in TABLES:
                raw.execute(f"DELETE FROM {table}")

        self._write("clearing", None, work)

    def health(self) -> dict[str, object]:
        sizes = " + ".join(f"pg_total_relation_size('{table}')" for table in TABLES)
        sql = f"SELECT (SELECT coalesce(sum(documents), 0)::bigint FROM word_tenants), {sizes}"
        documents, size = self._read("counting", None, lambda raw: raw.execute(sql).fetchone())
        return {"backend": "tsvector", "documents": documents, "bytes": size, "inside": True}

    def close(self) -> None:
        self._closed = True


def open_tsvector(url: str, database: Database | None) -> TsvectorWords:
    """Open the keyword index beside the rows.

    Raises:
        ConfigError: the rows are not in PostgreSQL, or the URL says more than `tsvector:`.
    """
    if url.partition(":")[2]:
        raise ConfigError(
            "words.url", "`tsvector:` takes no address and no options: it lives in the rows' database"
        )
    if not isinstance(database, PostgresDatabase):
        raise ConfigError(
            "words.url",
            "`tsvector:` lives in the rows' database, which is not PostgreSQL; set `database.url` to a PostgreSQL,"
            " or use tantivy: or fts5:",
        )
    return TsvectorWords(database)


def _create(raw: Any, schema: str) -> None:
    """Create the tables, one process at a time. Tables of another format are refused; other terms in them are not, see
    `TsvectorWords.identity`."""
    raw.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [f"memoranda:{schema}.words"])
    here = f"to_regclass('{schema}.words')"
    row = raw.execute(f"SELECT obj_description({here}::oid, 'pg_class'), {here} IS NOT NULL").fetchone()
    if row[1] and str(row[0]).split(",")[0] == FORMAT:
        return
    if row[1]:
        raise ConfigError(
            "words.url",
            f"the words in the database are {row[0]!r}, this version makes {FORMAT!r}; drop the tables"
            f" {', '.join(TABLES)} and run `memoranda reindex --rebuild`",
        )
    raw.execute(f"{SCHEMA} COMMENT ON TABLE words IS '{FORMAT}'")


# --- writing ---------------------------------------------------------------------------------------


def _enter(raw: Any, tenant: str) -> tuple[int, int]:
    """Lock the tenant's index until the transaction ends; return the block that is being filled, and its documents."""
    block, filled = raw.execute(ENTER, [tenant]).fetchone()
    return int(block), int(filled)


def _take_out(raw: Any, tenant: str, seqs: Sequence[int]) -> tuple[int, int]:
    """Remove these documents from rows and postings; return their number, and the number of their terms."""
    rows = raw.cursor(binary=True).execute(DELETE, [tenant, ints(list(seqs))]).fetchall()
    if not rows:
        return 0, 0
    gone: dict[Key, list[int]] = defaultdict(list)
    for seq, block, _, listed in rows:
        for term in listed.split():
            gone[term, block].append(seq)
    stored = raw.cursor(binary=True).execute(POSTINGS_OF, [tenant, *_keys(gone)]).fetchall()
    remaining: dict[Key, bytes] = {}
    for term, block, postings in stored:
        known = np.frombuffer(postings, POSTING)
        remaining[term, block] = known[~np.isin(known["seq"], gone[term, block])].tobytes()
    empty = [key for key, postings in remaining.items() if not postings]
    left = {key: postings for key, postings in remaining.items() if postings}
    if left:
        raw.execute(REPLACE, [tenant, *_keys(left), array(BYTEA, list(left.values()))])
    if empty:
        raw.execute(DROP, [tenant, *_keys(empty)])
    return len(rows), sum(row[2] for row in rows)


def _append(raw: Any, tenant: str, docs: Sequence[_Doc], blocks: Sequence[int], begun: int) -> None:
    """Add the documents' postings; the block `begun` may have some already, later blocks do not."""
    fresh: dict[int, dict[str, bytearray]] = {}
    for doc, block in zip(docs, blocks, strict=True):
        postings = fresh.setdefault(block, defaultdict(bytearray))
        seq, length = doc.seq.to_bytes(8, "little", signed=True), bytes((length_code(doc.length),))
        once = seq + b"\1" + length
        for term, count in doc.counts.items():
            postings[term] += once if count == 1 else seq + bytes((min(count, 255),)) + length
    for block, postings in fresh.items():
        names = sorted(postings)  # the order of the primary key
        values = array(BYTEA, [postings[name] for name in names])
        if names:
            add = APPEND if block == begun else ADD
            raw.execute(add, [tenant, texts(names), ints([block] * len(names)), values])


def _keys(keys: Any) -> tuple[Any, Any]:
    return texts([term for term, _ in keys]), ints([block for _, block in keys])


# --- searching -------------------------------------------------------------------------------------


def _scored(rows: Sequence[Any], asked: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the seqs of documents with a term, ascending, and their BM25."""
    total = next((row[2:] for row in rows if row[0] is None), None)
    if total is None or not total[0]:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    documents, average = total[0], max(1.0, total[1] / total[0])
    norms = K1 * (1.0 - B + B * np.array(LENGTHS, np.float64) / average)
    packed: dict[str, list[bytes]] = defaultdict(list)
    for term, postings, _, _ in rows:
        if term is not None:
            packed[term].append(postings)
    seqs, scores = [], []
    for term in asked:
        if term in packed:
            postings_of_term = np.frombuffer(b"".join(packed[term]), POSTING)
            counts = postings_of_term["count"].astype(np.float64)
            weight = idf(documents, len(postings_of_term)) * (K1 + 1.0)
            seqs.append(postings_of_term["seq"])
            scores.append(weight * counts / (counts + norms[postings_of_term["length"]]))
    if not seqs:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    return _summed(np.concatenate(seqs), np.concatenate(scores))


def _summed(
    seqs: NDArray[np.int64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return each seq once with the sum of its scores: by offset if the seqs are dense, else by sorting."""
    low, span = int(seqs.min()), int(seqs.max() - seqs.min()) + 1
    if span <= 8 * len(seqs) + 65_536:
        sums = np.bincount(seqs - low, scores, span)
        offsets = np.flatnonzero(sums)
        return offsets + low, rounded(sums[offsets].astype(np.float32))
    distinct, places = np.unique(seqs, return_inverse=True)
    return distinct, rounded(np.bincount(places, scores).astype(np.float32))


def _best(seqs: NDArray[np.int64], scores: NDArray[np.float32], limit: int) -> WordMatches:
    if not len(seqs):
        return NO_WORDS
    near = top(scores, limit)
    order = near[np.lexsort((seqs[near], -scores[near]))[:limit]]
    return WordMatches(np.asarray(seqs[order], np.int64), scores[order])


def _filtered(
    raw: Any,
    tenant: str,
    where: Filter,
    seqs: NDArray[np.int64],
    scores: NDArray[np.float32],
    documents: int,
    limit: int,
) -> WordMatches:
    """Return the best matches that pass. The best candidates are filtered first, then as many more as the share that
    passed suggests; every document is filtered if that is cheaper."""
    depth = max(FEW, 2 * limit)
    while depth < len(seqs) and 4 * depth < documents:
        near = top(scores, depth)  # many more than `depth` where many score the same
        if 4 * len(near) > documents:
            break
        near = near[np.isin(seqs[near], _passing(raw, tenant, where, seqs[near]))]
        if len(near) >= limit:
            return _best(seqs[near], scores[near], limit)
        depth = max(4 * depth, 2 * depth * limit // (len(near) + 1))
    passing = _passing(raw, tenant, where, seqs if 4 * len(seqs) < documents else None)
    passed = np.isin(seqs, passing)
    return _best(seqs[passed], scores[passed], limit)


def _passing(raw: Any, tenant: str, where: Filter, among: NDArray[np.int64] | None) -> NDArray[np.int64]:
    if among is None:
        condition, some = Condition(where, [tenant]), ""
    else:
        condition, some = Condition(where, [tenant, ints(among)]), "AND seq = ANY($2::bigint[]) "
    sql = f"SELECT seq FROM words WHERE tenant_id = $1::text {some}AND ({condition.sql})"
    rows = raw.cursor(binary=True).execute(sql, condition.params).fetchall()
    return np.array([seq for (seq,) in rows], np.int64)
