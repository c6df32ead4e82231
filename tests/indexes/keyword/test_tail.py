"""The uncommitted tail: scores as tantivy's, replaces and removes."""

from __future__ import annotations

import random

import pytest

from memoranda.indexes.keyword import WordDoc
from memoranda.indexes.keyword.tail import Tail, TailDoc, idf, stored_length
from memoranda.indexes.keyword.tantivy import TantivyWords

VOCABULARY = ["amber", "birch", "cedar", "delta", "ember", "fjord"]


@pytest.mark.parametrize(
    ("length", "stored"), [(0, 0), (1, 1), (39, 39), (40, 40), (41, 40), (55, 54), (1000, 984)]
)
def test_lengths_are_kept_in_a_byte(length, stored):
    assert stored_length(length) == stored


def test_a_term_never_weighs_less_than_nothing():
    assert idf(10, 0) > idf(10, 5) > idf(10, 10) > 0
    assert idf(3, 5) > 0, "counts of deleted documents may run ahead"


def test_scores_do_not_change_with_the_commit():
    rng = random.Random(2)
    texts = [" ".join(rng.choices(VOCABULARY[:5], k=rng.randint(1, 300))) for _ in range(80)]
    waiting, committed = TantivyWords("", None), TantivyWords("", None)
    for words in (waiting, committed):
        words.put("t", [WordDoc(i, text, {}) for i, text in enumerate(texts)])
    committed.compact()
    for query in ("amber", "birch cedar", "delta ember amber"):
        before, after = waiting.search("t", query, 100), committed.search("t", query, 100)
        assert (waiting.health()["uncommitted"], committed.health()["uncommitted"]) == (80, 0)
        assert dict(zip(before.seqs, before.scores, strict=True)) == pytest.approx(
            dict(zip(after.seqs, after.scores, strict=True)), rel=1e-3
        )
    waiting.close()
    committed.close()


def test_a_half_committed_corpus_ranks_like_a_committed_one():
    rng = random.Random(4)
    texts = [" ".join(rng.choices(VOCABULARY, k=6)) for _ in range(100)]
    half = TantivyWords("", None)
    half.put("t", [WordDoc(i, text, {}) for i, text in enumerate(texts[:50])])
    half.compact()
    half.put("t", [WordDoc(i + 50, text, {}) for i, text in enumerate(texts[50:])])
    whole = TantivyWords("", None)
    whole.put("t", [WordDoc(i, text, {}) for i, text in enumerate(texts)])
    for query in ("amber", "birch cedar"):
        one, other = half.search("t", query, 100), whole.search("t", query, 100)
        assert dict(zip(one.seqs, one.scores, strict=True)) == pytest.approx(
            dict(zip(other.seqs, other.scores, strict=True)), rel=0.02
        )
    half.close()
    whole.close()


def test_the_tail_counts_live_documents():
    tail = Tail()
    tail.put(TailDoc("a", 1, "one", {}, fresh=True))
    tail.put(TailDoc("a", 1, "other", {}, fresh=True))
    tail.put(TailDoc("b", 1, "one", {}, fresh=False))
    assert (tail.live("a"), tail.live("b"), tail.lengths(), len(tail)) == (1, 1, (3, 2), 2)
    assert (list(tail.hidden("a")), list(tail.hidden("b"))) == ([], [1])
    tail.remove(("a", 1))
    tail.remove(("a", 7))
    assert (tail.live("a"), tail.live("b"), sorted(tail.hidden("a"))) == (0, 1, [1, 7])
    assert dict(tail.changes())["a", 1] is None


def test_a_query_of_many_terms_finds_by_any():
    words = TantivyWords("", None)
    words.put("t", [WordDoc(1, "amber amber", {})])
    query = " ".join(f"absent{i}" for i in range(100)) + " amber"
    assert list(words.search("t", query, 5).seqs) == [1]
    words.compact()
    assert list(words.search("t", query, 5).seqs) == [1]
    words.close()


def test_a_document_analysed_as_it_comes_is_found_like_one_analysed_when_asked():
    rng = random.Random(6)
    texts = [" ".join(rng.choices(VOCABULARY, k=rng.randint(1, 30))) for _ in range(200)]
    searched, unasked = TantivyWords("", None), TantivyWords("", None)
    assert len(searched.search("t", "amber", 10).seqs) == 0, "from here on it reads what comes"
    for words in (searched, unasked):
        words.put("t", [WordDoc(i, text, {}) for i, text in enumerate(texts)])
        words.put("t", [WordDoc(7, "birch alone", {})])
    for query in ("amber", "birch cedar", "delta ember amber"):
        one, other = searched.search("t", query, 300), unasked.search("t", query, 300)
        assert one.seqs.tolist() == other.seqs.tolist()
        assert one.scores.tolist() == other.scores.tolist()
    searched.close()
    unasked.close()
