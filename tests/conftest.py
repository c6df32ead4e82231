"""What tests share: places to remember in, with a model that costs nothing."""

from __future__ import annotations

import gc
import itertools
import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import memoranda
from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.storage.sql import Database, open_database
from memoranda.types import Subject
from support import postgres, shared_models, shared_readers
from support.processes import guard

SEED = os.environ.get("TEST_SEED")
"""The seed of `./test --all`; without it every run draws the same examples."""
settings.register_profile("same", settings.default, deadline=None, derandomize=True, database=None)
settings.register_profile("random", settings.default, deadline=None, print_blob=True)
settings.load_profile("random" if SEED else "same")

guard()  # before anything is started
shared_models.share()
shared_readers.share()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts `command &` with both ignored,
signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # and the programs that tests start would inherit that

QUICK = {"url": "hash:64"}
ROWS = ("sqlite", "postgresql")
"""Where rows are kept, each with the indexes that go with it; `postgresql-local` has the local ones."""
LOCAL = {"index": {"url": "memory:"}, "words": {"url": "tantivy:"}}
POSTGRES_IN_GATE = {
    "contexts": ("test_contexts",),
    "document_qa": ("test_remembering",),
    "knowledge": ("test_deletion", "test_restart", "test_stores"),
    "memories": ("test_memories",),
    "memory_stores": ("test_memory_stores",),
    "responses": ("test_background", "test_responses"),
    "server": ("test_walls",),
    "sessions": ("test_log",),
}
"""Folders of tests in which only these files run on PostgreSQL in the gate, and the others in `./test --all`: what
differs between the databases is in `store` and `storage`, whose tests all run on both."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "gate(*names): only the variants whose id has one of these names run in the gate"
    )
    config.addinivalue_line(
        "markers", f"rows_in(*places): run with rows in these places only, not in all of {ROWS}"
    )
    config.addinivalue_line("markers", "long: takes ten seconds or more, and is begun before the others")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What thousands of tests consist of stays until the end: the garbage collector need not look at it again. Tests
    make much and drop it at once, so that it also looks less often: of generated requests it took a tenth."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(5_000, 20, 20)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what a test or its class leaves to `./test --all`. Long tests come first: begun
    last, they would keep one worker busy at the end, and the others idle."""
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        kept = item.get_closest_marker("gate")
        variant = getattr(item, "callspec", None)
        left_out = kept and variant and not any(name in variant.id for name in kept.args)
        if left_out or item.originalname in getattr(item.cls, "slow_tests", ()):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that has to do with `rows_in`, by whatever fixture, runs once in every place."""
    if "rows_in" in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker("rows_in")
        places = [in_place(place, metafunc.definition.path) for place in (marked.args if marked else ROWS)]
        metafunc.parametrize("rows_in", places, scope="module")


def in_place(place: str, path: Path) -> Any:
    """The parameter of a test in a file, marked slow where the gate leaves it out."""
    in_gate = POSTGRES_IN_GATE.get(path.parent.name, (path.stem,))
    slow = place == "postgresql-local" or (place == "postgresql" and path.stem not in in_gate)
    return pytest.param(place, marks=[pytest.mark.slow] if slow else [])


class Home:
    """Opens products by name: the same name has the same rows each time."""

    def __init__(self, rows_in: str, folder: Path) -> None:
        self.rows_in = rows_in
        self.folder = folder
        self._urls: dict[str, str] = {}
        self._unnamed = itertools.count()

    def url(self, name: str = "data") -> str:
        """The database of that name."""
        if self.rows_in == "sqlite":
            return "sqlite:"
        if name not in self._urls:
            self._urls[name] = postgres.server().migrated_url()
        return self._urls[name]

    def close(self) -> None:
        """Drops its databases."""
        for url in self._urls.values():
            postgres.server().drop(url)

    def settings(self, name: str = "data", **settings: Any) -> dict[str, Any]:
        """What `memoranda.open` is told, beside the folder, with the hash embedder unless `settings` name one."""
        beside = LOCAL if self.rows_in == "postgresql-local" else {}
        return {"embedder": QUICK, "database": {"url": self.url(name)}, **beside, **settings}

    def open(self, name: str = "data", **settings: Any) -> BlockingMemoranda:
        """The product of that name; `settings` as for `memoranda.open`."""
        return memoranda.open(self.folder / name, **self.settings(name, **settings))

    def empty(self, **settings: Any) -> BlockingMemoranda:
        """A product of no name, without rows."""
        return memoranda.open(":memory:", **self.settings(f"unnamed {next(self._unnamed)}", **settings))

    def database(self, name: str = "data") -> Database:
        """Its rows alone."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return open_database(self.url(name), folder)


@pytest.fixture(autouse=True)
def seed(request: pytest.FixtureRequest) -> None:
    """Each test draws its own random numbers, whatever ran before it."""
    random.seed(f"{SEED} {request.node.nodeid}")


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A real PostgreSQL with pgvector: a database of its own, owned by a role that row security binds."""
    url = postgres.server().migrated_url()
    yield url
    postgres.server().drop(url)


@pytest.fixture
def home(rows_in: str, tmp_path: Path) -> Iterator[Home]:
    """A home for one test's rows."""
    with closing(Home(rows_in, tmp_path)) as opened:
        yield opened


@pytest.fixture(scope="module")
def lasting_home(rows_in: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home for the rows of a whole file of tests."""
    with closing(Home(rows_in, tmp_path_factory.mktemp("home"))) as opened:
        yield opened


@pytest.fixture
def rc(home: Home) -> Iterator[BlockingMemoranda]:
    """A product with the hash embedder."""
    with home.open() as opened:
        yield opened


@pytest.fixture
def memories(rc: BlockingMemoranda) -> BlockingMemories:
    """The admin's memories in `rc`."""
    return rc.memories


@pytest.fixture(scope="module")
def anew(lasting_home: Home) -> Iterator[Callable[[], BlockingMemories]]:
    """Memories without rows, each time: another tenant's of one product."""
    numbers = itertools.count()
    with lasting_home.empty(embedder={"url": "hash:16"}) as opened:
        yield lambda: opened.as_subject(Subject(tenant_id=f"tenant{next(numbers)}")).memories
