"""Forgetting questions to uploaded documents: the texts of the query log are erased, its rows stay as shells."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.document_qa.log import QueryRow, by_id, erase, of_message
from memoranda.document_qa.remembering import turns_of
from memoranda.storage.sql.base import Connection
from memoranda.store.forget_preview import Preview
from memoranda.store.forgetting import PAGE, Forgetting


async def erase_asked(run: Forgetting) -> None:
    """Erase questions and answers; for a whole user or session also the owner of the session. A named message includes
    the row of its question and answer."""
    aim = run.aim
    if aim.ids is not None:
        for at in range(0, len(aim.ids), PAGE):
            await _erase(run, await run.threads.run(_named, run, aim.ids[at : at + PAGE]))
        return
    if not aim.other_data:
        return
    where = aim.condition(user="user_id", session="session_id", time="created_at")
    if where is not None:
        where = f"erased_at IS NULL AND {where[0]}", where[1]
    async for page in run.pages("query_log", "seq, question, answer, sources, memories", where):
        seqs = [
            seq
            for seq, question, answer, *listed in page
            if aim.text is None or aim.text.within(question, answer) or aim.text.within_json(*listed)
        ]
        await _erase(run, seqs)
    if not aim.whole:
        return
    async for page in run.pages("ask_sessions", "seq, id", aim.condition(user="user_id", session="id")):
        ids = [id_ for _, id_ in page]
        await run.change(  # messages of the sessions are erased by the message log
            lambda w, ids=ids: {  # type: ignore[misc]
                "ask_sessions": sum(w.c.run("drop_ask_session", [w.tenant, id_]) for id_ in ids)
            },
            {"ask_sessions": len(ids)},
        )
        run.ids |= set(ids)


async def _erase(run: Forgetting, seqs: Sequence[int]) -> None:
    if seqs:
        await run.change(lambda w: {"queries": erase(w.c, w.tenant, seqs)}, {"queries": seqs})


def _named(run: Forgetting, ids: Sequence[str]) -> list[int]:
    """Return the rows of named messages that are not erased yet."""
    aim, queries = run.aim, {query for id_ in ids if (query := of_message(id_))}

    def read(c: Connection) -> list[QueryRow]:
        return [row for query in queries if (row := by_id(c, aim.tenant, query)) is not None]

    rows = [row for row in run.store.db.read(read, aim.tenant) if row.erased_at is None]
    return [row.seq for row in rows if not aim.bound or row.user_id in (aim.own, None)]


async def count_turns(run: Preview, ids: Sequence[str]) -> None:
    """Count the turns and summaries that go with messages."""
    await run.memories(await run.read(lambda c: turns_of(c, run.aim.tenant, ids)))
