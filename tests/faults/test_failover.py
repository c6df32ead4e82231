"""The database dies under load and comes back, or another one takes over; a replica lags, dies and comes back."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

import memoranda
from memoranda.errors import IndexUnavailable, StorageError
from support import postgres
from support.waiting import until

from . import cluster

PATIENCE = 1
"""Seconds that the server process waits for its database before it says so."""


class Away(Exception):
    """The server said that the rows are away just now."""


class Http:
    """What a program without our client sees."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=60)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer.

        Raises:
            Away: 503 in the envelope that OpenAI's clients read.
        """
        answer = self.http.post(path, json=body)
        held: dict[str, Any] = answer.json()
        if answer.status_code == 503:
            assert held["error"].keys() == {"message", "type", "param", "code"}
            assert held["error"]["code"] in ("storage_unavailable", "index_unavailable")
            assert held["error"]["type"] == "server_error"
            assert "postgresql://" not in answer.text
            raise Away
        assert answer.status_code == 200, answer.text
        return held

    def add(self, text: str) -> str:
        """Writes; the id."""
        return str(self.post("/v1/memories", {"content": text})["id"])

    def search(self, text: str) -> None:
        """Asks; the answer must hold something."""
        assert self.post("/v1/memories/search", {"query": text})["results"]


@dataclass
class Load:
    """Writers and searchers that never stop: what was acknowledged, by text, and when each of them was served."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    served: dict[str, list[float]] = field(default_factory=dict)
    refused: dict[str, list[float]] = field(default_factory=dict)
    wrong: list[BaseException] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def write(self, name: str, add: Callable[[str], str]) -> None:
        """Adds texts one after another; a refused one again until it is taken."""
        for n in itertools.count():
            text = f"{name}{n}x was said"
            while not self._one(name, lambda text=text: self.acknowledged.update({text: add(text)})):
                if self.ended.wait(0.02):
                    return
            if self.ended.is_set():
                return

    def search(self, name: str, search: Callable[[str], None]) -> None:
        """Searches again and again."""
        while not self.ended.wait(0.02):
            self._one(name, lambda: search("was said"))

    def _one(self, name: str, act: Callable[[], None]) -> bool:
        try:
            act()
        except (StorageError, IndexUnavailable, Away):
            self.refused[name].append(time.monotonic())
            return False
        except BaseException as exc:
            self.wrong.append(exc)
            self.ended.set()
            raise
        self.served[name].append(time.monotonic())
        return True

    @contextmanager
    def running(self, memories: Any, http: Http) -> Iterator[None]:
        """The load on a library and on a server."""

        def look(text: str) -> None:
            assert memories.search(text).results

        def put(text: str) -> str:
            return str(memories.add(text).memory.id)

        put("it was said before")
        jobs: list[tuple[str, Any, Any]] = [
            *((f"library{n}", self.write, put) for n in range(3)),
            *((f"server{n}", self.write, Http(str(http.http.base_url)).add) for n in range(2)),
            ("library-search", self.search, look),
            ("server-search", self.search, http.search),
        ]
        for name, _, _ in jobs:
            self.served[name], self.refused[name] = [], []
        threads = [threading.Thread(target=do, args=[name, act]) for name, do, act in jobs]
        for thread in threads:
            thread.start()
        try:
            until(lambda: self.all_since(0), "everybody was served")
            yield
        finally:
            self.ended.set()
            for thread in threads:
                thread.join(60)
        assert self.wrong == []

    def all_since(self, moment: float) -> bool:
        """Whether each of them was served after this moment."""
        assert self.wrong == []
        return all(times and times[-1] > moment for times in self.served.values())

    def longest_gap(self) -> float:
        """Seconds for which a caller was not served, at most."""
        return max(b - a for times in self.served.values() for a, b in itertools.pairwise(times))

    def check(self, primary: Any, products: list[Any]) -> None:
        """Nothing acknowledged is lost, nothing is there twice, the indexes have what the rows have."""
        with primary.admin() as raw:
            rows = raw.execute("SELECT content, id FROM memoranda.memories").fetchall()
        held = dict(rows)
        assert len(held) == len(rows), "a text is there twice"
        lost = {text for text, id_ in self.acknowledged.items() if held.get(text) != id_}
        assert not lost, f"{len(lost)} of {len(self.acknowledged)} lost"
        for product in products:
            product.search("was said")
            stats = product.stats()
            assert stats["indexed_vectors"] == stats["indexed_words"] == stats["memories"] == len(rows)


@contextmanager
def loaded(url: str, placement: tuple[str, str], folder: Path) -> Iterator[tuple[Load, list[Any]]]:
    """A library and a server of the same database, under load."""
    words = cluster.placed(placement)
    server = cluster.Server(folder, url, *words, f"database.retry_seconds={PATIENCE}")
    settings = cluster.local(url) | {"index": {"url": placement[0]}, "words": {"url": placement[1]}}
    with cluster.running(server), memoranda.open(":memory:", **settings) as opened:
        load = Load()
        with load.running(opened.memories, Http(server.url)):
            yield load, [opened.memories, server.client]


@pytest.mark.parametrize(
    "placement",
    [cluster.INSIDE, pytest.param(cluster.LOCAL, marks=pytest.mark.slow)],
    ids=["inside", "local"],
)
@pytest.mark.long
def test_another_server_takes_over(placement: tuple[str, str], tmp_path: Path) -> None:
    with (
        cluster.databases() as (first, second),
        loaded(cluster.either(first, second), placement, tmp_path) as (load, products),
    ):
        time.sleep(1)
        first.kill()
        time.sleep(PATIENCE + 2)
        second.promote()
        promoted = time.monotonic()
        until(lambda: load.all_since(promoted), "everybody is served again")
        print(f"{time.monotonic() - promoted:.1f} s after the promotion, gap {load.longest_gap():.1f} s")
        time.sleep(1)
        load.ended.set()
        time.sleep(0.5)
        assert load.refused["server0"], "the server did not say that its database was away"
        load.check(second, products)


@pytest.mark.slow
def test_the_server_comes_back(tmp_path: Path) -> None:
    with (
        cluster.databases(standby=False) as (only,),
        loaded(only.url, cluster.INSIDE, tmp_path) as (load, products),
    ):
        for mode in ("immediate", "fast"):
            time.sleep(0.5)
            only.stop(mode)
            time.sleep(PATIENCE + 1)
            only.start()
            back = time.monotonic()
            until(lambda back=back: load.all_since(back), "everybody is served again")
            print(f"{mode}: {time.monotonic() - back:.1f} s after the start")
        load.ended.set()
        time.sleep(0.5)
        load.check(only, products)
        server = products[1]
        assert server.wait(server.compact().id).state == "completed"  # its workers outlived the outages


def test_a_database_that_is_down_at_the_start_is_waited_for(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The database is reached by a link to the folder of its socket, which comes later. The path of a socket has at
    most 107 bytes, so that the link is not in the folder of this test."""
    url, folder = postgres.fresh_url(), tmp_path_factory.mktemp("s", numbered=True) / "socket"
    real = parse_qs(urlsplit(url).query)["host"][0]
    url = url.replace(real, str(folder)).replace(f"{cluster.OWNER}@", f"{cluster.OWNER}:tulip@")
    programs = server, worker = cluster.Server(tmp_path, url), cluster.Worker(tmp_path, url)
    try:
        for program in programs:
            said = str(
                until(program.log.read_text, "a line that it waits", accept=lambda text: "waiting" in text)
            )
            assert "%2Fsocket" in said
            assert "tulip" not in said
        worker.signal(signal.SIGTERM)
        assert worker.process.wait(5) == 0
        folder.symlink_to(real)
        server.ready()
        assert server.client.add("written after the wait").created
    finally:
        for program in programs:
            program.kill()


SCANS = (
    "SELECT sum(coalesce(idx_scan, 0) + coalesce(seq_scan, 0)) FROM pg_stat_user_tables"
    " WHERE schemaname = 'memoranda'"
)


@pytest.mark.slow
def test_a_replica_answers_searches_when_it_has_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster.databases() as (primary, replica):
        database = {"url": primary.url, "replica_url": replica.url}
        with memoranda.open(":memory:", embedder={"url": "hash:64"}, database=database) as opened:
            memories = opened.memories
            memories.add("the kettle is green")

            def search(seconds: float = 0.0) -> None:
                """Searches for so long, at least once."""
                until = time.monotonic() + seconds
                while True:
                    assert memories.search("kettle").results
                    if time.monotonic() > until:
                        return
                    time.sleep(0.05)

            def scans() -> int:
                return int(replica.ask(SCANS) or 0)

            def reads() -> bool:
                before = scans()
                search(1.2)  # a backend tells what it did once a second
                return scans() > before

            until(reads, "the replica answers")

            replica.ask("SELECT pg_wal_replay_pause()")
            until(lambda: replica.ask("SELECT pg_get_wal_replay_pause_state()") == "paused", "paused")
            for n in range(20):
                added = memories.add(f"the kettle{n} is red")
                assert added.memory.id in [hit.memory.id for hit in memories.search(f"kettle{n}").results]
            search(1.2)
            assert not reads(), "answers came from a replica that lags"
            replica.ask("SELECT pg_wal_replay_resume()")
            until(reads, "the replica answers again")

            primary.set("synchronous_standby_names", "''")
            db: Any = opened.inner.core.store.db
            replica.kill()

            def left() -> bool:
                search()
                return bool(db._replica._away)

            until(left, "the replica is found to be down")
            asked: list[Any] = []
            monkeypatch.setattr(db._replica, "_read", lambda *given: asked.append(given))
            search(2)
            assert asked == [], "searches wait for a replica that is down"
            monkeypatch.undo()
            memories.add("the kettle is blue")
            assert memories.search("kettle is blue").results[0].memory.content == "the kettle is blue"
            replica.start()
            until(reads, "the replica answers again")
