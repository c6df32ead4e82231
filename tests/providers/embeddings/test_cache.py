import asyncio
from collections.abc import Sequence

import numpy as np

from memoranda.providers.embeddings import CachedEmbedder, open_embedder


def ask(embedder: CachedEmbedder, texts: Sequence[str]) -> tuple[np.ndarray, int]:
    made = asyncio.run(embedder.embed(texts, "query"))
    return made.vectors, made.tokens


def test_a_question_asked_again_costs_nothing() -> None:
    embedder = open_embedder("hash:64")
    first, paid = ask(embedder, ["what is it", "who was it", "what is it"])
    again, paid_again = ask(embedder, ["who was it", "what is it", "new"])
    assert np.array_equal(first[[1, 0]], again[:2])
    assert (paid, paid_again) == (6, 1)
    work = embedder.work
    assert (work.texts, work.tokens, work.cache_hits) == (3, 7, 3)
    assert work.seconds > 0


def test_the_least_recently_asked_goes_first() -> None:
    embedder = open_embedder("hash:64", cache_size=2)
    for text in ("a", "b", "a", "c"):
        ask(embedder, [text])
    assert [ask(embedder, [text])[1] for text in ("a", "c", "b")] == [0, 0, 1]


def test_more_questions_than_the_cache_holds_are_all_answered() -> None:
    embedder = open_embedder("hash:64", cache_size=1)
    assert np.array_equal(
        ask(embedder, ["a", "b", "c"])[0], ask(open_embedder("hash:64"), ["a", "b", "c"])[0]
    )


def test_a_caller_who_changes_a_vector_changes_no_one_elses() -> None:
    embedder = open_embedder("hash:64")
    given, _ = ask(embedder, ["a"])
    kept = given.copy()
    given[:] = 0
    given, _ = ask(embedder, ["a"])
    given[:] = 0
    assert np.array_equal(ask(embedder, ["a"])[0], kept)


def test_documents_and_questions_do_not_share_a_cache() -> None:
    embedder = open_embedder("hash:64")
    ask(embedder, ["a"])
    assert asyncio.run(embedder.embed(["a"])).tokens == 1
    assert embedder.work.cache_hits == 0
