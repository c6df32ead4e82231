"""Chat completions against servers that send bytes by hand: what breaks, what differs, what is tried again."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memoranda.config.agent_sections import Model as Settings
from memoranda.errors import ConfigError, ModelBroken, ModelRefused, ModelUnavailable, UnknownModel
from memoranda.providers.chat import Model, link, open_model
from memoranda.providers.chat.base import (
    Ask,
    Ended,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from support.pauses import Pauses
from support.raw_server import DONE, Raw, chunked, event, head, raw, stream, whole
from support.waiting import SECONDS, until_async

KEY = "sk-hush-0123456789"
HI = [{"role": "user", "content": "hi"}]
FUNCTION = {"name": "find", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}
TOOLS = [{"type": "function", "function": FUNCTION}]
HELLO = stream({"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo"})
ANSWER = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoranda.providers.http.FIRST_WAIT", 0.01)
    for name in ("OPENAI_API_KEY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def opened(server: Raw, **settings: Any) -> Model:
    return open_model(
        Settings(**{"url": server.url, "name": "small", "api_key": KEY, "timeout": 5.0} | settings)
    )


def asking(**fields: Any) -> Ask:
    return Ask(**{"messages": HI} | fields)


async def pieces(model: Model, ask: Ask | None = None) -> list[Piece]:
    return [piece async for piece in model.answer(ask or asking())]


def said(found: list[Piece]) -> str:
    return "".join(piece.text for piece in found if isinstance(piece, TextDelta))


def calls(found: list[Piece]) -> list[tuple[str | None, str]]:
    """Names and arguments, after a look at what the door promises of the deltas."""
    made: dict[int, list[str]] = {}
    ids = set()
    for piece in found:
        if isinstance(piece, ToolCallDelta):
            if piece.index not in made:
                assert piece.id
                assert piece.name
                ids.add(piece.id)
                made[piece.index] = [piece.name, ""]
            made[piece.index][1] += piece.arguments
    assert len(ids) == len(made)
    assert list(made) == list(range(len(made)))
    return [(name, arguments) for name, arguments in made.values()]


def run(test: Callable[[], Awaitable[None]], *, loop: str = "asyncio") -> None:
    (uvloop.run if loop == "uvloop" else asyncio.run)(test())  # type: ignore[arg-type]


def answered(*answers: Any, ask: Ask | None = None, **settings: Any) -> tuple[list[Piece], Raw]:
    """The pieces of one ask, and what the server saw."""

    async def test() -> tuple[list[Piece], Raw]:
        async with raw(*answers) as server:
            model = opened(server, **settings)
            try:
                return await pieces(model, ask), server
            finally:
                model.close()

    return asyncio.run(test())


def streamed(*deltas: dict[str, Any], finish: str | None = "stop", ask: Ask | None = None) -> list[Piece]:
    return answered([head(), stream(*deltas, finish=finish)], ask=ask)[0]


# What goes out


def test_a_request_says_what_is_asked_and_carries_the_key() -> None:
    ask = asking(max_tokens=9, temperature=0.5, tools=TOOLS, tool_choice="auto", extra={"seed": 7})
    _, server = answered([head(), HELLO], ask=ask)
    assert server.heads[0].startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    assert f"authorization: Bearer {KEY}\r\n" in server.heads[0].replace("Authorization", "authorization")
    assert server.bodies[0] == {
        "model": "small",
        "messages": HI,
        "tools": TOOLS,
        "tool_choice": "auto",
        "max_tokens": 9,
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": 7,
    }


def test_a_whole_answer_is_asked_for_without_streaming() -> None:
    message = {
        "content": "Hello",
        "reasoning_content": "hm",
        "tool_calls": [{"function": FUNCTION | {"arguments": "{}"}}],
    }
    document = {"model": "small-2", "choices": [{"message": message, "finish_reason": "stop"}]}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    found, server = answered([whole(document | {"usage": usage})], ask=asking(stream=False))
    assert "stream" not in server.bodies[0]
    assert found[0] == ReasoningDelta("hm")
    assert said(found) == "Hello"
    assert calls(found) == [("find", "{}")]
    assert found[-1] == Ended("tool_calls", TokenUsage(input=5, output=2, cached=4), "small-2")


@pytest.mark.parametrize("stream_wanted", [True, False])
def test_a_server_that_streams_when_it_should_not_or_the_other_way_round_is_understood(
    stream_wanted: bool,
) -> None:
    reply = [whole(ANSWER)] if stream_wanted else [head(), HELLO]
    assert said(answered(reply, ask=asking(stream=stream_wanted))[0]) == "Hello"


def test_halves_of_characters_go_out_as_replacements() -> None:
    ask = asking(messages=[{"role": "user", "content": "a\ud800b"}])
    _, server = answered([head(), HELLO], ask=ask)
    assert server.bodies[0]["messages"][0]["content"] == "a\ufffdb"


QUIRKY: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("openai", {"max_tokens": 5, "verbosity": "low"}, {"max_completion_tokens": 5, "verbosity": "low"}),
    ("generic", {"max_tokens": 5, "reasoning_effort": "low"}, {"max_tokens": 5, "reasoning_effort": "low"}),
    ("vllm", {"verbosity": "low", "top_logprobs": 2}, {"verbosity": None, "logprobs": True, "top_logprobs": 2}),
    ("ollama", {"tools": TOOLS, "tool_choice": "auto", "parallel_tool_calls": True},
     {"tools": TOOLS, "tool_choice": None, "parallel_tool_calls": None}),
    ("ollama", {"tools": TOOLS, "tool_choice": "none"}, {"tools": None, "tool_choice": None}),
    ("llama.cpp", {"tools": [*TOOLS, {"type": "function", "function": {"name": "other"}}],
                   "tool_choice": {"type": "function", "function": {"name": "find"}}},
     {"tools": TOOLS, "tool_choice": "required"}),
    ("mistral", {"tools": TOOLS, "tool_choice": "required", "top_logprobs": 3},
     {"tool_choice": "any", "stream_options": None, "logprobs": None, "top_logprobs": None}),
    ("gemini", {"tools": TOOLS, "parallel_tool_calls": False}, {"tools": TOOLS, "parallel_tool_calls": None}),
    ("litellm", {"tools": TOOLS, "parallel_tool_calls": False}, {"parallel_tool_calls": False}),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "fields", "sent"), QUIRKY)
def test_what_a_provider_does_not_take_is_left_out_or_put_otherwise(
    provider: str, fields: dict[str, Any], sent: dict[str, Any]
) -> None:
    _, server = answered([head(), HELLO], ask=asking(**fields), provider=provider)
    assert {name: server.bodies[0].get(name) for name in sent} == sent


def test_instructions_are_put_where_chat_templates_want_them() -> None:
    messages = [
        {"role": "developer", "content": "A"},
        HI[0],
        {"role": "system", "content": [{"type": "text", "text": "B"}]},
    ]
    sent = {
        provider: answered([head(), HELLO], ask=asking(messages=messages), provider=provider)[1].bodies[0][
            "messages"
        ]
        for provider in ("openai", "generic", "vllm")
    }
    assert sent["openai"] == messages
    assert [message["role"] for message in sent["generic"]] == ["system", "user", "system"]
    assert sent["vllm"] == [{"role": "system", "content": "A\n\nB"}, *HI]


def test_ids_of_calls_get_the_length_that_mistral_takes() -> None:
    call = {"id": "call_0123456789", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    messages = [*HI, {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_0123456789", "content": "x"}]  # fmt: skip
    _, server = answered([head(), HELLO], ask=asking(messages=messages), provider="mistral")
    made = server.bodies[0]["messages"]
    assert len(made[1]["tool_calls"][0]["id"]) == 9
    assert made[1]["tool_calls"][0]["id"].isalnum()
    assert made[2]["tool_call_id"] == made[1]["tool_calls"][0]["id"]


# A parameter that is not known


def refusal(message: str, param: str | None = None) -> list[bytes]:
    return [whole({"error": {"message": message, "param": param, "code": None}}, "400 Bad Request")]


UNKNOWN: list[tuple[list[bytes], dict[str, Any], str]] = [
    (refusal("Unrecognized request argument supplied: stream_options"), {}, "stream_options"),
    (refusal("Unsupported parameter: 'x' is not supported", "parallel_tool_calls"),
     {"tools": TOOLS, "parallel_tool_calls": True}, "parallel_tool_calls"),
    (refusal("Unsupported value: 'temperature' does not support 0.2 with this model."), {"temperature": 0.2},
     "temperature"),
    ([whole({"detail": [{"type": "extra_forbidden", "loc": ["body", "verbosity"], "msg": "Extra inputs"}]},
            "422 Unprocessable Entity")], {"verbosity": "low"}, "verbosity"),
    ([whole({"object": "error", "message": {"detail": [
        {"type": "extra_forbidden", "loc": ["body", "reasoning_effort"], "msg": "Extra inputs are not permitted"}]}},
            "422 Unprocessable Entity")], {"reasoning_effort": "low"}, "reasoning_effort"),
]  # fmt: skip


@pytest.mark.parametrize(("refused", "fields", "name"), UNKNOWN)
def test_a_parameter_that_is_refused_as_unknown_is_left_out_and_remembered(
    refused: list[bytes], fields: dict[str, Any], name: str
) -> None:
    async def test() -> None:
        async with raw(refused, [head(), HELLO]) as server:
            model = opened(server)
            assert said(await pieces(model, asking(**fields))) == "Hello"
            assert said(await pieces(model, asking(**fields))) == "Hello"
            assert [name in body for body in server.bodies] == [True, False, False]
            assert model.usage()["failures"] == 0

    run(test)


def test_the_bound_on_the_answer_goes_by_its_other_name_where_the_one_is_refused() -> None:
    says = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    _, server = answered(refusal(says), [head(), HELLO], ask=asking(max_tokens=7))
    assert server.bodies[1]["max_completion_tokens"] == 7
    assert "max_tokens" not in server.bodies[1]


def test_a_schema_that_the_server_does_not_take_is_told_in_words() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    ask = asking(response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})
    first, second = (refusal("'response_format.type' json_schema is not supported") for _ in range(2))
    _, server = answered(first, second, [head(), HELLO], ask=ask)
    assert server.bodies[1]["response_format"] == {"type": "json_object"}
    assert "response_format" not in server.bodies[2]
    for body in server.bodies[1:]:
        told = body["messages"][0]
        assert told["role"] == "system"
        assert json.dumps(schema, separators=(",", ":")) in told["content"]


SIGNED = {"google": {"thought_signature": "s1"}}


def history(*ids: str) -> list[dict[str, Any]]:
    made = [{"id": id, "type": "function", "function": {"name": "find", "arguments": "{}"}} for id in ids]
    return [*HI, {"role": "assistant", "content": None, "tool_calls": made}]


def test_what_a_server_sent_beside_a_call_goes_back_with_it() -> None:
    async def test() -> None:
        signed = call(Q, 0, "a", "find") | {"extra_content": SIGNED}
        async with raw(
            [head(), stream(tools(signed), tools(call(Q, 1, "b", "find")))], [head(), HELLO]
        ) as server:
            model = opened(server)
            await pieces(model)
            asked = asking(messages=history("a", "b"))
            await pieces(model, asked)
            sent = server.bodies[1]["messages"][1]["tool_calls"]
            assert [each.get("extra_content") for each in sent] == [SIGNED, None]
            assert asked.messages == history("a", "b")

    run(test)


def test_calls_that_a_model_did_not_sign_are_marked_when_it_asks_for_signatures() -> None:
    says = "Function call is missing a thought_signature in functionCall parts."
    refused = [
        whole([{"error": {"code": 400, "message": says, "status": "INVALID_ARGUMENT"}}], "400 Bad Request")
    ]
    found, server = answered(refused, [head(), HELLO], ask=asking(messages=history("a")))
    assert said(found) == "Hello"
    sent = server.bodies[1]["messages"][1]["tool_calls"][0]
    assert sent["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"


def test_a_bound_that_is_too_high_is_no_unknown_parameter() -> None:
    says = "max_tokens is too large: 90000. This model supports at most 16384 completion tokens"
    with pytest.raises(ModelRefused, match="too large: 90000"):
        answered(refusal(says), [head(), HELLO], ask=asking(max_tokens=90000))


# What comes in


def test_text_comes_piece_by_piece_and_then_the_end() -> None:
    usage = event(
        usage={
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "completion_tokens_details": {"reasoning_tokens": 1},
        }
    )
    body = HELLO.replace(DONE, usage + DONE).replace(b'"id": "c"', b'"id": "c", "model": "small-2"')
    found, _ = answered([head(), body])
    end = Ended("stop", TokenUsage(input=3, output=2, reasoning=1), "small-2")
    assert found == [TextDelta("Hel"), TextDelta("lo"), end]


SHAPES: list[tuple[str, bytes]] = [
    ("CRLF", HELLO.replace(b"\n", b"\r\n")),
    ("CR", HELLO.replace(b"\n", b"\r")),
    ("BOM", b"\xef\xbb\xbf" + HELLO),
    ("no space", HELLO.replace(b"data: ", b"data:")),
    ("comments", b": hi\n\n" + HELLO.replace(b"\n\n", b"\n: ping\n\n: ping\n\n")),
    ("other fields", HELLO.replace(b"data:", b"event: x\nid: 3\nretry: 9\ndata:")),
    ("several lines", HELLO.replace(b', "choices"', b',\ndata: "choices"')),
    ("no blank lines", HELLO.replace(b"\n\n", b"\n") + b"\n"),
    ("no last blank line", HELLO.rstrip()),
    ("no DONE", HELLO.replace(DONE, b"")),
    ("no reason", stream({"content": "Hello"}, finish=None)),
    ("nulls", stream({"content": None}, {"content": "Hello", "tool_calls": None, "refusal": None})),
    ("parts", stream({"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]})),
    ("empty choices", event(choices=[]) + HELLO),
    ("fields nobody knows", stream({"content": "Hello", "x": {"y": []}})),
    ("no delta", event(choices=[{"index": 0}]) + HELLO),
]  # fmt: skip


@pytest.mark.parametrize("body", [body for _, body in SHAPES], ids=[name for name, _ in SHAPES])
def test_streams_of_many_shapes_say_the_same(body: bytes) -> None:
    found, _ = answered([head(), body])
    assert said(found) == "Hello"
    assert found[-1] == Ended("stop", None, "small")
    assert not any(isinstance(piece, Ended) for piece in found[:-1])


def test_usage_in_every_chunk_counts_once() -> None:
    body = event({"content": "a"}, usage={"prompt_tokens": 3, "completion_tokens": 1}) + event(
        {"content": "b"}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 2}
    )
    assert answered([head(), body + DONE])[0][-1] == Ended("stop", TokenUsage(input=3, output=2), "small")


@pytest.mark.parametrize(
    ("delta", "thought"),
    [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm"}, "hm"),
        ({"thinking": "hm"}, "hm"),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, "hm"),
    ],
)
def test_reasoning_is_told_apart_however_it_comes(delta: dict[str, Any], thought: str) -> None:
    found = streamed(delta, {"content": "Hello"})
    assert found[0] == ReasoningDelta(thought)
    assert said(found) == "Hello"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_reasoning_inside_the_answer_is_told_apart(size: int) -> None:
    text = "\n<think>\nLet me <b>see</b> </thin\n</think>\n\nIt is <think>2</think>."
    found = streamed(*({"content": text[at : at + size]} for at in range(0, len(text), size)))
    thought = "".join(piece.text for piece in found if isinstance(piece, ReasoningDelta))
    assert thought == "Let me <b>see</b> </thin\n"
    assert said(found) == "It is <think>2</think>."


@pytest.mark.parametrize(
    ("text", "kept"), [("<thin", "<thin"), ("  <b>", "  <b>"), ("\n\nHi", "\n\nHi"), (" ", " ")]
)
def test_what_only_begins_like_a_tag_is_text(text: str, kept: str) -> None:
    assert said(streamed(*({"content": letter} for letter in text))) == kept


def test_a_thought_without_an_end_stays_a_thought() -> None:
    found = streamed({"content": "<think>hm, "}, {"content": "well</th"})
    assert [type(piece) for piece in found[:-1]] == [ReasoningDelta] * (len(found) - 1)
    assert "".join(piece.text for piece in found[:-1]) == "hm, well</th"  # type: ignore[union-attr]


def test_a_refusal_is_told_apart() -> None:
    assert streamed({"refusal": "I can"}, {"refusal": "not"})[:2] == [
        RefusalDelta("I can"),
        RefusalDelta("not"),
    ]


def test_log_probabilities_go_with_their_text() -> None:
    tokens = [{"token": "Hi", "logprob": -0.1, "top_logprobs": []}]
    choice = {"index": 0, "delta": {"content": "Hi"}, "logprobs": {"content": tokens, "refusal": None}}
    found, _ = answered([head(), event(choices=[choice]) + HELLO], ask=asking(top_logprobs=0))
    assert found[0] == TextDelta("Hi", tokens)


def test_characters_that_come_in_halves_are_put_together() -> None:
    halves = (
        b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % half for half in (b"a\\ud83d", b"\\ude00b")
    )
    assert said(answered([head(), b"".join(halves) + HELLO])[0]) == "a😀bHello"
    broken = b'data: {"choices":[{"delta":{"content":"\\ude00 a\xff\\ud83d"}}]}\n\n'
    assert said(answered([head(), broken + DONE])[0]) == "\ufffd a\ufffd\ufffd"


def call(
    arguments: Any = None, index: int | None = 0, id: str | None = None, name: str | None = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    head = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    return {**head, "type": "function", "function": function}


def tools(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(parts)}


Q = '{"query":"a"}'
TWO = [("find", Q), ("find", '{"query":"b"}')]
CALLED: list[tuple[str, list[dict[str, Any]], list[tuple[str, str]]]] = [
    ("as OpenAI", [tools(call("", id="1", name="find")), tools(call('{"query"')), tools(call(':"a"}'))], [("find", Q)]),
    ("whole", [tools(call(Q, id="1", name="find"))], [("find", Q)]),
    ("no id", [tools(call(Q, name="find"))], [("find", Q)]),
    ("no index", [tools(call('{"query"', None, "1", "find")), tools(call(':"a"}', None))], [("find", Q)]),
    ("no index, two", [tools(call(Q, None, "1", "find")), tools(call('{"query":"b"}', None, "2", "find"))], TWO),
    ("no index, two in one", [tools(call(Q, None, name="find"), call('{"query":"b"}', None, name="find"))], TWO),
    ("no index, no id, two", [tools(call(Q, None, name="find")), tools(call('{"query":"b"}', None, name="find"))], TWO),
    ("all of index 0", [tools(call(Q, 0, "1", "find")), tools(call('{"query":"b"}', 0, "2", "find"))], TWO),
    ("interleaved", [tools(call("", 0, "1", "find"), call("", 1, "2", "find")), tools(call('{"query":"b"}', 1)),
                     tools(call(Q, 0))], TWO),
    ("index from 1", [tools(call(Q, 1, "1", "find")), tools(call('{"query":"b"}', 2, "2", "find"))], TWO),
    ("object", [tools(call({"query": "a"}, id="1", name="find"))], [("find", Q)]),
    ("name repeated", [tools(call('{"query"', 0, "1", "find")), tools(call(':"a"}', 0, "1", "find"))], [("find", Q)]),
    ("name repeated, ids new", [tools(call('{"query"', 0, "1", "find")), tools(call(':"a"}', 0, "2", "find"))],
     [("find", Q)]),
    ("name late", [tools(call('{"query"', 0, "1")), tools(call(':"a"}', 0, None, "find"))], [("find", Q)]),
    ("no arguments", [tools(call(None, id="1", name="find"))], [("find", "{}")]),
    ("legacy", [{"function_call": {"name": "find", "arguments": ""}}, {"function_call": {"arguments": Q}}],
     [("find", Q)]),
    ("blank text before", [{"content": "\n\n"}, tools(call(Q, id="1", name="find"))], [("find", Q)]),
]  # fmt: skip


@pytest.mark.parametrize(("deltas", "wanted"), [c[1:] for c in CALLED], ids=[c[0] for c in CALLED])
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call"])
def test_tool_calls_are_understood_in_every_shape(
    deltas: list[dict[str, Any]], wanted: list[tuple[str, str]], finish: str
) -> None:
    found = streamed(*deltas, finish=finish)
    assert calls(found) == wanted
    assert found[-1] == Ended("tool_calls", None, "small")
    assert not said(found)


FIND = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
WRITTEN = '<tool_call>{"name": "find", "arguments": {"n": 1}}</tool_call>'


def test_a_call_that_is_written_as_text_is_a_call() -> None:
    words = {"content": "I look. "}
    parts = [{"content": WRITTEN[at : at + 5]} for at in range(0, len(WRITTEN), 5)]
    found = streamed(words, *parts, ask=asking(tools=[FIND]))
    assert (said(found), calls(found)) == ("I look. ", [("find", '{"n":1}')])
    assert found[-1] == Ended("tool_calls", None, "small")
    for ask in (asking(), asking(tools=[FIND], tool_choice="none")):
        assert said(streamed(words, *parts, ask=ask)) == f"I look. {WRITTEN}"
    both = streamed({"content": WRITTEN}, tools(call('{"n": 1}', name="find")), ask=asking(tools=[FIND]))
    assert (said(both), calls(both)) == ("", [("find", '{"n": 1}')])
    thought = streamed({"content": f"<think>Hm.</think>{WRITTEN}"}, ask=asking(tools=[FIND]))
    assert (said(thought), calls(thought)) == ("", [("find", '{"n":1}')])


def test_a_call_without_a_name_makes_no_sense() -> None:
    with pytest.raises(ModelBroken, match="without a name"):
        streamed(tools(call(Q, id="1")))


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "length"), ("MAX_TOKENS", "length"), ("content_filter", "content_filter"), ("eos", "stop"),
     ("tool_calls", "stop")],
)  # fmt: skip
def test_why_it_ended_in_any_words(finish: str, reason: str) -> None:
    assert streamed({"content": "x"}, finish=finish)[-1] == Ended(reason, None, "small")  # type: ignore[arg-type]


# What fails


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_a_passing_failure_is_tried_again(status: int) -> None:
    found, server = answered([whole({"error": "busy"}, f"{status} No")], [head(), HELLO])
    assert said(found) == "Hello"
    assert len(server.bodies) == 2


def test_what_passes_does_so_within_the_tries() -> None:
    with pytest.raises(ModelUnavailable, match=r"status 503: loading; tried 3 times"):
        answered([whole({"error": {"message": "loading"}}, "503 No")])


def test_the_server_says_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too long is not waited for at all."""
    monkeypatch.setattr(link, "asyncio", pauses := Pauses())
    answered([whole({}, "429 No", "retry-after-ms: 300")], [head(), HELLO])
    assert pauses.asked == [0.3]
    with pytest.raises(ModelUnavailable, match="it asks to wait 3600 s"):
        answered([whole({}, "429 No", "retry-after: 3600")], [head(), HELLO])
    assert pauses.asked == [0.3]


@pytest.mark.parametrize("broken", [[], ["reset"], [head()], [head("200 OK", "text/event-stream", "content-length: 0")],
                                    [b"SSH-2.0-OpenSSH\r\n"]])  # fmt: skip
def test_a_connection_that_ends_before_the_answer_is_tried_again(broken: list[Any]) -> None:
    found, server = answered(broken, [head(), HELLO])
    assert said(found) == "Hello"
    assert len(server.bodies) == 2
    with pytest.raises(ModelUnavailable, match="did not answer"):
        answered(broken, retries=1)


def test_nobody_at_the_address() -> None:
    async def test() -> None:
        async with raw([]) as server:
            pass
        with pytest.raises(
            ModelUnavailable,
            match=r"did not answer: .*[Cc]onnect.*; tried (twice|2 times); start it, or correct model\.url$",
        ):
            await pieces(opened(server, retries=1))

    run(test)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, {"error": {"message": "no such thing", "code": "x"}}, "status 400: no such thing"),
        (400, [{"error": {"code": 400, "message": "in a list"}}], "status 400: in a list"),
        (
            401,
            {"error": {"message": f"Incorrect API key: {KEY}"}},
            r"Incorrect API key: \*\*\*\); give a valid key",
        ),
        (404, {"error": {"message": "The model `small` does not exist"}}, "does not exist.*check model.name"),
        (404, {"detail": "Not Found"}, "Not Found.*usually ends in /v1"),
        (413, b"<html>too large</html>", "status 413"),
        (400, {"error": {"message": "maximum context length is 8192 tokens"}}, "set model.context_tokens"),
        (
            500,
            {"error": {"message": "the request exceeds the available context size"}},
            "set model.context_tokens",
        ),
        (
            429,
            {"error": {"message": "You have no money", "code": "insufficient_quota"}},
            "no money.*quota is used up",
        ),
        (307, {}, "it points to http://other/v1; set model.url"),
    ],
)
def test_a_refusal_is_final_and_says_why(status: int, body: Any, says: str) -> None:
    async def test() -> None:
        async with raw([whole(body, f"{status} No", f"location: http://other/v1?key={KEY}")]) as server:
            model = opened(server)
            with pytest.raises(ModelRefused, match=says) as told:
                await pieces(model)
            assert told.value.status == status
            assert isinstance(told.value, UnknownModel) is ("model.name" in says)
            assert KEY not in str(told.value)
            assert len(server.bodies) == 1
            assert model.usage() | {"requests": 1, "retries": 0, "failures": 1} == model.usage()

    run(test)


def test_a_stream_that_is_cut_broke_off_and_is_not_asked_again() -> None:
    async def test() -> None:
        for cut in (
            [head(), event({"content": "Hel"})],
            [head(), event({"content": "Hel"}), 0.05, "reset"],
            [chunked(event({"content": "Hel"}), event({"content": "lo"}))[:-40]],
            [head("200 OK", "text/event-stream", "content-length: 9999"), event({"content": "Hel"})],
        ):
            async with raw(cut) as server:
                answer = opened(server).answer(asking())
                assert await anext(answer) == TextDelta("Hel")  # type: ignore[arg-type]
                with pytest.raises(ModelBroken, match="broke off"):
                    await anext(answer)  # type: ignore[arg-type]
                assert len(server.bodies) == 1

    run(test)


def test_a_whole_answer_that_is_cut_broke_off() -> None:
    with pytest.raises(ModelBroken, match="broke off"):
        answered([whole(ANSWER)[:-9]], ask=asking(stream=False))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_silence_ends_after_the_timeout(loop: str) -> None:
    """The server would be silent for ever: it sees the client leave."""

    async def test() -> None:
        for steps, kind in (
            (["hang"], ModelUnavailable),
            ([head(), "hang"], ModelUnavailable),
            ([head(), event({"role": "assistant"}), "hang"], ModelUnavailable),
            ([head(), event({"content": "Hel"}), "hang"], ModelBroken),
        ):
            async with raw(steps) as server:
                with pytest.raises(kind, match=r"within 0\.1 s|for 0\.1 s"):
                    async with asyncio.timeout(SECONDS):
                        await pieces(opened(server, timeout=0.1))
                await until_async(lambda server=server: server.left, "the client left")
                assert len(server.bodies) == 1

    run(test, loop=loop)


def test_comments_are_no_answer() -> None:
    """The client leaves while they still come."""

    async def test() -> None:
        async with raw([head(), *([b": ping\n\n", 0.05] * 2_000)]) as server:
            with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.2 s"):
                await pieces(opened(server, timeout=0.2))
            await until_async(lambda: not server.open, "the client left")
            assert (len(server.bodies), server.given) == (1, 0)

    run(test)


def test_pieces_that_come_slowly_may_take_longer_than_the_timeout_together() -> None:
    steps = [
        head(),
        *(step for _ in range(6) for step in (event({"content": "x"}), 0.1)),
        event({}, "stop") + DONE,
    ]
    assert said(answered(steps, timeout=0.3)[0]) == "xxxxxx"


def test_nothing_need_follow_the_reason_why_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoranda.providers.chat.completions.LINGER_SECONDS", 0.1)
    for rest in ([], ["hang"], ["reset"]):
        found, _ = answered([head(), event({"content": "x"}) + event({}, "stop"), *rest])
        assert found == [TextDelta("x"), Ended("stop", None, "small")]


NONSENSE: list[tuple[bytes, bytes, str]] = [
    (b"text/html", b"<html><body>Welcome</body></html>", "makes no sense"),
    (b"text/event-stream", b"data: hello\n\n", "it holds 'hello'"),
    (b"text/event-stream", b'data: {"choices": 7}\n\n', "makes no sense"),
    (b"text/event-stream", b"data: [1, 2]\n\n", "makes no sense"),
    (b"text/event-stream", DONE, "no choices"),
    (b"text/event-stream", b"\x00\xff" * 50, "makes no sense"),
    (b"application/json", b"{}", "no choices"),
    (b"application/json", b'{"choices": []}', "no choices"),
    (b"application/json", b'{"choices": [', "makes no sense"),
    (b"application/json", b"null", "makes no sense"),
]


@pytest.mark.parametrize(("kind", "body", "says"), NONSENSE)
def test_nonsense_is_no_answer(kind: bytes, body: bytes, says: str) -> None:
    with pytest.raises(ModelBroken, match=says):
        answered([head(kind=kind.decode()), body])


def test_nonsense_in_the_middle_breaks_the_answer() -> None:
    for nonsense in (b"data: <html>\n\n", b'data: {"choices": [{"delta": {"content": 7}}]}\n\n'):
        with pytest.raises(ModelBroken, match="makes no sense"):
            answered([head(), event({"content": "x"}), nonsense + DONE])


def test_a_failure_that_the_server_tells_of_in_a_stream() -> None:
    error = {"error": {"message": f"overloaded {KEY}", "code": 503}}
    told = b"data: " + json.dumps(error).encode() + b"\n\n"
    with pytest.raises(ModelUnavailable, match=r"did not answer: overloaded \*\*\*"):
        answered([head(), told])
    with pytest.raises(ModelBroken, match=r"broke off: overloaded \*\*\*"):
        answered([head(), event({"content": "x"}) + told])
    with pytest.raises(ModelRefused, match="status 400: too much"):
        answered([head(), b'data: {"error": {"message": "too much", "code": 400}}\n\n'])
    with pytest.raises(ModelUnavailable, match="out of memory"):
        answered([whole({"object": "error", "message": "out of memory"})])
    with pytest.raises(ModelBroken, match="ended with 'error'"):
        streamed({"content": "x"}, finish="error")


def test_a_line_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoranda.providers.chat.sse.MAX_EVENT_BYTES", 10_000)
    with pytest.raises(ModelBroken, match="does not end"):
        answered([head(), b"data: ", *[b"x" * 5_000] * 5])
    monkeypatch.setattr("memoranda.providers.chat.stream.MAX_ANSWER_BYTES", 10_000)
    with pytest.raises(ModelBroken, match="does not end"):
        answered([head(kind="application/json"), b"{", *[b" " * 5_000] * 5], ask=asking(stream=False))


# Connections


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_closing_the_iterator_ends_the_request_at_once(loop: str) -> None:
    async def test() -> None:
        async with raw([head(), event({"content": "x"}), "hang"]) as server:
            answer = opened(server).answer(asking())
            assert await anext(answer) == TextDelta("x")  # type: ignore[arg-type]
            assert server.left == 0
            await answer.aclose()  # type: ignore[attr-defined]
            await until_async(lambda: server.left, "the client left")

    run(test, loop=loop)


def test_a_call_that_is_cancelled_ends_the_request_too() -> None:
    async def test() -> None:
        for steps in (["hang"], [head(), "hang"], [head(), event({"content": "x"}), "hang"]):
            async with raw(steps) as server:
                task = asyncio.create_task(pieces(opened(server)))
                while not server.connections:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                async with asyncio.timeout(5):
                    while server.left != 1:
                        await asyncio.sleep(0.01)

    run(test)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_connections_are_used_again_and_dropped_when_the_server_closed_them(loop: str) -> None:
    async def test() -> None:
        kept, dropped = [chunked(HELLO), "keep"], [chunked(HELLO)]
        async with raw(kept, kept, [whole(ANSWER), "keep"], dropped, kept) as server:
            model = opened(server)
            for count in (1, 1, 1, 1, 2):
                assert said(await pieces(model)) == "Hello"
                await asyncio.sleep(0.02)
                assert server.connections == count

    run(test, loop=loop)


def test_an_interim_answer_is_passed_over() -> None:
    found, _ = answered([b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + chunked(HELLO)])
    assert said(found) == "Hello"


def test_a_packed_answer_is_unpacked() -> None:
    import gzip

    body = gzip.compress(HELLO)
    found, _ = answered([head("200 OK", "text/event-stream", "content-encoding: gzip"), body[:40], body[40:]])
    assert said(found) == "Hello"


def test_a_reader_that_is_slow_holds_the_server_back() -> None:
    async def test() -> None:
        big = event({"content": "x" * 60_000})
        async with raw([head(), *([big] * 400), event({}, "stop") + DONE]) as server:
            answer = opened(server).answer(asking())
            await anext(answer)  # type: ignore[arg-type]
            await asyncio.sleep(0.3)
            assert server.open == 1  # 24 MB do not fit into what may wait
            rest = [piece async for piece in answer]
            assert len(said(rest)) == 399 * 60_000

    run(test)


def test_calls_beyond_the_bound_wait_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CONNECTIONS", 2)

    async def test() -> None:
        async with raw([head(), 0.1, HELLO]) as server:
            model = opened(server)
            assert [said(each) for each in await asyncio.gather(*(pieces(model) for _ in range(5)))] == [
                "Hello"
            ] * 5
        async with raw([head(), event({"content": "x"}), "hang"]) as server:
            model = opened(server, timeout=0.3)
            held = [model.answer(asking()) for _ in range(2)]
            for each in held:
                await anext(each)  # type: ignore[arg-type]
            with pytest.raises(ModelUnavailable, match="2 calls are under way"):
                await pieces(model)
            await held[0].aclose()  # type: ignore[attr-defined]
            assert await anext(model.answer(asking())) == TextDelta("x")  # type: ignore[arg-type]

    run(test)


def test_one_model_serves_several_event_loops() -> None:
    async def test() -> None:
        async with raw([chunked(HELLO), "keep"]) as server:
            model = opened(server)
            assert said(await pieces(model)) == "Hello"

            def elsewhere() -> str:
                return said(asyncio.run(pieces(model)))

            assert await asyncio.to_thread(elsewhere) == "Hello"
            model.close()
            with pytest.raises(ModelUnavailable, match="is closed"):
                await pieces(model)
            model.close()

    run(test)


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with raw([head(), HELLO]) as proxy:
            monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
            model = open_model(Settings(url="http://model.invalid/v1", name="small"))
            assert said(await pieces(model)) == "Hello"
            assert proxy.heads[0].startswith("POST http://model.invalid/v1/chat/completions")

    run(test)


def certified(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's TLS for `localhost`, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(path)
    return serving, ssl.create_default_context(cafile=str(path))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_server_with_tls_is_asked_when_its_certificate_is_trusted(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving, trusting = certified(tmp_path)

    async def test() -> None:
        async with raw([chunked(HELLO), "keep"], tls=serving) as server:
            with pytest.raises(ModelUnavailable, match="its certificate is not trusted"):
                await pieces(opened(server, retries=0))
            monkeypatch.setattr(link, "trusted", lambda: trusting)
            model = opened(server)
            for _ in range(2):
                assert said(await pieces(model)) == "Hello"
                await asyncio.sleep(0.02)
            assert server.connections == 1
            model.close()

    run(test, loop=loop)


# Names


def test_names_are_asked_for_and_kept() -> None:
    async def test() -> None:
        listed = {"object": "list", "data": [{"id": "large"}, {"id": "small"}, {"id": 7}]}
        async with raw([whole(listed)], [whole({}, "500 No")]) as server:
            model = opened(server)
            assert await model.names() == ["small", "large"]
            assert await model.names() == ["small", "large"]
            assert len(server.heads) == 1
            assert server.heads[0].startswith("GET /v1/models ")
            model._names = (0.0, ["small"])  # type: ignore[attr-defined]
            assert await model.names() == ["small"]
            assert await model.names() == ["small"]
            assert len(server.heads) == 2

    run(test)


@pytest.mark.parametrize(
    "reply",
    [[], [whole(b"<html>", kind="text/html")], [whole([])], [whole({"data": 3})], [whole({}, "404 No")]],
)
def test_a_server_that_lists_nothing_has_its_own_name(reply: list[Any]) -> None:
    async def test() -> None:
        async with raw(reply) as server:
            assert await opened(server).names() == ["small"]

    run(test)


@pytest.mark.parametrize("listed", [{"data": []}, {"data": [{"id": "other"}]}, {"data": [{"id": "large"}]}])
def test_a_refused_model_is_unknown_if_the_server_lists_others(listed: Any) -> None:
    async def test() -> None:
        says = {"error": {"message": "Invalid model name passed in model=large"}}
        async with raw([whole(says, "400 No")], [whole(listed)]) as server:
            with pytest.raises(ModelRefused, match="Invalid model name") as told:
                await pieces(opened(server), asking(model="large"))
            assert isinstance(told.value, UnknownModel) is (listed == {"data": [{"id": "other"}]})
            assert told.value.status == 400

    run(test)


# Settings


@pytest.mark.parametrize(
    ("settings", "field", "says"),
    [
        ({"name": None}, "model.name", "is missing"),
        ({"url": "ftp://h"}, "model.url", "'ftp' is unknown"),
        ({"url": "http:///v1"}, "model.url", "names no host"),
        ({"url": "http://h:x/v1"}, "model.url", "is no address"),
        ({"url": "https://u:p@h/v1"}, "model.url", "carries a password"),
        ({"url": "https://h/v1?key=1"}, "model.url", "a query"),
        ({"provider": "acme"}, "model.provider", "'acme' is unknown; use one of openai, vllm"),
        ({"api_key": "a b"}, "model.api_key", "a space"),
        ({"api_key": "a", "api_key_env": "B"}, "model.api_key", "beside model.api_key_env; keep one"),
        ({"api_key": None, "api_key_env": "NOT_SET_ANYWHERE"}, "model.api_key_env", "is not set"),
        ({"api_key": None, "api_key_file": "/nope/key"}, "model.api_key_file", "cannot be read"),
        ({"url": "https://api.openai.com/v1", "api_key": None}, "model.api_key", "variable OPENAI_API_KEY"),
    ],
)
def test_settings_that_cannot_work_are_refused_when_it_is_opened(
    settings: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as told:
        open_model(Settings(**{"url": "http://h/v1", "name": "small", "api_key": KEY} | settings))
    assert told.value.field == field


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://mine.openai.azure.com/openai/v1", "openai"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("http://gpu:11434/v1", "ollama"),
        ("http://gpu:8000/v1", "vllm"),
        ("http://gpu:8080/v1", "llama.cpp"),
        ("http://gpu:4000", "litellm"),
        ("https://openrouter.ai/api/v1/chat/completions", "generic"),
    ],
)
def test_the_provider_is_known_by_its_address(url: str, provider: str) -> None:
    model = open_model(Settings(url=url, name="small", api_key=KEY))
    assert model.quirks.name == provider  # type: ignore[attr-defined]


def test_a_usual_key_goes_to_its_own_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    open_model(Settings(url="https://api.openai.com/v1", name="small"))
    _, server = answered([head(), HELLO], provider="openai", api_key=None)
    assert KEY not in server.heads[0]


def test_a_key_in_a_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("one\n")

    async def test() -> None:
        async with raw([head(), HELLO]) as server:
            model = opened(server, api_key=None, api_key_file=str(path))
            await pieces(model)
            path.write_text("two\n")
            await pieces(model)
            assert ["Bearer one" in server.heads[0], "Bearer two" in server.heads[1]] == [True, True]
            path.unlink()
            with pytest.raises(ModelUnavailable, match="cannot be read"):
                await pieces(model)

    run(test)


def test_the_key_is_shown_nowhere() -> None:
    model = open_model(Settings(url="http://h/v1", name="small", api_key=KEY))
    assert KEY not in repr(model) + repr(vars(model))
