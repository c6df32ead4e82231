"""Messages of a stored response are written to the message log, in the transaction that stores it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound
from memoranda.responses.events import response_of_item
from memoranda.responses.messages import turns_of
from memoranda.responses.tools.base import Turn, acting, places
from memoranda.responses.tools.forget import is_forget_call
from memoranda.responses.values import CALLS, OUTPUTS, QUOTING, Item, Response, output_text, text_of
from memoranda.sessions.message_drafts import Ready, changed
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.values import NewMessage
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.ids import listed
from memoranda.text.hashing import digest
from memoranda.text.stored import storable
from memoranda.types import Through

log = logging.getLogger("memoranda.responses")
T = TypeVar("T")
TOOL = "tool"
WAITING = (*CALLS, "mcp_approval_request")
"""Types of items with which a response ends until the client goes on."""
DAY = 86_400
"""Seconds."""


class Heard:
    """The question and the output of a response, as messages for the log."""

    def __init__(self, turn: Turn, past: Sequence[Item], new: Sequence[Item], response: Response) -> None:
        self._turn = turn
        self._response = response
        self._response_id: str | None = response.id
        self._completed = response.status == "completed"
        asked = [item for some in turns_of(new)[-1:] for item in some]
        before = [item for some in turns_of(past)[-1:] for item in some]
        forgets = any(map(is_forget_call, (*before, *asked, *response.output)))
        self._said = self._spoken([*asked, *response.output], only_user=forgets)
        called = max((at for at, item in enumerate(asked) if item["type"] in WAITING), default=None)
        self._caller = None if called is None else response_of_item(asked[called]["id"])
        self._before_call = len(self._spoken(asked[:called], only_user=forgets))

    def _spoken(self, items: Sequence[Item], *, only_user: bool = False) -> list[tuple[str, str, str]]:
        """Return id, role and text of each item that is logged. `only_user` is for a call of `memory_forget` in this
        turn or the one before: answers repeat what is to be forgotten."""
        tools = TOOL in self._turn.core.config.sessions.roles
        return [
            (item["id"], role, text)
            for item in items
            if (role := _role(item, tools)) and (text := _text(item).strip())
            if role == "user" or not only_user
        ]

    async def ready(self, named: bool) -> Ready | None:
        """The messages for the log: the user's last message, the answer, and tool outputs if the configuration logs
        them. None if there are none, or if the response ended early without an answer. With `named` the messages have
        the ids of their items. An answer that only quotes is not searched: it says what was found before, or that
        nothing was."""
        turn, said = self._turn, await self._unlogged()
        answered = self._completed or any(role == "assistant" for _, role, _ in said)
        if not said or not answered:
            return None
        subject = replace(acting(turn), through=Through(read=tuple(turn.reading.names)))
        ready = await Sessions(turn.core, subject).prepare(
            [NewMessage(content=text, role=role, id=id_ if named else None) for id_, role, text in said],
            session_id=places(turn)["session"],
            channel_id=turn.memory.channel_id,
            agent_id=None if turn.memory.share else turn.agent_id,
            extraction=turn.memory.extraction,
            response_id=self._response_id,
        )
        quoted = self._response.extensions.get("answered_by") == QUOTING
        return ready.not_searched("assistant") if quoted else ready

    def lost(self) -> None:
        """Note in the response that its messages are not in the log."""
        extensions = self._response.extensions
        extensions["degraded"] = sorted({*extensions.get("degraded", ()), "messages"})

    async def _unlogged(self) -> list[tuple[str, str, str]]:
        """The messages without those before a call that a client sends back: they were logged with the response that
        made the call, if that is stored."""
        core, tenant = self._turn.core, self._turn.subject.tenant_id
        if self._caller is None:
            return self._said
        wanted = [tenant, listed([self._caller])]
        rows = await core.threads.run(core.store.db.read, lambda c: c.all("responses_there", wanted), tenant)
        return self._said[self._before_call :] if rows else self._said


class Exchanged(Heard):
    """The new part of a conversation that is sent as a whole, and its answer. A message has the same id whenever it is
    sent with the same messages before it, in the same session, for the same user and on the same day (UTC)."""

    def __init__(self, turn: Turn, conversation: Sequence[Item], response: Response) -> None:
        super().__init__(turn, (), conversation, response)
        self._response_id = self._caller = None
        earlier = [item for some in turns_of(conversation)[:-1] for item in some]
        where = [acting(turn).user_id or "", places(turn)["session"], str(response.created_at // DAY)]
        self._said = _chained(digest(*where), self._spoken(earlier), self._said)


def _chained(
    start: str, earlier: Sequence[tuple[str, str, str]], said: Sequence[tuple[str, str, str]]
) -> list[tuple[str, str, str]]:
    """Return the messages with ids that are a digest of each message and of all before it."""
    chain, chained = start, []
    for _, role, text in (*earlier, *said):
        chain = digest(chain, role, text)
        chained.append((f"msg_{chain}", role, text))
    return chained[len(earlier) :]


async def store_exchange(core: Core, tenant: str, said: Exchanged) -> None:
    """Write messages without a response. If they cannot be stored, the response says so, and the reason is logged."""
    await _store_with_messages(core, tenant, lambda _: True, said)


async def stored(core: Core, tenant: str, work: Callable[[Connection], bool], heard: Heard | None) -> None:
    """Write a response by `work`, which returns whether it did, together with the messages in `heard`. A response is
    stored even if its messages cannot be stored, and says so then."""
    if heard is None or not await _store_with_messages(core, tenant, work, heard):
        await core.threads.result(core.store.db.write(work, tenant=tenant))


async def _store_with_messages(
    core: Core, tenant: str, work: Callable[[Connection], bool], heard: Heard
) -> bool:
    """Write the messages in `heard`, together with `work`. Return False if there are none, or if they cannot be stored:
    then nothing was written."""
    for named in (True, False):
        try:
            ready = await heard.ready(named)
            if ready is None:
                return False
            await _together(core, tenant, work, ready)
            return True
        except (Conflict, Forbidden, InvalidInput, NotFound) as exc:
            log.warning("what a response said is not in the message log: %s", exc)
    heard.lost()
    return False


async def _together(core: Core, tenant: str, work: Callable[[Connection], bool], messages: Ready) -> None:
    written = await changed(core, tenant, lambda w: messages.write(w) if work(w.c) else [], Ready.woken)
    if written:
        messages.observed(written)


def _role(item: Item, tools: bool) -> str:
    """The role of an item in the log; "" for one that is not logged."""
    kind = item.get("type", "message")
    if kind == "message":
        return item["role"] if item["role"] in ("user", "assistant") else ""
    return TOOL if tools and kind in (*OUTPUTS, "mcp_call") else ""


def _text(item: Item) -> str:
    text = text_of(item) if item.get("type", "message") == "message" else output_text(item)
    return storable(text)
