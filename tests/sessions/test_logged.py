"""The log tells of sessions, facts and jobs, and never what was said."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import StorageError
from memoranda.store import job_kinds
from memoranda.store.job_kinds import JobKind
from memoranda.types import Subject
from support.waiting import until

SAID = ("I prefer green tea over coffee.", "We decided on the used greenhouse.")
STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """What was logged: the message, and what belongs to it."""
    return [
        (one.getMessage(), {name: value for name, value in vars(one).items() if name not in STANDARD})
        for one in caplog.records
    ]


def test_sessions_and_facts_are_logged_without_their_texts(
    home: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "memoranda")
    with home.open(facts={"capture_rules": True}, sessions={"min_messages": 2}) as rc:
        session = rc.observe(SAID, channel_id="c")[0].message.session_id
        rc.sessions.close(session)
        rc.sessions.close(session)
        until(lambda: rc.sessions.get(session).status == "summarized", "a summary")
        until(lambda: any(text == "facts extracted" for text, _ in lines(caplog)), "the facts")
        rc.sessions.fail_summary(session, "the secret reason")
        made = rc.context("Which tea?", sessions=3)
    told = lines(caplog)
    place = {"tenant": "default", "session": session}
    assert told.count(("session opened", place)) == 1
    assert told.count(("session closed", place)) == 1
    assert told.count(("session summarized", place | {"by": "extractive"})) == 1
    assert ("facts extracted", place | {"kept": 2, "joined": 0, "superseded": 0}) in told
    assert ("session not summarized", place | {"error": "external", "attempt": 1}) in told
    (context,) = [fields for text, fields in told if text == "context made"]
    assert made.sessions_retrieved == context["sessions_retrieved"] == 1
    assert not [one for one in told if "tea" in str(one) or "greenhouse" in str(one) or "secret" in str(one)]


def test_jobs_that_fail_are_logged_by_the_kind_of_their_error(
    home: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_kinds, "backoff", lambda attempt: 0.01)

    async def fails(run: Any) -> None:
        raise StorageError("the secret text")

    with home.open(jobs={"max_attempts": 2}) as rc:
        held = rc.inner.core.jobs
        held.kinds["any"] = JobKind(fails)
        id_ = rc.portal.call(held.enqueue("default", "any", {}))
        assert rc.portal.call(held.wait("default", id_)).state == "failed"
    about = {"tenant": "default", "job": id_, "kind": "any", "error": "StorageError"}
    told = [one for one in lines(caplog) if one[0].startswith("job ")]
    assert told == [
        ("job retried", about | {"attempt": 1, "again_in": 0.0}),
        ("job failed", about | {"attempt": 2}),
    ]


def test_every_line_with_fields_is_documented() -> None:
    root = Path(memoranda.__file__).parent
    page = (root.parents[1] / "docs" / "guides" / "http.md").read_text("utf-8")
    source = "\n".join(path.read_text("utf-8") for path in root.rglob("*.py"))
    found = set(re.findall(r'log\.(?:info|warning|error)\(\s*"([a-z ]+)",\s*extra=', source))
    assert {"request", "session summarized", "job failed", "context made"} <= found
    assert [name for name in sorted(found) if f"`{name}`" not in page] == []


def test_subjects_of_other_tenants_are_named(chat: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "memoranda")
    chat.rc.as_subject(Subject(tenant_id=chat.tenant)).sessions.observe("Hello there, Bo.", channel_id="c")
    assert [fields["tenant"] for text, fields in lines(caplog) if text == "session opened"] == [chat.tenant]
