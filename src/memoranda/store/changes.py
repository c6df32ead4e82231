"""The changes of a write, in the form that the indexes apply, in steps of one transaction, and replayed into an index
page by page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.keyword.base import WordDoc, Words
from memoranda.indexes.vector.base import Index, VectorBatch
from memoranda.storage.sql.base import Connection, Database
from memoranda.store.rows import Draft, Part, Record, attributes, newer_than, searched_text
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json

T = TypeVar("T")
ROWS = 150
"""Rows that one transaction deletes, with their index changes; each takes up to a millisecond."""
MARKS = 100
"""Rows that one transaction marks; each takes up to two milliseconds, where its vector is put into a graph again."""
DRAFTS = 250
"""The most that one transaction inserts, by `weight`."""
TEXTS = 4_000_000
"""Characters that one transaction deletes, for rows with long texts: SQLite overwrites each of them."""
CHARS = 2_000
REFS = 20
"""Characters of text, and sources, that weigh as much as a row."""


def weight(draft: Draft, put_limit: int | None = None) -> float:
    """Return the cost of writing a draft, in rows of ordinary size. `put_limit` is that of the vector index."""
    row = draft.row
    return weight_of(len(row.content), len(draft.parts), put_limit, row.source_refs.count(","))


def weight_of(chars: int, vectors: int, put_limit: int | None, refs: int = 0) -> float:
    """Return the cost of writing a text of so many characters, vectors and sources, in rows of ordinary size."""
    return max(1, chars / CHARS + refs / REFS, vectors * DRAFTS / put_limit if put_limit else 0.0)


def parted(items: Sequence[T], weigh: Callable[[T], float], most: float) -> Iterator[Sequence[T]]:
    """Yield the items in order, in parts that weigh at most `most`; an item that weighs more is a part of its own."""
    start, total = 0, 0.0
    for place, item in enumerate(items):
        heavy = weigh(item)
        if place > start and total + heavy > most:
            yield items[start:place]
            start, total = place, 0.0
        total += heavy
    if start < len(items):
        yield items[start:]


StoredVectors = dict[str, tuple[NDArray[np.float32], bytes | None]]
"""Vectors by the hash of their text, each with the codes of the text's tokens if it has some."""


class Outcome(msgspec.Struct):
    """The outcome of one draft: its row, whether it was created, whether it has all its vectors."""

    row: Record
    created: bool
    embedded: bool


class Put(msgspec.Struct):
    """A row for the indexes: its vectors by part; without vectors, the vector index removes an outdated row. `reworded`
    is False if only the vectors are new, which the keyword index need not know."""

    row: Record
    vectors: list[NDArray[np.float32]]
    reworded: bool = True


class Applied(msgspec.Struct):
    """The changes of one committed write, for the indexes: revisions `first` to `rev` (0: none), the rows put and
    removed by tenant, the change of the number of rows with pending embeddings, and the puts of an index that is being
    filled, which may be of another vector space. `journalled`: the change stays in the journal for another process.
    `live` is the vector index that was live while the write ran. `calls` follow the commit, see `Writing.then`."""

    rev: int = 0
    first: int = 0
    puts: dict[str, list[Put]] = msgspec.field(default_factory=lambda: defaultdict(list))
    removed: dict[str, list[int]] = msgspec.field(default_factory=lambda: defaultdict(list))
    pending: dict[str, int] = msgspec.field(default_factory=lambda: defaultdict(int))
    mirrored: dict[str, list[Put]] = msgspec.field(default_factory=dict)
    journalled: bool = False
    live: object = None
    calls: list[Callable[[], None]] = msgspec.field(default_factory=list)

    def folded(self) -> None:
        """Keep only the last of several puts of one row."""
        for tenant, puts in self.puts.items():
            last = {put.row.seq: put for put in puts}
            if len(last) < len(puts):
                for put in puts:
                    last[put.row.seq].reworded |= put.reworded
                self.puts[tenant] = list(last.values())

    def clear(self) -> None:
        """Reset everything before the write is retried."""
        self.rev = self.first = 0
        self.journalled = False
        for part in (self.puts, self.removed, self.pending, self.mirrored, self.calls):
            part.clear()


class Settled(msgspec.Struct):
    """Vectors made later for a row that was written before: its parts, each with a vector.
    `text_key` is the `text_key` of the row that was embedded."""

    seq: int
    text_key: str
    parts: list[Part]

    @property
    def vectors(self) -> list[NDArray[np.float32]]:
        """The vectors by part."""
        return [part.vector for part in self.parts if part.vector is not None]


def text_key(row: Record) -> str:
    """Return a digest of the embedded text of a row, which has the content, the speaker and the date."""
    return digest(searched_text(row))


def placed(row: Record, seq: int) -> Record:
    """Return the row with its seq (a quarter of the cost of `_replace`)."""
    return Record._make((row[0], seq, seq, *row[3:]))


def vector_batch(puts: Sequence[Put]) -> VectorBatch | None:
    """Return the vectors of these rows as one batch; None if there are none."""
    if not any(put.vectors for put in puts):
        return None
    seqs, parts, vectors, seen = [], [], [], []
    for put in puts:
        if not put.vectors:
            continue
        values = attributes(put.row)
        for number, vector in enumerate(put.vectors):
            seqs.append(put.row.seq)
            parts.append(number)
            vectors.append(vector)
            seen.append(values)
    return VectorBatch(np.array(seqs, np.int64), np.array(parts, np.int32), np.stack(vectors), seen)


def word_docs(rows: Iterable[Record]) -> list[WordDoc]:
    """Return the rows as documents of the keyword index."""
    return [WordDoc(row.seq, searched_text(row), attributes(row)) for row in rows]


EMBEDDING = ("tenant_id", "space", "seq", "part", "start", "stop", "text_hash", "vector", "tokens")


def embeddings(tenant: str, space: int, seq: int, parts: Sequence[Part]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of `embeddings`, with the columns `EMBEDDING`, of a memory's parts that have a vector."""
    for number, part in enumerate(parts):
        if part.vector is not None:
            place = part.start, part.stop, part.text_hash
            yield (tenant, space, seq, number, *place, blob(part.vector), part.tokens)


def blob(vector: NDArray[np.float32]) -> bytearray:
    """Return float32, little-endian; a bytearray, since the driver binds it faster than bytes."""
    return bytearray(np.ascontiguousarray(vector, dtype="<f4").data.cast("B"))


PAGE = 1_000
SHORT = 250
"""Rows of a page of a part of the rows: it is put while others write."""
LAST = (1 << 63) - 1
"""The greatest seq."""


def replay(
    db: Database,
    index: Index | Words,
    space: int | None,
    tenant: str,
    since: int,
    within: tuple[int, int] = (0, LAST),
) -> int:
    """Put one tenant's rows changed after `since` into an index, one page per transaction; return the rows put.
    `space` is the vector space, None for the keyword index. Of `within`, the rows have seqs beyond the first number
    and up to the second."""
    count, (after, upto) = 0, within
    while True:
        most = PAGE if upto == LAST else SHORT
        limit = min(most, index.put_limit or most) if isinstance(index, Index) else most
        page, more = _replay_page(db, index, space, tenant, since, after, upto, limit)
        count += len(page)
        if not more:
            return count
        after = page[-1].row.seq


def _replay_page(
    db: Database,
    index: Index | Words,
    space: int | None,
    tenant: str,
    since: int,
    after: int,
    upto: int,
    limit: int,
) -> tuple[Sequence[Put], bool]:
    """Put at most `limit` rows, with no more vectors than that unless one row has them; return them, and whether there
    are more."""

    def read(c: Connection) -> tuple[list[int], Sequence[Put], bool]:
        gone = [] if after else [int(seq) for (seq,) in c.all("removals_after", [tenant, since])]
        rows = changed_page(c, tenant, space, since, after, limit)
        whole = len(rows) == limit and rows[-1].row.seq < upto
        rows = [put for put in rows if put.row.seq <= upto]
        page = next(parted(rows, lambda put: max(1, len(put.vectors)), limit), rows)
        return gone, page, whole or len(page) < len(rows)

    def take(index: Any, changes: tuple[list[int], Sequence[Put], bool]) -> None:
        gone, page, _ = changes
        if gone:
            index.remove(tenant, gone)
        if page and space is None:
            put_words(index, tenant, page)
        elif page:
            put_vectors(index, tenant, page)

    if not index.inside:
        return db.write(read, lambda changes: take(index, changes), tenant).result()[1:]

    def whole(c: Connection) -> tuple[list[int], Sequence[Put], bool]:
        changes = read(c)
        take(index.within(c), changes)
        return changes

    return db.write(whole, tenant=tenant).result()[1:]


def changed_page(
    c: Connection, tenant: str, space: int | None, since: int, after: int, limit: int = PAGE
) -> list[Put]:
    """Return the tenant's next `limit` rows changed after revision `since`, by seq, beyond seq `after`, with their
    vectors of `space` unless that is None."""
    rows = newer_than(c, tenant, since, after, limit)
    return [Put(row, []) for row in rows] if space is None else with_vectors(c, tenant, space, rows)


def put_vectors(index: Index, tenant: str, puts: Sequence[Put]) -> None:
    """Put the current vectors of rows. A row without vectors was rewritten while the model was unavailable: the vectors
    of its old text are removed from the index."""
    bare = [put.row.seq for put in puts if not put.vectors and put.row.rev != put.row.seq]
    if bare:
        index.remove(tenant, bare)
    batch = vector_batch(puts)
    if batch is not None:
        index.put(tenant, batch)


def put_words(words: Words, tenant: str, puts: Sequence[Put]) -> None:
    """Put the current texts of rows."""
    words.put(tenant, word_docs(put.row for put in puts))


def with_vectors(c: Connection, tenant: str, space: int, rows: Sequence[Record]) -> list[Put]:
    """Return the rows with their stored vectors of one space, by part."""
    seqs = [row.seq for row in rows]
    vectors: dict[int, list[NDArray[np.float32]]] = defaultdict(list)
    for seq, _, _, _, blob in c.all("embeddings_of", [tenant, space, compact_json(seqs)]):
        vectors[seq].append(np.frombuffer(blob, dtype="<f4"))
    return [Put(row, vectors[row.seq]) for row in rows]


def extent(c: Connection) -> tuple[list[str], int, int]:
    """Return the tenants, the last revision, and the revision from which removals are recorded."""
    row, floor = c.one("last_rev"), c.one("get_meta", ["removals_from"])
    tenants = [str(tenant) for (tenant,) in c.all("tenants")]
    return tenants, int(row[0]) if row else 0, int(floor[0]) if floor else 0


def lacks_more(c: Connection, since: int, rev: int, few: int) -> bool:
    """Return True if more than `few` rows have changed after revision `since`; `rev` is the last one."""
    left = few
    for (tenant,) in c.all("changed_tenants", [since]) if rev - since > few else ():
        left -= len(newer_than(c, str(tenant), since, 0, left + 1))
        if left < 0:
            return True
    return False


def to_index(index: Index, removed: Mapping[str, Sequence[int]], puts: Mapping[str, Sequence[Put]]) -> None:
    """Apply one change to a vector index."""
    for tenant, seqs in removed.items():
        index.remove(tenant, seqs)
    for tenant, some in puts.items():
        put_vectors(index, tenant, some)


def to_words(words: Words, applied: Applied) -> None:
    """Apply one change to a keyword index."""
    for tenant, seqs in applied.removed.items():
        words.remove(tenant, seqs)
    for tenant, puts in applied.puts.items():
        if reworded := [put for put in puts if put.reworded]:
            put_words(words, tenant, reworded)
