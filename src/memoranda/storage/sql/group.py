"""Group commit: one thread runs the queued works and commits those that wait together."""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter
from typing import Any

from memoranda.errors import StorageError
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.holds import Holds

GROUP = 256
GROUP_SECONDS = 0.05
"""Seconds after which no further change joins a transaction: many small ones must not delay the next caller."""


class Transaction(ABC):
    """The writing connection of one database, as `GroupWriter` drives it. Used by one thread."""

    patience: float = 0.0
    """Seconds for which a group is retried if `retryable` allows it."""

    @abstractmethod
    def begin(self) -> Connection:
        """Open a transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Commit it durably."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the open transaction, if there is one; never raises."""

    @abstractmethod
    def enter(self, tenant: str | None, only: bool) -> None:
        """Mark the beginning of one tenant's work, so that it can be undone alone; `only`: the transaction has no other
        work."""

    @abstractmethod
    def leave(self) -> None:
        """Keep the work since `enter`."""

    @abstractmethod
    def undo(self) -> bool:
        """Undo the work since `enter`. Return False if the whole transaction is lost."""

    @abstractmethod
    def error(self, exc: BaseException) -> BaseException:
        """Return the error that the caller gets for a driver's error."""

    def retryable(self, exc: BaseException) -> bool:
        """Return True if nothing of the transaction was stored and another attempt may succeed."""
        return False


class Task:
    """One queued write and the future that its caller waits for. A task that is `alone` runs outside a transaction."""

    __slots__ = ("alone", "error", "future", "result", "seconds", "tenant", "then", "work")

    def __init__(
        self,
        work: Callable[[Any], Any],
        then: Callable[[Any], None] | None = None,
        tenant: str | None = None,
        alone: bool = False,
    ) -> None:
        self.work = work
        self.then = then
        self.tenant = tenant
        self.alone = alone
        self.future: Future[Any] = Future()
        self.result: Any = None
        self.error: BaseException | None = None
        self.seconds = 0.0
        """How long it has occupied the writer so far."""


class GroupWriter:
    """A queue of tasks and the thread that empties it through one `Transaction`."""

    def __init__(self, transaction: Transaction, name: str) -> None:
        self.holds = Holds()
        self._transaction = transaction
        self._name = name
        self._lock = threading.Lock()
        self._closed = False
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._front: deque[Task | None] = deque()
        """Tasks taken from the queue that run next."""
        self.called = threading.Event()
        self.called.set()
        self._thread = threading.Thread(target=self._run, name="memoranda-writer", daemon=True)
        self._thread.start()

    def queue(self, task: Task) -> Future[Any]:
        """Queue a task and return its future, which is done when its work is durable.

        Raises:
            StorageError: the writer is closed.
        """
        with self._lock:
            if self._closed:
                raise StorageError(f"{self._name} is closed")
            self._tasks.put(task)
        return task.future

    def close(self) -> None:
        """Finish the queued tasks and stop the thread. Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._tasks.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._front.popleft() if self._front else self._tasks.get()) is not None:
            if task.alone:
                self._alone(task)
            else:
                self._commit(self._gather(task))

    def _gather(self, first: Task) -> list[Task]:
        """Return the waiting tasks, up to one that must run outside a transaction."""
        group = [first]
        while len(group) < GROUP:
            try:
                task = self._front.popleft() if self._front else self._tasks.get_nowait()
            except queue.Empty:
                break
            if task is None or task.alone:
                self._front.appendleft(task)
                break
            group.append(task)
        return group

    def _alone(self, task: Task) -> None:
        began = perf_counter()
        try:
            result, error = task.work(None), None
        except BaseException as exc:
            result, error = None, self._transaction.error(exc)
        seconds = perf_counter() - began
        self.holds.changed(task.work, seconds)
        self.holds.ended(1, seconds, 0.0)
        if error is not None:
            task.future.set_exception(error)
        else:
            task.future.set_result(result)

    def _commit(self, group: list[Task]) -> None:
        until = time.monotonic() + self._transaction.patience
        pause = 0.02
        while True:
            began = perf_counter()
            try:
                commit_seconds = self._try(group)
                break
            except BaseException as exc:
                self._transaction.rollback()
                self.called.set()
                if time.monotonic() < until and self._transaction.retryable(exc):
                    time.sleep(pause)
                    pause = min(1.0, 2 * pause)
                    continue
                error = self._transaction.error(exc)
                for task in group:
                    task.future.set_exception(error)
                return
        for task in group:
            self._finish(task)
        self.called.set()
        self.holds.ended(len(group), perf_counter() - began, commit_seconds)

    def _try(self, group: list[Task]) -> float:
        """Run the works in one transaction, commit it, and return the seconds of the commit. Works for which there is
        no time leave `group` and run next. A work that raises is undone alone; its caller gets the error after the
        commit, since an earlier work of the group may be the cause and must be visible by then."""
        until = perf_counter() + GROUP_SECONDS
        connection = self._transaction.begin()
        only = len(group) == 1
        for place, task in enumerate(group):
            if place and perf_counter() > until:
                self._front.extendleft(reversed(group[place:]))
                del group[place:]
                break
            self._attempt(task, connection, only)
        began = perf_counter()
        self.called.clear()  # first: a reader may see the commit before this thread goes on
        self._transaction.commit()
        return perf_counter() - began

    def _attempt(self, task: Task, connection: Connection, only: bool) -> None:
        """Run one work in the open transaction; undo it alone if it raises."""
        task.error = None
        began = perf_counter()
        self._transaction.enter(task.tenant, only)
        try:
            task.result = task.work(connection)
        except BaseException as exc:
            if self._transaction.retryable(exc) or not self._transaction.undo():
                raise
            task.error = self._transaction.error(exc)
        else:
            self._transaction.leave()
        task.seconds = perf_counter() - began

    def _finish(self, task: Task) -> None:
        """Update the indexes after a commit, then set the result of the future."""
        began, error = perf_counter(), task.error
        if error is None and task.then is not None:
            try:
                task.then(task.result)
            except BaseException as exc:
                error = exc
        self.holds.changed(task.work, task.seconds + perf_counter() - began)
        if error is not None:
            task.future.set_exception(error)
        else:
            task.future.set_result(task.result)
