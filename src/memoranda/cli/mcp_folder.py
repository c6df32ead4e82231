"""The server of a data folder, in this process or in another.

The process that gets the folder serves it at a port of this machine until its client leaves; the others send their
requests there. When that process ends, one of the others takes the folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import httpx

from memoranda.config.sections import Config
from memoranda.errors import ConfigError, FolderInUse
from memoranda.storage.data_lock import FolderLock

PATIENCE = 60.0
"""Seconds within which the folder has a server again after one has ended."""
PAUSE = 0.1
"""Seconds between two attempts."""


class Folder:
    """The server of a data folder: that of another process, or one of its own while it has the folder."""

    def __init__(self, config: Config, port: int = 0) -> None:
        """`port` is where this process serves the folder if it is free; 0, or where it is taken, is any free one."""
        self._config = config
        self._port = port
        self._url: str | None = None
        self._finding = asyncio.Lock()
        self._own = AsyncExitStack()
        self.serves = False
        """Whether this process has served the folder."""

    async def url(self, lost: str | None = None) -> str:
        """Return where the folder is served; another address than `lost`, whose server has ended.

        Raises:
            FolderInUse: another process has the folder and does not serve it.
            MemorandaError: the folder cannot be opened.
        """
        async with self._finding:
            if self._url is None or self._url == lost:
                self._url = await self._found()
            return self._url

    async def _found(self) -> str:
        clock = asyncio.get_running_loop().time
        end = clock() + PATIENCE
        while True:
            try:
                if self._config.database.url.startswith("sqlite"):
                    FolderLock(
                        Path(self._config.data)
                    ).release()  # is it free? opening it takes seconds of imports
                url = await self._own.enter_async_context(_served(self._config, self._port))
                self.serves = True
                return url
            except FolderInUse as exc:
                if exc.url is not None and await _answers(exc.url):
                    return exc.url
                if clock() > end:
                    raise
            await asyncio.sleep(PAUSE)

    async def close(self) -> None:
        """End the server if it is in this process."""
        await self._own.aclose()


@asynccontextmanager
async def _served(config: Config, port: int) -> AsyncIterator[str]:
    """Serve the folder at this port of this machine, or at a free one; yield the URL."""
    from memoranda.server.serve import listening, serving, url_of

    with ExitStack() as stack:
        try:
            listener = stack.enter_context(listening("127.0.0.1", port))
        except ConfigError:
            listener = stack.enter_context(listening("127.0.0.1", 0))
        async with serving(config, listener, signals=False) as server:
            running = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield url_of(listener)
            finally:
                server.should_exit = True
                await running


async def _answers(url: str) -> bool:
    """Return True if a server answers there."""
    try:
        async with httpx.AsyncClient(timeout=5.0) as client:
            await client.get(f"{url}/healthz")
    except httpx.TransportError:
        return False
    return True
