"""A question in a language that the model does not cover: words alone, and it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import memoranda

TEXTS = [
    "Meine Schwester Clara wohnt seit dem Frühling in Graz und arbeitet dort als Hebamme.",
    "Am Samstag habe ich den alten Wasserkocher endlich zum Wertstoffhof gebracht.",
    "Gegen Haselnüsse bin ich allergisch, das steht auch in meinem Notfallpass.",
]
ASKED = "Wo wohnt denn meine Schwester?"


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_cosines_weigh_nothing_unless_they_are_asked_for(tmp_path: Path, mode: str) -> None:
    with memoranda.open(tmp_path, embedder={"url": "local:arctic-embed-s"}) as product:
        product.memories.add_many(TEXTS)
        found = product.memories.search(ASKED, mode=mode, explain=True)
        alone = mode == "hybrid"
        assert ("language" in found.degraded) == alone
        assert all((hit.similarity is None) == alone for hit in found.results)
        if alone:
            assert found.results[0].memory.content == TEXTS[0]
            assert found.evidence != "strong"
            assert [hit.memory.id for hit in found.results[:1]] == [
                hit.memory.id for hit in product.memories.search(ASKED, mode="keyword").results[:1]
            ]


def test_an_english_question_is_not_degraded(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder={"url": "local:arctic-embed-s"}) as product:
        product.memories.add_many([*TEXTS, "My sister Clara lives in Graz."])
        found = product.memories.search("Where does my sister live?")
        assert found.degraded == []
        assert found.results[0].memory.content == "My sister Clara lives in Graz."


def test_a_model_of_all_languages_covers_it(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder={"url": "local:multilingual-e5-small"}) as product:
        product.memories.add_many(TEXTS)
        found = product.memories.search(ASKED)
        assert found.degraded == []
        assert found.results[0].similarity is not None
