"""What `memoranda doctor` looks at: each check tells what it found, and the fix when something is wrong."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import msgspec

from memoranda.config.sections import Config
from memoranda.document_qa.beginning import DIMENSION, check_dimension
from memoranda.errors import ConfigError, MemorandaError
from memoranda.providers.chat import open_model
from memoranda.providers.chat.base import Ask, Model
from memoranda.providers.embeddings import open_embedder
from memoranda.providers.embeddings.local import WEIGHTS, known_models
from memoranda.providers.embeddings.manifest import open_folder
from memoranda.store.store import Store

OLDEST_SQLITE = (3, 51, 3)
"""The release that fixed a reset of the write-ahead log which could lose pages."""
LEAST_FREE = 200_000_000
LOW_FREE = 2_000_000_000


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked at. `fix` says what to do about it when `state` is not `ok`."""

    name: str
    state: Literal["ok", "note", "broken"]
    found: str
    fix: str = ""


def ok(name: str, found: str) -> Finding:
    """Nothing to do."""
    return Finding(name=name, state="ok", found=found)


def note(name: str, found: str, fix: str = "") -> Finding:
    """It works, and there is something to know."""
    return Finding(name=name, state="note", found=found, fix=fix)


def broken(name: str, found: str, fix: str) -> Finding:
    """It does not work until the fix is done."""
    return Finding(name=name, state="broken", found=found, fix=fix)


def packages(wanted: Sequence[str]) -> Iterator[Finding]:
    """Whether every package of these requirements is there, but for those of extras."""
    yield ok("memoranda", f"{version('memoranda')} on Python {platform.python_version()}")
    missing = []
    for line in wanted:
        name = line.split(";")[0].strip()
        for sign in "<>=!~[ (":
            name = name.split(sign)[0]
        try:
            version(name)
        except PackageNotFoundError:
            if "extra ==" not in line:
                missing.append(name)
    if missing:
        yield broken(
            "packages", f"missing: {', '.join(missing)}", "install memoranda again, with what it depends on"
        )
    else:
        yield ok("packages", "all there")


def sqlite() -> Finding:
    """The SQLite that rows are kept with."""
    from pysqlite3 import dbapi2

    held = dbapi2.sqlite_version
    if dbapi2.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        return note(
            "sqlite", held, f"releases before {oldest} can lose pages of the log; install a newer pysqlite3"
        )
    return ok("sqlite", held)


def folder(path: Path) -> Iterator[Finding]:
    """The data folder: whether it can be written, who can read it, how much room there is."""
    if not path.exists():
        above = next(parent for parent in path.absolute().parents if parent.exists())
        if os.access(above, os.W_OK | os.X_OK):
            yield ok("folder", f"{path} is not there yet; the first write makes it")
        else:
            yield broken(
                "folder", f"{path} cannot be made in {above}", f"make {above} writable, or choose --data"
            )
        yield room(above)
        return
    if not path.is_dir():
        yield broken("folder", f"{path} is no folder", "choose another with --data")
        return
    unwritable = [one for one in (path, *path.glob("memoranda.*")) if not os.access(one, os.R_OK | os.W_OK)]
    if unwritable:
        yield broken(
            "folder",
            f"{unwritable[0]} cannot be read and written",
            f"chown or chmod {unwritable[0]} for this user",
        )
        return
    if stat.S_IMODE(path.stat().st_mode) & 0o007:
        yield note(
            "folder", f"{path}, open to every user of this machine", f"chmod o-rwx {path}, if others use it"
        )
    else:
        yield ok("folder", str(path))
    yield room(path)


def room(path: Path) -> Finding:
    """Free space where the folder is."""
    free = shutil.disk_usage(path).free
    if free < LEAST_FREE:
        return broken("disk", f"{free:,} bytes free", "free some space; writes fail when it runs out")
    if free < LOW_FREE:
        return note("disk", f"{free:,} bytes free", "compacting needs as much again as the database has")
    return ok("disk", f"{free:,} bytes free")


def model(config: Config) -> Iterator[Finding]:
    """The model's files against their checksums, then one text embedded."""
    url = config.embedder.url
    scheme, _, name = url.partition(":")
    try:
        if scheme == "local":
            held = open_folder(WEIGHTS / name if name in known_models() else Path(name).expanduser())
            held.verify()
            files = len(held.manifest.files)
            yield ok("model files", f"{files} as published" if files else "without checksums, as they are")
        embedder = open_embedder(url, threads=config.embedder.threads, settings=config.embedder)
        try:
            made = asyncio.run(embedder.embed(["Is anybody there?"], "query"))
        finally:
            embedder.close()
        yield ok("model", f"{embedder.model} answers, {made.vectors.shape[1]} dimensions")
    except MemorandaError as exc:
        yield broken(
            "model", str(exc), "search goes by words alone until then; or set embedder.url to another"
        )


def dimension(config: Config) -> Iterator[Finding]:
    """Whether memories of asking documents are to have vectors as the embedder makes them; nothing where no length is
    configured."""
    if DIMENSION not in config.sources:
        return
    try:
        embedder = open_embedder(
            config.embedder.url, threads=config.embedder.threads, settings=config.embedder
        )
        try:
            check_dimension(config, embedder.model, embedder.dim)
        finally:
            embedder.close()
    except ConfigError as exc:
        yield broken("configuration", str(exc), f"correct {exc.field}")
    except MemorandaError as exc:
        yield note("configuration", f"{DIMENSION} could not be checked: {exc}", "correct embedder.url first")


def language_model(config: Config) -> Finding:
    """The language model, asked for one word."""
    name = "language model"
    try:
        held = open_model(config.model)
        if held.quotes_only:
            return ok(name, "none configured: answers are quoted from what is found")
        try:
            asyncio.run(_one_word(held))
        finally:
            held.close()
    except MemorandaError as exc:
        return broken(
            name, str(exc), "until then answers are quoted from what is found; or correct model.url"
        )
    return ok(name, f"{held.name} answers")


async def _one_word(held: Model) -> None:
    ask = Ask(messages=[{"role": "user", "content": "Say yes."}], max_tokens=16, question="Say yes.")
    async with aclosing(held.answer(ask)) as pieces:  # type: ignore[type-var]
        async for _ in pieces:
            return


def rows(store: Store) -> Iterator[Finding]:
    """The database's own check, then for every tenant whether both indexes have what the rows have: by count, and
    some vectors one by one."""
    found = store.db.faults()
    if found:
        fix = "export what can be read, import it into a new folder, or restore a backup"
        yield broken("database", "; ".join(found), fix)
    elif store.db.health().get("row_security") is False:
        yield note(
            "database",
            "row security does not bind this role: the queries alone keep tenants apart",
            "use a role that is no superuser and has no BYPASSRLS",
        )
    else:
        yield ok("database", "consistent")
    tenants = [str(row[0]) for row in store.db.read(lambda c: c.all("tenants"))]
    for tenant in tenants:
        yield from counts(tenant, store.stats(tenant))
        looked, there = store.derived.sample(tenant)
        if looked != there:
            where = "" if tenant == "default" else f" of {tenant}"
            says = f"{there} of {looked} stored vectors are in it as they are stored"
            yield broken(f"sample{where}", says, "memoranda reindex --rebuild")
    if not tenants:
        yield ok("memories", "none yet")


def counts(tenant: str, told: dict[str, Any]) -> Iterator[Finding]:
    """Whether a tenant's counts agree: rows with words, vectors with the index, nothing owed."""
    where = "" if tenant == "default" else f" of {tenant}"
    memories, chunks, vectors = told["memories"], told["chunks"], told["vectors"]
    indexed, words, owed = told["indexed_vectors"], told["indexed_words"], told["unembedded"]
    rebuild = "memoranda reindex --rebuild"
    rows = memories + chunks
    said = f"{memories} and {chunks} chunks of documents" if chunks else f"{memories}"
    if (vectors, rows) == (indexed, words):
        yield ok(f"memories{where}", f"{said}, with {vectors} vectors, all in both indexes")
    if vectors != indexed:
        yield broken(f"index{where}", f"{indexed} of {vectors} vectors", rebuild)
    if rows != words:
        yield broken(f"words{where}", f"{words} of {rows} rows", rebuild)
    if owed:
        yield note(f"vectors{where}", f"{owed} rows wait for vectors of {told['model']}", "memoranda reindex")
    if behind := told["behind"]:
        yield broken(f"behind{where}", f"{behind} did not take the last changes", rebuild)
