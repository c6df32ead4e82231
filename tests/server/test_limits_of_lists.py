"""Each list of a request at its limit, and with one element more, by the limits that the OpenAPI document states."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from memoranda.server.routes import ROUTES
from memoranda.storage.sql.holds import Histogram
from support.document_probes import LimitedList, Prober
from support.valid_requests import valid_requests
from support.waiting import until_no_job_is_due

pytestmark = pytest.mark.rows_in("sqlite")
WITH_JSON = [route for route in ROUTES if route.body not in (None, bytes)]
MOST_IN_GATE = 1_000
LONG = (
    "POST /v1/memories/facets scopes",
    "POST /v1/evaluations questions",
    "POST /v1/evaluations configurations",
    "PUT /v1/batch/ memories",
    "DELETE /v1/batch/ memories",
)
"""Lists that take long at their limit although they are not longer than `MOST_IN_GATE`."""
MOST_REFERENCES = 30
"""How many times as long as `Filled.reference` a list at its limit may hold the writer. The aim is 250 ms where a
reference takes 8.5."""
APART = {
    "scopes": "ids",
    "kinds": "ids",
    "roles": "ids",
    "tags": "ids",
    "filters": "ids",
    "questions": "set",
    "configurations": "set",
    "file_ids": "files",
}
"""Fields beside which these lists may not stand."""
MEANT_BY = {"filter.a": "filters.a"}
"""Places that errors name otherwise, by the first of two names of a field."""
NO_FILE = r"no file 'file-0'"
NO_MORE_CONDITIONS = r"^filters\.filters.*: filters may nest \d+ deep and hold 1000 conditions$"
MEM0_FILTERED = (
    "/v3/memories/", "/v3/memories/search/", "/v2/memories/", "/v2/memories/search/", "/v1/memories/search/", "/search",
)  # fmt: skip
REFUSED = {
    "POST /v1/uploads/{upload_id}/complete part_ids": "'part-0' is no part of this upload",
    "POST /v1/vector_stores file_ids": NO_FILE,
    "POST /v1/vector_stores/{store_id}/file_batches file_ids": NO_FILE,
    "POST /v1/vector_stores/{store_id}/file_batches files": NO_FILE,
    "POST /v1/chat/completions messages[0].tool_calls": "No tool output found for function call",
    "POST /v1/memories replaces": "replaces: is for facts",
    "POST /v1/memories/batch memories[0].replaces": "replaces: is for facts",
    "POST /v1/memories/forgotten memories[0].replaces": "replaces: is for facts",
    **{
        f"POST {path} filters.{logic}": NO_MORE_CONDITIONS
        for path in MEM0_FILTERED
        for logic in ("AND", "OR", "NOT")
    },
}
"""Lists that are refused at their limit for another reason than their length, and what the server says: thousands of
files and of parts would have to be uploaded first (`benchmarks/holds.py` does), each call of a tool needs an output in
the messages, and the conditions of a filter are limited together, with those that the server adds."""


def text(number: int) -> str:
    return f"note {number} of the kettle"


def said(number: int) -> dict[str, Any]:
    return {"role": "user", "content": text(number)}


BASES: dict[str, Any] = {
    "POST /v1/evaluations": {"questions": [{"query": "kettle", "relevant": ["memory-0"]}]},
    "POST /v1/chat/completions": {"messages": [{"role": "assistant", "content": "Yes?"}, said(0)]},
    "POST /v3/memories/add/": {"infer": False},
    "POST /v1/memories/": {"infer": False},
    "POST /memories": {"infer": False},
    "POST /retrieval": {
        "metadata_condition": {"conditions": [{"name": "a", "comparison_operator": "in", "value": ["b"]}]},
    },
}
"""What bodies have beside, or instead of, the fields in `valid_requests`."""
ELEMENTS: dict[str, Callable[[int], Any]] = {
    "scopes": lambda number: f"user:user-{number}",
    "tags": lambda number: f"tag {number}",
    "categories": lambda number: f"tag {number}",
    "source_refs": lambda number: f"source-{number}",
    "a": lambda number: number,
    "ids": lambda number: f"note-{number}",
    "memories": lambda number: {"content": text(number), "id": f"note-{number}"},
    "entries": lambda number: {"content": f"entry {number}"},
    "exclude": lambda number: f"memory-{number}",
    "writers": lambda number: f"user-{number}",
    "query": text,
    "questions": lambda number: {"query": text(number), "relevant": [f"memory-{number}"]},
    "relevant": lambda number: f"memory-{number}",
    "misleading": lambda number: f"memory-{number + 100}",
    "configurations": lambda number: {"name": f"configuration {number}", "mode": "keyword"},
    "part_ids": lambda number: f"part-{number}",
    "file_ids": lambda number: f"file-{number}",
    "files": lambda number: {"file_id": f"file-{number}"},
    "recent": said,
    "messages": said,
    "items": said,
    "POST /v1/responses input": said,
    "POST /v1/responses/input_tokens input": said,
    "POST /v1/responses/compact input": said,
    "content": lambda number: {"type": "input_text", "text": text(number)},
    "POST /v1/chat/completions content": lambda number: {"type": "text", "text": text(number)},
    "tools": lambda number: {"type": "function", "name": f"tool_{number}"},
    "POST /v1/chat/completions tools": lambda number: {
        "type": "function",
        "function": {"name": f"tool_{number}"},
    },
    "tool_calls": lambda number: {
        "type": "function",
        "id": f"call_{number}",
        "function": {"name": "look", "arguments": "{}"},
    },
    "AND": lambda number: {"user_id": f"user-{number}"},
    "OR": lambda number: {"user_id": f"user-{number}"},
    "NOT": lambda number: {"user_id": f"user-{number}"},
    "user_id": lambda number: f"user-{number}",
    "agent_id": lambda number: f"agent-{number}",
    "app_id": lambda number: f"app-{number}",
    "run_id": lambda number: f"run-{number}",
    "created_at": lambda number: number,
    "timestamp": lambda number: number,
    "PUT /v1/batch/ memories": lambda number: {"memory_id": f"memory-{number}", "text": f"changed {number}"},
    "DELETE /v1/batch/ memories": lambda number: {"memory_id": f"memory-{number}"},
    "conditions": lambda number: {"name": "a", "comparison_operator": "is", "value": text(number)},
    "value": text,
}
"""Elements by the name of their list, of a route where it means something of its own there; no two are the same."""


class Filled:
    """A server with a thousand memories, and the lists that its OpenAPI document limits."""

    def __init__(self, house: Any) -> None:
        self.house = house
        self.add({"content": f"memory {number}", "id": f"memory-{number}"} for number in range(1_000))
        self.ids = {**house.stock(), "id": house.add("something to look at"), "model": "hash-64"}
        self.document = house.request("GET", "/openapi.json").json()
        self.elements = {
            **ELEMENTS,
            "stores": lambda number: self.ids["store_id"],
            "vector_store_ids": lambda number: self.ids["store_id"],
            "documentIds": lambda number: self.ids["document_id"],
        }

    def add(self, memories: Iterable[dict[str, Any]]) -> None:
        """Add memories in one request."""
        answer = self.house.request("POST", "/v1/memories/batch", json={"memories": [*memories]})
        assert answer.status_code == 200, answer.text

    def lists(self, route: Any) -> dict[str, LimitedList]:
        """The lists in the body of a route, by the names of both; one that may be longer with other elements has its
        limit in the name."""
        operation = self.document["paths"][route.path][route.method.lower()]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        base = {
            **valid_requests(self.ids).get(route.name, {}).get("json", {}),
            **BASES.get(route.name, {}),
        }
        found: dict[str, LimitedList] = {}
        for limited in Prober(self.document).lists(schema, base):
            name = f"{route.name} {limited.place}"
            if name in found and found[name].most != limited.most:
                name = f"{name} of {limited.most}"
            found.setdefault(name, limited)
        return found

    def sent(self, route: Any, limited: LimitedList, size: int) -> Any:
        """The answer to a request with so many elements in a list."""
        name = limited.place.rpartition(".")[2]
        made = self.elements.get(f"{route.name} {name}") or self.elements.get(name)
        sample = Prober(self.document).sample(limited.items)
        body = limited.body([sample if made is None else made(number) for number in range(size)])
        body.pop(APART.get(str(limited.path[0])), None)
        path = route.path
        for parameter, value in self.ids.items():
            path = path.replace(f"{{{parameter}}}", value)
        return self.house.request(route.method, path, json=body)

    def held(self, work: Callable[[], Any]) -> tuple[Any, float]:
        """What a work returns, and the seconds of the longest transaction until no job is left."""
        holds = self.house.memoranda.core.store.db.holds
        holds.transactions = Histogram()
        result = work()
        until_no_job_is_due(self.house.memoranda.core)
        self.house.portal.call(self.settled())
        return result, holds.transactions.longest

    async def settled(self) -> None:
        """Return when the transactions so far are counted, which is after their callers have gone on."""
        core = self.house.memoranda.core
        for _ in range(2):
            await core.threads.result(core.store.db.write(lambda c: None))

    def reference(self) -> float:
        """Seconds for which a hundred memories in one transaction hold the writer: the median of some tries."""

        def add(first: int) -> None:
            self.add({"content": f"reference {number}"} for number in range(first, first + 100))

        return statistics.median(self.held(partial(add, first))[1] for first in range(0, 900, 100))


@pytest.fixture(scope="module")
def filled(houses: Any) -> Filled:
    return Filled(houses())


@pytest.fixture(scope="module")
def reference(filled: Filled) -> Iterator[float]:
    """Seconds of `Filled.reference`. From here on the writer is measured by the CPU time of its thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memoranda.storage.sql.group.perf_counter", time.thread_time)
        yield filled.reference()


def check_accepted(name: str, answer: Any) -> None:
    """
    Raises:
        AssertionError: a list at its limit was refused, and not for the reason that `REFUSED` names.
    """
    if name not in REFUSED:
        assert answer.status_code == 200, (name, answer.text[:500])
    else:
        assert answer.status_code in (400, 404), (name, answer.text[:500])
        assert re.search(REFUSED[name], answer.json()["error"]["message"]), (name, answer.text[:500])


@pytest.mark.parametrize("route", WITH_JSON, ids=lambda route: route.name)
def test_a_list_beyond_its_limit_is_refused_with_its_name_and_the_limit(filled: Filled, route: Any) -> None:
    for name, limited in filled.lists(route).items():
        answer = filled.sent(route, limited, limited.most + 1)
        assert answer.status_code == 400, (name, answer.text[:500])
        error = answer.json()["error"]
        assert error["param"] in (limited.place, MEANT_BY.get(limited.place)), (name, error)
        assert re.search(rf"\b{limited.most}\b", error["message"]), (name, error)


@pytest.mark.parametrize("route", WITH_JSON, ids=lambda route: route.name)
def test_a_list_at_its_limit_is_accepted(filled: Filled, route: Any) -> None:
    for name, limited in filled.lists(route).items():
        if limited.most <= MOST_IN_GATE and name not in LONG:
            check_accepted(name, filled.sent(route, limited, limited.most))


def test_every_list_that_is_refused_at_its_limit_is_there(filled: Filled) -> None:
    names = {name for route in WITH_JSON for name in filled.lists(route)}
    assert len(names) > 130
    assert {*REFUSED, *LONG} <= names


@pytest.mark.slow
@pytest.mark.parametrize(
    "route", sorted(WITH_JSON, key=lambda route: route.needs != "read"), ids=lambda route: route.name
)
def test_a_list_at_its_limit_does_not_hold_the_writer(filled: Filled, reference: float, route: Any) -> None:
    for name, limited in filled.lists(route).items():
        answer, seconds = filled.held(partial(filled.sent, route, limited, limited.most))
        check_accepted(name, answer)
        assert seconds <= MOST_REFERENCES * reference, (name, seconds / reference)
