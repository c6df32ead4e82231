"""Memories of answers from before memories were on: from the log, once each, at a limited rate."""

from __future__ import annotations

import asyncio
from typing import Any

from memoranda.document_qa.log import QueryRow
from memoranda.document_qa.remembering import prune, remember_turn
from memoranda.store.core import Core
from memoranda.store.jobs import Run

DERIVE_JOB = "upload_ask.derive"
STEP = 64


class Backfill:
    """The job that reads a tenant's log of questions."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def derive(self, run: Run) -> dict[str, Any]:
        """Remember every answer of the log without a memory, oldest first. A step is 64 rows, with a pace at most a
        second's worth; after a stop or a kill it resumes behind the last one. Existing memories are left alone."""
        core, tenant = self.core, run.tenant
        rate = run.payload.get("rows_per_second")
        step = max(1, min(STEP, int(rate))) if rate else STEP
        loop = asyncio.get_running_loop()
        done = run.done
        total = run.total if run.total is not None else await core.threads.run(self._left, tenant)
        count = 0
        after = int(run.cursor or 0)
        while rows := await core.threads.run(self._rows, tenant, after, step):
            began = loop.time()
            for row in rows:
                count += await remember_turn(core, row) is not None
            for user_id in dict.fromkeys(row.user_id for row in rows):
                await prune(core, tenant, user_id)
            done, after = done + len(rows), rows[-1].seq
            await run.report(done, total, str(after))
            if rate:
                await asyncio.sleep(max(0.0, len(rows) / rate - (loop.time() - began)))
        return {"read": done, "memories": count}

    def _left(self, tenant: str) -> int:
        row = self.core.store.db.read(lambda c: c.one("count_underived", [tenant]), tenant)
        return int(row[0]) if row else 0

    def _rows(self, tenant: str, after: int, step: int) -> list[QueryRow]:
        rows = self.core.store.db.read(lambda c: c.all("underived_queries", [tenant, after, step]), tenant)
        return [QueryRow._make(row) for row in rows]
