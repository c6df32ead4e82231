"""`memoranda export` and `memoranda import`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import msgspec
import typer

from memoranda.app.bundle_files import Bundled, check_free, write_bundle
from memoranda.app.history_report import TAKEN
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import Kinds, Places, Scope, ScopeId, User, kinds_of, scope_of
from memoranda.cli.output import plain, say
from memoranda.cli.progress import bar
from memoranda.errors import InvalidInput
from memoranda.importers import portable_memory
from memoranda.importers.formats import ARCHIVE, OWN, format_of
from memoranda.importers.mapping import parsed
from memoranda.store.forgotten import FORGOTTEN

if TYPE_CHECKING:
    from memoranda.app.archive.writing import Exported
    from memoranda.app.history_report import HistoryImported
    from memoranda.memories.transfer import Imported

MOST_SHOWN = 20
"""Ids of one kind that are printed; --json has all."""
OVERRIDE = "--include-forgotten imports it"


@common_options()
def export(
    invocation: Invocation,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="FILE.zip is an archive of everything, FILE.mem a Portable Memory bundle [default: standard output].",
        ),
    ] = None,
    scope: Places = None,
    scope_id: ScopeId = None,
    user: User = None,
    kind: Kinds = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="With the vectors, so that an import needs no model.")
    ] = False,
) -> None:
    """Write everything into a zip file, or memories as JSONL or as a bundle of Portable Memory.

    JSONL is a header, then one memory a line. With --json, a receipt when there is a file.
    """
    place = scope_of(scope, scope_id, user, any_id=True)
    if output is not None and output.suffix.lower() == ".zip":
        _not_for_archives(scope=place, kind=kind)
        exported = invocation.product.archives.export_to(output, vectors=vectors)
        _show_archive(invocation, exported, output)
        return
    fields: dict[str, Any] = {"scopes": [place] if place else None, "kinds": kinds_of(kind)}
    if output is None:
        for line in invocation.memories.export(vectors=vectors, **fields):
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        return
    if output.suffix.lower() == ".mem":
        if vectors:
            raise typer.BadParameter("a bundle has no vectors; leave the option out", param_hint="--vectors")
        check_free(output)
        _show_bundle(invocation, write_bundle(output, invocation.memories.export(**fields)), output)
        return
    count = invocation.memories.export_to(output, vectors=vectors, **fields)
    invocation.show({"memories": count, "output": str(output)}, f"{count} memories written to {output}")


@common_options(creates_folder=True)
def import_(
    invocation: Invocation,
    source: Annotated[
        str,
        typer.Argument(
            help="An export of Memoranda; a file, folder, zip file or URL of another system; - reads standard input."
        ),
    ],
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help="The format [default: as the content shows]."),
    ] = None,
    scope: Scope = None,
    scope_id: ScopeId = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="The user to whom all of it belongs.")
    ] = None,
    extraction: Annotated[
        bool | None,
        typer.Option(
            "--extraction/--no-extraction", help="Extract facts from conversations [default: as configured]."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and report; store nothing.")] = False,
    include_forgotten: Annotated[
        bool,
        typer.Option("--include-forgotten", help="Also what was forgotten after the export was made."),
    ] = False,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="NAME=FIELD",
            help="A field of a database: table, id, text, date, user, agent or session; repeatable.",
        ),
    ] = None,
) -> None:
    """Import an export of Memoranda or of another system.

    What is there already is left alone, so importing twice changes nothing.
    """
    place = scope_of(scope, scope_id, everything=False)
    name = OWN if source == "-" and from_ is None else _format(source, from_)
    named = parsed(fields or ())
    if name == OWN:
        _only_for_others(user=user, extraction=extraction, dry_run=dry_run or None, map=fields)
        imported = invocation.memories.import_from(
            sys.stdin.buffer if source == "-" else source, scope=place, include_forgotten=include_forgotten
        )
        _show_imported(invocation, imported)
        return
    if name == ARCHIVE:
        _only_for_others(extraction=extraction, map=fields)
    elif name != portable_memory.NAME:
        _only_for_others(include_forgotten=include_forgotten or None)
    product = invocation.product  # opened before the progress bar begins
    with bar(f"Importing {name}", quiet=invocation.as_json) as show_progress:
        options = _Common(
            scope=place,
            user_id=user,
            dry_run=dry_run,
            include_forgotten=include_forgotten,
            on_progress=lambda report: show_progress(report.read, None, ""),
        )
        if name == ARCHIVE:
            report = product.archives.import_from(source, **options)
        else:
            report = product.import_history(
                source, format=name, extraction=extraction, fields=named, **options
            )
    _show_history(invocation, report)


class _Common(TypedDict):
    """What archives and exports of other systems are both imported with."""

    scope: str | None
    user_id: str | None
    dry_run: bool
    include_forgotten: bool
    on_progress: Callable[[HistoryImported], None]


def _not_for_archives(**options: object) -> None:
    """Refuse the options that select memories: an archive has everything."""
    for name, value in options.items():
        if value is not None:
            says = "is for memories as JSONL, an archive has everything; leave it out, or end the file's name in .jsonl"
            raise typer.BadParameter(says, param_hint=f"--{name}")


def _show_archive(invocation: Invocation, exported: Exported, output: Path) -> None:
    counts = [f"{count:,} {name.replace('_', ' ')}" for name, count in exported.rows.items() if count]
    invocation.show(
        {**msgspec.to_builtins(exported), "output": str(output)},
        f"{output}: {exported.bytes:,} bytes; {', '.join(counts) or 'nothing'}",
    )
    if exported.missing:
        say(f"{len(exported.missing)} files were deleted meanwhile; their bytes are not in the archive")


def _show_bundle(invocation: Invocation, bundled: Bundled, output: Path) -> None:
    count = bundled.episodes + bundled.facts
    invocation.show(
        {"memories": count, **msgspec.to_builtins(bundled), "output": str(output)},
        f"{count} memories written to {output}: {bundled.facts} facts, {bundled.episodes} others",
    )
    if bundled.archived:
        say(f"{bundled.archived} archived memories are not in the bundle")
    if bundled.undone:
        say(f"{bundled.undone} facts whose change was undone are not in the bundle")
    if bundled.items:
        say(f"{bundled.items} memories of the kind item are not in the bundle; archives and JSONL have them")


def _format(source: str, name: str | None) -> str:
    if source == "-" and name != OWN:
        raise InvalidInput(
            "source", "only an export of Memoranda can be read from standard input; give a path"
        )
    return format_of(source, name)


def _only_for_others(**options: object) -> None:
    """Refuse the options that an export of Memoranda does not take."""
    for name, value in options.items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            raise typer.BadParameter("does not apply to this format; leave it out", param_hint=flag)


def _show_imported(invocation: Invocation, imported: Imported) -> None:
    invocation.show(
        imported,
        f"{imported.read} memories read: {imported.created} new, {imported.present} were there already",
    )
    if imported.forgotten:
        first = ", ".join(imported.forgotten[:MOST_SHOWN])
        say(f"{len(imported.forgotten)} were forgotten after the export was made and left out: {first}")
        say(OVERRIDE)
    if imported.conflicts:
        first = ", ".join(imported.conflicts[:3])
        say(f"{len(imported.conflicts)} ids name another text here and were left alone: {first}")
        raise typer.Exit(1)


def _show_history(invocation: Invocation, report: HistoryImported) -> None:
    invocation.show(report, "\n".join(_history_lines(report)))
    if any(group.reason == FORGOTTEN for group in report.skipped):
        say(OVERRIDE)
    if report.failed:
        say(f"{report.failed} parts are damaged or could not be stored")
        if any(group.reason == TAKEN for group in report.skipped):
            say(
                "what is stored already stays as it is; forget it to import it anew, or give the folder of"
                " another source with the same names another name"
            )
        raise typer.Exit(1)


def _history_lines(report: HistoryImported) -> Iterator[str]:
    yield f"{report.format}{', nothing was stored' if report.dry_run else ''}"
    for kind, tally in report.imported.items():
        counted = tally.created + tally.present
        state = f": {tally.created:,} new, {tally.present:,} were there already" if counted else ""
        state += f", {tally.ended:,} of them have ended since" if tally.ended else ""
        yield f"  {kind:<12} {tally.read:>9,}{state}"
    for group in report.skipped:
        yield f"  not imported {group.count:>9,}  {plain(group.kind)}: {plain(group.reason)}"
        if (
            group.failed or group.kind == "date" or group.reason == FORGOTTEN
        ):  # an item was imported with another date
            yield from (f"    {plain(place)}" for place in group.places[:MOST_SHOWN])
