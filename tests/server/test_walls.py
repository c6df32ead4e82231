"""Two tenants with equal ids and contents never see each other, on any route of the table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memoranda.server.routes import ROUTES
from support.exports import undated
from support.waiting import until_no_job_is_due

PAIRS = 100
IDS = ("kettle", "car/1", "ü")
UNKNOWN = "unknown-id"
WORDS = ("the kettle is green", "the car is red", "the kettle is loud", "a green car")
"""Their lengths are nearly the same: the mean length of a text is what tenants share in the words' scores."""


@dataclass(frozen=True)
class Ask:
    """One request to a route; `{id}` is in the path where the table has a parameter."""

    body: Any = None
    raw: bytes | None = None
    query: tuple[tuple[str, str], ...] = ()


Case = Callable[[str], list[Ask]]
"""What to ask of a route about a memory (or a job) of this id."""


def fields(id_: str) -> list[dict[str, Any]]:
    """Selections that would find a memory of another tenant, if any could."""
    return [
        {},
        {"scopes": ["all"]},
        {"scopes": ["session:s"]},
        {"tags": ["t"]},
        {"filters": {"id": id_}},
        {"kinds": ["note"], "source": "src"},
    ]


def selections(id_: str) -> list[Ask]:
    return [Ask(body=some) for some in fields(id_)]


def none(id_: str) -> list[Ask]:
    return [Ask()]


CASES: dict[str, Case] = {
    "POST /v1/memories": lambda id_: [Ask({"content": w, "session_id": "s", "id": id_}) for w in WORDS],
    "POST /v1/memories/batch": lambda id_: [Ask({"memories": [{"content": WORDS[0], "id": id_}]})],
    "GET /v1/memories": lambda id_: [
        Ask(),
        Ask(query=(("after", id_),)),
        Ask(query=(("before", id_),)),
        Ask(query=(("scopes", "all"), ("include_archived", "true"))),
    ],
    "POST /v1/memories/search": lambda id_: (
        [Ask({"query": "green kettle", "limit": 50, "threshold": 0, **some}) for some in fields(id_)]
        + [Ask({"query": id_, "hierarchy": {"session": "s"}, "count_access": True})]
    ),
    "POST /v1/context": lambda id_: (
        [Ask({"query": "green kettle", "limit": 50, "neighbours": 2, **some}) for some in fields(id_)]
        + [Ask({"query": id_, "session_id": "s", "count_access": True, "explain": True, "threshold": 0.9})]
    ),
    "POST /v1/memories/entries": lambda id_: [
        Ask({"entries": [{"content": WORDS[0], "id": id_, "metadata": {"tags": ["t"]}}]})
    ],
    "POST /v1/memories/entries/search": lambda id_: [
        Ask({"query": "green kettle", "threshold": 0}),
        Ask({"query": id_, "scope": "session", "scope_id": "s"}),
    ],
    "POST /v1/memories/forget": lambda id_: [Ask({"ids": [id_]}), Ask({"scopes": ["all"]})],
    "POST /v1/memories/forget/preview": lambda id_: [
        Ask({"ids": [id_]}),
        Ask({"text": "green", "examples": 100}),
        Ask({"scopes": ["session:s"]}),
    ],
    "POST /v1/memories/count": selections,
    "POST /v1/memories/forgotten": lambda id_: [
        Ask({"memories": [{"id": id_, "content": "a"}], "exported_at": "2020-01-01T00:00:00Z"})
    ],
    "POST /v1/memories/count_access": lambda id_: [Ask({"ids": [id_]})],
    "GET /v1/memories/stats": none,
    "POST /v1/memories/compact": none,
    "POST /v1/memories/reembed": lambda id_: [Ask({"everything": True})],
    "POST /v1/memories/move_index": lambda id_: [Ask({"to": "memory:?engine=float"})],
    "GET /v1/memories/export": lambda id_: [Ask(query=(("vectors", "true"),))],
    "POST /v1/memories/export": selections,
    "POST /v1/memories/import": lambda id_: [
        Ask(raw=json.dumps({"id": id_, "content": WORDS[1], "session_id": "s"}).encode())
    ],
    "POST /v1/memories/near_duplicates": selections,
    "POST /v1/memories/facets": selections,
    "POST /v1/memories/projection": selections,
    "POST /v1/evaluations": lambda id_: [
        Ask({"questions": [{"query": "green kettle", "relevant": [id_], "scopes": ["session:s"]}]}),
        Ask({"questions": [{"query": "green kettle", "relevant": ["x"], "misleading": [id_]}]}),
        Ask({"set": "assistant"}),
    ],
    "POST /v1/memories/consolidate": selections,
    "POST /v1/memories/sweep": lambda id_: [Ask()],
    "GET /v1/memories/timeline": lambda id_: [
        Ask(),
        Ask(query=(("after", id_),)),
        Ask(query=(("scopes", "all"), ("text", "green kettle"))),
        Ask(query=(("at", "2030-01-01"), ("scopes", "session:s"))),
    ],
    "GET /v1/memories/{id}/history": none,
    "POST /v1/memories/{id}/confirm": none,
    "POST /v1/memories/{id}/undo": none,
    "POST /v1/memories/{id}/pin": none,
    "POST /v1/memories/{id}/unpin": none,
    "GET /v1/memories/{id}": none,
    "PATCH /v1/memories/{id}": lambda id_: [Ask({"content": "changed thing"}), Ask({"archived": True})],
    "POST /v1/memories/{id}": lambda id_: [Ask({"metadata": {"x": 1}})],
    "DELETE /v1/memories/{id}": none,
    "GET /v1/jobs": none,
    "GET /v1/jobs/{id}": none,
    "POST /v1/jobs/{id}/cancel": none,
    "POST /v1/jobs/{id}/retry": none,
    "GET /v1/models": none,
    "GET /v1/models/{model}": none,
    "POST /v1/embeddings": lambda id_: [Ask({"model": "hash-64", "input": WORDS[0]})],
    "GET /healthz": none,
    "GET /readyz": none,
    "GET /metrics": none,
    "GET /openapi.json": none,
}

STORE = "/v1/vector_stores/{store_id}"
TALK = "/v1/conversations/{conversation_id}"
HEARD = "/v1/sessions/{session_id}"
ASK = "/api/v1/upload-ask"
KEPT = "/v1/memory_stores/{memory_store_id}"
SEARCHES = (
    "POST /v3/memories/search/",
    "POST /v2/memories/search/",
    "POST /v1/memories/search/",
    "POST /search",
)
"""Searches of mem0's clients."""
KNOWN: dict[str, Callable[[dict[str, str]], list[dict[str, Any]]]] = {
    "POST /v1/files": lambda ids: [],
    "GET /v1/files": lambda ids: [{}, {"params": {"after": ids["file_id"]}}],
    "GET /v1/files/{file_id}": lambda ids: [{}],
    "GET /v1/files/{file_id}/content": lambda ids: [{}],
    "GET /v1/files/{file_id}/image": lambda ids: [{"params": {"page": 1, "highlight": "green"}}],
    "DELETE /v1/files/{file_id}": lambda ids: [{}],
    "POST /v1/uploads": lambda ids: [],
    "GET /v1/uploads/{upload_id}": lambda ids: [{}],
    "POST /v1/uploads/{upload_id}/parts": lambda ids: [{"files": {"data": ("a", b"12345")}}],
    "POST /v1/uploads/{upload_id}/complete": lambda ids: [{"json": {"part_ids": []}}],
    "POST /v1/uploads/{upload_id}/cancel": lambda ids: [{}],
    "POST /v1/vector_stores": lambda ids: [{"json": {"file_ids": [ids["file_id"]]}}],
    "GET /v1/vector_stores": lambda ids: [
        {}, {"params": {"after": ids["store_id"]}}, {"params": {"before": ids["store_id"]}},
    ],
    "POST /v1/vector_stores/search": lambda ids: [
        {"json": {"vector_store_ids": [ids["store_id"]], "query": "green kettle"}}
    ],
    f"GET {STORE}": lambda ids: [{}],
    f"POST {STORE}": lambda ids: [{"json": {"name": "mine"}}, {"json": {"sharing": "everyone"}}],
    f"PUT {STORE}": lambda ids: [{"json": {"metadata": {"a": "b"}}}],
    f"DELETE {STORE}": lambda ids: [{}],
    f"POST {STORE}/search": lambda ids: [{"json": {"query": "green kettle"}}],
    f"POST {STORE}/files": lambda ids: [
        {"json": {"file_id": ids["file_id"]}}, {"files": {"file": ("a.txt", b"a")}},
    ],
    f"GET {STORE}/files": lambda ids: [{}, {"params": {"after": ids["file_id"]}}],
    f"GET {STORE}/files/{{file_id}}": lambda ids: [{}],
    f"POST {STORE}/files/{{file_id}}": lambda ids: [{"json": {"attributes": {"mine": True}}}],
    f"GET {STORE}/files/{{file_id}}/content": lambda ids: [{}],
    f"GET {STORE}/files/{{file_id}}/chunks": lambda ids: [{}, {"params": {"after": ids["memory_id"]}}],
    f"DELETE {STORE}/files/{{file_id}}": lambda ids: [{}],
    f"POST {STORE}/file_batches": lambda ids: [
        {"json": {"file_ids": [ids["file_id"]]}}, {"json": {"files": [{"file_id": ids["file_id"]}]}},
    ],
    f"GET {STORE}/file_batches/{{batch_id}}": lambda ids: [{}],
    f"POST {STORE}/file_batches/{{batch_id}}/cancel": lambda ids: [{}],
    f"GET {STORE}/file_batches/{{batch_id}}/files": lambda ids: [{}],
    "POST /v1/responses": lambda ids: [
        {"json": {"input": "what?", **some}} for some in requests_naming(ids)
    ] + [{"json": {"input": [{"type": "item_reference", "id": ids["said_id"]}]}}],
    "GET /v1/responses": lambda ids: [
        {}, {"params": {"after": ids["response_id"]}}, {"params": {"before": ids["response_id"]}},
    ],
    "POST /v1/responses/input_tokens": lambda ids: [
        {"json": {"input": "what?", **some}} for some in requests_naming(ids)
    ],
    "POST /v1/chat/completions": lambda ids: [
        {"json": {"messages": [{"role": "user", "content": "what?"}], **some}}
        for some in (
            {"agent_id": ids["agent_id"]},
            {"tools": [{"type": "file_search", "vector_store_ids": [ids["store_id"]]}]},
            {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": ids["file_id"]}}]}]},
        )
    ],
    "POST /v1/responses/compact": lambda ids: [
        {"json": {"model": "extractive", "previous_response_id": ids["response_id"]}}
    ],
    "GET /v1/responses/{response_id}": lambda ids: [
        {}, {"params": {"stream": "true"}}, {"params": {"include": "file_search_call.results"}},
    ],
    "GET /v1/responses/{response_id}/input_items": lambda ids: [{}, {"params": {"after": ids["said_id"]}}],
    "POST /v1/responses/{response_id}/cancel": lambda ids: [{}],
    "DELETE /v1/responses/{response_id}": lambda ids: [{}],
    "POST /v1/conversations": lambda ids: [],
    f"GET {TALK}": lambda ids: [{}],
    f"POST {TALK}": lambda ids: [{"json": {"metadata": {"mine": "yes"}}}],
    f"DELETE {TALK}": lambda ids: [{}],
    f"POST {TALK}/items": lambda ids: [{"json": {"items": [{"role": "user", "content": "a"}]}}],
    f"GET {TALK}/items": lambda ids: [{}, {"params": {"after": ids["item_id"]}}],
    f"GET {TALK}/items/{{item_id}}": lambda ids: [{}],
    f"DELETE {TALK}/items/{{item_id}}": lambda ids: [{}],
    "POST /v1/messages": lambda ids: [
        {"json": {"messages": [{"content": "a", "id": ids["message_id"]}], "session_id": "s"}},
    ],
    "GET /v1/sessions": lambda ids: [
        {}, {"params": {"after": ids["session_id"]}}, {"params": {"channel_id": "stocked", "order": "asc"}},
    ],
    f"GET {HEARD}": lambda ids: [{}],
    f"POST {HEARD}/close": lambda ids: [{}],
    f"POST {HEARD}/summarize": lambda ids: [{}],
    f"POST {HEARD}/summary": lambda ids: [{"json": {"summary": "mine"}}],
    f"POST {HEARD}/summary/failure": lambda ids: [{"json": {"reason": "none"}}],
    f"POST {HEARD}/extract": lambda ids: [{}],
    f"GET {HEARD}/messages": lambda ids: [{}, {"params": {"after": ids["message_id"]}}],
    f"POST {HEARD}/messages": lambda ids: [{"json": {"messages": [{"content": "a", "id": f"{ids['session_id']}m"}]}}],
    f"POST {HEARD}/messages/{{message_id}}": lambda ids: [{"json": {"content": "b"}}],
    f"DELETE {HEARD}/messages/{{message_id}}": lambda ids: [{}],
    f"DELETE {HEARD}": lambda ids: [{}],
    "POST /v1/agents": lambda ids: [
        {"json": {"name": "n", "tools": [{"type": "file_search", "vector_store_ids": [ids["store_id"]]}]}}
    ],
    "GET /v1/agents": lambda ids: [
        {}, {"params": {"after": ids["agent_id"]}}, {"params": {"before": ids["agent_id"]}}, {"params": {"name": "n"}},
    ],
    "GET /v1/agents/{agent_id}": lambda ids: [{}],
    "POST /v1/agents/{agent_id}": lambda ids: [{"json": {"name": "mine"}}, {"json": {"tools": []}}],
    "DELETE /v1/agents/{agent_id}": lambda ids: [{}],
    f"POST {ASK}/documents": lambda ids: [],
    f"GET {ASK}/documents": lambda ids: [{}, {"params": {"after": ids["document_id"]}}],
    f"GET {ASK}/documents/{{document_id}}": lambda ids: [{}],
    f"DELETE {ASK}/documents/{{document_id}}": lambda ids: [{}],
    f"POST {ASK}/query": lambda ids: [
        {"json": {"question": "what?", "sessionId": ids["ask_session_id"]}},
        {"json": {"question": "what?", "documentIds": [ids["document_id"]]}},
    ],
    f"POST {ASK}/qa/query": lambda ids: [{"json": {"question": "what?", "sessionId": ids["ask_session_id"]}}],
    f"GET {ASK}/sessions": lambda ids: [{}, {"params": {"after": ids["ask_session_id"]}}],
    f"GET {ASK}/sessions/{{ask_session_id}}": lambda ids: [{}],
    f"GET {ASK}/sessions/{{ask_session_id}}/messages": lambda ids: [{}],
    f"DELETE {ASK}/sessions/{{ask_session_id}}": lambda ids: [{}],
    f"GET {ASK}/logs": lambda ids: [{}, {"params": {"after": ids["query_id"]}}],
    f"GET {ASK}/logs/{{query_id}}": lambda ids: [{}],
    f"POST {ASK}/memories": lambda ids: [{"json": {"content": "a", "sessionId": ids["ask_session_id"]}}],
    f"GET {ASK}/memories": lambda ids: [{}, {"params": {"before": ids["memory_id"]}}],
    f"DELETE {ASK}/memories/{{memory_id}}": lambda ids: [{}],
    f"POST {ASK}/backfill": lambda ids: [],
    **{f"{method} {path}{end}": case for path, end in (("/v1/memories/{memory_id}", "/"), ("/memories/{memory_id}", ""))
       for method, case in {
           "GET": lambda ids: [{}],
           "PUT": lambda ids: [{"json": {"text": "mine"}}, {"json": {"metadata": {"mine": True}}}],
           "DELETE": lambda ids: [{}],
       }.items()},
    "GET /v1/memories/{memory_id}/history/": lambda ids: [{}],
    "GET /memories/{memory_id}/history": lambda ids: [{}],
    **dict.fromkeys(("POST /v3/memories/add/", "POST /v1/memories/", "POST /memories"), lambda ids: []),
    **dict.fromkeys(SEARCHES, lambda ids: [
        {"json": {"query": "green kettle", "threshold": 0, "filters": some}} for some in chosen(ids)
    ]),
    **dict.fromkeys(("POST /v3/memories/", "POST /v2/memories/"), lambda ids: [
        {"json": {"filters": some}} for some in chosen(ids)
    ]),
    **dict.fromkeys(("GET /memories", "GET /v1/memories/"), lambda ids: [
        {}, {"params": {"run_id": ids["session_id"]}}, {"params": {"user_id": "*"}},
    ]),
    "GET /v1/event/{event_id}/": lambda ids: [{}],
    "GET /v1/events/": lambda ids: [{}],
    **dict.fromkeys(("DELETE /v1/memories/", "DELETE /memories"), lambda ids: [
        {"params": {"run_id": ids["session_id"]}}, {"params": {"agent_id": ids["agent_id"]}}, {},
    ]),
    "PUT /v1/batch/": lambda ids: [{"json": {"memories": [{"memory_id": ids["memory_id"], "text": "mine"}]}}],
    "DELETE /v1/batch/": lambda ids: [{"json": {"memories": [{"memory_id": ids["memory_id"]}]}}],
    "GET /v1/entities/": lambda ids: [{}],
    "DELETE /v2/entities/user/{user_id}/": lambda ids: [{}],
    "DELETE /v2/entities/agent/{agent_name}/": lambda ids: [{}],
    "DELETE /v2/entities/app/{app_id}/": lambda ids: [{}],
    "DELETE /v2/entities/run/{run_id}/": lambda ids: [{}],
    "GET /v1/ping/": lambda ids: [{}],
    "POST /retrieval": lambda ids: [
        {"json": {"knowledge_id": ids["store_id"], "query": "green kettle"}},
    ],
    "POST /v1/memory_stores": lambda ids: [],
    "GET /v1/memory_stores": lambda ids: [{}, {"params": {"include_archived": "true"}}],
    f"GET {KEPT}": lambda ids: [{}],
    f"POST {KEPT}": lambda ids: [{"json": {"name": "mine"}}],
    f"DELETE {KEPT}": lambda ids: [{}],
    f"POST {KEPT}/archive": lambda ids: [{}],
    f"POST {KEPT}/memories": lambda ids: [{"json": {"path": "/mine.md", "content": "mine"}}],
    f"GET {KEPT}/memories": lambda ids: [{}, {"params": {"view": "full", "depth": "1"}}],
    f"GET {KEPT}/memories/{{store_memory_id}}": lambda ids: [{}],
    f"POST {KEPT}/memories/{{store_memory_id}}": lambda ids: [{"json": {"content": "mine"}}],
    f"DELETE {KEPT}/memories/{{store_memory_id}}": lambda ids: [{}],
    f"GET {KEPT}/memory_versions": lambda ids: [{}, {"params": {"memory_id": ids["store_memory_id"]}}],
    f"GET {KEPT}/memory_versions/{{memory_version_id}}": lambda ids: [{}],
    f"POST {KEPT}/memory_versions/{{memory_version_id}}/redact": lambda ids: [{}],
    "GET /v1/archive": lambda ids: [],
    "POST /v1/archive": lambda ids: [],
    "GET /v1/admin/tenants": lambda ids: [{}, {"params": {"after": ids["tenant"][:1]}}],
    "GET /v1/admin/quotas": lambda ids: [{}, {"params": {"tenant": ids["tenant"]}}],
    "POST /v1/admin/quotas": lambda ids: [
        {"json": {"max_stores": 0}, "params": {"tenant": ids["tenant"]}},
        {"json": {"max_stores": 0, "tenant": ids["tenant"]}},
    ],
    "GET /v1/admin/switches": lambda ids: [{}, {"params": {"tenant": ids["tenant"]}}],
    "POST /v1/admin/switches": lambda ids: [{"json": {"extraction": False, "tenant": ids["tenant"]}}],
    "GET /v1/channels/{channel_id}/switches": lambda ids: [{}],
    "POST /v1/channels/{channel_id}/switches": lambda ids: [{"json": {"extraction": False}}],
    "GET /v1/admin/usage": lambda ids: [{}, {"params": {"tenant": ids["tenant"]}}],
    "GET /v1/backfills": lambda ids: [{}],
    "POST /v1/backfills": lambda ids: [],
    "GET /v1/usage": lambda ids: [{}, {"params": {"tenant": ids["tenant"]}}],
    "GET /v1/admin/spending": lambda ids: [{}, {"params": {"tenant": ids["tenant"]}}],
    "POST /v1/admin/spending": lambda ids: [
        {"json": {"model_calls_per_day": 0}, "params": {"tenant": ids["tenant"]}},
        {"json": {"model_calls_per_day": 0, "tenant": ids["tenant"]}},
    ],
}  # fmt: skip
"""What to ask of a route about another tenant's files and stores, whose ids are made here."""


def requests_naming(ids: dict[str, str]) -> list[dict[str, Any]]:
    """Requests for a response that name rows of another tenant."""
    file = [{"role": "user", "content": [{"type": "input_file", "file_id": ids["file_id"]}]}]
    return [
        {"previous_response_id": ids["response_id"]},
        {"conversation": ids["conversation_id"]},
        {"agent_id": ids["agent_id"]},
        {"tools": [{"type": "file_search", "vector_store_ids": [ids["store_id"]]}]},
        {"input": file},
    ]


def chosen(ids: dict[str, str]) -> list[dict[str, Any]]:
    """Filters of mem0 that would find another tenant's memories, if any could."""
    return [
        {"run_id": ids["session_id"]},
        {"OR": [{"user_id": "*"}, {"NOT": {"user_id": "*"}}]},
        {"NOT": {"metadata": {"mine": ids["memory_id"]}}},
    ]


VOLATILE = (
    "archived_at",
    "query_time",
    "created_at",
    "updated_at",
    "occurred_at",
    "started_at",
    "ended_at",
    "begins",
    "ends",
    "last_accessed_at",
    "erased_at",
    "tombstone",
    "written_by",
)
"""What differs between two answers that say the same."""


def test_every_route_has_a_case() -> None:
    assert set(CASES) | set(KNOWN) == {route.name for route in ROUTES}
    assert not set(CASES) & set(KNOWN)


@pytest.fixture(scope="module")
def tenants(houses: Any) -> tuple[Any, Iterator[int]]:
    """A house with keys for many pairs of tenants, and the numbers of the pairs not used yet."""
    keys = [
        {"name": f"{side}{n}", "tenant": f"{side}{n}", "role": "admin", "key": f"key-{side}{n}"}
        for n in range(PAIRS)
        for side in "abc"
    ]
    return houses(keys=keys), itertools.count()


def ask(house: Any, key: str, route: Any, id_: str, what: Ask) -> httpx.Response:
    path = route.path
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", quote(id_, safe=""))
    content = what.raw if what.body is None else json.dumps(what.body).encode()
    return house.request(route.method, path, key=key, content=content, params=list(what.query))


def said(answer: httpx.Response, ids: dict[str, str]) -> Any:
    """What an answer says, without what differs anyway; `ids` renames ids."""
    text = answer.text
    for id_, name in sorted(
        ids.items(), key=lambda one: -len(one[0])
    ):  # a short one may be part of a long one
        text = text.replace(json.dumps(id_, ensure_ascii=False)[1:-1], name)
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return answer.status_code, [
            without(json.loads(line)) for line in text.splitlines() if line[:1] == "{"
        ]
    return answer.status_code, without(json.loads(text))


def without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without(item) for key, item in value.items() if key not in VOLATILE}
    return [without(item) for item in value] if isinstance(value, list) else value


rows = st.lists(
    st.tuples(st.sampled_from(IDS), st.sampled_from(WORDS), st.booleans()),
    max_size=3,
    unique_by=(lambda row: row[0], lambda row: row[1]),
)


def fill(house: Any, key: str, memories: list[tuple[str, str, bool]], mark: str) -> None:
    for id_, content, scoped in memories:
        body = {
            "id": id_, "content": content, "tags": ["t"], "source": "src",
            "metadata": {"id": id_, "mark": mark}, "session_id": "s" if scoped else None,
        }  # fmt: skip
        assert house.request("POST", "/v1/memories", key=key, json=body).status_code == 200


def exported(house: Any, key: str) -> bytes:
    return undated(house.request("GET", "/v1/memories/export?vectors=true", key=key).content)


@pytest.mark.long
@settings(
    max_examples=6,
    phases=[Phase.generate],  # shrinking would take minutes: every try has tenants of its own
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(mine=rows, theirs=rows, id_=st.sampled_from(IDS), data=st.data())
def test_tenants_never_see_each_other(tenants: Any, mine: Any, theirs: Any, id_: str, data: Any) -> None:
    """`a` and `c` hold the same; beside `a` lives `b`, with its own under the same ids. On every route, in any
    order, `a` gets the answers that `c` gets, never a word of `b`'s, and `b` stays as it was."""
    house, numbers = tenants
    n = next(numbers)
    a, b, c = (f"key-{side}{n}" for side in "abc")
    for key, memories, mark in ((a, mine, "of-a"), (c, mine, "of-a"), (b, theirs, "of-b")):
        fill(house, key, memories, mark)
    job = house.request("POST", "/v1/memories/compact", key=b).json()["id"]
    before = exported(house, b)
    foreign = sorted({row[0] for row in theirs} - {row[0] for row in mine})
    asked_of = [r for r in ROUTES if r.needs not in ("open", "operator") and r.name in CASES]
    routes = data.draw(st.permutations(asked_of))
    for route in routes:
        asked = job if "/jobs" in route.path else id_
        for what in CASES[route.name](asked):
            heard = ask(house, a, route, asked, what)
            alone = ask(house, c, route, asked, what)
            assert "of-b" not in heard.text, route.name
            assert heard.status_code < 500, heard.text
            if route.name in JOBS:  # an answer meanwhile would tell how far the job is
                for side, answer in (("a", heard), ("c", alone)):
                    house.portal.call(house.memoranda.core.jobs.wait(f"{side}{n}", answer.json()["id"]))
            elif "/v1/jobs" not in route.path:
                assert said(heard, {}) == said(alone, {}), (route.name, what)
        if route.parameters == ("id",):
            for other in [job] if "/jobs" in route.path else [job, *foreign]:
                for what in CASES[route.name](other):
                    heard = ask(house, a, route, other, what)
                    unknown = ask(house, a, route, UNKNOWN, what)
                    known_by_now = heard.status_code == 200 and other in IDS
                    assert known_by_now or said(heard, {other: UNKNOWN}) == said(unknown, {})
    assert job not in house.request("GET", "/v1/jobs", key=a).text
    assert exported(house, b) == before


JOBS = ("POST /v1/memories/compact", "POST /v1/memories/reembed")
"""Answers that carry the id of a new job, which is random."""


def known(house: Any, key: str, ids: dict[str, str]) -> list[Any]:
    """All that a tenant knows."""
    until_no_job_is_due(house.memoranda.core)
    store = f"/v1/vector_stores/{ids['store_id']}"
    paths = [
        "/v1/files",
        "/v1/vector_stores",
        "/v1/agents",
        f"{store}/files",
        f"/v1/uploads/{ids['upload_id']}",
    ]
    response = f"/v1/responses/{ids['response_id']}"
    talk = f"/v1/conversations/{ids['conversation_id']}"
    paths += [response, f"{response}/input_items", talk, f"{talk}/items", "/v1/admin/usage"]
    paths += [f"/v1/sessions/{ids['session_id']}", f"/v1/sessions/{ids['session_id']}/messages"]
    paths += [f"{ASK}/{kind}" for kind in ("documents", "logs")]
    paths += [f"{ASK}/sessions/{ids['ask_session_id']}"]
    paths += ["/v1/admin/switches", f"/v1/channels/{ids['channel_id']}/switches"]
    answers = [house.request("GET", path, key=key).json() for path in paths]
    return [*answers, house.request("GET", f"/v1/files/{ids['file_id']}/content", key=key).content]


def answers_about(house: Any, key: str, route: Any, ids: dict[str, str], names: dict[str, str]) -> list[Any]:
    """The answers to requests with the key about these ids; `names` renames the ids in them."""
    until_no_job_is_due(house.memoranda.core)
    path = route.path
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", ids[name])
    answers = [house.request(route.method, path, key=key, **options) for options in KNOWN[route.name](ids)]
    assert all("ofb" not in answer.text for answer in answers), route.name
    return [said(answer, names) for answer in answers]


def test_what_a_tenant_knows_is_its_own(tenants: Any) -> None:
    """Whatever is asked about `b`'s files and stores, in `a`'s own store or not, `a` gets the same answers as about
    unknown ids, and `b` stays as it was."""
    house, numbers = tenants
    n = next(numbers)
    a, b = f"key-a{n}", f"key-b{n}"
    own, theirs = house.stock("the kettle is green", key=a), house.stock("the kettle is ofb", key=b)
    theirs["tenant"], theirs["channel_id"] = f"b{n}", f"room-b{n}"
    switched = f"/v1/channels/{theirs['channel_id']}/switches"
    assert house.request("POST", switched, key=b, json={"extraction": True}).status_code == 200
    answer = house.request("GET", f"/v1/responses/{theirs['response_id']}", key=b).json()
    theirs["said_id"] = answer["output"][0]["id"]
    unknown = {id_: f"{name}-nope" for name, id_ in theirs.items()}  # an id may have two names
    unknown_ids = {name: unknown[id_] for name, id_ in theirs.items()}
    longest = sorted(theirs.items(), key=lambda item: -len(item[1]))  # the tenant's name may be in an id
    names = {id_: unknown_ids[name] for name, id_ in longest}
    before = known(house, b, theirs)
    for route in (route for route in ROUTES if route.name in KNOWN):
        stores = (
            [{}, {"store_id": own["store_id"]}] if f"{STORE}/" in route.path and route.form is None else [{}]
        )
        if f"{TALK}/items" in route.path and route.method != "POST":
            stores = [{}, {"conversation_id": own["conversation_id"]}]
        for store in stores:
            answers = answers_about(house, a, route, {**theirs, **store}, names)
            assert answers == answers_about(house, a, route, {**unknown_ids, **store}, names), route.name
    attach = {"json": {"file_id": theirs["file_id"]}}
    assert (
        house.request("POST", f"/v1/vector_stores/{own['store_id']}/files", key=a, **attach).status_code
        == 404
    )
    assert known(house, b, theirs) == before


DIFY = {"top_k": 2, "score_threshold": 0.0}


def of_body(ids: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Requests with ids of another user in their body."""
    return [
        ("/v1/context", {"query": "green kettle", "stores": [ids["store_id"]]}),
        ("/v1/context", {"query": "green kettle", "session_id": ids["session_id"]}),
        ("/v1/memories", {"content": "a new fact", "kind": "fact", "replaces": [ids["memory_id"]]}),
        ("/v1/memories/search", {"query": "green kettle", "scopes": [f"session:{ids['session_id']}"]}),
        ("/v1/memories/count_access", {"ids": [ids["memory_id"]]}),
        ("/v1/memories/forget", {"ids": [ids["memory_id"]]}),
        ("/v1/memories/forget", {"source": ids["file_id"]}),
        ("/v1/memories/forget", {"source": ids["response_id"]}),
        ("/retrieval", {"knowledge_id": ids["store_id"], "query": "q", "retrieval_setting": DIFY}),
    ]  # fmt: skip


def test_what_a_user_knows_is_its_own(opened: Any) -> None:
    """A user gets the same answers about ids of a colleague as about unknown ids. Agents are for the whole tenant, and
    an id of a message or session that is taken is refused."""
    house = opened(keys=[{"name": u, "user": u, "role": "member", "key": f"key-{u}"} for u in "ab"])
    own, theirs = (
        house.stock("the kettle is green", key="key-a"),
        house.stock("the kettle is ofb", key="key-b"),
    )
    answer = house.request("GET", f"/v1/responses/{theirs['response_id']}", key="key-b").json()
    theirs |= {
        "said_id": answer["output"][0]["id"],
        "agent_id": "unknown_ids",
        "tenant": "b-s",
        "channel_id": "room-b",
    }
    unknown_ids = {name: f"{name}-nope" for name in theirs}
    names = {id_: unknown_ids[name] for name, id_ in theirs.items()}
    chosen = ("POST /v1/messages", f"POST {HEARD}/messages")
    for route in (route for route in ROUTES if route.name in KNOWN and route.name not in chosen):
        inside = f"{STORE}/" in route.path and route.form is None
        for store in [{}, {"store_id": own["store_id"]}] if inside else [{}]:
            answers = answers_about(house, "key-a", route, {**theirs, **store}, names)
            assert answers == answers_about(house, "key-a", route, {**unknown_ids, **store}, names), (
                route.name
            )
    for route in (route for route in ROUTES if route.name in CASES and route.parameters == ("id",)):
        for id_ in (theirs["memory_id"], theirs["message_id"]):
            answers, expected = (
                [said(ask(house, "key-a", route, i, what), {i: UNKNOWN}) for what in CASES[route.name](i)]
                for i in (id_, UNKNOWN)
            )
            assert answers == expected, route.name
    for (path, body), (_, other) in zip(of_body(theirs), of_body(unknown_ids), strict=True):
        answers, expected = (
            said(house.request("POST", path, key="key-a", json=b), names) for b in (body, other)
        )
        assert answers == expected, path


@pytest.mark.parametrize("taken", ["own", "theirs"])
def test_an_id_that_a_message_has_names_no_other_text(opened: Any, taken: str) -> None:
    """Also where the server made the id."""
    house = opened(keys=[{"name": u, "user": u, "role": "member", "key": f"key-{u}"} for u in "ab"])
    first = {"messages": [{"content": "the kettle is green"}], "session_id": "one"}
    key = "key-a" if taken == "own" else "key-b"
    id_ = house.request("POST", "/v1/messages", key=key, json=first).json()["data"][0]["id"]
    second = {"messages": [{"content": "the car is red", "id": id_}], "session_id": "two"}
    answer = house.request("POST", "/v1/messages", key="key-a", json=second)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict"), answer.text
    assert "already names another text" in answer.json()["error"]["message"]


def test_the_folder_is_shown_to_its_operator_alone(opened: Any) -> None:
    keys = [{"name": t, "tenant": t, "role": "admin", "key": f"key-{t}"} for t in ("default", "a")]
    house = opened(keys=keys)
    assert house.request("GET", "/metrics", key="key-default").status_code == 200
    assert house.request("GET", "/metrics", key="key-a").status_code == 403
    whole = house.request("GET", "/v1/memories/stats", key="key-default").json()
    own = house.request("GET", "/v1/memories/stats", key="key-a").json()
    for name in ("database", "index", "words", "jobs"):
        assert whole[name] is not None
        assert own[name] is None


def test_scores_are_the_tenants_own(opened: Any) -> None:
    a, b = "key-a", "key-b"
    house = opened(keys=[{"name": t, "tenant": t, "role": "admin", "key": f"key-{t}"} for t in "ab"])
    same_length = [("1", WORDS[0], False), ("2", WORDS[2], False), ("3", "a kettle, green", False)]
    fill(house, a, same_length, "of-a")

    def scores() -> list[Any]:
        asked = {"query": "green kettle", "explain": True}
        answer = house.request("POST", "/v1/memories/search", key=a, json=asked).json()
        return [(hit["memory"]["id"], hit["score"], hit["explanation"]["bm25"]) for hit in answer["results"]]

    before = scores()
    memories = [{"content": f"kettle {i}"} for i in range(50)]
    assert house.request("POST", "/v1/memories/batch", key=b, json={"memories": memories}).status_code == 200
    assert scores() == before
