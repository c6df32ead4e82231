"""A channel's history, told quickly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.app.blocking.features import BlockingSessions
from memoranda.sessions.values import Session
from memoranda.types import Memory, Subject
from support.waiting import until

NOON = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
"""A Monday."""


TALK = (
    ("Ana", "Hi Bo, did you look at the quote for the greenhouse from Lindner?"),
    ("Bo", "Yes, they want 2400 euros, which is too much."),
    ("Ana", "What about the used greenhouse in Potsdam?"),
    ("Bo", "That one is 900 euros, and Mara could drive us there on Saturday."),
    ("Ana", "Great, then we decided: we take the used greenhouse in Potsdam."),
    ("Bo", "I'll call the seller tomorrow morning."),
    ("Ana", "The tomatoes need it by May. Do we need a permit for it?"),
)


class Chat:
    """One tenant of a product, its sessions, and its rows."""

    def __init__(self, rc: BlockingMemoranda, tenant: str) -> None:
        self.rc = rc
        self.tenant = tenant
        self.core = rc.inner.core
        self.sessions = self.by(None)
        self.memories = rc.as_subject(Subject(tenant_id=tenant)).memories

    def by(self, user: str | None, role: str = "member") -> BlockingSessions:
        """Sessions as a user sees them; as the tenant's admin for nobody."""
        subject = Subject(tenant_id=self.tenant, user_id=user, role="admin" if user is None else role)  # type: ignore[arg-type]
        return self.rc.as_subject(subject).sessions

    def say(
        self, *texts: str, at: float = 0, step: float = 1, channel: str = "c", **fields: Any
    ) -> list[str]:
        """Says texts, `step` minutes apart, beginning `at` minutes after noon; the ids of the messages."""
        messages = [
            {"content": text, "occurred_at": NOON + timedelta(minutes=at + i * step), **fields}
            for i, text in enumerate(texts)
        ]
        return [one.message.id for one in self.sessions.observe(messages, channel_id=channel)]

    def talk(self, day: float = 0, channel: str = "c") -> str:
        """Says `TALK` on a day after the first; the session's id."""
        for i, (speaker, text) in enumerate(TALK):
            self.say(text, speaker=speaker, at=day * 1440 + i, channel=channel)
        return str(self.sessions.list(channel_id=channel).data[0].id)

    def summarized(self, id: str) -> Session:
        """A session once it is summarized."""
        held: Session = until(
            lambda: self.sessions.get(id), "a summary", accept=lambda found: found.status == "summarized"
        )
        return held

    def kept(self, *kinds: str) -> list[Memory]:
        """The memories of these kinds."""
        return list(self.memories.list(kinds=list(kinds), limit=100).data)  # type: ignore[arg-type]

    def cuts(self, channel: str | None = "c") -> list[list[str]]:
        """What was said, by session, in the order of time."""
        found = self.sessions.list(channel_id=channel, limit=1000).data
        found.sort(key=lambda one: one.started_at)
        return [
            [one.content for one in self.sessions.messages(session.id, limit=1000).data] for session in found
        ]

    def rows(self, sql: str, *params: Any) -> Sequence[tuple[Any, ...]]:
        """Rows of the database, of all tenants."""
        return self.core.store.db.read(lambda c: c.select(sql, list(params)))

    def found(self, query: str, **fields: Any) -> list[str]:
        """The texts that a search by words finds, best first."""
        hits = self.memories.search(query, mode="keyword", scopes=["all"], **fields).results
        return [hit.memory.content for hit in hits]


@pytest.fixture(scope="module")
def product(lasting_home: Any) -> Iterator[BlockingMemoranda]:
    """One product for a file of tests; each takes a tenant of its own."""
    with lasting_home.empty(sessions={"min_messages": 2}) as opened:
        yield opened


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Numbers for tenants."""
    return itertools.count(1)


@pytest.fixture
def chats(product: BlockingMemoranda, numbers: Iterator[int]) -> Callable[[], Chat]:
    """Tenants without anything said."""
    return lambda: Chat(product, f"chat{next(numbers)}")


@pytest.fixture
def chat(chats: Callable[[], Chat]) -> Chat:
    """A tenant without anything said."""
    return chats()


@pytest.fixture
def talk() -> Any:
    """What `Chat.talk` says, and who."""
    return TALK
