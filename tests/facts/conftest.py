"""Tenants who talk, and what is learned from it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from operator import not_
from typing import Any

import msgspec
import pytest

from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.app.blocking.features import BlockingFacts
from memoranda.providers.chat.script import Play, script_of
from memoranda.providers.chat.scripted import ScriptedModel
from memoranda.types import Memory, NewMemory, Subject
from support.fact_reader import FactReader
from support.waiting import until

UNDER_WAY = (
    "SELECT error FROM jobs WHERE tenant_id = ? AND state IN ('queued', 'running') AND kind LIKE 'facts.%'"
)


def on(text: str) -> datetime:
    """A moment: `2024-05-01`, with or without a time."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Talk:
    """One tenant: what is said in it, and the facts that come of it."""

    def __init__(self, rc: BlockingMemoranda, tenant: str) -> None:
        self.rc = rc
        self.core = rc.inner.core
        self.tenant = tenant
        self.admin = Subject(tenant_id=tenant)

    def by(self, user: str | None = None, role: str = "member") -> tuple[BlockingFacts, BlockingMemories]:
        """Facts and memories as a user sees them; as the admin for none."""
        named = role if user else "admin"
        who = Subject(tenant_id=self.tenant, user_id=user, role=named)  # type: ignore[arg-type]
        workspace = self.rc.as_subject(who)
        return workspace.facts, workspace.memories

    @property
    def facts(self) -> BlockingFacts:
        return self.by()[0]

    @property
    def memories(self) -> BlockingMemories:
        return self.by()[1]

    def say(
        self, text: str, at: str | None = None, *, who: str | None = "mara", role: str = "user", **place: Any
    ) -> str:
        """The id of a message, once what follows from it is done."""
        (kept,) = self.rc.as_subject(self.admin).sessions.observe(
            [{"content": text, "role": role, "user_id": who, "speaker": who and who.title()}
             | ({} if at is None else {"occurred_at": on(at)})],
            **({"channel_id": "talk"} | place),
        )  # fmt: skip
        self.settle()
        return kept.message.id

    def script(self, *turns: Mapping[str, Any] | str) -> list[Any]:
        """What the model says from here on; what it is asked, a list that grows."""
        model = self.core.model
        assert isinstance(model, ScriptedModel)
        model.play = Play(script_of([{"text": turn} if isinstance(turn, str) else turn for turn in turns]))
        model.asked.clear()
        return model.asked

    def settle(self) -> None:
        """Waits until no work of the tenant is under way."""
        until(lambda: self.rows(UNDER_WAY, self.tenant), "no work under way", accept=not_)

    def live(self, **fields: Any) -> list[str]:
        """The texts of the facts that hold, in order of writing."""
        held: list[Memory] = self.memories.list(kinds=["fact"], order="asc", limit=100, **fields).data
        return [row.content for row in held]

    def known(self, text: str) -> Memory:
        """The fact of this text, whether it holds or not; the last written of several."""
        ids = self.rows(
            "SELECT id FROM memories WHERE tenant_id = ? AND kind = 'fact' AND content = ? ORDER BY seq DESC",
            self.tenant,
            text,
        )
        return self.memories.get(ids[0][0])

    def count(self) -> int:
        """All facts of the tenant."""
        sql = "SELECT count(*) FROM memories WHERE tenant_id = ? AND kind = 'fact'"
        return int(self.rows(sql, self.tenant)[0][0])

    def uncompared(self, *facts: Mapping[str, Any]) -> None:
        """Write facts without a comparison with others, as while an index is away."""
        items = [NewMemory(**({"kind": "fact"} | dict(one))) for one in facts]
        drafts = self.core.ingest.drafts(self.admin, items)
        self.rc.portal.call(self.core.ingest.write(self.tenant, drafts))

    def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        return self.core.store.db.read(lambda c: c.select(sql, list(params)))

    def change(self, sql: str, *params: Any) -> None:
        """Changes rows behind the product's back."""
        self.core.store.db.write(lambda c: c.select(f"{sql} RETURNING 1", list(params))).result()


@pytest.fixture(scope="module")
def house(lasting_home: Any) -> Iterator[BlockingMemoranda]:
    """A product with a model that reads the facts of a few known sentences, for a file of tests; each takes a tenant of
    its own."""
    with lasting_home.empty(embedder={"url": "hash:256"}, facts={"extraction": "eager"}) as opened:
        msgspec.structs.force_setattr(opened.inner.core, "model", FactReader())
        yield opened


@pytest.fixture(scope="module")
def scripted_house(
    lasting_home: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BlockingMemoranda]:
    """A product with a scripted model, which extracts facts after each turn."""
    script = tmp_path_factory.mktemp("script") / "script.json"
    script.write_text(json.dumps({"turns": [{"when": "never asked", "text": "x"}]}))
    fields = {
        "embedder": {"url": "hash:256"},
        "model": {"url": f"scripted:{script}", "retries": 0},
        "facts": {"extraction": "eager"},
    }
    with lasting_home.empty(**fields) as opened:
        yield opened


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def talk(house: BlockingMemoranda, numbers: Iterator[int]) -> Talk:
    """A tenant in which nothing was said yet."""
    return Talk(house, f"tenant{next(numbers)}")


@pytest.fixture
def another(house: BlockingMemoranda, numbers: Iterator[int]) -> Callable[[], Talk]:
    """More such tenants."""
    return lambda: Talk(house, f"tenant{next(numbers)}")
