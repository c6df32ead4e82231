"""What is said by a user, and what was made of it, is theirs: sessions, messages, facts, contexts, questions to their
documents, and what they cost. Two tenants, seven kinds of callers, one server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import not_
from typing import Any

import httpx
import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.server.app import create_app
from support.waiting import until

NORTH, SOUTH = "north", "south"
SECRET = "the combination is 7714 amber"
KEYS: dict[str, tuple[str, str, str | None]] = {
    "ada": (NORTH, "admin", None),
    "alice": (NORTH, "member", "alice"),
    "bob": (NORTH, "member", "bob"),
    "service": (NORTH, "service", None),
    "bound": (NORTH, "service", "bob"),
    "reader": (NORTH, "reader", "bob"),
    "carol": (SOUTH, "member", "alice"),
    "sam": (SOUTH, "admin", None),
}
"""Tenant, role and user of each key. The member of the south has the same user id as alice."""
STRANGERS = ("bob", "bound", "reader", "carol", "sam")
TABLES = ("messages", "sessions", "memories", "memory_sources", "rollups", "spending")
MULTIPART = "multipart"


@dataclass
class World:
    """A product for two tenants over HTTP; `heard` is every byte that strangers were sent."""

    rc: BlockingMemoranda
    app: Any
    heard: list[str] = field(default_factory=list)
    stock: dict[str, str] = field(default_factory=dict)

    def ask(self, who: str, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """One request over HTTP."""

        async def go() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=("127.0.0.1", 4000))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8377") as http:
                headers = {"authorization": f"Bearer key of {who}"}
                return await http.request(method, path, json=body, headers=headers, **options)

        answer = self.rc.portal.call(go())
        if who in STRANGERS:
            self.heard.append(answer.text)
        return answer

    def made(self, who: str, path: str, body: Any, **options: Any) -> Any:
        """What a POST that works gives back."""
        answer = self.ask(who, "POST", path, body, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def rest(self) -> None:
        """Waits until nothing is left to do."""
        left = (
            "SELECT kind, state, error FROM jobs WHERE state IN ('queued', 'running')",
            "SELECT 1 FROM unembedded LIMIT 1",
        )
        until(lambda: [row for sql in left for row in self.rows(sql)], "nothing left to do", accept=not_)

    def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        return self.rc.inner.core.store.db.read(lambda c: c.select(sql, list(params)))

    def held(self, tenant: str = NORTH) -> dict[str, list[str]]:
        """Everything that a tenant has, as rows."""
        select = "SELECT * FROM {} WHERE tenant_id = ?"
        return {table: sorted(map(repr, self.rows(select.format(table), tenant))) for table in TABLES}


@pytest.fixture(scope="module")
def world(lasting_home: Any) -> Iterator[World]:
    keys = [
        {"name": name, "key": f"key of {name}", "tenant": tenant, "role": role, "user": user}
        for name, (tenant, role, user) in KEYS.items()
    ]
    settings = {"facts": {"capture_rules": True}, "sessions": {"summarize": False}}
    with lasting_home.empty(keys=keys, **settings) as opened:
        yield World(opened, create_app(opened.inner))


def things(world: World) -> dict[str, str]:
    """One of everything that a user can say, ask or have, each with the secret in it: their ids."""
    if world.stock:
        return world.stock
    said = [
        {"content": f"Remember that {SECRET}.", "occurred_at": "2026-03-01T10:00:00Z"},
        {"content": f"I live in Bergen, and {SECRET}.", "occurred_at": "2026-03-01T10:01:00Z"},
        {"content": f"I live in Tromso now, and {SECRET}.", "occurred_at": "2026-03-01T10:02:00Z"},
    ]
    at = "/v1/messages"
    cut = world.made("alice", at, {"channel_id": "den", "messages": said})["data"]
    named = world.made("alice", "/v1/sessions/alices-0001/messages", {"messages": said[:1]})["data"]
    document = {"file": ("secret.txt", SECRET.encode())}
    upload = world.ask("alice", "POST", "/api/v1/upload-ask/documents", files=document).json()
    asked = world.made("alice", "/api/v1/upload-ask/query", {"query": f"What of {SECRET}?"})
    world.rest()
    facts = world.ask("alice", "GET", "/v1/memories?kinds=fact&scopes=user:alice").json()["data"]
    world.stock = {
        "session": cut[0]["session_id"],
        "message": cut[0]["id"],
        "named": named[0]["session_id"],
        "fact": facts[0]["id"],
        "document": str(upload["id"]),
        "talk": str(asked["sessionId"]),
    }
    return world.stock


def unknown_to(known: dict[str, str]) -> dict[str, str]:
    """Ids of the same shape that nobody has."""
    return {kind: id_[:-4] + "0f0f" for kind, id_ in known.items()}


def probes() -> list[tuple[str, str, Any]]:
    """A method, a path and a body for every way to name something; `{kind}` stands for its id."""
    ways: list[tuple[str, str, Any]] = []
    for kind in ("session", "named"):
        path = f"/v1/sessions/{{{kind}}}"
        ways += [
            ("GET", path, None),
            ("GET", f"{path}/messages", None),
            ("POST", f"{path}/close", None),
            ("POST", f"{path}/summarize", None),
            ("DELETE", path, None),
            ("GET", f"/v1/sessions?after={{{kind}}}", None),
            ("POST", "/v1/context", {"query": "what is the combination?", "scopes": [f"session:{{{kind}}}"]}),
            ("POST", "/v1/memories/consolidate", {"scopes": [f"session:{{{kind}}}"]}),
        ]
    message = "/v1/sessions/{session}/messages/{message}"
    return [
        *ways,
        ("POST", message, {"content": "something else entirely"}),
        ("DELETE", message, None),
        ("GET", "/v1/sessions/{session}/messages?after={message}", None),
        ("GET", "/v1/memories/{message}", None),
        ("GET", "/v1/memories/{fact}/history", None),
        ("POST", "/v1/memories/{fact}/confirm", None),
        ("POST", "/v1/memories/{fact}/undo", None),
        ("DELETE", "/v1/memories/{fact}", None),
        ("GET", "/api/v1/upload-ask/documents/{document}", None),
        ("DELETE", "/api/v1/upload-ask/documents/{document}", None),
        ("GET", "/api/v1/upload-ask/sessions/{talk}", None),
        ("GET", "/api/v1/upload-ask/sessions/{talk}/messages", None),
        ("POST", "/api/v1/upload-ask/query", {"query": "the combination?", "sessionId": "{talk}"}),
        ("POST", "/api/v1/upload-ask/qa/query", {"query": "the combination?", "sessionId": "{talk}"}),
    ]


def filled(given: Any, ids: dict[str, str]) -> Any:
    text = json.dumps(given)
    for kind, id_ in ids.items():
        text = text.replace(f"{{{kind}}}", id_)
    return json.loads(text)


def plain(answer: httpx.Response, ids: dict[str, str]) -> tuple[int, str]:
    """An answer with the ids that were asked about taken out; of one that worked only that it did."""
    text = answer.text
    for kind, id_ in ids.items():
        text = text.replace(id_, f"<{kind}>")
    return answer.status_code, text if answer.status_code != 200 else "worked"


@pytest.mark.parametrize("who", STRANGERS)
@pytest.mark.gate("sqlite", "postgresql-bob")
def test_what_is_anothers_is_as_what_is_not_there(world: World, who: str) -> None:
    known = things(world)
    unknown, before = unknown_to(known), world.held()
    for method, path, body in probes():
        asked = [world.ask(who, method, filled(path, ids), filled(body, ids)) for ids in (known, unknown)]
        theirs, nobodys = plain(asked[0], known), plain(asked[1], unknown)
        assert theirs == nobodys, (method, path)
        assert theirs[0] < 500, (method, path, theirs)
    after = world.held()
    for table in ("messages", "sessions", "memories", "memory_sources"):
        lost = [row for row in before[table] if row not in after[table]]
        assert lost == [], (table, [row for row in after[table] if row not in before[table]])
    assert SECRET not in "".join(world.heard)


@pytest.mark.parametrize("who", STRANGERS)
def test_no_listing_search_or_count_tells_of_anothers(world: World, who: str) -> None:
    things(world)
    scopes, heard = ["user:alice", "channel:den", "global"], len(world.heard)
    for path, body in (
        ("/v1/memories/search", {"query": "combination amber", "scopes": scopes, "threshold": 0}),
        ("/v1/context", {"query": "combination amber", "scopes": scopes}),
        ("/v1/memories/consolidate", {"scopes": scopes}),
        ("/api/v1/upload-ask/query", {"query": "combination amber?"}),
    ):
        world.ask(who, "POST", path, body)
    for path in (
        "/v1/sessions",
        "/v1/sessions?channel_id=den",
        "/v1/sessions?participant=alice",
        "/v1/memories?kinds=fact&scopes=user:alice",
        "/v1/memories?kinds=message&scopes=channel:den",
        "/api/v1/upload-ask/sessions",
        "/api/v1/upload-ask/logs",
        "/api/v1/upload-ask/documents",
        "/v1/memories/export?scopes=user:alice",
    ):
        world.ask(who, "GET", path)
    counted = world.ask(who, "POST", "/v1/memories/count", {"scopes": ["channel:den"]})
    tenant = KEYS[who][0]
    theirs = "SELECT count(*) FROM memories WHERE tenant_id = ? AND channel_id = 'den' AND user_id <> 'alice'"
    if counted.status_code == 200:
        assert counted.json()["count"] == world.rows(theirs, tenant)[0][0]
    told = "".join(world.heard[heard:])
    assert SECRET not in told
    assert world.stock["named"] not in told


def test_nobody_speaks_in_anothers_session(world: World) -> None:
    """A session's name is the caller's to choose: who chooses another's name is told that it is taken, and no more."""
    known, before = things(world), world.held()["messages"]
    body = {"messages": [{"content": "I was here all the time."}]}
    for who in ("bob", "bound"):
        assert world.ask(who, "POST", f"/v1/sessions/{known['named']}/messages", body).status_code == 404
    assert world.ask("reader", "POST", "/v1/sessions/bobs/messages", body).status_code == 403
    assert world.held()["messages"] == before
    for who in ("carol", "sam"):  # the same name in another tenant is another session
        assert world.ask(who, "POST", f"/v1/sessions/{known['named']}/messages", body).status_code == 200
    assert world.held()["messages"] == before


def test_one_channel_of_two_tenants_and_of_two_members_is_not_one(world: World) -> None:
    said = {
        "channel_id": "den",
        "messages": [{"content": "Anybody in?", "occurred_at": "2026-03-01T10:03:00Z"}],
    }
    theirs = things(world)["session"]
    for who in ("bob", "carol", "sam"):
        kept = world.made(who, "/v1/messages", said)["data"][0]
        assert kept["session_id"] != theirs
        assert world.ask(who, "GET", f"/v1/sessions/{kept['session_id']}").json()["message_count"] == 1


def test_what_is_said_to_all_is_heard_by_all_of_the_tenant(world: World) -> None:
    said = {"channel_id": "lobby", "messages": [{"content": "The lift is being repaired.", "user_id": None}]}
    kept = world.made("service", "/v1/messages", said)["data"][0]
    path = f"/v1/sessions/{kept['session_id']}/messages"
    for who in ("ada", "alice", "bob", "bound", "reader", "service"):
        assert world.ask(who, "GET", path).json()["data"][0]["content"] == "The lift is being repaired."
    for who in ("carol", "sam"):
        assert world.ask(who, "GET", path).status_code == 404


def test_nobody_speaks_for_another(world: World) -> None:
    before = world.held()["messages"]
    said = {"channel_id": "den", "messages": [{"content": "I am alice, honestly.", "user_id": "alice"}]}
    for who in ("bob", "bound"):
        answer = world.ask(who, "POST", "/v1/messages", said)
        assert answer.status_code == 403
    assert world.held()["messages"] == before


def test_what_is_spent_is_told_to_those_who_run_the_tenant(world: World) -> None:
    things(world)
    for who in ("alice", "bob", "bound", "reader", "service", "carol"):
        assert world.ask(who, "GET", "/v1/admin/usage").status_code == 403, who
    assert world.ask("sam", "GET", f"/v1/admin/usage?tenant={NORTH}").status_code in (403, 404)
    assert world.ask("ada", "GET", "/v1/admin/usage").status_code == 200


def test_what_is_ones_own_is_there(world: World) -> None:
    """The same questions, asked by those who may: so that the tests above ask what can be answered."""
    known = things(world)
    for method, path, body in probes():
        if method == "DELETE" or "sessions?after" in path:
            continue
        answer = world.ask("alice", method, filled(path, known), filled(body, known))
        assert answer.status_code == 200, (method, path, answer.text)
