"""The official OpenAI client, unchanged, against the server."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import openai
import pytest

from memoranda.providers.embeddings import open_embedder


@pytest.fixture(scope="module")
def client(server: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def expected(text: str) -> np.ndarray:
    return asyncio.run(open_embedder("hash:64").embed([text])).vectors[0]


def test_texts_are_embedded_in_order(client: openai.OpenAI) -> None:
    texts = ["the kettle is green", "the car is red", "ü" * 3]
    answer = client.embeddings.create(model="hash-64", input=texts)
    assert [one.index for one in answer.data] == [0, 1, 2]
    for text, one in zip(texts, answer.data, strict=True):
        np.testing.assert_array_equal(np.array(one.embedding, np.float32), expected(text))
    assert (answer.object, answer.model) == ("list", "hash-64")
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == 9


def test_one_text_floats_and_base64_are_the_same(client: openai.OpenAI) -> None:
    plain = client.embeddings.create(model="hash-64", input="a kettle", encoding_format="float")
    coded = client.embeddings.create(model="hash-64", input="a kettle", encoding_format="base64")
    raw = base64.b64decode(coded.data[0].embedding)  # type: ignore[arg-type]
    np.testing.assert_array_equal(np.frombuffer(raw, "<f4"), np.array(plain.data[0].embedding, np.float32))
    assert client.embeddings.create(model="hash-64", input="a", dimensions=64, user="u").data


def test_tokens_are_taken_for_their_text(client: openai.OpenAI) -> None:
    hello_world = [15339, 1917]  # cl100k
    one = client.embeddings.create(model="hash-64", input=hello_world)
    many = client.embeddings.create(model="hash-64", input=[hello_world, hello_world])
    for item in [*one.data, *many.data]:
        np.testing.assert_array_equal(np.array(item.embedding, np.float32), expected("hello world"))


def test_errors_are_the_clients_own(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.embeddings.create(model="gpt", input="a")
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    assert "hash-64" in missing.value.message
    with pytest.raises(openai.BadRequestError) as wrong:
        client.embeddings.create(model="hash-64", input="a", dimensions=3)
    assert (wrong.value.code, wrong.value.type) == ("dimension_mismatch", "invalid_request_error")
    assert wrong.value.request_id


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["extractive", "hash-64"]
    assert client.models.retrieve("hash-64").object == "model"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt")


def test_an_unknown_key_is_an_authentication_error(served: Any) -> None:
    server = served(keys=[{"name": "a", "role": "reader", "key": "right"}])
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0) as wrong:
        with pytest.raises(openai.AuthenticationError):
            wrong.models.list()
        assert wrong.with_options(api_key="right").models.list().data
