"""The web console in a real browser: where it is, its pages, and a server with something to show."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from support.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SOURCE = Path(__file__).parents[2] / "src/memoranda/server/console"
NODE = Path(__file__).parents[1] / "console/node/node_modules"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGES = tuple(re.findall(r'path: "([\w-]+)"', (SOURCE / "views/index.js").read_text("utf-8")))
"""The pages that are registered."""
PHONE = {"width": 375, "height": 812}
DESKTOP = {"width": 1280, "height": 800}
QUESTIONS = {"memories": "?q=garden+tools", "context": "?q=What+must+be+kept+away+from+Mara%3F&budget=300"}
QUESTIONS |= {"sessions": "?id=kitchen-plan", "facts": "?who=user:nora&at=2024-09-01", "forget": "?user=nora"}
QUESTIONS |= {"activity": "?part=usage", "admin": "?part=limits", "evaluation": "?set=assistant&run=1"}
"""What an address asks, so that a page has something to show; a page that is not here is opened without."""
WHEN = "2026-03-{:02}T09:30:00Z"
SAMPLE: list[dict[str, Any]] = [
    {"content": "Mara is allergic to bees.", "kind": "fact", "user_id": "mara", "tags": ["health", "garden"]},
    {"content": "Mara takes her coffee without sugar.", "kind": "fact", "user_id": "mara", "tags": ["food"]},
    {"content": "The spare key is under the blue pot by the garden door.", "tags": ["house"], "source": "notes.md"},
    {"content": "Lavender attracts bees from June to August.", "channel_id": "garden", "tags": ["garden"]},
    {"content": "Keep the lavender away from the bench where Mara sits.", "channel_id": "garden", "importance": 2},
    {"content": "The garden tools are sharpened every spring.", "channel_id": "garden", "tags": ["garden", "tools"]},
    {"content": "Bob lends the pruning saw to the neighbours.", "user_id": "bob", "tags": ["tools"]},
    {"content": "Bob prefers trains to planes when he travels.", "kind": "fact", "user_id": "bob"},
    {"content": "The water meter is read in June.", "session_id": "house", "kind": "message", "role": "user"},
    {"content": "The boiler was serviced by Ortega & Sons.", "session_id": "house", "metadata": {"cost": 140}},
    {"content": "A compost heap needs as much brown as green material.", "source": "compost.txt", "tags": ["garden"]},
    {"content": "The house has three bedrooms and a studio under the roof.", "kind": "document", "source": "house.pdf"},
]  # fmt: skip


NORA = [
    ("2024-01-10", "I live in Munich and I prefer tea over coffee.", "Nora lives in Munich."),
    ("2024-06-01", "I live in Hamburg.", "Nora lives in Hamburg."),
    ("2025-02-15", "I moved to Berlin.", "Nora moved to Berlin."),
]
"""What Nora says of herself in the channel `kitchen`, a session each, and the facts, each of which replaces the one
before."""
TEA = "Nora prefers tea over coffee."
"""A fact from her first session that nothing replaces."""
PLAN = [
    ("Nora", "Shall we order the oak worktop for the kitchen? The carpenter needs six weeks."),
    ("Bo", "It is agreed: we order the oak worktop. The sink stays under the window."),
    ("Nora", "I will call the carpenter on Monday and send him the plan."),
    ("Bo", "What about the lamp above the table, who chooses it?"),
    ("assistant", "The oak worktop is ordered, Nora calls the carpenter, and the lamp is still open."),
]
"""The session `kitchen-plan`."""


def converse(http: httpx.Client) -> None:
    """Hold conversations: sessions, one of them summarized, and facts that rest on them."""
    before: list[str] = []
    for day, text, known in NORA:
        when = f"{day}T09:00:00Z"
        said = {"content": text, "speaker": "Nora", "user_id": "nora", "occurred_at": when}
        body = {"messages": [said], "channel_id": "kitchen"}
        message = http.post("/v1/messages", json=body).raise_for_status().json()["data"][0]
        about = {
            "kind": "fact",
            "user_id": "nora",
            "occurred_at": when,
            "source_refs": [message["id"]],
            "metadata": {"session_id": message["session_id"]},
        }
        if not before:
            http.post("/v1/memories", json={"content": TEA, **about}).raise_for_status()
        made = http.post("/v1/memories", json={"content": known, **about, "replaces": before})
        before = [made.raise_for_status().json()["id"]]
    plan = [
        {"content": text, "speaker": name, "role": "assistant" if name == "assistant" else "user",
         "occurred_at": f"2026-03-02T10:{minute:02}:00Z"}
        for minute, (name, text) in enumerate(PLAN)
    ]  # fmt: skip
    http.post(
        "/v1/messages", json={"messages": plan, "session_id": "kitchen-plan", "channel_id": "kitchen"}
    ).raise_for_status()
    http.post("/v1/sessions/kitchen-plan/summarize", json={}).raise_for_status()
    week = {
        "content": "The oak worktop was ordered; the lamp is still to be chosen.",
        "kind": "rollup",
        "channel_id": "kitchen",
        "occurred_at": "2026-03-02T00:00:00Z",
        "metadata": {"week": "2026-W10"},
    }
    http.post("/v1/memories", json=week).raise_for_status()


def fill(url: str, *, key: str | None = None, beside: int = 24, conversations: bool = True) -> None:
    """Store the sample, `beside` more notes, conversations, and a vector store. Conversations are read by the language
    model, if there is one."""
    with httpx.Client(
        base_url=url, headers={"authorization": f"Bearer {key}"} if key else {}, timeout=60
    ) as http:
        rows = [{**row, "occurred_at": WHEN.format(i + 1)} for i, row in enumerate(SAMPLE)]
        plain = [
            {"content": f"Note {i}: bed {i % 7} of the garden was watered.", "tags": [f"bed-{i % 7}"],
             "occurred_at": f"2026-02-{i % 28 + 1:02}T08:00:00Z"}
            for i in range(beside)
        ]  # fmt: skip
        for body in ({"memories": [*rows, *plain]},):
            http.post("/v1/memories/batch", json=body).raise_for_status()
        if conversations:
            converse(http)
        http.post("/v1/vector_stores", json={"name": "Garden books"}).raise_for_status()


BOOK = """# The apple tree

The apple tree is pruned in February, before the buds swell. Use the long saw for the crown.

## Bees

Lavender attracts bees from June to August. Mara is allergic to bees, so the bench stands by the pond.

## Water

The pump of the well is drained in November. It is started again after the last frost of April.
"""
"""A document of the store `Garden books`."""


def index(http: httpx.Client, store: str, files: dict[str, bytes]) -> dict[str, str]:
    """Put files into a store, and wait until each is completed or failed; their ids by name."""
    path = f"/v1/vector_stores/{store}/files"
    ids = {}
    for name, body in files.items():
        made = http.post(path, files={"file": (name, body)}).raise_for_status().json()
        ids[name] = made["id"]
    until(
        lambda: http.get(f"/v1/vector_stores/{store}").json()["file_counts"]["in_progress"] == 0,
        "the files are indexed",
    )
    return ids


def questions(url: str) -> dict[str, str]:
    """`QUESTIONS` for a server with documents in its store and a conversation about them, which this makes."""
    with httpx.Client(base_url=url, timeout=60) as http:
        store = http.get("/v1/vector_stores").json()["data"][0]["id"]
        index(
            http,
            store,
            {
                "garden.md": BOOK.encode(),
                "tools.txt": b"The long saw hangs in the shed.",
                "scan.pdf": b"%PDF-1.4 broken",
            },
        )
        body = {
            "model": "extractive",
            "input": "When is the apple tree pruned?",
            "tools": [
                {
                    "type": "file_search",
                    "vector_store_ids": [store],
                    "ranking_options": {"score_threshold": 0},
                }
            ],
        }
        response = http.post("/v1/responses", json=body).raise_for_status().json()
    ask = f"?response={response['id']}&store={store}&cite={response['id']}.1"
    activity = f"?id={response['id']}"
    return {**QUESTIONS, "knowledge": f"?store={store}", "ask": ask, "activity": activity}


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without windows.

    Raises:
        ImportError: Playwright is missing.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        try:
            yield started
        finally:
            started.close()


def settled(page: Page) -> None:
    """Wait until a page shows content: a list, a result, or the state in its place."""
    page.wait_for_selector("main h1, main .notice", state="attached")
    page.wait_for_selector("body:not(:has(.loading, [aria-busy=true]))", state="attached")
