"""The pauses that a module asks of `asyncio`, noted."""

from __future__ import annotations

import asyncio
from typing import Any


class Pauses:
    """Stands for `asyncio` in a module: `asked` are the seconds that it asked to sleep, in turn; each pause lasts
    `share` of that."""

    def __init__(self, share: float = 0.0) -> None:
        self.asked: list[float] = []
        self._share = share

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await asyncio.sleep(seconds * self._share)
