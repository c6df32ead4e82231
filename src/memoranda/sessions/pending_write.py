"""Messages that are ready to be kept, alone or together with what else one transaction writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TypeVar

from memoranda.sessions.closing import Closing, note
from memoranda.sessions.log import Heard, Kept, Log, Saying
from memoranda.sessions.message_drafts import Place
from memoranda.sessions.records import session_of, to_message
from memoranda.sessions.switches import switches_of
from memoranda.sessions.values import NEVER, SWITCHED, Mode, Observed, extraction_mode
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.steps import CHARS, parted
from memoranda.store.transaction import Writing

T = TypeVar("T")
Written = list[tuple[list[int], Kept]]
"""What became of messages, by group: their places, and what was kept."""


class Ready:
    """Messages checked and counted. `write` keeps them in a transaction, `told` is what that came to, once committed;
    `woken` are the kinds of jobs that are to be looked for then."""

    def __init__(self, core: Core, place: Place, held: Sequence[Saying], now: int) -> None:
        self._core = core
        self._place = place
        self._held = held
        self._now = now

    def steps(self, size: int) -> Iterator[Ready]:
        """The same in parts of so many messages, of long ones fewer."""
        for some in parted(self._held, _weight, size):
            yield Ready(self._core, self._place, some, self._now)

    def write(self, w: Writing) -> Written:
        """Keeps them; a member's own and what it says for everybody are cut into sessions apart.

        Raises:
            Conflict: an id already names another text, or the session was cut out of a channel.
            NotFound: the session is another's.
        """
        place, closing = self._place, Closing(self._core)
        mode, held = self._to_extract(w.c)
        groups: dict[str | None, list[int]] = {}
        for i, saying in enumerate(held):
            owner = place.owner(saying.row.user_id) if place.session_id is None else None
            groups.setdefault(owner, []).append(i)
        done: Written = []
        for owner, places in groups.items():
            heard = Heard(
                place.subject, [held[i] for i in places], place.session_id, place.channel_id, owner,
                place.agent_id, mode, self._now,
            )  # fmt: skip
            done.append((places, Log(w, heard, closing).write()))
        return done

    def _to_extract(self, c: Connection) -> tuple[Mode, Sequence[Saying]]:
        """When facts are taken out of the messages, and the messages marked with it: as the request asks, else as the
        channel or the tenant has it switched, else as configured."""
        place, facts = self._place, self._core.config.facts
        if place.extraction is not None:
            return extraction_mode(facts, place.extraction), self._held
        channel = place.channel_id
        if channel is None and place.session_id is not None:
            session = session_of(c, place.subject.tenant_id, place.session_id)
            channel = None if session is None else session.channel_id
        switched = switches_of(c, place.subject.tenant_id, [channel])[channel]
        mode = extraction_mode(facts, switched.extraction)
        mark = NEVER if mode == "off" else SWITCHED
        return mode, [replace(one, row=one.row._replace(extract=mark)) for one in self._held]

    def told(self, written: Written) -> list[Observed]:
        """What became of each, in order; to be called after the commit."""
        found: dict[int, Observed] = {}
        tally = self._core.tally
        for places, kept in written:
            for i, (row, created) in zip(places, kept.rows, strict=True):
                found[i] = Observed(message=to_message(row), created=created)
            note(self._core, "opened", self._place.subject.tenant_id, kept.opened)
            note(self._core, "closed", self._place.subject.tenant_id, kept.closed)
            tally["messages_observed"] += sum(created for _, created in kept.rows)
            if kept.due_at:
                self._core.expect(kept.due_at)
        return [found[i] for i in range(len(self._held))]

    @staticmethod
    def woken(written: Written) -> set[str]:
        """The kinds of jobs that were placed."""
        return {kind for _, kept in written for kind in kept.woken}


def _weight(saying: Saying) -> float:
    """How many messages of ordinary size one is worth."""
    return max(1, len(saying.row.content) / CHARS)


async def changed(
    core: Core, tenant: str, work: Callable[[Writing], T], woken: Callable[[T], Iterable[str]]
) -> T:
    """The result of a transaction; `woken` names the kinds of the jobs that it placed, which are looked for though the
    caller is cancelled meanwhile."""
    future = core.store.transact(tenant, work)
    loop = asyncio.get_running_loop()

    def then(done: Future[T]) -> None:
        if done.exception() is not None:
            return
        for kind in woken(done.result()):
            with contextlib.suppress(RuntimeError):  # the loop has ended: the next start looks by itself
                loop.call_soon_threadsafe(core.jobs.wake, kind)

    future.add_done_callback(then)
    return await core.threads.result(future)
