"""Storage of the events of background responses: written as they come, the last ones with the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from memoranda.errors import Conflict, MemorandaError, StorageError
from memoranda.responses import records
from memoranda.responses.events import Event
from memoranda.responses.observing import Heard, stored
from memoranda.responses.records import NewResponse, ResponseRow, encoded
from memoranda.responses.runs import Run
from memoranda.responses.values import LIVE
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.core import Core

log = logging.getLogger("memoranda.responses")
T = TypeVar("T")
FLUSH_SECONDS = 0.05
"""How long events are gathered before they are stored; a killed process loses the events of at most this time."""
AGAIN_SECONDS = 0.5
"""After how long a write that failed is tried again."""
WATCH_SECONDS = 1.0
"""How often a silent response is polled, if another process may end it."""
_line = msgspec.json.Decoder(Event)


class Keeping:
    """Stores the events of one run. The run is left when another process has ended the response, or deleted it.

    `flushed` is set whenever events were stored, and is then replaced by a new event."""

    def __init__(self, core: Core, run: Run, row: ResponseRow) -> None:
        self.run = run
        self.flushed = asyncio.Event()
        self._core = core
        self._key = (row.tenant_id, row.id)
        self._failure: MemorandaError | None = None
        self._pending: list[Event] = []
        self._lock = asyncio.Lock()

    async def whole(self) -> None:
        """Stores events until the run has ended.

        Raises:
            MemorandaError: how it ended could not be stored.
        """
        tasks = [asyncio.create_task(self._flush())]
        if self._core.store.db.shared:
            tasks.append(asyncio.create_task(self._watch()))
        try:
            await self.run.done()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self.check()

    def check(self) -> None:
        """Raises the error that prevented the end from being stored, if there was one."""
        failure = self._failure if self.run.left else None if self.run.stored else self.run.failure
        if failure is not None:
            raise failure

    async def end(self, new: NewResponse, heard: Heard | None) -> None:
        """Stores the end of the run in one transaction with its last events and messages.

        Raises:
            MemorandaError: it was not stored.
        """
        async with self._lock:
            self.run.tell_end()
            events = self._taken()

            def work(c: Connection) -> bool:
                ended = records.end(c, new)
                if ended:
                    add_events(c, *self._key, events)
                return ended

            await stored(self._core, self._key[0], work, heard)
            self._notify()

    async def _flush(self) -> None:
        async for batch in self.run:
            self._pending += batch
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                live = await self._store()
            except MemorandaError as exc:
                log.error("events of the response %s are not stored: %s", self._key[1], exc)
                self._failure, live = exc, False
            if not live:
                await self.run.leave()
                return

    async def _store(self) -> bool:
        """Store pending events. Return False if the response has ended or is deleted."""
        while True:
            async with self._lock:
                if self.run.left or not (events := self._taken()):
                    return True
                work = partial(keep, tenant=self._key[0], response_id=self._key[1], events=events)
                try:
                    live = await self._write(work)
                    self._notify()
                    return live
                except StorageError as exc:
                    log.warning("the events of %s wait for their rows: %s", self._key[1], exc)
                    self._pending = events
            await asyncio.sleep(AGAIN_SECONDS)

    async def _watch(self) -> None:
        read, key = self._core.store.db.read, self._key
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                status = await self._core.threads.run(read, lambda c: c.one("response_status", key), key[0])
            except StorageError:  # it may come back
                continue
            if status is None or status[0] not in LIVE:
                await self.run.leave()

    def _taken(self) -> list[Event]:
        taken, self._pending = [*self._pending, *self.run.taken()], []
        return taken

    async def _write(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.result(self._core.store.db.write(work, tenant=self._key[0]))

    def _notify(self) -> None:
        self.flushed.set()
        self.flushed = asyncio.Event()


def keep(c: Connection, tenant: str, response_id: str, events: Sequence[Event]) -> bool:
    """Store events of a live response. Return False if it is not live.

    Raises:
        Conflict: another process has stored events of these numbers.
    """
    row = c.one("hold_response", [tenant, response_id])
    if row is None or row[0] not in LIVE:
        return False
    if row[0] == "queued" and any(event["type"] == "response.in_progress" for event in events):
        c.run("begin_response", [tenant, response_id])
    add_events(c, tenant, response_id, events)
    return True


def add_events(c: Connection, tenant: str, response_id: str, events: Sequence[Event]) -> None:
    """Stores events after those that are there.

    Raises:
        Conflict: another process has stored events of these numbers.
    """
    if not events:
        return
    first, last = events[0]["sequence_number"], events[-1]["sequence_number"]
    if first != next_number(c, tenant, response_id):
        raise Conflict(f"the response {response_id} is made by another process, too")
    lines = "\n".join(encoded(event) for event in events)
    c.run("add_events", [tenant, response_id, first, last, lines])


def next_number(c: Connection, tenant: str, response_id: str) -> int:
    """The number of the event that comes after those that are stored."""
    row = c.one("last_event", [tenant, response_id])
    return 0 if row is None else int(row[0]) + 1


def events_of(rows: Sequence[Row]) -> list[Event]:
    """The events in rows of `events_after`."""
    return [_line.decode(line) for row in rows for line in row[2].split("\n")]
