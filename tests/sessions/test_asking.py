"""Summaries that a model makes: what it is told, what it says, and when it is away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import ModelUnavailable
from memoranda.providers.chat.script import Play, script_of
from memoranda.providers.chat.scripted import ScriptedModel
from memoranda.sessions import summary_jobs
from support.waiting import until

pytestmark = pytest.mark.rows_in("sqlite")
ANSWER = (
    '{"summary": "Ana and Bo buy a greenhouse.", "topics": ["greenhouse"], "decisions": ["the used one"]}'
)


@dataclass
class Asked:
    """A product whose model says what a test tells it to."""

    rc: BlockingMemoranda
    model: ScriptedModel

    def script(self, *turns: Any) -> None:
        """What the model says from here on."""
        self.model.play = Play(script_of(list(turns)))
        self.model.asked.clear()


@pytest.fixture(scope="module")
def asked(lasting_home: Any, tmp_path_factory: Any) -> Iterator[Asked]:
    """A product with a scripted model."""
    path = tmp_path_factory.mktemp("script") / "script.json"
    path.write_text('{"turns": []}')
    settings = {"min_messages": 2, "summary_model": "small"}
    with lasting_home.empty(model={"url": f"scripted:{path}"}, sessions=settings) as opened:
        model = opened.inner.core.model
        assert isinstance(model, ScriptedModel)
        yield Asked(opened, model)


@pytest.fixture
def product(asked: Asked) -> BlockingMemoranda:
    """What `chat` speaks in."""
    return asked.rc


def test_a_model_is_told_what_was_said_and_its_answer_is_kept(asked: Any, chat: Any) -> None:
    asked.script({"text": ANSWER})
    id = chat.talk()
    chat.sessions.close(id)
    held = chat.summarized(id)
    assert (held.summary, held.decisions) == ("Ana and Bo buy a greenhouse.", ["the used one"])
    (ask,) = asked.model.asked
    assert ask.model == "small"
    assert "[06 May 12:01] Bo: Yes, they want 2400 euros" in ask.messages[1]["content"]
    assert ask.messages[1]["content"].startswith("[06 May 2024 12:00 to 12:06] c, Ana, Bo")


def test_a_model_that_is_away_costs_time_and_nothing_else(asked: Any, chat: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(summary_jobs, "AGAIN", 0.1)
    asked.script({"status": 503}, {"text": ANSWER})
    id = chat.talk()
    chat.sessions.close(id)
    failed = until(lambda: chat.sessions.get(id), "a failure", accept=lambda found: found.failure)
    assert (failed.status, failed.attempts, failed.summary) == ("failed", 1, None)
    held = chat.summarized(id)
    assert (held.failure, held.attempts) == (None, 0)


def test_what_is_asked_for_says_why_it_fails(asked: Any, chat: Any, talk: Any) -> None:
    asked.script({"status": 503})
    id = chat.talk()
    with pytest.raises(ModelUnavailable):
        chat.sessions.summarize(id)
    held = chat.sessions.get(id)
    assert held.failure
    assert (held.status, held.message_count) == ("open", len(talk))
