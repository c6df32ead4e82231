"""What is said while processes die and race, and clocks and models fail: every message once, every summary once, every
fact once, and none that nobody said."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.sync import BlockingRecollect

CHATTER = Path(__file__).with_name("chatter.py")
_spec = spec_from_file_location("recollect_tests_chatter", CHATTER)
assert _spec is not None
assert _spec.loader is not None
chatter: Any = module_from_spec(_spec)
sys.modules[_spec.name] = chatter
_spec.loader.exec_module(chatter)

GAP = timedelta(minutes=30)
ENOUGH = 4
SETTINGS: dict[str, Any] = {"embedder": {"url": "hash:64"}, "facts": {"capture_rules": True}}


# --- what must hold --------------------------------------------------------------------------------


def settled(opened: BlockingRecollect, seconds: float = 60.0) -> None:
    """Closes what is open, as the clock would, and waits until nothing is left to do."""
    for one in every(opened.sessions.list, status="open"):
        opened.sessions.close(one.id)
    left = (
        "SELECT 1 FROM jobs WHERE state IN ('queued', 'running') AND kind IN ('facts.extract', 'sessions.summarize')",
        f"SELECT 1 FROM sessions WHERE status = 'closed' AND message_count >= {ENOUGH}",
    )
    until(lambda: not any(rows(opened, sql) for sql in left), seconds)


def until(true: Callable[[], Any], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def rows(opened: BlockingRecollect, sql: str) -> list[tuple[Any, ...]]:
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


def log_of(opened: BlockingRecollect) -> list[Any]:
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


def check(opened: BlockingRecollect, acknowledged: set[str], begun: set[str]) -> int:
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
        until(lambda: child.poll() is not None or (acks.exists() and b"done" in acks.read_bytes()), 60)
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
    with recollect.open(tmp_path / "data", **SETTINGS) as opened:
        settled(opened)
        assert check(opened, said.acknowledged, said.begun) > 5 * lives


def test_killed_while_it_listens_summarizes_and_learns(tmp_path: Path) -> None:
    die_again_and_again(tmp_path, 2)


@pytest.mark.slow
def test_killed_thirty_times(tmp_path: Path) -> None:
    die_again_and_again(tmp_path, 30)


# --- two workers on one channel --------------------------------------------------------------------


def test_two_processes_hear_one_channel(tmp_path: Path) -> None:
    """Each hears two thirds of what is said, out of order; a third of it both."""
    url = sys.modules["recollect_tests_postgres"].fresh_url()
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
    with recollect.open(**settings) as opened:
        settled(opened)
        assert check(opened, ids, ids) == 45


# --- clocks ----------------------------------------------------------------------------------------


def test_a_clock_that_jumps_cuts_by_what_it_says_and_holds_nothing_open(rc: BlockingRecollect) -> None:
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
