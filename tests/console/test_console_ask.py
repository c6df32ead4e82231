"""The page Ask: streamed answers, citations, conversations, and answers without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.console import BOOK, PHONE, fill, index
from support.pdf_files import page, pdf_of
from support.server_process import Process, Stage, staged
from support.waiting import until

from .conftest import Seen
from .test_console_pages import WIDE

pytestmark = pytest.mark.slow
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
NAME = "<img src=x onerror=window.hacked=1>.txt"
ANSWER = "The apple tree is pruned in February, before the buds swell. [1]"

MANUAL = pdf_of([page(["This manual is for the boiler."]), page(["The boiler holds ninety litres."])])
MARKED = """async one => {
    await one.decode();
    const canvas = new OffscreenCanvas(one.naturalWidth, one.naturalHeight);
    const context = canvas.getContext("2d");
    context.drawImage(one, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    let marked = 0;
    for (let at = 0; at < data.length; at += 4)
        marked += data[at] === 0xff && data[at + 1] === 0xe9 && data[at + 2] === 0x8a;
    return marked;
}"""
"""How many pixels of an image have the colour of marked text."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with the sample whose language model plays a script."""
    settings = {"responses": {"memory": True, "memory_min_score": 0.0, "search_first": True}}
    with staged(tmp_path_factory.mktemp("ask") / "data", **settings) as started:
        fill(started.url, conversations=False)
        yield started


@pytest.fixture
def talk(see: Callable[..., Seen], stage: Stage) -> Seen:
    return see(stage.url)


@pytest.fixture(scope="module")
def store(stage: Stage) -> str:
    """The id of a store with a document."""
    with httpx.Client(base_url=stage.url, timeout=60) as http:
        id_: str = http.get("/v1/vector_stores").json()["data"][0]["id"]
        index(http, id_, {"garden.md": BOOK.encode(), NAME: f"A hostile text: {HOSTILE}".encode()})
        return id_


def ask(shown: Any, question: str) -> None:
    shown.get_by_label("Question").fill(question)
    shown.keyboard.press("Enter")


def test_an_answer_streams_cites_and_opens_the_document(talk: Seen, stage: Stage, store: str) -> None:
    stage.says({"text": ANSWER, "pause_at": 3})
    shown = talk.open("/ask")
    shown.get_by_label("Garden books").check()
    ask(shown, "When is the apple tree pruned?")
    shown.locator(".answer-text", has_text="The apple tree").wait_for()
    until(lambda: stage.model.play.paused == 1, "the model pauses")
    assert "February" not in shown.locator(".answer-text").inner_text()
    shown.get_by_role("button", name="Stop").wait_for()
    stage.model.play.resume()
    shown.locator(".answer-text .cite").wait_for()
    shown.wait_for_url("**response=resp_*")
    assert shown.locator(".source .badge", has_text="Document").count() > 0
    assert shown.locator(".source .badge", has_text="Memory").count() > 0
    shown.locator(".answer-text .cite").click()
    mark = shown.locator(".document-text mark:not(.around)")
    mark.wait_for()
    assert mark.inner_text() == "The apple tree is pruned in February, before the buds swell."
    talk.open(shown.url.split("/console")[1])  # the address shows the same
    mark.wait_for()
    assert "When is the apple tree pruned?" in shown.locator(".turn-question").inner_text()
    shown.get_by_role("link", name="Open in Knowledge").click()
    shown.locator(".document-text mark", has_text="pruned in February").wait_for()


def test_a_citation_of_a_pdf_opens_its_page(talk: Seen, stage: Stage) -> None:
    store = talk.api.post("/v1/vector_stores", json={"name": "Manuals"}).json()["id"]
    index(talk.api, store, {"manual.pdf": MANUAL})
    stage.says("The boiler holds ninety litres. [1]")
    shown = talk.open("/ask")
    shown.get_by_label("Manuals").check()
    ask(shown, "How many litres does the boiler hold?")
    shown.locator(".answer-text .cite").click()
    image = shown.locator(".page-image img")
    image.wait_for()
    assert shown.get_by_text("Page 2 of 2").count() == 1
    assert "manual.pdf, page 2" in (image.get_attribute("alt") or "")
    until(lambda: image.evaluate("one => one.naturalWidth") == 1_000, "the image is there")
    assert image.evaluate(MARKED) > 100
    shown.get_by_role("button", name="Previous").click()
    shown.get_by_text("Page 1 of 2").wait_for()
    until(
        lambda: shown.locator(".page-image").get_attribute("aria-busy") == "false", "the other page is there"
    )
    assert image.evaluate(MARKED) == 0
    shown.get_by_role("tab", name="Text").click()
    shown.locator(".document-text mark", has_text="ninety litres").wait_for()
    shown.get_by_role("link", name="Open in Knowledge").click()
    shown.get_by_text("Page 1 of 2").wait_for()  # where the passage begins


def test_stop_and_go_on(talk: Seen, stage: Stage) -> None:
    stage.says({"text": "one two three four five", "pause_at": 2}, "The second answer.", "The third answer.")
    shown = talk.open("/ask")
    ask(shown, "Count, please.")
    shown.locator(".answer-text", has_text="one two").wait_for()
    shown.get_by_role("button", name="Stop").click()
    shown.get_by_text("Stopped").wait_for()
    stage.model.play.resume()
    until(lambda: "response=" in shown.url, "the stopped response is in the address")
    id_ = shown.url.split("response=")[1].split("&")[0]
    until(lambda: talk.api.get(f"/v1/responses/{id_}").status_code == 200, "it is stored")
    ask(shown, "What did I ask?")
    shown.locator(".turn").nth(1).get_by_text("The second answer.").wait_for()
    assert "Count, please." in str(stage.asked["messages"])
    shown.get_by_label("History").uncheck()
    shown.get_by_label("Memory").uncheck()
    ask(shown, "Alone?")
    shown.get_by_text("The third answer.").wait_for()
    assert "Count, please." not in str(stage.asked["messages"])
    assert "lavender" not in str(stage.asked["messages"]).lower()
    assert "memory=off" in shown.url
    shown.go_back()
    shown.get_by_role("link", name="New conversation").click()
    shown.get_by_text("Ask a question").wait_for()


def test_a_question_for_a_user_uses_the_memories_of_that_user(talk: Seen, stage: Stage) -> None:
    for user, place in {"tim": "Hamburg", "bob": "Bergen"}.items():
        talk.api.post("/v1/memories", json={"content": f"The boat lies in {place}.", "user_id": user})
    stage.says("There.", "Here.")
    shown = talk.open("/ask")
    ask(shown, "Where does the boat lie?")
    shown.get_by_text("There.").wait_for()
    assert "Hamburg" in str(stage.asked["messages"])
    assert "Bergen" in str(stage.asked["messages"])
    shown.get_by_role("link", name="New conversation").click()
    shown.get_by_label("User").fill("tim")
    ask(shown, "Where does the boat lie?")
    shown.get_by_text("Here.").wait_for()
    assert "Hamburg" in str(stage.asked["messages"])
    assert "Bergen" not in str(stage.asked["messages"])
    assert "user=tim" in shown.url


def test_files_that_are_not_indexed_yet_are_named_until_they_are(talk: Seen, stage: Stage) -> None:
    store = talk.api.post("/v1/vector_stores", json={"name": "Long books"}).json()["id"]
    text = "\n\n".join(f"Chapter {n}: the river has {n * 7} mills and {n} bridges." for n in range(40_000))
    talk.api.post(f"/v1/vector_stores/{store}/files", files={"file": ("long.txt", text.encode())})
    shown = talk.open("/ask")
    shown.get_by_label("Long books").check()
    pending = shown.get_by_text("1 file is being indexed: an answer now is made without it.")
    pending.wait_for()
    talk.api.delete(f"/v1/vector_stores/{store}").raise_for_status()
    pending.wait_for(state="detached")


def test_a_failed_answer_says_why_and_can_be_tried_again(talk: Seen, stage: Stage) -> None:
    stage.says({"status": 400, "message": "this model is out of order"}, "Here again.")
    shown = talk.open("/ask?memory=off")
    ask(shown, "Are you there?")
    shown.get_by_text("this model is out of order").wait_for()
    shown.get_by_role("button", name="Try again").click()
    shown.get_by_text("Here again.").wait_for()


def test_hostile_answers_and_names_stay_texts(talk: Seen, stage: Stage, store: str) -> None:
    stage.says(f"{HOSTILE} [1] [2]")
    shown = talk.open(f"/ask?store={store}&memory=off")
    ask(shown, f"{HOSTILE} hostile text")
    shown.locator(".cite").nth(1).wait_for()
    assert HOSTILE in shown.locator(".answer-text").inner_text()
    shown.locator(".source-name", has_text="onerror").click()
    shown.locator(".document-text", has_text="A hostile text").wait_for()
    assert shown.evaluate("window.hacked") is None


def test_a_reader_may_not_ask(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.expects(401, 403)
    page.sign_in("key-of-viewer")
    shown = page.open("/ask")
    ask(shown, "May I?")
    shown.get_by_text("This key may not see this").wait_for()


def test_a_conversation_of_another_is_not_found(see: Callable[..., Seen], server: Process) -> None:
    page = see(server.url)
    page.expects(404)
    page.open("/ask?response=resp_unknown").get_by_role("heading", name="Not found").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rules_of_accessibility(
    see: Callable[..., Seen], stage: Stage, store: str, axe: Callable[[Any], list[str]], theme: str
) -> None:
    stage.says(ANSWER)
    page = see(stage.url, color_scheme=theme, reduced_motion="reduce")
    shown = page.open(f"/ask?store={store}")
    ask(shown, "When is the apple tree pruned?")
    shown.locator(".cite").wait_for()
    assert axe(shown) == []
    shown.locator(".cite").click()
    shown.locator(".document-text mark").first.wait_for()
    assert axe(shown) == []
    shown.set_viewport_size(PHONE)
    assert axe(shown) == []
    assert shown.evaluate(WIDE) == []
    shown.keyboard.press("Escape")
    shown.locator(".turn").wait_for()
    assert shown.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert shown.evaluate(WIDE) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_upload_and_ask(
    see: Callable[..., Seen], server: Process, axe: Callable[[Any], list[str]], tmp_path: Path, theme: str
) -> None:
    name = f"{theme} {NAME}"
    (tmp_path / name).write_text(f"The relief valve opens at 14 bar. {HOSTILE}", "utf-8")
    page = see(server.url, color_scheme=theme, reduced_motion="reduce")
    shown = page.open("/ask?mode=uploads")
    shown.get_by_label("Upload files").set_input_files(tmp_path / name)
    document = shown.locator(".own-document", has_text=name)
    document.wait_for()
    document.locator(".badge").wait_for(state="detached")
    ask(shown, "At how many bar does the relief valve open?")
    shown.locator(".answer-text", has_text="14 bar").wait_for()
    shown.wait_for_url("**session=ask_*")
    shown.locator(".answer-text .cite", has_text="1").click()
    shown.locator(".document-text mark", has_text="The relief valve").wait_for()
    assert axe(shown) == []
    page.open(shown.url.split("/console")[1])
    shown.locator(".document-text mark", has_text="The relief valve").wait_for()
    shown.keyboard.press("Escape")
    shown.locator(".document-text").wait_for(state="detached")
    shown.locator(".answer-text", has_text="14 bar").wait_for()
    assert HOSTILE in shown.locator(".source-text").first.inner_text()
    shown.set_viewport_size(PHONE)
    assert shown.evaluate(WIDE) == []
    document.get_by_role("button", name="Remove").click()
    document.wait_for(state="detached")
    assert shown.evaluate("window.hacked") is None
