"""Forgetting messages of the log, indexed or not, with everything derived from them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memoranda.sessions.editing import remove_messages
from memoranda.sessions.joining import JOIN_JOB
from memoranda.sessions.records import MessageRow, messages_by_id
from memoranda.storage.sql.base import Connection
from memoranda.store.forgetting import PAGE, Forgetting
from memoranda.store.transaction import Writing
from memoranda.text.json import compact_json
from memoranda.text.phrase import Phrase

COLUMNS = ", ".join(("seq", *(name for name in MessageRow._fields if name != "seq")))


async def erase_messages(run: Forgetting) -> None:
    """Erase the messages that are selected. If all of a user is, so are messages without a user in sessions that have
    no other user; messages of others stay."""
    aim = run.aim
    if aim.ids is not None:
        for at in range(0, len(aim.ids), PAGE):
            rows = await run.threads.run(
                run.store.db.read,
                lambda c, some=aim.ids[at : at + PAGE]: messages_by_id(c, aim.tenant, some),
                aim.tenant,
            )
            own = (aim.own, None)
            await _erase(run, [row for row in rows.values() if not aim.bound or row.user_id in own])
        return
    if not aim.messages:
        return
    await run.jobs.finish(aim.tenant, JOIN_JOB)  # every message has reached its session
    tenant, users = aim.tenant, aim.places.get("user", frozenset())
    alone = [compact_json([user]) for user in sorted(users)]
    theirs = await run.threads.run(
        run.store.db.read, lambda c: c.all("sessions_of_users", [tenant, compact_json(alone)]), tenant
    )
    run.sessions |= {str(id_) for (id_,) in theirs}
    wider = replace(
        aim, places={**aim.places, "session": aim.places.get("session", frozenset()) | run.sessions}
    )
    where = wider.condition(
        user="user_id", session="session_id", channel="channel_id", agent="agent_id", time="occurred_at",
        nobodys=True,
    )  # fmt: skip
    async for page in run.pages("messages", COLUMNS, where):
        messages = [_row(row) for row in page]
        meant = [row for row in messages if aim.text is None or _holds(row, aim.text)]
        await _erase(run, meant)
        run.ids |= {row.session_id for row in meant} if aim.whole else set()


async def _erase(run: Forgetting, rows: Sequence[MessageRow]) -> None:
    if rows:
        sessions = {row.session_id for row in rows}
        sources = sessions.union(row.id for row in rows)
        await run.change(lambda w: _erased(w, rows), {"messages": len(rows)}, sources)
        run.shortened |= sessions


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


async def erase_summaries(run: Forgetting) -> None:
    """Clear the summary fields of sessions that contain the phrase although no message does."""
    text = run.aim.text
    if text is None or not run.aim.other_data or run.aim.bound:
        return
    lists = ("topics", "decisions", "open_questions", "action_items", "entities", "participants")
    where = run.aim.condition(session="id", channel="channel_id", user="user_id")
    columns = f"seq, id, facts_failure, metadata, summary, failure, {', '.join(lists)}"
    async for page in run.pages("sessions", columns, where):
        ids = []
        for _, id_, facts_failure, metadata, summary, failure, *listed in page:
            kept = text.within(facts_failure) or text.within_json(metadata)
            there = run.erasing or id_ not in run.shortened  # these go with the messages
            if kept or (there and (text.within(summary, failure) or text.within_json(*listed))):
                ids.append(id_)
        if ids:
            await run.change(
                lambda w, ids=ids: {"summaries": _cleared(w.c, w.tenant, ids)},  # type: ignore[misc]
                {"summaries": len(ids)},
            )


def _cleared(c: Connection, tenant: str, ids: Sequence[str]) -> int:
    return sum(c.run("clear_summary", [tenant, id_]) and c.run("blank_session", [tenant, id_]) for id_ in ids)
