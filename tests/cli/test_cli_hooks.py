"""`memoranda hook`: processes as clients start them, with transcripts as clients write them."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoranda.cli.hooks.state import LOG_BYTES, Position, log
from memoranda.cli.hooks.transcripts import message_of
from memoranda.client import Client
from memoranda.storage.data_lock import DATABASE, LOCK
from memoranda.text.prompts import UNREMEMBERED
from support.server_process import Process
from support.waiting import SECONDS, until

SETTINGS = {"facts": {"extraction": "eager", "capture_rules": True}}
SET = [
    "--set",
    "embedder.url=hash:64",
    "--set",
    "facts.capture_rules=true",
    "--set",
    "facts.extraction=eager",
]
START = "2026-11-20T09:00:0{}.000Z"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    made = Process(tmp_path_factory.mktemp("hooks") / "data", SETTINGS)
    yield made
    made.end()


def hook(event: str, folder: Path, *words: str, **given: Any) -> Any:
    """What a hook answers: the text of its context, or None; it must not fail."""
    done = subprocess.run(
        [sys.executable, "-m", "memoranda", "hook", event, "--data", str(folder), *words],
        input=json.dumps(given).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "MEMORANDA_CONFIG": ""},
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    if not done.stdout:
        return None
    answer = json.loads(done.stdout)
    if "additional_context" in answer:
        return answer["additional_context"]
    told = answer["hookSpecificOutput"]
    assert told["hookEventName"] == given.get("hook_event_name", given.get("hookEventName"))
    return told["additionalContext"]


def logged(folder: Path) -> str:
    path = folder / "hooks" / "hooks.log"
    return path.read_text() if path.exists() else ""


def claude(number: int, role: str, content: Any, **more: Any) -> str:
    """A line of a transcript of Claude Code."""
    entry = {
        "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/p", "sessionId": "s", "version": "2",
        "type": role, "message": {"role": role, "content": content}, "uuid": f"00000000-0000-4000-8000-{number:012}",
        "timestamp": START.format(number % 10), **more,
    }  # fmt: skip
    return json.dumps(entry) + "\n"


def codex(number: int, role: str, text: str) -> str:
    """A line of a transcript of Codex."""
    kind = "input_text" if role == "user" else "output_text"
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    entry = {"timestamp": START.format(number), "type": "response_item", "payload": payload}
    return json.dumps(entry) + "\n"


def gemini(number: int, role: str, text: str) -> str:
    """A line of a transcript of Gemini CLI."""
    entry = {
        "id": f"g-{number}",
        "timestamp": START.format(number),
        "type": role,
        "content": [{"text": text}],
    }
    return json.dumps(entry) + "\n"


def contents(client: Client, session_id: str) -> list[tuple[str, str]]:
    page = client.sessions.messages(session_id, limit=100).data
    return [(one.role, one.content) for one in page]


def test_facts_of_one_session_reach_the_next(server: Process, tmp_path: Path) -> None:
    folder = server.folder
    path = tmp_path / "one.jsonl"
    path.write_text(
        json.dumps({"type": "summary", "summary": "Tea", "leafUuid": "x"})
        + "\n"
        + claude(1, "user", "I prefer green tea in the morning.<system-reminder>Be brief.</system-reminder>")
        + claude(2, "assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"}])
        + claude(
            3, "assistant", [{"type": "text", "text": "Noted: green tea."}, {"type": "tool_use", "id": "t"}]
        )
        + claude(4, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "a file"}])
        + claude(5, "user", "<command-name>/clear</command-name>")
        + claude(6, "assistant", [{"type": "text", "text": "In a side task."}], isSidechain=True)
        + '{"type": "user", "cut'
    )
    asked: dict[str, Any] = {"session_id": "first", "transcript_path": str(path), "cwd": "/p"}
    stop = asked | {"hook_event_name": "Stop", "last_assistant_message": "Noted: green tea."}
    said = [("user", "I prefer green tea in the morning."), ("assistant", "Noted: green tea.")]
    with Client(server.url) as client:
        assert hook("stop", folder, "--user", "ada", **stop) is None
        assert contents(client, "first") == said, logged(folder)
        first = client.sessions.messages("first").data[0]
        assert first.id == "00000000-0000-4000-8000-000000000001"
        assert (first.user_id, first.occurred_at.isoformat()) == ("ada", "2026-11-20T09:00:01+00:00")
        text = path.read_text()
        path.write_text(text[: text.rindex('{"type": "user", "cut')] + claude(7, "user", "And bread."))
        (
            folder / "hooks" / "first.json"
        ).unlink()  # the position is lost: all is read again, nothing stored twice
        hook("compact", folder, "--user", "ada", **asked, hook_event_name="PreCompact", trigger="auto")
        assert contents(client, "first") == [*said, ("user", "And bread.")]
        until(lambda: client.list(kinds=["fact"]).data, "the fact of the session")
    start = {"session_id": "second", "transcript_path": "/none", "hook_event_name": "SessionStart"}
    told = hook("session-start", folder, "--user", "ada", **start, source="startup")
    assert "green tea" in told
    assert told.startswith("What is known from earlier sessions:\n- ")
    assert hook("session-start", folder, "--user", "eve", **start, source="startup") is None
    prompt = {**start, "hook_event_name": "UserPromptSubmit", "prompt": "Which tea do I prefer?"}
    remembered = within(folder, "--user", "ada", **prompt)
    assert "green tea" in remembered
    assert "What is known" not in remembered  # it was told at the start
    assert "What is known" in within(folder, "--user", "ada", **{**prompt, "session_id": "third"})
    cursor = hook(
        "session-start", folder, "--user", "ada", conversation_id="c", hook_event_name="sessionStart"
    )
    assert "green tea" in cursor
    vscode = hook("session-start", folder, "--user", "ada", sessionId="v", hookEventName="SessionStart")
    assert "green tea" in vscode


def within(folder: Path, *words: str, **given: Any) -> str:
    """What a prompt is told. On a busy machine a prompt may pass the limit; it is asked again then."""
    return str(until(lambda: hook("prompt", folder, *words, **given), "an answer within the limit"))


def test_a_session_is_not_told_what_it_has_before_it(server: Process, tmp_path: Path) -> None:
    path = tmp_path / "four.jsonl"
    path.write_text(
        claude(11, "user", "The spare key is under the blue pot.") + claude(12, "assistant", "Good.")
    )
    asked: dict[str, Any] = {"session_id": "four", "transcript_path": str(path)}
    hook(
        "stop",
        server.folder,
        "--user",
        "bob",
        **asked,
        hook_event_name="Stop",
        last_assistant_message="Good.",
    )
    prompt = {**asked, "hook_event_name": "UserPromptSubmit", "prompt": "Where is the spare key?"}
    assert hook("prompt", server.folder, "--user", "bob", **prompt) is None
    assert "blue pot" in within(server.folder, "--user", "bob", **{**prompt, "session_id": "five"})
    hook("compact", server.folder, "--user", "bob", **asked, hook_event_name="PreCompact")
    assert "blue pot" in within(server.folder, "--user", "bob", **prompt)


def test_a_prompt_is_told_that_memories_probably_do_not_answer(server: Process, tmp_path: Path) -> None:
    path = tmp_path / "dora.jsonl"
    path.write_text(claude(61, "user", "The roses are watered in the evening."))
    stop = {"session_id": "dora", "transcript_path": str(path), "hook_event_name": "Stop"}
    hook("stop", server.folder, "--user", "dora", **stop)
    asked = {"session_id": "six", "hook_event_name": "UserPromptSubmit"}
    other = within(server.folder, "--user", "dora", **asked, prompt="Are the roses watered by E0917?")
    assert "roses" in other
    assert other.endswith(f"\n\n{UNREMEMBERED} Not mentioned: E0917.")
    babel = asked | {"prompt": "Who painted the tower of Babel?"}
    assert hook("prompt", server.folder, "--user", "dora", **babel) is None
    same = within(server.folder, "--user", "dora", **asked, prompt="When are the roses watered?")
    assert "in the evening" in same
    assert UNREMEMBERED not in same


def test_a_transcript_may_come_after_its_stop(server: Process, tmp_path: Path) -> None:
    """Claude Code writes the transcript of a short session while its hooks run."""
    path = tmp_path / "late.jsonl"
    write = threading.Timer(1.0, lambda: path.write_text(claude(31, "assistant", "The kettle is on.")))
    write.start()
    hook(
        "stop", server.folder, session_id="late", transcript_path=str(path), hook_event_name="Stop",
        last_assistant_message="The kettle is on.",
    )  # fmt: skip
    write.join()
    with Client(server.url) as client:
        assert contents(client, "late") == [("assistant", "The kettle is on.")], logged(server.folder)


def test_a_session_that_ended_without_a_hook_is_observed_later(server: Process, tmp_path: Path) -> None:
    path, other = tmp_path / "ended.jsonl", tmp_path / "other.jsonl"
    begun = {"session_id": "ended", "transcript_path": str(path), "hook_event_name": "SessionStart"}
    hook("session-start", server.folder, "--user", "ada", **begun, source="startup")
    path.write_text(claude(41, "user", "The blue door sticks."))
    other.write_text(claude(51, "user", "Good morning."))
    stop = {"session_id": "other", "transcript_path": str(other), "hook_event_name": "Stop"}
    with Client(server.url) as client:
        hook("stop", server.folder, "--user", "ada", **stop)
        assert not any(one.id == "ended" for one in client.sessions.list(limit=100).data)  # it may go on
        os.utime(path, (time.time() - 7_200,) * 2)
        other_user = {**stop, "session_id": "third"}
        hook("stop", server.folder, "--user", "bob", **other_user)
        assert not any(one.id == "ended" for one in client.sessions.list(limit=100).data)  # it is ada's
        hook("stop", server.folder, "--user", "ada", **stop)
        assert contents(client, "ended") == [("user", "The blue door sticks.")], logged(server.folder)
        assert client.sessions.messages("ended").data[0].user_id == "ada"
        assert contents(client, "other") == [("user", "Good morning.")]


@pytest.mark.parametrize(("name", "line"), [("codex", codex), ("gemini", gemini)])
def test_transcripts_of_other_clients(server: Process, tmp_path: Path, name: str, line: Any) -> None:
    path = tmp_path / f"{name}.jsonl"
    other = "assistant" if name == "codex" else "gemini"
    path.write_text(
        '{"type": "session_meta", "payload": {"id": "x"}}\n{"sessionId": "x", "projectHash": "h"}\n'
        + line(1, "user", "<environment_context>here</environment_context>")
        + line(2, "user", f"The {name} build needs Node 24.")
        + line(3, other, "Then I use Node 24.")
    )
    asked = {"session_id": name, "transcript_path": str(path), "hook_event_name": "Stop"}
    for _ in range(2):
        hook("stop", server.folder, **asked, prompt_response="Then I use Node 24.")
    with Client(server.url) as client:
        expected = [("user", f"The {name} build needs Node 24."), ("assistant", "Then I use Node 24.")]
        assert contents(client, name) == expected, logged(server.folder)


def test_one_message_that_cannot_be_kept_stops_no_other(server: Process, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_text(claude(21, "user", "x" * ((1 << 20) + 1)) + claude(22, "user", "A short one."))
    hook("stop", server.folder, session_id="long", transcript_path=str(path), hook_event_name="Stop")
    with Client(server.url) as client:
        assert contents(client, "long") == [("user", "A short one.")]
    assert "000000000021: the server answered 4" in logged(server.folder)


@pytest.mark.slow
def test_without_a_server_a_prompt_is_told_nothing_and_a_stop_opens_the_folder(tmp_path: Path) -> None:
    folder, path = tmp_path / "data", tmp_path / "t.jsonl"
    path.write_text(claude(1, "user", "I like rye bread."))
    asked: dict[str, Any] = {"session_id": "one", "transcript_path": str(path)}
    assert hook("prompt", folder, **asked, hook_event_name="UserPromptSubmit", prompt="Bread?") is None
    assert not folder.exists()
    hook("stop", folder, "--user", "ada", *SET, **asked, hook_event_name="Stop")
    with closing(sqlite3.connect(folder / DATABASE)) as rows:
        page = rows.execute("SELECT session_id, user_id, content FROM messages").fetchall()
    assert page == [("one", "ada", "I like rye bread.")]
    assert logged(folder) == ""
    left = json.loads((folder / LOCK).read_text())
    (folder / LOCK).write_text(
        json.dumps(left | {"url": "http://127.0.0.1:9"})
    )  # of a process that has ended
    assert hook("prompt", folder, **asked, hook_event_name="UserPromptSubmit", prompt="Bread?") is None
    assert "Connection" not in logged(folder)


@pytest.mark.parametrize(("event", "words"), [("promt", ()), ("prompt", ("--usr", "ada"))])
def test_what_is_misspelt_is_in_the_log_of_the_folder(
    tmp_path: Path, event: str, words: tuple[str, ...]
) -> None:
    assert hook(event, tmp_path, *words, prompt="Bread?") is None
    assert f"'{words[0] if words else event}' is no option or event" in logged(tmp_path)


def test_whatever_fails_the_prompt_passes(server: Process, tmp_path: Path) -> None:
    folder = server.folder
    for words, given, says in (
        (["prompt", "--data", str(folder)], b"no json", "JSONDecodeError"),
        (["prompt", "--data", str(folder)], b"[]", "prompt: TypeError: the input of a hook is a JSON object"),
        (["stop", "--data", str(folder)], b"[]", "stop: TypeError: the input of a hook is a JSON object"),
        (
            ["stop", "--data", str(folder)],
            b'{"session_id": "a", "transcript_path": "/none"}',
            "stop: there is no transcript at /none",
        ),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "memoranda", "hook", *words], input=given, capture_output=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert says in logged(folder).splitlines()[-1]
    wrong = [sys.executable, "-m", "memoranda", "hook", "prompts", "--colour"]
    done = subprocess.run(wrong, input=b"{}", capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_server_that_does_not_answer_holds_no_prompt(tmp_path: Path) -> None:
    asked = {"session_id": "slow", "hook_event_name": "UserPromptSubmit", "prompt": "Which tea?"}
    with socket.create_server(("127.0.0.1", 0)) as silent, (tmp_path / LOCK).open("w+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        lock.write(json.dumps({"pid": os.getpid(), "url": url}))
        lock.flush()
        assert hook("prompt", tmp_path, **asked) is None
    assert "prompt: no answer in time" in logged(tmp_path).splitlines()[-1]


def test_a_prompt_imports_little(server: Process, tmp_path: Path) -> None:
    look = "import sys; sys.argv[1:] = {words!r}; from memoranda.cli import main\n"
    look += "from memoranda.cli.hooks.main import LIMITS; LIMITS['prompt'] = 60\n"  # at its limit it would list nothing
    look += "try: main()\nfinally: print(*{{m.split('.')[0] for m in sys.modules}}, file=sys.stderr)"
    words = ["hook", "prompt", "--data", str(server.folder)]
    given = json.dumps({"session_id": "i", "prompt": "Tea?", "hook_event_name": "UserPromptSubmit"}).encode()
    done = subprocess.run(
        [sys.executable, "-c", look.format(words=words)], input=given, capture_output=True, check=True
    )
    heavy = {"typer", "rich", "click", "httpx", "msgspec", "numpy", "asyncio", "yaml"}
    loaded = set(done.stderr.decode().split())
    assert "memoranda" in loaded
    assert not heavy & loaded


def test_the_log_and_the_positions_are_bounded(tmp_path: Path) -> None:
    for _ in range(700):
        log(str(tmp_path), "prompt", "x" * 2_000)
    folder = tmp_path / "hooks"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2 * (LOG_BYTES + 2_000)
    for number in range(401):
        Position(str(tmp_path), f"session {number}", "").save()
    assert len([*folder.glob("*.json")]) <= 401
    Position(str(tmp_path), "../../one more", "").save()
    assert len([*folder.iterdir()]) <= 402


def test_lines_that_are_no_messages() -> None:
    for line in (
        b"x",
        b"[]",
        b"{}",
        b'{"uuid": 1}',
        b'{"type": "response_item"}',
        b'{"type": "user", "id": 3}',
    ):
        assert message_of(line + b"\n", "s") is None
