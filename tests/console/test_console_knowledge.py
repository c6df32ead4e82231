"""The page Knowledge: uploads, failures, documents, search, and stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.console import BOOK, PHONE, index
from support.pdf_files import page as content
from support.pdf_files import pdf_of
from support.server_process import Process
from support.waiting import until

from .conftest import Seen
from .test_console_pages import WIDE

pytestmark = pytest.mark.slow
HOSTILE = "<img src=x onerror=window.hacked=1>"
DROP = """([name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    for (const type of ["dragenter", "dragover", "drop"])
        document.querySelector(".page.split").dispatchEvent(
            new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
}"""


@pytest.fixture
def store(page: Seen) -> str:
    """A new store's id."""
    made: str = page.api.post("/v1/vector_stores", json={"name": "Books"}).json()["id"]
    return made


def in_progress(http: httpx.Client, store: str) -> int:
    count: int = http.get(f"/v1/vector_stores/{store}").json()["file_counts"]["in_progress"]
    return count


def row(shown: Any, name: str) -> Any:
    return shown.locator(".memory.file", has_text=name)


def test_upload_with_progress_a_failure_and_its_reason(page: Seen, store: str, tmp_path: Path) -> None:
    (tmp_path / "garden.md").write_text(BOOK, "utf-8")
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.4 broken")
    shown = page.open(f"/knowledge?store={store}")
    shown.get_by_text("No files yet").wait_for()
    shown.get_by_label("Upload files").first.set_input_files([tmp_path / "garden.md", tmp_path / "scan.pdf"])
    uploads = shown.locator(".uploads")
    uploads.get_by_text("Indexed").wait_for()
    uploads.locator(".upload", has_text="scan.pdf").get_by_text("Failed").wait_for()
    shown.get_by_text("2 of 2 done").wait_for()
    row(shown, "garden.md").get_by_text("1 chunk").wait_for()
    assert "cannot be opened" in row(shown, "scan.pdf").locator(".reason").inner_text()
    shown.get_by_role("button", name="Clear finished").click()
    uploads.wait_for(state="detached")
    row(shown, "scan.pdf").get_by_role("button", name="Try again").click()
    row(shown, "scan.pdf").locator(".reason").wait_for()
    row(shown, "scan.pdf").get_by_role("button", name="Remove").click()
    shown.locator("dialog").get_by_role("button", name="Delete", exact=True).click()
    row(shown, "scan.pdf").wait_for(state="detached")
    left = page.api.get(f"/v1/vector_stores/{store}/files").json()["data"]
    assert [(one["filename"], one["status"]) for one in left] == [("garden.md", "completed")]


@pytest.mark.parametrize("status", ["", "failed"])
def test_a_file_that_fails_between_two_answers_shows_its_reason(page: Seen, store: str, status: str) -> None:
    """Until the counts are answered the file is in progress, and then it has failed."""
    index(page.api, store, {"scan.pdf": b"%PDF-1.4 broken"})
    shown = page.open(f"/knowledge?store={store}&status={status}")
    row(shown, "scan.pdf").locator(".reason").wait_for()
    counted: list[Any] = []

    def count(route: Any) -> None:
        until(lambda: not in_progress(page.api, store), "the file has failed")
        route.fulfill(response=route.fetch())
        counted.append(route)

    def files(route: Any) -> None:
        if route.request.method == "POST" or counted:
            route.fallback()
            return
        body = page.api.get(route.request.url).json()
        rows = [{**one, "status": "in_progress", "last_error": None} for one in body["data"] if not status]
        route.fulfill(json={**body, "data": rows})

    shown.route(f"**/v1/vector_stores/{store}", count)
    shown.route(f"**/v1/vector_stores/{store}/files*", files)
    with shown.expect_response(lambda one: "/files?" in one.url):
        row(shown, "scan.pdf").get_by_role("button", name="Try again").click()
    until(lambda: shown.wait_for_timeout(50) or counted, "the files are counted")
    row(shown, "scan.pdf").locator(".reason").wait_for(timeout=20_000)


def test_an_answer_about_the_attempt_before_is_ignored(page: Seen, store: str) -> None:
    shown = page.open(f"/knowledge?store={store}")
    attempts: list[Any] = []
    looks: list[tuple[Any, Any]] = []
    again: list[Any] = []

    def one_file(route: Any) -> None:
        body = page.api.get(route.request.url).json()
        if body["filename"] == "slow.txt":
            route.fulfill(json={**body, "status": "in_progress"})
        elif again:
            route.fulfill(json={**body, "status": "completed", "last_error": None})
        elif attempts:
            looks.append((route, body))
        else:
            route.fallback()

    shown.route(f"**/v1/vector_stores/{store}/files/*", one_file)
    for name in ("slow.txt", "scan.pdf"):
        shown.evaluate(DROP, [name, "%PDF-1.4 broken"])
    upload = shown.locator(".upload", has_text="scan.pdf")
    upload.get_by_text("Failed").wait_for()
    shown.route(
        f"**/v1/vector_stores/{store}/files",
        lambda route: attempts.append(route) if route.request.method == "POST" else route.fallback(),
    )
    upload.get_by_role("button", name="Try again").click()
    until(lambda: shown.wait_for_timeout(20) or looks, "the page asks for the file")
    assert looks[0][1]["status"] == "failed"
    again.append(True)
    with shown.expect_response(lambda one: one.request.method == "POST"):
        attempts[0].continue_()
    looks[0][0].fulfill(json=looks[0][1])
    upload.get_by_text("Indexed").wait_for(timeout=20_000)


def test_files_are_fetched_again_after_an_answer_under_way(page: Seen, store: str) -> None:
    index(page.api, store, {"first.pdf": b"%PDF-1.4 broken", "second.pdf": b"%PDF-1.4 broken"})
    late: list[tuple[Any, Any]] = []

    def files(route: Any) -> None:
        if route.request.method != "GET" or late:
            route.fallback()
        else:
            late.append((route, route.fetch()))

    shown = page.open(f"/knowledge?store={store}")
    row(shown, "second.pdf").locator(".reason").wait_for()
    shown.route(f"**/v1/vector_stores/{store}/files*", files)
    row(shown, "first.pdf").get_by_role("button", name="Try again").click()
    until(lambda: shown.wait_for_timeout(20) or late, "the files are asked for")
    row(shown, "second.pdf").get_by_role("button", name="Remove").click()
    with shown.expect_response(lambda one: one.url.endswith(f"/v1/vector_stores/{store}")):
        shown.locator("dialog").get_by_role("button", name="Delete", exact=True).click()
    shown.wait_for_timeout(100)
    late[0][0].fulfill(response=late[0][1])
    row(shown, "second.pdf").wait_for(state="detached", timeout=20_000)


def test_a_dropped_file_and_a_folder(page: Seen, store: str, tmp_path: Path) -> None:
    (tmp_path / "notes/deep").mkdir(parents=True)
    for i in range(5):
        (tmp_path / f"notes/deep/{i}.txt").write_text(f"note {i}", "utf-8")
    shown = page.open(f"/knowledge?store={store}")
    shown.evaluate(DROP, ["dropped.txt", "The long saw hangs in the shed."])
    shown.get_by_label("Upload folder").first.set_input_files(tmp_path / "notes")
    shown.get_by_text("6 of 6 done").wait_for()
    files = page.api.get(f"/v1/vector_stores/{store}/files").json()["data"]
    paths = {one["attributes"].get("path", one["filename"]) for one in files}
    assert paths == {"dropped.txt", *(f"notes/deep/{i}.txt" for i in range(5))}


def test_a_refused_upload_can_be_sent_again(page: Seen, store: str) -> None:
    page.expects(507)
    refusal = json.dumps(
        {"error": {"message": "the quota is used up", "param": None, "code": "quota_exceeded"}}
    )
    shown = page.open(f"/knowledge?store={store}")
    shown.route(
        "**/files",
        lambda route: (
            route.fulfill(status=507, body=refusal) if route.request.method == "POST" else route.fallback()
        ),
    )
    shown.evaluate(DROP, ["notes.txt", "one"])
    shown.locator(".upload").get_by_text("the quota is used up").wait_for()
    shown.unroute("**/files")
    shown.locator(".upload").get_by_role("button", name="Try again").click()
    shown.get_by_text("1 of 1 done").wait_for()
    row(shown, "notes.txt").get_by_text("Indexed").wait_for()


def test_search_opens_the_document_at_the_passage(page: Seen, store: str) -> None:
    words = " ".join(f"word{n}" for n in range(900))
    text = f"😀 {words}\n\nThe pump is drained in November.\n\n{words}"
    index(page.api, store, {"long.txt": text.encode(), "other.txt": b"Nothing of that kind."})
    shown = page.open(f"/knowledge?store={store}")
    shown.keyboard.press("/")
    shown.keyboard.type("pump drained November")
    hit = shown.locator(".hit", has_text="The pump is drained").first
    hit.wait_for()
    assert hit.locator("mark", has_text="November").count() == 1
    assert hit.locator(".score").count() == 2
    hit.get_by_role("link").focus()
    shown.keyboard.press("Enter")
    mark = shown.locator(".document-text mark")
    mark.wait_for()
    assert "The pump is drained in November." in mark.inner_text()
    assert mark.evaluate(
        "e => e.getBoundingClientRect().top < innerHeight && e.parentElement.textContent.length > 9000"
    )
    address = shown.url
    assert "start=" in address
    assert "q=pump" in address
    shown.keyboard.press("Escape")
    mark.wait_for(state="detached")
    page.open(address.split("/console")[1])
    mark.wait_for()
    shown.get_by_role("tab", name="Details").click()
    shown.locator(".pairs", has_text="Chunks").wait_for()


def test_create_rename_and_delete_a_store(page: Seen) -> None:
    shown = page.open("/knowledge")
    shown.get_by_role("button", name="Create store").first.click()
    shown.get_by_label("Name", exact=True).fill("Manuals")
    shown.keyboard.press("Enter")
    shown.get_by_role("heading", name="Manuals").wait_for()
    shown.get_by_role("button", name="Rename").click()
    shown.get_by_label("Name", exact=True).fill("Old manuals")
    shown.get_by_role("button", name="Save").click()
    shown.get_by_role("heading", name="Old manuals").wait_for()
    shown.get_by_role("button", name="Delete this store?").click()
    shown.locator("dialog").get_by_role("button", name="Delete").click()
    shown.get_by_role("heading", name="Knowledge").wait_for()
    assert "Old manuals" not in [one["name"] for one in page.api.get("/v1/vector_stores").json()["data"]]


def test_hostile_names_and_documents_stay_texts(page: Seen) -> None:
    store = page.api.post("/v1/vector_stores", json={"name": HOSTILE}).json()["id"]
    name = f"{HOSTILE}.txt"
    index(page.api, store, {name: f"<script>window.hacked=1</script>{HOSTILE} onerror".encode()})
    shown = page.open("/knowledge")
    assert HOSTILE in shown.locator(".vlist").inner_text()
    shown = page.open(f"/knowledge?store={store}")
    row(shown, HOSTILE).get_by_role("link").click()
    shown.locator(".document-text", has_text=HOSTILE).wait_for()
    shown = page.open(f"/knowledge?store={store}&q=onerror")
    shown.locator(".hit", has_text=HOSTILE).wait_for()
    assert shown.evaluate("window.hacked") is None
    page.api.delete(f"/v1/vector_stores/{store}").raise_for_status()


@pytest.fixture(scope="module")
def books(server: Process) -> Iterator[str]:
    """A store with a document and one that failed."""

    with httpx.Client(base_url=server.url, timeout=60) as http:
        store = http.post("/v1/vector_stores", json={"name": "Garden"}).json()["id"]
        index(http, store, {"garden.md": BOOK.encode(), "scan.pdf": b"%PDF-1.4 broken"})
        yield store


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rules_of_accessibility(
    see: Callable[..., Seen], server: Process, books: str, axe: Callable[[Any], list[str]], theme: str
) -> None:
    page = see(server.url, color_scheme=theme, reduced_motion="reduce")
    shown = page.open(f"/knowledge?store={books}")
    assert axe(shown) == []
    shown.evaluate(DROP, [f"{theme}.txt", "one"])
    shown.get_by_text("1 of 1 done").wait_for()
    assert axe(shown) == []
    row(shown, f"{theme}.txt").get_by_role("button", name="Remove").click()
    assert axe(shown) == []
    shown = page.open(f"/knowledge?store={books}&q=bees")
    shown.locator(".hit").first.get_by_role("link").click()
    shown.locator(".document-text").wait_for()
    assert axe(shown) == []


def test_a_phone_needs_no_sideways_scrolling(see: Callable[..., Seen], server: Process, books: str) -> None:
    page = see(server.url, viewport=PHONE)
    for query in (f"?store={books}", f"?store={books}&q=bees", f"?store={books}&status=failed"):
        shown = page.open(f"/knowledge{query}")
        assert shown.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        assert shown.evaluate(WIDE) == []


def test_a_reader_and_a_stranger(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.expects(401, 403, 404)
    page.sign_in("key-of-viewer")
    shown = page.open("/knowledge")
    shown.get_by_role("button", name="Create store").first.click()
    shown.get_by_label("Name", exact=True).fill("x")
    shown.locator("dialog").get_by_role("button", name="Create store").click()
    shown.locator("dialog .wrong").wait_for()
    stores = page.api.get("/v1/vector_stores", headers={"authorization": "Bearer key-of-acme"}).json()["data"]
    other = see(guarded.url)
    other.expects(401, 404)
    other.sign_in("key-of-ops")  # of another tenant
    other.open(f"/knowledge?store={stores[0]['id']}").get_by_text("Not found").wait_for()


def test_the_chunks_of_a_document(page: Seen, store: str) -> None:
    page.api.post(
        f"/v1/vector_stores/{store}",
        json={"chunking_strategy": {"type": "recursive", "chunk_size": 24, "chunk_overlap": 0}},
    ).raise_for_status()
    file = index(page.api, store, {"garden.md": BOOK.encode(), HOSTILE: HOSTILE.encode()})["garden.md"]
    chunks = page.api.get(f"/v1/vector_stores/{store}/files/{file}/chunks").json()["data"]
    assert len(chunks) > 2
    shown = page.open(f"/knowledge?store={store}&file={file}")
    shown.get_by_role("tab", name="Chunks").click()
    shown.locator(".piece").nth(len(chunks) - 1).wait_for()
    assert shown.locator(".piece .piece-text").all_inner_texts() == [one["content"] for one in chunks]
    assert f"{chunks[1]['tokens']} tokens" in shown.locator(".piece").nth(1).inner_text()
    shown.locator(".piece").nth(1).get_by_role("link", name="Show in the text").click()
    mark = shown.locator(".document-text mark")
    mark.wait_for()
    assert mark.inner_text().strip() == chunks[1]["content"].strip()


def test_pages_of_a_pdf_are_images(page: Seen, store: str) -> None:
    pages = [f"Part {n} of the house rules. The rule is: keep door {n} closed." for n in range(1, 4)]
    (file,) = index(page.api, store, {"rules.pdf": pdf_of([content([text]) for text in pages])}).values()
    shown = page.open(f"/knowledge?store={store}&q=keep+door+2+closed")
    shown.locator(".hit").first.locator("a").click()
    shown.locator(".page-image img").wait_for()
    place = shown.get_by_role("status").filter(has_text="of 3")
    assert place.inner_text() == "Page 1 of 3"  # where the passage, which is all of the file, begins
    shown.get_by_role("button", name="Next").click()
    shown.get_by_text("Page 2 of 3").wait_for()
    assert "page=2" in shown.url
    shown.get_by_role("tab", name="Chunks").click()
    shown.get_by_role("link", name="Show on the page").first.click()
    shown.get_by_text("Page 1 of 3").wait_for()
    shown.get_by_role("tab", name="Text").click()
    shown.locator(".document-text mark").first.wait_for()
    page.expects(400)
    shown = page.open(f"/knowledge?store={store}&file={file}&page=9")
    shown.get_by_text("must be 1 to 3, the pages of rules.pdf, not 9").wait_for()
    phone = page.open(f"/knowledge?store={store}&file={file}&page=1", width=375)
    phone.locator(".page-image img").wait_for()
    assert phone.evaluate(WIDE) == []


def test_page_buttons_keep_the_focus_at_both_ends(page: Seen, store: str) -> None:
    (file,) = index(page.api, store, {"two.pdf": pdf_of([content(["One."]), content(["Two."])])}).values()
    shown = page.open(f"/knowledge?store={store}&file={file}&page=1")
    names = {1: "Previous", 2: "Next"}
    buttons = {number: shown.get_by_role("button", name=name) for number, name in names.items()}
    shown.get_by_text("Page 1 of 2").wait_for()
    buttons[2].focus()
    for number in (2, 1):
        shown.keyboard.press("Enter")
        shown.get_by_text(f"Page {number} of 2").wait_for()
        assert shown.evaluate("document.activeElement.textContent.trim()") == names[number]
        assert buttons[number].is_disabled()
        shown.keyboard.press("Enter")  # there is no further page
        assert f"page={number}" in shown.url
        shown.keyboard.press("Shift+Tab" if number == 2 else "Tab")
        assert shown.evaluate("document.activeElement.textContent.trim()") == names[3 - number]
