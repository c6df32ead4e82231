"""`embedder: auto`: the model follows the languages of the texts, in a library and a server, for good."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

import memoranda
from memoranda.app import auto_embedder
from memoranda.app.blocking import BlockingMemoranda
from memoranda.providers.embeddings import manifest
from memoranda.server.app import create_app
from memoranda.store import covering
from memoranda.text.analysis import language_in
from support.waiting import until

ENGLISH, MULTILINGUAL = "arctic-embed-s", "multilingual-e5-small"
GERMAN = [
    f"Wir haben am {day}. März mit der Mannschaft über das neue Dach gesprochen." for day in range(1, 25)
]
SAID = [f"On the {day}th of March we talked about the new roof with the team." for day in range(1, 25)]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_embedder, "EVERY_SECONDS", 0.05)


def opened(folder: Path | str, url: str = "auto") -> BlockingMemoranda:
    return memoranda.open(folder, embedder={"url": url})


def model(rc: BlockingMemoranda) -> str:
    return str(rc.memories.stats()["model"])


def looked_at(rc: BlockingMemoranda) -> None:
    """Wait until the languages of all texts were looked at."""
    watched, store = rc.inner.auto, rc.inner.core.store
    assert watched is not None
    until(lambda: watched.rev == store.derived.last_rev(), "a look at all texts")


def test_twenty_german_texts_move_a_store_and_it_finds_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path) as rc, caplog.at_level(logging.WARNING, "memoranda.embedder"):
        assert model(rc) == ENGLISH
        rc.memories.add_many(GERMAN[:20])
        until(lambda: model(rc) == MULTILINGUAL, "the move")
        until(lambda: not rc.memories.stats()["unembedded"], "no pending embedding")
        rc.memories.add("Der Dachdecker heißt Klaus und kommt aus Kassel.")
        until(lambda: not rc.memories.stats()["unembedded"], "no pending embedding")
        found = rc.memories.search("Who repairs the roof?", mode="dense").results
        assert "Klaus" in found[0].memory.content
        assert "multilingual-e5-small is in use" in rc.memories.stats()["embedder_note"]
        assert len([each for each in caplog.records if each.name == "memoranda.embedder"]) == 1
    with opened(tmp_path) as rc:
        assert model(rc) == MULTILINGUAL
        rc.memories.add_many(SAID)
        assert rc.inner.core.embedders.next is None


@pytest.mark.parametrize(
    "texts", [GERMAN[:19], SAID, [*GERMAN[:20], *(f"{said} {n}" for said in SAID for n in range(8))]]
)
def test_fewer_texts_or_english_ones_move_nothing(texts: list[str]) -> None:
    with opened(":memory:") as rc:
        rc.memories.add_many(texts)
        looked_at(rc)
        assert model(rc) == ENGLISH
        assert rc.memories.stats()["embedder_note"] is None
        assert rc.inner.core.embedders.next is None


def test_a_pinned_model_stays(tmp_path: Path) -> None:
    with opened(tmp_path, f"local:{ENGLISH}") as rc:
        rc.memories.add_many(GERMAN[:20])
        assert rc.inner.auto is None
    with opened(tmp_path) as rc:
        until(lambda: model(rc) == MULTILINGUAL, "the move of what was stored before")
    with opened(tmp_path, f"local:{MULTILINGUAL}") as rc:
        assert (model(rc), rc.memories.stats()["embedder_note"]) == (MULTILINGUAL, None)


def test_a_move_that_was_killed_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as rc:
        rc.inner.core.jobs.kinds.clear()  # as if the process ended before the job began
        rc.memories.add_many(GERMAN[:20])
        until(lambda: rc.inner.core.embedders.next is not None, "the decision")
        assert model(rc) == ENGLISH
        assert "are being made" in rc.memories.stats()["embedder_note"]
    with opened(tmp_path) as rc:
        until(lambda: model(rc) == MULTILINGUAL, "the move")


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as missing:
        missing.setattr(
            manifest, "find_spec", lambda name: None if name.endswith("multilingual") else find_spec(name)
        )
        with opened(tmp_path) as rc:
            rc.memories.add_many(GERMAN[:20])
            until(lambda: rc.memories.stats()["embedder_note"], "the sentence")
            assert "pip install memoranda-models-multilingual" in rc.memories.stats()["embedder_note"]
            assert model(rc) == ENGLISH
    with opened(tmp_path) as rc:
        until(lambda: model(rc) == MULTILINGUAL, "the move once it is installed")


def test_a_server_moves_and_says_so(tmp_path: Path) -> None:
    with opened(tmp_path) as rc:
        app = httpx.ASGITransport(create_app(rc.inner), client=("127.0.0.1", 40000))

        async def request(method: str, path: str, **options: Any) -> Any:
            async with httpx.AsyncClient(transport=app, base_url="http://localhost:8377") as http:
                return (await http.request(method, path, **options)).json()

        for text in GERMAN[:20]:
            rc.portal.call(request("POST", "/v1/memories", json={"content": text}))
        until(lambda: model(rc) == MULTILINGUAL, "the move")
        assert "is in use" in rc.portal.call(request("GET", "/v1/memories/stats"))["embedder_note"]


def test_processes_of_one_database_move_one_after_the_other(postgres_url: str) -> None:
    settings: Any = {"database": {"url": postgres_url}, "embedder": {"url": "auto"}}
    with memoranda.open(":memory:", **settings) as a, memoranda.open(":memory:", **settings) as b:
        a.memories.add_many(GERMAN[:20])
        for each in (a, b):
            until(lambda each=each: model(each) == MULTILINGUAL, "the move")
        b.memories.add("Der Dachdecker heißt Klaus und kommt aus Kassel.")
        for each in (a, b):
            until(
                lambda each=each: "Klaus" in str(each.memories.search("roofer", mode="dense").results[:1]),
                "it",
            )


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("ok 👍", ""),
        ("Anna Müller", ""),
        ("I think that the roof is done.", "en"),
        ("Das Dach ist fertig und wir sind froh.", "de"),
        ("屋顶昨天已经修好了。Thanks!", "zh"),
        ("屋根は直りました", "ja"),
        ("지붕이 다 고쳐졌어요", "ko"),
        ("หลังคาซ่อมเสร็จแล้ว", "th"),
        ("छत ठीक हो गई", "hi"),
        ("Крыша готова", "ru"),
        ("السقف جاهز", "ar"),
        ("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "und"),
    ],
)
def test_the_language_of_a_text(text: str, language: str) -> None:
    assert language_in(text) == language


def test_the_names_of_the_models_are_those_of_the_product() -> None:
    assert {f"local:{ENGLISH}", f"local:{MULTILINGUAL}"} == {covering.ENGLISH, covering.MULTILINGUAL}
