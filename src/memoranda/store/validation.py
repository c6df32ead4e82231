"""From a caller's input to a row that can be written: validated, hashed, not stored yet, with what a write adds to the
caller's tags, time and metadata: the quarantine, the offset from UTC, reserved keys."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.clock import ZONE, in_zone, micros, moment, moment_of, offset_at, offset_of
from memoranda.errors import DimensionMismatch, InvalidInput
from memoranda.providers.embeddings.base import Embedder
from memoranda.store.origins import QUARANTINED, stamped
from memoranda.store.rows import EMPTY, ITEM, RESERVED, Draft, Record, start_of
from memoranda.text.hashing import digest
from memoranda.text.instructions import TAG
from memoranda.text.stored import compact_json
from memoranda.types import KINDS, MAX_ID_CHARS, Change, NewMemory, Subject
from memoranda.validation.messages import MOMENT


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


GIVEN = "given-"
"""Prefix of the text hash of a vector that the caller gave: it is never reused for another text."""
PLAIN = {str, bool, type(None)}
"""Types whose every value JSON preserves."""
NUMERIC = "fiu"
"""Kinds of arrays that are numbers: float, signed and unsigned."""
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""A NUL as JSON writes it; a backslash before the backslash makes it plain text."""
_LONG = re.compile(r"\d{19}")


class Bounds(msgspec.Struct, frozen=True):
    """The limits of one memory, see `config.Limits`."""

    content_bytes: int = 1 << 20
    tags: int = 64
    metadata_bytes: int = 1 << 16


MOST_REFS = 1_000
"""The most sources of one memory. Each is a row of its own, written on the one writing thread of all tenants."""


MOST_LEVELS = 64
"""The most levels of objects and lists in metadata, one within the other."""


MOST_TEXTS = 2_048
"""The most texts of one request to embed."""


def draft(new: NewMemory, subject: Subject, now: int, bounds: Bounds, where: str) -> Draft:
    """Return the draft of `new`.

    `now` is the time of writing in microseconds; `where` is how the caller names this input in an error.

    Raises:
        InvalidInput: names the field and the fix.
    """
    check_text(new.content, f"{where}content", bounds)
    if new.kind not in KINDS:
        raise InvalidInput(f"{where}kind", f"must be one of {', '.join(KINDS)}")
    user = subject.user_id if isinstance(new.user_id, msgspec.UnsetType) else new.user_id
    scope = (user, new.agent_id, new.channel_id, new.session_id)
    for name, value in zip(("user_id", "agent_id", "channel_id", "session_id"), scope, strict=True):
        check_name(value, f"{where}{name}")
    for name, value in (("id", new.id), ("role", new.role), ("source", new.source)):
        check_name(value, f"{where}{name}")
    dated = new.occurred_at is not None
    given = placed(new.occurred_at, subject)
    occurred = time_of(given, f"{where}occurred_at") if given is not None else now
    content_hash = digest(new.content)
    metadata = metadata_text(new.metadata, f"{where}metadata", bounds)
    id_ = new.id or f"mem_{now:013x}{secrets.token_hex(6)}"
    row = EMPTY._replace(
        tenant_id=subject.tenant_id,
        id=id_,
        kind=new.kind,
        content=new.content,
        content_hash=content_hash,
        dedup_key=dedup_key(new.kind, scope, new.role, occurred if dated else None, content_hash, id_),
        user_id=user,
        agent_id=new.agent_id,
        channel_id=new.channel_id,
        session_id=new.session_id,
        role=new.role,
        source=new.source,
        tags=written_tags(tags_text(new.tags, f"{where}tags", bounds), subject),
        metadata=stamped(zoned(metadata, given, occurred, subject), subject, user),
        importance=_importance(new.importance, f"{where}importance"),
        confidence=_confidence(new.confidence, f"{where}confidence"),
        valid_from=None if new.valid_from is None else time_of(new.valid_from, f"{where}valid_from"),
        invalid_at=None if new.invalid_at is None else time_of(new.invalid_at, f"{where}invalid_at"),
        source_refs=_refs(new.source_refs, f"{where}source_refs"),
        dated=int(dated),
        occurred_at=occurred,
        created_at=now,
        updated_at=now,
    )
    if new.replaces and new.kind != "fact":
        raise InvalidInput(
            f"{where}replaces", f"is for facts; set kind='fact', or leave it out of a {new.kind}"
        )
    if subject.through is not None and subject.through.quarantined:
        row = quarantined(row, now)
    return Draft(row, named=new.id is not None, replaces=tuple(new.replaces))


def dedup_key(
    kind: str,
    scope: Sequence[str | None],
    role: str | None,
    occurred: int | None,
    content_hash: str,
    id_: str | None,
) -> str:
    """Return the key by which two writes are the same write: kind, scope and text; for a message also the role, and the
    time if the caller gave one (the same "ok" on two days is two messages); for an item also its id."""
    said: list[Any] = []
    if kind == "message":
        said = [role, occurred]
    elif kind == ITEM:
        said = [id_]
    return digest(compact_json([kind, list(scope), said]), content_hash)


def changed(row: Record, change: Change, now: int, bounds: Bounds) -> Record:
    """Return the row after an update; unset fields do not change, and neither does the key of an unchanged text.

    Raises:
        InvalidInput: names the field and the fix.
    """
    put: dict[str, Any] = {}
    for name in ("kind", "role", "source"):
        value = getattr(change, name)
        if value is not msgspec.UNSET:
            check_name(value, name)
            put[name] = value
    if change.content is not msgspec.UNSET:
        check_text(change.content, "content", bounds)
        put["content"], put["content_hash"] = change.content, digest(change.content)
    if change.tags is not msgspec.UNSET:
        put["tags"] = tags_text(change.tags, "tags", bounds)
    if change.metadata is not msgspec.UNSET:
        put["metadata"] = with_reserved(row, metadata_text(change.metadata, "metadata", bounds))
    if change.importance is not msgspec.UNSET:
        put["importance"] = _importance(change.importance, "importance")
    if change.confidence is not msgspec.UNSET:
        put["confidence"] = _confidence(change.confidence, "confidence")
    if change.source_refs is not msgspec.UNSET:
        put["source_refs"] = _refs(change.source_refs, "source_refs")
    for name in ("valid_from", "invalid_at"):
        value = getattr(change, name)
        if value is not msgspec.UNSET:
            put[name] = None if value is None else time_of(value, name)
    if change.occurred_at is not msgspec.UNSET:
        put["occurred_at"], put["dated"] = time_of(change.occurred_at, "occurred_at"), 1
        put["metadata"] = with_zone(put.get("metadata", row.metadata), change.occurred_at)
    if change.archived is not msgspec.UNSET:
        put["archived_at"] = (row.archived_at or now) if change.archived else None
    after = row._replace(**put, updated_at=now)
    new = keyed(after)
    return after if new.dedup_key == keyed(row).dedup_key else new


def keyed(row: Record) -> Record:
    """Return the row with the key of its scope and text, see `dedup_key`."""
    scope = (row.user_id, row.agent_id, row.channel_id, row.session_id)
    occurred = row.occurred_at if row.dated else None
    return row._replace(dedup_key=dedup_key(row.kind, scope, row.role, occurred, row.content_hash, row.id))


def later_version(row: Record) -> Record:
    """Return the row of a fact with the key of a version beside another of its text: that of its scope, text and
    start."""
    return row._replace(dedup_key=digest(keyed(row).dedup_key, str(start_of(row))))


def time_of(value: Any, where: str) -> int:
    """Convert a datetime or ISO 8601 to microseconds since 1970; without a zone it is in UTC, and a date alone
    is its midnight.

    Raises:
        InvalidInput: it is no time, or not in the years 1 to 9999 in UTC.
    """
    try:
        value = moment_of(value) if isinstance(value, str) else value
    except ValueError as exc:
        raise InvalidInput(where, MOMENT) from exc
    if not isinstance(value, datetime):
        raise InvalidInput(where, MOMENT)
    try:
        return micros(value if value.tzinfo is None else value.astimezone(UTC))
    except OverflowError as exc:
        raise InvalidInput(where, "must lie in the years 1 to 9999, in UTC") from exc


def check_vector(value: Any, dim: int, where: str) -> NDArray[np.float32]:
    """Return the vector as (dim,) float32.

    Raises:
        DimensionMismatch: it has another length than the configured model's.
        InvalidInput: it is not a list of finite numbers.
    """
    try:
        given = np.asarray(value)
    except (TypeError, ValueError) as exc:
        raise InvalidInput(where, "must be a list of numbers") from exc
    if given.dtype.kind not in NUMERIC:
        raise InvalidInput(where, "must be a list of numbers")
    with np.errstate(over="ignore"):  # values beyond float32 are refused below
        vector = given.astype(np.float32)
    if vector.shape != (dim,):
        length = vector.shape[0] if vector.ndim == 1 else f"shape {vector.shape}"
        raise DimensionMismatch(where, f"has {length} dimensions, the configured model has {dim}")
    if not np.isfinite(vector).all():
        raise InvalidInput(where, "holds NaN or infinity; send finite numbers")
    return vector


def check_texts(texts: Sequence[str], embedder: Embedder) -> None:
    """Check that texts can be embedded as they are: a text that is cut silently would give a wrong vector.

    Raises:
        InvalidInput: there are none or too many, or one is empty or too long; the field is `texts` or `texts[3]`.
    """
    if not 1 <= len(texts) <= MOST_TEXTS:
        raise InvalidInput("texts", f"holds {len(texts)} texts; send 1 to {MOST_TEXTS}")
    for i, text in enumerate(texts):
        where = f"texts[{i}]" if len(texts) > 1 else "texts"
        if not isinstance(text, str) or not text:
            raise InvalidInput(where, "must hold some text")
        if len(embedder.split(text)) > 1:
            raise InvalidInput(where, f"is longer than the model's {embedder.max_tokens} tokens; split it")


def check_text(text: Any, where: str, bounds: Bounds) -> None:
    """Check the text of a memory.

    Raises:
        InvalidInput: it is no string, is blank, too long, or has characters that cannot be stored.
    """
    if not isinstance(text, str):
        raise InvalidInput(where, f"must be a string, not {type(text).__name__}")
    if len(text) > bounds.content_bytes or len(_encode(text, where)) > bounds.content_bytes:
        raise InvalidInput(
            where,
            f"is longer than {bounds.content_bytes} bytes; split it, index it as a document, "
            "or raise limits.max_content_bytes",
        )
    if "\x00" in text:
        raise InvalidInput(where, "holds a NUL character; remove it")
    if not text.strip():
        raise InvalidInput(where, "must hold some text")


def _encode(text: str, where: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidInput(
            where, f"holds a lone surrogate at character {exc.start}; send valid unicode"
        ) from exc


def check_name(value: Any, where: str) -> None:
    """Check an id or a name; None passes.

    Raises:
        InvalidInput: it is empty, too long, no string, or not text.
    """
    if value is None:
        return
    if not isinstance(value, str) or not value:
        raise InvalidInput(where, "must be a string that is not empty, or be left out")
    if len(value) > MAX_ID_CHARS:
        raise InvalidInput(where, f"must be at most {MAX_ID_CHARS} characters")
    if "\x00" in value:
        raise InvalidInput(where, "holds a NUL character; remove it")
    _encode(value, where)


def tags_text(tags: Any, where: str, bounds: Bounds) -> str:
    """Return the tags of a memory as JSON, without duplicates.

    Raises:
        InvalidInput: there are too many, or one is no tag.
    """
    if not tags:
        return "[]"
    if not isinstance(tags, list | tuple):
        raise InvalidInput(where, "must be a list of strings")
    if len(tags) > bounds.tags:
        raise InvalidInput(where, f"holds {len(tags)} tags, at most {bounds.tags} are kept")
    for i, tag in enumerate(tags):
        check_name(tag, f"{where}[{i}]")
        if tag is None:
            raise InvalidInput(f"{where}[{i}]", "must be a string")
    return compact_json(list(dict.fromkeys(tags)))


def metadata_text(metadata: Any, where: str, bounds: Bounds) -> str:
    """Return the metadata of a memory as JSON.

    Raises:
        InvalidInput: it is too long, or has a key or a value that no memory can have.
    """
    if not metadata:
        return "{}"
    if not isinstance(metadata, dict):
        raise InvalidInput(where, "must be an object")
    for key in metadata:
        if not isinstance(key, str) or not key or key.startswith("$"):
            raise InvalidInput(where, f"key {key!r} must be a string that is not empty and not begin with $")
    try:
        text = compact_json(metadata)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as exc:
        raise InvalidInput(where, f"must be plain JSON: {exc}") from exc
    if len(text.encode("utf-8")) > bounds.metadata_bytes:
        raise InvalidInput(where, f"is longer than {bounds.metadata_bytes} bytes as JSON")
    if _NUL.search(text):
        raise InvalidInput(where, "holds a NUL character; remove it")
    for key, value in metadata.items():
        if _deeper(value, MOST_LEVELS - 1):
            says = f"has more than {MOST_LEVELS - 1} levels of objects and lists; keep what is inside as a string"
            raise InvalidInput(f"{where}.{key}", says)
    _check_survives(metadata, text, where)
    return text


def _deeper(value: Any, levels: int) -> bool:
    """Return True if a value has more levels of objects and lists."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else None
    return inside is not None and (levels == 0 or any(_deeper(item, levels - 1) for item in inside))


def _check_survives(metadata: dict[str, Any], text: str, where: str) -> None:
    """Check that JSON preserves the metadata (no NaN, sets, dates, bytes), and that indexes can compare its numbers."""
    if all(map(_is_plain, metadata.values())):
        return  # the usual case, at a tenth of the cost
    if _LONG.search(text) and _beyond_64_bits(metadata):
        raise InvalidInput(where, "holds a whole number beyond 64 bits; send it as a string")
    if msgspec.json.decode(text) == metadata:
        return
    try:
        json.dumps(metadata, allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise InvalidInput(where, f"must be plain JSON: {exc}") from exc


def _is_plain(value: Any) -> bool:
    """Return True for a scalar that JSON and every index preserve."""
    kind = type(value)
    if kind is int:
        return bool(-(1 << 63) <= value < 1 << 63)
    return kind in PLAIN or (kind is float and bool(value - value == 0))


def _beyond_64_bits(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_beyond_64_bits(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_beyond_64_bits(item) for item in value)
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 63


def _refs(refs: Any, where: str) -> str:
    if not isinstance(refs, list | tuple):
        raise InvalidInput(where, "must be a list of strings")
    if len(refs) > MOST_REFS:
        raise InvalidInput(where, f"has {len(refs)} ids, at most {MOST_REFS} are kept; name the latest")
    for i, ref in enumerate(refs):
        check_name(ref, f"{where}[{i}]")
    return compact_json(list(refs))


def _importance(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -1000 <= value <= 1000:
        raise InvalidInput(where, "must be a whole number between -1000 and 1000")
    return value


def _confidence(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InvalidInput(where, "must be a number between 0 and 1")
    return float(value)
