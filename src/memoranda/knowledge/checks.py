"""Validation of files, stores and attributes, shared by every interface."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

from msgspec import Meta

from memoranda.errors import InvalidInput
from memoranda.filters import check_unicode
from memoranda.knowledge.values import NewStoreFile, PassageFields, PassageQuery, Purpose, Sharing
from memoranda.text.splitting import Chunking, Strategy
from memoranda.text.stored import compact_json
from memoranda.types import NO_NUL
from memoranda.validation import convert

MAX_KEYS = 16
MAX_KEY_CHARS = 64
MAX_VALUE_CHARS = 512
MAX_NAME_CHARS = 512
MIN_CHUNK, MAX_CHUNK = 1, 8_192
MAX_DAYS = 365
MAX_BATCH = 2_000
_PAIRS: dict[str, Any] = {
    "maxProperties": MAX_KEYS,
    "propertyNames": {"maxLength": MAX_KEY_CHARS, "pattern": r"^(?!\$)[^\x00]*[^\s\x00][^\x00]*$"},
}
_VALUE: dict[str, Any] = {"maxLength": MAX_VALUE_CHARS, "pattern": NO_NUL}
FileAttributes = Annotated[
    dict[str, Any],
    Meta(
        extra_json_schema={
            **_PAIRS,
            "additionalProperties": {"type": ["string", "number", "boolean", "null"], **_VALUE},
        }
    ),
]
StoreMetadata = Annotated[
    dict[str, Any],
    Meta(extra_json_schema={**_PAIRS, "additionalProperties": {"type": "string", **_VALUE}}),
]
PURPOSES: tuple[str, ...] = get_args(Purpose)
SHARINGS: tuple[str, ...] = get_args(Sharing)


def text_of(value: Any, where: str, most: int = MAX_NAME_CHARS, *, empty: bool = True) -> str:
    """Return a short text.

    Raises:
        InvalidInput: it is no string, too long, empty where that is not allowed, or no Unicode.
    """
    if not isinstance(value, str) or (not empty and not value.strip()):
        raise InvalidInput(where, "must be a string" if empty else "must be a string that is not empty")
    if len(value) > most:
        raise InvalidInput(where, f"must be at most {most} characters, not {len(value)}")
    if "\x00" in value:
        raise InvalidInput(where, "holds a NUL character; remove it")
    check_unicode(value, where)
    return value


def attributes_of(given: Any, where: str = "attributes") -> str:
    """Return the attributes of a file in a store, as JSON: at most 16 keys of 64 characters; values are strings of at
    most 512, numbers, booleans or null.

    Raises:
        InvalidInput: names the key.
    """
    checked: dict[str, Any] = {}
    for key, value in _pairs(given, where):
        at = f"{where}.{key}"
        if isinstance(value, str):
            text_of(value, at, MAX_VALUE_CHARS)
        elif isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(at, "must be a finite number")
        elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise InvalidInput(at, "is a whole number beyond 64 bits; send it as a string")
        elif not isinstance(value, int | float | bool | None):
            raise InvalidInput(at, "must be a string, a number, true, false or null")
        checked[key] = value
    return compact_json(checked)


def metadata_of(given: Any, where: str = "metadata") -> str:
    """Return the metadata of a store, as JSON: at most 16 keys of 64 characters, values strings of at most 512.

    Raises:
        InvalidInput: names the key.
    """
    return compact_json(
        {key: text_of(value, f"{where}.{key}", MAX_VALUE_CHARS) for key, value in _pairs(given, where)}
    )


def _pairs(given: Any, where: str) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise InvalidInput(where, "must be an object")
    if len(given) > MAX_KEYS:
        raise InvalidInput(where, f"holds {len(given)} keys, at most {MAX_KEYS} are kept")
    for key in given:
        text_of(key, f"{where}.{key}"[:100], MAX_KEY_CHARS, empty=False)
        if key.startswith("$"):
            raise InvalidInput(f"{where}.{key}", "keys that begin with $ are reserved")
    return list(given.items())


def chunking_checked(chunking: Chunking, where: str = "chunking_strategy") -> Chunking:
    """Return the chunking, unchanged.

    Raises:
        InvalidInput: a field is out of range.
    """
    if chunking.strategy not in get_args(Strategy):
        raise InvalidInput(f"{where}.type", f"use one of {', '.join(get_args(Strategy))}, static, auto")
    if not MIN_CHUNK <= chunking.size <= MAX_CHUNK:
        raise InvalidInput(f"{where}.chunk_size", f"must be between {MIN_CHUNK} and {MAX_CHUNK} tokens")
    if not 0 <= chunking.overlap <= chunking.size // 2:
        says = f"must be between 0 and half of the chunk size, {chunking.size // 2} tokens"
        raise InvalidInput(f"{where}.chunk_overlap", says)
    return chunking


def days_of(value: Any, where: str = "expires_after.days") -> int | None:
    """After how many days without use a store expires.

    Raises:
        InvalidInput: it is not 1 to 365.
    """
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_DAYS:
        raise InvalidInput(where, f"must be a whole number of days between 1 and {MAX_DAYS}")
    return value


def seconds_of(value: Any, where: str = "expires_after.seconds") -> int | None:
    """Return after how many seconds a file expires.

    Raises:
        InvalidInput: it is not one hour to 30 days.
    """
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 3_600 <= value <= 2_592_000:
        raise InvalidInput(where, "must be a whole number of seconds between 3600 and 2592000")
    return value


def purpose_of(value: Any) -> str:
    """Return the purpose of a file.

    Raises:
        InvalidInput: it is none of the known purposes.
    """
    if value not in PURPOSES:
        raise InvalidInput("purpose", f"must be one of {', '.join(PURPOSES)}")
    return str(value)


def sharing_of(value: Any) -> str:
    """Return who may read a store.

    Raises:
        InvalidInput: it is none of the known ways.
    """
    if value not in SHARINGS:
        raise InvalidInput("sharing", f"must be one of {', '.join(SHARINGS)}")
    return str(value)


def people_of(writers: Any) -> list[str]:
    """Return the users who may write to a store, each once.

    Raises:
        InvalidInput: it is no list of user ids.
    """
    if not isinstance(writers, list | tuple):
        raise InvalidInput("writers", "must be a list of user ids")
    named = [text_of(user, f"writers[{i}]", 256, empty=False) for i, user in enumerate(writers)]
    return list(dict.fromkeys(named))


def files_named(files: Sequence[NewStoreFile], where: str, *, empty: bool = False) -> None:
    """Refuse a list of files to attach that is empty, too long, or has an invalid file.

    Raises:
        InvalidInput: names the file by its place, the field and the fix.
    """
    if not files and not empty:
        raise InvalidInput(where, "must name at least one file")
    if len(files) > MAX_BATCH:
        raise InvalidInput(where, f"holds {len(files)} files, at most {MAX_BATCH} go at once")
    for i, file in enumerate(files):
        if not isinstance(file.file_id, str) or not file.file_id:
            raise InvalidInput(f"{where}[{i}]", "must be the id of a file")
        attributes_of(file.attributes, f"{where}[{i}].attributes" if len(files) > 1 else "attributes")
        if file.chunking is not None:
            chunking_checked(file.chunking)


def passage_query(query: str | Sequence[str] | PassageQuery, fields: PassageFields) -> PassageQuery:
    """Return a query from its texts and keywords, or from a whole query.

    Raises:
        InvalidInput: a field is of the wrong type, or is given beside a whole query.
    """
    if not isinstance(query, PassageQuery):
        texts = [query] if isinstance(query, str) else list(query)
        return convert({"queries": texts, **fields}, PassageQuery)
    if fields:
        raise InvalidInput(next(iter(fields)), "goes inside the PassageQuery that is given, not beside it")
    return query
