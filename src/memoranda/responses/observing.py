"""What is said in a stored response goes into the message log, in the transaction that stores it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound
from memoranda.responses.items import OUTPUTS, output_text, text_of
from memoranda.responses.tools.base import Turn
from memoranda.responses.tools.memory import acting, places
from memoranda.responses.turns import turns_of
from memoranda.responses.values import Item, Response
from memoranda.sessions.pending_write import Ready, changed
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.values import NewMessage
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core

log = logging.getLogger("memoranda.responses")
T = TypeVar("T")
TOOL = "tool"


class Heard:
    """What a response said and was asked, to be kept with it."""

    def __init__(self, turn: Turn, new: Sequence[Item], response: Response) -> None:
        self._turn = turn
        self._response = response
        tools = TOOL in turn.core.config.sessions.roles
        asked = turns_of(new)[-1:]
        self._said = [
            (item["id"], role, text)
            for item in [*(item for some in asked for item in some), *response.output]
            if (role := _role(item, tools)) and (text := _text(item).strip())
        ]

    async def ready(self, named: bool) -> Ready | None:
        """The messages as the log keeps them: what the user said last and what was answered; what tools said, where
        that is to be found. None where nothing was answered. With `named` under the ids of their items."""
        turn = self._turn
        if not any(role == "assistant" for _, role, _ in self._said):
            return None
        return await Sessions(turn.core, acting(turn)).prepare(
            [
                NewMessage(content=text, role=role, id=id_ if named else None)
                for id_, role, text in self._said
            ],
            session_id=places(turn)["session"],
            channel_id=turn.memory.channel_id,
            agent_id=turn.agent_id,
            extraction=turn.memory.extraction,
            response_id=self._response.id,
        )


async def stored(core: Core, tenant: str, work: Callable[[Connection], bool], heard: Heard | None) -> None:
    """Writes a response by `work`, which says whether it did, and with it what was heard. A response is stored though
    what it said cannot be kept."""
    for named in (True, False) if heard is not None else ():
        assert heard is not None
        try:
            said = await heard.ready(named)
            if said is None:
                break
            await _together(core, tenant, work, said)
            return
        except (Conflict, Forbidden, InvalidInput, NotFound) as exc:
            log.warning("what a response said is not in the message log: %s", exc)
    await core.threads.result(core.store.db.write(work, tenant=tenant))


async def _together(core: Core, tenant: str, work: Callable[[Connection], bool], said: Ready) -> None:
    written = await changed(core, tenant, lambda w: said.write(w) if work(w.c) else [], Ready.woken)
    if written:
        said.told(written)


def _role(item: Item, tools: bool) -> str:
    """In whose role an item speaks; "" for one that is not kept."""
    kind = item.get("type", "message")
    if kind == "message":
        return item["role"] if item["role"] in ("user", "assistant") else ""
    return TOOL if tools and kind in (*OUTPUTS, "mcp_call") else ""


def _text(item: Item) -> str:
    return text_of(item) if item.get("type", "message") == "message" else output_text(item)
