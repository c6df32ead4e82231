"""The command `serve`: open the library, listen, and shut down in order."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, cast

import uvicorn

from memoranda.app.bootstrap import rows_url
from memoranda.app.memoranda import Memoranda
from memoranda.config.sections import Config
from memoranda.errors import ConfigError, EmbedderUnavailable
from memoranda.server import logs
from memoranda.server.app import Answers, create_app
from memoranda.server.auth import Guard
from memoranda.server.connections import KEEP_ALIVE, Connection

log = logging.getLogger("memoranda.server")

BACKLOG = 512
DATABASE_WAIT = 60.0
"""Seconds that a start waits for a PostgreSQL server that is down."""
PAUSE = 2.0
"""Seconds between two attempts, each with a line in the log."""


def serve(config: Config, started: Callable[[str], None] = lambda url: None) -> None:
    """Serves until SIGINT or SIGTERM, then answers the requests under way, finishes its writes, and releases the
    folder. `started` is called with the URL once connections are accepted. Waits for its database at the start.

    Raises:
        ConfigError: the address cannot be listened on, or would be open to other machines without a key.
        FolderInUse: another process has the folder.
        StorageError: the database is down, or refuses the connection.
    """
    Guard(config)
    logs.configure(config.server)
    wait_for_database(config)
    with (
        listening(config.server.host, config.server.port) as listener,
        asyncio.Runner(loop_factory=_loop()) as runner,
    ):
        runner.run(_serve(config, listener, started))


def wait_for_database(config: Config) -> None:
    """Wait until the PostgreSQL server accepts connections, for `DATABASE_WAIT` at most: opening it then raises what is
    wrong. SIGTERM ends the process at once, also in a container, where it has no default effect."""
    url = rows_url(config)
    if not url.startswith("postgres"):
        return
    from memoranda.storage.sql.pglink import address, is_up

    where = address(url, "database.url")
    until = time.monotonic() + DATABASE_WAIT
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        while not is_up(where) and (left := until - time.monotonic()) > 0:
            log.warning(
                "waiting for PostgreSQL, which does not accept connections",
                extra={"database.url": where.shown, "seconds_left": round(left)},
            )
            time.sleep(PAUSE)
    finally:
        signal.signal(signal.SIGTERM, before)


def _loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of the server: a streamed token costs a third less on uvloop, which is not for every platform."""
    try:
        import uvloop  # imported late: only the server needs it
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(config: Config, listener: socket.socket, started: Callable[[str], None]) -> None:
    async with serving(config, listener) as server:
        started(url_of(listener))
        await server.serve(sockets=[listener])


@asynccontextmanager
async def serving(config: Config, listener: socket.socket, *, signals: bool = True) -> AsyncIterator[Server]:
    """The library opened and announced, and the server over it, whose `serve` the caller runs meanwhile. At the end,
    writes that were begun are finished. With `signals`, SIGINT and SIGTERM end it.

    Raises:
        FolderInUse: another process has the folder.
    """
    async with await Memoranda.open(config=config) as memoranda:
        app = create_app(memoranda)
        settings = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            http=cast(Any, partial(Connection, most=config.server.max_connections, idle={})),
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=int(config.server.request_timeout) + 1,
            ws_max_size=config.server.max_body_bytes,
            ws_per_message_deflate=False,
        )
        loading = asyncio.create_task(_load_models(memoranda))
        memoranda.announce(url_of(listener))
        try:
            yield Server(settings, app.state.answers, signals)
        finally:
            await app.state.answers.drain()
            loading.cancel()
            with suppress(asyncio.CancelledError):
                await loading


async def _load_models(memoranda: Memoranda) -> None:
    """Load the embedding model and the tokenizer of the language model, about a second each, so that the first request
    need not wait; hooks of clients time out after 0.3 seconds."""
    with suppress(EmbedderUnavailable):  # searches that need the model report it
        await memoranda.core.embedder.load()
    await memoranda.engine.planning.ready()
    log.info("models loaded")


def work(config: Config, started: Callable[[], None] = lambda: None) -> None:
    """Runs background jobs until SIGINT or SIGTERM; unfinished jobs go back to the queue. Waits for its database at the
    start.

    Raises:
        StorageError: the database is down, or refuses the connection.
        ConfigError: the rows are in a folder, which has one process and needs no other, or there are no workers.
    """
    if rows_url(config).startswith("sqlite"):
        raise ConfigError(
            "database.url",
            "a folder has one process: `memoranda serve` does its own work; workers go with PostgreSQL",
        )
    if not config.jobs.workers:
        raise ConfigError("jobs.workers", "is 0; give a worker 1 or more")
    logs.configure(config.server)
    wait_for_database(config)
    asyncio.run(_work(config, started))


async def _work(config: Config, started: Callable[[], None]) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with await Memoranda.open(config=config):
        started()
        await ended.wait()


class Server(uvicorn.Server):
    """Uvicorn that ends on a signal without re-raising it, so that the library is closed after it, or that leaves
    signals alone. Running streams may end before their connections are closed."""

    def __init__(self, settings: uvicorn.Config, answers: Answers, signals: bool) -> None:
        super().__init__(settings)
        self._answers = answers
        self._signals = signals

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await self._answers.state.live.end(self._answers.server.request_timeout)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM) if self._signals else ()
        for number in signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; port 0 takes a free one.

    Raises:
        ConfigError: the address is taken, or is not one of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio sets TCP_NODELAY only where the protocol is named; without it an answer waits 40 ms
        listener = socket.socket(family, kind, protocol)
    except OSError as exc:
        raise ConfigError("server.host", f"{host} cannot be listened on: {exc.strerror}") from exc
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as exc:
            says = f"{host}:{port} cannot be listened on ({exc.strerror})"
            raise ConfigError(
                "server.port", f"{says}; choose another (--port), or stop what is there"
            ) from exc
        yield listener


def url_of(listener: socket.socket) -> str:
    """The URL of the socket on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
