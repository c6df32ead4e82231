"""A product that is asked over real HTTP, whose language model is a scripted server."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import not_
from typing import Any

import httpx
import msgspec
import pytest
import uvicorn

from memoranda.app.blocking import BlockingMemoranda
from memoranda.document_qa.prompting import RULES
from memoranda.server.app import create_app
from memoranda.types import Subject
from support import chat_server
from support.core_parts import replaced
from support.waiting import until, until_async

TENANTS = 40
WHO: dict[str, tuple[str, str | None]] = {
    "admin": ("admin", None),
    "ada": ("member", "ada"),
    "bob": ("member", "bob"),
    "app": ("service", None),
    "looker": ("reader", "ada"),
}
"""Role and user of each key of a tenant."""
AT = "/api/v1/upload-ask"
UNDER_WAY = (
    "SELECT kind, error FROM jobs WHERE state IN ('queued', 'running')"
    " AND (kind LIKE 'upload_ask%' OR kind LIKE 'knowledge%') AND tenant_id = ?"
)
MANUAL = "The boiler runs at twelve bar.\n\nThe relief valve opens at fourteen bar.\n\nClean the filter every March."


class House:
    """A product behind a socket, and what its model is told and says."""

    def __init__(self, rc: BlockingMemoranda, http: httpx.Client, model: Any) -> None:
        self.rc = rc
        self.core = rc.inner.core
        self.http = http
        self.model = model

    def says(self, *turns: Mapping[str, Any]) -> None:
        """What the model says from here on."""
        self.model.play = chat_server.scripted_app(list(turns)).play
        self.model.received.clear()

    def told(self, call: int = -1) -> list[dict[str, Any]]:
        """The messages that the model was sent for one of the answers."""
        sent = [one.body["messages"] for one in self.model.received]
        return list([one for one in sent if one[0]["content"].startswith(RULES)][call])

    def noted(self) -> list[str]:
        """What the model was sent to be summarized, one each time."""
        sent = [one.body["messages"] for one in self.model.received]
        return [one[-1]["content"] for one in sent if not one[0]["content"].startswith(RULES)]

    @contextmanager
    def set(self, **values: Any) -> Iterator[None]:
        """Other settings of `upload_ask` for a while."""
        before = self.core.config
        section = msgspec.structs.replace(before.upload_ask, **values)
        with replaced(self.core, config=msgspec.structs.replace(before, upload_ask=section)):
            yield


class Desk:
    """One tenant, and everybody who has a key to it."""

    def __init__(self, house: House, tenant: str) -> None:
        self.house = house
        self.tenant = tenant
        self.core = house.core

    def send(self, method: str, path: str, *, by: str = "ada", **options: Any) -> httpx.Response:
        """One request."""
        headers = {"authorization": f"Bearer {by} of {self.tenant}"}
        at = path if path.startswith("/v1") else f"{AT}{path}"
        return self.house.http.request(method, at, headers=headers, **options)

    def get(self, path: str, *, by: str = "ada", **params: Any) -> Any:
        """What a GET that works gives back."""
        answer = self.send("GET", path, by=by, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any, *, by: str = "ada") -> Any:
        """What a POST that works gives back."""
        answer = self.send("POST", path, by=by, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ask(self, question: str, *, by: str = "ada", **fields: Any) -> Any:
        """An answer, once what is remembered of it is there."""
        made = self.post("/query", {"question": question, **fields}, by=by)
        self.settle()
        return made

    def document(self, text: str = MANUAL, title: str = "manual", *, by: str = "ada", **fields: Any) -> str:
        """The id of a document that can be asked."""
        made = self.post("/documents", {"title": title, "text": text, **fields}, by=by)
        self.settle()
        return str(made["id"])

    def memories(self, *, by: str = "ada", **params: Any) -> list[tuple[str, str]]:
        """What is remembered, oldest first: source and text."""
        found = self.get("/memories", by=by, order="asc", limit=1_000, **params)["data"]
        return [(one["source"], one["content"]) for one in found]

    def settle(self) -> None:
        """Waits until no work of asking or indexing is under way."""
        until(lambda: self.rows(UNDER_WAY, self.tenant), "no work under way", accept=not_)

    def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Rows of the database, of all tenants."""
        return self.core.store.db.read(lambda c: c.select(sql, list(params)))

    def subject(self, user: str = "ada") -> Subject:
        """A user of the tenant."""
        return Subject(tenant_id=self.tenant, user_id=user, role="member")


@contextmanager
def listening(rc: BlockingMemoranda) -> Iterator[str]:
    """The product's server on a socket; its URL."""
    config = uvicorn.Config(create_app(rc.inner), "127.0.0.1", 0, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)

    async def begin() -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(server.serve())
        await until_async(lambda: server.started, "the server listens")
        return task

    async def end(task: asyncio.Task[None]) -> None:
        server.should_exit = True
        await task

    task = rc.portal.call(begin())
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        rc.portal.call(end(task))


@pytest.fixture(scope="module")
def house(lasting_home: Any) -> Iterator[House]:
    """One product for a file of tests; each takes a tenant of its own."""
    keys = [
        {"name": f"{who} of {n}", "tenant": f"t{n}", "role": role, "user": user, "key": f"{who} of t{n}"}
        for n in range(TENANTS)
        for who, (role, user) in WHO.items()
    ]
    settings = {
        "keys": keys,
        "embedder": {"url": "hash:64", "cache_size": 0},
        "knowledge": {"chunk_size": 12, "chunk_overlap": 0},
        "sessions": {"summarize": False},
    }
    with chat_server.playing([]) as (url, model):
        behind = {"url": url, "name": "scripted", "timeout": 5.0, "retries": 0}
        with (
            lasting_home.empty(model=behind, **settings) as rc,
            listening(rc) as at,
            httpx.Client(
                base_url=at, timeout=30, verify=False
            ) as http,  # without TLS: certificates take 40 ms
        ):
            yield House(rc, http, model)


@pytest.fixture(scope="module")
def numbers(house: House) -> Iterator[int]:
    """Numbers for the tenants of one product."""
    return itertools.count()


@pytest.fixture
def desk(house: House, numbers: Iterator[int]) -> Desk:
    """A tenant without anything, and a model that repeats what it is asked."""
    house.says({"text": "Answered: {question}", "repeat": True})
    return Desk(house, f"t{next(numbers)}")
