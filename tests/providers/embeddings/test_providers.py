"""Embedders behind HTTP: what is sent, what is believed, and what happens when a provider is slow, busy or wrong.

Over real connections, against the servers of `support.embedding_providers`, which name each provider's reference.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import threading
import time
from collections.abc import Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import memoranda
from memoranda.config import Embedder as Settings
from memoranda.config import load
from memoranda.errors import ConfigError, EmbedderUnavailable
from memoranda.providers.embeddings import Embedded, Embedder, Task, http, open_embedder
from memoranda.providers.embeddings.published import PUBLISHED
from memoranda.providers.embeddings.remote import same_model
from memoranda.providers.http import retry_after
from support.embedding_providers import Asked, Provider, Reply
from support.pauses import Pauses
from support.waiting import SECONDS, until, until_async

KEY = "sk-hush-0123456789"
SMALL = "openai:text-embedding-3-small"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_OAUTH_ACCESS_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def opened(
    provider: Any, url: str = f"{SMALL}?dimension=256", path: str = "/v1", **settings: Any
) -> Embedder:
    given = {"base_url": provider.url + path, "api_key": KEY, "timeout": 5.0} | settings
    return open_embedder(url, cache_size=0, settings=Settings(**given))


def embed(embedder: Embedder, texts: Sequence[str], task: Task = "document") -> Embedded:
    async def one() -> Embedded:
        try:
            return await embedder.embed(texts, task)
        finally:
            embedder.close()
            await asyncio.sleep(0.01)  # the connections end with the loop they began in

    return asyncio.run(one())


def refusal(embedder: Embedder, texts: Sequence[str] = ("a text",), task: Task = "document") -> str:
    with pytest.raises(EmbedderUnavailable) as caught:
        embed(embedder, texts, task)
    return str(caught.value)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    """What is waited between tries, which passes at once."""
    found = Pauses()
    monkeypatch.setattr(http, "asyncio", found)
    return found


@pytest.fixture
def long_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that failed is left alone for longer than a test takes."""
    monkeypatch.setattr(http, "REST", 600.0)
    monkeypatch.setattr(http, "LONGEST_REST", 600.0)


def failing(provider: Any, times: int = 1, **reply: Any) -> None:
    provider.replies.extend(Reply(**reply) for _ in range(times))


# What is sent


def test_openai_is_asked_as_its_reference_says(provider: Any) -> None:
    made = embed(opened(provider), ["one", "two"])
    [asked] = provider.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "text-embedding-3-small",
        "input": ["one", "two"],
        "encoding_format": "base64",
        "dimensions": 256,
    }
    assert made.vectors.shape == (2, 256)
    assert made.tokens == 2


def test_gemini_is_asked_as_its_reference_says(provider: Any) -> None:
    url = "gemini:gemini-embedding-001?dimension=256"
    embed(opened(provider, url, "/v1beta"), ["a fact"])
    embed(opened(provider, url, "/v1beta"), ["a question"], "query")
    document, query = provider.asked
    assert document.path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert document.headers["x-goog-api-key"] == KEY
    assert "authorization" not in document.headers
    assert document.body == {
        "requests": [
            {
                "model": "models/gemini-embedding-001",
                "content": {"parts": [{"text": "a fact"}]},
                "taskType": "RETRIEVAL_DOCUMENT",
                "outputDimensionality": 256,
            }
        ]
    }
    assert query.body["requests"][0]["taskType"] == "RETRIEVAL_QUERY"


def test_the_second_gemini_generation_reads_its_task_in_the_text(provider: Any) -> None:
    provider.dim = 3072
    embed(opened(provider, "gemini:gemini-embedding-2", "/v1beta"), ["why?"], "query")
    [request] = provider.asked[0].body["requests"]
    assert request["content"]["parts"] == [{"text": "task: search result | query: why?"}]
    assert "taskType" not in request
    assert "outputDimensionality" not in request


def test_vertex_is_asked_as_its_reference_says(provider: Any) -> None:
    url = "gemini:text-embedding-005?dimension=256&project_id=acme&location=europe-west4"
    made = embed(opened(provider, url), ["one", "two"])
    [asked] = provider.asked
    place = "/v1/projects/acme/locations/europe-west4/publishers/google/models/text-embedding-005:predict"
    assert asked.path == place
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "instances": [
            {"content": "one", "task_type": "RETRIEVAL_DOCUMENT"},
            {"content": "two", "task_type": "RETRIEVAL_DOCUMENT"},
        ],
        "parameters": {"autoTruncate": False, "outputDimensionality": 256},
    }
    assert made.tokens == 2


@pytest.mark.parametrize(
    ("model", "verb"), [("gemini-embedding-001", "predict"), ("gemini-embedding-2", "embedContent")]
)
def test_vertex_takes_gemini_models_one_text_at_a_time(provider: Any, model: str, verb: str) -> None:
    url = f"gemini:{model}?dimension=256&project_id=acme"
    made = embed(opened(provider, url), ["red", "green", "blue"])
    assert all(
        asked.path.endswith(f"/us-central1/publishers/google/models/{model}:{verb}")
        for asked in provider.asked
    )
    assert [len(asked.texts) for asked in provider.asked] == [1, 1, 1]
    alone = embed(opened(provider, url), ["green"]).vectors[0]
    assert np.array_equal(made.vectors[1], alone)


def test_ollama_is_asked_as_its_reference_says(provider: Any) -> None:
    provider.dim = 768
    made = embed(opened(provider, "ollama:nomic-embed-text", "", api_key=None), ["one", "two"])
    [asked] = provider.asked
    assert asked.path == "/api/embed"
    assert "authorization" not in asked.headers
    assert asked.body == {
        "model": "nomic-embed-text",
        "input": ["search_document: one", "search_document: two"],
        "truncate": False,
    }
    assert made.vectors.shape == (2, 768)
    assert made.tokens == 8


def test_prefixes_of_ones_own_replace_those_of_the_model(provider: Any) -> None:
    provider.dim = 768
    own = {"query_prefix": "Q> ", "document_prefix": ""}
    plain = opened(provider, "ollama:nomic-embed-text", "", **own)
    embed(plain, ["why"], "query")
    embed(opened(provider, "ollama:nomic-embed-text", "", **own), ["so"])
    assert [asked.texts for asked in provider.asked] == [["Q> why"], ["so"]]


def test_a_server_without_named_models_is_asked_for_its_own(provider: Any) -> None:
    embedder = opened(provider, "openai:?dimension=256")
    assert embedder.model == f"default@{provider.url.removeprefix('http://')}"
    embed(embedder, ["a text"])
    assert "model" not in provider.asked[0].body


def test_a_key_comes_from_settings_a_variable_or_a_file_that_may_change(
    provider: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "from-variable")
    path = tmp_path / "token"
    path.write_text("first\n")
    embed(opened(provider, api_key=None, api_key_env="MY_KEY"), ["a"])
    renewed = opened(provider, api_key=None, api_key_file=str(path))

    async def twice() -> None:
        await renewed.embed(["a"])
        path.write_text("second\n")
        await renewed.embed(["a"])

    asyncio.run(twice())
    sent = [asked.headers["authorization"] for asked in provider.asked]
    assert sent == ["Bearer from-variable", "Bearer first", "Bearer second"]


def test_a_providers_usual_variable_is_sent_to_that_provider_alone(
    provider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embed(opened(provider, api_key=None), ["a"])
    assert "authorization" not in provider.asked[0].headers
    home = open_embedder(SMALL)
    assert home.dim == 1536  # opened without a network, with the variable's key


# What is made of it


def test_vectors_have_unit_length_whatever_the_provider_sends(provider: Any) -> None:
    provider.change = lambda asked, body: body | {"data": [
        {"index": i, "embedding": [3.0, 4.0] + [0.0] * 254} for i in range(len(asked.texts))
    ]}  # fmt: skip
    made = embed(opened(provider), ["a", "b"])
    assert np.linalg.norm(made.vectors, axis=1) == pytest.approx(1, abs=1e-6)
    assert made.vectors[0, :2] == pytest.approx([0.6, 0.8])


def test_floats_and_base64_are_the_same_vectors(provider: Any) -> None:
    packed = embed(opened(provider), ["a text"]).vectors

    def as_floats(asked: Any, body: Any) -> Any:
        for item in body["data"]:
            item["embedding"] = np.frombuffer(base64.b64decode(item["embedding"]), "<f4").tolist()
        return body

    provider.change = as_floats
    assert np.array_equal(embed(opened(provider), ["a text"]).vectors, packed)


def test_a_server_that_refuses_base64_is_asked_for_floats_from_then_on(provider: Any) -> None:
    error = {"error": {"message": "encoding_format base64 is not supported", "type": "invalid_request_error"}}
    failing(provider, times=2, status=400, body=error, delay=0.3)
    embedder = opened(provider, batch_size=1)

    async def twice() -> None:
        await embedder.embed(["a", "b"])  # both are under way before the first is refused
        await embedder.embed(["c"])

    asyncio.run(twice())
    assert [asked.body["encoding_format"] for asked in provider.asked] == ["base64"] * 2 + ["float"] * 3
    failing(provider, times=2, status=400, body=error)
    assert "encoding_format" in refusal(embedder)


def test_vectors_are_put_in_order_by_their_index(provider: Any) -> None:
    texts = ["red", "green", "blue"]
    straight = embed(opened(provider), texts).vectors
    provider.change = lambda asked, body: body | {"data": body["data"][::-1]}
    assert np.array_equal(embed(opened(provider), texts).vectors, straight)


def test_many_texts_go_in_batches_and_come_back_in_order(provider: Any) -> None:
    texts = [f"number {i}" for i in range(50)]
    together = embed(opened(provider, batch_size=50), texts)
    provider.asked.clear()
    apart = embed(opened(provider, batch_size=7), texts)
    assert sorted(len(asked.texts) for asked in provider.asked) == [1] + [7] * 7
    assert np.array_equal(apart.vectors, together.vectors)
    assert apart.tokens == together.tokens


def test_a_batch_holds_no_more_tokens_than_a_request_may(provider: Any) -> None:
    long = "word " * 8000  # 40 000 bytes; six of them are under the 250 000 that one request is given
    embed(opened(provider), [long] * 13)
    assert sorted(len(asked.texts) for asked in provider.asked) == [1, 6, 6]


def test_blank_texts_are_not_sent_and_have_directions_of_their_own(provider: Any) -> None:
    made = embed(opened(provider), ["", "a text", " \n"])
    assert [asked.texts for asked in provider.asked] == [["a text"]]
    assert np.linalg.norm(made.vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert abs(float(made.vectors[0] @ made.vectors[2])) < 0.9


def test_a_long_text_is_cut_and_that_is_said_and_counted(
    provider: Any, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = opened(provider, max_input_tokens=100)
    with caplog.at_level(logging.WARNING):
        made = embed(embedder, ["short", "word " * 500])
    assert [len(text) for text in provider.asked[0].texts] == [5, 499]
    assert made.tokens == 101
    assert embedder.usage()["truncated"] == 1
    assert (
        "1 texts were longer than text-embedding-3-small@256 takes and were cut at 100 tokens" in caplog.text
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [
        # llama.cpp's server, tools/server/README.md and its source
        (500, {"error": {"code": 500, "message": "input (600 tokens) is too large to process. increase the physical"
                         " batch size (current batch size: 512)", "type": "server_error"}}),
        # https://platform.openai.com/docs/guides/error-codes
        (400, {"error": {"message": "This model's maximum context length is 8192 tokens, however you requested 9000"
                         " tokens", "type": "invalid_request_error", "param": None, "code": None}}),
        # Ollama with truncate false, server/routes.go
        (400, {"error": "the input length exceeds the context length"}),
        (413, b"<html>Request Entity Too Large</html>"),
    ],
)  # fmt: skip
def test_what_the_provider_finds_too_long_is_halved_until_it_fits(
    provider: Any, status: int, body: Any
) -> None:
    embedder = opened(provider)
    texts = ["short", "x " * 200]
    failing(provider, status=status, body=body)  # the two together
    made = embed(embedder, texts)
    assert [asked.texts for asked in provider.asked] == [texts, texts[:1], texts[1:]]
    assert embedder.usage()["truncated"] == 0
    assert made.vectors.shape == (2, 256)

    alone = opened(provider)
    failing(provider, times=2, status=status, body=body)
    embed(alone, ["x " * 200])
    assert [len(asked.texts[0]) for asked in provider.asked[3:]] == [400, 200, 100]
    assert alone.usage()["truncated"] == 2


def test_use_is_counted(provider: Any) -> None:
    embedder = opened(provider, batch_size=2)
    failing(provider, status=503, headers={"retry-after": "0"})
    assert embed(embedder, ["one", "two", "three"]).tokens == 3
    counted = {"requests": 3, "retries": 1, "failures": 0, "tokens": 3, "truncated": 0}
    assert embedder.usage() == counted
    assert open_embedder("hash:64").usage() == {}


# A provider that is busy, slow or away


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_what_passes_is_tried_again(provider: Any, status: int) -> None:
    failing(provider, times=3, status=status, headers={"retry-after": "0"})
    assert embed(opened(provider), ["a"]).vectors.shape == (1, 256)
    assert len(provider.asked) == 4


def test_waits_grow_when_the_provider_names_none(provider: Any, pauses: Pauses) -> None:
    failing(provider, times=2, status=500)
    embed(opened(provider), ["a"])
    first, second = pauses.asked
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    assert len(provider.asked) == 3


def test_a_wait_takes_as_long_as_it_should(provider: Any) -> None:
    failing(provider, status=429, headers={"retry-after": "0.5"})
    embed(opened(provider), ["a"])
    first, second = (asked.at for asked in provider.asked)
    assert second - first >= 0.5


@pytest.mark.parametrize("header", ["seconds", "date", "milliseconds"])
def test_the_wait_that_a_provider_asks_for_is_kept(provider: Any, pauses: Pauses, header: str) -> None:
    began = int(time.time())
    headers = {
        "seconds": {"retry-after": "12"},
        "date": {"retry-after": formatdate(began + 12, usegmt=True)},
        "milliseconds": {"retry-after-ms": "12000", "retry-after": "30"},
    }[header]
    failing(provider, status=429, headers=headers)
    embed(opened(provider), ["a"])
    [waited] = pauses.asked
    late = time.time() - began if header == "date" else 0.0
    assert max(0.0, 12 - late) <= waited <= 12
    assert len(provider.asked) == 2


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, b"", None),
        ({"retry-after": "7"}, b"", 7),
        ({"retry-after": "1.5"}, b"", 1.5),
        ({"retry-after": "-3"}, b"", 0),
        ({"retry-after": "soon"}, b"", None),
        ({"retry-after": formatdate(1_000_030, usegmt=True)}, b"", 30),
        ({"retry-after": formatdate(999_000, usegmt=True)}, b"", 0),
        ({"retry-after": formatdate(5_030, usegmt=True), "date": formatdate(5_000, usegmt=True)}, b"", 30),
        ({"retry-after-ms": "250", "retry-after": "9"}, b"", 0.25),
        # google.rpc.RetryInfo, https://cloud.google.com/apis/design/errors
        ({}, b'{"error": {"details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}}', 34),
    ],
)  # fmt: skip
def test_how_long_to_wait_is_read_in_every_form(
    headers: dict[str, str], body: bytes, seconds: float | None
) -> None:
    assert retry_after(httpx.Response(429, headers=headers, content=body), 1_000_000) == seconds


def test_a_wait_beyond_patience_is_told_at_once_and_kept(provider: Any, pauses: Pauses) -> None:
    failing(provider, status=429, headers={"retry-after": "300"})
    embedder = opened(provider)

    async def twice() -> tuple[str, str]:
        with pytest.raises(EmbedderUnavailable) as first:
            await embedder.embed(["a"])
        with pytest.raises(EmbedderUnavailable) as second:
            await embedder.embed(["a"])
        return str(first.value), str(second.value)

    first, second = asyncio.run(twice())
    assert "status 429; tried once" in first
    assert second.startswith(first)
    told = re.search(r"asked again in (\d+\.\d) s$", second)
    assert told is not None
    assert http.REST < float(told[1]) <= http.LONGEST_REST
    assert pauses.asked == []
    assert len(provider.asked) == 1


def test_a_question_is_not_kept_from_the_provider_by_a_bulk_job_it_refused(provider: Any) -> None:
    failing(provider, status=429, headers={"retry-after": "300"})
    embedder = opened(provider)

    async def both() -> Embedded:
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed(["a"])
        return await embedder.embed(["a"], "query")

    assert asyncio.run(both()).vectors.shape == (1, 256)


def test_a_slow_provider_is_given_up_in_time(provider: Any) -> None:
    """It has not answered yet."""
    provider.speaks.clear()
    told = refusal(opened(provider, timeout=0.2))
    assert provider.answered == 0
    assert re.search(r"did not answer: nothing came within 0\.\d+ s; tried", told)


def test_a_question_waits_as_long_as_it_may_and_no_longer(
    provider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "asyncio", pauses := Pauses(share=1.0))
    failing(provider, times=9, status=503)
    refusal(opened(provider, query_timeout=0.8), task="query")
    assert sum(pauses.asked) < 0.8
    provider.replies.clear()
    provider.speaks.clear()
    told = refusal(opened(provider, query_timeout=0.3), task="query")
    assert "0.3 s (embedder.query_timeout)" in told


@pytest.mark.parametrize("task", ["document", "query"])
def test_nobody_waits_for_a_provider_that_failed_a_moment_ago(
    provider: Any, pauses: Pauses, long_rest: None, task: Task
) -> None:
    if task == "query":
        provider.speaks.clear()
    else:
        failing(provider, status=401)
    embedder = opened(provider, query_timeout=0.3)

    async def twice() -> None:
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed(["a"], task)
        with pytest.raises(EmbedderUnavailable, match="it is asked again in"):
            await embedder.embed(["b"], task)

    asyncio.run(twice())
    assert pauses.asked == []
    assert ["b"] not in [asked.texts for asked in provider.asked]


def test_an_answer_that_breaks_off_is_asked_for_again(provider: Any) -> None:
    whole = Provider().openai(Asked("", {}, {"input": ["a"], "dimensions": 256}))
    failing(provider, body=whole, cut=True)
    assert embed(opened(provider), ["a"]).vectors.shape == (1, 256)
    failing(provider, times=4, body=whole, cut=True)
    told = refusal(opened(provider))
    assert "did not answer: peer closed connection" in told
    assert "tried 4 times" in told


def test_a_provider_that_is_not_there_is_named(provider: Any) -> None:
    provider.close()
    told = refusal(opened(provider, timeout=1.0))
    assert told.startswith(f"the OpenAI-compatible server at {provider.url[7:]} did not answer: ")
    assert "tried" in told
    assert told.endswith("; start it, or correct embedder.base_url")


def test_no_more_requests_run_at_once_than_allowed(provider: Any) -> None:
    provider.delay = 0.05
    embed(opened(provider, batch_size=1, concurrency=3), [f"text {i}" for i in range(20)])
    assert provider.most_at_once == 3


def test_a_question_does_not_queue_behind_a_bulk_job(provider: Any) -> None:
    """It is answered before any of the job is."""
    embedder = opened(provider, batch_size=1, concurrency=2, timeout=SECONDS, query_timeout=SECONDS)
    answered = threading.Event()

    def answer(asked: Asked, body: Any) -> Any:
        assert asked.texts == ["why"] or answered.wait(SECONDS)
        return body

    provider.change = answer

    async def both() -> None:
        bulk = [asyncio.create_task(embedder.embed([f"text {i}" for i in range(4)])) for _ in range(6)]
        await until_async(lambda: len(provider.asked) == 2, "as many requests as may run at once")
        await embedder.embed(["why"], "query")
        assert len(provider.asked) == 3
        assert not any(each.done() for each in bulk)
        answered.set()
        await asyncio.gather(*bulk)

    asyncio.run(both())
    assert len(provider.asked) == 25


def test_two_bulk_jobs_take_turns(provider: Any) -> None:
    provider.delay = 0.03
    embedder = opened(provider, batch_size=1, concurrency=1)

    async def both() -> float:
        first = asyncio.create_task(embedder.embed([f"text {i}" for i in range(40)]))
        await asyncio.sleep(0.05)
        await embedder.embed(["a", "b"])
        assert not first.done()
        await first
        return 0.0

    asyncio.run(both())


# A provider that refuses

REFUSALS = [
    # https://platform.openai.com/docs/guides/error-codes
    (401, {"error": {"message": f"Incorrect API key provided: {KEY}.", "type": "invalid_request_error",
                     "param": None, "code": "invalid_api_key"}}, "embedder.api_key"),
    (403, {"error": {"message": "Project does not have access to model", "type": "invalid_request_error",
                     "param": None, "code": "model_not_found"}}, "check what the key may use"),
    (404, {"error": {"message": "The model does not exist or you do not have access to it.",
                     "type": "invalid_request_error", "param": None, "code": "model_not_found"}},
     "'text-embedding-3-small' of embedder.url, and embedder.base_url"),
    (429, {"error": {"message": "You exceeded your current quota, please check your plan and billing details.",
                     "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}}, "quota is used up"),
    (400, {"error": {"message": "'dimensions' is too small", "type": "invalid_request_error", "param": "dimensions",
                     "code": None}}, "embedder.dimension"),
    (307, b"", "it points to https://elsewhere.test/v1; set embedder.base_url to that"),
    # https://ai.google.dev/gemini-api/docs/troubleshooting
    (400, {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.",
                     "status": "INVALID_ARGUMENT"}}, "give a valid key with embedder.api_key"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "fix"), REFUSALS)
def test_a_refusal_is_not_repeated_and_tells_the_fix(
    provider: Any, status: int, body: Any, fix: str, caplog: pytest.LogCaptureFixture
) -> None:
    failing(provider, times=5, status=status, body=body,
            headers={"location": "https://elsewhere.test/v1?key=x"})  # fmt: skip
    embedder = opened(provider)
    told = refusal(embedder)
    assert len(provider.asked) == 1
    assert told.startswith(f"the OpenAI-compatible server at {provider.url[7:]} refused the request (status ")
    assert fix in told
    assert KEY not in told + caplog.text


def test_ollama_tells_to_pull_a_model_it_does_not_have(provider: Any) -> None:
    # https://docs.ollama.com/api/errors
    failing(provider, status=404, body={"error": 'model "bge-m3" not found, try pulling it first'})
    told = refusal(opened(provider, "ollama:bge-m3", ""))
    assert "try pulling it first" in told
    assert "run `ollama pull bge-m3` there" in told


def test_a_key_is_shown_nowhere(provider: Any, tmp_path: Path) -> None:
    embedder = opened(provider)
    shown = [repr(embedder.inner), str(vars(embedder.inner)), repr(Settings(api_key=KEY))]  # type: ignore[attr-defined]
    assert KEY not in "".join(shown)
    with pytest.raises(ConfigError) as caught:
        open_embedder(SMALL, settings=Settings(api_key=f"{KEY} and more"))
    assert KEY not in str(caught.value)
    with pytest.raises(ConfigError, match=r"belongs in embedder\.api_key"):
        open_embedder(f"{SMALL}?api_key={KEY}")
    with pytest.raises(ConfigError) as caught:
        open_embedder(SMALL, settings=Settings(base_url=f"http://u:{KEY}@h/v1"))
    assert KEY not in str(caught.value)


# An answer that cannot be used


def changed(what: str) -> Any:
    """A change to a right answer that makes it wrong."""

    def change(asked: Any, body: Any) -> Any:
        data = body["data"]
        if what == "fewer":
            return body | {"data": data[:-1]}
        if what == "more":
            return body | {"data": [*data, data[0] | {"index": len(data)}]}
        if what == "index twice":
            return body | {"data": [item | {"index": 0} for item in data]}
        if what == "index out of range":
            return body | {"data": [item | {"index": item["index"] + 1} for item in data]}
        if what == "no data":
            return {"object": "list"}
        if what == "another model":
            return body | {"model": "text-embedding-3-large"}
        bad = {
            "dimension": [0.1] * 255,
            "infinity": base64.b64encode(np.full(256, np.inf, np.float32).tobytes()).decode(),
            "nan": base64.b64encode(np.full(256, np.nan, np.float32).tobytes()).decode(),
            "too large for float32": [1e39] * 256,
            "null": [None] * 256,
            "text": ["a"] * 256,
            "no base64": "***",
            "no vector": None,
            "nested": [[0.1] * 256],
        }[what]
        data[-1]["embedding"] = bad
        return body

    return change


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("fewer", "answered 1 vectors to 2 texts"),
        ("more", "answered 3 vectors to 2 texts"),
        ("index twice", "an `index` that is missing, there twice, or out of range"),
        ("index out of range", "an `index` that is missing"),
        ("no data", "without a list `data`; check embedder.base_url"),
        ("dimension", "answered 255 dimensions of text-embedding-3-small, not 256; set embedder.dimension"),
        ("infinity", "a number that is not finite"),
        ("nan", "a number that is not finite"),
        ("null", "a number that is not finite"),
        ("too large for float32", "a number that is not finite"),
        ("text", "not a list of numbers"),
        ("no base64", "not base64 of float32"),
        ("no vector", "answered no dimensions"),
        ("nested", "answered no dimensions"),
        (
            "another model",
            "answered as the model 'text-embedding-3-large' where 'text-embedding-3-small' was asked",
        ),
    ],
)
def test_a_wrong_answer_is_refused_whole(provider: Any, what: str, says: str) -> None:
    provider.change = changed(what)
    assert says in refusal(opened(provider), ["one", "two"])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>Welcome</html>", "something that is not JSON (text/html); check embedder.base_url"),
        (b"", "something that is not JSON"),
        (b'{"data": [{"index": 0, "embedding": [NaN]}]}', "something that is not JSON"),
        (b"\xff\xfe", "something that is not JSON"),
        (b"[]", "JSON that is not an object"),
    ],
)
def test_an_answer_that_is_no_json_object_is_refused(provider: Any, body: bytes, says: str) -> None:
    provider.replies.append(Reply(body=body or b" ", headers={"content-type": "text/html"}))
    assert says in refusal(opened(provider))


@pytest.mark.parametrize(
    ("url", "path", "body"),
    [
        ("gemini:gemini-embedding-001?dimension=256", "/v1beta", {"embeddings": "none"}),
        ("gemini:gemini-embedding-001?dimension=256", "/v1beta", {"embeddings": [{"value": [1.0]}]}),
        ("gemini:text-embedding-005?dimension=256&project_id=p", "/v1", {"predictions": [{"embedding": {}}]}),
        ("gemini:gemini-embedding-2?dimension=256&project_id=p", "/v1", {"embeddings": []}),
        ("ollama:x?dimension=256", "", {"embedding": [1.0]}),
        ("ollama:x?dimension=256", "", {"embeddings": [[1.0]]}),
        ("ollama:x?dimension=256", "", {"embeddings": []}),
    ],
)
def test_the_others_check_their_answers_too(provider: Any, url: str, path: str, body: Any) -> None:
    failing(provider, body=body)
    assert " answered " in refusal(opened(provider, url, path))


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("text-embedding-ada-002", "text-embedding-ada-002-v2", True),
        ("BAAI/bge-m3", "bge-m3", True),
        ("bge-m3", "/models/bge-m3.gguf", True),
        ("nomic-embed-text", "nomic-embed-text:latest", True),
        ("nomic-embed-text-v1.5", "C:\\models\\nomic-embed-text-v1.5.Q8_0.gguf", True),
        ("text-embedding-3-small", "text-embedding-3-large", False),
        ("bge-m3", "bge-m3x", False),
        ("text-embedding-3-small", "text-embedding-3", False),
        ("embeddings", "text-embedding-3-small", False),
    ],
)
def test_which_names_are_the_same_model(asked: str, answered: str, same: bool) -> None:
    assert same_model(asked, answered) is same


def test_a_model_that_is_served_under_another_name_says_which(provider: Any) -> None:
    provider.change = lambda asked, body: body | {"model": "team-embeddings"}
    assert embed(opened(provider, served_as="team-embeddings"), ["a"]).vectors.shape == (1, 256)


def test_a_servers_own_model_may_not_change_under_the_vectors(provider: Any) -> None:
    embedder = opened(provider, "openai:?dimension=256")

    async def both() -> None:
        await embedder.embed(["a"])
        provider.change = lambda asked, body: body | {"model": "another"}
        with pytest.raises(EmbedderUnavailable, match="as the model 'another' where 'the-default' was asked"):
            await embedder.embed(["b"])

    asyncio.run(both())


# Opening, without a network


def test_the_space_is_the_model_and_not_where_it_is(provider: Any) -> None:
    def named(url: str, **settings: Any) -> tuple[str, int]:
        made = open_embedder(url, settings=Settings(api_key=KEY, **settings))
        return made.model, made.dim

    assert named(SMALL) == named(SMALL, base_url="https://proxy.test/v1") == ("text-embedding-3-small", 1536)
    assert named(f"{SMALL}?dimension=512") == ("text-embedding-3-small@512", 512)
    assert named(f"{SMALL}?dimension=1536") == ("text-embedding-3-small", 1536)
    assert (
        named("ollama:nomic-embed-text:latest")
        == named("ollama:nomic-embed-text")
        == ("nomic-embed-text", 768)
    )
    own = named("ollama:nomic-embed-text", document_prefix="")
    assert own[0].startswith("nomic-embed-text+")
    assert named("ollama:nomic-embed-text", query_prefix="")[0] == "nomic-embed-text"
    assert named("ollama:mine", dimension=100) == ("mine", 100)


@pytest.mark.parametrize(
    ("url", "settings", "field", "says"),
    [
        ("openai:mine", {"base_url": "http://h/v1"}, "embedder.dimension", "'mine' is not a model known here"),
        ("openai:", {"api_key": KEY}, "embedder.url", "names no model"),
        ("ollama:", {}, "embedder.url", "names no model"),
        ("gemini:", {"api_key": KEY}, "embedder.url", "names no model"),
        (SMALL, {}, "embedder.api_key", "environment variable OPENAI_API_KEY"),
        ("gemini:gemini-embedding-001", {}, "embedder.api_key", "environment variable GEMINI_API_KEY"),
        ("gemini:text-embedding-005", {"project_id": "p"}, "embedder.api_key", "GOOGLE_OAUTH_ACCESS_TOKEN"),
        (SMALL, {"api_key": KEY, "dimension": 2000}, "embedder.dimension", "has 1536; it takes 1 to 1536"),
        ("openai:text-embedding-ada-002", {"api_key": KEY, "dimension": 512}, "embedder.dimension",
         "has 1536 and cannot be shortened"),
        (SMALL, {"api_key_env": "NOT_SET_ANYWHERE"}, "embedder.api_key_env", "`NOT_SET_ANYWHERE` is not set"),
        (SMALL, {"api_key_file": "/nope/key"}, "embedder.api_key_file", "/nope/key cannot be read"),
        (SMALL, {"api_key": KEY, "max_input_tokens": 3}, "embedder.max_input_tokens", "use 16 or more"),
        (SMALL, {"api_key": KEY, "base_url": "ftp://h"}, "embedder.base_url", "begins with http"),
        (SMALL, {"api_key": KEY, "base_url": "http://h/v1?api-version=1"}, "embedder.base_url", "a query"),
        (f"{SMALL}?dimensoin=3", {"api_key": KEY}, "embedder.url", "'dimensoin' is not one of api_key_env, api_"),
        (f"{SMALL}?dimension=many", {"api_key": KEY}, "embedder.url dimension", "a whole number of 1 or more"),
        (f"{SMALL}?timeout=0", {"api_key": KEY}, "embedder.url timeout", "a number above 0"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_when_it_is_opened(
    url: str, settings: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_embedder(url, settings=Settings(**settings))
    assert caught.value.field == field
    assert says in str(caught.value)


def test_the_table_of_models_makes_sense() -> None:
    for name, model in PUBLISHED.items():
        assert name == name.lower().removesuffix(":latest")
        assert 16 <= model.max_tokens <= 32768
        assert 64 <= model.dim <= 4096
        assert model.shortest is None or 0 < model.shortest < model.dim


def test_the_examples_of_the_page_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "embedders.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 5
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    (tmp_path / "token").write_text(KEY)
    opened_as = []
    for text in examples:
        (tmp_path / "memoranda.yaml").write_text(text.replace("/run/token", str(tmp_path / "token")))
        config = load(tmp_path / "memoranda.yaml", {})
        made = open_embedder(config.embedder.url, settings=config.embedder)
        opened_as.append((made.model, made.dim))
    assert opened_as == [
        ("text-embedding-3-small@512", 512),
        ("BAAI/bge-m3", 1024),
        ("gemini-embedding-001@768", 768),
        ("text-embedding-005", 768),
        ("nomic-embed-text", 768),
    ]


# In the product


def test_a_write_is_kept_while_the_provider_is_away_and_found_by_meaning_when_it_is_back(
    provider: Any, tmp_path: Path
) -> None:
    failing(provider, status=401, body={"error": {"message": "no", "code": "invalid_api_key"}})
    settings = {"url": "ollama:mine?dimension=256", "base_url": provider.url, "api_key": KEY}
    with memoranda.open(tmp_path / "data", embedder=settings) as house:
        house.memories.add("Biscuit is a beagle.")
        away = house.memories.search("beagle")
        assert [hit.memory.content for hit in away.results] == ["Biscuit is a beagle."]
        assert away.degraded == ["embedding"]
        found = until(
            lambda: house.memories.search("Is Biscuit a beagle?", mode="dense"),
            "a result of the vector search",
            accept=lambda found: found.results,
        )
        assert [hit.memory.content for hit in found.results] == ["Biscuit is a beagle."]


def test_a_house_opens_and_answers_by_words_while_the_provider_is_away(
    provider: Any, tmp_path: Path, long_rest: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for the first question, and then left alone."""
    failed: list[Task] = []
    rest = http.Wire.rest

    def noted(wire: http.Wire, lane: Task, says: str, wait: float = 0.0) -> None:
        failed.append(lane)
        rest(wire, lane, says, wait)

    monkeypatch.setattr(http.Wire, "rest", noted)
    provider.close()
    settings = {"url": "ollama:mine?dimension=256&query_timeout=0.5&timeout=0.5", "base_url": provider.url}
    with memoranda.open(tmp_path / "data", embedder=settings) as house:
        house.memories.add("Biscuit is a beagle.")
        found = house.memories.search("beagle")
        assert [hit.memory.content for hit in found.results] == ["Biscuit is a beagle."]
        assert found.degraded
        assert failed.count("query") == 1
        for _ in range(20):
            assert house.memories.search("beagle again").degraded
        assert failed.count("query") == 1
