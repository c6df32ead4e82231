"""A LangChain key-value store of bytes in a product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from langchain_core.stores import ByteStore

from memoranda.errors import InvalidInput
from memoranda.integrations.entries import naming
from memoranda.integrations.products import Product, memories_of
from memoranda.integrations.records import Record, Records
from memoranda.text.stored import UNSTORABLE

KIND, KEY = "value", "key"
MAX_KEY_CHARS = 2_048
"""Characters of a key: at six bytes each in JSON they fit `limits.max_metadata_bytes` beside a part of a value."""


class MemorandaByteStore(ByteStore):
    """Bytes by key in a folder or on a server of Memoranda: LangChain's `ByteStore`, for caches of embeddings and the
    documents of retrievers.

    A value is stored exactly, in memories of kind `item`, which searches of the product see only if they name that
    kind. Keys are any strings of at most 2,048 characters without NUL and lone surrogates. They belong to the tenant
    of the product's subject; `name` keeps several stores in one tenant apart. The async methods run in worker threads.
    Thread-safe.
    """

    def __init__(self, product: Product, *, name: str = "langchain-bytes") -> None:
        self._records = Records(memories_of(product), name)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """The values of these keys, in their order; None for a key that is not there.

        Raises:
            InvalidInput: a key cannot be stored.
            Conflict: other processes keep replacing a value.
        """
        places = [self._id(key, f"keys[{i}]") for i, key in enumerate(keys)]
        values = {id_: self._value(id_) for id_ in dict.fromkeys(places)}
        return [values[id_] for id_ in places]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Stores values, in the place of those of the same keys; the last one of a key that is named several times.

        Raises:
            InvalidInput: a key or a value cannot be stored; if it names the pair, nothing was written.
            Conflict: other processes keep writing and deleting one of the keys.
        """
        records = [
            self._record(key, value, f"key_value_pairs[{i}]")
            for i, (key, value) in enumerate(key_value_pairs)
        ]
        with naming("key_value_pairs"):
            self._records.put({record.id: record for record in records}.values())

    def mdelete(self, keys: Sequence[str]) -> None:
        """Deletes keys with their values; those that are not there are ignored.

        Raises:
            InvalidInput: a key cannot be stored; nothing was deleted.
        """
        for id_ in [self._id(key, f"keys[{i}]") for i, key in enumerate(keys)]:
            record = self._records.get(id_)
            if record is not None:
                self._records.delete(record)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with `prefix`, all of them without it, first written first. Keys may be deleted
        meanwhile."""
        for record in self._records.listed(KIND, self._records.name, "", order="asc"):
            key: str = record.fields[KEY]
            if key.startswith(prefix or ""):
                yield key

    def _value(self, id_: str) -> bytes | None:
        record = self._records.get(id_)
        return None if record is None else self._records.value_of(record)

    def _record(self, key: str, value: bytes, where: str) -> Record:
        id_ = self._id(key, where)
        if not isinstance(value, bytes):
            raise InvalidInput(where, f"the value must be bytes, not {type(value).__name__}")
        return Record(id_, self._records.name, KIND, value, fields={KEY: key})

    def _id(self, key: str, where: str) -> str:
        if not isinstance(key, str):
            raise InvalidInput(where, f"the key must be a string, not {type(key).__name__}")
        if len(key) > MAX_KEY_CHARS:
            raise InvalidInput(
                where, f"the key has {len(key)} characters, at most {MAX_KEY_CHARS} are stored"
            )
        if UNSTORABLE.search(key):
            raise InvalidInput(where, "the key holds a NUL character or a lone surrogate; remove it")
        return self._records.id_of(KIND, key)
