import asyncio

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.providers.embeddings import open_embedder
from memoranda.providers.embeddings.hash import place
from memoranda.text.hashing import digest, hash64

WORDS = [f"word{i}" for i in range(20_000)]


@pytest.mark.parametrize("dim", [8, 100, 256, 4096])
def test_the_sign_is_independent_of_the_bucket(dim: int) -> None:
    buckets, signs = np.array([place(word, dim) for word in WORDS]).T
    for bit in range(dim.bit_length() - 1):
        upper = (buckets >> bit) & 1 == 1
        assert abs(signs[upper].mean() - signs[~upper].mean()) < 0.08
    assert abs(signs.mean()) < 0.04
    half = signs[buckets < dim // 2].mean() - signs[buckets >= dim // 2].mean()
    assert abs(half) < 0.08


def test_buckets_are_used_evenly() -> None:
    counts = np.bincount([place(word, 100)[0] for word in WORDS], minlength=100)
    assert 120 < counts.min() < counts.max() < 300


def test_texts_without_a_common_word_have_cosine_zero_on_average() -> None:
    texts = [" ".join(WORDS[i * 20 : (i + 1) * 20]) for i in range(200)]
    made = asyncio.run(open_embedder("hash:256").embed(texts)).vectors
    apart = (made @ made.T)[np.triu_indices(200, 1)]
    assert abs(apart.mean()) < 0.005


def test_hashes_never_change() -> None:
    assert hash64("memoranda") == 16765045793701803378
    assert place("memoranda", 256) == (114, 1)
    assert digest("") == "c804ce198ec337e3dc762bdd1a09aece"


@settings(deadline=None)
@given(st.text(), st.text())
def test_texts_that_differ_hash_apart(first: str, second: str) -> None:
    assert (digest(first) == digest(second)) == (first == second)


def test_lone_surrogates_hash_apart() -> None:
    assert len({hash64(text) for text in ("\ud800", "\ud801", "\ufffd")}) == 3
    assert digest("ab", "c") != digest("a", "bc")


def test_a_word_of_a_million_letters_is_remembered_in_pieces() -> None:
    place.cache_clear()
    asyncio.run(open_embedder("hash:64").embed(["x" * 1_000_000]))
    assert place.cache_info().currsize == 1
