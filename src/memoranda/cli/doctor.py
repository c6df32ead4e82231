"""`memoranda doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import msgspec
import typer

from memoranda.app import blocking
from memoranda.app.bootstrap import folder_of
from memoranda.cli import checks
from memoranda.cli.checks import Finding, broken, note, ok
from memoranda.cli.options import ConfigFile, Data, Json, Settings
from memoranda.cli.output import emit
from memoranda.cli.product import configured, through
from memoranda.config import explain
from memoranda.config.sections import Config, Setting
from memoranda.errors import ConfigError, FolderInUse, MemorandaError

MARKS = {"ok": "ok    ", "note": "note  ", "broken": "BROKEN"}


def doctor(
    data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Say what is in force, what is missing, and what to do about it. Ends with 1 when something is broken."""
    force: list[Setting] = []
    try:
        held = configured(data, config, settings)
    except ConfigError as exc:
        found = [
            *checks.packages(requires("memoranda") or []),
            broken("configuration", str(exc), "correct the lines named"),
        ]
    else:
        force = explain(held)
        found = list(examined(held))
    wrong = [one for one in found if one.state == "broken"]
    if as_json:
        emit({"ok": not wrong, "findings": found, "configuration": force})
    else:
        tell(found, force)
    if wrong:
        raise typer.Exit(1)


def examined(config: Config) -> Iterator[Finding]:
    """Every check of a configuration that is right in itself, as far as each leads to the next."""
    yield from checks.packages(requires("memoranda") or [])
    yield checks.sqlite()
    yield configuration(config)
    yield from checks.model(config)
    yield checks.language_model(config)
    try:
        kept = folder_of(config)
    except ConfigError as exc:
        yield broken("database", str(exc), "correct the file, or name another")
        return
    if kept is None and config.data != ":memory:":
        yield from inside(config)
        return
    if config.data == ":memory:":
        yield from checks.dimension(config)
        yield note("folder", "none: what is remembered goes when the process ends", "choose one with --data")
        return
    path = Path(config.data)
    there = path.exists()
    findings = list(checks.folder(path))
    yield from findings
    if not there:
        yield from checks.dimension(config)
    elif not any(one.state == "broken" for one in findings):
        yield from inside(config)


def configuration(config: Config) -> Finding:
    """Where the configuration comes from, and which accepted keys do nothing yet."""
    idle = [one.key for one in config.sources.values() if "no effect" in one.note]
    if idle:
        return note("configuration", f"accepted, but without effect yet: {', '.join(idle)}")
    origins = sorted({origin.split(" (")[0] for origin in config.origins.values()})
    return ok("configuration", f"from {', '.join(origins)}" if origins else "all defaults")


def inside(config: Config) -> Iterator[Finding]:
    """The folder opened, or looked at through the server that has it."""
    try:
        with blocking.open(config=config) as opened:
            if folder_of(config) is not None:
                yield ok("lock", "free")
            yield from checks.rows(opened.inner.core.store)
    except FolderInUse as busy:
        if busy.url is None:
            yield note("lock", str(busy), "stop that process to look inside")
            return
        yield ok("lock", f"served at {busy.url}")
        with through(busy.url, config) as verbs:
            yield from checks.counts("default", verbs.stats())
    except ConfigError as exc:
        yield broken("configuration", str(exc), f"correct {exc.field}")
    except MemorandaError as exc:
        if folder_of(config) is None:
            yield broken("database", str(exc), "correct what the sentence names, then ask again")
        else:
            yield broken("folder", str(exc), "restore a backup, or choose another folder with --data")


def tell(found: list[Finding], force: list[Setting]) -> None:
    """The findings, the configuration in force with its origins, and the verdict, for people."""
    width = max(len(one.name) for one in found)
    for one in found:
        typer.echo(f"{MARKS[one.state]}  {one.name:<{width}}  {one.found}")
        if one.fix and one.state == "note":
            typer.echo(f"        {'':<{width}}  {one.fix}")
    if force:
        typer.echo("\nconfiguration in force")
        wide = max(len(one.key) for one in force)
        for setting in force:
            remark = f"  [{setting.note}]" if setting.note else ""
            value = msgspec.json.encode(setting.value).decode()
            typer.echo(f"  {setting.key:<{wide}}  {value}  ({setting.origin}){remark}")
    wrong = [one for one in found if one.state == "broken"]
    typer.echo("\nOK" if not wrong else f"\n{len(wrong)} broken:")
    for one in wrong:
        typer.echo(f"  {one.name}: {one.found}\n    fix: {one.fix}")
