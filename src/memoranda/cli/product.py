"""The product that a command works with: the data folder opened by this process, or the server that has it open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from memoranda.cli.options import pairs
from memoranda.cli.output import say
from memoranda.config import load
from memoranda.config.sections import Config
from memoranda.errors import FolderInUse, IndexUnavailable, NotFound
from memoranda.storage.data_lock import DATABASE, refuse_lost_database

if TYPE_CHECKING:  # importing the application takes two seconds, and a folder that is served is not opened
    from memoranda.app.blocking.memoranda import BlockingMemoranda
    from memoranda.client.client import Client

Product: TypeAlias = "BlockingMemoranda | Client"
"""The whole application, over an open folder or a server."""


def load_config(data: Path | None, file: Path | None, settings: list[str] | None) -> Config:
    """Return the configuration that the options, the environment and the file make.

    Raises:
        ConfigError: a key or value is wrong.
    """
    overrides = pairs(settings, "--set")
    if data is not None:
        overrides["data"] = str(data)
    return load(file, overrides=overrides)


def require_folder(config: Config) -> None:
    """Check that the data folder has a database, if SQLite keeps the rows in it.

    Raises:
        NotFound: there is no data folder.
        StorageError: its uploads or indexes are there, and its database is not.
    """
    from memoranda.app.bootstrap import folder_of, rows_url

    folder = folder_of(config)
    if folder is None or not rows_url(config).startswith("sqlite") or (folder / DATABASE).exists():
        return
    if folder.is_dir():
        refuse_lost_database(folder)
    raise NotFound(
        f"there is no data folder at {folder} yet; name another with --data, or make it with"
        " memoranda add, index, import or serve"
    )


@contextmanager
def open_product(config: Config) -> Iterator[Product]:
    """Open the data folder, or connect to the server that has it open.

    Raises:
        FolderInUse: another process has the folder open and serves nothing.
    """
    from memoranda.app import blocking
    from memoranda.app.bootstrap import folder_of

    folder = folder_of(config)
    made = folder is not None and not folder.exists()
    try:
        product = blocking.open(config=config)
    except FolderInUse as busy:
        if busy.url is None:
            raise
        url = busy.url
    else:
        with product:
            _await_indexes(product)
            yield product
        if made:
            say(f"made the data folder {folder}")
        return
    say(f"{config.data} is served at {url}; going through it")
    with connect(url, config) as client:
        yield client


def _await_indexes(product: BlockingMemoranda) -> None:
    """Wait until an index that lacks many rows has them: a command ends before that is done in the background."""
    derived = product.inner.core.store.derived
    if derived.behind:
        say("the indexes lack many memories; bringing them up to date first")
        with suppress(IndexUnavailable):  # searches say which did not answer
            derived.repair()


@contextmanager
def connect(url: str, config: Config) -> Iterator[Client]:
    """Connect to a running server, with an admin key of the default tenant if the configuration has keys.

    Raises:
        ConfigError: it has keys, and none of them is such a key.
    """
    from memoranda.client.client import Client  # its HTTP library takes a quarter of a second to import

    with Client(url, config.operator_key()) as client:
        yield client
