"""The multilingual model: what is in its package, its languages, and texts of scripts without spaces."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memoranda.errors import ConfigError
from memoranda.providers.embeddings import Embedder, Task, open_embedder
from memoranda.providers.embeddings import manifest as manifests
from memoranda.providers.embeddings.local import MODELS
from memoranda.providers.embeddings.manifest import open_folder
from memoranda.providers.embeddings.onnx import OnnxEmbedder

URL = "local:multilingual-e5-small"
QUESTIONS = [
    "Where did Anna move?",
    "安娜搬到哪里了？",
    "أين انتقلت آنا؟",
    "แอนนาย้ายไปที่ไหน",
    "अन्ना कहाँ चली गई?",
]
PASSAGES = ["Anna ist letzten Herbst nach Kasan gezogen.", "Der Zug nach Hamburg fährt um neun Uhr."]
WRITTEN = {
    "zh": "我们昨天去了北京的故宫看雪。",
    "th": "ฉันชอบกินข้าวผัดกับแมวที่บ้านสีดำ",
    "ar": "والكتاب الذي قرأته أمس كان جميلا ",
    "hi": "मैं कल दिल्ली गया था और वहाँ बारिश हुई। ",
    "emoji": "👩\u200d👩\u200d👧👍🏽🎉",
}


@pytest.fixture(scope="module")
def embedder() -> Iterator[Embedder]:
    opened = open_embedder(URL, cache_size=0)
    yield opened
    opened.close()


def vectors(embedder: Embedder, texts: Sequence[str], task: Task = "document") -> NDArray[np.float32]:
    return asyncio.run(embedder.embed(texts, task)).vectors


def test_the_package_is_whole_and_says_where_it_is_from() -> None:
    model = open_folder(MODELS / "multilingual-e5-small")
    model.verify()
    kept = {path.name for path in model.folder.iterdir() if path.suffix != ".pyc" and path.is_file()}
    assert kept == {"__init__.py", *model.manifest.files}
    readme = (model.folder.parent.parent / "README.md").read_text()
    assert all(file.sha256 in readme for file in model.manifest.files.values())
    assert model.manifest.licence == "MIT"


def test_it_knows_its_languages_and_english_models_theirs(embedder: Embedder) -> None:
    assert embedder.languages is not None
    assert embedder.languages >= {"en", "de", "zh", "ja", "ar", "hi", "ru", "th", "ko", "he", "el"}
    assert open_embedder("local:arctic-embed-s").languages == {"en"}
    assert open_embedder("hash:64").languages is None


def test_a_question_finds_the_passage_in_another_language(embedder: Embedder) -> None:
    nearest = vectors(embedder, QUESTIONS, "query") @ vectors(embedder, PASSAGES).T
    assert nearest.argmax(axis=1).tolist() == [0] * len(QUESTIONS)


def test_prefixes_go_before_questions_and_passages(embedder: Embedder) -> None:
    inner = embedder.inner  # type: ignore[attr-defined]
    assert isinstance(inner, OnnxEmbedder)
    assert inner.prefixes == {"query": "query: ", "document": "passage: "}
    as_question, as_passage = (vectors(embedder, ["Anna"], task) for task in ("query", "document"))
    assert not np.array_equal(as_question, as_passage)
    assert asyncio.run(embedder.embed(["Anna"])).tokens == 5  # <s> ▁passage : ▁Anna </s>


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """The model's tokenizer, which cuts nothing."""
    model = open_folder(MODELS / "multilingual-e5-small")
    whole = Tokenizer.from_file(str(model.folder / model.manifest.tokenizer))
    whole.no_truncation()
    return whole


@pytest.mark.parametrize("script", WRITTEN)
def test_a_long_text_without_spaces_splits_between_characters(
    embedder: Embedder, tokenizer: Tokenizer, script: str
) -> None:
    text = (WRITTEN[script] * 2000)[:20_000]
    spans = embedder.split(text)
    assert len(spans) > 5
    assert (spans[0].start, spans[-1].end) == (0, len(text))
    assert all(before.start < after.start <= before.end < after.end for before, after in pairwise(spans))
    for span in spans[:-1]:
        window = text[span.start : span.end]
        assert len(embedder.split(window)) == 1
        assert len(tokenizer.encode(f"passage: {window}")) <= embedder.max_tokens
        assert text[span.end] not in "ัี่้ํ่าิ्ाेी\u200d🏽"
        assert text[span.end - 1] != "\u200d"
    first = text[: spans[0].end]
    assert asyncio.run(embedder.embed([first])).tokens == len(tokenizer.encode(f"passage: {first}"))


def test_a_text_of_signs_that_just_fits_loses_nothing(embedder: Embedder) -> None:
    signs = "|^" * 300  # n signs are n + 1 tokens: one for the beginning of a word
    assert len(embedder.split(signs[:506])) == 1
    assert asyncio.run(embedder.embed([signs[:506]])).tokens <= embedder.max_tokens
    assert len(embedder.split(signs[:507])) == 2


def test_without_its_package_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "find_spec", lambda name: None)
    with pytest.raises(ConfigError) as raised:
        open_embedder(URL)
    assert "pip install memoranda-models-multilingual" in str(raised.value)


def test_a_unigram_tokenizer_of_a_static_model_knows_its_unknown_token(tmp_path: Path) -> None:
    pieces = [["<s>", 0.0], ["<unk>", 0.0], ["▁red", -1.0], ["▁fence", -1.0]]
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    tokenizer = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": space}
    model = {"type": "Unigram", "unk_id": 1, "vocab": pieces, "byte_fallback": False}
    more = {"model": model, "post_processor": None, "decoder": space, "truncation": None, "padding": None}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer | more))
    np.save(tmp_path / "rows.npy", np.eye(4, 8, dtype=np.float32))
    manifest = {"name": "tiny", "kind": "static", "dim": 8, "max_tokens": 64, "weights": "rows.npy"}
    (tmp_path / "model.json").write_text(json.dumps(manifest))
    opened = open_embedder(f"local:{tmp_path}")
    assert vectors(opened, ["red"])[0].tolist() == vectors(opened, ["red 東京"])[0].tolist()
