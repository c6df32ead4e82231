"""Messages ready to be stored, alone or in one transaction with other writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import TypeVar

from msgspec.structs import replace

from memoranda.sessions.closing import Closing, note
from memoranda.sessions.log import Heard, Log, Logged, Saying, known_messages
from memoranda.sessions.message_drafts import Place
from memoranda.sessions.records import session_of, to_message
from memoranda.sessions.switches import switches_of
from memoranda.sessions.values import NEVER, SWITCHED, Mode, Observed, extraction_mode
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.steps import CHARS, parted
from memoranda.store.transaction import Writing, compared

T = TypeVar("T")
Written = list[tuple[list[int], Logged]]
"""The results of a write, by group: the places of its messages, and what was stored."""


class Ready:
    """Messages checked and counted. `write` stores them in a transaction; after the commit `observed` returns the
    results and `woken` the kinds of jobs to wake."""

    def __init__(self, core: Core, place: Place, sayings: Sequence[Saying], now: int) -> None:
        self._core = core
        self._place = place
        self._sayings = sayings
        self._now = now

    def steps(self, size: int) -> Iterator[Ready]:
        """Yield the messages in parts of so many, of long ones fewer."""
        for some in parted(self._sayings, _weight, size):
            yield Ready(self._core, self._place, some, self._now)

    def not_searched(self, role: str) -> Ready:
        """Return these messages, those of a role only for the log: no search finds them."""
        sayings = [
            replace(saying, row=saying.row._replace(indexed=0), draft=None)
            if saying.row.role == role
            else saying
            for saying in self._sayings
        ]
        return Ready(self._core, self._place, sayings, self._now)

    def check(self, c: Connection) -> None:
        """Check the ids of messages that take several steps to write.

        Raises:
            Conflict: an id already names another text.
        """
        subject, sayings = self._place.subject, self._sayings
        known = known_messages(c, subject, sayings)
        fresh = [saying.draft for saying in sayings if saying.draft and saying.row.key not in known]
        compared(c, subject.tenant_id, fresh)

    def write(self, w: Writing) -> Written:
        """Store the messages; a user's own messages and those for everybody are cut into separate sessions.

        Raises:
            Conflict: an id already names another text, or the session was cut out of a channel.
            NotFound: the session is another's.
        """
        place, closing = self._place, Closing(self._core)
        mode, sayings = self._to_extract(w.c)
        groups: dict[str | None, list[int]] = {}
        for i, saying in enumerate(sayings):
            owner = place.owner(saying.row.user_id) if place.session_id is None else None
            groups.setdefault(owner, []).append(i)
        done: Written = []
        for owner, places in groups.items():
            heard = Heard(
                place.subject, [sayings[i] for i in places], place.session_id, place.channel_id, owner,
                place.agent_id, mode, self._now,
            )  # fmt: skip
            done.append((places, Log(w, heard, closing).write()))
        return done

    def _to_extract(self, c: Connection) -> tuple[Mode, Sequence[Saying]]:
        """Return when facts are extracted from the messages, and the messages marked with it: as the request asks, else
        as the channel or the tenant is switched, else as configured."""
        place, facts = self._place, self._core.config.facts
        if place.extraction is not None:
            return extraction_mode(facts, place.extraction), self._sayings
        channel = place.channel_id
        if channel is None and place.session_id is not None:
            session = session_of(c, place.subject.tenant_id, place.session_id)
            channel = None if session is None else session.channel_id
        switched = switches_of(c, place.subject.tenant_id, [channel])[channel]
        mode = extraction_mode(facts, switched.extraction)
        mark = NEVER if mode == "off" else SWITCHED
        return mode, [replace(saying, row=saying.row._replace(extract=mark)) for saying in self._sayings]

    def observed(self, written: Written) -> list[Observed]:
        """Return the result of each message, in order; call it after the commit."""
        results: dict[int, Observed] = {}
        tally = self._core.tally
        for places, logged in written:
            for i, (row, created) in zip(places, logged.rows, strict=True):
                results[i] = Observed(message=to_message(row), created=created)
            note(self._core, "opened", self._place.subject.tenant_id, logged.opened)
            note(self._core, "closed", self._place.subject.tenant_id, logged.closed)
            tally["messages_observed"] += sum(created for _, created in logged.rows)
            if logged.due_at:
                self._core.due_times.announce(logged.due_at)
        return [results[i] for i in range(len(self._sayings))]

    @staticmethod
    def woken(written: Written) -> set[str]:
        """Return the kinds of jobs that were enqueued."""
        return {kind for _, logged in written for kind in logged.woken}


def _weight(saying: Saying) -> float:
    """Return how many messages of ordinary size one counts as."""
    return max(1, len(saying.row.content) / CHARS)


async def changed(
    core: Core, tenant: str, work: Callable[[Writing], T], woken: Callable[[T], Iterable[str]]
) -> T:
    """Return the result of a transaction; `woken` names the kinds of jobs that it enqueued, which are woken even if the
    caller is cancelled meanwhile."""
    future = core.store.transact(tenant, work)
    loop = asyncio.get_running_loop()

    def then(done: Future[T]) -> None:
        if done.exception() is not None:
            return
        for kind in woken(done.result()):
            with contextlib.suppress(RuntimeError):  # the loop has ended: the next start checks anyway
                loop.call_soon_threadsafe(core.jobs.wake, kind)

    future.add_done_callback(then)
    return await core.threads.result(future)
