"""The adapters for LangChain: its own tests of stores, retrievers and embeddings, on folder and server."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings, FakeEmbeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import ByteStore
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import (
    BaseStoreAsyncTests,
    BaseStoreSyncTests,
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

import memoranda
from memoranda.client import Client
from memoranda.errors import InvalidInput
from memoranda.integrations.langchain import (
    MemorandaByteStore,
    MemorandaEmbeddings,
    MemorandaRetriever,
    MemorandaVectorStore,
)
from support.server_process import Process

from .conftest import QUICK

TEXTS = ["the fence is red", "the kettle is green", "the kettle is old", "bees live in the garden"]
VALUES = (b"one", b"", bytes(range(256)) * 400)
EXAMPLE = Path(__file__).parents[2] / "examples" / "langchain_documents.py"


@pytest.mark.slow
class TestVectorStore(VectorStoreIntegrationTests):
    """LangChain's tests of a vector store."""

    @pytest.fixture
    def vectorstore(self, product: Any) -> VectorStore:
        return MemorandaVectorStore(product)


@pytest.mark.slow
class TestRetriever(RetrieversIntegrationTests):
    """LangChain's tests of a retriever."""

    @pytest.fixture(autouse=True)
    def filled(self, product: Any) -> None:
        (product if hasattr(product, "add_many") else product.memories).add_many(TEXTS)
        self.product = product

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return MemorandaRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"product": self.product}

    @property
    def retriever_query_example(self) -> str:
        return "which kettle?"


@pytest.mark.slow
class TestEmbeddings(EmbeddingsIntegrationTests):
    """LangChain's tests of embeddings."""

    @pytest.fixture(autouse=True)
    def opened(self, product: Any) -> None:
        self.product = product

    @property
    def embeddings_class(self) -> type[Embeddings]:
        return MemorandaEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"product": self.product}


@pytest.mark.slow
class TestByteStore(BaseStoreSyncTests[bytes]):
    """LangChain's tests of a key-value store."""

    @pytest.fixture
    def kv_store(self, product: Any) -> ByteStore:
        return MemorandaByteStore(product)

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return VALUES


@pytest.mark.slow
class TestByteStoreAwaited(BaseStoreAsyncTests[bytes]):
    """LangChain's tests of a key-value store, awaited."""

    @pytest.fixture
    def kv_store(self, product: Any) -> ByteStore:
        return MemorandaByteStore(product)

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return VALUES


@pytest.fixture
def store(product: Any) -> MemorandaVectorStore:
    """A vector store with the texts, whose ids are their places."""
    made = MemorandaVectorStore(product)
    made.add_texts(TEXTS, [{"n": n, "$odd": n % 2} for n in range(4)], ids=list("0123"))
    return made


def ids(documents: Any) -> list[str | None]:
    return [document.id for document in documents]


def test_documents_are_found_by_text_filter_and_vector(store: MemorandaVectorStore) -> None:
    assert ids(store.similarity_search("red fence", k=1)) == ["0"]
    later = {"type": "gt", "key": "n", "value": 1}
    assert ids(store.similarity_search("which kettle?", k=1, filter=later)) == ["2"]
    scored = store.similarity_search_with_score("the kettle is green", k=4)
    assert scored[0][0] == Document(id="1", page_content=TEXTS[1], metadata={"n": 1, "$odd": 1})
    assert [score for _, score in scored] == sorted((score for _, score in scored), reverse=True)
    close = store.similarity_search_with_relevance_scores("the kettle is green", k=4, score_threshold=0.9)
    assert ids(document for document, _ in close) == ["1"]
    vector = store.embeddings.embed_documents([TEXTS[3]])[0]
    assert ids(store.similarity_search_by_vector(vector, k=1)) == ["3"]
    varied = store.max_marginal_relevance_search("the kettle is green", k=2, fetch_k=4, lambda_mult=0.0)
    assert len(varied) == 2
    assert varied[0].id == "1"
    assert varied[1].id != "2"
    retriever = store.as_retriever(search_type="mmr", search_kwargs={"k": 1})
    assert ids(retriever.invoke("red fence")) == ["0"]


def test_documents_are_deleted(store: MemorandaVectorStore) -> None:
    store.delete(["0", "missing"])
    assert ids(store.get_by_ids(["1", "0", "3"])) == ["1", "3"]
    store.delete()
    assert store.similarity_search("kettle") == []


def test_a_store_is_made_of_texts(product: Any) -> None:
    embeddings = MemorandaEmbeddings(product)
    first = MemorandaVectorStore.from_texts(TEXTS, embeddings, ids=list("0123"))
    second = MemorandaVectorStore.from_documents([Document("a kettle")], embeddings, name="second")
    assert ids(first.similarity_search("green kettle", k=1)) == ["1"]
    assert len(second.similarity_search("kettle")) == 1
    with pytest.raises(InvalidInput, match="embedding: must be MemorandaEmbeddings"):
        MemorandaVectorStore.from_texts(TEXTS, FakeEmbeddings(size=3))


def test_what_would_be_ignored_is_refused(store: MemorandaVectorStore) -> None:
    with pytest.raises(TypeError, match="'namespace' is no argument here"):
        store.similarity_search("kettle", namespace="x")
    with pytest.raises(InvalidInput, match="metadatas: has 1 entries for 2 texts"):
        store.add_texts(["a", "b"], [{}])
    with pytest.raises(InvalidInput, match="content: must hold some text"):
        store.add_texts([" "])


def test_texts_are_embedded_as_the_product_embeds(product: Any) -> None:
    embeddings = MemorandaEmbeddings(product)
    assert embeddings.embed_documents([]) == []
    many = embeddings.embed_documents([f"text {n}" for n in range(300)])
    assert len(many) == 300
    assert many[7] == pytest.approx(embeddings.embed_query("text 7"), abs=1e-6)
    with pytest.raises(InvalidInput, match=r"texts\[1\]: must hold some text"):
        embeddings.embed_documents(["a", ""])


def test_memories_are_retrieved_by_their_scope(folder: Any) -> None:
    folder.memories.add("Ana likes tea", user_id="ana", tags=["taste"], metadata={"cup": "blue"})
    folder.memories.add("Ben likes tea", user_id="ben")
    MemorandaVectorStore(folder).add_texts(["All like tea"])
    (document,) = MemorandaRetriever(product=folder, search={"scopes": ["user:ana"]}).invoke("tea")
    assert document.page_content == "Ana likes tea"
    known = {"cup": "blue", "user_id": "ana", "tags": ["taste"], "kind": "note"}
    assert known.items() <= document.metadata.items()
    assert 0.0 < document.metadata["score"] <= 1.0
    assert len(MemorandaRetriever(product=folder).invoke("tea")) == 2
    with pytest.raises(InvalidInput, match="has no vector stores"):
        MemorandaRetriever(product=folder.memories, stores=["vs"])


@pytest.mark.gate("folder")
def test_passages_are_retrieved_from_vector_stores(product: Any, tmp_path: Path) -> None:
    file = tmp_path / "kettle.md"
    file.write_text("# Kettle\n\nThe kettle is descaled with vinegar.\n")
    stores = product.knowledge.stores
    made = stores.create(name="manuals")
    stores.upload(made.id, file, attributes={"lang": "en"})
    stores.wait(made.id)
    retriever = MemorandaRetriever(product=product, stores=[made.id], search={"filters": {"lang": "en"}})
    (document,) = retriever.invoke("How is it descaled?")
    assert "descaled with vinegar" in document.page_content
    assert document.metadata["filename"] == "kettle.md"
    assert document.metadata["lang"] == "en"
    stores.delete(made.id)


@pytest.mark.gate("folder")
def test_a_file_in_several_stores_is_retrieved_once_up_to_the_greatest_limit(product: Any) -> None:
    stores = product.knowledge.stores
    ids = [stores.create(name=name).id for name in ("manuals", "copies", "more copies")]
    for store in ids:
        stores.upload(store, b"The kettle is descaled with vinegar.", "kettle.md")
        stores.wait(store)
    most = 50 if isinstance(product, Client) else 1_000
    for limit in (1, most // 2, most):
        assert len(MemorandaRetriever(product=product, stores=ids, k=limit).invoke("the kettle")) == 1
    for limit in (most + 1, 5_000):
        with pytest.raises(InvalidInput, match=f"must be between 1 and {most}"):
            MemorandaRetriever(product=product, stores=ids, k=limit).invoke("the kettle")
    for store in ids:
        stores.delete(store)


def test_values_are_kept_exactly_by_any_key(product: Any) -> None:
    store = MemorandaByteStore(product)
    large = bytes(n * n % 251 for n in range(700_000))
    keys = ["a/b/../c", "käse 🧀", " ", "", "$id", "%_\\", "\x01" * 2_048, "🧀" * 2_048]
    values = {key: large if key == "a/b/../c" else b"\x00\xff" + bytes(40 << 10) for key in keys}
    store.mset(list(values.items()))
    assert store.mget([*keys[::-1], "c", "a/b/../c"]) == [*list(values.values())[::-1], None, large]
    assert list(store.yield_keys()) == keys
    assert list(store.yield_keys(prefix="%")) == ["%_\\"]
    assert list(store.yield_keys(prefix="b")) == []


def test_the_last_value_of_a_key_counts(product: Any) -> None:
    store = MemorandaByteStore(product)
    for value in (bytes(300_000), b"short", b"", bytes(100_000)):
        store.mset([("a", b"earlier"), ("b", b"b"), ("a", value)])
        assert store.mget(["a", "b", "a"]) == [value, b"b", value]
    assert list(store.yield_keys()) == ["a", "b"]
    memories = product if isinstance(product, Client) else product.memories
    assert memories.count(kinds=["item"], scopes=["channel:langchain-bytes"]) == 5, (
        "no part of an old value is left"
    )
    store.mset([])
    store.mdelete(["a", "b", "a", "missing"])
    assert store.mget(["a", "b"]) == [None, None]
    assert memories.count(kinds=["item"], scopes=["channel:langchain-bytes"]) == 0
    store.mset([("a", b"again")])
    assert store.mget(["a"]) == [b"again"]


def test_byte_stores_of_several_names_are_apart_and_forgotten_apart(product: Any) -> None:
    first, second = (MemorandaByteStore(product, name=name) for name in ("first", "second"))
    first.mset([("a", bytes(100_000)), ("b", b"b")])
    second.mset([("a", b"second")])
    first.mdelete(["b"])
    assert list(first.yield_keys()) == list(second.yield_keys()) == ["a"]
    memories = product if isinstance(product, Client) else product.memories
    assert memories.search("a record that is not searched").results == []
    memories.forget(scopes=["channel:first"])
    assert first.mget(["a"]) == [None]
    assert second.mget(["a"]) == [b"second"]
    second.mset([("b", b"b")])
    assert list(second.yield_keys()) == ["a", "b"]


def test_keys_and_values_that_cannot_be_stored_are_refused(product: Any) -> None:
    store = MemorandaByteStore(product)
    wrong: list[tuple[Any, Any, str]] = [
        ("k" * 2_049, b"", "the key has 2049 characters, at most 2048 are stored"),
        ("a\x00", b"", "the key holds a NUL character"),
        ("a\ud800", b"", "the key holds a NUL character or a lone surrogate"),
        (1, b"", "the key must be a string, not int"),
    ]
    for key, value, says in [*wrong, ("a", "text", "the value must be bytes, not str"), ("a", None, "bytes")]:
        with pytest.raises(InvalidInput, match=rf"key_value_pairs\[1\]: .*{says}"):
            store.mset([("good", b""), (key, value)])
    for key, _, says in wrong:
        for call in (store.mget, store.mdelete):
            with pytest.raises(InvalidInput, match=rf"keys\[1\]: {says}"):
                call(["good", key])
    assert list(store.yield_keys()) == []


def test_a_lower_limit_of_metadata_is_named() -> None:
    with memoranda.open(":memory:", embedder=QUICK, limits={"max_metadata_bytes": 1_000}) as opened:
        store = MemorandaByteStore(opened)
        store.mset([("a", bytes(500))])
        with pytest.raises(InvalidInput, match=r"key_value_pairs: .*1000 bytes.*limits\.max_metadata_bytes"):
            store.mset([("a", bytes(2_000)), ("b", b"")])
        assert store.mget(["a", "b"]) == [bytes(500), None]


@pytest.fixture(params=["folder", pytest.param("server", marks=pytest.mark.slow)])
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A product that takes little in one request: a folder, and a server."""
    if request.param == "folder":
        with memoranda.open(":memory:", embedder=QUICK, limits={"max_batch": 7}) as opened:
            yield opened
        return
    started = Process(tmp_path / "data", {"server": {"max_body_bytes": 120_000}})
    with Client(started.url) as client:
        yield client
    started.end()


def test_values_are_stored_where_a_request_takes_few(limited: Any) -> None:
    store = MemorandaByteStore(limited)
    values = {f"key {n:02}": bytes([n]) * 30_000 for n in range(20)} | {"large": bytes(range(250)) * 2_000}
    for _ in range(2):
        store.mset(list(values.items()))
        assert store.mget(list(values)) == list(values.values())
        assert list(store.yield_keys()) == list(values)
    memories = limited if isinstance(limited, Client) else limited.memories
    assert memories.count(kinds=["item"]) == 20 + 1 + 13, "no part of an old value is left"


def test_documents_are_stored_where_a_request_takes_few(limited: Any) -> None:
    store = MemorandaVectorStore(limited)
    texts = [f"document {n} " + "word " * 2_000 for n in range(20)]
    ids = [f"id {n}" for n in range(20)]
    for _ in range(2):
        assert store.add_texts(texts, ids=ids) == ids
        assert [document.page_content for document in store.get_by_ids(ids)] == texts


def test_new_values_that_fit_a_request_are_stored_all_or_none() -> None:
    limits = {"max_batch": 3, "max_metadata_bytes": 1_000}
    with memoranda.open(":memory:", embedder=QUICK, limits=limits) as opened:
        store = MemorandaByteStore(opened)
        for count in (2, 3):
            values = [(f"{n}", b"") for n in range(count)]
            with pytest.raises(InvalidInput, match="key_value_pairs"):
                store.mset([*values[1:], ("large", bytes(2_000))])
            assert list(store.yield_keys()) == []


def test_keys_are_yielded_while_they_are_deleted(folder: Any) -> None:
    store = MemorandaByteStore(folder)
    keys = [f"key {n:04}" for n in range(2_100)]
    store.mset([(key, b"") for key in keys])
    yielded = []
    for key in store.yield_keys():
        yielded.append(key)
        store.mdelete([key])
    assert yielded == keys
    assert list(store.yield_keys()) == []


def test_values_are_there_for_another_process(tmp_path: Path) -> None:
    program = (
        "import memoranda\n"
        "from memoranda.integrations.langchain import MemorandaByteStore\n"
        f"with memoranda.open({str(tmp_path)!r}, embedder={QUICK!r}) as product:\n"
        "    MemorandaByteStore(product).mset([('a', bytes(range(256)) * 1000), ('b/ü', b'')])\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    for _ in range(2):
        with memoranda.open(tmp_path, embedder=QUICK) as opened:
            store = MemorandaByteStore(opened)
            assert store.mget(["b/ü", "a", "c"]) == [b"", bytes(range(256)) * 1000, None]
            assert sorted(store.yield_keys()) == ["a", "b/ü"]


def test_cached_embeddings_are_not_computed_again(product: Any) -> None:
    classic = pytest.importorskip("langchain_classic.embeddings")

    class Counting(MemorandaEmbeddings):
        embedded: list[str] = []  # noqa: RUF012 - of this test alone

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.embedded.extend(texts)
            return super().embed_documents(texts)

    cached = classic.CacheBackedEmbeddings.from_bytes_store(
        Counting(product), MemorandaByteStore(product), namespace="model/1", key_encoder="sha256"
    )
    vectors = cached.embed_documents(TEXTS)
    assert cached.embed_documents(["a new text", *TEXTS])[1:] == vectors
    assert Counting.embedded == [*TEXTS, "a new text"]


def test_langchain_in_an_event_loop(tmp_path: Path) -> None:
    async def story() -> None:
        async with await memoranda.Memoranda.open(tmp_path, embedder=QUICK) as opened:
            store = MemorandaVectorStore(opened)
            await store.aadd_texts(TEXTS)
            assert len(await store.asimilarity_search("kettle", k=2)) == 2
            await opened.memories.add("Ana likes tea")
            assert len(await MemorandaRetriever(product=opened).ainvoke("tea")) == 1
            assert len(await MemorandaEmbeddings(opened).aembed_query("tea")) == 64
            values = MemorandaByteStore(opened)
            await values.amset([("a", b"1"), ("b", bytes(100_000))])
            await values.amdelete(["a"])
            assert await values.amget(["a", "b"]) == [None, bytes(100_000)]
            assert [key async for key in values.ayield_keys()] == ["b"]

    asyncio.run(story())


@pytest.mark.slow
def test_the_example_finds_the_document_that_answers(tmp_path: Path) -> None:
    words = [str(tmp_path / "data"), "What does the kettle need?"]
    command = [sys.executable, str(EXAMPLE), *words]
    for _ in range(2):  # the second time the documents are there already
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert told.splitlines()[0].endswith("The kettle is descaled with vinegar once a month. (kettle)"), (
            told
        )


@pytest.mark.slow
def test_the_page_says_what_happens(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "guides" / "integrations.md").read_text("utf-8")
    section = page.split("## LangChain\n")[1].split("\n## ")[0]
    documents, values = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    printed = re.findall(r"\)  # (.*)", values)
    for code, lines in (
        (documents, ["The kettle is descaled with vinegar.", "Ana is allergic to peanuts."]),
        (values, printed),
    ):
        command = [sys.executable, "-c", code]
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert told.stdout.splitlines() == lines, told.stderr
