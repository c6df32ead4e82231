"""Memories of answers from before memories were on: from the log, once each, at a limited rate."""

from __future__ import annotations

from typing import Any

from memoranda.document_qa.log import QueryRow
from memoranda.document_qa.remembering import prune, remember_turn
from memoranda.store.core import Core
from memoranda.store.job_kinds import Pace, Run

DERIVE_JOB = "upload_ask.derive"


class Backfill:
    """The job that reads a tenant's log of questions."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def derive(self, run: Run) -> dict[str, Any]:
        """Remember every answer of the log without a memory, oldest first. After a stop or a kill it resumes behind the
        last one. Existing memories are left alone."""
        core, tenant, pace = self.core, run.tenant, Pace(run)
        done = run.done
        total = run.total if run.total is not None else await core.threads.run(self._left, tenant)
        count = 0
        after = int(run.cursor or 0)
        while rows := await core.threads.run(self._rows, tenant, after, pace.step):
            for row in rows:
                count += await remember_turn(core, row) is not None
            for user_id in dict.fromkeys(row.user_id for row in rows):
                await prune(core, tenant, user_id)
            done, after = done + len(rows), rows[-1].seq
            await run.report(done, total, str(after))
            await pace.keep(len(rows))
        return {"read": done, "memories": count}

    def _left(self, tenant: str) -> int:
        row = self.core.store.db.read(lambda c: c.one("count_underived", [tenant]), tenant)
        return int(row[0]) if row else 0

    def _rows(self, tenant: str, after: int, step: int) -> list[QueryRow]:
        rows = self.core.store.db.read(lambda c: c.all("underived_queries", [tenant, after, step]), tenant)
        return [QueryRow._make(row) for row in rows]
