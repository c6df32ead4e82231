"""Moments at which something becomes due: the writer announces them, and the tasks that wait for due work listen."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[int], None]
"""Called on any thread with the moment (microseconds) at which something becomes due."""


class DueTimes:
    """The moments at which something becomes due in this process."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every moment that is announced from now on."""
        self._listeners.append(listener)

    def announce(self, at: int) -> None:
        """Tell the listeners that something becomes due at a moment (microseconds); callable from any thread."""
        for listener in self._listeners:
            listener(at)
