"""The pace of a job over many rows, which its caller may limit."""

from __future__ import annotations

from time import monotonic

from memoranda.store.job_kinds import Run

STEP = 64
"""Rows between two reports, without a limit."""


class Pace:
    """The pace of one attempt at a job: `rows_per_second` of its payload, or no limit. `step` is the number of rows
    between two reports: 1..64, at most those of a second."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rate: float | None = run.payload.get("rows_per_second")
        self.step = max(1, int(min(STEP, self._rate))) if self._rate else STEP
        self._began = monotonic()

    async def keep(self, rows: int) -> None:
        """Pause for what is left of the time of so many rows, the time since the start or the last call counted in."""
        left = self._began + rows / self._rate - monotonic() if self._rate else 0.0
        if left > 0:
            await self._run.pause(left)
        self._began = monotonic()
