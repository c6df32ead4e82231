"""The import of another system's data: its conversations become sessions, its memories and notes become memories.

`importing` is a generator without access to the store. It yields the writes and receives their results, so that the
library and the client run the same import.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from memoranda.app.history_report import TAKEN, HistoryImported, Stored
from memoranda.errors import Conflict, InvalidInput, MemorandaError, QuotaExceeded
from memoranda.importers.databases import Remote, is_url
from memoranda.importers.formats import ARCHIVE, FORMATS, OWN, format_of
from memoranda.importers.sources import Source
from memoranda.importers.values import Conversation, Entry, Item, Message, Skipped
from memoranda.memories.transfer import place_of
from memoranda.sessions.values import Around, Observed
from memoranda.storage.data_lock import refuse_live_database
from memoranda.store.forgotten import FORGOTTEN
from memoranda.store.validation import check_name
from memoranda.text.hashing import digest
from memoranda.text.stored import storable
from memoranda.types import MAX_ID_CHARS, SCOPE_FIELDS, Added

BATCH = 200
"""The most messages or memories in one write."""
BATCH_CHARS = 1 << 20
REFUSED = "is refused"
OPTIONAL = ("role", "importance", "confidence", "occurred_at", "valid_from", "invalid_at", "source_refs")
"""The fields of a memory that are left out where the source does not have them."""


class ImportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How data is imported: its format (None: as its content shows), the scope and user for all of it (None: as the
    data says), whether facts are extracted (None: as configured), whether nothing is stored, the names of fields in
    databases, see `importers.mapping`, and whether what was forgotten since the export is imported, too."""

    format: str | None = None
    scope: str | None = None
    user_id: str | None = None
    extraction: bool | None = None
    dry_run: bool = False
    fields: dict[str, str] = {}
    include_forgotten: bool = False


class Observe(NamedTuple):
    """Messages to be observed."""

    messages: list[dict[str, Any]]
    place: Around


class Add(NamedTuple):
    """Memories to be added."""

    memories: list[dict[str, Any]]


class Check(NamedTuple):
    """A write of a dry run: what would become of it."""

    write: Observe | Add


class Find(NamedTuple):
    """Memories of this program of which those are looked for that were forgotten after the export was made."""

    memories: list[dict[str, Any]]
    exported_at: datetime


Write: TypeAlias = Observe | Add | Check | Find
Import: TypeAlias = Generator[Write, Sequence[Stored] | None, HistoryImported]
"""An import: a generator that yields writes; it is sent what became of each part, or thrown the error."""
Storing: TypeAlias = Generator[Write, Sequence[Stored] | None, Sequence[Stored]]


class Piece(NamedTuple):
    """A message or memory to be stored, its first place in the source, and how often it occurs there in a row."""

    fields: dict[str, Any]
    place: str
    exported_at: datetime | None = None
    times: int = 1


def name_of(source: str | Path) -> str:
    """Return the name of a source for the rows that are imported from it: that of the file; of a database only that it
    is one, since its address may have a password."""
    return "database" if is_url(source) else " ".join(Path(source).name.split())[:200] or "file"


def importing(
    path: str | Path, options: ImportOptions, on_progress: Callable[[HistoryImported], None] | None = None
) -> Import:
    """Return the import of a file, folder, zip file or database, see `Memoranda.import_history`."""
    if not is_url(path):
        refuse_live_database(Path(path), "source")
    place = place_of(options.scope)
    check_name(options.user_id, "user_id")
    name = format_of(path, options.format)
    if name in (OWN, ARCHIVE):
        verb = "memories.import_from" if name == OWN else "archives.import_from"
        raise InvalidInput("source", f"{path} is an export of Memoranda; use {verb}")
    if place is not None and place["session_id"] is not None and FORMATS[name].conversations:
        raise InvalidInput(
            "scope", "conversations become sessions of their own; use user, agent, channel or global"
        )
    if options.fields and not FORMATS[name].has_fields:
        raise InvalidInput("map", f"{name} has fields of known names; leave it out")
    report = HistoryImported(format=name, dry_run=options.dry_run)
    writer = _Writer(name, options, place, report)
    with _items(path, name, options) as items:
        for item in items:
            if isinstance(item, Skipped):
                report.skip(item)
            elif isinstance(item, Conversation):
                yield from writer.conversation(item)
            else:
                yield from writer.entry(item)
            if on_progress is not None:
                on_progress(report)
        yield from writer.flush()
    return report


@contextmanager
def _items(path: str | Path, name: str, options: ImportOptions) -> Iterator[Iterator[Item]]:
    """Yield the items of a source."""
    read_url = FORMATS[name].read_url
    if not is_url(path):
        with Source(Path(path), options.fields) as source:
            yield FORMATS[name].read(source)
    elif read_url is None:
        raise InvalidInput("source", f"{name} is read from files; give the path of an export")
    else:
        yield read_url(Remote(str(path), options.fields))


def advance(work: Import, reply: Sequence[Stored] | MemorandaError | None) -> Write | HistoryImported:
    """Return the next write of an import, or its report, after the reply to the last write."""
    try:
        return work.throw(reply) if isinstance(reply, MemorandaError) else work.send(reply)
    except StopIteration as end:
        report: HistoryImported = end.value
        return report


class _Writer:
    """Turns items into writes and counts their results."""

    def __init__(
        self, name: str, options: ImportOptions, place: dict[str, str | None] | None, report: HistoryImported
    ) -> None:
        self._name = name
        self._options = options
        self._place = place
        self._report = report
        self._entries: dict[str, list[Piece]] = {}
        self._waiting = 0

    def conversation(self, item: Conversation) -> Generator[Write, Sequence[Stored] | None, None]:
        """Store the messages of a conversation."""
        if not item.messages:
            self._report.skip(
                Skipped(kind="conversation", reason="has no messages to import", place=item.place)
            )
            return
        around = self._around(item)
        stored: list[Stored] = []

        def write(pieces: Sequence[Piece]) -> Observe:
            return Observe([piece.fields for piece in pieces], around)

        for batch in _batches(self._messages(item)):
            stored += yield from self._stored("message", batch, write)
        self._report.count_stored("message", stored)
        if stored:
            states = {*stored}
            state: Stored = stored[0] if len(states) == 1 else "present"
            self._report.count_stored("conversation", [state])

    def _around(self, item: Conversation) -> Around:
        place = self._place or {}
        around = Around(
            session_id=self._id(item.id, item.id),
            channel_id=place.get("channel_id"),
            agent_id=place.get("agent_id"),
            extraction=self._options.extraction,
        )
        if self._place is not None or self._options.user_id is not None:
            around["user_id"] = self._options.user_id or place.get("user_id")
        return around

    def _id(self, readable: str, *parts: str) -> str:
        """Return the id of an imported item: readable if short enough, and deterministic."""
        whole = storable(f"{self._name}-{readable}")
        return whole if len(whole) <= MAX_ID_CHARS else f"{self._name}-{_digest(*parts)}"

    def _messages(self, item: Conversation) -> Sequence[Piece]:
        about: dict[str, Any] = {"imported_from": self._name, **item.metadata}
        if item.title is not None:
            about["title"] = item.title
        when = item.started_at
        seen: dict[str, int] = {}
        pieces = []
        for message in item.messages:
            when = message.occurred_at or when
            seen[message.id] = times = seen.get(message.id, 0) + 1
            parts = (
                (self._name, item.id, message.id)
                if times == 1
                else (self._name, item.id, message.id, str(times))
            )
            fields: dict[str, Any] = {
                "id": f"msg_{_digest(*parts)}",
                "role": message.role,
                "content": message.content,
                "metadata": about,
            }
            if when is not None:
                fields["occurred_at"] = when
            if message.speaker is not None:
                fields["speaker"] = message.speaker
            pieces.append(Piece(fields, _where(item, message)))
        return pieces

    def entry(self, item: Entry) -> Generator[Write, Sequence[Stored] | None, None]:
        """Store a memory, together with others of its kind."""
        pieces = self._entries.setdefault(item.kind, [])
        since = None if self._options.include_forgotten else item.exported_at
        pieces.append(Piece(self._memory(item), item.place, since))
        self._waiting += len(item.content)
        if len(pieces) >= BATCH or self._waiting > BATCH_CHARS:
            yield from self.flush()

    def flush(self) -> Generator[Write, Sequence[Stored] | None, None]:
        """Store the memories that are buffered for a batch of their kind. Those that have ended go first, in writes of
        their own: what begins again is compared with them after their ends are stored."""
        waiting, self._entries, self._waiting = self._entries, {}, 0
        for kind, pieces in waiting.items():
            ended = [piece for piece in pieces if "invalid_at" in piece.fields]
            others = [piece for piece in pieces if "invalid_at" not in piece.fields]
            for batch in (*_batches(ended), *_batches(others)):
                batch = yield from self._not_forgotten(kind, batch)
                if not batch:
                    continue
                stored = yield from self._stored(
                    kind, batch, lambda some: Add([piece.fields for piece in some])
                )
                self._report.count_stored(kind, stored)

    def _not_forgotten(
        self, kind: str, pieces: list[Piece]
    ) -> Generator[Write, Sequence[Stored] | None, list[Piece]]:
        """Return the pieces that were not forgotten after their export was made, and report the others. Refused ones
        are among those returned."""
        since = next((piece.exported_at for piece in pieces if piece.exported_at is not None), None)
        if since is None:
            return pieces
        try:
            found = (yield Find([piece.fields for piece in pieces], since)) or []
        except InvalidInput:
            half = len(pieces) // 2
            if not half:
                return pieces
            first = yield from self._not_forgotten(kind, pieces[:half])
            return [*first, *(yield from self._not_forgotten(kind, pieces[half:]))]
        gone = [
            piece.exported_at is not None and state == "forgotten"
            for piece, state in zip(pieces, found, strict=True)
        ]
        for piece in (piece for piece, each in zip(pieces, gone, strict=True) if each):
            for _ in range(piece.times):
                self._report.skip(Skipped(kind=kind, reason=FORGOTTEN, place=piece.fields["id"]))
        return [piece for piece, each in zip(pieces, gone, strict=True) if not each]

    def _memory(self, item: Entry) -> dict[str, Any]:
        ids: dict[str, str | None] = {
            key: value for key in SCOPE_FIELDS if (value := getattr(item, key)) is not None
        }
        if self._place is not None:
            ids = dict(self._place)
        if self._options.user_id is not None:
            ids["user_id"] = self._options.user_id
        fields: dict[str, Any] = {
            "id": item.memory_id or f"mem_{_digest(self._name, *filter(None, [item.source]), item.id)}",
            "content": item.content,
            "kind": item.kind,
            "source": self._name,
            "tags": item.tags,
            "metadata": {"imported_from": self._name, **item.metadata},
            **ids,
        }
        given = {key: getattr(item, key) for key in OPTIONAL}
        return fields | {key: value for key, value in given.items() if value is not None}

    def _stored(
        self, kind: str, pieces: Sequence[Piece], write: Callable[[Sequence[Piece]], Observe | Add]
    ) -> Storing:
        """Return what became of each piece that could be stored. Refused pieces are isolated by halving, and
        reported."""
        try:
            step = write(pieces)
            stored = (yield Check(step) if self._options.dry_run else step) or []
            again: Stored = "read" if self._options.dry_run else "present"
            return [*stored, *[again] * sum(piece.times - 1 for piece in pieces)]
        except QuotaExceeded:
            raise
        except (InvalidInput, Conflict) as exc:
            if len(pieces) == 1:
                reason = TAKEN if isinstance(exc, Conflict) else REFUSED
                place = pieces[0].place if isinstance(exc, Conflict) else f"{pieces[0].place}: {exc}"
                for _ in range(pieces[0].times):
                    self._report.skip(Skipped(kind=kind, reason=reason, place=place, failed=True))
                return []
        half = len(pieces) // 2
        first = yield from self._stored(kind, pieces[:half], write)
        return [*first, *(yield from self._stored(kind, pieces[half:], write))]


def forgotten_states(forgotten: Sequence[bool]) -> list[Stored]:
    """Return the reply to `Find`."""
    return ["forgotten" if each else "read" for each in forgotten]


def states(outcomes: Sequence[Added | Observed]) -> list[Stored]:
    """Return what became of the parts of a write."""
    return ["created" if outcome.created else "present" for outcome in outcomes]


def new_ends(memories: Sequence[dict[str, Any]], added: Sequence[Added]) -> dict[int, datetime]:
    """Return, by place, when memories have ended that were there already and hold: another system ended them since the
    last import. One whose versions changed here stays as it is."""
    return {
        place: fields["invalid_at"]
        for place, (fields, outcome) in enumerate(zip(memories, added, strict=True))
        if "invalid_at" in fields
        and not outcome.created
        and outcome.memory.id == fields["id"]
        and outcome.memory.invalid_at is None
        and not outcome.memory.metadata.get("changes")
    }


def _digest(*parts: str) -> str:
    return digest(*map(storable, parts))


def _where(item: Conversation, message: Message) -> str:
    return f"{item.place}, message {message.id}"


def _batches(pieces: Sequence[Piece]) -> Generator[list[Piece], None, None]:
    """Yield the pieces in batches in which each id occurs once, so that none is refused after a part of it is
    written. Equal ones become one."""
    batch: dict[str, Piece] = {}
    size = 0
    for piece in pieces:
        id_, length = piece.fields["id"], len(piece.fields["content"])
        same = batch.get(id_)
        if same is not None and same.fields == piece.fields:
            batch[id_] = same._replace(times=same.times + 1)
            continue
        if batch and (len(batch) == BATCH or size + length > BATCH_CHARS or same is not None):
            yield [*batch.values()]
            batch, size = {}, 0
        batch[id_] = piece
        size += length
    if batch:
        yield [*batch.values()]
