"""From flags to memories: the folder opened by this process, or reached through the server that has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from memoranda.cli.options import pairs
from memoranda.cli.output import say
from memoranda.config import load
from memoranda.config.sections import Config
from memoranda.errors import FolderInUse

if (
    TYPE_CHECKING
):  # what opens a folder takes two seconds to import, and a folder that is served is not opened
    from memoranda.app.blocking.knowledge import BlockingKnowledge
    from memoranda.app.blocking.memoranda import BlockingMemoranda, BlockingMemories
    from memoranda.client.client import Client
    from memoranda.client.knowledge import ClientKnowledge

Verbs: TypeAlias = "BlockingMemories | Client"
"""The verbs of memory: of a folder that this process opened, or of a server."""
Shelves: TypeAlias = "BlockingKnowledge | ClientKnowledge"
"""Files and vector stores, in the same two ways."""
House: TypeAlias = "BlockingMemoranda | Client"
"""All that is in a folder, in the same two ways."""


def configured(data: Path | None, file: Path | None, settings: list[str] | None) -> Config:
    """The configuration that the flags, the environment and the file make.

    Raises:
        ConfigError: a key or value is wrong.
    """
    overrides = pairs(settings, "--set")
    if data is not None:
        overrides["data"] = str(data)
    return load(file, overrides=overrides)


@contextmanager
def memories(config: Config) -> Iterator[Verbs]:
    """The folder's memories. When a server has the folder open, the verbs go through it.

    Raises:
        FolderInUse: another process has the folder and serves nothing.
    """
    with house(config) as held:
        yield memories_of(held)


def memories_of(held: House) -> Verbs:
    """The memories of an open folder, or of a server."""
    from memoranda.app.blocking.memoranda import BlockingMemoranda

    return held.memories if isinstance(held, BlockingMemoranda) else held


@contextmanager
def knowledge(config: Config) -> Iterator[Shelves]:
    """The folder's files and vector stores, as `memories` gives its memories."""
    with house(config) as held:
        yield held.knowledge


@contextmanager
def house(config: Config) -> Iterator[House]:
    """All that is in the folder, as `memories` gives its memories."""
    from memoranda.app import blocking

    try:
        opened = blocking.open(config=config)
    except FolderInUse as busy:
        if busy.url is None:
            raise
        url = busy.url
    else:
        with opened:
            yield opened
        return
    say(f"{config.data} is served at {url}; going through it")
    with through(url, config) as remote:
        yield remote


@contextmanager
def through(url: str, config: Config) -> Iterator[Client]:
    """The verbs of a running server, with the first admin key that the configuration has, if any."""
    from memoranda.client.client import Client  # its HTTP library takes a quarter of a second to import

    key = next((each.key for each in config.keys if each.role == "admin"), None)
    with Client(url, key) as client:
        yield client
