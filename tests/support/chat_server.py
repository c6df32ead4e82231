"""A scripted model over real HTTP, for as long as a test needs it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from memoranda.providers.chat.script import Scripted
from memoranda.providers.chat.scripted_app import Received, ScriptedApp, scripted_app
from support.waiting import until

logging.getLogger("uvicorn.error").addFilter(lambda record: "without completing" not in record.getMessage())


@contextmanager
def running(app: Any) -> Iterator[str]:
    """Runs an ASGI app on a free port in a thread; yields `http://127.0.0.1:PORT`."""
    config = uvicorn.Config(app, "127.0.0.1", 0, log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()

    def started() -> bool:
        assert thread.is_alive(), "the server did not start"
        return server.started

    until(started, "the server listens")
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(5)


@contextmanager
def serving(script: Scripted) -> Iterator[tuple[str, list[Received]]]:
    """A chat-completions server that plays `script` (turns, a Script, or a path): its URL, which ends in `/v1`, and the
    requests it received, a list that grows."""
    with playing(script) as (url, app):
        yield url, app.received


@contextmanager
def playing(script: Scripted) -> Iterator[tuple[str, ScriptedApp]]:
    """The same with the app itself: `app.play.add({"text": "more"})` adds turns, `app.play.resume()` ends pauses."""
    app = scripted_app(script)
    with running(app) as url:
        yield f"{url}/v1", app
