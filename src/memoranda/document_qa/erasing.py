"""Forgetting questions to uploaded documents: the texts of the query log are erased, its rows stay as shells."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.document_qa.log import by_id, erase, of_message
from memoranda.store.forgetting import PAGE, Aim, Forgetting
from memoranda.store.transaction import Writing


async def erase_asked(run: Forgetting) -> None:
    """Erase questions and answers; for a whole user or session also the owner of the session. A named message includes
    the row of its question and answer."""
    aim = run.aim
    if aim.ids is not None:
        for at in range(0, len(aim.ids), PAGE):
            await run.change(lambda w, some=aim.ids[at : at + PAGE]: _named(w, aim, some))  # type: ignore[misc]
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
        if seqs:
            await run.change(lambda w, seqs=seqs: {"queries": erase(w.c, w.tenant, seqs)})  # type: ignore[misc]
    if not aim.whole:
        return
    async for page in run.pages("ask_sessions", "seq, id", aim.condition(user="user_id", session="id")):
        ids = [id_ for _, id_ in page]
        await run.change(  # messages of the sessions are erased by the message log
            lambda w, ids=ids: {  # type: ignore[misc]
                "ask_sessions": sum(w.c.run("drop_ask_session", [w.tenant, id_]) for id_ in ids)
            }
        )
        run.ids |= set(ids)


def _named(w: Writing, aim: Aim, ids: Sequence[str]) -> dict[str, int]:
    queries = {query for id_ in ids if (query := of_message(id_))}
    rows = [row for query in queries if (row := by_id(w.c, w.tenant, query)) is not None]
    meant = [row.seq for row in rows if not aim.bound or row.user_id in (aim.own, None)]
    return {"queries": erase(w.c, w.tenant, meant)}
