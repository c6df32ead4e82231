"""The page Evaluation: a bundled set, and questions of one's own, which stay in the tab."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.console import PHONE
from support.server_process import Process
from support.waiting import until

from .conftest import Seen
from .test_console_pages import WIDE

pytestmark = pytest.mark.slow
QUESTION = "What is Mara allergic to?"
HOSTILE = "<img src=x onerror=window.hacked=1>"


def result(shown: Any) -> Any:
    """The region of the result, once it is there."""
    shown.locator(".compared").wait_for()
    return shown.get_by_role("region", name="Result", exact=True)


def add(shown: Any, question: str, *answers: str) -> None:
    """Add a question with the memories that answer it."""
    shown.get_by_role("button", name="Add a question").click()
    dialog = shown.get_by_role("dialog")
    dialog.get_by_label("Question", exact=True).fill(question)
    dialog.get_by_role("button", name="Search").click()
    for answer in answers:
        dialog.get_by_label(answer, exact=True).first.check()
    dialog.get_by_role("button", name="Add", exact=True).click()


def ended_by_the_client(metrics: str) -> bool:
    """Return True if the server has stopped an evaluation whose client was gone."""
    return any("/v1/evaluations" in line and "499" in line for line in metrics.splitlines())


def test_a_bundled_set_is_compared_question_by_question(page: Seen) -> None:
    shown = page.open("/evaluation")
    shown.get_by_label("Questions", exact=True).select_option("assistant")
    shown.get_by_role("group", name="Configuration B").get_by_label("Second stage").select_option("off")
    shown.get_by_role("button", name="Run").click()
    shown.get_by_role("progressbar", name="The evaluation runs").wait_for()
    shown.get_by_role("button", name="Cancel").click()
    shown.get_by_text("Compare two configurations").wait_for()
    until(lambda: page.api.get("/metrics").text, "the end on the server", accept=ended_by_the_client)
    shown.get_by_role("button", name="Run").click()
    found = result(shown)
    assert "set=assistant" in shown.url
    assert "rerank%3Aoff" in shown.url.replace(":", "%3A")
    assert "36 questions" in found.inner_text()
    assert "Mode: Keyword search, Second stage: Off" in found.inner_text()
    api = page.api.post(
        "/v1/evaluations",
        json={
            "set": "assistant",
            "configurations": [{"name": "A"}, {"mode": "keyword", "rerank": "off", "name": "B"}],
        },
    ).json()
    means = [scored["scores"]["all"]["recall@1"] for scored in api["configurations"]]
    row = found.get_by_role("row", name="Right results in first place Recall@1", exact=False)
    assert [row.locator("td").nth(n).inner_text() for n in (1, 2)] == [f"{mean:.3f}" for mean in means]
    worse = [
        question["query"]
        for question in api["questions"]
        if (question["answers"][1]["rank"] or 99) > (question["answers"][0]["rank"] or 99)
    ]
    shown.get_by_role("tab", name="Worse in B").click()
    assert shown.locator(".compared-query").all_inner_texts() == worse
    shown.locator(".compared summary").first.click()
    first = next(question for question in api["questions"] if question["query"] == worse[0])
    sides = shown.locator(".compared-sides").first.get_by_role("region")
    assert [sides.nth(n).locator("li").count() for n in (0, 1)] == [len(a["ids"]) for a in first["answers"]]
    shown.reload()
    result(shown)
    assert shown.locator(".compared-query").all_inner_texts() == worse


def test_questions_about_memories_are_added_kept_and_asked(page: Seen) -> None:
    shown = page.open("/evaluation?set=own")
    assert shown.get_by_role("button", name="Run").is_disabled()
    add(shown, QUESTION, "Mara is allergic to bees.")
    shown.reload()
    shown.get_by_text(QUESTION).wait_for()
    shown.get_by_role("button", name="Run").click()
    assert "1 question" in result(shown).inner_text()
    shown.locator(".compared summary").click()
    assert "answers Mara is allergic to bees." in shown.locator(".compared-sides").inner_text().replace(
        "\n", " "
    )
    with shown.expect_download() as download:
        shown.get_by_role("button", name="Save as a file").click()
    saved = json.loads(Path(download.value.path()).read_text("utf-8"))
    assert (saved["query"], len(saved["relevant"])) == (QUESTION, 1)
    shown.get_by_role("button", name=f"Remove {QUESTION}").click()
    shown.get_by_text("No questions yet").wait_for()


def test_a_file_of_questions_is_read_or_refused(page: Seen, tmp_path: Path) -> None:
    id_ = page.api.post("/v1/memories", json={"content": f"Evaluated {HOSTILE}"}).json()["id"]
    good = tmp_path / "good.jsonl"
    good.write_text(
        "".join(json.dumps({"query": f"{HOSTILE} {n}", "relevant": [id_]}) + "\n" for n in range(2))
    )
    bad = tmp_path / "bad.jsonl"
    bad.write_text(good.read_text() + '{"query": "no ids"}\n')
    shown = page.open("/evaluation?set=own&run=1")
    shown.get_by_label("File of questions").set_input_files(bad)
    shown.get_by_text("bad.jsonl, line 3: is no JSON object").wait_for()
    shown.get_by_text("No questions yet").wait_for()
    shown.get_by_label("File of questions").set_input_files(good)
    shown.get_by_text("Compare two configurations").wait_for()  # nothing is asked before Run
    shown.get_by_role("button", name="Run").click()
    assert "2 questions" in result(shown).inner_text()
    shown.get_by_role("button", name="Remove").first.click()
    shown.get_by_text("The questions have changed since this result").wait_for()
    assert shown.locator(".compared-query").count() == 2
    shown.get_by_role("button", name="Run").click()
    shown.get_by_text("Means over 1 question", exact=True).wait_for()
    shown.locator(".compared summary").first.click()
    assert HOSTILE in shown.locator(".compared-sides").first.inner_text()
    assert shown.evaluate("window.hacked") is None
    page.api.delete(f"/v1/memories/{id_}")


def test_questions_are_those_of_whoever_is_signed_in(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.sign_in("key-of-acme")
    shown = page.open("/evaluation?set=own")
    add(shown, QUESTION, "Mara is allergic to bees.")
    shown.get_by_text("answered by 1 memory").wait_for()
    shown.get_by_role("button", name="Sign out").click()
    page.sign_in("key-of-ops")
    shown = page.open("/evaluation?set=own")
    shown.get_by_text("No questions yet").wait_for()
    assert QUESTION not in shown.content()


def test_an_address_and_a_file_that_nobody_wrote(page: Seen) -> None:
    shown = page.open(
        "/evaluation?set=own&a=dense_weight&b=constructor:x,toString,mode:magic,dense_weight:0.33"
    )
    assert shown.get_by_label("Weight of vectors").nth(1).input_value() == "0.33"
    shown.evaluate(
        "sessionStorage.setItem(`memoranda-questions ${JSON.stringify(['default', null])}`, '{\"a\": 1}\\nnull')"
    )
    shown.reload()
    shown.get_by_text("No questions yet").wait_for()


def test_a_phone_shows_all_of_a_result(see: Callable[..., Seen], server: Process) -> None:
    page = see(server.url, viewport=PHONE)
    shown = page.open("/evaluation?set=synthetic&run=1&tab=all")
    result(shown)
    shown.locator(".compared summary").first.click()
    assert shown.evaluate(WIDE) == []
