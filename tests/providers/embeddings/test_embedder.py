"""What every embedder promises. Another one joins by adding its URL to `URLS`."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from memoranda.errors import ConfigError, EmbedderUnavailable
from memoranda.providers.embeddings import DEFAULT_EMBEDDER, Embedder, Task, open_embedder
from support.embedding_providers import Provider

ESTIMATING = [
    "gemini:gemini-embedding-001?dimension=256&max_input_tokens=512&base_url={server}/v1beta",
    "ollama:any?dimension=256&max_input_tokens=512&base_url={server}",
]
"""Those that do not know their model's tokenizer, and stay below its input by a margin."""
REMOTE = [
    "openai:text-embedding-3-small?dimension=256&max_input_tokens=512&base_url={server}/v1",
    *ESTIMATING,
]
URLS = ["hash:256", "hash:100", "local:potion-base-8m", "local:wordllama", DEFAULT_EMBEDDER]
URLS += ["local:multilingual-e5-small", *REMOTE]
TEXTS = ["Biscuit is a beagle.", "The release ships on Friday, not on Monday.", "Übergrößenträger 東京 🙂"]
ODD = [
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "\ud83d\ude00",
    "🎉" * 50,
    "e\u0301",
    "\u202eabc",
    "x" * 100_000,
    "\n" * 9,
]


@cache
def server() -> str:
    """The address of a server that answers as the providers do, for as long as the tests run."""
    return str(Provider().url)


def complete(url: str) -> str:
    return url.format(server=server()) if "{server}" in url else url


@pytest.fixture(scope="module", params=URLS, ids=lambda url: url.partition("?")[0])
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    try:
        opened = open_embedder(complete(request.param), cache_size=0)
    except ConfigError as exc:
        pytest.skip(str(exc))
    yield opened
    opened.close()


def vectors(embedder: Embedder, texts: Sequence[str], task: Task = "document") -> NDArray[np.float32]:
    return asyncio.run(embedder.embed(texts, task)).vectors


def test_one_unit_vector_per_text(embedder: Embedder) -> None:
    embedded = asyncio.run(embedder.embed(TEXTS))
    assert embedded.vectors.shape == (3, embedder.dim)
    assert embedded.vectors.dtype == np.float32
    assert np.linalg.norm(embedded.vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert embedded.tokens > 3


def test_no_texts_are_no_vectors(embedder: Embedder) -> None:
    assert vectors(embedder, []).shape == (0, embedder.dim)


def test_a_text_has_the_same_vector_whatever_shares_its_batch(embedder: Embedder) -> None:
    together = vectors(embedder, TEXTS)
    assert np.array_equal(vectors(embedder, TEXTS[::-1])[::-1], together)
    assert np.array_equal(np.concatenate([vectors(embedder, [text]) for text in TEXTS]), together)


@pytest.mark.parametrize("embedder", ["hash:256", DEFAULT_EMBEDDER], indirect=True)
def test_another_process_makes_the_same_vectors(embedder: Embedder, request: pytest.FixtureRequest) -> None:
    code = (
        "import asyncio, sys; from memoranda.providers.embeddings import open_embedder\n"
        "made = asyncio.run(open_embedder(sys.argv[1]).embed([sys.argv[2]])).vectors\n"
        "sys.stdout.buffer.write(made.tobytes())"
    )
    url = complete(request.node.callspec.params["embedder"])
    done = subprocess.run([sys.executable, "-c", code, url, TEXTS[1]], check=True, capture_output=True)
    assert np.frombuffer(done.stdout, np.float32) == pytest.approx(vectors(embedder, TEXTS[1:2])[0], abs=1e-6)


def test_questions_and_passages_that_share_meaning_are_nearest(embedder: Embedder) -> None:
    questions = vectors(embedder, ["Is Biscuit a beagle?", "Is the release on Friday?"], "query")
    assert (questions @ vectors(embedder, TEXTS[:2]).T).argmax(axis=1).tolist() == [0, 1]


def test_odd_texts_have_vectors(embedder: Embedder) -> None:
    made = vectors(embedder, ODD)
    assert np.isfinite(made).all()
    assert np.linalg.norm(made, axis=1) == pytest.approx(1, abs=1e-5)


def test_odd_texts_split_into_themselves(embedder: Embedder) -> None:
    for text in ODD:
        spans = embedder.split(text)
        assert (spans[0].start, spans[-1].end) == (0, len(text))
        assert all(before.start < after.start <= before.end < after.end for before, after in pairwise(spans))


def test_a_long_text_is_cut_where_the_input_ends(embedder: Embedder, request: pytest.FixtureRequest) -> None:
    long = "one two three " * 70_000
    assert np.array_equal(vectors(embedder, [long]), vectors(embedder, [long[:50_000]]))
    read = asyncio.run(embedder.embed([long])).tokens
    estimated = request.node.callspec.params["embedder"] in ESTIMATING
    assert embedder.max_tokens // 2 < read < embedder.max_tokens if estimated else read == embedder.max_tokens


def test_a_text_that_fits_is_one_window(embedder: Embedder) -> None:
    for text in ("", "short", "wörd " * 100):
        assert [(span.start, span.end) for span in embedder.split(text)] == [(0, len(text))]


def test_windows_fit_overlap_a_little_and_cover_everything(embedder: Embedder) -> None:
    text = "  " + "He said: naïve cafés, 東京タワー; unbelievably-long 12345.678 🙂🙂\n" * 250
    spans = embedder.split(text)
    assert (spans[0].start, spans[-1].end) == (0, len(text))
    for span in spans:
        assert len(embedder.split(text[span.start : span.end])) == 1
    for before, after in pairwise(spans):
        shared = (before.end - after.start) / (before.end - before.start)
        assert 0.05 < shared < 0.25


def test_five_thousand_tokens_are_about_eleven_windows(
    embedder: Embedder, request: pytest.FixtureRequest
) -> None:
    url = request.node.callspec.params["embedder"]
    tokens = 3 if url == "local:multilingual-e5-small" else 2  # its vocabulary has "▁hell", "o" and "▁world"
    text = "hello world " * (5000 // tokens)
    assert 10 <= len(embedder.split(text)) <= (14 if url in ESTIMATING else 12)


def test_the_last_sentence_of_a_long_note_is_found_by_its_window(embedder: Embedder) -> None:
    note = "We went through the minutes of the meeting again, point by point. " * 80
    note += "The vault code is 7391."
    pieces = [note[span.start : span.end] for span in embedder.split(note)]
    asked = vectors(embedder, ["What is the vault code?"], "query")[0]
    assert (vectors(embedder, pieces) @ asked).argmax() == len(pieces) - 1


def test_many_at_once_get_their_own_vectors(embedder: Embedder) -> None:
    async def at_once() -> list[NDArray[np.float32]]:
        calls = [embedder.embed([text], task) for text in TEXTS for task in ("document", "query")]
        return [made.vectors[0] for made in await asyncio.gather(*calls)]

    made = asyncio.run(at_once())
    assert np.array_equal(made[::2], vectors(embedder, TEXTS))
    assert np.array_equal(made[1::2], vectors(embedder, TEXTS, "query"))


def test_several_threads_keep_the_order() -> None:
    single, several = open_embedder("hash:64"), open_embedder("hash:64", threads=3)
    texts = [f"text {i} " * 2000 for i in range(40)]
    assert np.array_equal(vectors(several, texts), vectors(single, texts))


def test_a_closed_embedder_says_so() -> None:
    opened = open_embedder("hash:64")
    opened.close()
    opened.close()
    with pytest.raises(EmbedderUnavailable, match="closed"):
        vectors(opened, ["text"])


def test_the_usual_floors_part_right_from_wrong_with_the_default_embedder() -> None:
    opened = open_embedder(DEFAULT_EMBEDDER)
    facts = ["The user prefers dark mode in every editor.", "Alice is allergic to peanuts."]
    asked = vectors(opened, ["What theme does the user like?", "What can Alice not eat?"], "query")
    read = np.vectorize(opened.calibration.similarity)(asked @ vectors(opened, facts).T)
    assert read.diagonal().min() >= 0.6
    assert read[~np.eye(2, dtype=bool)].max() < 0.5


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("openal:x", "local, hash, openai, gemini, ollama"),
        (
            "local:arctic",
            "local:arctic-embed-s, local:multilingual-e5-small, local:potion-base-8m, local:wordllama",
        ),
        ("local:", "local:arctic-embed-s"),
        ("hash:four", "8 to 8192"),
        ("hash:4", "8 to 8192"),
    ],
)
def test_an_unknown_embedder_is_refused_with_what_there_is(url: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        open_embedder(url)


def test_impossible_settings_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"embedder\.threads"):
        open_embedder("hash:64", threads=0)
    with pytest.raises(ConfigError, match=r"embedder\.cache_size"):
        open_embedder("hash:64", cache_size=-1)
