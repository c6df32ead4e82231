"""The checks of `memoranda doctor`: each returns findings, with the fix if something is wrong."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import msgspec

from memoranda.cli.facts import extracted_by
from memoranda.config.sections import Config
from memoranda.document_qa.feature import DIMENSION, check_dimension
from memoranda.errors import ConfigError, MemorandaError
from memoranda.knowledge.integrity import compare_files
from memoranda.providers.chat import open_model
from memoranda.providers.chat.base import Ask, Model
from memoranda.providers.embeddings import open_embedder
from memoranda.providers.embeddings.local import MODELS, known_models
from memoranda.providers.embeddings.manifest import open_folder
from memoranda.store.core import Core
from memoranda.store.covering import AUTO, ENGLISH, NEWEST_TEXTS, uncovered
from memoranda.store.index_checks import sample
from memoranda.store.job_kinds import LANES
from memoranda.store.store import Store
from memoranda.text.analysis import LEAST_SHARE

OLDEST_SQLITE = (3, 51, 3)
"""The release that fixed a reset of the write-ahead log which could lose pages."""
NAMED = 10
"""Ids of damaged texts or files, and languages, that are shown."""
LEAST_FREE = 200_000_000
LOW_FREE = 2_000_000_000


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check. `fix` says what to do if `state` is not `ok`."""

    name: str
    state: Literal["ok", "note", "broken"]
    found: str
    fix: str = ""


def ok(name: str, found: str) -> Finding:
    """Return a finding without anything to do."""
    return Finding(name=name, state="ok", found=found)


def note(name: str, found: str, fix: str = "") -> Finding:
    """Return a finding about something that works, with a remark."""
    return Finding(name=name, state="note", found=found, fix=fix)


def broken(name: str, found: str, fix: str) -> Finding:
    """Return a finding about something that does not work until the fix is done."""
    return Finding(name=name, state="broken", found=found, fix=fix)


def packages(wanted: Sequence[str]) -> Iterator[Finding]:
    """Check that every required package is installed, except those of extras and of other platforms."""
    yield ok("memoranda", f"{version('memoranda')} on Python {platform.python_version()}")
    missing = []
    for line in wanted:
        name, _, marker = line.partition(";")
        name = name.strip()
        for sign in "<>=!~[ (":
            name = name.split(sign)[0]
        try:
            version(name)
        except PackageNotFoundError:
            if _applies(marker):
                missing.append(name)
    if missing:
        yield broken(
            "packages", f"missing: {', '.join(missing)}", "install memoranda again, with what it depends on"
        )
    else:
        yield ok("packages", "all there")


def _applies(marker: str) -> bool:
    """Return False for a requirement of an extra or of another platform."""
    if "extra ==" in marker:
        return False
    platforms = re.findall(r"sys_platform (==|!=) ['\"](\w+)['\"]", marker)
    return all((sys.platform == name) == (sign == "==") for sign, name in platforms)


def sqlite() -> Finding:
    """Check the version of SQLite."""
    from pysqlite3 import dbapi2

    release = dbapi2.sqlite_version
    if dbapi2.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        return note(
            "sqlite",
            release,
            f"releases before {oldest} can lose pages of the log; install a newer pysqlite3",
        )
    return ok("sqlite", release)


def folder(path: Path) -> Iterator[Finding]:
    """Check the data folder: whether it is writable, who can read it, and the free space."""
    if not path.exists():
        above = next(parent for parent in path.absolute().parents if parent.exists())
        if os.access(above, os.W_OK | os.X_OK):
            yield ok("folder", f"{path} is not there yet; the first write makes it")
        else:
            yield broken(
                "folder", f"{path} cannot be made in {above}", f"make {above} writable, or choose --data"
            )
        yield free_space(above)
        return
    if not path.is_dir():
        yield broken("folder", f"{path} is no folder", "choose another with --data")
        return
    unwritable = [
        file for file in (path, *path.glob("memoranda.*")) if not os.access(file, os.R_OK | os.W_OK)
    ]
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
    yield free_space(path)


def free_space(path: Path) -> Finding:
    """Check the free space on the disk of the folder."""
    free = shutil.disk_usage(path).free
    if free < LEAST_FREE:
        return broken("disk", f"{free:,} bytes free", "free some space; writes fail when it runs out")
    if free < LOW_FREE:
        return note("disk", f"{free:,} bytes free", "compacting needs as much again as the database has")
    return ok("disk", f"{free:,} bytes free")


def model(config: Config) -> Iterator[Finding]:
    """Check the checksums of the model's files, then embed one text."""
    url = ENGLISH if config.embedder.url == AUTO else config.embedder.url
    scheme, _, name = url.partition(":")
    try:
        if scheme == "local":
            model_folder = open_folder(MODELS / name if name in known_models() else Path(name).expanduser())
            model_folder.verify()
            files = len(model_folder.manifest.files)
            yield ok("model files", f"{files} as published" if files else "without checksums, as they are")
        embedder = open_embedder(url, threads=config.embedder.threads, settings=config.embedder)
        try:
            embedded = asyncio.run(embedder.embed(["Is anybody there?"], "query"))
        finally:
            embedder.close()
        covers = "" if embedder.languages is None else f", covers {_named(embedder.languages)}"
        yield ok("model", f"{embedder.model} answers, {embedded.vectors.shape[1]} dimensions{covers}")
    except MemorandaError as exc:
        yield broken(
            "model", str(exc), "search goes by words alone until then; or set embedder.url to another"
        )


def _named(languages: Collection[str]) -> str:
    """Return the codes of a few languages, or how many there are."""
    return ", ".join(sorted(languages)) if len(languages) <= NAMED else f"{len(languages)} languages"


def dimension(config: Config) -> Iterator[Finding]:
    """Check that the configured vector length of document questions is the embedder's, if one is configured."""
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
    """Ask the language model for one word."""
    name = "language model"
    try:
        chat_model = open_model(config.model)
        if chat_model.quotes_only:
            return ok(name, "none configured: answers are quoted from what is found")
        try:
            asyncio.run(_one_word(chat_model))
        finally:
            chat_model.close()
    except MemorandaError as exc:
        return broken(
            name, str(exc), "until then answers are quoted from what is found; or correct model.url"
        )
    return ok(name, f"{chat_model.name} answers")


def facts(config: Config) -> Finding:
    """Report whether facts are extracted from conversations, and by what."""
    intended, found = extracted_by(config)
    return ok("facts", found) if intended else note("facts", found)


async def _one_word(chat_model: Model) -> None:
    ask = Ask(messages=[{"role": "user", "content": "Say yes."}], max_tokens=16, question="Say yes.")
    async with aclosing(chat_model.answer(ask)) as pieces:  # type: ignore[type-var]
        async for _ in pieces:
            return


def rows(store: Store) -> Iterator[Finding]:
    """Run the check of the database itself, then compare both indexes of every tenant with the rows: the counts, and a
    sample of the vectors."""
    faults = store.db.faults()
    if faults:
        fix = "export what can be read, import it into a new folder, or restore a backup"
        yield broken("database", "; ".join(faults), fix)
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
        sampled, equal = sample(store.derived, tenant)
        if sampled != equal:
            where = "" if tenant == "default" else f" of {tenant}"
            says = f"{equal} of {sampled} stored vectors are in it as they are stored"
            yield broken(f"sample{where}", says, "memoranda reindex --rebuild")
    if not tenants:
        yield ok("memories", "none yet")
    yield jobs(dict(store.db.read(lambda c: c.all("count_waiting_jobs", LANES))))


def languages(core: Core) -> Iterator[Finding]:
    """Note texts of a tenant in languages that the model of searches does not cover; a few may be mistaken."""
    embedder = core.embedder
    if embedder.languages is None:
        return
    fix = f"searches find them by keywords; set embedder.url to {AUTO}, or to a model that covers them"
    if core.config.embedder.url == AUTO:
        fix = f"searches find them by keywords; {AUTO} changes the model once there are more (docs/guides/embedders.md)"
    for (tenant,) in core.store.db.read(lambda c: c.all("tenants")):
        texts = core.store.newest_texts(tenant, NEWEST_TEXTS)
        counted = uncovered(texts, embedder.languages)
        some = [
            f"{code} {count}"
            for code, count in counted.most_common(NAMED)
            if count > LEAST_SHARE * len(texts)
        ]
        if some:
            where = "" if tenant == "default" else f" of {tenant}"
            says = f"of the newest {len(texts):,} texts, {embedder.model} does not cover: {', '.join(some)}"
            yield note(f"languages{where}", says, fix)


def jobs(counted: Mapping[str, int]) -> Finding:
    """Note jobs that wait or run, counted by kind or state."""
    unfinished = [f"{name} {count}" for name, count in counted.items() if count]
    if not unfinished:
        return ok("jobs", "none waiting")
    says = f"{sum(counted.values())} unfinished: {', '.join(unfinished)}"
    return note("jobs", says, "they go on while a process has the folder open; memoranda jobs lists them")


def hashes(core: Core, everything: bool) -> Iterator[Finding]:
    """Compare texts and files of every tenant with their hashes: all, or a sample."""
    tenants = [str(row[0]) for row in core.store.db.read(lambda c: c.all("tenants"))]
    for what, compare in (
        ("texts", core.store.compare_texts),
        ("files", partial(compare_files, core)),
    ):
        done = [compare(tenant, everything=everything) for tenant in tenants]
        count, damaged = sum(one.total for one in done), [id_ for one in done for id_ in one.damaged]
        if damaged:
            named = ", ".join(damaged[:NAMED]) + (", ..." if len(damaged) > NAMED else "")
            says = f"{len(damaged)} of {count:,} {what} are not what was written: {named}"
            yield broken(what, says, "restore a backup; until then they are neither returned nor quoted")
        elif count:
            yield ok(
                what, f"{count:,} compared with their hashes{'' if everything else '; --verify compares all'}"
            )


def counts(tenant: str, stats: dict[str, Any]) -> Iterator[Finding]:
    """Compare the counts of a tenant's rows and vectors with those of its indexes; note pending embeddings."""
    where = "" if tenant == "default" else f" of {tenant}"
    memories, chunks, vectors = stats["memories"], stats["chunks"], stats["vectors"]
    indexed, words, pending = stats["indexed_vectors"], stats["indexed_words"], stats["unembedded"]
    rebuild = "memoranda reindex --rebuild"
    rows = memories + chunks
    total = f"{memories} and {chunks} chunks of documents" if chunks else f"{memories}"
    if (vectors, rows) == (indexed, words):
        yield ok(f"memories{where}", f"{total}, with {vectors} vectors, all in both indexes")
    if vectors != indexed:
        yield broken(f"index{where}", f"{indexed} of {vectors} vectors", rebuild)
    if rows != words:
        yield broken(f"words{where}", f"{words} of {rows} rows", rebuild)
    if pending:
        yield note(
            f"vectors{where}", f"{pending} rows wait for vectors of {stats['model']}", "memoranda reindex"
        )
    if (decided := stats.get("embedder_note")) and tenant == "default":
        yield note("embedder", decided)
    if behind := stats["behind"]:
        yield broken(f"behind{where}", f"{behind} did not take the last changes", rebuild)
    for side in ("index", "words"):
        if failure := stats.get(side, {}).get("failure"):
            yield broken(f"{side}{where}", f"the last changes are not durable: {failure}", rebuild)
