"""MCP servers, real ones over HTTP: listed, allowed, approved, called; away, hanging, talking too much; secrets."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from memoranda.config.agent_sections import Responses
from memoranda.errors import InvalidInput
from memoranda.responses.declared import echoed
from memoranda.responses.mcp_declaration import checked
from memoranda.responses.tools.base import Result, Tool, Turn, asking
from memoranda.responses.tools.mcp import OUTPUT_TOKENS, McpTool, approved, listed
from memoranda.responses.values import Item, MemoryUse
from memoranda.text import tokens
from memoranda.types import Subject
from support.waiting import SECONDS

SETTINGS = Responses(tool_timeout=60.0)
TOKEN = "tok-abcdefgh-12345678"
TURN = Turn(
    core=None,  # type: ignore[arg-type]  # an MCP tool does without the house
    subject=Subject(),
    settings=SETTINGS,
    session_id="s",
    agent_id=None,
    memory=MemoryUse(),
    count=tokens.count,
)


def tools_server(slept: list[float]) -> MCPServer:
    """A server with one tool of every kind that matters; `slept` gets the seconds of every sleep that came to its
    end."""
    server = MCPServer("desk")
    reads = ToolAnnotations(read_only_hint=True)

    @server.tool(annotations=reads, description="Adds two numbers.")
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    def fail(why: str) -> str:
        raise ToolError(why)

    @server.tool()
    async def sleep(seconds: float) -> str:
        await asyncio.sleep(seconds)
        slept.append(seconds)
        return "slept"

    @server.tool(structured_output=False)
    def long(characters: int) -> str:
        return "größer " * (characters // 7)

    @server.tool(structured_output=False)
    def parts() -> list[Any]:
        return ["a line", Image(data=b"12345", format="png"), "another"]

    @server.tool(structured_output=False)
    def nothing() -> list[Any]:
        return []

    @server.tool()
    def headers(ctx: Context[Any, Any]) -> dict[str, str]:
        request = ctx.request_context.request
        return dict(request.headers) if request is not None else {}

    return server


class Site:
    """An HTTP server in a thread: MCP under several paths, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.moved_to = ""
        self.slept: list[float] = []
        self.mcp = tools_server(self.slept)
        streaming = self.mcp.streamable_http_app()
        plain = tools_server(self.slept).streamable_http_app(json_response=True, stateless_http=True)
        self.apps = [streaming, plain]
        app = Starlette(
            routes=[
                Route("/moved", self.move, methods=["GET", "POST"]),
                Route("/broken", self.nonsense, methods=["GET", "POST"]),
                Route("/packed", self.bomb, methods=["GET", "POST"]),
                Mount("/json", plain),
                Mount("/secret", self.locked(streaming)),
                Mount("/events", tools_server(self.slept).sse_app()),
                Mount("/", streaming),
            ]
        )
        config = uvicorn.Config(self.noting(app), port=0, log_level="critical", lifespan="off")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    async def serve(self) -> None:
        first, second = self.apps
        async with first.router.lifespan_context(first), second.router.lifespan_context(second):
            await self.server.serve()

    def noting(self, app: Any) -> Callable[..., Awaitable[None]]:
        async def note(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.asked.append(f"{scope['method']} {scope['path']}")
            await app(scope, receive, send)

        return note

    def locked(self, app: Any) -> Callable[..., Awaitable[None]]:
        async def look(scope: Any, receive: Any, send: Any) -> None:
            key = dict(scope["headers"]).get(b"authorization", b"").decode()
            await (app if key == f"Bearer {TOKEN}" else Response(f"no: {key}", 401))(scope, receive, send)

        return look

    async def move(self, request: Request) -> Response:
        return RedirectResponse(self.moved_to, 307)

    async def nonsense(self, request: Request) -> Response:
        return Response("<html>welcome</html>", media_type="text/html")

    async def bomb(self, request: Request) -> Response:
        packed = gzip.compress(b" " * 50_000_000)
        return Response(packed, media_type="application/json", headers={"content-encoding": "gzip"})

    def url(self, path: str = "/mcp") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def stop(self) -> None:
        self.server.should_exit = True
        self.server.force_exit = True
        self.thread.join(5)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    held = Site()
    yield held
    held.stop()


def declared(url: str, **fields: Any) -> dict[str, Any]:
    return {"type": "mcp", "server_label": "desk", "server_url": url, "require_approval": "never", **fields}


class Using:
    """The tools of one response, closed at its end; nothing of it goes on."""

    def __init__(
        self, *given: dict[str, Any], settings: Responses = SETTINGS, cached: Item | None = None
    ) -> None:
        self.given = given
        self.settings = settings
        self.cached = cached
        self.items: list[Item] = []
        self.tools: list[Tool] = []

    async def __aenter__(self) -> Using:
        self.before = asyncio.all_tasks()
        for one in self.given:
            item, tools = await listed(one, self.cached, self.settings, True)
            self.items.append(item)
            self.tools += tools
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.gather(*(tool.close() for tool in self.tools))
        assert asyncio.all_tasks() - self.before == set()

    def __getitem__(self, name: str) -> McpTool:
        (tool,) = (tool for tool in self.tools if tool.name == name)
        assert isinstance(tool, McpTool)
        return tool

    async def call(self, tool: str, **arguments: Any) -> Result:
        item = self[tool].begun("{}")
        assert (item["type"], item["status"], item["server_label"]) == ("mcp_call", "in_progress", "desk")
        result = await self[tool].run(item, arguments, TURN)
        assert result.item["id"] == item["id"]
        return result


PATHS = ("/mcp", "/json/mcp", "/events/sse")


@pytest.mark.parametrize("path", PATHS)
def test_tools_are_listed_and_called(site: Site, path: str) -> None:
    async def main() -> None:
        async with Using(declared(site.url(path), server_description="The desk's tools.")) as used:
            (item,) = used.items
            assert item["id"].startswith("mcpl_")
            assert (item["type"], item["server_label"], item["error"]) == ("mcp_list_tools", "desk", None)
            names = [tool["name"] for tool in item["tools"]]
            assert names == ["add", "fail", "sleep", "long", "parts", "nothing", "headers"]
            first = item["tools"][0]
            assert first["description"] == "Adds two numbers."
            assert first["annotations"]["readOnlyHint"] is True
            offered = used["add"].offered("add_2")["function"]
            assert offered == {
                "name": "add_2",
                "description": "Adds two numbers.\n\nThe desk's tools.",
                "parameters": first["input_schema"],
            }
            assert first["input_schema"]["properties"]["a"]["type"] == "integer"
            result = await used.call("add", a=2, b=40)
            assert (result.item["status"], result.item["output"], result.item["error"]) == (
                "completed",
                "42",
                None,
            )
            assert result.text == "42"

    asyncio.run(main())


def test_calls_at_once_share_one_session_and_stay_apart(site: Site) -> None:
    async def main() -> None:
        async with Using(declared(site.url())) as used:
            before = len(site.asked)
            results = await asyncio.gather(*(used.call("add", a=n, b=1) for n in range(20)))
            assert [result.text for result in results] == [str(n + 1) for n in range(20)]
            assert len(site.asked) - before == 20

    asyncio.run(main())


def test_a_tool_that_fails_is_an_error_that_the_model_reads(site: Site) -> None:
    async def main() -> None:
        async with Using(declared(site.url())) as used:
            result = await used.call("fail", why="the drawer is locked")
            assert (result.item["status"], result.item["output"]) == ("failed", None)
            assert result.item["error"]["type"] == "mcp_tool_execution_error"
            assert result.degraded == []
            assert "the drawer is locked" in result.item["error"]["content"][0]["text"]
            assert result.text.startswith("Error: ")
            wrong = await used.call("add", a="x", b=[])
            assert wrong.item["status"] == "failed"
            assert (await used.call("add", a=1, b=1)).text == "2"

    asyncio.run(main())


@pytest.mark.parametrize("path", PATHS)
def test_a_tool_that_hangs_is_left_and_the_session_goes_on(site: Site, path: str) -> None:
    async def main() -> None:
        async with Using(declared(site.url(path))) as used:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await used.call("sleep", seconds=SECONDS)
            assert (await used.call("add", a=1, b=1)).text == "2"
        assert SECONDS not in site.slept

    asyncio.run(main())


@pytest.mark.parametrize("path", PATHS)
def test_a_cancelled_response_leaves_nothing_behind(site: Site, path: str) -> None:
    async def main() -> None:
        before = asyncio.all_tasks()
        used = await Using(declared(site.url(path))).__aenter__()

        async def respond() -> None:
            try:
                await asyncio.gather(used.call("sleep", seconds=30), used.call("sleep", seconds=30))
            finally:
                await used["add"].close()

        response = asyncio.create_task(respond())
        await asyncio.sleep(0.1)
        response.cancel()
        await asyncio.wait({response}, timeout=5)
        assert response.cancelled()
        assert asyncio.all_tasks() == before
        closed = await used.call("add", a=1, b=1)
        assert closed.text == "Error: the session with the MCP server 'desk' was closed"

    asyncio.run(main())


def test_a_response_that_ends_while_a_server_is_connected_leaves_nothing_behind(site: Site) -> None:
    async def main() -> None:
        async with Using(declared(site.url())) as used:
            item = used.items[0]
        used = await Using(declared(site.url()), cached=item).__aenter__()
        calling = asyncio.create_task(used.call("add", a=1, b=1))
        await asyncio.sleep(0.001)
        await used["add"].close()
        assert (await calling).item["status"] in ("completed", "failed")
        await used["add"].close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_listing_that_is_cancelled_leaves_nothing_behind(site: Site) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
            asking = asyncio.create_task(listed(declared(url), None, SETTINGS, True))
            await asyncio.sleep(0.2)
            asking.cancel()
            await asyncio.wait({asking}, timeout=5)
            assert asking.cancelled()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_server_that_is_away_silent_or_no_mcp_is_an_item_with_an_error(site: Site) -> None:
    async def errors(url: str, seconds: float = 5.0) -> str:
        before = asyncio.all_tasks()
        item, tools = await listed(declared(url), None, Responses(tool_timeout=seconds), True)
        assert (item["tools"], tools) == ([], [])
        assert asyncio.all_tasks() == before
        return str(item["error"])

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            said = await errors(f"{url}/mcp", 0.3)
            assert said == "the MCP server 'desk' did not answer within 0.3 seconds"
            assert await errors(f"{url}/sse", 0.3) == said
        assert await errors(f"{url}/mcp") == "the MCP server 'desk' cannot be reached"
        assert await errors(f"{url}/sse") == "the MCP server 'desk' cannot be reached"
        assert await errors(site.url("/nowhere")) == "the MCP server 'desk' answered 404"
        assert "Unexpected content type: text/html" in await errors(site.url("/broken"))
        assert "Failed to parse JSON response: packed" in await errors(site.url("/packed"))

    asyncio.run(main())


def test_a_server_that_goes_meanwhile_fails_the_calls_that_follow() -> None:
    async def main() -> None:
        own = Site()
        async with Using(declared(own.url())) as used:
            assert (await used.call("add", a=1, b=1)).text == "2"
            asleep = asyncio.create_task(used.call("sleep", seconds=30))
            await asyncio.sleep(0.2)
            await asyncio.to_thread(own.stop)
            async with asyncio.timeout(5):
                assert (await asleep).item["status"] == "failed"
                for _ in range(2):
                    result = await used.call("add", a=1, b=1)
                    assert result.item["status"] == "failed"
                assert result.text == "Error: the MCP server 'desk' cannot be reached"

    asyncio.run(main())


def test_only_allowed_tools_are_listed_and_offered(site: Site) -> None:
    cases: list[tuple[Any, list[str]]] = [
        (["add", "sleep", "unknown"], ["add", "sleep"]),
        ([], []),
        ({"tool_names": ["fail"]}, ["fail"]),
        ({"read_only": True}, ["add"]),
        ({"read_only": True, "tool_names": ["fail"]}, []),
    ]

    async def main() -> None:
        for allowed, expected in cases:
            async with Using(declared(site.url(), allowed_tools=allowed)) as used:
                assert [tool["name"] for tool in used.items[0]["tools"]] == expected
                assert [tool.name for tool in used.tools] == expected

    asyncio.run(main())


def test_approval_is_asked_unless_it_is_said_otherwise(site: Site) -> None:
    names = {"add", "fail", "sleep", "long", "parts", "nothing", "headers"}
    cases: list[tuple[Any, set[str]]] = [
        (None, set()),
        ("always", set()),
        ("never", names),
        ({"never": {"tool_names": ["add"]}}, {"add"}),
        ({"never": {"read_only": True}}, {"add"}),
        ({"always": {"tool_names": ["fail"]}}, set()),
        ({"always": {"tool_names": ["add"]}, "never": {"tool_names": ["add", "fail"]}}, {"fail"}),
        ({"never": {}}, set()),
    ]

    async def main() -> None:
        item, tools = await listed(declared(site.url()), None, SETTINGS, True)
        await tools[0].close()
        for asked, expected in cases:
            raw = declared(site.url(), require_approval=asked)
            async with Using(raw, cached=item) as used:
                assert {tool.name for tool in used.tools if tool.approved} == expected
        async with Using(declared(site.url(), require_approval="always"), cached=item) as used:
            request = asking(used["add"].begun('{"a": 1}'))
            assert request.pop("id").startswith("mcpr_")
            assert request == {
                "type": "mcp_approval_request", "server_label": "desk", "name": "add", "arguments": '{"a": 1}'
            }  # fmt: skip

    asyncio.run(main())


def test_a_listing_of_an_earlier_turn_is_used_and_nobody_is_asked_before_a_call(site: Site) -> None:
    async def main() -> None:
        async with Using(declared(site.url())) as used:
            item = used.items[0]
        before = len(site.asked)
        async with Using(declared(site.url()), cached=item) as used:
            assert used.items == [item]
            assert len(site.asked) == before
            assert (await used.call("add", a=1, b=2)).text == "3"
        failed = {**item, "error": "it was away", "tools": []}
        async with Using(declared(site.url()), cached=failed) as used:
            assert used.items[0]["id"] != item["id"]
            assert used.items[0]["tools"] == item["tools"]

    asyncio.run(main())


def test_answers_to_approval_requests_are_told_by_their_request() -> None:
    request = {
        "id": "mcpr_1",
        "type": "mcp_approval_request",
        "server_label": "desk",
        "name": "add",
        "arguments": "{}",
    }
    other, third = {**request, "id": "mcpr_2"}, {**request, "id": "mcpr_3"}

    def answer(id_: Any, approve: Any, **fields: Any) -> Item:
        return {"type": "mcp_approval_response", "approval_request_id": id_, "approve": approve, **fields}

    said = {"type": "message", "role": "user", "content": []}
    called = {"type": "mcp_call", "id": "mcp_1", "approval_request_id": "mcpr_3"}
    items = [said, request, other, third, answer("mcpr_3", True), called, answer("mcpr_1", True)]
    assert approved(items) == {"mcpr_1": ({**request, "_reason": None}, True)}
    refused = [*items, answer("mcpr_2", False, reason="too dear")]
    assert approved(refused)["mcpr_2"] == ({**other, "_reason": "too dear"}, False)
    assert approved([]) == {}
    for wrong in (
        answer("mcpr_9", True),
        answer(None, True),
        answer("mcpr_1", "yes"),
        {"type": "mcp_approval_response"},
    ):
        with pytest.raises(InvalidInput) as caught:
            approved([*items, wrong])
        assert caught.value.field == "input"


def test_secrets_are_in_no_item_error_log_or_echo(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    extra = "another-secret-value"

    async def main() -> list[object]:
        raw = declared(
            site.url("/secret/mcp"), authorization=TOKEN, headers={"X-Key": extra, "X-Mode": "fast"}
        )
        async with Using(raw) as used:
            result = await used.call("headers")
            assert '"x-mode": "fast"' in result.text.replace('":"', '": "')
            assert result.text.count("***") == 2
            held = [used.items, result.item, result.text, repr(used["headers"]), echoed(raw)]
            assert used.items[0]["error"] is None
        for token in ("wrong-" + TOKEN, None):
            item, _ = await listed({**raw, "authorization": token}, None, SETTINGS, True)
            says = "answered 401: it does not let us in; check `authorization` or `headers`"
            assert item["error"] == f"the MCP server 'desk' {says}"
            held.append(item)
        async with Using(raw, cached=used.items[0]) as used:
            used["headers"].server._headers["authorization"] = "Bearer stale-" + TOKEN
            failed = await used.call("headers")
            assert failed.item["error"]["type"] == "http_error"
            assert failed.degraded == ["mcp"]
            assert failed.item["error"]["code"] == 401
            held += [failed.item, failed.text]
        return held

    seen = f"{asyncio.run(main())} {caplog.text}"
    assert TOKEN not in seen
    assert extra not in seen
    assert "/secret" not in seen


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
        ("https://mcp.example.com:8443", "https://mcp.example.com:8443"),
        ("https://mcp.example.com/s/abc123/mcp", "https://mcp.example.com/<redacted>"),
        ("https://mcp.example.com/mcp?api_key=abc123", "https://mcp.example.com/<redacted>"),
        ("https://me:abc123@mcp.example.com/mcp", "https://mcp.example.com/<redacted>"),
        ("https://mcp.example.com#abc123", "https://mcp.example.com/<redacted>"),
    ],
)
def test_an_echo_shows_what_is_no_secret(url: str, shown: str) -> None:
    raw = {**declared(url), "authorization": "abc123-abc123", "headers": {"X-Key": "abc123"}}
    assert echoed(raw) == {**declared(shown), "headers": None}
    assert echoed({"type": "mcp", "server_label": "x"}) == {"type": "mcp", "server_label": "x"}


def test_a_long_output_is_bounded_and_says_so(site: Site) -> None:
    async def main() -> None:
        async with Using(declared(site.url())) as used:
            result = await used.call("long", characters=1_000_000)
            text, note = result.text.rsplit("\n", 1)
            assert note == f"[The output was longer; these are its first {OUTPUT_TOKENS} tokens.]"
            assert OUTPUT_TOKENS - 20 < tokens.count(text) <= OUTPUT_TOKENS
            assert result.item["output"] == result.text
            whole = await used.call("long", characters=700)
            assert whole.text == "größer " * 100

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/mcp", "/json/mcp"])
def test_an_answer_without_end_is_refused_before_it_is_held(site: Site, path: str) -> None:
    async def main() -> None:
        async with Using(declared(site.url(path))) as used:
            result = await used.call("long", characters=20_000_000)
            assert result.item["status"] == "failed"
            assert len(result.text) < 500

    asyncio.run(main())


def test_what_is_no_text_is_told_in_a_line(site: Site) -> None:
    async def main() -> None:
        async with Using(declared(site.url())) as used:
            assert (await used.call("parts")).text == "a line\n[image: image/png, 5 bytes]\nanother"
            empty = await used.call("nothing")
            assert (empty.item["output"], empty.text) == ("", "The tool gave back nothing.")

    asyncio.run(main())


def test_a_redirect_to_another_address_is_not_followed(site: Site) -> None:
    async def main() -> None:
        other = Site()
        site.moved_to = other.url()
        try:
            item, tools = await listed(declared(site.url("/moved")), None, SETTINGS, True)
        finally:
            other.stop()
        assert tools == []
        assert "sends on to another address, which is not followed" in item["error"]
        assert other.asked == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("hosts", "open_to_all", "url", "says"),
    [
        (None, False, "https://a.example/mcp", "no MCP server may be called"),
        ([], True, "https://a.example/mcp", "the host a.example is not one of"),
        (["b.example"], True, "https://a.example/mcp", "the host a.example is not one of"),
        (["a.example:8443"], False, "https://a.example/mcp", "the host a.example is not one of"),
        (["a.example"], False, "https://a.example.evil.example/mcp", "is not one of"),
        (["a.example"], False, "https://evil.example#@a.example/mcp", "is not one of"),
        (None, True, "ftp://a.example/mcp", "must be a URL"),
        (None, True, "a.example/mcp", "must be a URL"),
        (None, True, "http:///mcp", "must be a URL"),
        (None, True, "http://a.example:99999/mcp", "must be a URL"),
        (None, True, "http://a.example/m cp", "must be a URL"),
        (None, True, "http://a.example/\nmcp", "must be a URL"),
        (["a.example"], False, "https://u:p@a.example/mcp", "must not hold a user or password"),
        (None, True, None, "is required"),
    ],
)
def test_hosts_that_may_not_be_called_are_refused(
    hosts: list[str] | None, open_to_all: bool, url: str | None, says: str
) -> None:
    settings = Responses(mcp_hosts=hosts)
    with pytest.raises(InvalidInput, match=says) as caught:
        checked({**declared("x"), "server_url": url}, settings, open_to_all, "tools[3]")
    assert caught.value.field == "tools[3].server_url"


def test_hosts_that_may_be_called() -> None:
    for hosts in (["A.example"], ["a.example:443"], ["b.example", "a.example"]):
        assert (
            checked(declared("https://a.EXAMPLE/mcp"), Responses(mcp_hosts=hosts), False).server_label
            == "desk"
        )
    assert checked(declared("http://10.0.0.1:1/mcp"), Responses(), True)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"server_label": ""}, "server_label"),
        ({"server_label": "memoranda"}, "server_label"),
        ({"connector_id": "connector_gmail"}, "connector_id"),
        ({"tunnel_id": "tunnel_1"}, "tunnel_id"),
        ({"require_approval": "sometimes"}, "require_approval"),
        ({"allowed_tools": "add"}, "allowed_tools"),
        ({"headers": {"Host": "evil.example"}}, "headers"),
        ({"headers": {"X Key": "a"}}, "headers"),
        ({"headers": {"X-Key": "a\r\nHost: b"}}, "headers.X-Key"),
        ({"authorization": "a\nb"}, "authorization"),
        ({"authorization": "abc", "headers": {"Authorization": "Bearer x"}}, "authorization"),
    ],
)
def test_a_wrong_declaration_is_refused_by_its_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked(declared("https://a.example/mcp", **fields), SETTINGS, True, "tools[0]")
    assert caught.value.field == f"tools[0].{field}"


def test_the_package_is_loaded_when_a_server_is_called_and_not_before() -> None:
    code = "import sys, memoranda.responses.plan, memoranda.responses.tools.mcp; print('mcp' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
