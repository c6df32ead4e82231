"""The verbs of memory, and everything they refuse: the message names field and fix, and nothing is stored."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import numpy as np
import pytest

from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.errors import Conflict, DimensionMismatch, InvalidInput, NotFound, StorageError
from memoranda.store import paging
from memoranda.types import NewMemory, Query, Subject

DAY = datetime(2024, 5, 1, 12, tzinfo=UTC)
FAR_EAST, FAR_WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


def deep(levels: int) -> dict[str, Any]:
    """A mapping nested so many levels."""
    nested: dict[str, Any] = {}
    for _ in range(levels):
        nested = {"a": nested}
    return nested


# --- each verb does what it says -----------------------------------------------------------------------


def test_add_gives_back_what_is_stored(memories: BlockingMemories) -> None:
    added = memories.add(
        "The kiln fires at 1 240 degrees",
        id="kiln",
        kind="fact",
        user_id="ann",
        agent_id="potter",
        channel_id="studio",
        session_id="monday",
        role="user",
        source="chat",
        tags=["clay", "heat", "clay"],
        metadata={"shelf": 3, "nested": {"deep": [1, None, "ü"]}},
        importance=7,
        confidence=0.25,
        valid_from=DAY,
        invalid_at=DAY + timedelta(days=36_500),
        source_refs=["m1", "m2"],
        occurred_at=DAY,
    )
    held = memories.get("kiln")
    assert added.created
    assert added.embedded
    assert held == added.memory
    assert (held.kind, held.scope, held.role, held.source) == ("fact", "session", "user", "chat")
    assert held.tags == ["clay", "heat"]
    assert held.metadata == {"shelf": 3, "nested": {"deep": [1, None, "ü"]}}
    assert (held.importance, held.confidence, held.access_count) == (7, 0.25, 0)
    assert (held.occurred_at, held.valid_from) == (DAY, DAY)
    assert held.source_refs == ["m1", "m2"]


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "a\nb\tc\r\n",
        "  padded  ",
        "日本語のメモ",
        "👩‍👩‍👧 family",
        "\u202eabc",
        "É" * 1000,
        '{"json": "like"}',
        "'; --",
    ],
)
def test_text_comes_back_as_it_was(memories: BlockingMemories, text: str) -> None:
    id_ = memories.add(text).memory.id
    assert memories.get(id_).content == text


def test_update_changes_what_is_named_and_nothing_else(memories: BlockingMemories) -> None:
    before = memories.add(
        "tea at four", tags=["habit"], metadata={"a": 1}, occurred_at=DAY, importance=2
    ).memory
    after = memories.update(before.id, content="coffee at five", importance=9)
    assert (after.content, after.importance) == ("coffee at five", 9)
    assert (after.tags, after.metadata, after.occurred_at) == (["habit"], {"a": 1}, DAY)
    assert after.content_hash != before.content_hash
    assert after.updated_at > before.updated_at
    assert after.created_at == before.created_at
    assert [hit.memory.id for hit in memories.search("coffee five").results] == [before.id]
    found = memories.search("tea four", mode="keyword")
    assert found.results == []


def test_an_update_can_take_a_value_away(memories: BlockingMemories) -> None:
    id_ = memories.add("gone", source="x", role="user", valid_from=DAY, tags=["t"]).memory.id
    after = memories.update(id_, source=None, role=None, valid_from=None, tags=[])
    assert (after.source, after.role, after.valid_from, after.tags) == (None, None, None, [])


def test_archiving_hides_and_brings_back(memories: BlockingMemories) -> None:
    id_ = memories.add("winter coat in the attic").memory.id
    assert memories.update(id_, archived=True).archived_at is not None
    assert memories.search("winter coat").results == []
    assert memories.count() == 0
    assert [hit.memory.id for hit in memories.search("winter coat", include_archived=True).results] == [id_]
    assert memories.update(id_, archived=False).archived_at is None
    assert [hit.memory.id for hit in memories.search("winter coat").results] == [id_]


def test_an_update_to_a_text_that_is_there_conflicts_and_changes_nothing(memories: BlockingMemories) -> None:
    first, second = memories.add("one").memory, memories.add("two").memory
    with pytest.raises(Conflict, match=first.id):
        memories.update(second.id, content="one")
    assert memories.get(second.id) == second


def test_delete_takes_the_row_and_its_vectors(rc: BlockingMemoranda, memories: BlockingMemories) -> None:
    id_ = memories.add("a passing thought").memory.id
    memories.delete(id_)
    with pytest.raises(NotFound):
        memories.get(id_)
    with pytest.raises(NotFound):
        memories.delete(id_)
    stats = memories.stats()
    assert (stats["memories"], stats["vectors"]) == (0, 0)
    assert (stats["indexed_vectors"], stats["indexed_words"]) == (0, 0)
    assert memories.search("passing thought").results == []
    assert memories.add("a passing thought").created


def test_uses_are_counted_when_asked(memories: BlockingMemories) -> None:
    id_ = memories.add("the blue door sticks").memory.id
    memories.search("blue door")
    assert memories.get(id_).access_count == 0
    memories.search("blue door", count_access=True)
    assert memories.count_access([id_, id_, "none of this id"]) == 1
    assert memories.count_access([]) == 0
    held = memories.get(id_)
    assert held.access_count == 2
    assert held.last_accessed_at is not None
    assert held.last_accessed_at > held.created_at


def test_stats_count_by_kind(memories: BlockingMemories) -> None:
    memories.add_many([{"content": "a"}, {"content": "b", "kind": "fact"}, {"content": "c", "kind": "fact"}])
    stats = memories.stats()
    assert stats["by_kind"] == {"fact": 2, "note": 1}
    assert (stats["memories"], stats["vectors"], stats["unembedded"]) == (3, 3, 0)
    assert (stats["model"], stats["dimension"]) == ("hash-64", 64)


def test_a_batch_answers_in_its_order(memories: BlockingMemories) -> None:
    texts = [f"item {n}" for n in range(1_203)]
    added = memories.add_many(texts)
    assert [one.memory.content for one in added] == texts
    assert [one.content for one in memories.list(order="asc", limit=1_000).data] == texts[:1_000]


def test_a_moment_without_a_zone_is_utc(memories: BlockingMemories) -> None:
    id_ = memories.add(
        "noon", occurred_at=DAY.replace(tzinfo=None), valid_from=DAY.replace(tzinfo=None)
    ).memory.id
    assert memories.get(id_).occurred_at == DAY
    assert memories.count(since=DAY.replace(tzinfo=None)) == 1
    assert memories.count(until=DAY.replace(tzinfo=None)) == 0


def test_times_keep_their_microseconds(memories: BlockingMemories) -> None:
    at = datetime(1931, 2, 3, 4, 5, 6, 789_123, tzinfo=FAR_EAST)
    assert memories.add("long ago", occurred_at=at).memory.occurred_at == at


# --- each verb refuses what is wrong -------------------------------------------------------------------

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("content", {"content": ""}, "must hold some text"),
    ("content", {"content": " \n\t "}, "must hold some text"),
    ("content", {"content": 5}, "must be text"),
    ("content", {"content": b"bytes"}, "must be text"),
    ("content", {"content": None}, "must be text"),
    ("content", {"content": "a\x00b"}, "NUL"),
    ("content", {"content": "a\ud800b"}, "lone surrogate at character 1"),
    ("content", {"content": "x" * ((1 << 20) + 1)}, "split it"),
    ("content", {"content": "é" * ((1 << 19) + 1)}, "split it"),
    ("id", {"id": ""}, "must be 1 to 256"),
    ("id", {"id": "a\x00"}, "NUL"),
    ("id", {"id": "\udfff"}, "surrogate"),
    ("id", {"id": "x" * 257}, "256"),
    ("id", {"id": 7}, "must be text"),
    ("kind", {"kind": "manual"}, "must be one of document, fact"),
    ("kind", {"kind": ""}, "must be one of document, fact"),
    ("user_id", {"user_id": ""}, "must be 1 to 256"),
    ("agent_id", {"agent_id": "a\x00"}, "NUL"),
    ("channel_id", {"channel_id": "\ud83d"}, "surrogate"),
    ("session_id", {"session_id": "x" * 300}, "256"),
    ("role", {"role": ""}, "must be 1 to 256"),
    ("source", {"source": "\x00"}, "NUL"),
    ("tags", {"tags": "clay"}, "must be a list"),
    ("tags", {"tags": [str(n) for n in range(65)]}, "at most 64"),
    ("tags", {"tags": [str(n) for n in range(100_000)]}, "at most 1000"),
    ("tags[1]", {"tags": ["a", ""]}, "must be 1 to 256"),
    ("tags[0]", {"tags": ["a\ud800"]}, "surrogate"),
    ("tags[1]", {"tags": ["a", None]}, "must be text"),
    ("metadata", {"metadata": ["a"]}, "must be an object"),
    ("metadata", {"metadata": {"$kind": "note"}}, "begin with $"),
    ("metadata", {"metadata": {"": 1}}, "not empty"),
    ("metadata", {"metadata": {"a": object()}}, "plain JSON"),
    ("metadata", {"metadata": {"a": float("nan")}}, "plain JSON"),
    ("metadata", {"metadata": {"a": [float("inf")]}}, "plain JSON"),
    ("metadata", {"metadata": {"a": {1, 2}}}, "plain JSON"),
    ("metadata", {"metadata": {"a": b"x"}}, "plain JSON"),
    ("metadata", {"metadata": {"a": DAY}}, "plain JSON"),
    ("metadata", {"metadata": {"a": "\ud800"}}, "plain JSON"),
    ("metadata", {"metadata": {"a": "\x00"}}, "NUL"),
    ("metadata", {"metadata": {"a": [1, {"b": 10**400}]}}, "64 bits"),
    ("metadata", {"metadata": {"a": 1 << 63}}, "64 bits"),
    ("metadata", {"metadata": deep(5_000)}, "plain JSON"),
    ("metadata", {"metadata": {"a": "x" * 70_000}}, "65536 bytes"),
    ("metadata", {"metadata": {"a": "é" * 40_000}}, "65536 bytes"),
    ("importance", {"importance": 1.5}, "must be a whole number"),
    ("importance", {"importance": True}, "must be a whole number"),
    ("importance", {"importance": 1_001}, "between -1000 and 1000"),
    ("importance", {"importance": 10**30}, "between -1000 and 1000"),
    ("confidence", {"confidence": 1.01}, "between 0 and 1"),
    ("confidence", {"confidence": float("nan")}, "between 0 and 1"),
    ("confidence", {"confidence": "high"}, "must be a number"),
    ("source_refs", {"source_refs": "m1"}, "must be a list"),
    ("source_refs[0]", {"source_refs": [""]}, "must be 1 to 256"),
    ("occurred_at", {"occurred_at": "yesterday"}, "such as 2024-05-01 or 2024-05-01T12:00:00Z"),
    ("occurred_at", {"occurred_at": datetime.min.replace(tzinfo=FAR_EAST)}, "years 1 to 9999"),
    ("occurred_at", {"occurred_at": datetime.max.replace(tzinfo=FAR_WEST)}, "years 1 to 9999"),
    ("valid_from", {"valid_from": datetime.min.replace(tzinfo=FAR_EAST)}, "years 1 to 9999"),
    ("invalid_at", {"invalid_at": datetime.max.replace(tzinfo=FAR_WEST)}, "years 1 to 9999"),
    ("embedding", {"embedding": [0.5] * 3}, "3 dimensions, the configured model has 64"),
    ("embedding", {"embedding": [[0.5] * 64]}, "the configured model has 64"),
    ("embedding", {"embedding": []}, "0 dimensions"),
    ("embedding", {"embedding": [float("nan")] * 64}, "NaN or infinity"),
    ("embedding", {"embedding": [1e300] * 64}, "NaN or infinity"),
    ("embedding", {"embedding": np.full(64, np.inf, np.float32)}, "NaN or infinity"),
    ("embedding", {"embedding": np.full(64, 1e300)}, "NaN or infinity"),
    ("embedding", {"embedding": np.array(["x"] * 64)}, "list of numbers"),
    ("embedding", {"embedding": ["1"] * 64}, "list of numbers"),
    ("embedding", {"embedding": np.zeros(64, complex)}, "list of numbers"),
    ("embedding", {"embedding": [[1.0], [1.0, 2.0]]}, "list of numbers"),
    ("embedding", {"embedding": "0.5"}, "list of numbers"),
    ("embedding", {"embedding": {"a": 1}}, "list of numbers"),
    ("tag", {"tag": ["a"]}, "did you mean `tags`"),
    ("access_count", {"access_count": 3}, "not a field"),
]


def cases(table: list[tuple[str, dict[str, Any], str]]) -> Any:
    """The table as parameters, named by number and field."""
    ids = [f"{n}-{field}" for n, (field, _, _) in enumerate(table)]
    return pytest.mark.parametrize(("field", "values", "fix"), table, ids=ids)


@pytest.fixture(scope="module")
def crowded(lasting_home: Any) -> Any:
    """A product that every refusal leaves as it is."""
    with lasting_home.open() as opened:
        opened.memories.add("the only one", id="only")
        yield opened


@pytest.mark.filterwarnings("error::RuntimeWarning")
@cases(REFUSED)
def test_add_refuses_and_stores_nothing(
    crowded: BlockingMemoranda, field: str, values: dict[str, Any], fix: str
) -> None:
    with pytest.raises(InvalidInput) as told:
        crowded.memories.add(**({"content": "fine otherwise"} | values))
    assert told.value.field == field
    assert fix in str(told.value)
    assert len(str(told.value)) < 500
    assert crowded.memories.count() == 1


@pytest.mark.filterwarnings("error::RuntimeWarning")
@cases(REFUSED)
def test_one_wrong_item_in_fifty_is_named_and_nothing_is_stored(
    crowded: BlockingMemoranda, field: str, values: dict[str, Any], fix: str
) -> None:
    batch: list[Any] = [{"content": f"batch item {n}"} for n in range(50)]
    batch[37] = {"content": "fine otherwise"} | values
    with pytest.raises(InvalidInput) as told:
        crowded.memories.add_many(batch)
    assert told.value.field == f"[37].{field}"
    assert fix in str(told.value)
    assert crowded.memories.count() == 1


UPDATES = [
    case for case in REFUSED if next(iter(case[1])) not in
    ("id", "user_id", "agent_id", "channel_id", "session_id", "embedding", "tag", "access_count")
]  # fmt: skip


@cases(UPDATES)
def test_update_refuses_and_changes_nothing(
    crowded: BlockingMemoranda, field: str, values: dict[str, Any], fix: str
) -> None:
    before = crowded.memories.get("only")
    with pytest.raises(InvalidInput) as told:
        crowded.memories.update("only", **values)
    assert told.value.field == field
    assert fix in str(told.value)
    assert crowded.memories.get("only") == before


@pytest.mark.parametrize("name", ["user_id", "session_id", "embedding", "created_at"])
def test_an_update_moves_nothing_to_another_place(crowded: BlockingMemoranda, name: str) -> None:
    with pytest.raises(InvalidInput, match="not a field"):
        crowded.memories.update("only", **{name: "x"})


def test_a_hundred_megabytes_are_refused_at_once(crowded: BlockingMemoranda) -> None:
    with pytest.raises(InvalidInput, match="1048576 bytes"):
        crowded.memories.add("x" * 100_000_000)
    with pytest.raises(InvalidInput, match="1048576 bytes"):
        crowded.memories.update("only", content="x" * 100_000_000)


def test_the_largest_text_is_taken(memories: BlockingMemories) -> None:
    text = "word " * ((1 << 20) // 5)
    assert memories.get(memories.add(text).memory.id).content == text


VERBS: list[tuple[str, Callable[[BlockingMemories], Any]]] = [
    ("limit", lambda m: m.list(limit=0)),
    ("limit", lambda m: m.list(limit=1_001)),
    ("limit", lambda m: m.list(limit=1.5)),
    ("limit", lambda m: m.list(limit="5")),
    ("limit", lambda m: m.list(limit=True)),
    ("order", lambda m: m.list(order="up")),
    ("after", lambda m: m.list(after="mem_unknown")),
    ("before", lambda m: m.list(before="mem_unknown")),
    ("after", lambda m: m.list(after="\ud800")),
    ("before", lambda m: m.list(after="only", before="only")),
    ("scopes", lambda m: m.list(scopes=[])),
    ("scopes[0]", lambda m: m.list(scopes=["monday"])),
    ("scopes[0]", lambda m: m.list(scopes=["session:"])),
    ("scopes", lambda m: m.list(scopes="global")),
    ("scopes", lambda m: m.count(scopes=["user:\ud800"])),
    ("tags", lambda m: m.count(tags="clay")),
    ("tags", lambda m: m.count(tags=["\ud800"])),
    ("tags[0]", lambda m: m.count(tags=[""])),
    ("source", lambda m: m.count(source="\ud800")),
    ("kinds[0]", lambda m: m.count(kinds=["manual"])),
    ("kind", lambda m: m.count(kind="note")),
    ("filters.$kind", lambda m: m.count(filters={"$kind": "note"})),
    ("filters.a", lambda m: m.count(filters={"a": {"b": 1}})),
    ("filters.a", lambda m: m.count(filters={"a": 10**400})),
    ("filters.a", lambda m: m.count(filters={"a": "\ud800"})),
    ("filters.type", lambda m: m.count(filters={"type": "like", "key": "a", "value": 1})),
    ("filters.value", lambda m: m.count(filters={"type": "in", "key": "a", "value": 1})),
    ("since", lambda m: m.count(since="yesterday")),
    ("id", lambda m: m.get(None)),
    ("id", lambda m: m.update(None, content="x")),
    ("id", lambda m: m.delete(5)),
    ("query", lambda m: m.search("")),
    ("query", lambda m: m.search("  \n")),
    ("query", lambda m: m.search("a \ud800")),
    ("query", lambda m: m.search("x" * 10_001)),
    ("query", lambda m: m.search(5)),
    ("limit", lambda m: m.search("x", limit=0)),
    ("limit", lambda m: m.search("x", limit=1_001)),
    ("threshold", lambda m: m.search("x", threshold=1.5)),
    ("threshold", lambda m: m.search("x", threshold=-0.1)),
    ("threshold", lambda m: m.search("x", threshold=float("nan"))),
    ("threshold", lambda m: m.search("x", threshold=0.5, mode="keyword")),
    ("mode", lambda m: m.search("x", mode="fuzzy")),
    ("weights.lexical", lambda m: m.search("x", weights={"lexical": 1.0})),
    ("weights.dense", lambda m: m.search("x", weights={"dense": -1.0})),
    ("weights.dense", lambda m: m.search("x", weights={"dense": float("nan")})),
    ("hierarchy.room", lambda m: m.search("x", hierarchy={"room": "1"})),
    ("hierarchy.user", lambda m: m.search("x", hierarchy={"user": ""})),
    ("hierarchy", lambda m: m.search("x", hierarchy={"user": "a"}, scopes=["global"])),
    ("top_k", lambda m: m.search("x", top_k=3)),
    ("limit", lambda m: m.search(Query(query="x"), limit=3)),
    ("tags", lambda m: m.add(NewMemory(content="x"), tags=["a"])),
    ("confidence", lambda m: m.add(NewMemory(content="x", confidence=None))),  # type: ignore[arg-type]
    ("tags", lambda m: m.add(NewMemory(content="x", tags="clay"))),  # type: ignore[arg-type]
    ("occurred_at", lambda m: m.add(NewMemory(content="x", occurred_at="2024"))),  # type: ignore[arg-type]
    ("kind", lambda m: m.add(NewMemory(content="x", kind="manual"))),  # type: ignore[arg-type]
    ("memories", lambda m: m.add_many([])),
    ("memories", lambda m: m.add_many([{"content": str(n)} for n in range(10_001)])),
    ("[1]", lambda m: m.add_many(["a", 5])),
    ("[1].content", lambda m: m.add_many(["a", {}])),
    ("scopes", lambda m: m.forget()),
    ("scopes", lambda m: m.forget(tags=[])),
    ("scopes", lambda m: m.forget(filters={})),
    ("scopes", lambda m: m.forget(kinds=[])),
    ("scopes", lambda m: m.forget(include_archived=True)),
    ("scopes", lambda m: m.forget(scopes=None)),
    ("scopes", lambda m: m.forget(scopes=[])),
    ("ids", lambda m: m.forget("only")),
    ("ids", lambda m: m.forget([5])),
    ("ids", lambda m: m.forget(["only"], scopes=["global"])),
    ("ids", lambda m: m.count_access("only")),
    ("limit", lambda m: m.near_duplicates(limit=0)),
    ("scope", lambda m: m.import_from([], scope="room:1")),
]


SLIPS = [
    ("limits", "limit", lambda m: m.list(limits=5)),
    ("befor", "before", lambda m: m.list(befor="x")),
    ("limits", "limit", lambda m: m.near_duplicates(limits=5)),
    ("limits", "limit", lambda m: m.projection(limits=5)),
    ("limits", "limit", lambda m: m.facets(limits=5)),
    ("vector", "vectors", lambda m: list(m.export(vector=True))),
    ("id", "ids", lambda m: m.forget(id=["x"])),
]


@pytest.mark.parametrize(("slip", "name", "verb"), SLIPS)
def test_a_slip_in_a_keyword_is_named_with_the_keyword(
    memories: BlockingMemories, slip: str, name: str, verb: Callable[[Any], Any]
) -> None:
    with pytest.raises(InvalidInput, match=f"^{slip}: .*did you mean `{name}`"):
        verb(memories)


@pytest.mark.parametrize("place", ["user", "agent", "channel", "session"])
def test_a_selection_by_an_id_is_told_the_scope(memories: BlockingMemories, place: str) -> None:
    for verb in (memories.list, memories.forget, partial(memories.search, "x")):
        with pytest.raises(InvalidInput, match=rf'^{place}_id: .*; use scopes=\["{place}:mara"\]$'):
            verb(**{f"{place}_id": "mara"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        ("origin:mail", "use origin:tool, origin:document, origin:import$"),
        ("origin:", "use origin:tool, origin:document, origin:import$"),
        ("user:", "add an id or a name$"),
        ("file-", "add an id or a name$"),
    ],
)
def test_a_source_that_can_select_nothing_is_refused(
    memories: BlockingMemories, source: str, fix: str
) -> None:
    verbs: list[Callable[..., Any]] = [
        partial(memories.search, "x"), memories.list, memories.count, memories.facets, memories.forget,
    ]  # fmt: skip
    for verb in verbs:
        with pytest.raises(InvalidInput, match=f"^source: '{source}' .*{fix}"):
            verb(source=source)


@pytest.mark.parametrize(("field", "verb"), VERBS, ids=[f"{n}-{field}" for n, (field, _) in enumerate(VERBS)])
def test_every_verb_refuses_by_name(
    crowded: BlockingMemoranda, field: str, verb: Callable[[BlockingMemories], Any]
) -> None:
    with pytest.raises(InvalidInput) as told:
        verb(crowded.memories)
    assert told.value.field == field
    assert len(str(told.value)) < 500
    assert crowded.memories.count() == 1


@pytest.mark.parametrize("id_", ["", "mem_0", "only ", "ONLY", "\x00", "\ud800", "%", "'"])
def test_an_unknown_id_is_not_found_by_any_verb(crowded: BlockingMemoranda, id_: str) -> None:
    for verb in (
        lambda: crowded.memories.get(id_),
        lambda: crowded.memories.update(id_, content="x"),
        lambda: crowded.memories.delete(id_),
    ):
        with pytest.raises(NotFound):
            verb()
    assert crowded.memories.forget([id_]).memories == 0


@pytest.mark.parametrize("key", ["source", "session_id", "kind", "mood", "\x00"])
def test_a_question_may_hold_a_nul_that_no_memory_holds(crowded: BlockingMemoranda, key: str) -> None:
    memories = crowded.memories
    asked = {"eq": 0, "ne": 1, "in": 0, "nin": 1, "gt": 0, "lt": 0}
    for op, found in asked.items():
        value: Any = ["\x00", "a\x00b"] if op in ("in", "nin") else "\x00"
        condition = {"type": op, "key": key, "value": value}
        if key == "kind" and op in ("gt", "lt"):
            continue
        assert memories.count(filters=condition) == found
        for mode in ("keyword", "dense"):
            assert (
                len(memories.search("the only one", filters=condition, mode=mode, threshold=0.0).results)
                == found
            )
    assert memories.search("nothing\x00 here", mode="keyword").results == []
    assert memories.count(tags=["\x00"]) == memories.count(scopes=["session:\x00"]) == 0
    assert memories.forget(["\x00"]).memories == 0


def test_metadata_that_looks_odd_is_plain_text(memories: BlockingMemories) -> None:
    odd = {
        "a": r"\u0000",
        "b": '"',
        "c.d": [1.5, -0.0, 1e300, (1 << 63) - 1],
        "e": {"$f": True},
        "1" * 30: "9" * 40,
    }
    id_ = memories.add("odd", metadata=odd).memory.id
    assert memories.get(id_).metadata == odd
    assert memories.add("a tuple is a list", metadata={"t": (1, 2)}).memory.metadata == {"t": [1, 2]}


# --- the same write is the same row --------------------------------------------------------------------


def test_the_same_text_in_the_same_scope_is_one_row(memories: BlockingMemories) -> None:
    first = memories.add("once", session_id="s", tags=["a"])
    again = memories.add("once", session_id="s", tags=["b"], importance=9)
    assert (first.created, again.created) == (True, False)
    assert again.memory == first.memory
    assert memories.count() == 1


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"session_id": "t"},
        {"user_id": "u"},
        {"agent_id": "s"},
        {"channel_id": "s"},
        {"session_id": "s", "user_id": "s"},
        {"session_id": "s", "kind": "fact"},
    ],
)
def test_another_scope_or_kind_is_another_row(memories: BlockingMemories, other: dict[str, Any]) -> None:
    memories.add("once", session_id="s")
    assert memories.add("once", **other).created
    assert memories.count() == 2


def test_ids_cannot_run_into_each_other(memories: BlockingMemories) -> None:
    memories.add("x", user_id='a","b', agent_id=None)
    assert memories.add("x", user_id="a", agent_id="b").created
    assert memories.add("x", user_id="a", agent_id="b", session_id="c").created


def test_the_same_words_said_twice_are_two_messages(memories: BlockingMemories) -> None:
    later = DAY + timedelta(microseconds=1)
    said = {"content": "ok", "kind": "message", "session_id": "s", "role": "user"}
    added = memories.add_many([{**said, "occurred_at": at} for at in (DAY, later, DAY)])
    assert [one.created for one in added] == [True, True, False]
    assert added[0].memory.id == added[2].memory.id
    assert memories.add(**{**said, "role": "assistant"}, occurred_at=DAY).created
    assert memories.add(**said).created
    assert not memories.add(**said).created
    assert memories.count() == 4


def test_doubles_inside_a_batch_are_one_row(memories: BlockingMemories) -> None:
    memories.add("there before")
    added = memories.add_many(["new", "there before", "new", {"content": "new", "kind": "fact"}])
    assert [one.created for one in added] == [True, False, False, True]
    assert added[0].memory.id == added[2].memory.id
    assert memories.count() == 3


def test_an_id_names_one_text(memories: BlockingMemories) -> None:
    memories.add("one", id="x")
    assert not memories.add("one", id="x").created
    with pytest.raises(Conflict, match="'x'"):
        memories.add("another", id="x")
    with pytest.raises(Conflict, match="'y'"):
        memories.add_many([{"content": "a", "id": "y"}, {"content": "b", "id": "y"}])
    assert memories.count() == 1


def test_an_id_conflict_undoes_its_whole_batch(memories: BlockingMemories) -> None:
    memories.add("one", id="x")
    with pytest.raises(Conflict):
        memories.add_many([*(f"item {n}" for n in range(20)), {"content": "another", "id": "x"}])
    assert memories.count() == 1
    assert memories.stats()["indexed_words"] == 1


def test_the_same_write_from_many_threads_is_one_row(memories: BlockingMemories) -> None:
    gate = threading.Barrier(12)

    def write(n: int) -> list[Any]:
        gate.wait(10)
        return [memories.add(f"text {round}", session_id="s") for round in range(20)]

    with ThreadPoolExecutor(12) as pool:
        written = list(pool.map(write, range(12)))
    for column in zip(*written, strict=True):
        assert sum(one.created for one in column) == 1
        assert len({one.memory.id for one in column}) == 1
    stats = memories.stats()
    assert (stats["memories"], stats["vectors"]) == (20, 20)
    assert (stats["indexed_vectors"], stats["indexed_words"]) == (20, 20)


def test_messages_of_the_same_moment_keep_their_order(memories: BlockingMemories) -> None:
    said = [
        {"content": f"line {n}", "kind": "message", "session_id": "s", "occurred_at": DAY} for n in range(30)
    ]
    memories.add_many(said[:10])
    for one in said[10:20]:
        memories.add(**one)
    memories.add_many(said[20:])
    held = memories.list(order="asc", limit=100).data
    assert [one.content for one in held] == [one["content"] for one in said]


# --- closing -------------------------------------------------------------------------------------------


def test_what_is_closed_says_so(home: Any) -> None:
    opened = home.open()
    opened.close()
    opened.close()
    with pytest.raises(StorageError, match="closed"):
        opened.memories.add("late")
    with pytest.raises(StorageError, match="closed"):
        opened.memories.count()


def test_closing_under_way_answers_every_caller(home: Any) -> None:
    """A caller that closing overtakes hears of it; none waits for ever, and what was confirmed is there."""
    opened = home.open()
    confirmed: list[str] = []
    begun = threading.Event()

    def write(writer: int) -> None:
        n = 0
        while True:
            try:
                confirmed.append(opened.memories.add(f"writer {writer} text {n}").memory.id)
            except StorageError:
                return
            n += 1
            begun.set()

    threads = [threading.Thread(target=write, args=[n], daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    assert begun.wait(20)
    opened.close()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    with home.open() as again:
        assert {again.memories.get(id_).id for id_ in confirmed} == set(confirmed)


def test_a_wrong_dimension_is_its_own_error(memories: BlockingMemories) -> None:
    with pytest.raises(DimensionMismatch):
        memories.add("x", embedding=[1.0, 2.0])


def walked(rc: BlockingMemoranda, order: Any) -> int:
    """Delete every memory, two on a page; the number of pages."""
    pages, after = 0, None
    while True:
        page = rc.memories.list(limit=2, after=after, order=order)
        for memory in page.data:
            rc.memories.delete(memory.id)
        pages, after = pages + 1, page.last_id
        if not page.has_more:
            return pages


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_memories_are_deleted_while_they_are_listed(rc: BlockingMemoranda, order: Any) -> None:
    rc.memories.add_many([f"note {n}" for n in range(5)])
    assert walked(rc, order) == 3
    assert rc.memories.count() == 0


def test_the_place_of_a_deleted_memory_is_known_to_who_deleted_it_for_an_hour(
    rc: BlockingMemoranda, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (rc.memories.add(text).memory.id for text in ("one", "two"))
    rc.memories.delete(second)
    assert [memory.id for memory in rc.memories.list(after=second).data] == [first]
    for other in (Subject(user_id="eve"), Subject(tenant_id="other")):
        with pytest.raises(InvalidInput, match="was deleted"):
            rc.as_subject(other).memories.list(after=second)
    monkeypatch.setattr(paging, "KEPT", -1)
    with pytest.raises(InvalidInput, match="was deleted"):
        rc.memories.list(after=second)
