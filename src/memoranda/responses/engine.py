"""From a plan to a running response: gather its context, run the loop, store the end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from memoranda.config.sections import Config
from memoranda.errors import Forbidden, InvalidInput, NotFound
from memoranda.providers.chat.base import Ask, Model, TokenUsage
from memoranda.providers.chat.model_size import is_small
from memoranda.responses import checks, records
from memoranda.responses.attachments import Attachments
from memoranda.responses.background import Background
from memoranda.responses.citations import past_sources
from memoranda.responses.context import Remembered, count_used, prompt, remembered
from memoranda.responses.events import item_id
from memoranda.responses.history import History, Past
from memoranda.responses.loop import Brief, Loop
from memoranda.responses.messages import mark, tokens_of_items, tokens_of_messages, tokens_of_tools
from memoranda.responses.observing import Exchanged, Heard, store_exchange, stored
from memoranda.responses.offers import choice, offers
from memoranda.responses.plan import Plan, Planning, is_long, queued_items
from memoranda.responses.profile_values import Effective, Profile
from memoranda.responses.profiles import Agents
from memoranda.responses.records import NewResponse, body_of, encoded
from memoranda.responses.runs import ENDING, Run
from memoranda.responses.summaries import compacted
from memoranda.responses.tools.base import Turn, acting, places
from memoranda.responses.truncation import fitted
from memoranda.responses.values import (
    QUOTING,
    Exchange,
    Item,
    Response,
    ResponseRequest,
    ResponseUsage,
    last_question,
)
from memoranda.store.core import Core
from memoranda.store.forgetting import Aim
from memoranda.store.ids import new_id
from memoranda.types import Subject

log = logging.getLogger("memoranda.responses")
FORWARDED = ("service_tier", "prompt_cache_key", "safety_identifier", "user")
"""Fields of a request that are passed on to the model server."""


class Answered(msgspec.Struct, frozen=True):
    """A response that has ended and is stored, as a hook receives it."""

    subject: Subject
    response: Response
    input: Sequence[Item]
    turn: Turn
    past: Past


Hook = Callable[[Answered], Awaitable[None]]


class Engine:
    """Makes responses for every subject of one open library. `hooks` are called after each stored response, when its
    caller no longer waits."""

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
        self.model = model
        self.history = history
        self.hooks: list[Hook] = [self._summarize]
        self.background = Background(core, self._resume)
        self._models = [model] if fallback is None else [model, fallback]
        self.planning = Planning(core, config, model, history, configured)
        self._runs: dict[Run, Plan] = {}
        self._after: set[asyncio.Task[None]] = set()

    async def start(
        self, subject: Subject, request: ResponseRequest, exchange: Exchange | None = None
    ) -> Run:
        """See `Responses.start`."""
        plan = await self.planning.plan(subject, request, exchange=exchange)
        if request.background:
            return await self.background.queue(subject, request, plan.new)
        run = Run(plan.response, request.include)
        self._begin(run, plan)
        return run

    async def _resume(
        self, subject: Subject, request: ResponseRequest, response: Response, first: int
    ) -> Run:
        """Makes a response that was queued. If its request is no longer valid (a store is gone), the response fails."""
        run = Run(response, request.include, first)
        try:
            plan = await self.planning.plan(subject, request, response)
        except (Forbidden, InvalidInput, NotFound) as exc:
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
        self._runs[run] = plan
        task = run.begin(partial(self._work, plan), partial(self._end, plan))
        task.add_done_callback(lambda _: self._runs.pop(run, None))

    async def stop(self) -> None:
        """Ends the running responses, and waits for their hooks."""
        for run in list(self._runs):
            run.abandon(ENDING)
        for run in list(self._runs):
            await run.done()
        await self.history.close()
        while self._after:
            await asyncio.wait(set(self._after))
        for model in self._models:
            model.close()

    async def give_up(self, aim: Aim) -> None:
        """Ends the running responses of this process that `aim` covers, and waits for the hooks of ended ones."""
        meant = [run for run, plan in self._runs.items() if _meant(aim, plan)]
        for run in meant:
            run.abandon()
        for run in meant:
            await run.done()
        if self._after:
            await asyncio.wait(set(self._after))

    def agents(self, subject: Subject) -> Agents:
        """The profiles that a subject sees."""
        return self.planning.agents(subject)

    # --- making ------------------------------------------------------------------------------------

    async def _work(self, plan: Plan, run: Run) -> None:
        request, response, began = plan.request, plan.response, time.monotonic()
        async with self.planning.servers(request) as servers:
            memories, images = await together(
                remembered(plan.turn, plan.past, plan.input),
                Attachments(self.core, plan.subject).images(plan.past.items, past=True),
                servers.list(run.emitter, plan.past.items),
            )
            offered = offers(request.tools or [], [*plan.tools, *servers.tools])
            asked, only = choice(request.tool_choice, offered)
            shapes = offered.shapes(only)
            retrieved = time.monotonic()
            model = self.planning.config.model
            context = prompt(plan.turn, request.instructions, plan.past, memories, model)
            plan.turn.reading.take([one.memory for one in context.shown], memories.found.user)
            plan.turn.reading.take_items([*plan.past.items, *plan.input])
            fitting = partial(fitted, plan, context.messages, shapes, model.context_tokens)
            long = is_long(context.messages, shapes, plan.input)
            past, new = await self.core.threads.run(fitting) if long else fitting()
            response.extensions["memory"] = context.report(memories)
            _note_history(response, past, plan.effective)
            brief = Brief(
                ask=self._ask(plan),
                around=context.around,
                items=[*past.items, *new],
                offers=offered,
                turn=plan.turn,
                choice=asked,
                only=only,
                images=images | plan.images,
                sources=[*past_sources([*past.items, *new]), *context.sources],
                max_tool_calls=request.max_tool_calls or self.planning.config.responses.max_tool_calls,
                search_first=self._searches_first(response.model),
                unasked=plan.unasked,
            )
            models = [
                self.core.costs.paid(model, plan.subject.tenant_id, "responses") for model in self._models
            ]
            loop = Loop(brief, run.emitter, models)
            loop.degraded.update(memories.degraded, servers.degraded)
            loop.note(context.evidence)
            try:
                for id_, call, tool in servers.approved([*past.items, *plan.input]):
                    await loop.run_calls([(call, tool)], id_)
                await loop.run()
                if loop.without_tools:
                    self.planning.without_tools.add(plan.response.model)
            finally:
                _note_end(response, loop)
                response.extensions["timings"] = {
                    "retrieval": round(retrieved - began, 4),
                    **{stage: round(seconds, 4) for stage, seconds in loop.seconds.items()},
                    "total": round(time.monotonic() - began, 4),
                }
                self._note_cost(response)

    def _searches_first(self, model: str) -> bool:
        """Return True if files are searched before the model of this name is asked: as configured, else for a small
        model."""
        configured = self.planning.config.responses.search_first
        return is_small(model) if configured is None else configured

    def _note_cost(self, response: Response) -> None:
        """Note what the tokens of the model cost; without a model, quotations cost nothing."""
        prices, usage = self.planning.config.prices, response.usage
        cost = prices.cost(usage.input_tokens, usage.output_tokens)
        if cost is not None and not self._models[0].quotes_only:
            response.extensions["cost"] = {"amount": cost, "currency": prices.currency}

    def _ask(self, plan: Plan) -> Ask:
        request = plan.request
        reasoning = request.reasoning or {}
        logprobs = "message.output_text.logprobs" in (request.include or [])
        forwarded = {name: value for name in FORWARDED if (value := getattr(request, name)) is not None}
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
            extra=forwarded if plan.exchange is None else forwarded | plan.exchange.options,
            question=last_question(plan.input, plan.past.items)[: self.core.max_query_chars],
        )

    # --- afterwards --------------------------------------------------------------------------------

    async def _end(self, plan: Plan, run: Run) -> None:
        self._tally(plan.response)
        if plan.exchange is None:
            heard = Heard(plan.turn, plan.past.items, plan.input, plan.response)
            remembers = plan.effective.request.memory is not False
            await self._store(plan.new, run, heard if remembers else None)
        elif plan.exchange.observed:
            said = Exchanged(plan.turn, plan.input, plan.response)
            await store_exchange(self.core, plan.subject.tenant_id, said)
        task = asyncio.create_task(self._follow_up(plan))
        self._after.add(task)
        task.add_done_callback(self._after.discard)

    def _tally(self, response: Response) -> None:
        counts = {f"responses.{response.status}": 1}
        counts["response_tokens.input"] = response.usage.input_tokens
        counts["response_tokens.output"] = response.usage.output_tokens
        retrieved = response.extensions.get("memory", {}).get("retrieved", ())
        counts["memories_told"] = sum(memory["used"] for memory in retrieved)
        counts["sessions_retrieved"] = sum(memory["kind"] == "session_summary" for memory in retrieved)
        counts["responses_quoted"] = int(response.extensions.get("answered_by") == QUOTING)
        self.core.tally.update(counts)
        self.core.tally.update(
            "tool_calls.failed" if item["status"] == "failed" else "tool_calls.completed"
            for item in response.output
            if item["type"] in ("file_search_call", "mcp_call")
        )

    async def _store(self, new: NewResponse, run: Run, heard: Heard | None = None) -> None:
        response, tenant = new.response, new.subject.tenant_id
        mark(response.output)
        if response.background:
            await self.background.end(new, heard)
        elif response.store:
            await stored(self.core, tenant, lambda c: records.add(c, new), heard)

    async def _follow_up(self, plan: Plan) -> None:
        answered = Answered(plan.subject, plan.response, plan.input, plan.turn, plan.past)
        for hook in (self._count_used, *(self.hooks if plan.response.store else ())):
            try:
                await hook(answered)
            except Exception as exc:
                log.error("what follows the response %s failed", plan.response.id, exc_info=exc)
                self.core.note_failure("responses")

    async def _count_used(self, answered: Answered) -> None:
        await count_used(answered.turn, answered.response.extensions.get("memory", {}))

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
        plan = await self.planning.plan(subject, request)
        offered = offers(plan.request.tools or [], plan.tools)
        memories = await remembered(plan.turn, plan.past, plan.input)
        model = self.planning.config.model
        context = prompt(plan.turn, plan.request.instructions, plan.past, memories, model)

        def counted() -> int:
            return (
                tokens_of_messages(context.messages, plan.encoding)
                + tokens_of_tools(offered.shapes(), plan.encoding)
                + tokens_of_items([*plan.past.items, *plan.input], plan.encoding)
            )

        return await self.core.threads.run(counted)

    async def compact(self, subject: Subject, request: ResponseRequest) -> Response:
        """See `Responses.compact`."""
        if request.input is None:
            request = msgspec.structs.replace(request, input=[])
        plan = await self.planning.plan(subject, request)
        items = [*plan.past.items, *plan.input]
        if not items and plan.past.summary is None:
            raise InvalidInput("input", "holds nothing to compact, nor does what came before")
        spent: list[TokenUsage] = []
        output = await compacted(
            items,
            self.core.costs.paid(self.model, subject.tenant_id, "responses"),
            self.planning.config.summarization,
            previous=plan.past.summary,
            context_tokens=self.planning.config.model.context_tokens,
            meter=spent.append,
        )
        before, after = sum(usage.input for usage in spent), sum(usage.output for usage in spent)
        now, id_ = int(time.time()), new_id("resp_")
        response = Response(
            id=id_,
            created_at=now,
            completed_at=now,
            status="completed",
            model=plan.response.model,
            output=[
                {**item, "id": item_id(item["id"].partition("_")[0], id_, place)}
                for place, item in enumerate(output)
            ],
            usage=ResponseUsage(input_tokens=before, output_tokens=after, total_tokens=before + after),
            store=request.store is not False,
        )
        if response.store:
            mark(response.output)
            new = NewResponse(
                subject=acting(plan.turn), response=response, input=[], session_id=plan.turn.session_id
            )
            await stored(self.core, subject.tenant_id, lambda c: records.add(c, new), None)
        return response


def _meant(aim: Aim, plan: Plan) -> bool:
    """Return True if `aim` covers a running response."""
    asker, new = plan.subject, plan.new
    if asker.tenant_id != aim.tenant or (aim.bound and asker.user_id != aim.own):
        return False
    if aim.text is not None and not aim.text.within_json(encoded(new.input), body_of(plan.response)):
        return False
    scopes = [("user", asker.user_id), ("session", new.session_id), *places(plan.turn).items()]
    return aim.everything or any(id_ in aim.places.get(place, ()) for place, id_ in scopes)


async def together(
    memories: Awaitable[Remembered], images: Awaitable[dict[str, str]], listed: Awaitable[None]
) -> tuple[Remembered, dict[str, str]]:
    """Await all three at once and return the first two results; if one fails, cancel the others before raising."""
    first, second = asyncio.ensure_future(memories), asyncio.ensure_future(images)
    third = asyncio.ensure_future(listed)
    try:
        await asyncio.gather(first, second, third)
        return first.result(), second.result()
    finally:
        for task in (first, second, third):
            task.cancel()
        await asyncio.gather(first, second, third, return_exceptions=True)


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
    if loop.evidence is not None:
        response.extensions["evidence"] = loop.evidence.level
        response.extensions["evidence_probability"] = loop.evidence.probability
