"""Facts of one subject: extract, consolidate, timeline, history, confirm, undo, sweep."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Unpack

import msgspec
from msgspec import Meta

from memoranda.arguments import SelectionFields
from memoranda.clock import now_micros
from memoranda.errors import Forbidden, ModelUnavailable, NotFound
from memoranda.facts import consolidation
from memoranda.facts.consolidation import Fact
from memoranda.facts.existing import FACT
from memoranda.facts.extraction import Extraction
from memoranda.facts.history import FactHistory, Undone, confirm, undo, version_of, versions_of
from memoranda.facts.maintenance import Swept, sweep
from memoranda.facts.reconciling import PURPOSE
from memoranda.facts.timeline import NOTHING, Chains, Timeline, TimelineQuery
from memoranda.filters import EVERYTHING, Filter, all_of, matches
from memoranda.sessions.records import MessageRow, session_seen, to_message
from memoranda.sessions.values import EXTRACT_JOB, Message
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.where import compile_where
from memoranda.store import listing
from memoranda.store.access import (
    must_be_admin,
    must_write,
    owns,
    scopes_filter,
    selection_filter,
    visible_to,
)
from memoranda.store.core import Core
from memoranda.store.paging import check_page, cursors
from memoranda.store.rows import Record, attributes, fetch, fetch_ids, to_memory
from memoranda.store.transaction import Writing
from memoranda.text.stored import compact_json
from memoranda.types import AnyScopes, Memory, Moment, Selection, Subject, any_text
from memoranda.validation import convert

log = logging.getLogger("memoranda.facts")
MAX_PAGE = 100
BY_MODEL = 20
"""Groups that a model merges in one call; the rest waits for the next."""
NO_MODEL = "no language model is configured; set model.url and model.name"


class Extracted(msgspec.Struct, kw_only=True, tag_field="object", tag="session.extraction"):
    """What was taken out of a session: new facts, such as were known and got another source, such as are superseded."""

    kept: int
    joined: int
    superseded: int


class LearnedFacts(msgspec.Struct, kw_only=True):
    """What was learned from some messages: the facts that rest on them, and those whose place these took, each in the
    order of writing."""

    facts: builtins.list[Memory]
    superseded: builtins.list[Memory]


class Reading(msgspec.Struct, kw_only=True):
    """Messages that were stored together. `pending`: facts are not extracted from all of them yet, and `failure` says
    why the last attempt failed."""

    messages: builtins.list[Message]
    pending: bool
    failure: str | None


class Merged(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.merged"):
    """A fact that took the place of others."""

    id: str
    consolidates: list[str]


class Consolidated(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.consolidation"):
    """What a consolidation came to; `left` are groups that wait for the next. `reason` says why nothing was done."""

    merged: list[Merged]
    left: int
    reason: str | None = None


class Facts:
    """The facts of one subject. They are memories of kind `fact`: every method of memories applies to them too."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def extract(self, session_id: str) -> Extracted:
        """Extract facts from the messages of a session since the last time. Those of its messages that were changed
        after they had been read are read again; those that were sent with extraction off are skipped.

        Raises:
            NotFound: no such session for this subject.
            ModelError: the model gave no answer that could be used.
            ModelUnavailable: a changed message could not be read again; a job tries it later.
        """
        must_write(self.subject)
        tenant = self.subject.tenant_id
        await self._core.threads.run(
            self._core.store.db.read, lambda c: session_seen(c, self.subject, session_id), tenant
        )
        done = await Extraction(self._core, background=False).extract(tenant, session_id)
        extracted = Extracted(kept=done.kept, joined=done.joined, superseded=done.superseded)
        for job in await self._core.jobs.finish(tenant, EXTRACT_JOB, partial(_reads_again, session_id)):
            if job.state in ("queued", "failed"):
                raise ModelUnavailable(f"facts of a changed message of session {session_id!r}: {job.error}")
            counts = job.result or {}
            extracted.kept += counts.get("kept", 0)
            extracted.joined += counts.get("joined", 0)
            extracted.superseded += counts.get("superseded", 0)
        return extracted

    async def learned_from(self, message_ids: Sequence[str]) -> LearnedFacts:
        """Return the facts extracted from these messages so far that this subject sees."""
        tenant, mine = self.subject.tenant_id, visible_to(self.subject)

        def rows(c: Connection, query: str, ids: Sequence[str]) -> builtins.list[Memory]:
            seqs = [int(seq) for (seq,) in c.all(query, [tenant, compact_json(ids)])]
            records = sorted(fetch(c, tenant, seqs).values(), key=lambda row: row.seq)
            return [
                to_memory(row) for row in records if row.kind == "fact" and matches(mine, attributes(row))
            ]

        def read(c: Connection) -> LearnedFacts:
            facts = rows(c, "made_of", message_ids)
            superseded = rows(c, "facts_ended_by", [fact.id for fact in facts])
            return LearnedFacts(facts=facts, superseded=superseded)

        return await self._core.threads.run(self._core.store.db.read, read, tenant)

    async def reading(self, message_id: str) -> Reading:
        """Return how far extraction has come with a message and those of its session that were stored with it.

        Raises:
            NotFound: no such message for this subject.
        """
        tenant = self.subject.tenant_id

        def read(c: Connection) -> Reading:
            rows = [MessageRow._make(row) for row in c.all("messages_stored_with", [tenant, message_id])]
            if not any(row.id == message_id and owns(self.subject, row.user_id) for row in rows):
                raise NotFound(f"no message {message_id!r}")
            session = session_seen(c, self.subject, rows[0].session_id)
            pending = any(row.extract and row.seq > session.facts_seq for row in rows)
            messages = [to_message(row) for row in rows if owns(self.subject, row.user_id)]
            failure = session.facts_failure if pending else None
            return Reading(messages=messages, pending=pending, failure=failure)

        return await self._core.threads.run(self._core.store.db.read, read, tenant)

    async def consolidate(self, **fields: Unpack[SelectionFields]) -> Consolidated:
        """Let the model join related facts of one scope into one. All sources are kept, and the facts stay, superseded.
        A second call changes nothing. Without a model nothing is done, and `reason` says so.

        Raises:
            InvalidInput: a field of the selection is wrong.
            Forbidden: scope `all` without the admin role.
            ModelUnavailable: the model does not answer; facts consolidated before are kept.
        """
        must_write(self.subject)
        selection = convert(fields, Selection)
        everything = selection.scopes is None and self.subject.role == "admin"
        where = all_of(
            EVERYTHING if everything else scopes_filter(selection.scopes, self.subject),
            selection_filter(selection, self.subject, now_micros()),
            FACT,
        )
        return await consolidate(self._core, self.subject.tenant_id, where, background=False)

    async def history(self, id: str) -> FactHistory:
        """Return the versions of a fact. They are in the order of their validity, each with its changes and their
        reasons.

        Raises:
            NotFound: no such memory for this subject.
        """
        mine = visible_to(self.subject)
        first = await self._core.visible_row(self.subject, id)
        rows = await self._core.threads.run(
            self._core.store.db.read,
            lambda c: versions_of(c, self.subject.tenant_id, first),
            self.subject.tenant_id,
        )
        seen = [row for row in rows if matches(mine, attributes(row))]
        return FactHistory(id=id, data=[version_of(row, seen) for row in seen])

    async def timeline(
        self,
        *,
        scopes: AnyScopes | None = None,
        at: Moment | None = None,
        text: Annotated[str, any_text(1_000)] = "",
        limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50,
        after: str | None = None,
    ) -> Timeline:
        """List facts with the versions that they superseded. Archived ones are among them; `holds` says which were
        valid at a moment (now without one). `scopes` as in `Memories.list`; with `text` only chains with a version that
        contains all its words, in its text or tags. `limit` is 1 to 100.

        Raises:
            InvalidInput: names the field and the fix.
            Forbidden: scope `all` without the admin role.
        """
        check_page(limit, "desc", MAX_PAGE)
        asked = convert({"scopes": scopes, "at": at}, TimelineQuery)
        scoped = scopes_filter(asked.scopes, self.subject, any_id=True)
        where = all_of(scoped, selection_filter(Selection(), self.subject, None), FACT)
        valid = all_of(scoped, selection_filter(Selection(as_of=asked.at), self.subject, now_micros()), FACT)
        words, tenant = text.casefold().split(), self.subject.tenant_id
        if not compile_where(valid).exact:  # a scope has a character that no id contains
            return NOTHING

        def seq_of(c: Connection, id_: str) -> int | None:
            row = fetch_ids(c, tenant, [id_]).get(id_)
            return row.seq if row is not None and matches(where, attributes(row)) else None

        def read(c: Connection) -> Timeline:
            found = Chains(c, tenant, where, valid, words)
            start, _ = cursors(after, None, partial(seq_of, c))
            chains, last = found.page(start, limit)
            return Timeline(
                data=chains,
                first_id=chains[0].id if chains else None,
                last_id=last or (chains[-1].id if chains else None),
                has_more=last is not None,
                total=listing.number(c, tenant, where),
                holding=listing.number(c, tenant, valid),
                since=found.since(),
            )

        return await self._core.threads.run(self._core.store.db.read, read, tenant)

    async def undo(self, id: str) -> Undone:
        """Undo the last change among the versions of a fact: what was superseded or consolidated is valid again, and
        what replaced it is valid at no time. A second call changes nothing.

        Raises:
            NotFound: no such memory for this subject.
        """
        must_write(self.subject)
        first, tenant = await self._core.visible_row(self.subject, id), self.subject.tenant_id
        mine = visible_to(self.subject)

        def work(w: Writing) -> Undone:
            row = fetch_ids(w.c, tenant, [first.id]).get(first.id)
            if row is None:
                raise NotFound(f"no memory {id!r}")
            if not all(matches(mine, attributes(version)) for version in versions_of(w.c, tenant, row)):
                raise Forbidden("undo: versions of this fact belong to another user; ask an admin")
            return undo(w, row)

        return await self._core.threads.result(self._core.store.transact(tenant, work))

    async def confirm(self, id: str) -> Memory:
        """Confirm a fact. Its confidence becomes 1, it counts as used now, and its history says that a person found it
        right. A proposed standing instruction is in force from then on. Doing it again adds a use. Return the fact.

        Raises:
            NotFound: no such fact for this subject.
            Conflict: it is not valid any more.
        """
        must_write(self.subject)
        tenant, mine = self.subject.tenant_id, visible_to(self.subject)

        def work(w: Writing) -> Record:
            row = fetch_ids(w.c, tenant, [id]).get(id)
            if row is None or row.kind != "fact" or not matches(mine, attributes(row)):
                raise NotFound(f"no fact {id!r}")
            return confirm(w, row)

        return to_memory(await self._core.threads.result(self._core.store.transact(tenant, work)))

    async def sweep(self) -> Swept:
        """Archive facts unused for too long, and of too many facts the least valuable. Else this runs every hour.

        Raises:
            Forbidden: the subject is not an admin.
        """
        must_be_admin(self.subject, "sweep")
        return await sweep(self._core, self.subject.tenant_id)


async def consolidate(core: Core, tenant: str, where: Filter, *, background: bool) -> Consolidated:
    """Let the model consolidate the facts of a tenant that pass `where`; without a model, nothing is done. In the
    background, replies to users have priority over its model calls."""
    if core.model.quotes_only:
        return Consolidated(merged=[], left=0, reason=NO_MODEL)
    groups = await core.threads.run(_clusters, core, tenant, where)
    model = core.costs.paid(core.model, tenant, PURPOSE, background=background)
    done: list[Merged] = []
    asked = 0
    while groups and asked < BY_MODEL:
        group = groups.pop(0)
        asked += 1
        chosen, text, by = await consolidation.merged(model, core.config.facts.model, group)
        parts = [fact.row for fact in chosen]
        if not parts:
            await core.threads.result(core.store.transact(tenant, partial(consolidation.leave, group=group)))
            continue
        if len(rest := [fact for fact in group if fact.row not in parts]) > 1:
            groups.insert(0, rest)
        replacement = consolidation.composed(parts, text, by, core.ingest.bounds, now_micros())
        row = await core.threads.result(core.store.transact(tenant, _putting(parts, replacement)))
        if row is not None:
            core.tally["facts.consolidated"] += len(parts)
            done.append(Merged(id=row.id, consolidates=[part.id for part in parts]))
    if done:
        merged = sum(len(item.consolidates) for item in done)
        log.info("facts consolidated", extra={"tenant": tenant, "facts": merged, "into": len(done)})
    return Consolidated(merged=done, left=len(groups))


def _reads_again(session_id: str, payload: dict[str, Any]) -> bool:
    """Return True for the payload of a job that extracts facts again from changed messages of a session."""
    return payload.get("session_id") == session_id and "messages" in payload


def _putting(parts: Sequence[Record], replacement: Any) -> Any:
    return lambda w: consolidation.put(w, parts, replacement)


def _clusters(core: Core, tenant: str, where: Filter) -> builtins.list[builtins.list[Fact]]:
    facts: list[Fact] = []
    for rows in listing.scan(core.store.db, tenant, where):
        free = [row for row in rows if consolidation.may_join(row)]
        vectors = consolidation.read_vectors(core, tenant, free)
        facts += [Fact(row, vectors.get(row.seq)) for row in free]
    return list(consolidation.clusters(facts, core.recall.calibration.cosine(consolidation.RELATED)))
