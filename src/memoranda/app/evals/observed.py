"""A dataset observed as conversations, and what the product derives from their messages: facts and summaries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum

import msgspec

from memoranda.app.evals.dataset import Dataset
from memoranda.app.evals.run import Progress, Written
from memoranda.app.evals.written import measured
from memoranda.app.memoranda import Memoranda
from memoranda.errors import InvalidInput
from memoranda.sessions.boundaries import SUMMARIZE_JOB, SessionCloser
from memoranda.sessions.summary_memories import QUIET
from memoranda.sessions.values import NewMessage
from memoranda.store.core import Core
from memoranda.store.jobs import SECOND
from memoranda.types import NewMemory, Subject

STEP = 500
"""Messages observed at once."""
ROWS = 64


class Derived(StrEnum):
    """What is derived from messages."""

    FACTS = "facts"
    SUMMARIES = "summaries"


class Conversations(msgspec.Struct, frozen=True):
    """The observed messages, the ids of their sessions, and the scopes of each conversation of the dataset: its channel
    and the users who spoke in it."""

    written: Written
    sessions: list[str]
    scopes: Mapping[str, list[str]]


def check_messages(dataset: Dataset) -> None:
    """Check that the memories of a dataset are messages of sessions.

    Raises:
        InvalidInput: they are not.
    """
    if not all(memory.kind == "message" and memory.session_id for memory in dataset.memories.values()):
        raise InvalidInput(dataset.name, "must hold messages of sessions, as a LoCoMo file does")


def message_of(memory: NewMemory, user_id: str | None | msgspec.UnsetType = msgspec.UNSET) -> NewMessage:
    """Return a memory of a dataset as a message."""
    metadata = dict(memory.metadata or {})
    return NewMessage(
        content=memory.content,
        role=memory.role or "user",
        speaker=metadata.pop("speaker", None),
        metadata=metadata,
        occurred_at=memory.occurred_at,
        user_id=user_id,
    )


async def embed_pending(core: Core, tenant: str = Subject().tenant_id) -> None:
    """Make all pending embeddings of a tenant."""
    while rows := await core.threads.run(core.store.pending_rows, tenant, core.store.space, ROWS):
        await core.ingest.embed_pending(rows, tenant, reuse=True)


@asynccontextmanager
async def observed(
    dataset: Dataset, *, embedder: str | None, progress: Progress
) -> AsyncIterator[tuple[Memoranda, Conversations]]:
    """Observe the messages of a dataset in memory: each conversation is a channel, cut into sessions where it was
    silent, and each speaker a user. Nothing is derived from them yet.

    Raises:
        InvalidInput: the memories of the dataset are no messages of sessions.
    """
    check_messages(dataset)
    settings: dict[str, object] = {"cache_size": max(1_000, len(dataset.questions))}
    if embedder is not None:
        settings["url"] = embedder
    config = measured(
        ":memory:",
        embedder=settings,
        facts={"extraction": "eager", "capture_rules": True},
        sessions={"enabled": True, "summarize": True},
        jobs={"workers": 0},  # nothing is derived in the background
    )
    async with await Memoranda.open(config=config) as product:
        yield product, await _observe(product, dataset, progress)


async def _observe(product: Memoranda, dataset: Dataset, progress: Progress) -> Conversations:
    keys: dict[str, list[str]] = {}
    sessions: dict[str, None] = {}
    scopes: dict[str, dict[str, None]] = {}
    conversations: dict[str, list[tuple[str, NewMessage]]] = {}
    for key, memory in dataset.memories.items():
        name, speaker = str(memory.session_id), (memory.metadata or {}).get("speaker")
        user = f"{name}/{speaker}" if speaker else None
        named = scopes.setdefault(name, {f"channel:{name}": None})
        if user is not None:
            named[f"user:{user}"] = None
        conversations.setdefault(name, []).append((key, message_of(memory, user)))
    for name, said in conversations.items():
        for at in range(0, len(said), STEP):
            some = said[at : at + STEP]
            outcomes = await product.observe([message for _, message in some], channel_id=name)
            for outcome, (key, _) in zip(outcomes, some, strict=True):
                keys.setdefault(outcome.message.id, []).append(key)
                sessions[outcome.message.session_id] = None
            await embed_pending(product.core)
            progress("observing", len(keys), len(dataset.memories))
    written = Written(keys, product.core.store.model, len(keys), None)
    return Conversations(written, [*sessions], {name: [*named] for name, named in scopes.items()})


async def derive(product: Memoranda, conversations: Conversations, what: Derived, progress: Progress) -> int:
    """Derive facts, or summaries with the rollups of weeks, from all messages: by the configured language model, or by
    rules without one. Return how many there are."""
    number = await DERIVING[what](product, conversations, progress)
    await embed_pending(product.core)
    return number


async def _facts(product: Memoranda, conversations: Conversations, progress: Progress) -> int:
    number = 0
    for done, id_ in enumerate(conversations.sessions, 1):
        number += (await product.facts.extract(id_)).kept
        progress("extracting facts", done, len(conversations.sessions))
    return number


async def _summaries(product: Memoranda, conversations: Conversations, progress: Progress) -> int:
    core, tenant = product.core, product.subject.tenant_id
    for done, id_ in enumerate(conversations.sessions, 1):
        await product.sessions.close(id_)
        progress("closing sessions", done, len(conversations.sessions))
    jobs = [*await core.jobs.finish(tenant, SUMMARIZE_JOB)]
    await asyncio.sleep(QUIET / SECOND)  # a rollup is due when its week has been unchanged for so long
    placed = core.store.db.write(lambda c: SessionCloser(core).place(c, {tenant}), tenant=tenant)
    await core.threads.result(placed)
    jobs += await core.jobs.finish(tenant, SUMMARIZE_JOB)
    return sum((job.result or {}).get(name, 0) for job in jobs for name in ("created", "rollups"))


Deriving = Callable[[Memoranda, Conversations, Progress], Awaitable[int]]
DERIVING: Mapping[Derived, Deriving] = {Derived.FACTS: _facts, Derived.SUMMARIES: _summaries}


def derived_by(product: Memoranda, what: Derived) -> str:
    """Return the language model that makes facts or summaries, or `rules`."""
    model, config = product.engine.model, product.config
    if model.quotes_only:
        return "rules"
    own = config.facts.model if what is Derived.FACTS else config.sessions.summary_model
    return own or model.name
