"""What a write adds to a caller's tags, time and metadata: the quarantine, the offset from UTC, reserved keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from memoranda.clock import ZONE, in_zone, moment, moment_of, offset_at, offset_of
from memoranda.store.origins import QUARANTINED
from memoranda.store.rows import RESERVED, Record
from memoranda.text.hashing import digest
from memoranda.text.instructions import TAG
from memoranda.text.json import compact_json
from memoranda.types import Subject


def written_tags(tags: str, subject: Subject) -> str:
    """Return the tags of a new memory (JSON); what a tool or an import writes is no instruction."""
    through = subject.through
    if through is None or through.origin is None or TAG not in tags:
        return tags
    return compact_json([tag for tag in msgspec.json.decode(tags) if tag != TAG])


def quarantined(row: Record, now: int) -> Record:
    """Return the row archived and tagged, beside any row of the same text that is in use."""
    tags = list(dict.fromkeys([*msgspec.json.decode(row.tags), QUARANTINED]))
    key = digest(row.dedup_key, QUARANTINED)
    return row._replace(archived_at=now, tags=compact_json(tags), dedup_key=key)


def placed(occurred_at: Any, subject: Subject) -> Any:
    """Return a time as it was given, a day without a zone as that of the subject."""
    if isinstance(occurred_at, str):
        try:
            occurred_at = moment_of(occurred_at)
        except ValueError:
            return occurred_at
    return in_zone(occurred_at, subject.time_zone) if isinstance(occurred_at, datetime) else occurred_at


def zoned(metadata: str, given: Any, occurred: int, subject: Subject) -> str:
    """Return metadata (JSON) with the offset from UTC that a time was given with, else that of the subject."""
    metadata = with_zone(metadata, given)
    if subject.time_zone is None or ZONE in metadata:
        return metadata
    offset = offset_at(moment(occurred), subject.time_zone)
    return metadata if offset is None else compact_json(msgspec.json.decode(metadata) | {ZONE: offset})


def with_zone(metadata: str, occurred_at: Any) -> str:
    """Return metadata (JSON) with the offset from UTC that a time is given with, and without an earlier one."""
    if isinstance(occurred_at, str):
        occurred_at = moment_of(occurred_at)
    zone = offset_of(occurred_at) if isinstance(occurred_at, datetime) else None
    if zone is None and ZONE not in metadata:
        return metadata
    others = {key: value for key, value in msgspec.json.decode(metadata).items() if key != ZONE}
    return compact_json(others | ({ZONE: zone} if zone else {}))


def with_reserved(row: Record, metadata: str) -> str:
    """Return metadata with the reserved keys of a fact, unless it has other values for them, and the hidden keys of any
    memory."""
    before = msgspec.json.decode(row.metadata)
    notes = {
        key: before[key] for key in before if key.startswith("$") or (row.kind == "fact" and key in RESERVED)
    }
    return compact_json(notes | msgspec.json.decode(metadata)) if notes else metadata
