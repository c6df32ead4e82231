"""Two conversations of two months, replayed through the public API, and what has become of them: sessions, summaries,
weeks, facts now and then, answers. And again after a restart, and after a user was forgotten."""

from __future__ import annotations

import fcntl
import os
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import pytest

import memoranda
from memoranda.server.app import create_app
from support import chat_server, conversation_model, postgres

from . import atelier, harbor, replay
from .expected import ATELIER, HARBOR, Expected
from .replay import Asking, Seen, held, initials, told, week_of
from .talk import final, moment, user_of

T = TypeVar("T")
TALKS: dict[str, tuple[ModuleType, Expected]] = {"atelier": (atelier, ATELIER), "harbor": (harbor, HARBOR)}


class Run(NamedTuple):
    """Where rows are, who summarizes and finds facts, what embeds, how many messages go at once."""

    rows: str
    model: bool
    embedder: str
    batch: int

    @property
    def quotes(self) -> bool:
        """True if no language model answers, and the default embedder finds."""
        return not self.model and not self.embedder.startswith("hash:")


RUNS = {
    "sqlite": Run("sqlite", False, "local:arctic-embed-s", 1),
    "postgresql": Run("postgresql", False, "hash:256", 20),
    "sqlite with a model": Run("sqlite", True, "hash:256", 20),
    "postgresql with a model": Run("postgresql", True, "hash:256", 3),
}


@dataclass
class Life:
    """What was seen of a conversation: at the end, after a restart, after a user was forgotten. `answers` are those
    to its questions after the restart, if its run answers with quotes that the default embedder finds."""

    talk: ModuleType
    expected: Expected
    run: Run
    end: Seen
    again: Seen
    forgotten: Seen
    answers: list[str]


@contextmanager
def serving(settings: dict[str, Any]) -> Iterator[dict[str, Asking]]:
    """A server of these settings: a client for each tenant's admin."""
    with memoranda.open(**settings) as opened, chat_server.running(create_app(opened.inner)) as url:
        yield {name: Asking(url, f"key of {name}") for name in TALKS}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=list(RUNS))
def lives(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Life]:
    run = RUNS[request.param]
    settings: dict[str, Any] = {
        "data": tmp_path_factory.mktemp("living") / "data",
        "embedder": {"url": run.embedder},
        "database": {"url": "sqlite:" if run.rows == "sqlite" else postgres.fresh_url()},
        "facts": {"extraction": "lazy"} if run.model else {"capture_rules": True},
        "keys": [{"name": name, "key": f"key of {name}", "tenant": name, "role": "admin"} for name in TALKS],
    }
    seen = once(request.param, tmp_path_factory, lambda: seen_by(run, settings))
    return {name: Life(*TALKS[name], run, *each) for name, each in seen.items()}


def once(name: str, folders: pytest.TempPathFactory, make: Callable[[], T]) -> T:
    """What `make` gives, made by one of the processes that share a run of the tests."""
    base = folders.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    kept = shared / f"living {name}"
    with (shared / f"living {name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make()))
        made: T = pickle.loads(kept.read_bytes())
    return made


def seen_by(run: Run, settings: dict[str, Any]) -> dict[str, list[Any]]:
    with ExitStack() as stack:
        if run.model:
            url, _ = stack.enter_context(conversation_model.thinking(chat_server.running))
            settings["model"] = {"url": url, "name": "thinker"}
        return lived(run, settings)


def lived(run: Run, settings: dict[str, Any]) -> dict[str, list[Any]]:
    """Both conversations, each in a tenant of one server, through three lives of it, and the answers."""
    seen: dict[str, list[Any]] = {name: [] for name in TALKS}
    answers: dict[str, list[str]] = {name: [] for name in TALKS}

    def look(asking: dict[str, Asking]) -> None:
        for name, (talk, expected) in TALKS.items():
            seen[name].append(replay.look(asking[name], expected, talk.CHANNELS))

    with serving(settings) as asking:
        for name, (talk, _) in TALKS.items():
            replay.replay(asking[name], talk.TALK, run.batch)
        for name in TALKS:
            replay.settle(asking[name])
            replay.compact(asking[name])
        look(asking)
    with serving(settings) as asking:
        look(asking)
        for name, (talk, expected) in TALKS.items():
            if run.quotes:
                answers[name] = replay.answers(asking[name], expected, talk.TALK)
            body = {"scopes": [f"user:{user_of(expected.forgotten)}"]}
            asking[name].call("POST", "/v1/memories/forget", json=body)
            replay.settle(asking[name])
    with serving(settings) as asking:
        look(asking)
    return {name: [*seen[name], answers[name]] for name in TALKS}


@pytest.fixture(params=TALKS)
def life(request: pytest.FixtureRequest, lives: dict[str, Life]) -> Life:
    return lives[request.param]


# --- at the end ------------------------------------------------------------------------------------


def test_the_sessions_are_those_that_were_held(life: Life) -> None:
    have = sorted(
        (s["channel_id"], s["started_at"], s["ended_at"], s["message_count"], sorted(initials(s)))
        for s in life.end.sessions
    )
    want = sorted(
        (s.channel, at(s.start), at(s.end), s.messages, sorted(s.who)) for s in life.expected.sessions
    )
    assert [(one[0], one[1][:16], one[2][:16], *one[3:]) for one in have] == want


def test_the_log_has_every_message_once_and_in_order(life: Life) -> None:
    by_channel = {channel: [] for channel in life.talk.CHANNELS}
    for session in sorted(life.end.sessions, key=lambda one: one["started_at"]):
        by_channel[session["channel_id"]] += life.end.log[session["id"]]
    for channel, rows in by_channel.items():
        want = [said for said in final(life.talk.TALK) if said.channel == channel]
        assert [(row["speaker"], row["content"]) for row in rows] == [(s.speaker, s.text) for s in want]


def test_closed_sessions_are_summarized_and_short_ones_are_not(life: Life) -> None:
    for session in life.end.sessions:
        enough = session["message_count"] >= 4
        assert session["status"] == ("summarized" if enough else "closed"), session
    written = {row["session_id"]: row for row in life.end.summaries}
    assert set(written) == {s["id"] for s in life.end.sessions if s["message_count"] >= 4}
    assert len(written) == len(life.end.summaries)


def test_summaries_say_what_mattered_and_nothing_else(life: Life) -> None:
    wrong = []
    for (channel, start), want in life.expected.summaries.items():
        found = next(
            s for s in life.end.sessions if (s["channel_id"], s["started_at"][:16]) == (channel, at(start))
        )
        for part, texts, words in (
            ("says", [told(found)], want.says),
            ("decisions", found["decisions"], want.decisions),
            ("open_questions", found["open_questions"], want.questions),
            ("action_items", found["action_items"], want.actions),
        ):
            wrong += [(channel, start, part, word, texts) for word in words if not held((word,), texts)]
        wrong += [
            (channel, start, "never", word, told(found))
            for word in want.never
            if held((word,), [told(found)])
        ]
    assert not wrong


def test_weeks_have_summaries_of_summaries(life: Life) -> None:
    weeks = {(row["channel_id"], row["metadata"]["week"]): row["content"] for row in life.end.rollups}
    assert len(weeks) == len(life.end.rollups)
    for (channel, monday), words in life.expected.weeks.items():
        told_of = weeks[channel, week_of(monday)]
        assert any(held((word,), [told_of]) for word in words), (channel, monday, told_of)
    assert not set(weeks) & {(channel, week_of(monday)) for channel, monday in life.expected.quiet_weeks}


def needs_a_model(life: Life) -> None:
    """
    Raises:
        pytest.skip: nobody says which facts end.
    """
    if not life.run.model:
        pytest.skip("patterns make notes and end nothing")


def test_facts_at_the_end_are_those_that_hold(life: Life) -> None:
    needs_a_model(life)
    missing = [words for words in life.expected.facts if not held(words, life.end.facts)]
    wrong = [words for words in life.expected.not_facts if held(words, life.end.facts)]
    never = [words for words in life.expected.never_facts if held(words, life.end.all_facts)]
    assert (missing, wrong, never) == ([], [], []), "\n".join(sorted(life.end.facts))


@pytest.mark.parametrize("number", range(4))
def test_facts_of_a_date_are_those_that_held_then(life: Life, number: int) -> None:
    needs_a_model(life)
    want, have = life.expected.as_of[number], life.end.as_of[number]
    missing = [words for words in want.held if not held(words, have)]
    wrong = [words for words in want.not_held if held(words, have)]
    assert (missing, wrong) == ([], []), "\n".join(sorted(have))


def test_questions_find_the_messages_that_answer_them(life: Life) -> None:
    wrong = []
    for question, ids, context in zip(
        life.expected.questions, life.end.found, life.end.contexts, strict=True
    ):
        if not question.plain and life.run.embedder.startswith("hash:"):
            continue
        if bool(set(ids) & set(question.found)) == question.missed:
            wrong.append((question.text, "not found", ids))
        if question.says not in context:
            wrong.append((question.text, "not in the context", context))
    assert not wrong


def test_what_was_taken_back_is_nowhere(life: Life) -> None:
    for word in life.expected.erased:
        said = re.compile(rf"(?<![\w.]){re.escape(word)}(?!\w)")  # an id may hold the digits by chance
        assert not said.search(life.end.export)
        assert not said.search(str(life.end))


# --- after a restart -------------------------------------------------------------------------------


def test_a_restart_changes_nothing(life: Life) -> None:
    for name in Seen.__dataclass_fields__:
        before, after = getattr(life.end, name), getattr(life.again, name)
        assert steady(before) == steady(after), name


def steady(seen: Any) -> Any:
    """What was seen without the counters of looking."""
    if isinstance(seen, str):
        return sorted(line for line in seen.splitlines())
    return seen


def test_questions_are_answered_without_a_language_model(life: Life) -> None:
    """So many of them with what is valid at the end, and without what is outdated."""
    if not life.run.quotes:
        pytest.skip("a language model answers, or the embedder does not know what words mean")
    right, wrong = 0, []
    for question, answer in zip(life.expected.questions, life.answers, strict=True):
        if question.says in answer and (question.outdated is None or question.outdated not in answer):
            right += 1
        else:
            wrong.append((question.text, answer))
    assert right >= life.expected.answered, wrong


# --- after a user was forgotten --------------------------------------------------------------------


def test_nothing_of_who_is_forgotten_is_left(life: Life) -> None:
    name = life.expected.forgotten
    for session in life.forgotten.sessions:
        assert name not in session["participants"]
        assert {row["speaker"] for row in life.forgotten.log[session["id"]]}.isdisjoint([name])
        assert session["message_count"] == len(life.forgotten.log[session["id"]])
    everything = str(life.forgotten)
    assert [word for word in life.expected.only_theirs if word.lower() in everything.lower()] == []
    assert [words for words in life.expected.gone_facts if held(words, life.forgotten.all_facts)] == []


def test_everybody_else_is_remembered_as_before(life: Life) -> None:
    theirs = [said for said in final(life.talk.TALK) if said.speaker != life.expected.forgotten]
    kept = [row["content"] for rows in life.forgotten.log.values() for row in rows]
    assert sorted(kept) == sorted(said.text for said in theirs)
    if life.run.model:
        assert [words for words in life.expected.kept_facts if not held(words, life.forgotten.facts)] == []
    for session in life.forgotten.sessions:
        assert session["status"] == ("summarized" if session["message_count"] >= 4 else "closed"), session


def at(text: str) -> str:
    """A time of `expected` as the API begins it."""
    return moment(text).isoformat()[:16]
