"""Clients of a server: the interface and the exceptions of an open folder, for coroutines and for blocking callers."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, TypeVar

from memoranda.app.blocking.workspace import BlockingFeatures
from memoranda.app.history_import import Add, Import, Observe
from memoranda.app.history_report import HistoryImported, Stored
from memoranda.app.import_writes import import_history
from memoranda.app.workspace import Features
from memoranda.client.features import REMOTE
from memoranda.client.transport import BlockingWire
from memoranda.client.wire import Wire
from memoranda.concurrency.portal import Inline

T = TypeVar("T")


class AsyncClient(Features):
    """A client of the server at `url`, with `key` if it requires one, for `user` if one is named. What it writes is
    marked as an import of the name `importing`, if there is one. Days without a zone are those of `time_zone`, such as
    `Europe/Berlin`, and so is the day of what is sent in UTC. Close it, or use it in an `async with`.

    Every method raises StorageError when the server cannot be reached, NotImplementedError when servers do not offer
    it, and otherwise the errors of the library.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        user: str | None = None,
        importing: str | None = None,
        time_zone: str | None = None,
        wire: type[Wire] = Wire,
    ) -> None:
        self.url = url
        self._as = {"key": key, "user": user, "time_zone": time_zone}
        self._wire = wire(url, importing=importing, **self._as)

    def feature(self, kind: type[T]) -> T:
        """See `Features.feature`."""
        if kind not in REMOTE:
            says = f"{kind.__name__} are not offered by a server; use them where the data folder is open"
            raise NotImplementedError(says)
        made: T = REMOTE[kind](self._wire)
        return made

    async def imported(self, work: Import, name: str) -> HistoryImported:
        """See `Features.imported`."""
        async with AsyncClient(self.url, importing=name, wire=type(self._wire), **self._as) as importer:
            on_thread = self._wire.on_thread
            return await import_history(work, importer.memories, importer.sessions, _read, on_thread)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._wire.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _read(write: Observe | Add) -> Sequence[Stored]:
    parts = write.messages if isinstance(write, Observe) else write.memories
    return ["read"] * len(parts)


class Client(BlockingFeatures):
    """`AsyncClient` for callers without an event loop. Thread-safe; close it, or use it in a `with`."""

    inner: AsyncClient

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        user: str | None = None,
        importing: str | None = None,
        time_zone: str | None = None,
    ) -> None:
        self.url = url
        super().__init__(
            AsyncClient(url, key, user=user, importing=importing, time_zone=time_zone, wire=BlockingWire),
            Inline(),
        )

    def __getattr__(self, name: str) -> Any:
        """Return a method of `memories`, which are those of a client, too."""
        if name.startswith("_") or name == "memories":
            raise AttributeError(name)
        return getattr(self.memories, name)

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self.portal.call(self.inner.close())

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(
    url: str, key: str | None = None, *, user: str | None = None, time_zone: str | None = None
) -> Client:
    """Return a client of the server at `url`, see `AsyncClient`."""
    return Client(url, key, user=user, time_zone=time_zone)
