"""The pages Sessions, Facts and Forget in a browser: their tasks, and hostile texts in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from support.server_process import Process
from support.waiting import until

from .conftest import Seen

pytestmark = pytest.mark.slow
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


def say(page: Seen, session: str, *texts: str, **fields: Any) -> None:
    """Let a person say something in a session of a name."""
    messages = [
        {"content": text, "occurred_at": f"2026-01-05T08:{minute:02}:00Z", **fields}
        for minute, text in enumerate(texts)
    ]
    body = {"messages": messages, "session_id": session, "extraction": False}
    page.api.post("/v1/messages", json=body).raise_for_status()


def test_a_session_with_messages_and_summary(page: Seen, server: Process) -> None:
    shown = page.open("/sessions?participant=Bo")
    assert shown.locator(".vrow").count() == 1
    shown.locator(".vrow [data-main]").focus()
    shown.keyboard.press("Enter")
    shown.locator(".said", has_text="The sink stays under the window.").wait_for()
    assert shown.locator(".said.first strong").all_inner_texts()[:2] == ["Nora", "Bo"]
    assert "we order the oak worktop" in shown.locator(".made").first.inner_text()
    shown.locator(".made", has_text="2026-W10").wait_for()
    assert "id=kitchen-plan" in shown.url
    shown.keyboard.press("Escape")
    shown.locator(".detail").wait_for(state="detached")


def test_sessions_have_titles(page: Seen, server: Process) -> None:
    shown = page.open("/sessions?channel=kitchen")
    rows = shown.locator(".vrow")
    expected = ["Carpenter, worktop, order, oak", "Nora: I moved to Berlin.", "Nora: I live in Hamburg."]
    expected.append("Nora: I live in Munich and I prefer tea over coffee.")
    until(rows.locator(".memory-text").all_inner_texts, "the titles", accept=expected.__eq__)
    asked = [one.url for one in page.requests if "/messages?" in one.url]
    assert len(asked) == len(set(asked)) == 3  # a summarized session asks for no message
    began = page.api.get("/v1/sessions/kitchen-plan").json()["started_at"]
    assert rows.first.locator(".memory-line time").get_attribute("datetime") == began
    assert rows.first.locator(".scope").inner_text() == "kitchen"
    rows.nth(1).locator("[data-main]").click()
    shown.get_by_role("heading", name="Nora: I moved to Berlin.").wait_for()


def test_facts_are_linked_with_their_session(page: Seen, server: Process) -> None:
    oldest = page.api.get("/v1/sessions", params={"channel_id": "kitchen", "order": "asc"}).json()["data"][0]
    shown = page.open(f"/sessions?id={oldest['id']}")
    shown.locator(".made", has_text="Facts from this session").locator(
        "li", has_text="Nora lives in Munich"
    ).wait_for()
    assert shown.locator(".linked .ended", has_text="Munich").count() == 1


def test_end_summarize_and_delete_a_session(page: Seen, server: Process) -> None:
    say(page, "short", "We paint the fence green.", "The fence is painted on Friday.", speaker="Bo")
    shown = page.open("/sessions?id=short")
    shown.get_by_role("button", name="End session").click()
    shown.locator("dialog").get_by_role("button", name="End session").click()
    shown.locator(".detail .badge", has_text="Closed").wait_for()
    shown.get_by_role("button", name="Summarize").click()
    shown.locator("dialog").get_by_role("button", name="Summarize").click()
    shown.locator(".detail .badge", has_text="Summarized").wait_for()
    shown.get_by_role("button", name="Delete").click()
    shown.locator("dialog").get_by_role("button", name="Delete").click()
    shown.get_by_text("The session was deleted").wait_for()
    assert page.api.get("/v1/sessions/short").status_code == 404
    shown.locator(".vrow", has_text="short").wait_for(state="detached")


def test_hostile_messages_stay_texts(page: Seen, server: Process) -> None:
    say(page, "hostile", HOSTILE, HOSTILE + " again", speaker=HOSTILE[:60], user_id="eve")
    shown = page.open("/sessions?id=hostile")
    assert HOSTILE in shown.locator(".messages").inner_text()
    assert shown.evaluate("window.hacked") is None
    page.api.delete("/v1/sessions/hostile").raise_for_status()


def fact(page: Seen, content: str, when: str, **fields: Any) -> str:
    """Write a fact; its id."""
    body = {"content": content, "kind": "fact", "occurred_at": f"{when}T09:00:00Z", **fields}
    made: str = page.api.post("/v1/memories", json=body).raise_for_status().json()["id"]
    return made


def test_a_timeline_as_of_a_day(page: Seen, server: Process) -> None:
    shown = page.open("/facts?who=user:nora&at=2024-09-01")
    row = shown.locator(".vrow", has_text="3 versions")
    row.get_by_text("Nora lives in Hamburg").wait_for()
    shown.get_by_text("2 of 4 facts hold").wait_for()
    slider = shown.get_by_role("slider")
    slider.focus()
    shown.keyboard.press("Home")
    row.get_by_text("Nora lives in Munich").wait_for()
    assert "at=2024-01-10" in shown.url
    shown.get_by_role("button", name="Today").click()
    row.get_by_text("Nora moved to Berlin").wait_for()
    assert "at=" not in shown.url
    shown.get_by_label("Topic").fill("tea")
    row.wait_for(state="detached")
    assert shown.locator(".vrow").count() == 1


def test_rows_of_facts_show_what_changed(page: Seen, server: Process) -> None:
    permit = {"invalid_at": "2025-03-01T09:00:00Z", "user_id": "nora"}
    id_ = fact(page, "Nora has a parking permit.", "2024-03-01", **permit)
    shown = page.open("/facts?who=user:nora")
    row = shown.locator(".vrow", has_text="Nora moved to Berlin.")
    assert row.locator(".lane-change").inner_text() == "Until 15 Feb 2025: Nora lives in Hamburg."
    assert row.locator(".memory-line s").count() == 0
    ended = shown.locator(".vrow", has_text="parking permit")
    assert ended.locator(".memory-text s").count() == 1
    assert ended.locator(".badge").inner_text() == "Ended 1 Mar 2025"
    quiet = shown.locator(".vrow", has_text="prefers tea")
    assert quiet.locator(".memory-meta").inner_text() == ""
    assert quiet.locator(".lane-time").inner_text() == "since 10 Jan 2024"
    shown = page.open("/facts?who=user:nora&at=2024-02-01")
    first = shown.locator(".vrow", has_text="lives in Munich")
    first.get_by_text("From 1 Jun 2024: Nora lives in Hamburg.").wait_for()
    page.api.delete(f"/v1/memories/{id_}").raise_for_status()


def test_sources_and_versions_of_a_fact(page: Seen, server: Process) -> None:
    shown = page.open("/facts?who=user:nora&q=Munich")
    shown.locator(".vrow [data-main]").focus()
    shown.keyboard.press("Enter")
    shown.locator(".timeline li", has_text="Nora lives in Munich").get_by_text("took its place").wait_for()
    shown.locator(".timeline a", has_text="Munich").click()
    shown.locator(".detail .badge", has_text="Superseded").wait_for()
    shown.locator(".quoted", has_text="I live in Munich").click()
    shown.locator(".said.marked", has_text="I live in Munich").wait_for()
    assert "/sessions?id=" in shown.url
    assert "message=" in shown.url


def test_undo_and_forget_a_fact(page: Seen, server: Process) -> None:
    oslo = fact(page, "Zoe lives in Oslo.", "2025-01-01", user_id="zoe")
    id_ = fact(page, "Zoe lives in Lima.", "2025-02-01", user_id="zoe", replaces=[oslo])
    shown = page.open(f"/facts?who=user:zoe&id={id_}")
    shown.get_by_text("1 of 2 facts hold").wait_for()
    shown.get_by_role("button", name="Confirm").click()
    shown.locator(".detail .badge", has_text="Confirmed").wait_for()
    assert shown.get_by_role("button", name="Confirm").count() == 0
    shown.get_by_role("button", name="Undo last change").click()
    shown.locator(".detail .badge", has_text="Held at no time").wait_for()
    row = shown.locator(".vrow", has_text="Zoe lives in Oslo.")
    until(row.inner_text, "the fact is current again", accept=lambda text: "since 1 Jan 2025" in text)
    assert row.locator("s, .badge").count() == 0
    shown.get_by_role("button", name="Forget").click()
    shown.locator("dialog").get_by_role("button", name="Forget").click()
    shown.get_by_text("1 of 1 fact holds").wait_for()
    assert page.api.get(f"/v1/memories/{id_}").status_code == 404


def test_hostile_facts_stay_texts(page: Seen, server: Process) -> None:
    id_ = fact(page, HOSTILE, "2025-03-01", user_id="eve", tags=[HOSTILE])
    shown = page.open(f"/facts?who=user:eve&id={id_}")
    assert HOSTILE in shown.locator(".detail .content-text").inner_text()
    assert HOSTILE in shown.locator(".vrow").inner_text()
    assert shown.evaluate("window.hacked") is None
    page.api.delete(f"/v1/memories/{id_}").raise_for_status()


def test_preview_confirm_and_receipt(page: Seen, server: Process) -> None:
    say(page, "yard", "The gate code is Kestrel 41.", "Nobody else knows it.", user_id="rob")
    fact(page, "Rob changes the code   KESTREL 41 in May.", "2025-01-01", user_id="rob", tags=["gate"])
    fact(page, "Kestrels nest in the tower.", "2025-01-01", user_id="rob")
    shown = page.open("/forget")
    assert shown.get_by_role("button", name="Preview").is_disabled()
    shown.get_by_label("Words").fill("kestrel 41")
    shown.keyboard.press("Enter")
    shown.get_by_text("2 memories").wait_for()
    assert "q=kestrel+41" in shown.url
    others = shown.locator(".result .pairs")
    assert others.inner_text().split("\n") == ["Messages of the log", "1"]
    assert sorted(shown.locator("td .kind").all_inner_texts()) == ["Fact", "Message"]
    assert page.api.get("/v1/sessions/yard").json()["message_count"] == 2
    shown.get_by_role("button", name="Erase for good").click()
    shown.locator("dialog").get_by_role("button", name="Cancel").click()
    shown.get_by_role("button", name="Erase for good").click()
    shown.locator("dialog").get_by_role("button", name="Erase for good").click()
    shown.locator(".receipt", has_text="gone_").wait_for()
    receipt = shown.locator(".receipt").inner_text()
    assert "Messages of the log" in receipt
    assert page.api.get("/v1/sessions/yard").json()["message_count"] == 1
    left = page.api.get("/v1/memories", params={"scopes": "user:rob", "kinds": "fact"}).json()["data"]
    assert [memory["content"] for memory in left] == ["Kestrels nest in the tower."]
    shown.get_by_role("button", name="Forget something else").click()
    shown.get_by_text("Name what to forget").wait_for()


def test_a_preview_counts_what_is_erased(page: Seen, server: Process) -> None:
    old = fact(page, "Kim lives in Rome.", "2025-01-01", user_id="kim")
    fact(page, "Kim lives in Bern.", "2025-02-01", user_id="kim", tags=["home"], replaces=[old])
    gone = fact(page, "Kim likes figs.", "2025-02-01", user_id="kim")
    page.api.patch(f"/v1/memories/{gone}", json={"archived": True}).raise_for_status()
    assert page.api.get(f"/v1/memories/{old}").json()["superseded_by"] is not None
    shown = page.open("/forget?user=kim")
    shown.get_by_text("3 memories").wait_for()
    shown.get_by_text("2 of them archived or superseded").wait_for()
    shown.get_by_role("button", name="Erase for good").click()
    shown.locator("dialog").get_by_role("button", name="Erase for good").click()
    row = shown.locator(".receipt .pairs > div", has_text="Memories")
    assert row.inner_text().split() == ["Memories", "3"]


def test_a_preview_finds_words_as_the_server_does(page: Seen, server: Process) -> None:
    texts = ["Straße der Ärzte", "call ann!", "planning (a+b)", "tel. 030/12-34", "ΟΔΟΣ 5", "Cafe\u0301 Lux"]
    for text in texts:
        page.api.post("/v1/memories", json={"content": text, "tags": ["words"]}).raise_for_status()
    shown = page.open("/forget")
    wanted = {"STRASSE der ärzte": 1, "Ann": 1, "a+b": 1, "030/12-34": 1, "οδος": 1, "café": 1, "plan": 0}
    for words, number in wanted.items():
        shown.goto(f"{page.url}/console/forget?tag=words&q={quote(words)}")
        shown.get_by_text("1 memory" if number else "0 memories", exact=True).wait_for()
    for words, number in wanted.items():
        erased = page.api.post("/v1/memories/forget", json={"text": words, "tags": ["words"]}).json()
        assert erased["memories"] == number, words


def test_hostile_words_stay_texts(page: Seen, server: Process) -> None:
    page.api.post("/v1/memories", json={"content": HOSTILE, "tags": ["evil"]}).raise_for_status()
    shown = page.open(f"/forget?tag=evil&q={quote(HOSTILE)}")
    assert HOSTILE in shown.locator(".examples").inner_text()
    assert shown.evaluate("window.hacked") is None
    shown.get_by_role("button", name="Erase for good").click()
    shown.locator("dialog").get_by_role("button", name="Erase for good").click()
    shown.locator(".receipt").wait_for()


def test_a_reader_may_preview_and_not_erase(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.expects(403)
    admin = {"authorization": "Bearer key-of-acme"}
    kept = {"content": "Ada keeps bees.", "user_id": "ada"}
    page.api.post("/v1/memories", json=kept, headers=admin).raise_for_status()
    page.sign_in("key-of-viewer")
    page.page.goto(f"{guarded.url}/console/forget?user=ada")
    page.page.get_by_text("1 memory", exact=True).wait_for()
    page.page.get_by_role("button", name="Erase for good").click()
    page.page.locator("dialog").get_by_role("button", name="Erase for good").click()
    page.page.locator(".toast.bad").wait_for()


def test_no_page_shows_another_tenant(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.expects(404)
    page.sign_in("key-of-ops")
    for address, says in {
        "sessions": "There are no sessions yet",
        "sessions?id=kitchen-plan": "Not found",
        "facts?who=user:nora": "No fact matches",
        "forget?user=nora": "No memory matches.",
    }.items():
        page.page.goto(f"{guarded.url}/console/{address}")
        page.page.get_by_text(says).first.wait_for()
        assert "Berlin" not in page.page.locator("main").inner_text()


@pytest.mark.parametrize("path", ["sessions", "facts", "forget?user=nora"])
def test_what_failed_can_be_tried_again(page: Seen, path: str) -> None:
    page.expects(503)
    refusal = '{"error": {"message": "rows are away", "type": "server_error", "param": null, "code": "x"}}'
    page.page.route("**/v1/**", lambda route: route.fulfill(status=503, body=refusal))
    shown = page.open(f"/{path}")
    shown.get_by_text("rows are away").wait_for()
    page.page.unroute("**/v1/**")
    shown.get_by_role("button", name="Try again").click()
    shown.locator("main .vrow, main td").first.wait_for()
