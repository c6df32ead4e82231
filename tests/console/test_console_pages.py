"""Every registered page: themes, the width of a phone, rules of accessibility; and the tasks of the first pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

import memoranda
from support.console import DESKTOP, PAGES, PHONE, QUESTIONS
from support.server_process import Process
from support.waiting import until

from .conftest import Seen

pytestmark = pytest.mark.slow
WIDE = """[...document.querySelectorAll("main *")].filter(e => getComputedStyle(e).overflowX === "visible"
    && e.scrollWidth > e.clientWidth + 1 && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.outerHTML.slice(0, 120))"""
"""The elements that stand out of the window."""

CLIPPED = """() => {
    const pen = document.createElement("canvas").getContext("2d");
    const hides = e => ["hidden", "clip"].includes(getComputedStyle(e).overflowX);
    const says = e => e.title || getComputedStyle(e).textOverflow === "ellipsis" || e.closest("[title], .hidden");
    const found = [...document.querySelectorAll("body *")].filter(e => {
        const box = e.getBoundingClientRect();
        if (!box.width || getComputedStyle(e).visibility === "hidden" || e.closest("h1") || says(e)) return false;
        if (e.matches("select, input[placeholder]:placeholder-shown")) {
            const style = getComputedStyle(e), select = e.matches("select");
            pen.font = style.font;
            const text = select ? e.selectedOptions[0]?.text ?? "" : e.placeholder;
            const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
            const room = e.clientWidth - padding - (select ? 16 : 0);
            return pen.measureText(text).width > room + 1;
        }
        if (![...e.childNodes].some(one => one.nodeType === 3 && one.data.trim())) return false;
        if (hides(e) && e.scrollWidth > e.clientWidth + 1) return true;
        for (let over = e.parentElement; over && over !== document.body; over = over.parentElement) {
            const edge = over.getBoundingClientRect();
            if (["auto", "scroll"].includes(getComputedStyle(over).overflowX)) return false;
            const beside = box.left >= edge.right || box.top >= edge.bottom || box.bottom <= edge.top;
            if (hides(over) && !says(over) && !beside && box.right > edge.right + 1) return true;
        }
        return false;
    });
    return found.map(e => `${innerWidth} ${e.outerHTML.slice(0, 120)}`);
}"""
"""The texts that are cut without an ellipsis or a title that has them whole."""

AS_INTL = """() => {
    const whole = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
    const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
    const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
    const told = (at) => {
        const seconds = (at - Date.now()) / 1000, away = Math.abs(seconds);
        if (away < 45) return "just now";
        if (away > 604800) return day.format(at);
        const [unit, size] = away >= 86400 ? ["day", 86400] : away >= 3600 ? ["hour", 3600] : ["minute", 60];
        return relative.format(Math.round(seconds / size), unit);
    };
    const times = [...document.querySelectorAll("main time")];
    if (times.length < 14) return [`only ${times.length}`];
    return times.map((one) => [one.title, one.textContent, new Date(one.dateTime)])
        .filter(([title, text, at]) => title !== whole.format(at) || text !== told(at))
        .map(([title, text, at]) => `${title} ${text} ${told(at)}`);
}"""
"""What the times of a page say that `Intl` would not."""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_rules_of_accessibility(
    see: Callable[..., Seen], server: Process, axe: Callable[[Any], list[str]], name: str, theme: str
) -> None:
    page = see(server.url, color_scheme=theme, reduced_motion="reduce")
    for address in (f"/{name}", f"/{name}{QUESTIONS.get(name, '')}"):
        page.page.set_viewport_size(DESKTOP)
        shown = page.open(address)
        assert axe(shown) == []
        for width in (DESKTOP["width"], 768, PHONE["width"]):
            shown.set_viewport_size({"width": width, "height": 812})
            shown.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert shown.evaluate(CLIPPED) == []


@pytest.mark.parametrize("name", PAGES)
def test_the_shell_names_what_a_page_loads(see: Callable[..., Seen], server: Process, name: str) -> None:
    page = see(server.url)
    page.open(f"/{name}")
    named = re.findall(r'"modulepreload" href="([^"]+)"', httpx.get(f"{server.url}/console/{name}").text)
    loaded = {one.url.removeprefix(server.url) for one in page.requests if one.url.endswith(".js")}
    assert loaded == set(named)
    assert sum(one.url.endswith("/console/session") for one in page.requests) == 1


def test_times_are_written_as_intl_writes_them(page: Seen) -> None:
    """The console writes them itself: the first use of `Intl` takes 17 ms in a new page."""
    ages = [
        -1,
        40,
        44,
        90,
        3_000,
        3_599,
        5_400,
        80_000,
        86_400,
        100_000,
        3 * 86_400,
        604_000,
        700_000,
        90_000_000,
    ]
    now = datetime.now(UTC)
    body = [
        {"content": f"Aged {age}", "occurred_at": (now - timedelta(seconds=age)).isoformat()} for age in ages
    ]
    made = page.api.post("/v1/memories/batch", json={"memories": body}).json()["data"]
    page.page.clock.set_fixed_time(now)
    shown = page.open("/memories")
    shown.locator(".vrow", has_text="Aged 3000").wait_for()
    assert shown.evaluate(AS_INTL) == []
    page.api.post("/v1/memories/forget", json={"ids": [row["id"] for row in made]}).raise_for_status()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rules_of_accessibility_of_parts(
    see: Callable[..., Seen], server: Process, guarded: Process, axe: Callable[[Any], list[str]], theme: str
) -> None:
    page = see(server.url, color_scheme=theme, reduced_motion="reduce")
    shown = page.open("/memories?q=Mara&kind=fact")
    shown.locator("[data-main]").first.click()
    shown.locator(".detail .content-text").wait_for()
    assert axe(shown) == []
    shown.get_by_role("button", name="Edit").click()
    assert axe(shown) == []
    shown = page.open("/memories")
    shown.locator(".vrow .checkbox").first.click()
    shown.get_by_role("button", name="Delete").click()
    shown.locator("dialog[open]").wait_for()
    assert axe(shown) == []
    shown = page.open("/context?q=Mara&budget=80&tab=left")
    assert axe(shown) == []
    phone = see(server.url, color_scheme=theme, viewport=PHONE, reduced_motion="reduce")
    shown = phone.open("/memories")
    shown.get_by_role("button", name="Menu").click()
    assert axe(shown) == []
    login = see(guarded.url, color_scheme=theme)
    login.page.goto(f"{guarded.url}/console")
    login.page.get_by_label("Key").wait_for()
    assert axe(login.page) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_needs_no_sideways_scrolling(see: Callable[..., Seen], server: Process, name: str) -> None:
    page = see(server.url, viewport=PHONE)
    for address in (f"/{name}", f"/{name}{QUESTIONS.get(name, '')}"):
        shown = page.open(address)
        assert shown.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        assert shown.evaluate(WIDE) == []


def test_the_navigation_of_a_phone(see: Callable[..., Seen], server: Process) -> None:
    page = see(server.url, viewport=PHONE)
    shown = page.open("/memories")
    shown.get_by_role("button", name="Menu").click()
    shown.get_by_role("link", name="Context preview").click()
    shown.wait_for_url("**/console/context")
    assert shown.locator(".sidebar.open").count() == 0


def test_a_page_loads_little(page: Seen) -> None:
    for name in PAGES:
        context = page.page.context.browser.new_context()
        fresh = context.new_page()
        sizes: list[int] = []
        fresh.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))  # noqa: B023
        fresh.goto(f"{page.url}/console/{name}", wait_until="networkidle")
        assert sum(sizes) < 150_000, name
        context.close()


def test_rows_name_the_speaker_and_the_date_of_the_order(page: Seen) -> None:
    query = {"scopes": "session:kitchen-plan", "kinds": "message"}
    memories = page.api.get("/v1/memories", params=query).json()["data"]
    said = next(memory for memory in memories if memory["metadata"].get("speaker") == "Bo")
    shown = page.open("/memories?scope=session:kitchen-plan&kind=message")
    assert shown.locator(".list-head").inner_text().split("\n") == ["Newest first", "Stored"]
    row = shown.locator(".vrow", has_text=said["content"])
    assert row.locator(".speaker").inner_text() == "Bo"
    assert row.locator(".memory-line time").get_attribute("datetime") == said["created_at"]
    assert row.locator(".memory-meta time").get_attribute("datetime") == said["occurred_at"]
    shown = page.open("/memories?scope=session:kitchen-plan&kind=message&order=asc")
    assert shown.locator(".list-head").inner_text().split("\n") == ["Oldest first", "Stored"]
    shown = page.open("/memories?q=sink+window&kind=message")
    assert shown.locator(".list-head").inner_text().split("\n") == ["Best score first", "Happened"]
    moment = row.first.locator("time")
    assert moment.get_attribute("datetime") == said["occurred_at"]
    assert "Bo" in row.first.inner_text()


def test_filters_are_in_the_address(page: Seen) -> None:
    shown = page.open("/memories?scope=channel:garden")
    assert shown.locator(".vrow").count() == 3
    shown = page.open("/memories?kind=fact&tag=garden")
    assert shown.locator(".vrow").count() == 1
    shown.get_by_role("button", name="Clear filters").click()
    shown.locator(".vrow").nth(8).wait_for()
    assert shown.url.endswith("/console/memories")


FOCUSED = "document.activeElement.id || document.activeElement.textContent.trim()"


@pytest.mark.parametrize(
    ("path", "button", "focus"),
    [
        ("/memories?tag=garden", ".filters button", "Clear filters"),
        ("/memories?tag=nothing", ".notice button", "main"),
        ("/sessions?channel=garden", ".filters button", "Clear filters"),
        ("/sessions?channel=nothing", ".notice button", "main"),
        ("/facts?at=2024-09-01", ".as-of button", "Today"),
        ("/facts?q=nothing", ".notice button", "main"),
        ("/activity?show=failed", ".notice button", "main"),
    ],
)
def test_a_cleared_filter_leaves_the_focus_on_the_page(
    page: Seen, path: str, button: str, focus: str
) -> None:
    shown = page.open(path)
    shown.locator(button, has_text=re.compile("^(Clear.*|Today|Show all requests)$")).focus()
    shown.keyboard.press("Enter")
    shown.wait_for_function(
        "names => names.every(name => !location.search.includes(name))", arg=["=nothing", "at=", "show="]
    )
    until(lambda: shown.evaluate(FOCUSED), "the focus", accept=focus.__eq__)


def test_months_are_counted_as_they_are_filtered(see: Callable[..., Seen], server: Process) -> None:
    page = see(server.url, timezone_id="America/Los_Angeles")
    for moment in ("2019-11-01T06:30:00Z", "2019-11-02T00:00:00Z", "2019-12-01T07:30:00Z"):
        page.api.post("/v1/memories", json={"content": moment, "tags": ["edge"], "occurred_at": moment})
    shown = page.open("/memories?tag=edge")
    bars = shown.get_by_role("group", name="Month")
    for month, count in (("2019-10", 1), ("2019-11", 2)):
        bars.get_by_role("button", name=f"{month} ({count})").click()
        noun = "memory" if count == 1 else "memories"
        shown.locator(".page-head .status", has_text=f"{count} {noun}").wait_for()


def test_a_map_names_its_regions(page: Seen) -> None:
    shown = page.open("/map")
    labels = shown.locator(".region")
    labels.nth(2).wait_for()
    contents = [row["content"] for row in page.api.get("/v1/memories?limit=1000").json()["data"]]
    for text in labels.locator(".region-text").all_inner_texts():
        assert any(content.startswith(text) for content in contents), text
    boxes = [one.bounding_box() or {} for one in labels.all()]
    for n, a in enumerate(boxes):
        for b in boxes[n + 1 :]:
            beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]
    name = labels.first.locator(".region-text").inner_text()
    labels.first.focus()
    shown.locator(".tip", has_text=name).wait_for()
    before = labels.all_inner_texts()
    shown.mouse.move(boxes[0]["x"] + boxes[0]["width"] / 2, boxes[0]["y"] + boxes[0]["height"] / 2)
    shown.mouse.wheel(0, -600)
    until(labels.all_inner_texts, "other names", accept=lambda texts: bool(texts) and texts != before)
    labels.first.click()
    shown.locator(".chosen-row").first.wait_for()


def test_filters_count_what_there_is(page: Seen) -> None:
    facets = page.api.post("/v1/memories/facets", json={}).json()
    kinds = {facet["value"]: facet["count"] for facet in facets["kinds"]}
    month = facets["months"][0]
    shown = page.open("/memories")
    shown.get_by_role("button", name="Filters").click()
    fact = shown.get_by_label("Kind", exact=True).locator("option[value=fact]")
    until(fact.inner_text, "the number of facts", accept=lambda text: text.endswith(f"({kinds['fact']:,})"))
    assert shown.locator("datalist option[value='global']").get_attribute("label").startswith("global (")
    shown.get_by_label("Kind", exact=True).select_option("fact")
    shown.wait_for_url("**kind=fact**")
    assert fact.inner_text().endswith(f"({kinds['fact']:,})")
    shown.get_by_label("Kind", exact=True).select_option("")
    bars = shown.get_by_role("group", name="Month")
    bars.get_by_role("button", name=f"{month['value']} ({month['count']:,})").click()
    shown.locator(".page-head .status", has_text=f"{month['count']:,} memor").wait_for()
    assert f"since={month['value']}-01" in shown.url
    bars.get_by_role("button", pressed=True).click()
    shown.wait_for_function("() => !location.search.includes('since=')")


def test_edit(page: Seen, server: Process) -> None:
    made = page.api.post("/v1/memories", json={"content": "before", "tags": ["one"]}).json()
    shown = page.open(f"/memories?id={made['id']}")
    shown.get_by_role("button", name="Edit").click()
    shown.get_by_label("Content").fill("after")
    shown.get_by_label("Metadata").fill("no json")
    shown.get_by_role("button", name="Save").click()
    shown.get_by_text("The metadata must be a JSON object.").wait_for()
    shown.get_by_label("Metadata").fill('{"a": 1}')
    shown.get_by_role("button", name="Save").click()
    shown.locator(".content-text", has_text="after").wait_for()
    stored = page.api.get(f"/v1/memories/{made['id']}").json()
    assert (stored["content"], stored["metadata"], stored["tags"]) == ("after", {"a": 1}, ["one"])
    page.api.delete(f"/v1/memories/{made['id']}").raise_for_status()


def test_delete_many(page: Seen, server: Process) -> None:
    ids = [
        page.api.post("/v1/memories", json={"content": f"short-lived {n}", "tags": ["short-lived"]}).json()[
            "id"
        ]
        for n in range(6)
    ]
    shown = page.open("/memories?tag=short-lived")
    shown.locator(".vrow .checkbox").first.click()
    shown.get_by_role("button", name="Select all shown").click()
    shown.get_by_text("6 selected").wait_for()
    shown.locator(".bulk").get_by_role("button", name="Delete").click()
    shown.locator("dialog").get_by_role("button", name="Delete").click()
    shown.get_by_text("No memory matches").wait_for()
    assert {page.api.get(f"/v1/memories/{id_}").status_code for id_ in ids} == {404}


def test_near_duplicates_side_by_side(
    see: Callable[..., Seen], server: Process, axe: Callable[[Any], list[str]]
) -> None:
    texts = (
        "The greenhouse door sticks when it is cold and wet.",
        "The greenhouse door sticks when it is cold and damp.",
    )
    page = see(server.url, reduced_motion="reduce")
    first, second = (
        page.api.post("/v1/memories", json={"content": text, "tags": ["door"]}).json()["id"] for text in texts
    )
    wanted = {"tags": ["door"]}
    until(lambda: page.api.post("/v1/memories/near_duplicates", json=wanted).json()["data"], "the pair")
    shown = page.open("/memories?tag=door")
    asked: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.get_by_role("link", name="Near-duplicates").click()
    sides = shown.locator(".duplicate-sides > article")
    sides.nth(1).wait_for()
    assert {*sides.locator("mark").all_inner_texts()} == {"wet", "damp"}
    assert axe(shown) == []
    sides.filter(has_text="wet").get_by_role("button", name="Archive").click()
    shown.get_by_text("No memories say nearly the same").wait_for()
    shown.get_by_role("button", name="Undo").click()
    sides.nth(1).wait_for()
    sides.filter(has_text="damp").get_by_role("button", name="Delete").click()
    shown.locator("dialog").get_by_role("button", name="Delete").click()
    shown.get_by_text("No memories say nearly the same").wait_for()
    assert page.api.get(f"/v1/memories/{second}").status_code == 404
    assert len([url for url in asked if url.endswith("/near_duplicates")]) == 1
    page.api.delete(f"/v1/memories/{first}").raise_for_status()


def test_near_duplicates_of_older_memories_come_on_request(see: Callable[..., Seen], tmp_path: Any) -> None:
    with memoranda.open(tmp_path / "data", embedder={"url": "hash:64"}) as opened:
        opened.memories.add_many(["the walnut floor hides a necklace", "a necklace hides the walnut floor"])
        opened.memories.add_many([f"kettle {n} is number {n * 7}" for n in range(1_005)])
    process = Process(tmp_path / "data", {})
    try:
        shown = see(process.url).open("/memories")
        shown.get_by_role("link", name="Near-duplicates").click()
        shown.get_by_text("None of the newest memories say nearly the same").wait_for()
        shown.get_by_text("The 1,000 newest memories are compared.").wait_for()
        shown.get_by_role("button", name="Compare older memories").click()
        shown.locator(".duplicate-sides > article").nth(1).wait_for()
        shown.get_by_text("All 1,007 memories are compared.").wait_for()
        assert shown.get_by_role("button", name="Compare older memories").count() == 0
    finally:
        process.end()


def test_the_map(page: Seen) -> None:
    shown = page.open("/map?tag=garden")
    shown.get_by_text("4 memories, ").wait_for()
    legend = shown.locator(".legend")
    assert legend.locator(".legend-label").all_inner_texts() == ["Note", "Fact"]
    legend.get_by_role("button", name="Fact").click()
    chosen = shown.get_by_role("region", name="Selected memories")
    chosen.get_by_text("Mara is allergic to bees.").wait_for()
    assert chosen.locator(".vrow").count() == 1
    box = shown.locator(".plane").bounding_box()
    assert box
    corners = [(0.01, 0.2), (0.99, 0.2), (0.99, 0.99), (0.01, 0.99), (0.01, 0.01), (0.8, 0.01)]
    places = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners]
    shown.mouse.move(*places[0])
    shown.mouse.down()
    for place in places[1:]:
        shown.mouse.move(*place)
    shown.mouse.up()
    chosen.get_by_text("4 selected").wait_for()
    shown.get_by_label("Colour", exact=True).select_option("scope")
    legend.get_by_role("button", name="channel:garden").click()
    chosen.get_by_text("2 selected").wait_for()
    chosen.get_by_role("link").first.click()
    shown.locator(".detail .content-text").wait_for()
    assert "/console/memories?id=" in shown.url


def test_near_duplicates_need_no_sideways_scrolling_on_a_phone(
    see: Callable[..., Seen], tmp_path: Any
) -> None:
    process = Process(tmp_path / "data", {})
    try:
        rows = [
            {"content": f"A sentence with one word that is {'very' * 30}long: {word}."}
            for word in ("wet", "damp")
        ]
        httpx.post(f"{process.url}/v1/memories/batch", json={"memories": rows}).raise_for_status()
        page = see(process.url, viewport=PHONE)
        until(lambda: page.api.post("/v1/memories/near_duplicates", json={}).json()["data"], "the pair")
        shown = page.open("/memories?part=duplicates")
        shown.locator(".duplicate-sides mark").first.wait_for()
        assert shown.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        assert shown.evaluate(WIDE) == []
    finally:
        process.end()


def test_a_long_list_keeps_few_rows_in_the_document(see: Callable[..., Seen], tmp_path: Any) -> None:
    process = Process(tmp_path / "data", {})
    try:
        rows = [{"content": f"row {n}"} for n in range(1_000)]
        httpx.post(f"{process.url}/v1/memories/batch", json={"memories": rows}, timeout=60).raise_for_status()
        page = see(process.url)
        shown = page.open("/memories")
        shown.get_by_text("1,000 memories").wait_for()
        for _ in range(12):  # each page of the list is fetched when its end comes in sight
            shown.locator(".vlist").evaluate("e => e.scrollTop = e.scrollHeight")
            shown.wait_for_timeout(50)
        shown.locator(".vrow", has_text="row 0").last.wait_for()
        assert shown.locator(".vrow").count() < 60
    finally:
        process.end()


def test_of_many_memories_some_are_shown_first(see: Callable[..., Seen], tmp_path: Any) -> None:
    with memoranda.open(tmp_path / "data", embedder={"url": "hash:64"}) as opened:
        kinds = ["fact"] * 300 + ["note"] * 10_100
        rows = [{"content": f"kettle {n} is number {n * 7}", "kind": kind} for n, kind in enumerate(kinds)]
        for first in range(0, len(rows), 5_000):
            opened.memories.add_many(rows[first : first + 5_000])
    process = Process(tmp_path / "data", {})
    try:
        shown = see(process.url).open("/map")
        shown.get_by_text(re.compile(r"^3,\d{3} of 10,\d{3} memories")).wait_for()
        shown.get_by_label("Points").select_option("100,000 points at most")
        shown.get_by_text(re.compile(r"^10,\d{3} memories")).wait_for()
        shown.goto(f"{process.url}/console/facts")
        shown.get_by_text(re.compile(r"of 300 facts hold")).wait_for()
    finally:
        process.end()


def test_a_page_goes_on_when_its_server_is_back(see: Callable[..., Seen], tmp_path: Any) -> None:
    first = Process(tmp_path / "data", {})
    second = None
    try:
        httpx.post(f"{first.url}/v1/memories", json={"content": "the kettle is green"}).raise_for_status()
        page = see(first.url)
        shown = page.open("/memories")
        first.end()
        shown.get_by_label("Search memories").fill("kettle")
        shown.get_by_text("The server did not answer").wait_for()
        second = Process(tmp_path / "data", {"server": {"port": int(first.url.rpartition(":")[2])}})
        shown.get_by_role("button", name="Try again").click()
        shown.locator(".vrow", has_text="the kettle is green").wait_for()
    finally:
        first.end()
        if second is not None:
            second.end()


def test_an_ended_session_asks_again(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.expects(401)
    page.sign_in("key-of-ada")
    page.page.context.add_cookies([{"name": "memoranda_session", "value": "1.x.y", "url": guarded.url}])
    page.page.get_by_role("link", name="Context preview").click()
    page.page.get_by_text("The session has ended. Sign in again.").wait_for()


def test_a_reader_is_told_what_it_may_not(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.expects(403)
    page.sign_in("key-of-viewer")
    page.page.locator("[data-main]").first.click()
    page.page.get_by_role("button", name="Archive").click()
    page.page.locator(".toast.bad").wait_for()


def test_the_prompt_and_what_is_left_out(page: Seen) -> None:
    shown = page.open("/context?q=What+must+be+kept+away+from+Mara%3F&budget=80")
    shown.locator(".piece", has_text="Keep the lavender away").wait_for()
    shown.get_by_role("tab", name="Prompt").click()
    assert "What must be kept away from Mara?" in shown.locator("pre.prompt").inner_text()
    shown.get_by_role("tab", name="Left out").click()
    shown.get_by_text("Its part of the budget was full").first.wait_for()
    assert "tab=left" in shown.url


def test_an_error_is_shown_and_can_be_tried_again(page: Seen) -> None:
    page.expects(503)
    refusal = '{"error": {"message": "rows are away", "type": "server_error", "param": null, "code": "x"}}'
    page.page.route("**/v1/memories?*", lambda route: route.fulfill(status=503, body=refusal))
    shown = page.open("/memories")
    shown.get_by_text("rows are away").wait_for()
    page.page.unroute("**/v1/memories?*")
    shown.get_by_role("button", name="Try again").click()
    shown.locator(".vrow").first.wait_for()
