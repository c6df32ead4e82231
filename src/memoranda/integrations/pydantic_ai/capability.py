"""Memory as a capability of a Pydantic AI agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, TextPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from memoranda.integrations.conversing import HEADING, Conversing
from memoranda.integrations.products import Product, memories_of

Deps = TypeVar("Deps")
User: TypeAlias = str | Callable[[Any], str | None] | None
"""A user's id, or a function that returns it for the `deps` of a run."""


class MemorandaMemory(AbstractCapability[Any]):
    """Gives an agent memory in a folder or on a server of Memoranda.

    Memories for the prompt are added to the model request but not to the history, in at most `budget` tokens (0: none).
    With `observe`, the messages of the user and the agent are stored after each run, once, in the session of the
    conversation. With `tools`, the agent has the tools `recall` and `remember`.

    `user_id` is the owner of the memories, or a function of the run's `deps` that returns it.
    """

    def __init__(
        self,
        product: Product,
        *,
        user_id: User = None,
        budget: int = 1_000,
        observe: bool = True,
        tools: bool = True,
    ) -> None:
        self._conversing = Conversing(product, max(budget, 1))
        self._memories = memories_of(product)
        self._user = user_id
        self._budget = budget
        self._observe = observe
        self._tools = tools
        self._recalled: str | None = None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a product cannot be written in a specification."""
        return None

    async def for_run(self, ctx: RunContext[Any]) -> MemorandaMemory:
        """A copy for one run, which searches memory once."""
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__, _recalled=None)
        return copied

    def get_toolset(self) -> AbstractToolset[Any] | None:
        """The tools `recall` and `remember`; None without `tools`."""
        if not self._tools:
            return None

        async def recall(ctx: RunContext[Any], query: str) -> list[str]:
            """Search what is remembered about the user and earlier conversations.

            Args:
                query: What is looked for, in a few words.
            """
            return await asyncio.to_thread(self._recall, query, self._user_of(ctx))

        async def remember(ctx: RunContext[Any], text: str) -> str:
            """Remember something for later conversations.

            Args:
                text: One fact, in a sentence that is understood without the conversation.
            """
            await asyncio.to_thread(self._remember, text, self._user_of(ctx))
            return "Remembered."

        return FunctionToolset([recall, remember], id="memoranda")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Adds the memories for the prompt to the run's first request."""
        if self._recalled is None:
            self._recalled = await self._recall_context(ctx)
        if self._recalled:
            part = UserPromptPart(f"{HEADING}\n\n{self._recalled}")
            messages = list(request_context.messages)
            place = _first_of_run(messages, ctx.run_id)
            messages[place] = replace(messages[place], parts=[part, *messages[place].parts])
            request_context.messages = messages
        return request_context

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Stores the messages of the run."""
        if self._observe:
            said = list(_said(result.new_messages(), ctx.run_id))
            place = {"user_id": self._user_of(ctx), "session_id": ctx.conversation_id}
            await asyncio.to_thread(lambda: self._conversing.observe(said, **place))
        return result

    async def _recall_context(self, ctx: RunContext[Any]) -> str:
        query = _text(ctx.prompt)
        if not self._budget:
            return ""
        place = {"user_id": self._user_of(ctx), "session_id": ctx.conversation_id}
        return await asyncio.to_thread(lambda: self._conversing.recall(query, **place))

    def _user_of(self, ctx: RunContext[Any]) -> str | None:
        return self._user(ctx.deps) if callable(self._user) else self._user

    def _recall(self, query: str, user: str | None) -> list[str]:
        place: dict[str, Any] = {} if user is None else {"scopes": [f"user:{user}", "global"]}
        return [hit.memory.content for hit in self._memories.search(query, **place).results]

    def _remember(self, text: str, user: str | None) -> None:
        place: dict[str, Any] = {} if user is None else {"user_id": user}
        self._memories.add(text, **place)


def _first_of_run(messages: Sequence[ModelMessage], run_id: str | None) -> int:
    """The position of the run's first request: later requests of the run repeat the memories added there."""
    requests = [place for place, message in enumerate(messages) if isinstance(message, ModelRequest)]
    own = (place for place in requests if run_id is not None and messages[place].run_id == run_id)
    return next(own, requests[-1])


def _said(messages: Sequence[ModelMessage], run_id: str | None) -> Iterator[dict[str, Any]]:
    """The messages of the user and the agent, to be observed."""
    for number, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            role = "user"
            texts = [_text(part.content) for part in message.parts if isinstance(part, UserPromptPart)]
        else:
            role = "assistant"
            texts = [part.content for part in message.parts if isinstance(part, TextPart)]
        at = {} if message.timestamp is None else {"occurred_at": message.timestamp}
        yield {"id": f"{run_id}-{number}", "role": role, "content": "\n\n".join(filter(None, texts)), **at}


def _text(content: Any) -> str:
    """The texts of a prompt."""
    if isinstance(content, str):
        return content
    parts = (part if isinstance(part, str) else getattr(part, "content", None) for part in content or ())
    return "\n\n".join(part for part in parts if isinstance(part, str))
