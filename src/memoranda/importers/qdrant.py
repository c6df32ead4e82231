"""Collections of Qdrant: the folder of a local client, or a server.

Sources: qdrant_client/local/persistence.py of qdrant/qdrant-client, and the API's "scroll points" at
https://api.qdrant.tech.

A local folder has `meta.json` and, for each collection, `collection/NAME/storage.sqlite` with pickled points. They
are read without their classes: nothing of what a pickle names is imported or called. A server is
`http://host:6333/COLLECTION` (all collections without a name), with the key in `QDRANT_API_KEY`. Texts are embedded
again.
"""

from __future__ import annotations

import io
import os
import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from memoranda.errors import InvalidInput
from memoranda.importers.databases import Remote, copied
from memoranda.importers.fields import mapping, objects
from memoranda.importers.mapping import Fields, entry
from memoranda.importers.sources import Source, each_file
from memoranda.importers.values import Item, Skipped

if TYPE_CHECKING:  # the import takes a quarter of a second, and only servers need it
    import httpx

NAME = "qdrant"
STORAGE = "storage.sqlite"
PAGE = 256
SECONDS = 60.0
KEY = "QDRANT_API_KEY"


def matches(source: Source) -> bool:
    """Return True if the source is the folder of a local client."""
    return source.is_folder and "meta.json" in source.names and bool(_storages(source))


def read(source: Source) -> Iterator[Item]:
    """The points of all collections as notes."""
    yield from each_file(_storages(source), lambda name: _read_file(source, name))


def _storages(source: Source) -> list[str]:
    return [
        name for name in source.names
        if name.startswith("collection/") and PurePosixPath(name).name == STORAGE
    ]  # fmt: skip


def _read_file(source: Source, name: str) -> Iterator[Item]:
    collection = str(PurePosixPath(name).parent.relative_to("collection"))
    path = source.file(name)
    assert path is not None
    try:
        with copied(path) as c:
            for number, (raw,) in enumerate(c.execute("SELECT point FROM points ORDER BY rowid"), 1):
                yield from _pickled(
                    raw, f"collection {collection}, point {number}", collection, source.fields, source.name
                )
    except sqlite3.Error as exc:
        yield Skipped(kind="file", reason="is damaged", place=f"{name}: {exc}", failed=True)


class _Bag:
    """Replaces every class of a pickled point: it stores the state and has no behaviour."""

    def __init__(self, *values: Any) -> None:
        self.state: Any = values

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Reader(pickle.Unpickler):
    """Reads pickles without importing what they name."""

    def find_class(self, module: str, name: str) -> Any:
        """A class without behaviour, whatever is asked for."""
        return type(name, (_Bag,), {})


def _pickled(raw: Any, place: str, collection: str, fields: Fields, source: str) -> Iterator[Item]:
    try:
        point = _Reader(io.BytesIO(raw)).load()
        state = mapping(mapping(getattr(point, "state", None)).get("__dict__"))
    except (
        pickle.UnpicklingError,
        ValueError,
        TypeError,
        AttributeError,
        EOFError,
        IndexError,
        KeyError,
        RecursionError,
    ) as exc:
        yield Skipped(kind="note", reason="is damaged", place=f"{place}: {exc}", failed=True)
        return
    if "id" not in state:
        yield Skipped(kind="note", reason="is damaged", place=f"{place}: has no id", failed=True)
        return
    yield from _point(state, place, collection, fields, source)


def _point(point: dict[str, Any], place: str, collection: str, fields: Fields, source: str) -> Iterator[Item]:
    id_ = f"{collection}/{point['id']}"
    return entry(id_, mapping(point.get("payload")), place, fields, source=source, collection=collection)


def read_url(remote: Remote) -> Iterator[Item]:
    """The points of a collection of a server, or of all, as notes.

    Raises:
        InvalidInput: it does not answer, or not as Qdrant does.
    """
    import httpx

    parts = urlsplit(remote.url)
    named = parts.path.strip("/").removeprefix("collections/")
    headers = {"api-key": key} if (key := os.environ.get(KEY)) else {}
    base = f"{parts.scheme}://{parts.netloc}"
    with httpx.Client(base_url=base, headers=headers, timeout=SECONDS, trust_env=False) as http:
        for collection in [named] if named else _collections(http, remote):
            yield from _scrolled(http, remote, collection)


def _collections(http: httpx.Client, remote: Remote) -> list[str]:
    result = _result(http.build_request("GET", "/collections"), http, remote)
    return [str(each["name"]) for each in objects(result.get("collections")) if "name" in each]


def _scrolled(http: httpx.Client, remote: Remote, collection: str) -> Iterator[Item]:
    path = f"/collections/{quote(collection, safe='')}/points/scroll"
    offset: Any = None
    while True:
        asked = {"limit": PAGE, "with_payload": True, "with_vector": False, "offset": offset}
        result = _result(http.build_request("POST", path, json=asked), http, remote)
        for point in objects(result.get("points")):
            place = f"collection {collection}, point {point.get('id')}"
            yield from _point(point, place, collection, remote.fields, remote.host)
        offset = result.get("next_page_offset")
        if offset is None:
            return


def _result(request: httpx.Request, http: httpx.Client, remote: Remote) -> dict[str, Any]:
    import httpx

    try:
        answer = http.send(request)
        answer.raise_for_status()
        return mapping(mapping(answer.json()).get("result"))
    except (httpx.HTTPError, ValueError) as exc:
        raise InvalidInput("source", f"{remote.place} cannot be read: {exc}; a key goes into {KEY}") from exc
