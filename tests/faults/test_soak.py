"""Writes and searches side by side for a while: answers stay right, and over half an hour nothing grows."""

from __future__ import annotations

import os
import random
import threading
import time
from array import array
from pathlib import Path

import pytest

import memoranda
from memoranda.app.blocking import BlockingMemoranda

QUICK = {"url": "hash:64"}
SECONDS = float(os.environ.pop("MEMORANDA_SOAK_SECONDS", "1800"))
"""Taken out of the environment: the configuration refuses variables that it does not know."""
SHORT_SECONDS = 20.0
WORDS = [f"word{n}" for n in range(2_000)]


class Load:
    """Writers that keep `most` rows each, and searchers that check what they get. `writes` and `searches` are
    begin and duration in turn, in seconds, as plain doubles so that the measure itself hardly grows."""

    def __init__(self, opened: BlockingMemoranda, most: int) -> None:
        self.memories = opened.memories
        self.most = most
        self.stop = threading.Event()
        self.failures: list[BaseException] = []
        self.writes = array("d")
        self.searches = array("d")
        self.kept: dict[int, dict[str, str]] = {}

    def write(self, writer: int) -> None:
        rng = random.Random(writer)
        mine = self.kept.setdefault(writer, {})
        n = 0
        while not self.stop.is_set():
            n += 1
            began = time.perf_counter()
            text = f"writer{writer} turn{n} " + " ".join(rng.choices(WORDS, k=12))
            if len(mine) < self.most:
                mine[self.memories.add(text, session_id=f"s{writer}").memory.id] = text
            elif rng.random() < 0.5:
                id_ = rng.choice(list(mine))
                mine[id_] = self.memories.update(id_, content=text).content
            else:
                id_ = rng.choice(list(mine))
                self.memories.delete(id_)
                del mine[id_]
            self.writes.extend((began, time.perf_counter() - began))

    def search(self, searcher: int) -> None:
        rng = random.Random(-searcher)
        while not self.stop.is_set():
            scope = rng.randrange(2)
            began = time.perf_counter()
            found = self.memories.search(
                " ".join(rng.choices(WORDS, k=3)), scopes=[f"session:s{scope}"], limit=10
            )
            self.searches.extend((began, time.perf_counter() - began))
            assert found.degraded == []
            assert all(hit.memory.session_id == f"s{scope}" for hit in found.results)
            assert len({hit.memory.id for hit in found.results}) == len(found.results)

    def run(self, seconds: float) -> list[tuple[float, int]]:
        """Runs two writers and two searchers; (time, resident bytes) every second."""
        work = [(self.write, 0), (self.write, 1), (self.search, 0), (self.search, 1)]
        threads = [threading.Thread(target=self._guarded, args=one) for one in work]
        for thread in threads:
            thread.start()
        resident = []
        until = time.perf_counter() + seconds
        while time.perf_counter() < until and not self.failures:
            resident.append((time.perf_counter(), resident_bytes()))
            time.sleep(min(1.0, seconds / 20))
        self.stop.set()
        for thread in threads:
            thread.join(60)
        assert self.failures == []
        return resident

    def _guarded(self, work: object, number: int) -> None:
        try:
            work(number)  # type: ignore[operator]
        except BaseException as exc:
            self.failures.append(exc)

    def check(self, opened: BlockingMemoranda) -> None:
        """The folder holds exactly what the writers kept, in rows and in both indexes."""
        expected = {id_: text for mine in self.kept.values() for id_, text in mine.items()}
        held: dict[str, str] = {}
        after = None
        while True:
            page = opened.memories.list(limit=1_000, after=after)
            held.update((row.id, row.content) for row in page.data)
            if not page.has_more:
                break
            after = page.last_id
        assert held == expected
        stats = opened.memories.stats()
        assert stats["indexed_vectors"] == stats["indexed_words"] == stats["vectors"] == len(expected)


def resident_bytes() -> int:
    """What this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def thirds(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The values of the second and of the last third of the time."""
    first, last = points[0][0], points[-1][0]
    step = (last - first) / 3
    second = [value for at, value in points if first + step <= at < first + 2 * step]
    third = [value for at, value in points if at >= first + 2 * step]
    return second, third


def p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


@pytest.mark.slow
def test_twenty_seconds_of_everything(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder=QUICK) as opened:
        load = Load(opened, most=300)
        load.run(SHORT_SECONDS)
        load.check(opened)
    with memoranda.open(tmp_path, embedder=QUICK) as again:
        load.check(again)


@pytest.mark.slow
def test_half_an_hour_changes_nothing(tmp_path: Path) -> None:
    """Resident memory and the slowest searches of the last third are those of the second."""
    with memoranda.open(tmp_path, embedder=QUICK) as opened:
        load = Load(opened, most=2_000)
        resident = load.run(SECONDS)
        load.check(opened)
    sizes = thirds([(at, float(value)) for at, value in resident])
    slow = [thirds(list(zip(one[::2], one[1::2], strict=True))) for one in (load.searches, load.writes)]
    ratios = {
        "resident": max(sizes[1]) / max(sizes[0]),
        "search p99": p99(slow[0][1]) / p99(slow[0][0]),
        "write p99": p99(slow[1][1]) / p99(slow[1][0]),
    }
    print(f"resident MiB, each minute: {[int(value) >> 20 for _, value in resident[::60]]}")
    print(
        {name: round(ratio, 3) for name, ratio in ratios.items()},
        len(load.searches) // 2,
        len(load.writes) // 2,
    )
    assert ratios["resident"] < 1.1
    assert ratios["search p99"] < 1.5
    assert ratios["write p99"] < 1.5
