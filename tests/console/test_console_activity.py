"""The pages Activity and Admin: requests, the ledger, limits, switches, jobs, archives; and who may see them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import httpx
import pytest

from support.console import BOOK, PHONE, fill, index
from support.server_process import Process, Stage, staged
from support.waiting import until

from .conftest import Seen
from .test_console_pages import WIDE

pytestmark = pytest.mark.slow
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
PARTS = (
    "/activity", "/activity?order=slow", "/activity?part=usage&days=7", "/activity?part=server", "/admin",
    "/admin?part=limits", "/admin?part=switches&channel=garden", "/admin?part=jobs", "/admin?part=archive",
)  # fmt: skip


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with the sample whose language model plays a script, and limits of spending."""
    settings = {
        "spending": {"model_calls_per_day": 1000, "model_tokens_per_day": 100_000},
        "prices": {"tokens_in": 1_000.0, "tokens_out": 2_000.0, "currency": "EUR"},
    }
    with staged(tmp_path_factory.mktemp("activity") / "data", **settings) as started:
        fill(started.url, conversations=False)
        yield started


@pytest.fixture
def desk(see: Callable[..., Seen], stage: Stage) -> Seen:
    """A page of the server whose model plays a script."""
    return see(stage.url)


@pytest.fixture(scope="module")
def told(stage: Stage) -> dict[str, str]:
    """A response with calls of two tools, a failed one, and a hostile one: their ids."""
    with httpx.Client(base_url=stage.url, timeout=60) as http:
        store = http.get("/v1/vector_stores").json()["data"][0]["id"]
        index(http, store, {"garden.md": BOOK.encode()})
        search = {"name": "file_search", "arguments": {"query": "apple tree"}}
        note = {"name": "memory_write", "arguments": {"content": HOSTILE}}
        stage.says(
            {"offered": "file_search", "calls": [search]},
            {"offered": "memory_write", "calls": [note]},
            "It is pruned in February.",
        )
        tools = [{"type": "file_search", "vector_store_ids": [store]}, {"type": "memory_write"}]
        called = http.post("/v1/responses", json={"input": "When is it pruned?", "tools": tools})
        stage.says({"status": 400, "repeat": True})
        assert http.post("/v1/responses", json={"input": "This one fails."}).status_code == 400
        stage.says({"text": HOSTILE, "repeat": True})
        hostile = http.post("/v1/responses", json={"input": f"Say {HOSTILE}"})
        failed = http.get("/v1/responses", params={"status": "failed"}).json()["data"][0]["id"]
        return {"called": called.json()["id"], "failed": failed, "hostile": hostile.json()["id"]}


def test_a_request_with_stages_tools_and_tokens(desk: Seen, told: dict[str, str]) -> None:
    shown = desk.open("/activity")
    row = shown.locator(".vrow", has_text="When is it pruned?")
    row.get_by_text("2 tool calls").wait_for()
    row.locator("[data-main]").focus()
    shown.keyboard.press("Enter")
    detail = shown.locator(".detail")
    detail.get_by_text("It is pruned in February.").wait_for()
    assert f"id={told['called']}" in shown.url
    detail.locator(".shares-legend", has_text="Retrieval").get_by_text("Tools").wait_for()
    assert detail.locator(".calls strong").all_inner_texts() == ["file_search", "memory_write"]
    assert "apple tree" in detail.locator(".calls").inner_text()
    detail.get_by_text("1 result", exact=True).wait_for()
    response = desk.api.get(f"/v1/responses/{told['called']}").json()
    usage = response["usage"]
    pairs = detail.locator(".pairs").first.inner_text().split()
    assert pairs[:4] == ["Input", f"{usage['input_tokens']:,}", "Output", f"{usage['output_tokens']:,}"]
    assert " ".join(pairs[-3:]) == f"Cost {money(response['extensions']['cost']['amount'])}"
    shown.keyboard.press("Escape")
    detail.wait_for(state="detached")


def test_failures_alone(desk: Seen, told: dict[str, str]) -> None:
    shown = desk.open("/activity")
    shown.get_by_label("Show").select_option("failed")
    shown.locator(".vrow", has_text="This one fails.").wait_for()
    assert "show=failed" in shown.url
    assert shown.locator(".vrow").count() == 1
    shown.locator("[data-main]").click()
    shown.locator(".detail [role=alert]", has_text="refused the request").wait_for()


def test_new_requests_appear_while_live(desk: Seen, stage: Stage, told: dict[str, str]) -> None:
    shown = desk.open("/activity")
    shown.get_by_role("switch", name="Live").check()
    assert "live=1" in shown.url
    stage.says({"text": "ok", "repeat": True})
    desk.api.post("/v1/responses", json={"input": "Asked a moment ago"}).raise_for_status()
    shown.locator(".vrow", has_text="Asked a moment ago").wait_for()
    assert "Asked a moment ago" in shown.locator(".vrow").first.inner_text()


def test_a_live_list_says_that_it_is_old(desk: Seen, told: dict[str, str]) -> None:
    shown = desk.open("/activity?live=1")
    shown.locator(".vrow").first.wait_for()
    desk.expects(503)
    refusal = '{"error": {"message": "rows are away", "type": "server_error", "param": null, "code": "x"}}'
    shown.route("**/v1/responses?*", lambda route: route.fulfill(status=503, body=refusal))
    shown.get_by_text("Not up to date").wait_for()
    assert shown.locator(".vrow").count() > 0
    shown.unroute("**/v1/responses?*")
    shown.get_by_text("Not up to date").wait_for(state="detached")


def test_hostile_texts_stay_texts(desk: Seen, told: dict[str, str]) -> None:
    for id_ in (told["hostile"], told["called"]):
        shown = desk.open(f"/activity?id={id_}")
        shown.locator(".detail .pairs").first.wait_for()
        assert HOSTILE in shown.locator(".detail").inner_text().replace('\\"', '"')
    shown.locator(".vrow", has_text=f"Say {HOSTILE}").wait_for()
    assert shown.evaluate("window.hacked") is None


def entry(number: int) -> dict[str, Any]:
    """A row of the list of responses; the 250th took longest."""
    usage = {"input_tokens": number, "output_tokens": 1, "total_tokens": number + 1}
    seconds = 90.0 if number == 250 else 0.01 + number / 10_000
    return {
        "id": f"resp_{number}", "created_at": 1_700_000_000 - number, "completed_at": None, "status": "completed",
        "background": False, "model": "m", "user_id": None, "agent_id": None, "conversation_id": None,
        "previous_response_id": None, "question": f"question {number}", "tool_calls": {}, "failed_tool_calls": 0,
        "usage": usage, "cost": None,
        "timings": {"retrieval": 0.001, "model": seconds - 0.001, "tools": 0, "total": seconds},
        "answered_by": None, "degraded": [], "error": None,
    }  # fmt: skip


def test_a_long_list_and_the_slow_ones_first(desk: Seen) -> None:
    def answer(route: Any) -> None:
        after = parse_qs(urlparse(route.request.url).query).get("after", ["resp_-1"])[0]
        first = int(after.removeprefix("resp_")) + 1
        page = [entry(number) for number in range(first, min(first + 100, 300))]
        body = {
            "object": "list",
            "data": page,
            "first_id": "a",
            "last_id": "b",
            "has_more": first + 100 < 300,
        }
        route.fulfill(body=json.dumps(body), content_type="application/json")

    desk.page.route("**/v1/responses?*", answer)
    shown = desk.open("/activity?show=responses")
    shown.locator(".vrow", has_text="question 0").wait_for()
    for _ in range(6):  # each page of the list is fetched when its end comes in sight
        shown.locator(".vlist").evaluate("e => e.scrollTop = e.scrollHeight")
        shown.wait_for_timeout(50)
    shown.locator(".vrow", has_text="question 299").wait_for()
    assert shown.locator(".vrow").count() < 60
    shown.get_by_label("Order").select_option("slow")
    shown.get_by_text("Slowest of 300 requests").wait_for()
    shown.locator(".vlist").evaluate("e => e.scrollTop = 0")
    until(
        lambda: shown.locator(".vrow").first.inner_text(),
        "the slowest",
        accept=lambda text: "1 min 30 s" in text,
    )
    assert "question 250" in shown.locator(".vrow").first.inner_text()


def test_questions_to_documents(page: Seen, server: Process) -> None:
    made = page.api.post(
        "/api/v1/upload-ask/documents", json={"title": "tools", "text": "The saw hangs in the shed."}
    ).json()["id"]
    path = f"/api/v1/upload-ask/documents/{made}"
    until(lambda: page.api.get(path).json()["status"] == "completed", "the document is read")
    asked = page.api.post("/api/v1/upload-ask/query", json={"question": "Where does the saw hang?"}).json()
    shown = page.open("/activity?show=asked")
    shown.locator(".vrow", has_text="Where does the saw hang?").locator("[data-main]").click()
    shown.locator(".detail .request-text", has_text="The saw hangs in the shed.").wait_for()
    shown.locator(".detail .shares-legend", has_text="Documents").wait_for()
    shown.get_by_role("link", name="Open in Ask").click()
    shown.wait_for_url(f"**/ask?mode=uploads&session={asked['sessionId']}")
    shown.get_by_text("The saw hangs in the shed.").first.wait_for()


def money(amount: float) -> str:
    """An amount as the console writes it."""
    whole, _, part = f"{amount:,.{6 if amount < 1 else 2}f}".partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')} EUR"


def test_the_ledger_by_day_and_purpose(desk: Seen, told: dict[str, str]) -> None:
    shown = desk.open("/activity?part=usage")
    report = desk.api.get("/v1/usage").json()
    calls = sum(row["model_calls"] for row in report["data"])
    shown.locator(".meter", has_text="Model calls a day").get_by_text(f"{calls:,}", exact=True).wait_for()
    assert "of 1,000" in shown.locator(".meter", has_text="Model calls a day").inner_text()
    assert "no limit" in shown.locator(".meter", has_text="Embedded tokens a day").inner_text()
    row = shown.get_by_role("region", name="By purpose").locator("tr", has_text="Responses")
    spent = next(row for row in report["data"] if row["purpose"] == "responses")
    assert row.locator("td").nth(2).inner_text() == f"{spent['model_calls']:,}"
    assert row.locator("td").last.inner_text() == money(spent["cost"])
    shown.get_by_text(f"{money(report['cost'])} in all, at the configured prices").wait_for()
    shown.get_by_label("Chart").select_option("cost")
    shown.get_by_role("heading", name="Cost by day").wait_for()
    shown.get_by_label("Chart").select_option("texts_embedded")
    shown.get_by_role("heading", name="Texts embedded by day").wait_for()
    assert "measure=texts_embedded" in shown.url


def test_the_servers_times(desk: Seen, told: dict[str, str]) -> None:
    shown = desk.open("/activity?part=server")
    routes = shown.get_by_role("region", name="Routes")
    failed = routes.locator("tr", has_text="/v1/responses").filter(has_not_text="{").locator("td").nth(2)
    assert int(failed.inner_text()) >= 1
    shown.get_by_role("region", name="Stages of requests").get_by_text("Handle").wait_for()
    shown.get_by_label("Order").select_option("slow")
    assert "order=slow" in shown.url


# --- Admin -----------------------------------------------------------------------------------------


def test_health_and_holdings(page: Seen, server: Process) -> None:
    shown = page.open("/admin")
    shown.locator(".health").get_by_text("Ready", exact=True).wait_for()
    stats = page.api.get("/v1/memories/stats").json()
    memories = shown.locator(".panel-card", has_text="Characters").locator(".pairs")
    assert f"{stats['memories']:,}" in memories.inner_text()
    assert "sqlite" in shown.get_by_role("region", name="The whole folder").inner_text()
    page.expects(503)
    refusal = {"ready": False, "checks": {"index": "behind"}, "error": {"message": "index is behind"}}
    page.page.route("**/readyz", lambda route: route.fulfill(status=503, body=json.dumps(refusal)))
    shown.get_by_role("button", name="Check again").click()
    shown.locator(".health [role=alert]", has_text="index is behind").wait_for()


def test_the_operator_changes_limits_of_a_tenant(see: Callable[..., Seen], guarded: Process) -> None:
    page = see(guarded.url)
    page.expects(400)
    page.sign_in("key-of-ops")
    shown = page.open("/admin?part=limits")
    shown.get_by_label("Tenant").fill("acme")
    shown.get_by_role("heading", name="Quotas of acme").wait_for()
    assert "tenant=acme" in shown.url
    card = shown.locator(".panel-card", has_text="Quotas of acme")
    card.get_by_role("button", name="Change").click()
    dialog = shown.locator("dialog")
    dialog.get_by_label("Vector stores").fill("many")
    dialog.get_by_role("button", name="Review").click()
    dialog.get_by_role("button", name="Confirm").click()
    dialog.locator("[role=alert]").wait_for()  # the server says what is wrong
    dialog.get_by_label("Vector stores").fill("7")
    dialog.get_by_role("button", name="Review").click()
    assert "1,000 → 7" in dialog.inner_text()
    dialog.get_by_role("button", name="Confirm").click()
    card.locator(".meter", has_text="Vector stores").get_by_text("of 7").wait_for()
    with httpx.Client(base_url=guarded.url, headers={"authorization": "Bearer key-of-ops"}) as http:
        assert http.get("/v1/admin/quotas", params={"tenant": "acme"}).json()["max_stores"] == 7
        assert http.get("/v1/admin/quotas").json()["max_stores"] == 1000
    card.get_by_role("button", name="Change").click()
    dialog.get_by_label("Vector stores").fill("")
    dialog.get_by_role("button", name="Review").click()
    dialog.get_by_role("button", name="Confirm").click()
    card.locator(".meter", has_text="Vector stores").get_by_text("of 1,000").wait_for()


def test_who_may_see_what(see: Callable[..., Seen], guarded: Process) -> None:
    """A member is told that it may not; an admin of a tenant sees its own, changes no limits, and hears nothing of
    another's."""
    secret = "only the operator asked this"
    with httpx.Client(base_url=guarded.url, headers={"authorization": "Bearer key-of-ops"}) as http:
        http.post("/v1/responses", json={"input": secret}).raise_for_status()
    page = see(guarded.url)
    page.expects(403)
    page.sign_in("key-of-ada")
    shown = page.open("/admin?part=limits")
    shown.get_by_text("This key may not see this").wait_for()
    assert shown.locator(".modes").count() == 0
    shown = page.open("/activity?part=usage")
    shown.get_by_text("this needs a key with the admin role").wait_for()
    shown = page.open("/activity")
    assert secret not in shown.content()
    shown.get_by_role("button", name="Sign out").click()
    page.sign_in("key-of-acme")
    for part in ("/activity", "/activity?part=usage", "/admin", "/admin?part=limits", "/admin?part=jobs"):
        shown = page.open(part)
        assert secret not in shown.content()
        assert shown.get_by_label("Tenant").count() == 0
    shown = page.open("/activity?part=server")
    shown.get_by_text("needs an admin key of tenant").wait_for()
    shown = page.open("/admin?part=limits")
    shown.get_by_text("Only an admin of the tenant default changes these.").first.wait_for()
    shown = page.open("/admin?part=limits&tenant=default")
    shown.get_by_text("only an admin of tenant 'default' asks about others").wait_for()
    shown = page.open("/admin")
    shown.locator(".pairs").first.wait_for()
    assert shown.get_by_text("The whole folder").count() == 0


def test_switches_of_a_tenant_and_a_channel(page: Seen, server: Process) -> None:
    shown = page.open("/admin?part=switches")
    tenant = shown.get_by_role("region", name="The whole tenant")
    tenant.get_by_label("Fact extraction").select_option("true")
    shown.locator("dialog").get_by_role("button", name="Cancel").click()
    assert page.api.get("/v1/admin/switches").json()["extraction"] is None
    assert tenant.get_by_label("Fact extraction").input_value() == ""
    tenant.get_by_label("Fact extraction").select_option("true")
    shown.locator("dialog").get_by_role("button", name="Confirm").click()
    tenant.get_by_text("In force: on").nth(1).wait_for()
    assert page.api.get("/v1/admin/switches").json()["extraction"] is True
    shown.get_by_label("Channel of this key's tenant").fill(HOSTILE[:20])
    channel = shown.get_by_role("region", name=f"Channel {HOSTILE[:20]}")
    channel.get_by_label("Session summaries").select_option("false")
    shown.locator("dialog").get_by_role("button", name="Confirm").click()
    channel.get_by_text("In force: off").first.wait_for()
    assert shown.evaluate("window.hacked") is None
    page.api.post("/v1/admin/switches", json={"extraction": None}).raise_for_status()


def test_jobs_are_started_and_cancelled(page: Seen, server: Process) -> None:
    shown = page.open("/admin?part=jobs")
    shown.get_by_label("Start a job").select_option("compact")
    shown.locator("dialog").get_by_role("button", name="Start").click()
    shown.locator(".vrow", has_text="Compact").get_by_text("Completed").wait_for()
    slow = {"what": "embeddings", "everything": True, "rows_per_second": 0.1}
    job = page.api.post("/v1/backfills", json=slow).raise_for_status().json()
    shown = page.open("/admin?part=jobs")
    row = shown.locator(".vrow", has=shown.get_by_title(job["id"]))
    row.get_by_role("button", name="Cancel job").click()
    shown.locator("dialog").get_by_role("button", name="Cancel job").click()
    row.get_by_text("Cancelled").wait_for()
    assert page.api.get(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    shown.get_by_label("State").select_option("failed")
    shown.get_by_text("No job is in this state").wait_for()
    page.expects(409)
    assert page.api.post(f"/v1/jobs/{job['id']}/retry").status_code == 409
    job = page.api.post("/v1/memories/compact").raise_for_status().json()
    until(lambda: page.api.get(f"/v1/jobs/{job['id']}").json()["state"], "its end", accept="completed".__eq__)
    with contextlib.closing(sqlite3.connect(server.folder / "memoranda.db", timeout=30)) as db, db:
        db.execute("UPDATE jobs SET state = 'failed', error = 'the disk was full' WHERE id = ?", [job["id"]])
    shown = page.open("/admin?part=jobs&state=failed")
    row = shown.locator(".vrow", has=shown.get_by_title(job["id"]))
    row.get_by_text("the disk was full").wait_for()
    row.get_by_role("button", name="Try again").click()
    shown.get_by_text("The job goes on where it stopped").wait_for()
    until(lambda: page.api.get(f"/v1/jobs/{job['id']}").json()["state"], "its end", accept="completed".__eq__)
    row.wait_for(state="detached")


def test_an_archive_goes_out_and_comes_back(
    see: Callable[..., Seen], guarded: Process, tmp_path: Path
) -> None:
    page = see(guarded.url)
    page.expects(400)
    page.sign_in("key-of-acme")
    shown = page.open("/admin?part=archive")
    with shown.expect_download() as started:
        shown.get_by_role("link", name="Download archive").click()
    started.value.save_as(tmp_path / "acme.zip")
    (tmp_path / "wrong.zip").write_bytes(b"no archive")
    shown.get_by_role("button", name="Sign out").click()
    page.sign_in("key-of-ops")
    shown = page.open("/admin?part=archive")
    shown.get_by_label("Archive file").set_input_files(tmp_path / "wrong.zip")
    shown.locator("[role=alert] .notice").wait_for()
    shown.get_by_label("Archive file").set_input_files(tmp_path / "acme.zip")
    shown.get_by_role("region", name="What the file has").wait_for()
    with httpx.Client(base_url=guarded.url, headers={"authorization": "Bearer key-of-ops"}) as http:
        before = http.get("/v1/memories/stats").json()["memories"]
        shown.get_by_role("button", name="Restore", exact=True).click()
        shown.locator("dialog").get_by_role("button", name="Restore", exact=True).click()
        shown.get_by_role("region", name="What was restored").wait_for()
        assert http.get("/v1/memories/stats").json()["memories"] > before


# --- every part ------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_rules_of_accessibility_of_every_part(
    see: Callable[..., Seen], stage: Stage, told: dict[str, str], axe: Callable[[Any], list[str]], theme: str
) -> None:
    page = see(stage.url, color_scheme=theme, reduced_motion="reduce")
    for part in (*PARTS, f"/activity?id={told['called']}", f"/activity?id={told['failed']}"):
        assert axe(page.open(part)) == [], part
    shown = page.open("/admin?part=limits")
    shown.get_by_role("button", name="Change").first.click()
    shown.locator("dialog[open]").wait_for()
    assert axe(shown) == []


def test_a_phone_needs_no_sideways_scrolling(
    see: Callable[..., Seen], stage: Stage, told: dict[str, str]
) -> None:
    page = see(stage.url, viewport=PHONE)
    for part in (*PARTS, f"/activity?id={told['called']}"):
        shown = page.open(part)
        assert shown.evaluate("document.documentElement.scrollWidth") == PHONE["width"], part
        assert shown.evaluate(WIDE) == [], part
