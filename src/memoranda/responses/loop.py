"""The loop: ask the model, run its tool calls, ask again, until it has answered or the client must answer a call."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from memoranda.errors import (
    MemorandaError,
    ModelBroken,
    ModelError,
    ModelRefused,
    SpendingLimit,
    UnknownModel,
)
from memoranda.providers.chat.base import Ask, Message, Model, Source, TokenUsage
from memoranda.responses.events import EventEmitter
from memoranda.responses.messages import Images, to_messages, turns_of
from memoranda.responses.model_turn import Listening
from memoranda.responses.offers import Offers
from memoranda.responses.steps import AskAgain, CallTools, Finish, ModelTurn, ToolCall, next_step, parsed
from memoranda.responses.tools.base import Result, Tool, Turn, asking, begun_call, failed_call
from memoranda.responses.values import (
    OWN_LABEL,
    QUOTING,
    InputTokensDetails,
    Item,
    OutputTokensDetails,
    ResponseUsage,
)
from memoranda.store.ids import new_id
from memoranda.store.retrieval.evidence import Evidence
from memoranda.tracing import span

log = logging.getLogger("memoranda.responses")
REFUSES_TOOLS = (400, 404, 422, 501)
"""Statuses with which servers refuse tools that their model does not take."""
CHAT = {"gen_ai.operation.name": "chat"}


class Brief(msgspec.Struct):
    """The input of one response. `ask` is the call of the model without messages, tools and sources. `items` are the
    conversation so far with the new input; `around` adds the messages before and between them. `sources` can be cited
    from the beginning. `only` are the offered names (None: all). With `search_first`, files are searched for the
    question before the model is asked. `unasked` is a tool that the request does not declare: a model that refuses the
    request with this tool alone is asked again without tools, and `without_tools` of the loop says so."""

    ask: Ask
    around: Callable[[Sequence[Message]], list[Message]]
    items: list[Item]
    offers: Offers
    turn: Turn
    choice: Any = None
    only: list[str] | None = None
    images: Images = msgspec.field(default_factory=dict)
    sources: list[Source] = msgspec.field(default_factory=list)
    max_tool_calls: int = 32
    search_first: bool = False
    unasked: Tool | None = None


class Loop:
    """Makes one response. `emitter` emits its events; `models` are asked in order, the next when one is unavailable.
    `seconds` are the seconds of its `model` and its `tools`."""

    def __init__(self, brief: Brief, emitter: EventEmitter, models: Sequence[Model]) -> None:
        self.brief = brief
        self.emitter = emitter
        self.response = emitter.response
        self.degraded: set[str] = set()
        self.evidence: Evidence | None = None
        self.answered_by = ""
        self.without_tools = False
        self.seconds = {"model": 0.0, "tools": 0.0}
        self._models = list(models)
        self._sources = list(brief.sources)
        self._left = brief.max_tool_calls
        self._asked = 0
        self._called: set[str] = set()
        self._said_to_stop = False

    async def run(self) -> None:
        """Runs until the response has ended: its `status` and reason are set, its last event is not emitted yet.

        Raises:
            ModelError: the model failed; its output so far is in the response.
        """
        if self.brief.search_first and not self._models[0].quotes_only:
            await self._search()
        while True:
            turn = await self._ask()
            self._called.update(call.name for call in turn.calls)
            step = next_step(turn, self.brief.offers.known(turn.calls, self.brief.turn), self._left)
            if isinstance(step, Finish):
                self._finish(step.reason)
                return
            if isinstance(step, AskAgain):
                if self._said_to_stop:
                    raise ModelBroken("the language model goes on calling tools beyond max_tool_calls")
                self._said_to_stop = True
                continue
            await self._call(step)
            if step.hand_back:
                self._finish(None)
                return

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        """Add the seconds that the body takes to a stage."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] += time.monotonic() - began

    def note(self, evidence: Evidence | None) -> None:
        """Record the evidence of a search; the best of several counts."""
        if evidence is not None and (
            self.evidence is None or evidence.probability > self.evidence.probability
        ):
            self.evidence = evidence

    async def _search(self) -> None:
        """Call the search in files as a model would, where it may be called and was not in this turn."""
        brief = self.brief
        name = next((name for name, tool in brief.offers.here.items() if tool.name == "file_search"), None)
        forbidden = brief.choice == "none" or (brief.only is not None and name not in brief.only)
        searched = any(
            item["type"] == "file_search_call" for some in turns_of(brief.items)[-1:] for item in some
        )
        if name is None or forbidden or searched or not brief.ask.question or self._left < 1:
            return
        self._called.add(name)
        arguments = json.dumps({"query": brief.ask.question})
        await self._call(CallTools([ToolCall(new_id("call_"), name, arguments)]))

    def _finish(self, reason: str | None) -> None:
        if self._demands() and not self._met():
            log.warning("the model answered without the tool call that tool_choice demands")
            self.degraded.add("tool_choice")
        self.response.status = "completed" if reason is None else "incomplete"
        self.response.incomplete_details = None if reason is None else {"reason": reason}

    # --- the model ---------------------------------------------------------------------------------

    async def _ask(self) -> ModelTurn:
        """One turn. If a model is unavailable before any output, the next one takes over, which only quotes."""
        while True:
            model = self._models[0]
            ask = self._ask_of()
            listening = Listening(self.emitter, self.brief.offers, self._sources)
            try:
                with (
                    self._timed("model"),
                    span(f"chat {model.name}", CHAT),
                ):
                    turn = await listening.hear(model.answer(ask))
            except asyncio.CancelledError:
                listening.cut()
                raise
            except (ModelError, SpendingLimit) as exc:
                if listening.began:
                    listening.cut()
                if not listening.began and self._takes_no_tools(exc, ask):
                    continue
                if listening.began or not self._falls_back(exc):
                    raise
                log.warning("the language model does not answer, what was found does: %s", exc)
                continue
            self._count(ask, turn, listening.usage)
            self.answered_by = QUOTING if model.quotes_only else (listening.model or model.name)
            self._asked += 1
            return turn

    def _takes_no_tools(self, exc: ModelError | SpendingLimit, ask: Ask) -> bool:
        """Return True if a model is asked again because it may have refused the tool that the request does not
        declare."""
        refused = (
            isinstance(exc, ModelRefused)
            and not isinstance(exc, UnknownModel)
            and exc.status in REFUSES_TOOLS
        )
        alone = len(ask.tools) == 1 and [*self.brief.offers.here.values()] == [self.brief.unasked]
        self.without_tools = refused and alone
        return self.without_tools

    def _falls_back(self, exc: ModelError | SpendingLimit) -> bool:
        """Return True if another model takes over: it needs sources to quote, and no response format."""
        if len(self._models) < 2 or isinstance(exc, ModelRefused) or self.brief.ask.response_format:
            return False
        searches = any(tool.family == "file_search_call" for tool in self.brief.offers.here.values())
        if not self._sources and not searches:
            return False
        self._models.pop(0)
        self.degraded.add("spending" if isinstance(exc, SpendingLimit) else "model")
        return True

    def _ask_of(self) -> Ask:
        brief = self.brief
        offered = brief.offers.shapes(brief.only, here=self._left > 0 and not self._said_to_stop)
        offered = [] if self.without_tools else offered
        messages = brief.around(self._messages())
        limit = brief.ask.max_tokens
        return msgspec.structs.replace(
            brief.ask,
            messages=messages,
            tools=offered,
            tool_choice=self._choice() if offered else None,
            parallel_tool_calls=brief.ask.parallel_tool_calls if offered else None,
            max_tokens=None if limit is None else max(1, limit - self.response.usage.output_tokens),
            sources=self._sources,
            evidence=None if self.evidence is None else self.evidence.level,
        )

    def _messages(self) -> list[Message]:
        items = [*self.brief.items, *self.response.output]
        return to_messages(items, self.brief.offers.names, self.brief.images)

    def _choice(self) -> Any:
        """A demanded call is demanded once: then the model must be free to answer."""
        return "auto" if (self._asked or self._called) and self._demands() else self.brief.choice

    def _demands(self) -> bool:
        """Return True if the request demands the call of a tool."""
        return self.brief.choice not in (None, "auto", "none")

    def _met(self) -> bool:
        """Return True if the call that the request demands was made."""
        choice = self.brief.choice
        return choice["function"]["name"] in self._called if isinstance(choice, dict) else bool(self._called)

    def _count(self, ask: Ask, turn: ModelTurn, usage: TokenUsage | None) -> None:
        if usage is None:
            usage = self._estimated(ask, turn)
        old = self.response.usage
        self.response.usage = ResponseUsage(
            input_tokens=old.input_tokens + usage.input,
            input_tokens_details=InputTokensDetails(
                cached_tokens=old.input_tokens_details.cached_tokens + usage.cached
            ),
            output_tokens=old.output_tokens + usage.output,
            output_tokens_details=OutputTokensDetails(
                reasoning_tokens=old.output_tokens_details.reasoning_tokens + usage.reasoning
            ),
            total_tokens=old.total_tokens + usage.input + usage.output,
        )

    def _estimated(self, ask: Ask, turn: ModelTurn) -> TokenUsage:
        count = self.brief.turn.count
        prompt = "\n".join(
            message["content"] for message in ask.messages if isinstance(message["content"], str)
        )
        answered = turn.text + "".join(call.name + call.arguments for call in turn.calls)
        return TokenUsage(input=count(prompt), output=count(answered))

    # --- tools -------------------------------------------------------------------------------------

    async def _call(self, step: CallTools) -> None:
        """Runs calls concurrently, and emits their events in the order in which the model made them."""
        self._left -= len(step.calls)
        await self.run_calls([(call, self.brief.offers.here.get(call.name)) for call in step.calls])
        for call in step.ask:
            item = asking(self.brief.offers.here[call.name].begun(call.arguments))
            self.emitter.begin(item)
            self.emitter.end(item)

    async def run_calls(
        self, calls: Sequence[tuple[ToolCall, Tool | None]], approval_id: str | None = None
    ) -> None:
        """Runs calls of tools that run here (None: unknown tool), all at once."""
        begun = [self._begin(call, tool, approval_id) for call, tool in calls]
        with self._timed("tools"):
            results = await asyncio.gather(
                *(self._run(call, tool, item) for (call, tool), item in zip(calls, begun, strict=True))
            )
        for (call, _), item, result in zip(calls, begun, results, strict=True):
            self._end(call, item, result)

    def _begin(self, call: ToolCall, tool: Tool | None, approval_id: str | None) -> Item:
        item = (
            begun_call(OWN_LABEL, call.name, call.arguments) if tool is None else tool.begun(call.arguments)
        )
        item["_call_id"] = call.id
        if approval_id is not None:
            item["approval_request_id"] = approval_id
        arguments = item.get("arguments")
        if item["type"] == "mcp_call":
            item["arguments"] = ""
        self.emitter.begin(item)
        self.emitter.stage(item, "in_progress")
        if item["type"] == "mcp_call":
            self.emitter.arguments(item, arguments or "{}")
            self.emitter.arguments_done(item)
        else:
            item["status"] = "searching"
            self.emitter.stage(item, "searching")
        return item

    async def _run(self, call: ToolCall, tool: Tool | None, item: Item) -> Result:
        """The result of a call; a failure becomes its result, which the model sees."""
        if tool is None:
            return failed_call(item, f"There is no tool named {call.name!r}.")
        arguments = parsed(call.arguments)
        if isinstance(arguments, str):
            return tool.failed(item, arguments)
        seconds = self.brief.turn.settings.tool_timeout
        try:
            async with asyncio.timeout(seconds):
                return await tool.run(item, arguments, self.brief.turn)
        except TimeoutError:
            return tool.failed(item, f"It did not answer within {seconds:g} seconds.")
        except MemorandaError as exc:
            return tool.failed(item, str(exc))
        except Exception as exc:
            log.error("the tool %s failed", tool.name, exc_info=exc)
            return tool.failed(item, "It failed for a reason that is in the server's log.")

    def _end(self, call: ToolCall, item: Item, result: Result) -> None:
        # The item is in the response already: it is filled, not replaced.
        item.update(result.item)
        if result.render is not None:
            numbered = self._numbered(result.sources)
            item["_told"] = result.render(numbered)
            item["_sources"] = msgspec.to_builtins(numbered)
            for passage, source in zip(item.get("_results", ()), numbered, strict=False):
                passage["number"] = source.number
        elif result.text:
            item["_told"] = result.text
        item["_call_id"] = call.id
        self.degraded.update(result.degraded)
        self.note(result.evidence)
        failed = item.get("status") == "failed"
        self.emitter.stage(item, "failed" if failed and item["type"] == "mcp_call" else "completed")
        self.emitter.end(item)

    def _numbered(self, sources: Sequence[Source]) -> list[Source]:
        first = 1 + max((source.number for source in self._sources), default=0)
        numbered = [
            msgspec.structs.replace(source, number=number) for number, source in enumerate(sources, first)
        ]
        self._sources += numbered
        return numbered
