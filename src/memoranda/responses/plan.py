"""Planning of a request: every mistake of the caller is reported here, before anything begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from memoranda.config.agent_sections import Responses as Settings
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput, NotFound
from memoranda.providers.chat.base import Model
from memoranda.responses import checks, records
from memoranda.responses.attachments import Attachments
from memoranda.responses.citations import cite_again
from memoranda.responses.declared import repeated
from memoranda.responses.events import response_of_item
from memoranda.responses.history import History, Past
from memoranda.responses.items import check_calls, checked
from memoranda.responses.messages import encoding_for, mark
from memoranda.responses.offers import choice, offers
from memoranda.responses.profile_values import Effective, Profile
from memoranda.responses.profiles import Agents
from memoranda.responses.records import NewResponse, encoded
from memoranda.responses.tools.base import Tool, Turn, acting
from memoranda.responses.tools.files import FileSearch
from memoranda.responses.tools.forget import FORGET, MemoryForget, asked_before, listed_before
from memoranda.responses.tools.mcp import MCP, Servers, approved
from memoranda.responses.tools.memory import MemorySearch, MemoryWrite
from memoranda.responses.values import Exchange, Item, Response, ResponseRequest, last_question
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.ids import new_id
from memoranda.text import tokens
from memoranda.types import Subject

Make = Callable[[dict[str, Any], Settings, str], Tool]

TYPES: dict[str, Make] = {
    "file_search": FileSearch.declared,
    "memory_search": MemorySearch.declared,
    "vector_memory_search": MemorySearch.declared,
    "memory_write": MemoryWrite.declared,
    "vector_memory_write": MemoryWrite.declared,
    "memory_forget": MemoryForget.declared,
    "vector_memory_forget": MemoryForget.declared,
}
"""The declared types of built-in tools."""


def tools_of(declared: Sequence[dict[str, Any]], settings: Settings) -> list[Tool]:
    """The built-in tools among those declared, in their order; other types are ignored.

    Raises:
        InvalidInput: a field is wrong; it is named as `tools[i].field`.
    """
    return [
        TYPES[str(raw["type"])](raw, settings, f"tools[{i}]")
        for i, raw in enumerate(declared)
        if raw.get("type") in TYPES
    ]


SAME = frozenset(
    {
        "instructions", "max_tool_calls", "parallel_tool_calls", "previous_response_id", "prompt_cache_key",
        "reasoning", "safety_identifier", "service_tier", "temperature", "top_p", "presence_penalty",
        "frequency_penalty", "top_logprobs", "truncation", "metadata",
    }
)  # fmt: skip
"""Fields that a response repeats as they were asked."""

LONG = 100_000
"""Bytes of JSON whose tokens are counted on a thread."""


class Plan(msgspec.Struct):
    """A planned request: its fields, its history, its new input, its tools; `unasked` is the one of them that the
    request does not declare."""

    subject: Subject
    effective: Effective
    past: Past
    input: list[Item]
    tools: list[Tool]
    turn: Turn
    encoding: str
    images: dict[str, str]
    response: Response
    exchange: Exchange | None = None
    unasked: Tool | None = None

    @property
    def request(self) -> ResponseRequest:
        """The request merged with its agent profile."""
        return self.effective.request

    @property
    def new(self) -> NewResponse:
        """The response as it is stored: its owner is the user for whom it is made, not the caller."""
        return NewResponse(
            subject=acting(self.turn),
            response=self.response,
            input=self.input,
            session_id=self.turn.session_id,
        )


class Planning:
    """Plans requests, for every subject of one open library."""

    def __init__(
        self, core: Core, config: Config, model: Model, history: History, configured: Sequence[Profile]
    ) -> None:
        self.core = core
        self.config = config
        self.model = model
        self.history = history
        self._configured = configured
        self.without_tools: set[str] = set()
        """Names of models that refused requests because these offered tools."""
        self._ready: set[str] = set()

    def agents(self, subject: Subject) -> Agents:
        """The profiles that a subject sees."""
        return Agents(self.core, subject, self._configured)

    async def plan(
        self,
        subject: Subject,
        asked: ResponseRequest,
        response: Response | None = None,
        exchange: Exchange | None = None,
    ) -> Plan:
        """The plan of a request; `response` is the one that was queued for it, if any, and `exchange` says how a
        request is answered that brings its whole conversation.

        Raises:
            InvalidInput: a field is wrong.
            NotFound: a store, an agent or a conversation is not there for this subject.
            Forbidden: it names a user for whom the key does not act.
        """
        asked = checks.flattened(asked)
        checks.check(asked)
        effective = await self.agents(subject).effective(asked, self.config)
        request = effective.request
        if effective.agent_id is not None:
            checks.check(request)
        items = checked(request.input) if response is None else queued_items(request)
        attachments = Attachments(self.core, subject)
        await attachments.read(items)
        images = await attachments.images(items)
        encoding, _ = encoding_for(request.model or self.model.name)
        await self.ready(encoding)
        past = await self.history.load(
            subject,
            previous_response_id=request.previous_response_id,
            conversation_id=checks.conversation_of(request),
            new=items,
            encoding=encoding,
            settings=effective.summarization,
        )
        items = await self._referenced(subject, items, past)
        if is_long(items):  # counting takes a second for some millions of characters
            await self.core.threads.run(mark, items)
        mark(items)
        check_calls([*past.items, *items])
        approved([*past.items, *items])
        if response is None:
            response = self._response(effective)
        turn = self._turn(subject, effective, past, items, response, encoding, exchange)
        acting(turn)
        tools = tools_of(request.tools or [], self.config.responses)
        unasked = self._unasked(turn, exchange, response.model)
        if unasked is not None:
            tools.append(unasked)
        for tool in tools:
            await tool.check(turn)
        offered = offers(request.tools or [], tools)
        self.servers(request)
        if not any(tool.get("type") == MCP for tool in request.tools or []):
            choice(request.tool_choice, offered)
        return Plan(
            subject, effective, past, items, tools, turn, encoding, images, response, exchange, unasked
        )

    def _turn(
        self,
        subject: Subject,
        effective: Effective,
        past: Past,
        items: Sequence[Item],
        response: Response,
        encoding: str,
        exchange: Exchange | None,
    ) -> Turn:
        memory = checks.memory_of(effective.request)
        unplaced = memory.session_id is memory.channel_id is None
        stored = response.store
        if exchange is not None:
            unplaced, stored = exchange.unplaced, exchange.observed
        if memory.user_id is None and subject.user_id is None:
            memory = msgspec.structs.replace(memory, user_id=past.user_id)
        return Turn(
            core=self.core,
            subject=subject,
            settings=self.config.responses,
            session_id=past.session_id or response.id,
            agent_id=effective.agent_id,
            memory=memory,
            count=partial(tokens.count, encoding=encoding),
            response_id=response.id,
            # the messages of an exchange have no calls of our tools
            listed=listed_before([*past.items, *items]) if exchange is None else None,
            said=last_question(items, past.items),
            asked=asked_before([*past.items, *items]),
            everywhere=unplaced
            and memory.user_id is subject.user_id is None
            and not (stored and self._shared(subject.tenant_id)),
        )

    def _unasked(self, turn: Turn, exchange: Exchange | None, model: str) -> Tool | None:
        """Return the tool that forgets, where an exchange offers it, memory is on and the model may take tools."""
        retrieval = turn.memory.retrieval
        on = self.config.responses.memory if retrieval is None else retrieval
        takes_tools = not self.model.quotes_only and model not in self.without_tools
        return MemoryForget(FORGET) if exchange and exchange.forgets and on and takes_tools else None

    def _shared(self, tenant_id: str) -> bool:
        """Return True if a key of the tenant is not an admin's, or bound to a user: it may read what is stored without
        a user, but not what belongs to users."""
        keys = [key for key in self.config.keys if key.tenant == tenant_id]
        return any(key.role != "admin" or key.user is not None for key in keys)

    async def _referenced(self, subject: Subject, items: list[Item], past: Past) -> list[Item]:
        """The items with references replaced by the items they name; searches that are sent back are read from the
        store, so that they can be cited again. Items that are in the past already are skipped."""
        seen = {item["id"] for item in past.items}
        known: dict[str, dict[str, Item]] = {}
        resolved: list[Item] = []
        for i, item in enumerate(items):
            if item["type"] in ("item_reference", "file_search_call"):
                if item["id"] in seen:
                    continue
                of = response_of_item(item["id"])
                if of not in known:
                    known[of] = await self._items_of(subject, of)
                if item["type"] == "item_reference" and item["id"] not in known[of]:
                    raise InvalidInput(f"input[{i}].id", f"Item with id '{item['id']}' not found.")
                seen.add(item["id"])
                item = known[of].get(item["id"], item)
            resolved.append(item)
        cite_again(resolved, past.items)
        return resolved

    async def _items_of(self, subject: Subject, response_id: str) -> dict[str, Item]:
        def read(c: Connection) -> dict[str, Item]:
            try:
                row = records.response_seen(c, subject, response_id)
            except NotFound:
                return {}
            return {item["id"]: item for item in row.output_items}

        return await self.core.threads.run(self.core.store.db.read, read, subject.tenant_id)

    def _response(self, effective: Effective) -> Response:
        request = effective.request
        repeated_fields = {
            name: value
            for name in Response.__struct_fields__
            if name in SAME and (value := getattr(request, name)) is not None
        }
        conversation = checks.conversation_of(request)
        limit = request.max_output_tokens or self.config.model.max_output_tokens
        return Response(
            **repeated_fields,
            id=new_id("resp_"),
            created_at=int(time.time()),
            status="in_progress",
            model=request.model or self.model.name,
            conversation=None if conversation is None else {"id": conversation},
            text={"format": {"type": "text"}} | (request.text or {}),
            tools=[repeated(tool) for tool in request.tools or []],
            tool_choice="auto" if request.tool_choice is None else request.tool_choice,
            store=request.store is not False,
            background=bool(request.background),
            max_output_tokens=limit,
            agent_id=effective.agent_id,
            user=msgspec.UNSET if request.user is None else request.user,
        )

    def servers(self, request: ResponseRequest) -> Servers:
        """The MCP servers of a request. Any may be called while only this machine can ask for it."""
        alone = self.config.server.host in ("127.0.0.1", "::1", "localhost") and not self.config.keys
        return Servers(request.tools or [], self.config.responses, alone)

    async def ready(self, encoding: str | None = None) -> None:
        """Load the tokenizer of a model (None: the configured one): this takes about a second, once, on a thread."""
        encoding = encoding or encoding_for(self.model.name)[0]
        if encoding not in self._ready:
            await self.core.threads.run(tokens.count, "a", encoding=encoding)
            self._ready.add(encoding)


def is_long(*said: Any) -> bool:
    """Return True if counting the tokens would block the event loop."""
    return len(encoded(said)) > LONG


def queued_items(request: ResponseRequest) -> list[Item]:
    """The input of a request that was queued: it was checked then, and contains the texts of its files."""
    assert isinstance(request.input, list)
    return request.input
