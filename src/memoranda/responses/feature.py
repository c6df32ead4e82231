"""What responses, conversations and agent profiles add to an open library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from memoranda.responses.background import RESPOND_JOB
from memoranda.responses.conversations import shortened
from memoranda.responses.engine import Engine
from memoranda.responses.history import SUMMARIZE_JOB
from memoranda.responses.records import ResponseRow
from memoranda.responses.values import LIVE, packed_in
from memoranda.store.changes import ROWS, TEXTS, parted
from memoranda.store.feature import Feature
from memoranda.store.forgetting import Forgetting
from memoranda.store.job_kinds import AGENT_LANE, JobKind
from memoranda.store.transaction import Writing
from memoranda.text.phrase import Phrase
from memoranda.text.stored import compact_json


class _Going(NamedTuple):
    """A response that is erased, and how long the texts in it are."""

    seq: int
    id: str
    session: str
    characters: int


class Erasing:
    """The erasers of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    # --- responses ---------------------------------------------------------------------------------

    async def responses(self, run: Forgetting) -> None:
        """Responses with input, output, events and summary, and the items that they added to conversations; those under
        way are ended first."""
        aim = run.aim
        if not aim.other_data:
            return
        if run.erasing:
            await self.engine.give_up(aim)
        columns = "seq, id, session_id, status, body, input, output, summary"
        where = aim.condition(user="user_id", session="session_id", agent="agent_id", time="created_at")
        async for page in run.pages("responses", columns, where):
            going, cleared = [], []
            for seq, id_, session, status, *texts, summary in page:
                if aim.text is None or _contains(aim.text, *texts):
                    characters = sum(map(len, filter(None, [*texts, summary])))
                    going.append(_Going(seq, id_, session, characters))
                    if status in LIVE and run.erasing:
                        await self._cancel(run, id_)
                elif aim.text.within_json(summary):
                    cleared.append(id_)
            for some in parted(going, lambda response: response.characters, TEXTS):
                await self._added(run, some)
                await run.change(partial(_erased, going=some), {"responses": len(some)})
            if cleared:
                await run.change(partial(_cleared, ids=cleared), {"summaries": len(cleared)})
            run.ids |= {response.id for response in going}

    async def _added(self, run: Forgetting, going: Sequence[_Going]) -> None:
        """Erase the items that responses added to conversations: before the responses, by which they are found."""
        tenant = run.aim.tenant
        values = [tenant, compact_json([response.id for response in going])]
        items = await run.threads.run(
            run.store.db.read, lambda c: c.all("items_of_responses", values), tenant
        )
        for some in parted(items, lambda item: max(1, ROWS * item[2] / TEXTS), ROWS):
            await self._take_out(run, [(conversation, id_) for conversation, id_, _ in some])

    async def _take_out(self, run: Forgetting, items: Sequence[tuple[str, str]]) -> None:
        await run.change(partial(_taken_out, items=items), {"items": items})

    async def _cancel(self, run: Forgetting, id_: str) -> None:
        key = [run.aim.tenant, id_]
        row = await run.threads.run(run.store.db.read, lambda c: c.one("get_response", key), run.aim.tenant)
        if row is not None:
            await self.engine.background.cancel(ResponseRow._make(row))

    # --- conversations -----------------------------------------------------------------------------

    async def conversations(self, run: Forgetting) -> None:
        """Whole conversations, or the matching items in them, together with the summary of those items."""
        aim = run.aim
        if not aim.other_data:
            return
        where = replace(aim, since=None, until=None).condition(user="user_id", session="id")
        async for page in run.pages("conversations", "seq, id, metadata, summary", where):
            if aim.whole:
                await self._whole(run, [row[1] for row in page])
                continue
            for _, id_, metadata, summary in page:
                await self._items(run, id_)
                text = aim.text
                if text is not None and (text.within_json(metadata) or text.within_json(summary)):
                    blank = text.within_json(metadata)
                    await run.change(partial(_blanked, conversation=id_, metadata=blank), {"metadata": blank})

    async def _whole(self, run: Forgetting, ids: Sequence[str]) -> None:
        """Deletes conversations, with the items in them: of long ones the items first, in steps."""
        tenant = run.aim.tenant
        rows = await run.threads.run(
            run.store.db.read, lambda c: c.all("sizes_of_conversations", [tenant, compact_json(ids)]), tenant
        )
        weights = {id_: max(items, ROWS * characters / TEXTS) for id_, items, characters in rows}
        for some in parted(ids, lambda id_: 1 + weights.get(id_, 0.0), ROWS):
            for id_ in some if weights.get(some[0], 0.0) >= ROWS and run.erasing else ():
                while await self._shortened(run, id_):
                    pass
            items = () if run.erasing else await self._items_of(run, some)
            await run.change(partial(_dropped, ids=some), {"conversations": len(some), "items": items})
        run.ids |= set(ids)

    async def _items_of(self, run: Forgetting, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return the conversations and the ids of items: a preview may have counted them with their responses."""
        values = [run.aim.tenant, compact_json(ids)]
        rows = await run.threads.run(
            run.store.db.read, lambda c: c.all("items_of_conversations", values), run.aim.tenant
        )
        return [(conversation, id_) for conversation, id_ in rows]

    async def _shortened(self, run: Forgetting, id_: str) -> int:
        taken = 0

        def work(w: Writing) -> dict[str, int]:
            nonlocal taken
            taken = shortened(w.c, w.tenant, id_)
            return {"items": taken}

        await run.change(work)
        return taken

    async def _items(self, run: Forgetting, conversation: str) -> None:
        aim = run.aim
        where, values = "conversation_id = ?", list[Any]([conversation])
        for sign, at in ((">=", aim.since), ("<", aim.until)):
            if at is not None:
                where, values = f"{where} AND created_at {sign} ?", [*values, at]
        async for page in run.pages("conversation_items", "seq, id, item", (where, values)):
            ids = [id_ for _, id_, item in page if aim.text is None or _contains(aim.text, item)]
            if ids:
                await self._take_out(run, [(conversation, id_) for id_ in ids])

    # --- profiles ----------------------------------------------------------------------------------

    async def agents(self, run: Forgetting) -> None:
        """The profiles of users who are forgotten as a whole, and those that hold the phrase."""
        aim = run.aim
        if not (aim.whole or (aim.other_data and aim.text is not None)):
            return
        where = replace(aim, since=None, until=None).condition(user="user_id")
        async for page in run.pages("agents", "seq, id, name, body", where):
            ids = [id_ for _, id_, name, body in page if aim.text is None or _in(aim.text, name, body)]
            if ids:
                await run.change(partial(_unmade, ids=ids), {"agents": len(ids)})


def _contains(phrase: Phrase, *texts: str) -> bool:
    """Return True if a phrase is in the JSON of items, or packed in one of them."""
    return phrase.within_json(*texts) or phrase.within(*packed_in(*texts))


def _in(phrase: Phrase, name: str, body: str) -> bool:
    return phrase.within(name) or phrase.within_json(body)


def _erased(w: Writing, going: Sequence[_Going]) -> dict[str, int]:
    gone = 0
    w.note(("responses", response.id) for response in going)
    for response in going:
        w.c.run("drop_later_summaries", [w.tenant, response.session, response.seq])
        gone += w.c.run("drop_response", [w.tenant, response.id])
    return {"responses": gone}


def _cleared(w: Writing, ids: Sequence[str]) -> dict[str, int]:
    return {"summaries": sum(w.c.run("summarize_response", [None, None, w.tenant, id_]) for id_ in ids)}


def _dropped(w: Writing, ids: Sequence[str]) -> dict[str, int]:
    w.note(("conversations", id_) for id_ in ids)
    items = sum(number for _, number, _ in w.c.all("sizes_of_conversations", [w.tenant, compact_json(ids)]))
    return {
        "items": items,
        "conversations": sum(w.c.run("drop_conversation", [w.tenant, id_]) for id_ in ids),
    }


def _taken_out(w: Writing, items: Sequence[tuple[str, str]]) -> dict[str, int]:
    w.note(("conversation_items", *item) for item in items)
    for conversation in sorted({conversation for conversation, _ in items}):
        w.c.run("summarize_conversation", [None, w.tenant, conversation])
    return {"items": sum(w.c.run("drop_item", [w.tenant, conversation, id_]) for conversation, id_ in items)}


def _blanked(w: Writing, conversation: str, metadata: bool) -> dict[str, int]:
    w.c.run("summarize_conversation", [None, w.tenant, conversation])
    return {"metadata": w.c.run("set_conversation", ["{}", w.tenant, conversation]) if metadata else 0}


def _unmade(w: Writing, ids: Sequence[str]) -> dict[str, int]:
    w.note(("agents", id_) for id_ in ids)
    return {"agents": sum(w.c.run("drop_agent", [w.tenant, id_]) for id_ in ids)}


def feature(engine: Engine) -> Feature:
    """Declare the jobs and erasers of an engine, and its end: the workers end first, and leave background responses
    without output to another process."""
    background, erasing = engine.background, Erasing(engine)
    return Feature(
        jobs={
            SUMMARIZE_JOB: JobKind(engine.history.make, AGENT_LANE),
            RESPOND_JOB: JobKind(background.make, AGENT_LANE, ending=background.given_up, asked_again=True),
        },
        erasers=(erasing.responses, erasing.conversations, erasing.agents),
        close=engine.stop,
    )
