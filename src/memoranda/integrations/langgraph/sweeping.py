"""A thread that sweeps at intervals."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from memoranda.errors import MemorandaError

log = logging.getLogger("memoranda.langgraph")
DEFAULT_MINUTES = 5.0


class Sweeper:
    """Calls `sweep` at intervals, from its own thread, between `start` and `stop`."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, minutes: float | None) -> None:
        """Begins, unless it runs; every `minutes`, five when None."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._ended.clear()
        seconds = 60.0 * (minutes or DEFAULT_MINUTES)
        self._thread = threading.Thread(
            target=self._run, args=(seconds,), name="memoranda-sweeper", daemon=True
        )
        self._thread.start()

    def stop(self, timeout: float | None) -> bool:
        """Ends it; returns False if it still ran after `timeout` seconds."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def _run(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            try:
                self._sweep()
            except MemorandaError as exc:
                log.warning("expired items were not swept, and will be next time: %s", exc)
