"""The console in a browser, briefly: sign in, search by keyboard, open, archive; hostile texts; two tenants."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from support.server_process import Process

from .conftest import Seen

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


def test_keyboard_only_search_and_open(page: Seen, server: Process) -> None:
    shown = page.open("/memories")
    shown.keyboard.press("/")
    shown.keyboard.type("pruning saw")
    row = shown.locator(".vrow", has_text="pruning saw").first
    row.locator(".hit-scores").wait_for()
    assert "q=pruning+saw" in shown.url or shown.wait_for_url("**q=pruning+saw**") is None
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Enter")
    shown.locator(".detail .content-text", has_text="Bob lends the pruning saw").wait_for()
    shown.get_by_role("tab", name="Ranking").wait_for()
    shown.keyboard.press("Escape")
    shown.locator(".detail").wait_for(state="detached")


def test_archive_and_undo(page: Seen, server: Process) -> None:
    made = page.api.post("/v1/memories", json={"content": "to be archived"}).json()
    shown = page.open(f"/memories?id={made['id']}")
    shown.get_by_role("button", name="Archive").click()
    shown.locator(".detail .badge", has_text="Archived").wait_for()
    assert page.api.get(f"/v1/memories/{made['id']}").json()["archived_at"] is not None
    shown.get_by_role("button", name="Undo").click()
    shown.locator(".detail .badge", has_text="Archived").wait_for(state="detached")
    assert page.api.get(f"/v1/memories/{made['id']}").json()["archived_at"] is None


def test_hostile_texts_stay_texts(page: Seen, server: Process) -> None:
    body = {"content": HOSTILE, "tags": [HOSTILE], "source": HOSTILE, "metadata": {HOSTILE: HOSTILE}}
    made = page.api.post("/v1/memories", json=body).json()
    shown = page.open(f"/memories?id={made['id']}")
    assert HOSTILE in shown.locator(".detail .content-text").inner_text()
    assert HOSTILE in shown.locator(".detail pre").inner_text().replace('\\"', '"')
    shown = page.open("/context?q=onerror")
    assert HOSTILE in shown.locator(".pieces").inner_text()
    assert shown.evaluate("window.hacked") is None
    page.api.delete(f"/v1/memories/{made['id']}").raise_for_status()


def test_a_question_is_answered_with_quotations(page: Seen, server: Process) -> None:
    shown = page.open("/ask?q=Where+is+the+spare+key+under+the+blue+pot+by+the+garden+door%3F")
    shown.get_by_text("No language model").wait_for()
    shown.get_by_role("button", name="Ask", exact=True).click()
    shown.locator(".answer-foot", has_text="Quotations").wait_for()
    shown.locator(".source", has_text="The spare key is under the blue pot").get_by_text("Memory").wait_for()
    shown.locator(".answer-text .cite", has_text="M1").click()
    shown.locator(".detail .content-text", has_text="The spare key is under the blue pot").wait_for()


def test_a_request_and_its_cost(page: Seen, server: Process) -> None:
    made = page.api.post("/v1/responses", json={"input": HOSTILE}).raise_for_status().json()
    shown = page.open("/activity")
    shown.locator(".vrow", has_text=HOSTILE).first.locator("[data-main]").click()
    shown.locator(".detail .request-text", has_text=HOSTILE).first.wait_for()
    shown.locator(".detail .mono", has_text=made["id"]).wait_for()
    shown = page.open("/admin?part=limits")
    shown.locator(".meter", has_text="Vector stores").get_by_text("of 1,000").wait_for()
    assert shown.evaluate("window.hacked") is None


def test_sign_in_and_out_with_two_tenants(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.expects(401)
    page.page.goto(f"{guarded.url}/console/memories")
    page.page.get_by_label("Key").fill("wrong")
    page.page.get_by_role("button", name="Sign in").click()
    page.page.get_by_text("this key is not known here").wait_for()
    page.sign_in("key-of-ops")  # tenant default, which has nothing
    page.page.get_by_text("Nothing is remembered yet").wait_for()
    page.page.get_by_role("button", name="Sign out").click()
    page.page.get_by_label("Key").wait_for()
    page.sign_in("key-of-acme")
    page.page.locator(".vrow", has_text="Mara is allergic to bees.").wait_for()
    assert page.page.evaluate("document.cookie") == ""
    assert "key-of" not in page.page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")


def test_the_command_finds_the_server(server: Process) -> None:
    words = [sys.executable, "-m", "memoranda", "console", "--no-browser", "--data", str(server.folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{server.url}/console\n"), done.stderr
