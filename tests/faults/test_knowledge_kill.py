"""kill -9 while files are indexed: afterwards every file is completed with exactly its chunks, or failed with a reason,
and nothing else is left."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

import memoranda

from . import indexer

DOCS = Path(__file__).resolve().parents[3] / "shared" / "data" / "docs"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that is indexed."""
    folder = tmp_path_factory.mktemp("indexed") / "sources"
    indexer.write_sources(folder, DOCS)
    return folder


@pytest.fixture(scope="module")
def undisturbed(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run that nobody kills makes of it."""
    with memoranda.open(tmp_path_factory.mktemp("undisturbed"), **indexer.SETTINGS) as opened:
        found: dict[str, Any] = indexer.check(opened, sources, random.Random(1))
    assert {name for name, one in found.items() if one.status == "failed"} >= {
        "empty.txt", "blank.md", "damaged.pdf", "noise.bin", "cut.docx",
    }  # fmt: skip
    assert len(found[indexer.LARGE].chunks) > 1_000
    return found


def kill_again_and_again(tmp_path: Path, sources: Path, lives: int, seed: int, settings: str = "{}") -> int:
    """Lives of the indexing process on one folder, each killed at some step of its work; how many steps there were."""
    rng, steps = random.Random(seed), 0
    print(f"seed {seed}")
    for life in range(lives):
        words = ("fill", str(tmp_path / "data"), str(sources), str(seed * 1_000 + life), settings)
        with indexer.living(tmp_path / "said.log", *words) as one:
            if rng.random() < 0.1:
                time.sleep(rng.random())  # while it opens what the last one left
            else:
                one.ready()
                steps += one.steps(rng.choice([2, 10, 40, 80]))
                time.sleep(rng.random() * 0.05)
            assert one.process.poll() is None, (tmp_path / "said.log").read_text()
            one.end()
            one.gone()
    return steps


@pytest.mark.slow
def test_killed_at_any_step(tmp_path: Path, sources: Path, undisturbed: dict[str, Any]) -> None:
    seed = random.randrange(1_000_000)
    assert kill_again_and_again(tmp_path, sources, 5, seed) > 10
    with memoranda.open(tmp_path / "data", **indexer.SETTINGS) as opened:
        assert indexer.check(opened, sources, random.Random(seed)) == undisturbed


@pytest.mark.slow
def test_a_hundred_kills(tmp_path: Path, sources: Path, undisturbed: dict[str, Any]) -> None:
    """A file that twenty processes died with fails, with that as the reason; no other differs."""
    seed = random.randrange(1_000_000)
    kill_again_and_again(tmp_path, sources, 100, seed)
    with memoranda.open(tmp_path / "data", **indexer.SETTINGS) as opened:
        found = indexer.check(opened, sources, random.Random(seed))
    given_up = {name for name, one in found.items() if one.error and one.error[0] == "server_error"}
    assert all("its process has died" in found[name].error[1] for name in given_up)
    assert {name: one for name, one in found.items() if name not in given_up} == {
        name: one for name, one in undisturbed.items() if name not in given_up
    }


@pytest.mark.slow
def test_killed_while_another_process_works_beside_it(
    tmp_path: Path, sources: Path, undisturbed: dict[str, Any], postgres_url: str
) -> None:
    """On PostgreSQL: what one leaves half done the other takes up."""
    few = tmp_path / "few"
    few.mkdir()
    for path in [path for path in sources.iterdir() if not path.stem[-2:].isdigit()][::2]:
        (few / path.name).write_bytes(path.read_bytes())
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    rng = random.Random(seed)

    def words(what: str) -> tuple[str, ...]:
        return (what, str(tmp_path / what), str(few), str(rng.randrange(1_000)), "{}", postgres_url)

    roles = ["fill", "work"]
    lives = {what: indexer.Life(tmp_path / f"{what}.log", *words(what)) for what in roles}
    try:
        for one in lives.values():
            one.ready()
        for what in rng.sample([*roles, *roles], 2):
            lives[what].steps(rng.choice([2, 6, 12]))
            assert lives[what].process.poll() is None, lives[what].log.read_text()
            lives[what].end()
            lives[what] = indexer.Life(tmp_path / f"{what}.log", *words(what))
            lives[what].ready()
    finally:
        for one in lives.values():
            one.end()
    settings = {**indexer.SETTINGS, "database": {"url": postgres_url}}
    settings["jobs"] = {**settings["jobs"], "lease_seconds": 2}
    with memoranda.open(tmp_path / "data", **settings) as opened:
        found = indexer.check(opened, few, rng)
    assert found == {name: undisturbed[name] for name in found}
