"""Token vectors: their codes, the weights of a question's tokens, and the similarity by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memoranda.providers.embeddings import open_embedder
from memoranda.providers.embeddings.base import Embedder
from memoranda.providers.embeddings.onnx import TokenProjection, max_sim

HIDDEN, DIM = 12, 16
RANDOM = np.random.default_rng(5)


@pytest.fixture
def projection(tmp_path: Path) -> TokenProjection:
    matrix = RANDOM.standard_normal((HIDDEN, DIM)).astype(np.float16)
    weights = RANDOM.standard_normal(HIDDEN).astype(np.float32)
    np.savez(tmp_path / "tokens.npz", projection=matrix, weights=weights)
    return TokenProjection(tmp_path / "tokens.npz")


@pytest.fixture(scope="module")
def arctic() -> Iterator[Embedder]:
    embedder = open_embedder("local:arctic-embed-s", cache_size=4)
    yield embedder
    embedder.close()


def states(tokens: int) -> np.ndarray:
    return RANDOM.standard_normal((tokens, HIDDEN)).astype(np.float32)


def test_codes_have_a_bit_for_each_dimension(projection: TokenProjection) -> None:
    text = states(5)
    codes = projection.codes(text)
    assert (codes.shape, codes.dtype) == ((5, DIM // 8), np.uint8)
    assert (np.unpackbits(codes, axis=1) == (text @ projection._projection > 0)).all()


def test_the_weights_of_a_question_sum_to_1(projection: TokenProjection) -> None:
    lengths = np.linalg.norm(projection.weighted(states(7)), axis=1)
    assert lengths.sum() == pytest.approx(1.0, abs=1e-5)
    assert lengths.min() > 0


def test_the_similarity_is_that_of_a_loop(projection: TokenProjection) -> None:
    texts = [states(tokens) for tokens in (1, 9, 3, 40)]
    question = projection.weighted(states(6))
    codes = [projection.codes(text).tobytes() for text in texts]
    expected = []
    for text in texts:
        signs = np.sign(text @ projection._projection) / np.sqrt(DIM)
        expected.append(sum(max(float(token @ sign) for sign in signs) for token in question))
    assert max_sim(question, codes) == pytest.approx(expected, abs=1e-5)
    assert max_sim(question, codes[2:3]) == pytest.approx(expected[2:3], abs=1e-5)
    assert len(max_sim(question, [])) == 0


def test_the_shipped_model_prefers_the_text_that_answers(arctic: Embedder) -> None:
    texts = ["I moved to Lisbon in March.", "The heron stood on the jetty.", "We had soup for dinner."]
    embedded = asyncio.run(arctic.embed(texts))
    assert embedded.token_vectors is not None
    assert [codes.shape[1] for codes in embedded.token_vectors] == [arctic.token_dim // 8] * 3
    asked = asyncio.run(arctic.embed(["Which city is my home?"], "query")).tokens_of_each[0]
    assert asked is not None
    assert asked.shape[1] == arctic.token_dim
    codes = [codes.tobytes() for codes in embedded.token_vectors]
    assert int(np.argmax(max_sim(asked.astype(np.float32), codes))) == 0


def test_a_question_has_no_tokens_of_the_prefix(arctic: Embedder) -> None:
    asked = asyncio.run(arctic.embed(["Where?"], "query")).tokens_of_each[0]
    assert asked is not None
    assert len(asked) == 4  # [CLS] where ? [SEP]


def test_a_cached_question_has_its_token_vectors(arctic: Embedder) -> None:
    first, again = (asyncio.run(arctic.embed(["Who sang?"], "query")) for _ in range(2))
    assert again.texts == 0
    assert (np.asarray(first.tokens_of_each[0]) == np.asarray(again.tokens_of_each[0])).all()


def test_a_static_model_has_none() -> None:
    embedder = open_embedder("local:potion-base-8m", cache_size=4)
    embedded = asyncio.run(embedder.embed(["a", "b"]))
    embedder.close()
    assert embedder.token_dim == 0
    assert embedded.tokens_of_each == [None, None]
