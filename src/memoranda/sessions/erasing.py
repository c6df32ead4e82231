"""Forgetting messages of the log, indexed or not, with everything derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from memoranda.sessions.editing import remove_messages
from memoranda.sessions.merge import JOIN_JOB
from memoranda.sessions.reactions import MessageReactions
from memoranda.sessions.records import MessageRow, messages_by_id, sessions_by_id, texts_of
from memoranda.sessions.summary_memories import rollup_ids
from memoranda.sessions.values import name_of
from memoranda.storage.sql.base import Connection
from memoranda.store.forget_preview import Preview
from memoranda.store.forgetting import MESSAGE, PAGE, Forgetting, selected_memories
from memoranda.store.rows import Record, fetch_ids
from memoranda.store.transaction import Writing
from memoranda.text.phrase import Phrase
from memoranda.text.stored import compact_json

COLUMNS = ", ".join(("seq", *(name for name in MessageRow._fields if name != "seq")))


async def erase_messages(run: Forgetting) -> None:
    """Erase the messages that are selected. If users are, so are messages without a user in sessions of theirs that
    have no other user; messages of others stay."""
    aim = run.aim
    if aim.ids is not None:
        for at in range(0, len(aim.ids), PAGE):
            await _erase_by_id(run, aim.ids[at : at + PAGE])
        return
    if aim.logged:
        pages = selected_memories(run)
        while (some := await run.threads.run(next, pages, None)) is not None:
            await _erase_by_id(run, [row.id for row in some if row.kind == MESSAGE])
    if not aim.messages:
        return
    if run.erasing:
        await run.jobs.finish(aim.tenant, JOIN_JOB)  # every message has reached its session
    tenant, users = aim.tenant, aim.places.get("user", frozenset())
    alone = [compact_json([user]) for user in sorted(users)]
    values = [tenant, compact_json(sorted(users)), compact_json(alone)]
    theirs = await run.threads.run(run.store.db.read, lambda c: c.all("sessions_of_users", values), tenant)
    run.sessions |= {id_ for id_, listed in theirs if users.issuperset(texts_of(listed))}
    wider = replace(
        aim, places={**aim.places, "session": aim.places.get("session", frozenset()) | run.sessions}
    )
    where = wider.condition(
        user="user_id", session="session_id", channel="channel_id", agent="agent_id", time="occurred_at",
        nobodys=True,
    )  # fmt: skip
    async for page in run.pages("messages", COLUMNS, where):
        messages = [_row(row) for row in page]
        await _erase(run, [row for row in messages if aim.text is None or _holds(row, aim.text)])
    if aim.whole:
        there = partial(sessions_by_id, tenant=tenant, ids=run.shortened)
        run.ids |= run.shortened - (await run.threads.run(run.store.db.read, there, tenant)).keys()


async def _erase_by_id(run: Forgetting, ids: Sequence[str]) -> None:
    aim = run.aim
    rows = await run.threads.run(run.store.db.read, lambda c: messages_by_id(c, aim.tenant, ids), aim.tenant)
    own = (aim.own, None)
    await _erase(run, [row for row in rows.values() if not aim.bound or row.user_id in own])


async def _erase(run: Forgetting, rows: Sequence[MessageRow]) -> None:
    if rows:
        ids = [row.id for row in rows]
        await run.change(lambda w: _erased(w, rows), {"messages": ids}, ids)
        run.shortened |= {row.session_id for row in rows}


def _row(row: Sequence[object]) -> MessageRow:
    named = dict(zip(COLUMNS.split(", "), row, strict=True))
    return MessageRow(**named)  # type: ignore[arg-type]


def _holds(row: MessageRow, phrase: Phrase) -> bool:
    return phrase.within(row.content, row.speaker) or phrase.within_json(row.metadata)


def _erased(w: Writing, rows: Sequence[MessageRow]) -> dict[str, int]:
    """Remove messages. Rows are read again: they may be deleted, or moved to another session, since they were read."""
    there = list(messages_by_id(w.c, w.tenant, [row.id for row in rows]).values())
    memories, vectors = remove_messages(w, there)
    return {"messages": len(there), "memories": memories, "vectors": vectors}


async def erase_summaries(following: MessageReactions, run: Forgetting) -> None:
    """Clear the summaries of sessions that contain the phrase although no message does; they are made again of the
    messages that are left."""
    text, tenant = run.aim.text, run.aim.tenant
    if text is None or not run.aim.other_data or run.aim.bound:
        return
    lists = ("participants", "topics", "decisions", "open_questions", "action_items", "entities")
    where = run.aim.condition(session="id", channel="channel_id", user="user_id")
    columns = f"seq, id, metadata, facts_failure, summary, failure, {', '.join(lists)}"
    async for page in run.pages("sessions", columns, where):
        ids = []
        for _, id_, metadata, facts_failure, summary, failure, participants, *listed in page:
            kept = text.within(facts_failure) or text.within_json(metadata)
            mentioned = text.within(summary, failure) or text.within_json(*listed)
            if not mentioned and text.within_json(participants):
                mentioned = text.within(*await _gone(run, id_, participants))
            # a preview assumes that the rest is cleared with the messages
            if kept or (mentioned and (run.erasing or id_ not in run.shortened)):
                ids.append(id_)
        if ids:
            summaries = await run.threads.run(run.store.db.read, partial(_summaries, tenant, ids), tenant)
            await run.change(partial(_cleared, following, text, ids), {"summaries": ids}, summaries)


async def _gone(run: Forgetting, id_: str, participants: str) -> list[str]:
    """Return the participants who have no message in the session: others are ids of users, or roles, and stay."""
    values = [run.aim.tenant, id_]
    spoke = await run.threads.run(run.store.db.read, lambda c: c.all("speakers_of", values), run.aim.tenant)
    names = {name_of(*who) for *who, _ in spoke}
    return [name for name in texts_of(participants) if name not in names]


def _cleared(following: MessageReactions, text: Phrase, ids: Sequence[str], w: Writing) -> dict[str, int]:
    w.draw(1)  # writers of messages wait
    rows = sessions_by_id(w.c, w.tenant, ids).values()
    memories, vectors = following.measure(w, [row.id for row in rows])
    for row in rows:
        metadata = "{}" if text.within_json(row.metadata) else row.metadata
        failure = None if text.within(row.facts_failure) else row.facts_failure
        w.c.run("clear_summary", [w.tenant, row.id])
        w.c.run("blank_session", [metadata, failure, w.tenant, row.id])
    return {"summaries": len(rows), "memories": memories, "vectors": vectors}


async def count_summaries(run: Preview, ids: Sequence[str]) -> None:
    """Count the summaries, and the rollups of their weeks, that go with messages or with each other."""
    rows = await run.read(lambda c: _summaries_with(c, run, ids))
    await run.memories(rows)


def _summaries_with(c: Connection, run: Preview, ids: Sequence[str]) -> list[Record]:
    tenant, own = run.aim.tenant, {run.summaries[id_] for id_ in ids if id_ in run.summaries}
    shortened = {row.session_id for row in messages_by_id(c, tenant, ids).values()}
    chosen = [
        row.id
        for row in sessions_by_id(c, tenant, own | shortened).values()
        if row.id in shortened or row.summary_id in run.gone
    ]
    return [*fetch_ids(c, tenant, _summaries(tenant, chosen, c)).values()]


def _summaries(tenant: str, ids: Sequence[str], c: Connection) -> list[str]:
    """Return the ids of the summaries of sessions, and of the rollups that are withdrawn with them."""
    rows = sessions_by_id(c, tenant, ids).values()
    return [
        id_ for row in rows if row.summary_id is not None for id_ in (row.summary_id, *rollup_ids(c, row))
    ]
