"""A server with data, and a browser that looks at its console.

`page` is signed in where the server needs it and fails a test in which the console logged an error, broke its content
security policy, or made a request that failed; `page.expects(404)` says which statuses a test brings about itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from support.console import CHROMIUM, DESKTOP, NODE, browser, fill, settled
from support.server_process import Process

KEYS = [
    {"name": "ops", "role": "admin", "key": "key-of-ops", "tenant": "default"},
    {"name": "ada", "role": "member", "key": "key-of-ada", "tenant": "acme", "user": "ada"},
    {"name": "acme", "role": "admin", "key": "key-of-acme", "tenant": "acme"},
    {"name": "viewer", "role": "reader", "key": "key-of-viewer", "tenant": "acme", "user": "ada"},
]


STANDING_STILL = "Promise.all(document.getAnimations().map((one) => one.finished.catch(() => null)))"


class Seen:
    """A page of the browser, what went wrong in it, and the API of its server."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        self.api = httpx.Client(base_url=url, timeout=60)
        self.problems: list[str] = []
        self.requests: list[Any] = []
        self._expected: set[int] = set()
        page.on("console", lambda one: one.type == "error" and self._logged(one.text))
        page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        page.on("response", self._answered)
        page.on("request", lambda one: self.requests.append(one))

    def expects(self, *statuses: int) -> None:
        """Requests may be answered with these statuses."""
        self._expected |= set(statuses)

    def open(self, path: str = "", *, width: int | None = None) -> Any:
        """Go to an address below /console, and wait until it shows content."""
        if width is not None:
            self.page.set_viewport_size({"width": width, "height": 812})
        self.page.goto(f"{self.url}/console{path}")
        settled(self.page)
        return self.page

    def sign_in(self, key: str) -> None:
        """Enter a key in the page that asks for it."""
        self.page.goto(f"{self.url}/console/memories")
        self.page.get_by_label("Key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_selector("nav[aria-label=Pages]", state="attached")
        settled(self.page)

    def _logged(self, text: str) -> None:
        if not text.startswith("Failed to load resource"):  # the response says more
            self.problems.append(f"console: {text}")

    def _answered(self, response: Any) -> None:
        if response.status >= 400 and response.status not in self._expected:
            self.problems.append(f"{response.status} {response.request.method} {response.url}")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser; its tests are skipped without one. Playwright's event loop occupies the thread until the last test
    of the file, so that such a file has no test that is a coroutine."""
    if CHROMIUM is None:
        pytest.skip("chromium is missing; scripts/browser installs it")
    pytest.importorskip("playwright")
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server without keys, with the sample."""
    process = Process(tmp_path_factory.mktemp("console") / "data", {})
    fill(process.url)
    yield process
    process.end()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server with keys of two tenants; the sample is tenant acme's."""
    process = Process(tmp_path_factory.mktemp("guarded") / "data", {"keys": KEYS})
    fill(process.url, key="key-of-acme")
    yield process
    process.end()


@pytest.fixture
def see(chromium: Any) -> Iterator[Callable[..., Seen]]:
    """Makes pages in browsers of their own: `see(server.url, color_scheme="dark")`; checks them at the end."""
    made: list[Seen] = []

    def make(url: str, **options: Any) -> Seen:
        context = chromium.new_context(viewport=options.pop("viewport", DESKTOP), **options)
        context.set_default_timeout(60_000)
        made.append(Seen(context.new_page(), url))
        return made[-1]

    yield make
    for seen in made:
        seen.api.close()
        seen.page.context.close()
    assert [problem for seen in made for problem in seen.problems] == []


@pytest.fixture
def page(see: Callable[..., Seen], server: Process) -> Seen:
    """A page of the server without keys."""
    return see(server.url)


@pytest.fixture(scope="session")
def axe() -> Callable[[Any], list[str]]:
    """Answers the violations of accessibility rules that axe-core finds in a page."""
    script = NODE / "axe-core/axe.min.js"
    if not script.exists():
        pytest.skip("axe-core is missing; scripts/node_packages installs it")
    source = script.read_text("utf-8")

    def check(page: Any) -> list[str]:
        page.evaluate(source)  # the debugger's way in, which the content security policy does not stop
        page.evaluate(STANDING_STILL)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [
            f"{one['id']}: {node['html'][:160]} {node['any'][:1]}" for one in found for node in one["nodes"]
        ]

    return check
