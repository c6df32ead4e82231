"""How soon each page of the console shows what it has, and how much it loads, in a folder with many memories.

    python benchmarks/console.py --rows 100000

A server in a process of its own on loopback, and a real browser, whose cache is empty for each page. Milliseconds are
those of the browser's clock, from the beginning of the navigation until the page has a heading and nothing on it is
loading; the median of the rounds. Bytes are those of all responses, without headers. The limits are 300 ms and 150 kB.
Last, the requests whose time grows with the rows, by themselves.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

import httpx

import memoranda
from support.console import DESKTOP, PAGES, QUESTIONS, browser, fill
from support.server_process import Process

ROUNDS, BATCH = 5, 1_000
MILLISECONDS, BYTES = 300, 150_000
USERS, WORDS = (
    40,
    ("garden", "kettle", "invoice", "train", "lavender", "meeting", "roof", "saw", "plan", "river"),
)
REQUESTS: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
    ("POST", "/v1/memories/count", {}),
    ("GET", "/v1/memories/stats", None),
    ("POST", "/v1/memories/projection", {}),
    ("POST", "/v1/memories/facets", {}),
    ("GET", "/v1/memories/timeline", None),
    ("POST", "/v1/memories/forget/preview", {"scopes": ["user:user1"]}),
    ("POST", "/v1/memories/search", {"query": "garden kettle", "scopes": ["all"]}),
)
WATCH = """(() => {
    const found = (selector) => document.querySelector(selector) !== null;
    const shown = () => found("main h1, main .notice") && !found(".loading, [aria-busy=true]");
    const look = () => {
        if (window.shownAfter === undefined && shown()) window.shownAfter = performance.now();
    };
    new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
})()"""
"""Notes when a page first shows what it has."""


def store(folder: Path, rows: int) -> None:
    """Add memories of several users and kinds."""
    with memoranda.open(folder, embedder={"url": "hash:64"}) as opened:
        for first in range(0, rows, BATCH):
            opened.memories.add_many(
                [
                    {
                        "content": f"{WORDS[n % 10]} {WORDS[n // 10 % 10]} {WORDS[n // 100 % 10]} number {n}",
                        "user_id": f"user{n % USERS}",
                        "kind": "fact" if n % 20 == 0 else "note",
                        "tags": [WORDS[n % 7]],
                    }
                    for n in range(first, min(rows, first + BATCH))
                ]
            )


def opened_page(started: Any, address: str) -> tuple[float, int]:
    """Milliseconds until the page shows what it has, and the bytes it loaded."""
    context = started.new_context(viewport=DESKTOP)
    context.add_init_script(WATCH)
    page = context.new_page()
    sizes: list[int] = []
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    page.goto(address, wait_until="networkidle", timeout=120_000)
    page.wait_for_function("window.shownAfter !== undefined", timeout=120_000)
    milliseconds = page.evaluate("window.shownAfter")
    page.wait_for_timeout(500)  # the last responses are counted, too
    context.close()
    return milliseconds, sum(sizes)


def requests(url: str) -> None:
    """Print a row for each request whose time grows with the memories."""
    print("| request | ms |\n|---|--:|")
    with httpx.Client(base_url=url, timeout=120) as client:
        for method, path, body in REQUESTS:
            taken = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                client.request(method, path, json=body).raise_for_status()
                taken.append((time.perf_counter() - began) * 1000)
            print(f"| `{method} {path}` | {statistics.median(taken):.0f} |", flush=True)


def main() -> None:
    """Print a row for each page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        store(Path(folder) / "data", rows)
        server = Process(Path(folder) / "data", {})
        try:
            fill(server.url)
            with browser() as started:
                print(f"| page, {rows} memories | ms | of {MILLISECONDS} | bytes | of {BYTES} |")
                print("|---|--:|--:|--:|--:|")
                for name in PAGES:
                    for asked in ("", *([QUESTIONS[name]] if name in QUESTIONS else [])):
                        address = f"{server.url}/console/{name}{asked}"
                        opened_page(started, address)
                        taken = [opened_page(started, address) for _ in range(ROUNDS)]
                        ms = statistics.median(milliseconds for milliseconds, _ in taken)
                        size = max(size for _, size in taken)
                        print(
                            f"| {name}{asked} | {ms:.0f} | {ms / MILLISECONDS:.2f} | {size} | {size / BYTES:.2f} |",
                            flush=True,
                        )
            requests(server.url)
        finally:
            server.end()


if __name__ == "__main__":
    main()
