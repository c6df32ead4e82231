"""The loop: what the model is asked, what runs, how it goes on, how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from memoranda.config.agent_sections import Responses
from memoranda.errors import Conflict, ModelBroken, ModelRefused, ModelUnavailable
from memoranda.providers.chat.base import Ask, Model, Piece
from memoranda.providers.chat.scripted import ScriptedModel
from memoranda.responses.items import checked
from memoranda.responses.loop import Brief, Loop
from memoranda.responses.offers import offers
from memoranda.responses.runs import UNEXPECTED, Run
from memoranda.responses.tools.base import Result, Tool, Turn, begun_call, done_call, failed_call
from memoranda.responses.values import Item, MemoryUse, Response
from memoranda.text import tokens
from memoranda.types import Subject

pytestmark = pytest.mark.rows_in("sqlite")
FIND = {"type": "function", "name": "find", "parameters": {"type": "object"}}
Work = Callable[[dict[str, Any]], Any]


class Local(Tool):
    """A tool that does what a test wants."""

    family = "mcp_call"
    server_label = "here"
    description = "Does."
    parameters: dict[str, Any] = {"type": "object"}  # noqa: RUF012

    def __init__(self, name: str, work: Work) -> None:
        self.name = name
        self.work = work

    def begun(self, arguments: str) -> Item:
        return begun_call(self.server_label, self.name, arguments)

    async def run(self, item: Item, arguments: dict[str, Any], turn: Turn) -> Result:
        said = str(await self.work(arguments))
        return Result(done_call(item, said), said)

    def failed(self, item: Item, reason: str) -> Result:
        return failed_call(item, reason)


async def _nothing(arguments: dict[str, Any]) -> str:
    return ""


OTHERS = [Local("other", _nothing)]


class Made:
    """A response made by the loop alone."""

    def __init__(self, run: Run, model: ScriptedModel, response: Response, degraded: set[str]) -> None:
        self.run, self.model, self.response, self.degraded = run, model, response, degraded

    @property
    def texts(self) -> list[str]:
        """What the assistant said, message by message."""
        return ["".join(part["text"] for part in one["content"]) for one in self.of("message")]

    def of(self, kind: str) -> list[Item]:
        """Its items of a type."""
        return [item for item in self.response.output if item["type"] == kind]

    def answers(self, call: int = -1) -> list[str]:
        """The tool results that the model was told in one of its calls."""
        return [
            message["content"] for message in self.model.asked[call].messages if message["role"] == "tool"
        ]


async def make(
    turns: Sequence[Mapping[str, Any]],
    tools: Sequence[Tool] = (),
    declared: Sequence[dict[str, Any]] = (),
    settings: Responses = Responses(),  # noqa: B008 - frozen
    models: Sequence[Model] = (),
    **brief: Any,
) -> Made:
    """A response to these turns of the model, with these tools here and those of the client."""
    model = ScriptedModel(list(turns), timeout=0.05)
    turn = Turn(
        core=None,  # type: ignore[arg-type] - no tool of these tests asks for it
        subject=Subject(),
        settings=settings,
        session_id="s",
        agent_id=None,
        memory=MemoryUse(),
        count=tokens.count,
    )
    brief = {"ask": Ask(messages=[], model=None), "items": [], "max_tool_calls": 32, **brief}
    held = Brief(around=list, offers=offers(declared, tools), turn=turn, **brief)
    run = Run(Response(id="resp_1", created_at=1, status="in_progress", model="m"))
    loop = Loop(held, run.emitter, [model, *models])

    async def nowhere(_: Run) -> None:
        return

    run.begin(lambda _: loop.run(), nowhere)
    return Made(run, model, await run.done(), loop.degraded)


def calls(*names: str, **more: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": {"n": n}} for n, name in enumerate(names)], **more}


# --- tools -----------------------------------------------------------------------------------------


def test_calls_of_one_turn_run_at_once(house: Any) -> None:
    """Neither could end without the other; what they gave back is told in the order of the calls."""

    async def test() -> None:
        meeting, order = asyncio.Barrier(2), []

        async def work(arguments: dict[str, Any]) -> str:
            await meeting.wait()
            await asyncio.sleep(0.01 * (1 - arguments["n"]))
            order.append(arguments["n"])
            return f"result {arguments['n']}"

        made = await make([calls("meet", "meet"), {"text": "both"}], [Local("meet", work)])
        assert order == [1, 0]
        assert [item["output"] for item in made.of("mcp_call")] == ["result 0", "result 1"]
        assert made.answers() == ["result 0", "result 1"]
        assert made.texts == ["both"]

    house.portal.call(test())


def test_what_the_model_is_told_after_a_call(house: Any) -> None:
    async def work(arguments: dict[str, Any]) -> str:
        return "42"

    async def test() -> None:
        made = await make(
            [
                {"text": "I ask", "calls": [{"name": "count", "arguments": {"of": "x"}, "id": "c1"}]},
                {"text": "It is 42"},
            ],
            [Local("count", work)],
        )
        assert made.model.asked[1].messages == [
            {
                "role": "assistant",
                "content": "I ask",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "count", "arguments": '{"of":"x"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
        ]
        assert [item["type"] for item in made.response.output] == ["message", "mcp_call", "message"]
        assert made.response.status == "completed"

    house.portal.call(test())


def test_calls_of_the_client_end_the_response_after_ours_have_run(house: Any) -> None:
    ran = []

    async def work(arguments: dict[str, Any]) -> str:
        ran.append(arguments)
        return "ours"

    async def test() -> None:
        made = await make([calls("find", "count", "find")], [Local("count", work)], [FIND])
        assert ran == [{"n": 1}]
        assert [(one["call_id"], one["arguments"]) for one in made.of("function_call")] == [
            ("call_1_0", '{"n":0}'),
            ("call_1_2", '{"n":2}'),
        ]
        assert (made.of("mcp_call")[0]["output"], made.of("mcp_call")[0]["status"]) == ("ours", "completed")
        assert (made.response.status, len(made.model.asked)) == ("completed", 1)

    house.portal.call(test())


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Conflict("it is taken"), "it is taken"),
        (ValueError("secret detail"), "for a reason that is in the server's log"),
        (None, "did not answer within 0.02 seconds"),
    ],
)
def test_a_tool_that_fails_is_a_result_that_the_model_sees(
    house: Any, error: Exception | None, says: str
) -> None:
    async def work(arguments: dict[str, Any]) -> str:
        if error is None:
            await asyncio.sleep(5)
            return ""
        raise error

    async def test() -> None:
        made = await make(
            [calls("count"), {"text": "sorry"}], [Local("count", work)], settings=Responses(tool_timeout=0.02)
        )
        (item,) = made.of("mcp_call")
        assert item["status"] == "failed"
        assert says in item["error"]["content"][0]["text"]
        assert says in made.answers()[0]
        assert "secret" not in json.dumps(made.response.output)
        assert (made.response.status, made.texts) == ("completed", ["sorry"])

    house.portal.call(test())


@pytest.mark.parametrize(
    ("arguments", "says"), [('{"a": ', "no valid JSON"), ("[1]", "a JSON list"), ("[" * 9_999, "no valid")]
)
def test_arguments_that_are_no_object_are_told_to_the_model(house: Any, arguments: str, says: str) -> None:
    async def work(arguments: dict[str, Any]) -> str:
        raise AssertionError("it ran")

    async def test() -> None:
        made = await make(
            [{"calls": [{"name": "count", "arguments": arguments}]}, {"text": "again"}],
            [Local("count", work)],
        )
        assert says in made.answers()[0]
        sent = made.model.asked[1].messages[0]["tool_calls"][0]["function"]["arguments"]
        assert isinstance(json.loads(sent), dict)
        assert made.of("mcp_call")[0]["status"] == "failed"
        assert made.texts == ["again"]

    house.portal.call(test())


def test_a_name_that_nobody_has_is_told_to_the_model(house: Any) -> None:
    async def test() -> None:
        made = await make([calls("fly"), {"text": "then not"}], declared=[FIND])
        assert made.answers() == ["Error: There is no tool named 'fly'."]
        (item,) = made.of("mcp_call")
        assert (item["name"], item["status"], item["server_label"]) == ("fly", "failed", "memoranda")
        assert made.texts == ["then not"]

    house.portal.call(test())


def test_only_so_many_calls_are_run(house: Any) -> None:
    async def work(arguments: dict[str, Any]) -> str:
        return "again"

    async def test() -> None:
        endless = {**calls("count", "count"), "offered": "count", "repeat": True}
        made = await make([endless, {"text": "enough"}], [Local("count", work)], [FIND], max_tool_calls=5)
        assert len(made.of("mcp_call")) == 5
        assert made.texts == ["enough"]
        offered = [[tool["function"]["name"] for tool in ask.tools] for ask in made.model.asked]
        assert offered == [["find", "count"]] * 3 + [["find"]]

    house.portal.call(test())


def test_a_model_that_goes_on_calling_is_an_error(house: Any) -> None:
    async def work(arguments: dict[str, Any]) -> str:
        return "again"

    async def test() -> None:
        made = await make([{**calls("count"), "repeat": True}], [Local("count", work)], max_tool_calls=2)
        assert len(made.model.asked) == 4
        assert made.response.status == "failed"
        assert isinstance(made.run.failure, ModelBroken)
        assert "max_tool_calls" in str(made.run.failure)

    house.portal.call(test())


def test_a_demanded_call_that_was_not_made_is_reported(house: Any) -> None:
    async def work(arguments: dict[str, Any]) -> str:
        return "ok"

    async def test() -> None:
        tools = [Local("count", work), Local("add", work)]
        named = {"type": "function", "function": {"name": "count"}}
        for choice, turns, degraded in (
            ("required", [{"text": "done"}], {"tool_choice"}),
            (named, [{"text": "done"}], {"tool_choice"}),
            (named, [calls("add"), {"text": "done"}], {"tool_choice"}),
            (named, [calls("count"), {"text": "done"}], set()),
            ("required", [calls("add"), {"text": "done"}], set()),
            ("auto", [{"text": "done"}], set()),
            (None, [{"text": "done"}], set()),
        ):
            made = await make(turns, tools, choice=choice)
            assert made.degraded == degraded
            assert made.texts == ["done"]

    house.portal.call(test())


class Files(Local):
    """A search in files."""

    family = "file_search_call"

    def __init__(self, found: list[str]) -> None:
        async def work(arguments: dict[str, Any]) -> str:
            found.append(arguments["query"])
            return "The kettle is red."

        super().__init__("file_search", work)

    def begun(self, arguments: str) -> Item:
        return {"id": "fs_1", "type": self.family, "status": "in_progress", "queries": [], "results": None}

    async def run(self, item: Item, arguments: dict[str, Any], turn: Turn) -> Result:
        return Result({**item, "status": "completed"}, str(await self.work(arguments)))


ASKED = checked("Which colour has the kettle?")
SEARCHED = {
    "id": "fs_0",
    "type": "file_search_call",
    "status": "completed",
    "queries": ["kettle"],
    "_told": "It is red.",
}


def test_files_are_searched_before_the_model_is_asked_where_that_is_set(house: Any) -> None:
    async def test() -> None:
        ask = Ask(messages=[], question="Which colour has the kettle?")
        named = {"type": "function", "function": {"name": "file_search"}}
        for fields, queries, choice in (
            ({}, [ask.question], None),
            ({"choice": "required"}, [ask.question], "auto"),
            ({"choice": named}, [ask.question], "auto"),
            ({"choice": "none"}, [], "none"),
            ({"only": ["other"]}, [], None),
            ({"max_tool_calls": 0}, [], None),
            ({"search_first": False}, [], None),
            ({"ask": Ask(messages=[])}, [], None),
            ({"items": [*ASKED, SEARCHED]}, [], None),
            ({"items": [*ASKED, SEARCHED, *ASKED]}, [ask.question], None),
        ):
            found: list[str] = []
            fields = {"ask": ask, "search_first": True} | fields
            made = await make([{"text": "Red."}], [Files(found), *OTHERS], **fields)
            assert found == queries
            assert [one["status"] for one in made.of("file_search_call")] == ["completed"] * len(queries)
            earlier = ["It is red."] * ("items" in fields)
            assert made.answers() == [*earlier, *["The kettle is red."] * len(queries)]
            assert made.model.asked[0].tool_choice == choice
            assert (made.texts, made.degraded) == (["Red."], set())

    house.portal.call(test())


def test_a_call_is_demanded_once(house: Any) -> None:
    async def work(arguments: dict[str, Any]) -> str:
        return "ok"

    async def test() -> None:
        for choice in ("required", {"type": "function", "function": {"name": "count"}}):
            made = await make(
                [calls("count"), calls("count"), {"text": "done"}], [Local("count", work)], choice=choice
            )
            assert [ask.tool_choice for ask in made.model.asked] == [choice, "auto", "auto"]
        for choice in ("none", "auto", None):
            made = await make([calls("count"), {"text": "done"}], [Local("count", work)], choice=choice)
            assert [ask.tool_choice for ask in made.model.asked] == [choice, choice]
        made = await make([{"text": "hi"}], choice="auto")
        assert (made.model.asked[0].tool_choice, made.model.asked[0].tools) == (None, [])

    house.portal.call(test())


# --- ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_an_answer_that_is_cut_is_incomplete(house: Any, finish: str, reason: str) -> None:
    async def test() -> None:
        made = await make(
            [{"text": "half of", "calls": [{"name": "find"}], "finish": finish}], declared=[FIND]
        )
        assert made.response.status == "incomplete"
        assert made.response.incomplete_details == {"reason": reason}
        assert [item["status"] for item in made.response.output] == ["completed", "incomplete"]

    house.portal.call(test())


def test_what_is_left_of_the_tokens_goes_to_the_next_call(house: Any) -> None:
    async def work(arguments: dict[str, Any]) -> str:
        return "ok"

    async def test() -> None:
        used = {"input": 10, "output": 70, "cached": 4, "reasoning": 20}
        made = await make(
            [calls("count", usage=used), calls("count", usage=used), {"text": "done", "usage": used}],
            [Local("count", work)],
            ask=Ask(messages=[], max_tokens=100),
        )
        assert [ask.max_tokens for ask in made.model.asked] == [100, 30, 1]
        usage = msgspec.to_builtins(made.response.usage)
        assert usage["input_tokens"] == 30
        assert usage["input_tokens_details"]["cached_tokens"] == 12
        assert (usage["output_tokens"], usage["output_tokens_details"]["reasoning_tokens"]) == (210, 60)
        assert usage["total_tokens"] == 240

    house.portal.call(test())


def test_tokens_that_nobody_tells_are_counted(house: Any) -> None:
    async def test() -> None:
        made = await make([{"text": "four words are said", "usage": False}])
        assert made.response.usage.output_tokens == tokens.count("four words are said")

    house.portal.call(test())


@pytest.mark.parametrize(
    ("turn", "kind", "said"),
    [
        ({"status": 400, "message": "too long"}, ModelRefused, ""),
        ({"status": 503}, ModelUnavailable, ""),
        ({"cut": True}, ModelUnavailable, ""),
        ({"hang": True}, ModelUnavailable, ""),
        ({"garbage": "}"}, ModelBroken, ""),
        ({"text": "half a", "cut": True}, ModelBroken, "half a"),
        ({"text": "half a", "hang": True}, ModelBroken, "half a"),
        ({"text": "half a", "garbage": "}"}, ModelBroken, "half a"),
        ({"reasoning": "well", "cut": True}, ModelBroken, ""),
    ],
)
def test_a_model_that_fails(house: Any, turn: dict[str, Any], kind: type[Exception], said: str) -> None:
    """What it said before is there, as far as it came."""

    async def test() -> None:
        made = await make([turn])
        assert made.response.status == "failed"
        assert type(made.run.failure) is kind
        code = "invalid_prompt" if kind is ModelRefused else "server_error"
        error = made.response.error
        assert error is not None
        assert (error["code"], error["message"]) == (code, str(made.run.failure))
        assert "".join(made.texts) == said
        assert all(item["status"] == "incomplete" for item in made.response.output)

    house.portal.call(test())


def test_a_mistake_of_ours_tells_no_secrets(house: Any) -> None:
    class Mistaken(Model):
        name = "mistaken"

        async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
            raise ValueError("the password is 1234")
            yield  # type: ignore[unreachable]

    async def test() -> None:
        made = await make([{"status": 503}], models=[Mistaken()])
        assert made.response.status == "failed"
        assert made.response.error is not None
        assert "1234" not in made.response.error["message"]

    house.portal.call(test())
    assert "password" not in UNEXPECTED


def test_nothing_is_left_running(house: Any) -> None:
    """However a response ends: whole, failed, abandoned while the model speaks or a tool works."""

    async def work(arguments: dict[str, Any]) -> str:
        await asyncio.sleep(60)
        return ""

    async def test() -> None:
        before = asyncio.all_tasks()
        await make([{"text": "whole"}])
        await make([{"text": "half", "cut": True}])
        await make(
            [calls("count"), {"text": "x"}], [Local("count", work)], settings=Responses(tool_timeout=0.01)
        )
        for _ in range(5):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == before

    house.portal.call(test())
