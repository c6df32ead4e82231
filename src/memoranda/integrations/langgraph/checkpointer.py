"""LangGraph's checkpoints in a product."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from memoranda.errors import InvalidInput
from memoranda.integrations.products import Product, memories_of
from memoranda.integrations.records import Record, Records, moved

CHECKPOINT, WRITE = "checkpoint", "write"
ID, PARENT, RUN = "checkpoint_id", "parent_id", "run_id"
TASK, IDX = "task_id", "idx"
Typed = tuple[str, bytes]
"""A serialized value: its type and its bytes."""


class SavedWrite(msgspec.Struct, array_like=True, frozen=True):
    """One write of a task, as it is stored."""

    task_path: str
    task_id: str
    idx: int
    channel: str
    value: Typed


class MemorandaSaver(BaseCheckpointSaver[int]):
    """LangGraph's checkpointer in a folder or on a server of Memoranda.

    A checkpoint is stored by LangGraph's serializer, in one transaction up to 10 MB, and is there when `put` returns,
    also after a crash. A thread is the scope `session:THREAD_ID`, whose forgetting erases it; no search finds it. The
    threads belong to the tenant of the product's subject; `name` keeps several checkpointers in one tenant apart. The
    async methods run in worker threads. Thread-safe.
    """

    def __init__(
        self,
        product: Product,
        *,
        name: str = "langgraph-checkpoints",
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._records = Records(memories_of(product), name)

    # --- reading -----------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, or the last one of its thread and namespace; None if there is none."""
        thread, space = _place(config)
        id_ = get_checkpoint_id(config)
        record = self._records.get(self._id(thread, space, id_)) if id_ else self._latest(thread, space)
        return None if record is None else self._tuple(record)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints by falling id: those of a thread, of one namespace if `config` names it, or of every thread.
        `filter` has values that their metadata has."""
        named = {} if config is None else config["configurable"]
        thread = str(named["thread_id"]) if named else None
        wanted = get_checkpoint_id(config) if config else None
        end = get_checkpoint_id(before) if before else None
        records = [
            record
            for record in self._records.listed(CHECKPOINT, thread, named.get("checkpoint_ns"))
            if (not wanted or record.fields[ID] == wanted) and (not end or record.fields[ID] < end)
        ]
        left = len(records) if limit is None else limit
        for record in sorted(records, key=lambda record: str(record.fields[ID]), reverse=True):
            if left <= 0:
                return
            saved = self._tuple(record)
            if saved is not None and _has(saved.metadata, filter or {}):
                left -= 1
                yield saved

    def _latest(self, thread: str, space: str) -> Record | None:
        """The checkpoint with the greatest id: nearly always the last one written."""
        last = next(self._records.listed(CHECKPOINT, thread, space, limit=1), None)
        while last is not None:
            later = {"type": "gt", "key": ID, "value": last.fields[ID]}
            newer = next(self._records.listed(CHECKPOINT, thread, space, filters=later, limit=1), None)
            if newer is None:
                return last
            last = newer
        return None

    def _tuple(self, record: Record) -> CheckpointTuple | None:
        """A checkpoint with its writes; None if it was deleted meanwhile."""
        value = self._records.value_of(record)
        if value is None:
            return None
        checkpoint, metadata = msgspec.msgpack.decode(value, type=tuple[Typed, Typed])
        id_, parent = record.fields[ID], record.fields.get(PARENT)
        return CheckpointTuple(
            config=_config(record.thread, record.place, id_),
            checkpoint=self.serde.loads_typed(checkpoint),
            metadata=self.serde.loads_typed(metadata),
            parent_config=_config(record.thread, record.place, parent) if parent else None,
            pending_writes=list(self._writes(record)),
        )

    def _writes(self, record: Record) -> Iterator[PendingWrite]:
        values = map(self._records.value_of, self._written(record))
        saved = [msgspec.msgpack.decode(value, type=SavedWrite) for value in values if value is not None]
        saved.sort(key=lambda write: writes_sort_key(write.task_path, write.task_id, write.idx))
        for write in saved:
            yield write.task_id, write.channel, self.serde.loads_typed(write.value)

    def _written(self, record: Record) -> Iterator[Record]:
        """The records of the writes of a checkpoint."""
        return self._records.listed(WRITE, record.thread, _writes_of(record.place, record.fields[ID]))

    # --- writing -----------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint; `config` names its parent. Returns the config that names it.

        Raises:
            InvalidInput: the thread's id is empty or longer than 256 characters.
        """
        thread, space = _place(config)
        full_metadata = get_checkpoint_metadata(config, metadata)
        value = msgspec.msgpack.encode(
            (self.serde.dumps_typed(checkpoint), self.serde.dumps_typed(full_metadata))
        )
        fields = {ID: checkpoint["id"], PARENT: get_checkpoint_id(config), RUN: full_metadata.get("run_id")}
        known = {name: part for name, part in fields.items() if part is not None}
        id_ = self._id(thread, space, checkpoint["id"])
        self._records.put([Record(id_, thread, CHECKPOINT, value, space, known, apart=True)])
        return _config(thread, space, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Stores what a task wrote after a checkpoint. What it wrote before stays, but for errors, interrupts and the
        like, which are replaced."""
        thread, space = _place(config)
        id_ = str(config["configurable"]["checkpoint_id"])
        records = []
        for place, (channel, value) in enumerate(writes):
            idx = WRITES_IDX_MAP.get(channel, place)
            saved = SavedWrite(task_path, task_id, idx, channel, self.serde.dumps_typed(value))
            fields, where = {TASK: task_id, IDX: idx}, _writes_of(space, id_)
            name = self._records.id_of(WRITE, thread, where, fields)
            records.append(Record(name, thread, WRITE, msgspec.msgpack.encode(saved), where, fields))
        if all(channel in WRITES_IDX_MAP for channel, _ in writes):
            for record in records:
                self._records.put([record])
        else:
            self._records.add(records)

    def delete_thread(self, thread_id: str) -> None:
        """Erases the checkpoints and writes of a thread for good."""
        self._records.clear(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of these runs, in every thread, and their writes."""
        for run in run_ids:
            self._delete(list(self._records.listed(CHECKPOINT, None, filters={RUN: str(run)})))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies the checkpoints and writes of a thread to another."""
        target = str(target_thread_id)
        for record in self._records.listed(CHECKPOINT, str(source_thread_id), order="asc"):
            for write in self._written(record):
                name = self._records.id_of(WRITE, target, write.place, dict(write.fields))
                self._copy(write, name, target)
            self._copy(record, self._id(target, record.place, record.fields[ID]), target)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes the checkpoints of threads: all of them (`delete`), or all but the last one of each namespace and the
        earlier ones that its delta channels need (`keep_latest`).

        Raises:
            InvalidInput: another strategy is named.
        """
        if strategy not in ("keep_latest", "delete"):
            raise InvalidInput("strategy", f"{strategy!r} is unknown; use keep_latest or delete")
        for thread in map(str, thread_ids):
            if strategy == "delete":
                self._records.clear(thread)
                continue
            records = list(self._records.listed(CHECKPOINT, thread))
            for space in dict.fromkeys(record.place for record in records):
                needed = self._needed(thread, space)
                self._delete(
                    [
                        record
                        for record in records
                        if record.place == space and record.fields[ID] not in needed
                    ]
                )

    def _needed(self, thread: str, space: str) -> set[str]:
        """The ids of the last checkpoint of a namespace and of those in which its delta channels, which its metadata
        counts, have their values."""
        saved = self.get_tuple(_config(thread, space, None))
        needed: set[str] = set()
        missing: set[str] = set(saved.metadata.get("counters_since_delta_snapshot", ())) if saved else set()
        while saved is not None:
            needed.add(saved.config["configurable"]["checkpoint_id"])
            missing -= saved.checkpoint["channel_values"].keys()
            parent = saved.parent_config if missing else None
            saved = self.get_tuple(parent) if parent else None
        return needed

    def _copy(self, record: Record, id_: str, thread: str) -> None:
        value = self._records.value_of(record)
        if value is not None:
            self._records.put([moved(record, id_, thread, value)])

    def _delete(self, records: Iterable[Record]) -> None:
        for record in records:
            for write in list(self._written(record)):
                self._records.delete(write)
            self._records.delete(record)

    def _id(self, thread: str, space: str, id_: str) -> str:
        return self._records.id_of(CHECKPOINT, thread, space, id_)

    # --- awaited -----------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """`get_tuple`, awaited."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """`list`, awaited."""
        checkpoints = self.list(config, filter=filter, before=before, limit=limit)
        while (saved := await asyncio.to_thread(next, checkpoints, None)) is not None:
            yield saved

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """`put`, awaited."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """`put_writes`, awaited."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """`delete_thread`, awaited."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """`delete_for_runs`, awaited."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """`copy_thread`, awaited."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`prune`, awaited."""
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)


def _place(config: RunnableConfig) -> tuple[str, str]:
    """The thread and the namespace that a config names."""
    named = config["configurable"]
    return str(named["thread_id"]), str(named.get("checkpoint_ns") or "")


def _config(thread: str, space: str, id_: str | None) -> RunnableConfig:
    named = {"thread_id": thread, "checkpoint_ns": space}
    return {"configurable": named if id_ is None else {**named, "checkpoint_id": id_}}


def _writes_of(space: str, id_: str) -> str:
    """The place of the writes of a checkpoint."""
    return f"{id_}:{space}"


def _has(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(metadata.get(name) == value for name, value in wanted.items())
