"""The workers: for each lane a task that claims its jobs, and a task per running job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from memoranda.clock import now_micros
from memoranda.errors import StorageError
from memoranda.store.job_kinds import AGENT_LANE, DEFAULT_LANE, FILES_LANE, MEMORY_LANE, Run
from memoranda.store.jobs import OTHERS_WAIT, SECOND, Jobs

log = logging.getLogger("memoranda.jobs")
LONGEST_WAIT = 300.0


class Workers:
    """What runs the jobs of this process, from `start` to `stop`."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._working: set[asyncio.Task[None]] = set()

    async def start(self, workers: int = 2, files: int = 0, agents: int = 0, memories: int = 0) -> None:
        """Start the workers. Each number is how many jobs of a lane run at once: `workers` of the default lane,
        `files`, `agents` (responses) and `memories` (summaries, facts). If no other process can have a lease, jobs that
        a killed process left running are released at once."""
        if not self.jobs.db.shared:
            await self.jobs.release()
        lanes = {DEFAULT_LANE: workers, FILES_LANE: files, AGENT_LANE: agents, MEMORY_LANE: memories}
        for lane, places in lanes.items():
            if places:
                self._begin(self._work(lane, asyncio.Semaphore(places)), f"job-lane-{lane}")

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def stop(self) -> None:
        """Stop the workers. Every running job ends or goes back to the queue."""
        self.jobs.stopping = True
        while self._working:
            for task in self._working:
                task.cancel()
            await asyncio.gather(*self._working, return_exceptions=True)
        try:  # a claim is committed even when its worker no longer waits for it
            await self.jobs.give_back()
        except StorageError as exc:
            log.warning("jobs under way were not given back, their leases end by themselves: %s", exc)

    async def _work(self, lane: int, places: asyncio.Semaphore) -> None:
        """Claim the jobs of a lane, one at a time, and begin each, while the lane has places."""
        while not self.jobs.stopping:
            await places.acquire()
            self.jobs.waking[lane].clear()
            try:
                run, due = await self.jobs.claim(lane)
            except StorageError as exc:  # claiming continues once the database is back
                places.release()
                log.warning("no jobs while the rows are away: %s", exc)
                await asyncio.sleep(OTHERS_WAIT)
                continue
            if run is not None:
                run.places = places
                self._begin(self._do(run), f"job-{run.id}")
            else:  # a paused job may go on
                places.release()
                await self._sleep(lane, due)

    async def _do(self, run: Run) -> None:
        """Run a job, then look at its lane again, since the job may be due again."""
        try:
            await self.jobs.attempt(run)
            await self.jobs.note_ending()
        except StorageError as exc:
            log.warning("no jobs while the rows are away: %s", exc)
            await asyncio.sleep(OTHERS_WAIT)
        finally:
            if run.places is not None:
                run.places.release()
            self.jobs.wake(run.kind)

    async def _sleep(self, lane: int, due: int | None) -> None:
        wait = OTHERS_WAIT if self.jobs.db.shared else LONGEST_WAIT
        if due is not None:
            wait = min(wait, max(0.01, (due - now_micros()) / SECOND))
        # `wait_for` may drop a cancellation that comes with the wake; the lane would go on without end
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self.jobs.waking[lane].wait()
