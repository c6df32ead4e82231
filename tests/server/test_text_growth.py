"""Every text in a body of every route costs CPU time in proportion to its length."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from memoranda.server.routes import ROUTES
from support.document_probes import Prober
from support.valid_requests import valid_requests
from support.waiting import until_no_job_is_due

TEXTS = {
    "Chinese sentences": "我们在北京的办公室讨论项目预算和时间安排，",
    "Chinese characters": "我们",
    "letters": "a",
    "spaces": " ",
    "equal lines": "the kettle is green\n",
    "short lines": "a\n",
    "sentences": "Ana moved to Lisbon on 3 March 2024. ",
    "digits": "7",
    "numbers": "1,000.5 ",
    "quotes": '"',
    "brackets": "([{<",
    "open tags": "<a ",
    "citations": "[1][",
    "backticks": "`",
    "stars": "*a ",
    "pipes": "| a ",
    "addresses": "http://a.b/",
    "mail": "a@b.",
    "escapes": "\\",
    "marks": "e\u0301\u0302",
    "emoji": "\U0001f468\u200d\U0001f469",
    "dots": "a.",
    "questions": "what? ",
}
SIZE, MOST = 1_000_000, 3.0
"""Bytes of the longer text, and how many times as long it may take as a text of half its length: four times if the cost
grows with the square."""
LEAST = 1.0
"""Seconds of CPU time: what takes less is not compared, a fixed part would hide how it grows."""
TRIES = 3


class TextProber(Prober):
    """Probes with one text wherever the schema allows any text."""

    def __init__(self, document: Mapping[str, Any], text: str) -> None:
        super().__init__(document)
        self._text = text

    def values(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        kinds = self._kinds(schema)
        if any(kind.get("type") == "string" and not kind.keys() & {"enum", "const"} for kind in kinds):
            yield self._text


class Measured:
    """A server, one of its routes, and what a text in its body costs."""

    def __init__(self, house: Any, route: Any) -> None:
        self._house = house
        self._route = route
        self._ids = {**house.stock(), "id": house.add("something", kind="fact"), "model": "hash-64"}
        self._document = house.request("GET", "/openapi.json").json()
        self._path = route.path
        for name, value in self._ids.items():
            self._path = self._path.replace(f"{{{name}}}", value)

    def bodies(self, text: str) -> dict[str, Any]:
        """The bodies with this text in one place, by the place."""
        operation = self._document["paths"][self._route.path][self._route.method.lower()]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        base = valid_requests(self._ids).get(self._route.name, {}).get("json", {})
        probes = TextProber(self._document, text).probes(schema, base)
        return {place: body for place, body in probes if not place.startswith("without")}

    def seconds(self, body: Any) -> float:
        """CPU seconds of a request and of the jobs that follow from it."""
        began = time.process_time()
        answer = self._house.request(self._route.method, self._path, json=body)
        assert answer.status_code < 500, answer.text[:500]
        until_no_job_is_due(self._house.memoranda.core)
        return time.process_time() - began

    def grows(self, long: Any, short: Any) -> float:
        """How many times as long the longer text takes: the least of some tries."""
        first = self.seconds(long)
        if first < LEAST:
            return 1.0
        return min(self.seconds(long) / max(LEAST / MOST, self.seconds(short)) for _ in range(TRIES))


@pytest.mark.slow
@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.body not in (None, bytes)], ids=lambda route: route.name
)
def test_a_text_costs_time_in_proportion_to_its_length(opened: Any, route: Any) -> None:
    measured = Measured(opened(), route)
    for name, unit in TEXTS.items():
        long, short = (measured.bodies(unit * (size // len(unit.encode()))) for size in (SIZE, SIZE // 2))
        for place, body in long.items():
            assert measured.grows(body, short[place]) <= MOST, (place, name)
