"""Bundles of Portable Memory: what a record becomes, deletions, and damage."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.bundle_records import OWN
from memoranda.importers.formats import FORMATS, detected
from memoranda.importers.sources import Source
from memoranda.importers.values import Entry, Item, Skipped
from support.exports import PORTABLE, TOMBSTONE, bundle, packed, portable_episode, portable_fact

NAME = "portable-memory"


def items(path: Path) -> list[Item]:
    """What the reader yields."""
    with Source(path) as source:
        return list(FORMATS[NAME].read(source))


def entries(found: list[Item]) -> dict[str, Entry]:
    """The memories by text."""
    return {each.content: each for each in found if isinstance(each, Entry)}


def failed(found: list[Item]) -> list[tuple[str, str]]:
    """What is damaged: the place and the reason."""
    return [(each.place, each.reason) for each in found if isinstance(each, Skipped) and each.failed]


def test_records_keep_their_dates_validity_tags_and_fields(tmp_path: Path) -> None:
    ended = portable_fact("f9", "Ada is in Rome", "2024-01-01", tValidTo="2025-01-01", supersededBy="f2")
    records = {**PORTABLE, "fact": [*PORTABLE["fact"], ended]}
    found = entries(items(packed(bundle(records, [TOMBSTONE]), "folder", tmp_path / "a.mem")))
    episode = found["Ada planted coffee."]
    assert (episode.kind, episode.tags, episode.confidence) == ("note", ["plants", "Garden"], 0.7)
    assert episode.occurred_at == datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    assert episode.metadata["mood"] == "glad"
    fact = found["Ada is in Rome"]
    assert (fact.kind, fact.metadata["supersededBy"]) == ("fact", "f2")
    assert (fact.valid_from, fact.invalid_at) == (
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2025, 1, 1, tzinfo=UTC),
    )
    assert found["Ada works at Acme"].valid_from == datetime(2023, 5, 1, tzinfo=UTC)
    assert found["Sow in May."].metadata["title"] == "Plan"
    assert {"Ada: Gardener", "language: Welsh", "Water\ndry soil\n1. Fill\n2. Pour"} <= found.keys()


@pytest.mark.parametrize("above", ["", "a.mem/"])
def test_a_zip_file_of_a_bundle_is_read(above: str, tmp_path: Path) -> None:
    files = bundle(PORTABLE, [TOMBSTONE])
    path = packed({f"{above}{file}": content for file, content in files.items()}, "zip", tmp_path / "a")
    assert detected(path) == NAME
    assert len(entries(items(path))) == 9


def test_what_belongs_to_a_deleted_record_is_not_imported(tmp_path: Path) -> None:
    derived = {**TOMBSTONE, "targetID": "x", "derived": {"factIDs": ["f1"], "edgeIDs": ["d1"]}}
    files = bundle(PORTABLE, [derived, {**TOMBSTONE, "targetID": "r1"}])
    found = items(packed(files, "folder", tmp_path / "a.mem"))
    deleted = [each.kind for each in found if isinstance(each, Skipped) and "deleted" in each.reason]
    assert sorted(deleted) == ["chunk", "edge", "episode", "fact", "fact", "resource"]


def test_a_file_that_does_not_match_its_checksum_is_reported_and_left_out(tmp_path: Path) -> None:
    path = packed(bundle(PORTABLE, [TOMBSTONE]), "folder", tmp_path / "a.mem")
    facts = path / "items" / "fact.jsonl"
    facts.write_text(facts.read_text("utf-8").replace("Oslo", "Bonn"), "utf-8")
    (path / "items" / "acmeExtra.jsonl").write_text("{}\n")
    (path / "items" / "core.jsonl").unlink()
    (path / "CHECKSUMS").write_text("")
    found = items(path)
    assert failed(found)[:4] == [
        ("CHECKSUMS", "does not match its checksum"),
        ("items/acmeExtra.jsonl", "is not listed in the manifest"),
        ("items/core.jsonl", "is missing"),
        ("items/fact.jsonl", "does not match its checksum"),
    ]
    assert not {"Ada lives in Oslo", "Ada lives in Bonn"} & entries(found).keys()
    assert "Ada planted coffee." in entries(found)


@pytest.mark.parametrize("spoil", ["changed", "missing", "no id"])
def test_nothing_is_imported_if_deletions_cannot_be_read(spoil: str, tmp_path: Path) -> None:
    tombstone = {**TOMBSTONE, "targetID": None} if spoil == "no id" else TOMBSTONE
    path = packed(bundle(PORTABLE, [tombstone]), "folder", tmp_path / "a.mem")
    file = path / "audit" / "tombstones.jsonl"
    if spoil == "changed":
        file.write_text("")
    elif spoil == "missing":
        file.unlink()
    found = items(path)
    assert entries(found) == {}
    assert failed(found)[-1][1] == "is not imported: what was deleted cannot be read"


def test_a_newer_format_is_reported(tmp_path: Path) -> None:
    files = bundle(PORTABLE, [])
    files["manifest.json"] = files["manifest.json"].replace('"1.1.0"', '"2.0.0"')
    found = items(packed(files, "folder", tmp_path / "a.mem"))
    assert failed(found) == [("manifest.json: 2.0.0", "is of another format than 1")]
    assert entries(found) == {}


def test_a_folder_of_notes_with_a_bundle_in_it_is_a_folder_of_notes(tmp_path: Path) -> None:
    packed(bundle(PORTABLE, []), "folder", tmp_path / "a.mem")
    packed({"note.md": "Text"}, "folder", tmp_path)
    assert detected(tmp_path) == "obsidian"


OWN_FIELDS = {
    "kind": "qa_turn", "user_id": "ada", "channel_id": "c", "tags": ["x"], "importance": 3, "role": "user",
    "metadata": {"extracted_by": "rules", "source": "wiki"}, "source_refs": ["m1"],
    "occurred_at": "2026-01-05T09:30:00.123456Z", "invalid_at": "2026-02-01T00:00:00Z",
}  # fmt: skip


def test_fields_of_this_program_are_restored(tmp_path: Path) -> None:
    records = {"episode": [portable_episode("e1", " Said. ", **{OWN: OWN_FIELDS})]}
    (entry,) = entries(items(packed(bundle(records, []), "folder", tmp_path / "a.mem"))).values()
    assert (entry.content, entry.kind, entry.role, entry.importance) == (" Said. ", "qa_turn", "user", 3)
    assert (entry.user_id, entry.channel_id, entry.tags) == ("ada", "c", ["x"])
    assert entry.occurred_at == datetime(2026, 1, 5, 9, 30, 0, 123456, UTC)
    assert entry.invalid_at == datetime(2026, 2, 1, tzinfo=UTC)
    assert (entry.memory_id, entry.source_refs) == ("e1", ["m1"])
    assert entry.metadata == {"extracted_by": "rules", "source": "wiki"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
VALUES: list[tuple[str, dict[str, Any]]] = [
    *((kind, record) for kind, each in PORTABLE.items() for record in each),
    ("episode", portable_episode("e9", "Said", **{OWN: OWN_FIELDS})),
]


@given(st.data(), JSON)
def test_fields_of_wrong_types_never_end_an_import(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, by: Any
) -> None:
    kind, record = data.draw(st.sampled_from(VALUES))
    field = data.draw(st.sampled_from(sorted(record)))
    spoiled = {**record, field: by}
    if field == OWN:
        spoiled[OWN] = {**OWN_FIELDS, data.draw(st.sampled_from(sorted(OWN_FIELDS))): by}
    files = bundle({kind: [spoiled], "context": PORTABLE["context"]}, [{**TOMBSTONE, "derived": by}])
    found = items(packed(files, "folder", tmp_path_factory.mktemp("spoiled")))
    assert all(each.content.strip() for each in found if isinstance(each, Entry))
    assert msgspec.json.encode(found)
