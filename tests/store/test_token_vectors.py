"""Token vectors of stored texts: made with their vectors, or later, carried by exports, used by searches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from support.waiting import until

DAY = datetime(2024, 5, 1, 12, tzinfo=UTC)
TEXTS = ["The heron stood on the jetty.", "I moved to Lisbon in March.", "We had soup for dinner."]


def codes(product: BlockingMemoranda) -> dict[str, bytes | None]:
    """The codes of the first window of each text."""
    rows = product.inner.core.store.db.read(
        lambda c: c.select(
            "SELECT m.content, e.tokens FROM memories m JOIN embeddings e"
            " ON e.tenant_id = m.tenant_id AND e.seq = m.seq WHERE e.part = 0"
        )
    )
    return {text: tokens if tokens is None else bytes(tokens) for text, tokens in rows}


def without_codes(product: BlockingMemoranda) -> None:
    """Make the rows as a version without token vectors left them."""
    update = "UPDATE embeddings SET tokens = NULL"
    product.inner.core.store.db.write(lambda c: c.raw.execute(update).rowcount).result()  # type: ignore[attr-defined]


def test_a_text_has_the_codes_of_its_tokens(tmp_path: Path) -> None:
    with memoranda.open(tmp_path) as product:
        product.memories.add_many([*TEXTS, {"content": TEXTS[0], "session_id": "again"}])
        vector = np.ones(product.inner.core.embedder.dim, np.float32)
        product.memories.add("with a vector of its own", embedding=vector)
        stored = codes(product)
        assert all(stored[text] for text in TEXTS)
        assert len(stored[TEXTS[0]] or b"") % (product.inner.core.embedder.token_dim // 8) == 0
        assert stored["with a vector of its own"] == b""
        assert product.memories.stats()["without_token_vectors"] == 0


def test_rows_of_an_earlier_version_get_them_in_the_background(tmp_path: Path) -> None:
    with memoranda.open(tmp_path) as product:
        product.memories.add_many(TEXTS)
        made = codes(product)
        without_codes(product)
        assert product.memories.stats()["without_token_vectors"] == 3
        found = [hit.memory.content for hit in product.memories.search("Which city is my home?").results]
        assert found[0] == TEXTS[1]
    with memoranda.open(tmp_path) as product:
        until(lambda: product.memories.stats()["without_token_vectors"] == 0, "token vectors")
        assert codes(product) == made
        assert product.memories.stats()["unembedded"] == 0


def test_an_export_with_vectors_has_them(tmp_path: Path) -> None:
    with memoranda.open(tmp_path / "a") as product:
        product.memories.add_many(TEXTS)
        product.memories.export_to(tmp_path / "out.jsonl", vectors=True)
        made = codes(product)
    with memoranda.open(tmp_path / "b") as product:
        product.memories.import_from(tmp_path / "out.jsonl")
        assert codes(product) == made
        assert product.inner.core.embedder.work.texts == 0


def test_what_is_said_beside_the_best_is_a_candidate(tmp_path: Path) -> None:
    """An answer that shares nothing with the question is found by the message before it."""
    with memoranda.open(tmp_path, search={"candidates": 5}) as product:
        said = [
            f"The {colour} kettle number {n} is on shelf {n}."
            for n in range(40)
            for colour in ("red", "blue")
        ]
        said[31:31] = ["Which bird stood on the jetty this morning?", "Ardea cinerea!"]
        product.memories.add_many(
            [
                {
                    "content": text,
                    "kind": "message",
                    "session_id": "s",
                    "metadata": {"speaker": "Ana" if n % 2 else "Ben"},
                    "occurred_at": DAY + timedelta(seconds=n),
                }
                for n, text in enumerate(said)
            ]
        )
        found = product.memories.search(
            "Which bird stood on the jetty?", scopes=["session:s"], limit=20
        ).results
        place = [hit.memory.content for hit in found].index("Ardea cinerea!")
        assert place < 8
        off = product.memories.search(
            "Which bird stood on the jetty?", scopes=["session:s"], limit=5, rerank="off"
        ).results
        assert "Ardea cinerea!" not in [hit.memory.content for hit in off]


def test_an_explanation_has_the_token_similarity(tmp_path: Path) -> None:
    with memoranda.open(tmp_path) as product:
        product.memories.add_many(
            [
                {"content": text, "kind": "message", "session_id": "s", "metadata": {"speaker": "Ana"}}
                for text in TEXTS
            ]
        )
        found = product.memories.search("Where did the heron stand?", explain=True).results
        parts = [hit.explanation.added["tokens"] for hit in found if hit.explanation]
        assert parts == sorted(parts, reverse=True)
        assert parts[0] > parts[-1] > 0
