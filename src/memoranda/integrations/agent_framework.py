"""Microsoft Agent Framework: `MemorandaContextProvider` and `MemorandaHistoryProvider`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memoranda.integrations.frameworks import require

require("agent_framework", "agent-framework-core")

from agent_framework import ContextProvider, HistoryProvider, Message  # noqa: E402 - says first what is missing

from memoranda.errors import InvalidInput  # noqa: E402
from memoranda.integrations import payloads  # noqa: E402
from memoranda.integrations.conversing import HEADING, Conversing  # noqa: E402
from memoranda.integrations.logs import Line, Logs  # noqa: E402
from memoranda.integrations.products import Product, memories_of  # noqa: E402

if TYPE_CHECKING:
    from agent_framework import AgentSession, SessionContext, SupportsAgentRun

SAID = ("user", "assistant")
"""The roles whose messages are observed."""


class MemorandaContextProvider(ContextProvider):
    """Gives an agent memory in a folder or on a server of Memoranda.

    Before a run, a message with the memories for the input is added, of at most `budget` tokens. After it, the messages
    of the user and the agent are stored in the session of the run, unless `observe` is false. `user_id` owns the
    memories. Both run in worker threads.
    """

    def __init__(
        self,
        product: Product,
        *,
        user_id: str | None = None,
        budget: int = 1_000,
        observe: bool = True,
        source_id: str = "memoranda",
    ) -> None:
        super().__init__(source_id)
        self._conversing = Conversing(product, budget)
        self._user_id = user_id
        self._observe = observe

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Adds the memories for the input."""
        query = "\n\n".join(message.text for message in context.input_messages if message.text)
        memories = await asyncio.to_thread(self._recall, query, context.session_id)
        if memories:
            context.extend_messages(self, [Message("user", [f"{HEADING}\n\n{memories}"])])

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Stores the messages of the run."""
        answers = context.response.messages if context.response is not None else []
        said = [
            {"role": message.role, "content": message.text}
            for message in [*context.input_messages, *answers]
            if message.role in SAID and message.text
        ]
        if self._observe:
            await asyncio.to_thread(self._keep, said, context.session_id)

    def _recall(self, query: str, session_id: str | None) -> str:
        return self._conversing.recall(query, user_id=self._user_id, session_id=session_id)

    def _keep(self, said: list[dict[str, Any]], session_id: str | None) -> None:
        self._conversing.observe(said, user_id=self._user_id, session_id=session_id)


class MemorandaHistoryProvider(HistoryProvider):
    """Chat histories in a folder or on a server of Memoranda.

    A message is one memory of kind `item`, or several if it is long, found by its text; other searches of the product
    see items only if they name that kind. Histories belong to the user `user_id`, or to the tenant; `name` keeps
    several sets of histories apart. The further arguments are those of `HistoryProvider`. Methods run in worker
    threads.
    """

    def __init__(
        self,
        product: Product,
        *,
        user_id: str | None = None,
        name: str = "agent-framework-history",
        source_id: str = "memoranda_history",
        **fields: Any,
    ) -> None:
        super().__init__(source_id, **fields)
        self._logs = Logs(memories_of(product), name, user_id)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The messages of a session, oldest first.

        Raises:
            InvalidInput: no session is named.
        """
        values = await asyncio.to_thread(self._logs.read, _place(session_id))
        return [Message.from_dict(value) for value in values]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Adds messages to the end of a session's history.

        Raises:
            InvalidInput: no session is named, or a message cannot be stored.
        """
        place, lines = _place(session_id), [_line(message) for message in messages]
        if lines:
            await asyncio.to_thread(self._logs.append, place, lines, session_id)

    async def delete_messages(self, session_id: str | None) -> None:
        """Erases the history of a session."""
        await asyncio.to_thread(self._logs.erase, _place(session_id))


def _place(session_id: str | None) -> dict[str, str]:
    if not session_id:
        raise InvalidInput("session_id", "is missing; run the agent with session=agent.create_session()")
    return {"session": session_id}


def _line(message: Message) -> Line:
    id_ = str(uuid4())
    return Line(id_, message.to_dict(), payloads.searchable([message.text or ""], f"{message.role} {id_}"))
