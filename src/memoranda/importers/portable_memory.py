"""Bundles of Portable Memory: a folder `NAME.mem`, or a zip file of one.

Sources: README.md, portable_memory/format.py, records.py and tombstone.py of MacPaw/portable-memory.

A bundle has `manifest.json` (`format`, `files` with the SHA-256 sum of each), a file `items/KIND.jsonl` for each kind
of records, and `audit/tombstones.jsonl`, which names what was deleted. Records that this program writes have the fields
of their memories under `memoranda`, see `app.bundle_files`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from memoranda.clock import EPOCH
from memoranda.importers import bundle_records
from memoranda.importers.bundle_records import Names
from memoranda.importers.dates import moment
from memoranda.importers.fields import items, mapping, name, objects, text
from memoranda.importers.json_stream import CHUNK
from memoranda.importers.sources import Source, each_file, left_out
from memoranda.importers.values import Entry, Item, Skipped

NAME = "portable-memory"
MANIFEST = "manifest.json"
SUMS = "CHECKSUMS"
ITEMS = "items"
TOMBSTONES = "audit/tombstones.jsonl"
MAJOR = "1"
"""The major version of the formats that are read."""
Reader: TypeAlias = Callable[[dict[str, Any], str], Iterator[Item]]
"""Reads one record that stands at a place."""
_RECORDS = re.compile(rf"{ITEMS}/([^/]+)\.jsonl")
_DERIVED = ("factIDs", "edgeIDs", "entityIDs", "chunkIDs")
_PARENTS = {"fact": ("episodeID",), "chunk": ("resourceID",), "edge": ("srcEntityID", "dstEntityID")}
"""The fields that name other records, without which a record is not imported."""
_NAMES = {"context": "label", "entity": "canonicalName", "resource": "title"}
"""The fields that name what other records refer to."""


class _Bundle(NamedTuple):
    """A bundle in a source: what stands before the names of its files, its manifest, and the sums by file."""

    source: Source
    root: str
    manifest: dict[str, Any]
    sums: dict[str, str]

    @property
    def files(self) -> list[str]:
        """The names of its files, without its root."""
        return [each.removeprefix(self.root) for each in self.source.names if each.startswith(self.root)]


def matches(source: Source) -> bool:
    """Return True if the source has the manifest of a bundle."""
    return _bundle(source) is not None


def read(source: Source) -> Iterator[Item]:
    """The records as notes, facts and documents; nothing if it is not known what was deleted."""
    bundle = _bundle(source)
    if bundle is None:
        yield Skipped(kind="file", reason="is no manifest of a bundle", place=MANIFEST, failed=True)
        yield from left_out(source, [])
        return
    root = bundle.root
    used = {SUMS, *(each for each in bundle.files if _RECORDS.fullmatch(each) or each == TOMBSTONES)}
    version = text(bundle.manifest.get("format"))
    if version.partition(".")[0] == MAJOR:
        yield from _records(bundle, sorted(used))
    else:
        reason = f"is of another format than {MAJOR}"
        yield Skipped(kind="file", reason=reason, place=f"{root}{MANIFEST}: {version}", failed=True)
    yield from left_out(source, [f"{root}{each}" for each in (MANIFEST, *used)])


def _bundle(source: Source) -> _Bundle | None:
    """The bundle at the top of a source, or in the folder that a zip file has at its top."""
    for file in source.names:
        above, _, last = file.rpartition("/")
        if last != MANIFEST or "/" in above or (above and source.file(file) is not None):
            continue
        for value in source.head(file)[:1]:
            if "conformanceLevel" in value and "files" in value:
                listed = objects(value["files"])
                sums = {text(each.get("path")): text(each.get("sha256")) for each in listed}
                return _Bundle(source, file.removesuffix(MANIFEST), value, sums)
    return None


def _records(bundle: _Bundle, files: list[str]) -> Iterator[Item]:
    sound: list[str] = []
    yield from _checked(bundle, files, sound)
    deleted: set[str] = set()
    if TOMBSTONES in {*files, *bundle.sums}:
        damage = list(_deleted(bundle, deleted)) if TOMBSTONES in sound else []
        yield from damage
        if damage or TOMBSTONES not in sound:
            reason = "is not imported: what was deleted cannot be read"
            yield Skipped(kind="bundle", reason=reason, place=f"{bundle.root}{TOMBSTONES}", failed=True)
            return
    records = [file for file in sound if _RECORDS.fullmatch(file)]
    for file in records:
        for _ in _each(bundle, file, partial(_withdrawn, deleted)):
            pass  # damage is reported below
    names = _names(bundle, sound, deleted)
    exported = partial(_exported, moment(bundle.manifest.get("createdAt")) or EPOCH)
    for file in records:
        if match := _RECORDS.fullmatch(file):
            yield from map(exported, _each(bundle, file, partial(_item, match[1], deleted, names)))


def _checked(bundle: _Bundle, files: list[str], sound: list[str]) -> Iterator[Item]:
    """Add the files to `sound` that are those of the manifest, and report the others."""
    expected = {**bundle.sums, SUMS: text(bundle.manifest.get("bundleDigest"))}
    there = {*bundle.files}

    def check(file: str) -> Iterator[Item]:
        reason = ""
        if file not in there:
            reason = "is missing"
        elif file not in expected:
            reason = "is not listed in the manifest"
        elif _sum(bundle, file) != expected[file].lower():
            reason = "does not match its checksum"
        if reason:
            yield Skipped(kind="file", reason=reason, place=f"{bundle.root}{file}", failed=True)
        else:
            sound.append(file)

    wanted = {*files, *(each for each in bundle.sums if each.startswith(f"{ITEMS}/") or each == TOMBSTONES)}
    for file in sorted(wanted if expected[SUMS] else wanted - {SUMS}):
        yield from each_file([file], check)


def _sum(bundle: _Bundle, file: str) -> str:
    summed = hashlib.sha256()
    with bundle.source.open(f"{bundle.root}{file}") as stream:
        while chunk := stream.read(CHUNK):
            summed.update(chunk)
    return summed.hexdigest()


def _each(bundle: _Bundle, file: str, read_one: Reader) -> Iterator[Item]:
    """The items of the records of a file, and the damage in it."""

    def read_file(whole: str) -> Iterator[Item]:
        if bundle.source.is_empty(whole):
            return
        for record in bundle.source.records(whole):
            place = f"{whole}, line {record.number}"
            if record.problem is not None or not isinstance(record.value, dict):
                why = record.problem or "is not an object"
                yield Skipped(kind="record", reason="is damaged", place=f"{place} {why}", failed=True)
            else:
                yield from read_one(record.value, place)

    yield from each_file([f"{bundle.root}{file}"], read_file)


def _deleted(bundle: _Bundle, deleted: set[str]) -> Iterator[Item]:
    """Add the ids to `deleted` that the tombstones name, and report the damage in them."""

    def read_one(value: dict[str, Any], place: str) -> Iterator[Item]:
        target = name(value.get("targetID"))
        if target is None:
            yield Skipped(kind="tombstone", reason="has no targetID", place=place, failed=True)
            return
        derived = mapping(value.get("derived"))
        deleted.add(target)
        deleted.update(id_ for key in _DERIVED for each in items(derived.get(key)) if (id_ := name(each)))

    yield from _each(bundle, TOMBSTONES, read_one)


def _names(bundle: _Bundle, sound: list[str], deleted: set[str]) -> Names:
    """What records refer to that is not deleted, by kind and id. Damage is reported where the records themselves are
    read."""
    names: Names = {kind: {} for kind in _NAMES}
    for kind, field in _NAMES.items():
        if (file := f"{ITEMS}/{kind}.jsonl") in sound:
            for _ in _each(bundle, file, partial(_name, names[kind], field)):
                pass
        for id_ in deleted:
            names[kind].pop(id_, None)
    return names


def _exported(at: datetime, item: Item) -> Item:
    """Return the item with the time of the bundle if it is a memory of this program."""
    ours = isinstance(item, Entry) and item.memory_id is not None
    return replace(item, exported_at=at) if ours else item


def _withdrawn(deleted: set[str], value: dict[str, Any], place: str) -> Iterator[Item]:
    """Add the id of a record that has `deletedAt`."""
    if value.get("deletedAt") and (id_ := name(value.get("id"))):
        deleted.add(id_)
    yield from ()


def _name(labels: dict[str, str], field: str, value: dict[str, Any], place: str) -> Iterator[Item]:
    if (id_ := name(value.get("id"))) and (label := name(value.get(field))):
        labels[id_] = label
    yield from ()


def _item(kind: str, deleted: set[str], names: Names, value: dict[str, Any], place: str) -> Iterator[Item]:
    ids = {name(value.get(key)) for key in ("id", *_PARENTS.get(kind, ()))}
    if ids.isdisjoint(deleted) and not value.get("deletedAt"):
        yield from bundle_records.read(kind, value, place, names)
    else:
        known = kind if kind in bundle_records.KINDS else "record"
        yield Skipped(kind=known, reason="is deleted in the bundle", place=place)
