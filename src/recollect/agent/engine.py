"""From a request to a response under way: what is asked is checked and gathered, then the loop runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from recollect.agent import checks, records
from recollect.agent.attachments import Attachments
from recollect.agent.background import Background
from recollect.agent.context import remembered, told
from recollect.agent.counting import encoding_for, mark, tokens_of_items, tokens_of_messages, tokens_of_tools
from recollect.agent.declared import repeated
from recollect.agent.events import response_of_item
from recollect.agent.history import History, Past, fit
from recollect.agent.items import check_calls, checked, last_question
from recollect.agent.loop import Brief, Loop, past_sources
from recollect.agent.mcp_turns import MCP, Servers
from recollect.agent.merging import Effective
from recollect.agent.offers import choice, offers
from recollect.agent.profile_values import Profile
from recollect.agent.profiles import Agents
from recollect.agent.records import NewResponse
from recollect.agent.runs import ENDING, Run
from recollect.agent.summaries import compacted
from recollect.agent.tools.base import Tool, Turn
from recollect.agent.tools.mcp import approved
from recollect.agent.tools.memory import acting
from recollect.agent.tools.registry import tools_of
from recollect.agent.values import Item, Response, ResponseRequest, ResponseUsage
from recollect.config import Config
from recollect.db import Connection
from recollect.errors import InvalidInput, NotFound
from recollect.knowledge.records import new_id
from recollect.memories import Core
from recollect.models import Model
from recollect.models.base import Ask
from recollect.text import tokens
from recollect.types import Subject

log = logging.getLogger("recollect.agent")
ROOM_TO_ANSWER = 1_024
"""Tokens kept free for the answer when nothing says how many it may have."""


@dataclass(slots=True)
class Plan:
    """A request understood: what is asked, what came before, what is new, which tools there are."""

    subject: Subject
    effective: Effective
    past: Past
    input: list[Item]
    tools: list[Tool]
    turn: Turn
    encoding: str
    response: Response

    @property
    def request(self) -> ResponseRequest:
        """What is asked, with all that the agent adds."""
        return self.effective.request

    @property
    def new(self) -> NewResponse:
        """The response as it is stored."""
        return NewResponse(
            subject=self.subject,
            response=self.response,
            input=self.input,
            session_id=self.turn.session_id,
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """What a hook is told of a response that has ended and is stored."""

    subject: Subject
    response: Response
    input: Sequence[Item]
    turn: Turn
    past: Past


Hook = Callable[[Answered], Awaitable[None]]


class Engine:
    """Makes responses for every subject of one open library. `hooks` are called after each one that was stored, when
    nobody waits any more."""

    def __init__(
        self,
        core: Core,
        config: Config,
        model: Model,
        fallback: Model | None,
        history: History,
        configured: Sequence[Profile] = (),
    ) -> None:
        self.core = core
        self.config = config
        self.model = model
        self.history = history
        self.hooks: list[Hook] = [self._summarize]
        self.background = Background(core, self._resume)
        self._models = [model] if fallback is None else [model, fallback]
        self._configured = configured
        self._ready: set[str] = set()
        self._runs: set[Run] = set()
        self._after: set[asyncio.Task[None]] = set()

    async def start(self, subject: Subject, request: ResponseRequest) -> Run:
        """See `Responses.start`."""
        plan = await self._plan(subject, request)
        if request.background:
            return await self.background.queue(request, plan.new)
        run = Run(plan.response, request.include)
        self._begin(run, plan)
        return run

    async def _resume(
        self, subject: Subject, request: ResponseRequest, response: Response, first: int
    ) -> Run:
        """Makes a response that was queued. What is wrong by now (a store is gone) is its failure."""
        run = Run(response, request.include, first)
        try:
            plan = await self._plan(subject, request, response)
        except (InvalidInput, NotFound) as exc:
            failure = exc
            items = queued_items(request)
            new = NewResponse(subject=subject, response=response, input=items, session_id="")

            async def fail(_: Run) -> None:
                raise failure

            run.begin(fail, partial(self._store, new))
            return run
        self._begin(run, plan)
        return run

    def _begin(self, run: Run, plan: Plan) -> None:
        self._runs.add(run)
        task = run.begin(partial(self._work, plan), partial(self._end, plan))
        task.add_done_callback(lambda _: self._runs.discard(run))

    async def ready(self, encoding: str | None = None) -> None:
        """Has the tokens of a model at hand (None: the configured one): reading them takes about a second, once, in
        which the loop is free."""
        encoding = encoding or encoding_for(self.model.name)[0]
        if encoding not in self._ready:
            await self.core.threads.run(tokens.count, "a", encoding=encoding)
            self._ready.add(encoding)

    async def stop(self) -> None:
        """Ends what is under way, and waits for what comes after."""
        for run in list(self._runs):
            run.abandon(ENDING)
        for run in list(self._runs):
            await run.done()
        await self.history.close()
        while self._after:
            await asyncio.wait(set(self._after))
        for model in self._models:
            model.close()

    # --- understanding -----------------------------------------------------------------------------

    def agents(self, subject: Subject) -> Agents:
        """The profiles that a subject sees."""
        return Agents(self.core, subject, self._configured)

    async def _plan(self, subject: Subject, asked: ResponseRequest, response: Response | None = None) -> Plan:
        checks.check(asked)
        effective = await self.agents(subject).effective(asked, self.config)
        request = effective.request
        if effective.agent_id is not None:
            checks.check(request)
        items = checked(request.input) if response is None else queued_items(request)
        await Attachments(self.core, subject).read(items)
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
        mark(items)
        check_calls([*past.items, *items])
        approved([*past.items, *items])
        if response is None:
            response = self._response(effective)
        turn = self._turn(subject, effective, past, response, encoding)
        acting(turn)
        tools = tools_of(request.tools or [], self.config.responses)
        for tool in tools:
            await tool.check(turn)
        held = offers(request.tools or [], tools)
        self._servers(request)
        if not any(tool.get("type") == MCP for tool in request.tools or []):
            choice(request.tool_choice, held)
        return Plan(subject, effective, past, items, tools, turn, encoding, response)

    def _turn(
        self, subject: Subject, effective: Effective, past: Past, response: Response, encoding: str
    ) -> Turn:
        return Turn(
            core=self.core,
            subject=subject,
            settings=self.config.responses,
            session_id=past.session_id or response.id,
            agent_id=effective.agent_id,
            memory=checks.memory_of(effective.request),
            count=partial(tokens.count, encoding=encoding),
        )

    async def _referenced(self, subject: Subject, items: list[Item], past: Past) -> list[Item]:
        """The items with those in place that others only name. Items that the past has already are not said again."""
        if not any(item["type"] == "item_reference" for item in items):
            return items
        known = {item["id"]: item for item in past.items}
        found: list[Item] = []
        for i, item in enumerate(items):
            if item["type"] != "item_reference":
                found.append(item)
            elif item["id"] not in known:
                known |= await self._items_of(subject, response_of_item(item["id"]))
                if item["id"] not in known:
                    raise InvalidInput(f"input[{i}].id", f"Item with id '{item['id']}' not found.")
                found.append(known[item["id"]])
        return found

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
        told = {
            name: value
            for name in Response.__struct_fields__
            if name in SAME and (value := getattr(request, name)) is not None
        }
        conversation = checks.conversation_of(request)
        limit = request.max_output_tokens or self.config.model.max_output_tokens
        return Response(
            **told,
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

    # --- making ------------------------------------------------------------------------------------

    async def _work(self, plan: Plan, run: Run) -> None:
        request, response = plan.request, plan.response
        async with self._servers(request) as servers:
            found, images, _ = await asyncio.gather(
                remembered(plan.turn, plan.past, plan.input),
                Attachments(self.core, plan.subject).images([*plan.past.items, *plan.input]),
                servers.list(run.telling, plan.past.items),
            )
            held = offers(request.tools or [], [*plan.tools, *servers.tools])
            asked, only = choice(request.tool_choice, held)
            shapes = held.shapes(only)
            context = told(
                plan.turn, request.instructions, plan.past, found, self.config.model.context_tokens
            )
            past = self._fitted(plan, context.messages, shapes)
            response.extensions["memory"] = context.report(found)
            _note_history(response, past, plan.effective)
            brief = Brief(
                ask=self._ask(plan),
                system=context.messages,
                items=[*past.items, *plan.input],
                offers=held,
                turn=plan.turn,
                choice=asked,
                only=only,
                images=images,
                sources=[*past_sources([*past.items, *plan.input]), *context.sources],
                max_tool_calls=request.max_tool_calls or self.config.responses.max_tool_calls,
            )
            loop = Loop(brief, run.telling, self._models)
            loop.degraded.update(found.degraded)
            try:
                await servers.answer(loop, [*past.items, *plan.input])
                await loop.run()
            finally:
                _note_end(response, loop)

    def _servers(self, request: ResponseRequest) -> Servers:
        """The MCP servers of a request. Any may be called while only this machine can ask for it."""
        alone = self.config.server.host in ("127.0.0.1", "::1", "localhost")
        return Servers(request.tools or [], self.config.responses, alone)

    def _ask(self, plan: Plan) -> Ask:
        request = plan.request
        reasoning = request.reasoning or {}
        logprobs = "message.output_text.logprobs" in (request.include or [])
        return Ask(
            messages=[],
            parallel_tool_calls=request.parallel_tool_calls,
            model=request.model,
            max_tokens=plan.response.max_output_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            presence_penalty=request.presence_penalty,
            frequency_penalty=request.frequency_penalty,
            top_logprobs=request.top_logprobs or (0 if logprobs else None),
            response_format=checks.response_format(request.text),
            reasoning_effort=reasoning.get("effort"),
            verbosity=(request.text or {}).get("verbosity"),
            question=last_question(plan.input),
        )

    def _fitted(self, plan: Plan, system: list[dict[str, Any]], shapes: list[dict[str, Any]]) -> Past:
        """The past as far as the model can read it.

        Raises:
            ContextTooLong: it is too long, and must not be cut.
        """
        limit = self.config.model.context_tokens
        used = (
            tokens_of_messages(system, plan.encoding)
            + tokens_of_tools(shapes, plan.encoding)
            + tokens_of_items(plan.input, plan.encoding)
            + min(plan.response.max_output_tokens or ROOM_TO_ANSWER, limit // 2)
        )
        return fit(plan.past, used, limit, plan.request.truncation or "disabled", plan.input, plan.encoding)

    # --- afterwards --------------------------------------------------------------------------------

    async def _end(self, plan: Plan, run: Run) -> None:
        self._tally(plan.response)
        await self._store(plan.new, run)
        if plan.response.store:
            task = asyncio.create_task(self._follow_up(plan))
            self._after.add(task)
            task.add_done_callback(self._after.discard)

    def _tally(self, response: Response) -> None:
        counts = {f"responses.{response.status}": 1}
        counts["response_tokens.input"] = response.usage.input_tokens
        counts["response_tokens.output"] = response.usage.output_tokens
        told = response.extensions.get("memory", {}).get("retrieved", ())
        counts["memories_told"] = sum(one["used"] for one in told)
        counts["responses_quoted"] = int(response.extensions.get("answered_by") == "extractive")
        self.core.tally.update(counts)
        self.core.tally.update(
            "tool_calls.failed" if item["status"] == "failed" else "tool_calls.completed"
            for item in response.output
            if item["type"] in ("file_search_call", "mcp_call")
        )

    async def _store(self, new: NewResponse, run: Run) -> None:
        response, tenant = new.response, new.subject.tenant_id
        mark(response.output)
        if response.background:
            await self.background.end(new)
        elif response.store:
            await self.core.threads.result(
                self.core.store.db.write(lambda c: records.add(c, new), tenant=tenant)
            )

    async def _follow_up(self, plan: Plan) -> None:
        answered = Answered(plan.subject, plan.response, plan.input, plan.turn, plan.past)
        for hook in self.hooks:
            try:
                await hook(answered)
            except Exception as exc:
                log.error("what follows the response %s failed", plan.response.id, exc_info=exc)

    async def _summarize(self, answered: Answered) -> None:
        response = answered.response
        await self.history.answered(
            answered.subject.tenant_id,
            answered.past,
            [*answered.input, *response.output],
            response_id=response.id,
            conversation_id=response.conversation["id"] if response.conversation else None,
        )

    # --- beside responses --------------------------------------------------------------------------

    async def input_tokens(self, subject: Subject, request: ResponseRequest) -> int:
        """See `Responses.input_tokens`."""
        plan = await self._plan(subject, request)
        held = offers(plan.request.tools or [], plan.tools)
        found = await remembered(plan.turn, plan.past, plan.input)
        context = told(
            plan.turn, plan.request.instructions, plan.past, found, self.config.model.context_tokens
        )
        return (
            tokens_of_messages(context.messages, plan.encoding)
            + tokens_of_tools(held.shapes(), plan.encoding)
            + tokens_of_items([*plan.past.items, *plan.input], plan.encoding)
        )

    async def compact(self, subject: Subject, request: ResponseRequest) -> dict[str, Any]:
        """See `Responses.compact`."""
        if request.input is None:
            request = msgspec.structs.replace(request, input=[])
        plan = await self._plan(subject, request)
        items = [*plan.past.items, *plan.input]
        if not items:
            raise InvalidInput("input", "holds nothing to compact, nor does what came before")
        output = await compacted(items, self.model, self.config.summarization)
        before = tokens_of_items(items, plan.encoding)
        after = tokens_of_items(output, plan.encoding)
        usage = ResponseUsage(input_tokens=before, output_tokens=after, total_tokens=before + after)
        return {"id": new_id("cmp_"), "created_at": int(time.time()), "output": output, "usage": usage}


SAME = frozenset(
    {
        "instructions", "max_tool_calls", "parallel_tool_calls", "previous_response_id", "prompt_cache_key",
        "reasoning", "safety_identifier", "service_tier", "temperature", "top_p", "presence_penalty",
        "frequency_penalty", "top_logprobs", "truncation", "metadata",
    }
)  # fmt: skip
"""Fields that a response repeats as they were asked."""


def queued_items(request: ResponseRequest) -> list[Item]:
    """The input of a request that was queued: it was checked then, and has what its files said."""
    assert isinstance(request.input, list)
    return request.input


def _note_history(response: Response, past: Past, effective: Effective) -> None:
    if past.turns or past.dropped or past.broken:
        response.extensions["history"] = {
            "turns": past.turns,
            "dropped": past.dropped,
            "broken": past.broken,
            "summarized": past.summary is not None,
            "notes": past.notes,
        }
    if effective.left_out:
        response.extensions["stores_left_out"] = effective.left_out


def _note_end(response: Response, loop: Loop) -> None:
    if loop.answered_by:
        response.extensions["answered_by"] = loop.answered_by
    response.extensions["degraded"] = sorted(loop.degraded)
