"""Products whose model says what a test tells it to."""

from __future__ import annotations

import itertools
import json
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.providers.chat.base import Message
from memoranda.providers.chat.script import Play, script_of
from memoranda.providers.chat.scripted import ScriptedModel
from memoranda.responses.events import Event
from memoranda.responses.responses import Responses
from memoranda.responses.runs import Run
from memoranda.responses.values import Response, ResponseRequest
from memoranda.types import Subject
from support.waiting import until

T = TypeVar("T")
SETTINGS: dict[str, Any] = {
    "embedder": {"url": "hash:64"},
    "knowledge": {"chunk_size": 64, "chunk_overlap": 0},
    "responses": {
        "file_min_score": 0.0,
        "memory_min_score": 0.0,
        "tool_timeout": 60.0,
        "mcp_hosts": ["127.0.0.1", "localhost"],
    },
}


def function(name: str, **fields: Any) -> dict[str, Any]:
    """A function of the client."""
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, **fields}


class Desk:
    """One tenant of a product with a scripted model: who asks, what is answered, what was told to the model."""

    def __init__(self, rc: BlockingMemoranda, tenant: str = "default") -> None:
        self.rc = rc
        self.inner = rc.inner
        self.tenant = tenant
        self.admin = Subject(tenant_id=tenant)
        model = rc.inner.engine.model
        assert isinstance(model, ScriptedModel)
        self.model = model
        self.script()

    def script(self, *turns: Mapping[str, Any]) -> None:
        """What the model says from here on."""
        self.model.play = Play(script_of(list(turns)))
        self.model.asked.clear()
        self.model.left = 0

    def by(self, user: str | None = None, role: str = "member", tenant: str | None = None) -> Responses:
        """Responses as a user sees them; as the tenant's admin for no user."""
        named = Subject(tenant_id=tenant or self.tenant, user_id=user, role=role)  # type: ignore[arg-type]
        return self.inner.as_subject(self.admin if user is None and tenant is None else named).responses

    @property
    def responses(self) -> Responses:
        """Responses as the admin sees them."""
        return self.by()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine on the product's loop."""
        return self.rc.portal.call(work)

    def create(self, input: Any = "hello", *, by: Responses | None = None, **fields: Any) -> Response:
        """A response, made."""
        return self.run((by or self.responses).create(input, **fields))

    def stream(self, input: Any = "hello", *, by: Responses | None = None, **fields: Any) -> list[Event]:
        """The events of a response, as they would be sent."""

        async def heard() -> list[Event]:
            run = await self.start(input, by=by, **fields)
            return [as_sent(event) async for batch in run for event in batch]

        return self.run(heard())

    async def start(self, input: Any = "hello", *, by: Responses | None = None, **fields: Any) -> Run:
        """A response under way; to be called on the product's loop."""
        return await (by or self.responses).start(ResponseRequest(input=input, **fields))

    def told(self, call: int = -1) -> list[Message]:
        """The messages of one call of the model."""
        return self.model.asked[call].messages

    def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Rows of the database, of all tenants."""
        return self.inner.core.store.db.read(lambda c: c.select(sql, list(params)))

    def change(self, sql: str, *params: Any) -> None:
        """Changes rows behind the product's back; `sql` is an UPDATE, INSERT or DELETE."""
        self.inner.core.store.db.write(lambda c: c.select(f"{sql} RETURNING 1", list(params))).result()

    def store(self, *texts: str, subject: Subject | None = None) -> str:
        """The id of a vector store with files of these texts, indexed."""
        stores = self.inner.as_subject(subject or self.admin).knowledge.stores

        async def make() -> str:
            made = await stores.create(name="notes")
            for at, text in enumerate(texts):
                put = await stores.upload(made.id, text.encode(), f"file {at}.txt")
                file = await stores.wait_file(made.id, put.id, every=0.01)
                assert file.status == "completed", file.last_error
            return made.id

        return str(self.run(make()))

    def ended(self, id: str) -> Response:
        """A background response once it has ended."""
        found: Response = until(
            lambda: self.run(self.responses.get(id)),
            "the end of a response",
            accept=lambda found: found.status not in ("queued", "in_progress"),
        )
        return found

    def followed(self, id: str, after: int = -1) -> list[Event]:
        """The events of a background response, up to its last one."""

        async def heard() -> list[Event]:
            found = await self.responses.events(id, after)
            return [event async for batch in found for event in batch]

        return self.run(heard())

    @contextmanager
    def set(self, section: str, **values: Any) -> Iterator[None]:
        """Other settings for a while."""
        planning = self.inner.engine.planning
        before = planning.config
        planning.config = msgspec.structs.replace(
            before, **{section: msgspec.structs.replace(getattr(before, section), **values)}
        )
        try:
            yield
        finally:
            planning.config = before


def as_sent(event: Event) -> Event:
    """An event as it goes over the wire at this moment."""
    return dict(msgspec.json.decode(msgspec.json.encode(event)))


def script_file(folder: Path, *turns: Mapping[str, Any]) -> dict[str, str]:
    """The section for a model that plays these turns."""
    path = folder / "script.json"
    path.write_text(json.dumps({"turns": list(turns)}))
    return {"url": f"scripted:{path}"}


def types(events: Sequence[Event]) -> list[str]:
    """The types of events without the prefix they share."""
    return [event["type"].removeprefix("response.") for event in events]


@pytest.fixture(scope="module")
def house(lasting_home: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingMemoranda]:
    """One product for a file of tests; each takes a tenant of its own."""
    folder = tmp_path_factory.mktemp("script")
    with lasting_home.empty(model=script_file(folder), **SETTINGS) as opened:
        yield opened


@pytest.fixture(scope="session")
def tenants() -> Iterator[int]:
    """Numbers for tenants."""
    return itertools.count(1)


@pytest.fixture
def desk(house: BlockingMemoranda, tenants: Iterator[int]) -> Iterator[Desk]:
    """A tenant without anything, and a model that has nothing to say yet. Responses that a failed test leaves behind
    would take the turns of the next one."""
    made = Desk(house, f"tenant{next(tenants)}")
    yield made
    live = "SELECT id FROM responses WHERE tenant_id = ? AND status IN ('queued', 'in_progress')"
    for (id_,) in made.rows(live, made.tenant):
        made.run(made.responses.cancel(id_))
