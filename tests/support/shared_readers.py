"""Reader processes that the products of one test process use one after the other: to start one takes a third of a
second of CPU, and it knows nothing of the product that it reads for. Servers and commands in processes of their own,
and the tests of the readers, start theirs as always."""

from __future__ import annotations

import os
from threading import Lock
from typing import ClassVar
from weakref import WeakKeyDictionary

import pytest

from memoranda.app import bootstrap
from memoranda.readers.pool import Readers, Worker

MOST = 2
"""Processes that wait for the next product."""


class SharedReaders(Readers):
    """Take a process that an earlier product left, and leave idle ones to the next product when closed."""

    _left: ClassVar[list[Worker]] = []
    _begun_in: ClassVar[WeakKeyDictionary[Worker, dict[str, str]]] = WeakKeyDictionary()
    """The environment in which each was started: a product takes those of its own."""
    _leaving: ClassVar[Lock] = Lock()

    def _new(self) -> Worker:
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        while not self._closed and (worker := self._take_left()) is not None:
            if self._begun_in[worker] == environment and worker.process.poll() is None:
                with self._lock:
                    self._all.add(worker)
                return worker
            worker.kill()
        worker = super()._new()
        self._begun_in[worker] = environment
        return worker

    def _take_left(self) -> Worker | None:
        with self._leaving:
            return self._left.pop() if self._left else None

    async def close(self) -> None:
        with self._lock:
            idle, self._idle[:] = self._idle[:], []
            self._all.difference_update(idle)
        with self._leaving:
            self._left += idle
            over, self._left[:] = self._left[:-MOST], self._left[-MOST:]
        for worker in over:
            worker.kill()
        await super().close()


def share() -> None:
    """Let the products that this process opens from here on share their readers."""
    pytest.MonkeyPatch().setattr(bootstrap, "Readers", SharedReaders)
