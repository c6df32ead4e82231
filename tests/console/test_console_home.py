"""The first hour: an empty server, its home page, a memory, the sample, and the command palette."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.console import PHONE, index
from support.server_process import Process

from .conftest import Seen
from .test_console_pages import WIDE

pytestmark = pytest.mark.slow


def tile(shown: Any, name: str) -> Any:
    """The tile of a kind of content on the home page."""
    return shown.locator(".tile", has=shown.locator(".tile-label", has_text=name))


def test_an_empty_server_is_filled_from_its_home_page(
    see: Callable[..., Seen], tmp_path: Path, axe: Callable[[Any], list[str]]
) -> None:
    process = Process(tmp_path / "data", {})
    try:
        page = see(process.url, reduced_motion="reduce")
        shown = page.open("/")
        assert shown.url == f"{process.url}/console/home"
        shown.get_by_text("Nothing is stored yet.").wait_for()
        assert axe(shown) == []
        shown.get_by_role("button", name="Load sample").click()
        shown.get_by_role("heading", name="The sample is loaded").wait_for()
        count = page.api.post("/v1/memories/count", json={}).json()["count"]
        assert tile(shown, "Memories").locator(".tile-number").inner_text() == str(count)
        assert tile(shown, "Documents").locator(".tile-number").inner_text() == "1"
        assert tile(shown, "Sessions").locator(".tile-number").inner_text() == "1"
        assert axe(shown) == []
        tile(shown, "Facts").get_by_role("link", name="user:mara 2").click()
        shown.get_by_text("2 of 2 facts hold").wait_for()
        shown = page.open("/home")
        shown.get_by_role("link", name="The conversation").click()
        shown.locator(".said", has_text="allergic to bees").wait_for()
        shown = page.open("/home")
        shown.get_by_role("link", name="What must not be planted").click()
        assert shown.get_by_label("Sample").is_checked()
        assert "entrance" in shown.get_by_label("Question").input_value()
        shown = page.open("/home")
        shown.get_by_role("button", name="Remove sample").click()
        shown.locator("dialog").get_by_role("button", name="Remove sample").click()
        shown.get_by_text("Nothing is stored yet.").wait_for()
        assert page.api.post("/v1/memories/count", json={"include_archived": True}).json()["count"] == 0
        assert [page.api.get(f"/v1/{one}").json()["data"] for one in ("sessions", "files")] == [[], []]
    finally:
        process.end()


def test_home_counts_what_each_key_may_see(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.expects(401)
    page.sign_in("key-of-viewer")
    shown = page.open("/home")
    assert int(tile(shown, "Memories").locator(".tile-number").inner_text()) > 20
    assert shown.get_by_role("button", name="Add memory").count() == tile(shown, "Open jobs").count() == 0
    shown.get_by_role("button", name="Sign out").click()
    page.sign_in("key-of-acme")
    shown = page.open("/home")
    tile(shown, "Open jobs").locator(".tile-main").click()
    shown.wait_for_url("**/admin?part=jobs")
    shown = page.open("/home")
    shown.get_by_text('--header "Authorization: Bearer KEY"').wait_for()
    shown.get_by_role("link", name="Off").click()
    shown.get_by_role("heading", name="The whole tenant").wait_for()


def test_a_memory_is_added(
    see: Callable[..., Seen], server: Process, axe: Callable[[Any], list[str]]
) -> None:
    page = see(server.url, viewport=PHONE, reduced_motion="reduce")
    shown = page.open("/memories")
    shown.locator(".toolbar").get_by_role("button", name="Add memory").click()
    dialog = shown.get_by_role("dialog", name="Add memory")
    assert axe(shown) == []
    assert shown.evaluate(WIDE) == []
    assert dialog.get_by_role("button", name="Add", exact=True).is_disabled()
    dialog.get_by_label("Text").fill("The gate squeaks.")
    dialog.get_by_label("Kind").select_option("fact")
    dialog.get_by_label("Whose memory").select_option("user")
    dialog.get_by_label("User id").fill("bob")
    dialog.get_by_label("Tags").fill("gate")
    dialog.get_by_label("When").fill("2026-04-01T10:30")
    dialog.get_by_role("button", name="Add", exact=True).click()
    shown.locator(".vrow", has_text="The gate squeaks.").wait_for()
    shown.get_by_role("button", name="Open").click()
    shown.locator(".detail .content-text", has_text="The gate squeaks.").wait_for()
    made = page.api.get(f"/v1/memories/{shown.url.split('id=')[1]}").json()
    assert (made["kind"], made["user_id"], made["tags"]) == ("fact", "bob", ["gate"])
    assert made["occurred_at"].startswith("2026-04-01T")
    page.api.delete(f"/v1/memories/{made['id']}").raise_for_status()


def test_the_palette_needs_the_keyboard_alone(
    see: Callable[..., Seen], server: Process, axe: Callable[[Any], list[str]]
) -> None:
    page = see(server.url, reduced_motion="reduce")
    shown = page.open("/home")
    shown.keyboard.press("Control+k")
    palette = shown.get_by_role("dialog", name="Go to a page, search, add or ask")
    field = palette.get_by_role("combobox")
    shown.keyboard.type("sess")
    assert palette.get_by_role("option", selected=True).inner_text() == "Sessions"
    shown.keyboard.press("Enter")
    shown.wait_for_url("**/console/sessions")
    shown.keyboard.press("Control+k")
    shown.keyboard.type("pruning saw")
    palette.get_by_role("option", name="Bob lends the pruning saw").wait_for()
    assert axe(shown) == []
    shown.keyboard.press("Tab")
    shown.keyboard.press("Shift+Tab")
    shown.keyboard.press("ArrowDown")
    active = field.get_attribute("aria-activedescendant")
    assert shown.locator(f"[id='{active}']").inner_text() == "Ask: pruning saw"
    for _ in range(2):
        shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Enter")
    shown.locator(".detail .content-text", has_text="Bob lends the pruning saw").wait_for()
    shown.keyboard.press("Control+k")
    shown.keyboard.type("The hose is green.")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        shown.keyboard.press(key)
    dialog = shown.get_by_role("dialog", name="Add memory")
    assert dialog.get_by_label("Text").input_value() == "The hose is green."
    shown.keyboard.press("Escape")
    shown.keyboard.press("Control+k")
    shown.keyboard.type("Where is the saw?")
    for key in ("ArrowDown", "Enter"):
        shown.keyboard.press(key)
    shown.wait_for_url("**/console/ask?q=Where+is+the+saw%3F")
    assert shown.get_by_label("Question").input_value() == "Where is the saw?"


def test_numbers_lead_to_what_they_count(page: Seen, server: Process) -> None:
    store = page.api.post("/v1/vector_stores", json={"name": "Broken"}).json()["id"]
    index(page.api, store, {"scan.pdf": b"%PDF-1.4 broken"})
    shown = page.open("/knowledge")
    shown.get_by_role("link", name="1 failed").click()
    shown.wait_for_url(f"**/knowledge?store={store}&status=failed")
    shown.locator(".vrow", has_text="scan.pdf").wait_for()
    page.api.delete(f"/v1/vector_stores/{store}").raise_for_status()
    shown = page.open("/admin")
    facts = page.api.get("/v1/memories/stats").json()["by_kind"]["fact"]
    shown.locator(".pairs > div", has_text="Fact").get_by_role("link", name=str(facts)).click()
    shown.locator(".page-head .status", has_text=f"{facts} memories").wait_for()
