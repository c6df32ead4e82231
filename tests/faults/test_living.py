"""What is said while processes die and race, and clocks and models fail: every message once, every summary once, every
fact once, and none that nobody said."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from operator import not_
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from support import chat_server, conversation_model, postgres
from support.waiting import until

from . import chatter

CHATTER = Path(__file__).with_name("chatter.py")


GAP = timedelta(minutes=30)
ENOUGH = 4
SETTINGS: dict[str, Any] = {"embedder": {"url": "hash:64"}, "facts": {"capture_rules": True}}


# --- what must hold --------------------------------------------------------------------------------


def settled(opened: BlockingMemoranda) -> None:
    """Closes what is open, as the clock would, and waits until nothing is left to do."""
    for one in every(opened.sessions.list, status="open"):
        opened.sessions.close(one.id)
    left = (
        "SELECT 1 FROM jobs WHERE state IN ('queued', 'running') AND kind IN ('facts.extract', 'sessions.summarize')",
        f"SELECT 1 FROM sessions WHERE status = 'closed' AND message_count >= {ENOUGH}",
    )
    until(lambda: [row for sql in left for row in rows(opened, sql)], "nothing left to do", accept=not_)


def rows(opened: BlockingMemoranda, sql: str) -> list[tuple[Any, ...]]:
    return opened.inner.core.store.db.read(lambda c: c.select(sql, []))


def every(verb: Callable[..., Any], *args: Any, **fields: Any) -> list[Any]:
    """All rows of a listing."""
    held: list[Any] = []
    while True:
        after = {"after": held[-1].id} if held else {}
        page = verb(*args, limit=500, order="asc", **after, **fields)
        held += page.data
        if not page.has_more:
            return held


def log_of(opened: BlockingMemoranda) -> list[Any]:
    """Every message, session by session."""
    return [one for s in every(opened.sessions.list) for one in every(opened.sessions.messages, s.id)]


def cut(messages: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The sessions that the messages make: channel, from, to, how many. Worked out here, not by the product."""
    found: list[list[Any]] = []
    for one in sorted(messages, key=lambda one: (one.channel_id, one.occurred_at)):
        last = found[-1][-1] if found else None
        if (
            last is not None
            and last.channel_id == one.channel_id
            and one.occurred_at - last.occurred_at <= GAP
        ):
            found[-1].append(one)
        else:
            found.append([one])
    return sorted((s[0].channel_id, s[0].occurred_at, s[-1].occurred_at, len(s)) for s in found)


def check(opened: BlockingMemoranda, acknowledged: set[str], begun: set[str]) -> int:
    """Holds what is kept against what was said; how many messages there are."""
    log = log_of(opened)
    ids = [one.id for one in log]
    assert len(ids) == len(set(ids)), "a message twice"
    assert acknowledged <= set(ids) <= begun
    sessions = every(opened.sessions.list)
    have = sorted((s.channel_id, s.started_at, s.ended_at, s.message_count) for s in sessions)
    assert have == cut(log)
    summaries = every(opened.memories.list, kinds=["session_summary"])
    told = sorted((one.session_id, one.id) for one in summaries)
    want = sorted((s.id, s.summary_id) for s in sessions if s.message_count >= ENOUGH)
    assert told == want, "a summary is missing, or there twice"
    loves = {one.id for one in log if one.content.startswith("I love ")}
    facts = every(opened.memories.list, kinds=["fact"], include_archived=True)
    assert sorted(tuple(one.source_refs) for one in facts) == sorted((id_,) for id_ in loves)
    assert all(chatter.word_of(one.source_refs[0]) in one.content for one in facts)
    return len(log)


# --- kill -9 ---------------------------------------------------------------------------------------


class Said:
    """What the killed processes began to say, and what was acknowledged."""

    def __init__(self) -> None:
        self.begun: set[str] = set()
        self.acknowledged: set[str] = set()

    def read(self, path: Path) -> None:
        for raw in path.read_bytes().split(b"\n")[:-1]:
            line = json.loads(raw)
            into = {"begin": self.begun, "done": self.acknowledged, "open": set()}[line["kind"]]
            into.update(line.get("ids", ()))


def live_and_die(folder: Path, acks: Path, seed: int, seconds: float) -> None:
    """One life of a talking process, killed so many seconds after its first message was acknowledged."""
    settings = json.dumps({"data": str(folder), **SETTINGS})
    command = [sys.executable, str(CHATTER), "talk", settings, str(acks), str(seed)]
    with subprocess.Popen(command, start_new_session=True) as child:
        until(
            lambda: child.poll() is not None or (acks.exists() and b"done" in acks.read_bytes()),
            "an acknowledged message",
            every=0.02,
        )
        time.sleep(seconds)
        assert child.poll() is None, "it ended by itself"
        os.killpg(child.pid, signal.SIGKILL)


def die_again_and_again(tmp_path: Path, lives: int) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    rng, said = random.Random(seed), Said()
    for life in range(lives):
        acks = tmp_path / f"acks-{life}"
        live_and_die(tmp_path / "data", acks, life, 0.3 + 0.6 * rng.random())
        said.read(acks)
    with memoranda.open(tmp_path / "data", **SETTINGS) as opened:
        settled(opened)
        assert check(opened, said.acknowledged, said.begun) >= lives


@pytest.mark.slow
def test_killed_while_it_listens_summarizes_and_learns(tmp_path: Path) -> None:
    die_again_and_again(tmp_path, 2)


@pytest.mark.slow
def test_killed_thirty_times(tmp_path: Path) -> None:
    die_again_and_again(tmp_path, 30)


# --- two workers on one channel --------------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_hear_one_channel(tmp_path: Path) -> None:
    """Each hears two thirds of what is said, out of order; a third of it both."""
    url = postgres.fresh_url()
    local = {"index": {"url": "memory:"}, "words": {"url": "tantivy:"}, "database": {"url": url}}
    settings: dict[str, Any] = {"data": ":memory:", **local, **SETTINGS}
    said = [{**chatter.said(0, 0, number), "channel": "hall"} for number in range(45)]
    for one in said:
        one["occurred_at"] = one["occurred_at"].isoformat()
    rng = random.Random(4)
    halves = []
    for side in (0, 1):
        plan = tmp_path / f"plan-{side}"
        mine = [one for number, one in enumerate(said) if number % 3 in (side, 2)]
        mine.sort(key=lambda one: rng.random() + int(one["id"].rpartition("x")[2]) / 4)  # nearly in order
        plan.write_text(json.dumps(mine))
        command = [sys.executable, str(CHATTER), "half", json.dumps(settings), str(plan)]
        halves.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        )
    try:
        for word in ("ready", "said"):
            for half in halves:
                assert half.stdout is not None
                assert half.stdin is not None
                assert half.stdout.readline().strip() == word
            for half in halves:
                half.stdin.write("\n")  # type: ignore[union-attr]
        assert [half.wait(30) for half in halves] == [0, 0]
    finally:
        for half in halves:
            half.kill()
            half.communicate()
    ids = {one["id"] for one in said}
    with memoranda.open(**settings) as opened:
        settled(opened)
        assert check(opened, ids, ids) == 45


# --- clocks ----------------------------------------------------------------------------------------


def test_a_clock_that_jumps_cuts_by_what_it_says_and_holds_nothing_open(rc: BlockingMemoranda) -> None:
    now = datetime.now(UTC)
    hours = {"now": 0.0, "ahead": 24 * 800, "and on": 0.1, "behind": -24 * 9000, "back": 0.2, "1970": None}
    for text, shift in hours.items():
        at = datetime(1970, 1, 1, tzinfo=UTC) if shift is None else now + timedelta(hours=shift)
        rc.observe([{"content": f"It is {text} on my clock.", "occurred_at": at}], channel_id="hall")
    log = log_of(rc)
    sessions = every(rc.sessions.list)
    assert sorted((s.channel_id, s.started_at, s.ended_at, s.message_count) for s in sessions) == cut(log)
    assert sorted(s.message_count for s in sessions) == [1, 1, 1, 3]
    latest = max(due for (due,) in rows(rc, "SELECT due_at FROM sessions WHERE status = 'open'"))
    assert latest <= (now + timedelta(hours=1)).timestamp() * 1e6


# --- a model ---------------------------------------------------------------------------------------

TALK = (
    ("Ana", "I live in Lyon, near the river."),
    ("Ben", "Good to know."),
    ("Ana", "The door code of the workshop is 8841 at night."),
    ("Ana", "The frames cost 75 euros each."),
    ("Ben", "We decided to use the blue poster."),
)


@contextmanager
def with_model(home: Any) -> Iterator[tuple[BlockingMemoranda, Any]]:
    """A product that has heard `TALK` in a session, and the model that is to read it."""
    with conversation_model.thinking(chat_server.running) as (url, thinker):
        several = {"provider": "vllm"}  # unlike a small local server, it answers background calls at once
        model = {"url": url, "name": "thinker", "timeout": 5.0, "retries": 0, **several}
        with home.open(model=model, facts={"extraction": "lazy"}) as opened:
            began = datetime(2026, 5, 4, 9, tzinfo=UTC)
            said = [
                {"id": f"m{n}", "speaker": who, "content": text, "occurred_at": began + timedelta(minutes=n)}
                for n, (who, text) in enumerate(TALK)
            ]
            opened.observe(said, channel_id="hall")
            yield opened, thinker


def told(opened: BlockingMemoranda) -> list[str]:
    """The facts that hold, and the summaries."""
    return sorted(one.content for one in every(opened.memories.list, kinds=["fact", "session_summary"]))


def test_a_model_that_is_away_for_a_day_is_waited_for(home: Any) -> None:
    with with_model(home) as (opened, thinker):
        thinker.away = True
        (session,) = every(opened.sessions.list)
        opened.sessions.close(session.id)
        until(lambda: opened.sessions.get(session.id).status == "failed", "a failed summary")
        failed = opened.sessions.get(session.id)
        assert failed.failure
        assert failed.attempts >= 1
        assert told(opened) == []
        assert opened.memories.search("door code", kinds=["message"], limit=1).results[0].memory.id == "m2"
        thinker.away = False
        running = "SELECT kind FROM jobs WHERE state = 'running'"
        until(lambda: rows(opened, running), "no running job", accept=not_)
        for sql in (  # a day later
            "UPDATE sessions SET next_try_at = 0, facts_next_try_at = 0",
            "UPDATE jobs SET run_at = 0 WHERE state = 'queued'",
        ):
            db = opened.inner.core.store.db
            db.write(lambda c, sql=sql: c.select(f"{sql} RETURNING 1", [])).result()
        opened.inner.core.due_times.announce(0)
        for kind in ("facts.extract", "sessions.summarize"):
            opened.portal.call(woken(opened, kind))
        until(lambda: opened.sessions.get(session.id).status == "summarized", "a summary")
        until(lambda: told(opened), "five facts", accept=lambda texts: len(texts) == 5)
        assert len(every(opened.memories.list, kinds=["session_summary"])) == 1


async def woken(opened: BlockingMemoranda, kind: str) -> None:
    opened.inner.core.jobs.wake(kind)


def test_what_changes_while_a_model_reads_it_is_read_again(home: Any) -> None:
    with with_model(home) as (opened, thinker):
        thinker.held = True
        (session,) = every(opened.sessions.list)
        opened.sessions.close(session.id)
        until(lambda: thinker.waiting >= 2, "questions for the summary and for the facts")
        opened.sessions.delete_message(session.id, "m2")
        opened.sessions.update_message(session.id, "m3", "The frames cost 57 euros each.")
        opened.observe("I live in Porto now.", channel_id="elsewhere")
        thinker.held = False
        settled(opened)
        until(lambda: told(opened), "the changed fact", accept=lambda texts: "57 euros" in str(texts))
        text = "\n".join(told(opened))
        assert "8841" not in text
        assert "75 euros" not in text
        assert text.count("The frames cost 57 euros each.\n") <= 2
        assert len(every(opened.memories.list, kinds=["session_summary"])) == 1
        exported = re.sub(r"[0-9a-f]{12,}", "", b"".join(opened.memories.export()).decode())  # without ids
        assert "8841" not in exported
        assert "door code" not in exported
        assert "75 euros" not in exported
