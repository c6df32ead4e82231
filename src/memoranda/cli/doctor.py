"""`memoranda doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace

from memoranda.app import blocking
from memoranda.app.bootstrap import folder_of
from memoranda.cli import checks
from memoranda.cli.checks import Finding, broken, note, ok
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.output import emit
from memoranda.cli.product import connect
from memoranda.config import explain
from memoranda.config.sections import Config, Setting
from memoranda.errors import ConfigError, FolderInUse, MemorandaError

DEFAULT = "default"
"""The origin of a setting that nothing sets."""
MARKS = {"ok": "ok    ", "note": "note  ", "broken": "BROKEN"}


@common_options()
def doctor(
    invocation: Invocation,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare every text and file with its hash, not a sample.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show also the settings that are the default.")
    ] = False,
) -> None:
    """Say what is in force, what is missing, and what to do about it. Ends with 1 when something is broken."""
    settings: list[Setting] = []
    try:
        config = invocation.config
    except ConfigError as exc:
        findings = [
            *checks.packages(requires("memoranda") or []),
            broken("configuration", str(exc), "correct the lines named"),
        ]
    else:
        settings = explain(config)
        findings = list(examine(config, verify))
    wrong = [finding for finding in findings if finding.state == "broken"]
    if invocation.as_json:
        emit({"ok": not wrong, "findings": findings, "configuration": settings})
    else:
        print_findings(findings, settings, every)
    if wrong:
        raise typer.Exit(1)


def examine(config: Config, verify: bool) -> Iterator[Finding]:
    """Run every check of a valid configuration, as far as each allows the next; with `verify` on all texts and
    files."""
    yield from checks.packages(requires("memoranda") or [])
    yield checks.sqlite()
    yield configuration(config)
    yield from checks.model(config)
    yield checks.language_model(config)
    yield checks.facts(config)
    try:
        folder = folder_of(config)
    except ConfigError as exc:
        yield broken("database", str(exc), "correct the file, or name another")
        return
    if folder is None and config.data != ":memory:":
        yield from check_rows(config, verify)
        return
    if config.data == ":memory:":
        yield from checks.dimension(config)
        yield note("folder", "none: what is remembered goes when the process ends", "choose one with --data")
        return
    path = Path(config.data)
    exists = path.exists()
    findings = list(checks.folder(path))
    yield from findings
    if not exists:
        yield from checks.dimension(config)
    elif not any(finding.state == "broken" for finding in findings):
        yield from check_rows(config, verify)


def configuration(config: Config) -> Finding:
    """Report where the configuration comes from, and which accepted keys have no effect yet."""
    idle = [setting.key for setting in config.sources.values() if "no effect" in setting.note]
    if idle:
        return note("configuration", f"accepted, but without effect yet: {', '.join(idle)}")
    origins = sorted({origin.split(" (")[0] for origin in config.origins.values()})
    return ok("configuration", f"from {', '.join(origins)}" if origins else "all defaults")


def check_rows(config: Config, verify: bool) -> Iterator[Finding]:
    """Check the rows: in the folder opened here, or through the server that has it open."""
    try:
        idle = replace(config, jobs=replace(config.jobs, workers=0))  # what waits is counted, not begun
        with blocking.open(config=idle) as product:
            if folder_of(config) is not None:
                yield ok("lock", "free")
            yield from checks.rows(product.inner.core.store)
            yield from checks.languages(product.inner.core)
            yield from checks.hashes(product.inner.core, verify)
    except FolderInUse as busy:
        if busy.url is None:
            yield note("lock", str(busy), "stop that process to look inside")
            return
        yield ok("lock", f"served at {busy.url}")
        with connect(busy.url, config) as client:
            stats = client.stats()
            yield from checks.counts("default", stats)
            waiting = {state: stats["jobs"].get(state, 0) for state in ("queued", "running")}
            yield checks.jobs(waiting)
        if verify:
            yield note("hashes", "not compared", "stop the server to compare every text and file")
    except ConfigError as exc:
        yield broken("configuration", str(exc), f"correct {exc.field}")
    except MemorandaError as exc:
        if folder_of(config) is None:
            yield broken("database", str(exc), "correct what the sentence names, then ask again")
        else:
            yield broken("folder", str(exc), "restore a backup, or choose another folder with --data")


def print_findings(findings: list[Finding], settings: list[Setting], every: bool) -> None:
    """Print the findings, the settings with the origin of each value, with `every` also the defaults, and the
    verdict."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        typer.echo(f"{MARKS[finding.state]}  {finding.name:<{width}}  {finding.found}")
        if finding.fix and finding.state == "note":
            typer.echo(f"        {'':<{width}}  {finding.fix}")
    changed = [setting for setting in settings if setting.origin != DEFAULT]
    print_settings("settings that are not the default", changed)
    defaults = [setting for setting in settings if setting.origin == DEFAULT]
    if every:
        print_settings("defaults", defaults)
    elif defaults:
        typer.echo(f"\n{len(defaults)} settings are the default: memoranda doctor --all shows them")
    wrong = [finding for finding in findings if finding.state == "broken"]
    typer.echo("\nOK" if not wrong else f"\n{len(wrong)} broken:")
    for finding in wrong:
        typer.echo(f"  {finding.name}: {finding.found}\n    fix: {finding.fix}")


def print_settings(heading: str, settings: list[Setting]) -> None:
    """Print settings with the origin of each value, if there are any."""
    if not settings:
        return
    typer.echo(f"\n{heading}")
    wide = max(len(setting.key) for setting in settings)
    for setting in settings:
        origin = "" if setting.origin == DEFAULT else f"  ({setting.origin})"
        remark = f"  [{setting.note}]" if setting.note else ""
        typer.echo(f"  {setting.key:<{wide}}  {msgspec.json.encode(setting.value).decode()}{origin}{remark}")
