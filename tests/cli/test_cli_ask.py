"""`memoranda ask`: answers with their sources, streamed, with a scripted model and without one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.providers.chat.scripted_app import ScriptedApp
from support.chat_server import playing
from support.pdf_files import page, pdf_of

KETTLE = "# Kettles\n\nThe kettle holds one litre and a half. It is switched off when the water boils.\n"
SEARCH = {"calls": [{"name": "file_search", "arguments": {"query": "How much does the kettle hold?"}}]}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedApp]:
    """The language model of the commands: it says what a test adds to `play`."""
    with playing([]) as (url, app):
        monkeypatch.setenv("MEMORANDA_MODEL__URL", url)
        monkeypatch.setenv("MEMORANDA_MODEL__NAME", "scripted")
        monkeypatch.setenv("MEMORANDA_RESPONSES__FILE_MIN_SCORE", "0")
        monkeypatch.setenv("MEMORANDA_RESPONSES__MEMORY_MIN_SCORE", "0")
        yield app


def test_without_a_model_the_answer_is_quoted(run: Any) -> None:
    added = run.json("add", "The spare key is under the blue pot.")
    shown = run("ask", "Where is the spare key?")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("The spare key is under the blue pot.")
    assert f"\nSources\n[m1]  {added['memory']['id']}  note  " in shown.stdout
    assert "quoted from what was found: no language model is configured" in shown.stderr
    told = run.json("ask", "Where is the spare key?")
    assert told["answered_by"] == "extractive"
    assert [one["memory"]["content"] for one in told["memories"]] == ["The spare key is under the blue pot."]
    assert {"text", "citations", "evidence", "degraded", "extensions"} <= told.keys()
    assert run("ask", "Where is the spare key?", "--no-memory").stdout.startswith("I have nothing to quote")


def test_without_options_every_memory_answers(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORANDA_RESPONSES__MEMORY_MIN_SCORE", "0")
    run.json("add", "Tim lives in Hamburg.", "--user", "tim")
    run.json("sessions", "add", "talk", "Tim lives in Altona.", "--user", "tim")
    shown = run("ask", "Where does Tim live?")
    assert shown.exit_code == 0, shown.stderr
    assert "Hamburg" in shown.stdout
    used = {one["memory"]["content"] for one in run.json("ask", "Where does Tim live?")["memories"]}
    assert used == {"Tim lives in Hamburg.", "Tim lives in Altona."}
    assert "Hamburg" in run("ask", "Where does Tim live?", "--user", "tim").stdout
    narrowed = ("--user", "bob"), ("--channel", "team"), ("--session", "other"), ("--scope", "global")
    for narrower in narrowed:
        answer = run("ask", "Where does Tim live?", *narrower).stdout
        assert "Hamburg" not in answer, narrower


def test_a_quote_of_a_message_names_its_speaker_and_day(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORANDA_RESPONSES__MEMORY_MIN_SCORE", "0")
    where = ("--speaker", "Priya", "--user", "priya", "--occurred-at", "2026-10-13T09:00:00Z")
    id_ = run.json("sessions", "add", "friends", "My sister lives in Toronto.", *where)["message"]["id"]
    shown = run("ask", "Who has a sister in Toronto?", "--user", "priya").stdout
    assert "My sister lives in Toronto. (memory: Priya, 13 October 2026)\n" in shown
    line = f"{id_}  message  2026-10-13  Priya: My sister lives in Toronto."
    assert f"\nSources\n[m1]  {line}\n" in shown
    assert line in run("list").stdout


def test_sources_are_the_memories_that_the_answer_quotes(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORANDA_RESPONSES__MEMORY_MIN_SCORE", "0")
    run.json("add", "The spare key is under the blue pot.")
    run.json("add", "The kettle in the kitchen is red.")
    shown = run("ask", "Where is the spare key?").stdout
    assert shown.partition("\nSources\n")[2].count("\n") == 1
    assert "Given, not cited" not in shown
    answer = run.json("ask", "Where is the spare key?")
    assert {one["memory"]["content"]: one["cited"] for one in answer["memories"]} == {
        "The spare key is under the blue pot.": True,
        "The kettle in the kitchen is red.": False,
    }


def test_memories_that_the_answer_does_not_quote_are_listed_as_given(
    run: Any, model: ScriptedApp, write: Callable[[str, str], Path]
) -> None:
    write("docs/kettles.md", KETTLE)
    run.json("index", "docs")
    added = run.json("add", "The kettle was a gift.")["memory"]["id"]
    model.play.add({"after": "", "text": "It holds a litre and a half [1].", "repeat": True})
    model.play.add({**SEARCH, "repeat": True})
    shown = run("ask", "How much does the kettle hold?").stdout
    assert f"\nSources\n[1]  docs/kettles.md  Kettles\n\nGiven, not cited\n[m1]  {added}  note  " in shown
    shown = run("ask", "How much does the kettle hold?", "--no-memory").stdout
    assert "Given, not cited" not in shown


def test_words_of_a_model_in_parentheses_cite_no_memory(run: Any, model: ScriptedApp) -> None:
    run.json("add", "The kettle was a gift.")
    model.play.add({"when": "kettle", "text": "The kettle (memory: note) is red.", "repeat": True})
    (given,) = run.json("ask", "Who gave me the kettle?")["memories"]
    assert given["cited"] is False


def test_an_answer_names_file_and_heading_of_each_citation(
    run: Any, model: ScriptedApp, write: Callable[[str, str], Path]
) -> None:
    write("docs/kettles.md", KETTLE)
    run.json("index", "docs")
    model.play.add({"after": "", "text": "It holds a litre and a half [1].", "repeat": True})
    model.play.add({**SEARCH, "repeat": True})
    shown = run("ask", "How much does the kettle hold?", "--store", "documents")
    assert shown.stdout == ("It holds a litre and a half [1].\n\nSources\n[1]  docs/kettles.md  Kettles\n"), (
        shown.stderr
    )
    told = run.json("ask", "How much does the kettle hold?")
    (citation,) = told["citations"]
    assert (citation["number"], citation["filename"], citation["heading"]) == (1, "kettles.md", "Kettles")
    assert [one["text"] for one in citation["annotations"]] == ["[1]"]
    assert told["answered_by"] != "extractive"


def test_a_citation_names_all_pages_of_its_passage(run: Any, tmp_path: Path) -> None:
    pages = [page(["The museum opens on Mondays."]), page(["The museum closes at five on Tuesdays."])]
    (tmp_path / "museum.pdf").write_bytes(pdf_of(pages))
    run.json("index", str(tmp_path / "museum.pdf"))
    ask = ("ask", "When does the museum close on Tuesdays?", "--set", "responses.file_min_score=0")
    (line,) = [
        line for line in run(*ask, "--store", "documents").stdout.splitlines() if line.startswith("[1]")
    ]
    assert line.endswith("museum.pdf  pages 1-2")
    (citation,) = run.json(*ask)["citations"]
    assert (citation["page"], citation["last_page"]) == (1, 2)


def test_a_session_goes_on_and_keeps_the_answer(run: Any, model: ScriptedApp) -> None:
    model.play.add({"when": "kettle", "text": "Red."})
    model.play.add({"when": "pot", "text": "Blue."})
    assert run("ask", "What colour is the kettle?", "--session", "s1").stdout == "Red.\n"
    assert run("ask", "And the pot?", "--session", "s1").stdout.startswith("Blue.\n")
    said = [one["content"] for one in model.received[-1].body["messages"] if one["role"] != "system"]
    assert said == ["What colour is the kettle?", "Red.", "And the pot?"]
    assert "What colour is the kettle?" in run("export").stdout
    run("ask", "What colour is the cup?")
    assert "What colour is the cup?" not in run("export").stdout


@pytest.mark.usefixtures("empty_folder")
def test_a_model_that_fails_ends_with_the_reason(run: Any, model: ScriptedApp) -> None:
    model.play.add({"status": 400, "message": "no such thing", "repeat": True})
    failed = run("ask", "What colour is the kettle?")
    assert failed.exit_code == 1
    assert failed.stdout == ""
    assert failed.stderr.startswith("memoranda: ")
    assert "no such thing" in failed.stderr
    assert failed.stderr.count("\n") == 1


@pytest.mark.usefixtures("empty_folder")
def test_scopes_and_stores_that_are_wrong(run: Any) -> None:
    assert "leave one out" in run("ask", "x", "--scope", "user:a", "--user", "b").stderr
    assert "--scope: agent is not one here" in run("ask", "x", "--scope", "agent:a").stderr
    assert "no vector store is named 'nope'" in run("ask", "x", "--store", "nope").stderr


@pytest.mark.slow
def test_through_a_server(served: Any) -> None:
    served.json("add", "The spare key is under the blue pot.", "--user", "mara")
    told = served.json("ask", "Where is the spare key?", "--user", "mara")
    assert told["text"].startswith("The spare key is under the blue pot.")
    assert [one["memory"]["user_id"] for one in told["memories"]] == ["mara"]


@pytest.mark.slow
@pytest.mark.usefixtures("empty_folder")
def test_text_arrives_as_it_is_written_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with playing([{"text": ["Red", " as", " rust."], "pause_at": 2}]) as (url, _):
        own = {"EMBEDDER__URL": "hash:64", "MODEL__URL": url, "MODEL__NAME": "scripted"}
        environment = {**os.environ, **{f"MEMORANDA_{name}": value for name, value in own.items()}}
        words = [sys.executable, "-m", "memoranda", "ask", "What colour is it?"]
        with subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read(6) == b"Red as"  # while the model waits with the rest
            process.send_signal(signal.SIGINT)
            assert b"Traceback" not in process.stderr.read()
            assert process.stdout.read() == b"\n"
        assert process.returncode == 130
