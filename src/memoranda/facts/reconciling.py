"""What facts that were stored without a model are to the others of their home, asked in a job: those that callers
write, and those of conversations of several people."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from memoranda.clock import moment
from memoranda.errors import IndexUnavailable, ModelBroken, ModelError, ModelRefused
from memoranda.facts import versions
from memoranda.facts.existing import Existing, existing_facts
from memoranda.facts.insertion import Ending, end
from memoranda.facts.parsing import Candidate, parsed
from memoranda.facts.plans import WHY, is_quoted
from memoranda.providers.chat.base import Ask
from memoranda.providers.chat.completion import complete, instructed
from memoranda.store.core import Core
from memoranda.store.job_kinds import Postponed, Run
from memoranda.store.rows import Home, Record, fetch_ids, home_of, start_of
from memoranda.store.transaction import Writing
from memoranda.text import prompts
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json

log = logging.getLogger("memoranda.facts")
RECONCILE_JOB = "facts.reconcile"
PURPOSE = "facts"
"""The purpose of calls about facts, by which costs are summed."""
AT_ONCE = 20
"""New facts in one call."""
ANSWER_TOKENS = 3_000
RETRY_SECONDS = 300.0


def reconcile_later(core: Core, w: Writing, rows: Sequence[Record], wake: Callable[[object], None]) -> None:
    """Enqueue the comparison of new facts with the others of their home, if a model is there to compare them. `wake` is
    called after the commit."""
    if core.model.quotes_only or not core.config.facts.reconcile:
        return
    by_home: dict[Home, list[str]] = defaultdict(list)
    for row in rows:
        by_home[home_of(row)].append(row.id)
    for ids in by_home.values():
        for at in range(0, len(ids), AT_ONCE):
            payload = {"facts": ids[at : at + AT_ONCE]}
            core.jobs.place(w.c, w.tenant, RECONCILE_JOB, payload, dedup_key=digest(compact_json(payload)))
    if by_home:
        w.then(partial(wake, None))


class Reconciliation:
    """Handler of that job."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def job(self, run: Run) -> dict[str, Any]:
        """Ask the model what the facts are to the others, and end those that it names, in the words of the new ones.

        Raises:
            Postponed: the model or an index does not answer.
            SpendingLimit: the tenant has spent its day.
        """
        tenant, core = run.tenant, self.core
        if core.model.quotes_only or not core.config.facts.reconcile:
            return {"superseded": 0}
        ids = [str(id_) for id_ in run.payload["facts"]]
        try:
            new, known = await self._read(tenant, ids)
            if not known:
                return {"superseded": 0}
            model = core.costs.paid(core.model, tenant, PURPOSE, background=True)
            answer = await complete(model, self._ask(new, known))
        except (ModelRefused, ModelBroken) as exc:
            log.warning("%d facts stay beside the others: %s", len(ids), type(exc).__name__)
            return {"superseded": 0, "error": type(exc).__name__}
        except (ModelError, IndexUnavailable) as exc:
            raise Postponed(type(exc).__name__, RETRY_SECONDS) from exc
        candidates = parsed(answer.text)

        def write(w: Writing) -> int:
            return sum(_end(w, candidate, new, known) for candidate in candidates)

        done = await core.threads.result(core.store.transact(tenant, write))
        core.tally["facts.superseded"] += done
        return {"superseded": done}

    async def _read(self, tenant: str, ids: Sequence[str]) -> tuple[list[Record], list[Existing]]:
        """Return the new facts that still hold, and the others that they may be about."""
        core = self.core
        rows = await core.threads.run(core.store.db.read, lambda c: fetch_ids(c, tenant, ids), tenant)
        new = [rows[id_] for id_ in ids if id_ in rows and versions.is_live(rows[id_])]
        if not new:
            return [], []
        texts = {row.id: row.content for row in new}
        home = home_of(new[0])
        return new, await existing_facts(core, tenant, home, texts, purpose=PURPOSE, without=set(ids))

    def _ask(self, new: Sequence[Record], known: Sequence[Existing]) -> Ask:
        lines = [
            f"{moment(start_of(row)):%Y-%m-%d %H:%M} {row.user_id or 'user'}: {row.content}" for row in new
        ]
        material = prompts.conversation([fact.line for fact in known], [], lines)
        model, form = self.core.config.facts.model, prompts.FACTS_FORM
        return instructed(prompts.FACTS, material, ANSWER_TOKENS, model=model, response_format=form)


def _end(w: Writing, candidate: Candidate, new: Sequence[Record], known: Sequence[Existing]) -> int:
    """End what a new fact ends by the answer; return how many. The words must be those of the new fact."""
    if candidate.op not in WHY:
        return 0
    named = [new[number - 1] for number in candidate.messages if number <= len(new)]
    ids = tuple(known[number - 1].row.id for number in candidate.of if number <= len(known))
    for row in named:
        current = fetch_ids(w.c, w.tenant, [row.id]).get(row.id)
        if current is None or current.content != row.content or not versions.is_live(current):
            continue
        if is_quoted(candidate.quote, row.content):
            return end(w, current, Ending(ids, WHY[candidate.op], row.id, candidate.quote))
    return 0
