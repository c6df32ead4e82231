"""The conversations replayed to a server, and all that it then has to show of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import httpx

from .expected import Expected
from .talk import BOT, Changed, Said, events, final, holds, user_of

Row = dict[str, Any]
DONE, WEEKS = 120.0, 8.0
"""Seconds that background work may take; after how many the weeks are looked at as they are."""


class Asking:
    """A client of one server with one key."""

    def __init__(self, url: str, key: str) -> None:
        self.http = httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60)

    def call(self, method: str, path: str, status: int = 200, **options: Any) -> Any:
        """What a request that comes to `status` is answered."""
        answer = self.http.request(method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def pages(self, path: str, **params: Any) -> list[Row]:
        """Every row of a listing, a few at a time."""
        held: list[Row] = []
        while True:
            after = {"after": held[-1]["id"]} if held else {}
            page = self.call("GET", path, params={"limit": 50, "order": "asc", **params, **after})
            held += page["data"]
            if not page["has_more"]:
                return held

    def observe(self, channel: str, messages: Sequence[Row]) -> list[Row]:
        """What became of messages that were said in a channel."""
        body = {"channel_id": channel, "messages": list(messages)}
        return list(self.call("POST", "/v1/messages", json=body)["data"])

    def message_at(self, id_: str) -> str:
        """The path of a message of the log."""
        session = self.call("GET", f"/v1/memories/{id_}")["session_id"]
        return f"/v1/sessions/{session}/messages/{id_}"

    def change(self, changed: Changed) -> None:
        """Edits a message, or takes it back."""
        path = self.message_at(changed.label)
        if changed.text is None:
            self.call("DELETE", path)
        else:
            self.call("POST", path, json={"content": changed.text})

    def facts(self, **params: Any) -> list[str]:
        """The facts that are held."""
        return [str(row["content"]) for row in self.pages("/v1/memories", kinds="fact", **params)]


def replay(asking: Asking, talk: str, batch: int) -> None:
    """Says everything, in order; `batch` messages of a channel at most at once. Every seventh is sent twice."""
    waiting: list[Said] = []

    def send() -> None:
        if waiting:
            came = asking.observe(waiting[0].channel, [said.body for said in waiting])
            assert [one["created"] for one in came] == [True] * len(waiting)
            assert [one["content"] for one in came] == [said.text for said in waiting]
        waiting.clear()

    for number, event in enumerate(events(talk)):
        if waiting and (
            isinstance(event, Changed) or event.channel != waiting[0].channel or len(waiting) == batch
        ):
            send()
        if isinstance(event, Changed):
            asking.change(event)
            continue
        waiting.append(event)
        if number % 7 == 0:
            send()
            assert not asking.observe(event.channel, [event.body])[0]["created"]
    send()


def settle(asking: Asking) -> None:
    """Closes what is still open, as the timer would, and waits until nothing is left to do."""
    for session in asking.pages("/v1/sessions"):
        if session["status"] == "open":
            asking.call("POST", f"/v1/sessions/{session['id']}/close")
    began = time.monotonic()
    while (left := under_way(asking)) or weeks_told(asking) != weeks_held(asking):
        waited = time.monotonic() - began
        assert waited < DONE, left
        if not left and waited > WEEKS:
            return
        time.sleep(0.1)


def compact(asking: Asking) -> None:
    """Takes what was deleted out of the indexes: until then it counts in the mean length of a document."""
    job = asking.call("POST", "/v1/memories/compact")
    began = time.monotonic()
    while (job := asking.call("GET", f"/v1/jobs/{job['id']}"))["state"] != "completed":
        assert time.monotonic() - began < DONE, job
        time.sleep(0.1)


def weeks_held(asking: Asking) -> dict[tuple[str, str], int]:
    """The channels and weeks (as `2026-W10`) in which more than one session was summarized, and how many were."""
    counted: dict[tuple[str, str], int] = {}
    for session in asking.pages("/v1/sessions", status="summarized"):
        week = session["channel_id"], week_of(session["started_at"][:10])
        counted[week] = counted.get(week, 0) + 1
    return {week: count for week, count in counted.items() if count > 1}


def weeks_told(asking: Asking) -> dict[tuple[str, str], int]:
    """The weeks of which there is a summary of summaries, and of how many it tells."""
    rows = asking.pages("/v1/memories", kinds="rollup")
    assert len({(row["channel_id"], row["metadata"]["week"]) for row in rows}) == len(rows)
    return {(row["channel_id"], row["metadata"]["week"]): row["metadata"]["sessions"] for row in rows}


def week_of(day: str) -> str:
    """The ISO week of a day."""
    year, week, _ = date.fromisoformat(day).isocalendar()
    return f"{year}-W{week:02}"


def under_way(asking: Asking) -> list[Row]:
    """Jobs and sessions with which something is still to be done."""
    jobs = asking.call("GET", "/v1/jobs", params={"limit": 1000})["data"]
    left = [job for job in jobs if job["state"] in ("queued", "running") and job["kind"] in MAKES]
    enough = 4
    return left + [
        session
        for session in asking.pages("/v1/sessions")
        if session["status"] in ("open", "failed")
        or (session["status"] == "closed" and session["message_count"] >= enough)
    ]


MAKES = ("facts.extract", "memories.embed", "sessions.summarize")


@dataclass
class Seen:
    """What a server shows of a conversation."""

    sessions: list[Row] = field(default_factory=list)
    log: dict[str, list[Row]] = field(default_factory=dict)
    summaries: list[Row] = field(default_factory=list)
    rollups: list[Row] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    all_facts: list[str] = field(default_factory=list)
    as_of: list[list[str]] = field(default_factory=list)
    found: list[list[str]] = field(default_factory=list)
    """The ids of the messages that a search finds, by question, best first."""
    contexts: list[str] = field(default_factory=list)
    export: str = ""


def look(asking: Asking, expected: Expected, channels: Sequence[str]) -> Seen:
    """Everything there is to see."""
    scopes = [f"channel:{channel}" for channel in channels]
    seen = Seen(sessions=asking.pages("/v1/sessions"))
    for session in seen.sessions:
        seen.log[session["id"]] = asking.pages(f"/v1/sessions/{session['id']}/messages")
    seen.summaries = asking.pages("/v1/memories", kinds="session_summary")
    seen.rollups = asking.pages("/v1/memories", kinds="rollup")
    seen.facts = asking.facts()
    seen.as_of = [asking.facts(as_of=one.at.isoformat()) for one in expected.as_of]
    for question in expected.questions:
        body = {"query": question.text, "scopes": scopes, "kinds": ["message"], "limit": question.top}
        hits = asking.call("POST", "/v1/memories/search", json=body)["results"]
        seen.found.append([hit["memory"]["id"] for hit in hits])
        made = asking.call(
            "POST", "/v1/context", json={"query": question.text, "scopes": scopes, "budget": 1000}
        )
        seen.contexts.append(made["text"])
    seen.export = asking.http.get("/v1/memories/export").text
    seen.all_facts = list(exported(seen.export, "fact"))
    return seen


def answers(asking: Asking, expected: Expected, talk: str) -> list[str]:
    """What a response says to each question, asked in the channel of the message that answers it."""
    texts = []
    for question in expected.questions:
        channel = next(said.channel for said in final(talk) if said.label in question.found)
        body = {"input": question.text, "store": False, "memory": {"channel_id": channel}}
        output = asking.call("POST", "/v1/responses", json=body)["output"]
        texts.append("".join(part["text"] for item in output for part in item.get("content", ())))
    return texts


def exported(export: str, kind: str) -> Iterator[str]:
    """The texts of one kind in an export."""
    for line in export.splitlines():
        row = json.loads(line)
        if row.get("kind") == kind:
            yield row["content"]


def told(session: Row) -> str:
    """All that a session's summary says."""
    lists = ("topics", "decisions", "open_questions", "action_items", "entities")
    return "\n".join([session["summary"] or "", *(text for name in lists for text in session[name])])


def initials(session: Row) -> str:
    """Who spoke, as `expected` writes it."""
    return "".join(BOT[0] if name == BOT else name[0] for name in session["participants"])


def held(words: tuple[str, ...], texts: Sequence[str]) -> bool:
    """Whether one of the texts has all the words."""
    return any(holds(words, text) for text in texts)


__all__ = ["Asking", "Seen", "compact", "held", "initials", "look", "replay", "settle", "told", "user_of"]
