"""Tenants that have said, learned and uploaded something."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.contexts import Context
from memoranda.types import Subject

MAY = datetime(2026, 5, 1, 10, tzinfo=UTC)


class Garden:
    """One tenant: whoever asks in it, and short ways to fill it."""

    def __init__(self, rc: BlockingMemoranda, tenant: str) -> None:
        self.rc = rc
        self.tenant = tenant
        self.core = rc.inner.core
        self.memories = rc.as_subject(self.by()).memories

    def by(self, user: str | None = None) -> Subject:
        """A member, or the tenant's admin for no user."""
        return Subject(tenant_id=self.tenant, user_id=user, role="member" if user else "admin")

    def context(self, query: str, *, user: str | None = None, **fields: Any) -> Context:
        """A context as a user is given it."""
        return self.rc.as_subject(self.by(user)).contexts.context(query, **fields)

    def say(self, *texts: str, channel: str = "c", **fields: Any) -> list[str]:
        """Messages of two people, a minute between them: their ids."""
        said = [
            {
                "content": text,
                "speaker": ("Mara", "Bob")[at % 2],
                "occurred_at": MAY + timedelta(minutes=at),
                **fields,
            }
            for at, text in enumerate(texts)
        ]
        kept = self.rc.as_subject(self.by()).sessions.observe(said, channel_id=channel)
        return [one.message.id for one in kept]

    def summary(self, text: str, session: str = "s", **fields: Any) -> str:
        """The id of the summary of a session of half an hour."""
        told = {
            "session_id": session, "started_at": MAY.isoformat(), "ended_at": (MAY + timedelta(minutes=30)).isoformat(),
        }  # fmt: skip
        given = {
            "kind": "session_summary",
            "session_id": session,
            "occurred_at": MAY,
            "metadata": told,
            **fields,
        }
        return str(self.memories.add(text, **given).memory.id)

    def store(self, *texts: str) -> tuple[str, list[str]]:
        """A store with files of these texts, indexed: its id, and theirs."""
        stores = self.rc.as_subject(self.by()).knowledge.stores
        store = stores.create(name="notes").id
        files = [stores.upload(store, text.encode(), f"{at}.txt").id for at, text in enumerate(texts)]
        for file in files:
            indexed = stores.wait_file(store, file, every=0.01)
            assert indexed.status == "completed", indexed.last_error
        return store, files


@pytest.fixture(scope="module")
def house(lasting_home: Any) -> Iterator[BlockingMemoranda]:
    """One product for a file of tests."""
    settings = {"embedder": {"url": "hash:256"}, "sessions": {"summarize": False}}
    with lasting_home.empty(**settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Numbers for tenants."""
    return itertools.count(1)


@pytest.fixture
def gardens(house: BlockingMemoranda, numbers: Iterator[int]) -> Callable[[], Garden]:
    """Tenants without anything, one each call."""
    return lambda: Garden(house, f"tenant{next(numbers)}")


@pytest.fixture
def garden(gardens: Callable[[], Garden]) -> Garden:
    """A tenant without anything."""
    return gardens()
