"""Scopes, subjects and tenants: who sees which rows, held against a model of a few lines of plain Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemoranda, BlockingMemories
from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound
from memoranda.types import Memory, Subject

NOW = datetime.now(UTC)
PAST, FUTURE = NOW - timedelta(days=30), NOW + timedelta(days=30)
PLACES = {"session": "session_id", "user": "user_id", "agent": "agent_id", "channel": "channel_id"}


@pytest.fixture(scope="module")
def house(lasting_home: Any) -> Iterator[BlockingMemoranda]:
    """A product whose tenants are taken one after the other: each example of a property gets a fresh one."""
    with lasting_home.empty(embedder={"url": "hash:32"}) as opened:
        yield opened


def contents(rows: list[Memory]) -> list[str]:
    """The texts of some rows."""
    return [row.content for row in rows]


# --- scopes --------------------------------------------------------------------------------------------


@pytest.fixture
def placed(memories: BlockingMemories) -> BlockingMemories:
    """One row in every place there is, named after it."""
    for session in (None, "1"):
        for user in (None, "1"):
            for agent in (None, "1"):
                for channel in (None, "1"):
                    ids = {"session_id": session, "user_id": user, "agent_id": agent, "channel_id": channel}
                    name = " ".join(key[:-3] for key, value in ids.items() if value) or "nowhere"
                    memories.add(f"apple {name}", **ids)
    return memories


@pytest.mark.parametrize("place", PLACES)
def test_a_scope_finds_the_rows_that_carry_its_id(placed: BlockingMemories, place: str) -> None:
    held = placed.list(scopes=[f"{place}:1"], limit=100).data
    assert len(held) == 8
    assert all(getattr(row, PLACES[place]) == "1" for row in held)
    found = placed.search("apple", scopes=[f"{place}:1"], limit=100).results
    assert sorted(hit.memory.id for hit in found) == sorted(row.id for row in held)
    assert placed.list(scopes=[f"{place}:2"]).data == []


def test_global_never_leaks(placed: BlockingMemories) -> None:
    assert contents(placed.list(scopes=["global"]).data) == ["apple nowhere"]
    for mode in ("dense", "keyword", "hybrid"):
        found = placed.search("apple session user", scopes=["global"], limit=100, mode=mode)
        assert [hit.memory.content for hit in found.results] == ["apple nowhere"]


def test_all_needs_the_admin(placed: BlockingMemories, rc: BlockingMemoranda) -> None:
    assert placed.count(scopes=["all"]) == 16
    for role in ("service", "member", "reader"):
        other = rc.as_subject(Subject(role=role, user_id=None if role == "service" else "1")).memories
        verbs = (
            lambda other=other: other.count(scopes=["all"]),
            lambda other=other: other.list(scopes=["global", "all"]),
            lambda other=other: other.search("apple", scopes=["all"]),
            lambda other=other: list(other.export(scopes=["all"])),
            lambda other=other: other.forget(scopes=["all"]),
        )
        for verb in verbs:
            with pytest.raises(Forbidden):
                verb()
    assert placed.count() == 16


def test_several_scopes_are_their_union(placed: BlockingMemories) -> None:
    both = placed.list(scopes=["session:1", "user:1", "session:1"], limit=100).data
    assert len(both) == len({row.id for row in both}) == 12
    assert placed.count(scopes=["session:1", "global"]) == 9


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("apple session user agent channel", "session"),
        ("apple user channel", "user"),
        ("apple agent channel", "agent"),
        ("apple channel", "channel"),
        ("apple nowhere", "global"),
    ],
)
def test_a_row_says_its_narrowest_scope(placed: BlockingMemories, name: str, scope: str) -> None:
    held = {row.content: row.scope for row in placed.list(limit=100).data}
    assert held[name] == scope


def test_a_hierarchy_weighs_each_scope_and_keeps_the_best(placed: BlockingMemories) -> None:
    found = placed.search(
        "apple",
        hierarchy={"session": "1", "user": "1", "agent": "1", "channel": "1"},
        limit=100,
        explain=True,
    )
    assert len(found.results) == len({hit.memory.id for hit in found.results}) == 16
    weights = {"session": 1.0, "user": 0.9, "agent": 0.8, "channel": 0.7, "global": 0.5}
    for hit in found.results:
        assert hit.explanation is not None
        assert hit.explanation.scope is not None
        assert hit.explanation.scope.partition(":")[0] == hit.memory.scope
        assert hit.explanation.scope_weight == weights[hit.memory.scope]


def test_a_hierarchy_sees_only_its_own_ids(placed: BlockingMemories) -> None:
    found = placed.search("apple", hierarchy={"session_id": "2", "user": "1"}, limit=100).results
    assert all(hit.memory.user_id == "1" or hit.memory.scope == "global" for hit in found)
    assert len(found) == 9


def test_weights_order_the_scopes(memories: BlockingMemories) -> None:
    memories.add("the red kite", user_id="u")
    memories.add("the red kite", session_id="s")
    memories.add("the red kite")
    found = memories.search("red kite", hierarchy={"session": "s", "user": "u"})
    best = found.results[0].score
    assert [(hit.memory.scope, round(hit.score / best, 4)) for hit in found.results] == [
        ("session", 1.0),
        ("user", 0.9),
        ("global", 0.5),
    ]
    turned = memories.search(
        "red kite", hierarchy={"session": "s", "user": "u"}, weights={"global": 2.0, "user": 0.0}
    )
    assert [hit.memory.scope for hit in turned.results] == ["global", "session", "user"]


# --- subjects ------------------------------------------------------------------------------------------


@pytest.fixture
def shared(rc: BlockingMemoranda) -> BlockingMemoranda:
    """Rows of two users and of nobody."""
    for user in ("ann", "bob", None):
        owner = user or "nobody"
        rc.memories.add(f"plum of {owner}", id=f"{owner}-1", user_id=user)
        rc.memories.add(f"plum of {owner} in session", id=f"{owner}-2", user_id=user, session_id="s")
    return rc


def every_verb(memories: BlockingMemories, id_: str) -> Iterator[Any]:
    """Each verb that takes an id."""
    yield lambda: memories.get(id_)
    yield lambda: memories.update(id_, importance=1)
    yield lambda: memories.delete(id_)


@pytest.mark.parametrize(
    "subject", [Subject(user_id="ann", role="member"), Subject(user_id="ann", role="service")]
)
def test_what_is_anothers_does_not_exist(shared: BlockingMemoranda, subject: Subject) -> None:
    ann = shared.as_subject(subject).memories
    for foreign, unknown in zip(every_verb(ann, "bob-1"), every_verb(ann, "xyz-1"), strict=True):
        with pytest.raises(NotFound) as theirs:
            foreign()
        with pytest.raises(NotFound) as nobodys:
            unknown()
        assert str(theirs.value).replace("bob-1", "xyz-1") == str(nobodys.value)
        assert type(theirs.value) is type(nobodys.value)
    with pytest.raises(InvalidInput) as theirs_too:
        ann.list(after="bob-1")
    with pytest.raises(InvalidInput) as nobodys_too:
        ann.list(after="xyz-1")
    assert str(theirs_too.value).replace("bob-1", "xyz-1") == str(nobodys_too.value)
    ann.count_access(["bob-1", "ann-1"])
    assert ann.forget(["bob-1"]).memories == 0
    assert ann.forget(scopes=["user:bob"]).memories == 0
    assert shared.memories.get("bob-1").access_count == 0
    assert shared.memories.get("ann-1").access_count == 1


@pytest.mark.parametrize("role", ["member", "reader", "service"])
@pytest.mark.parametrize(
    ("scopes", "seen"),
    [
        (None, {"ann-1", "ann-2", "nobody-1"}),
        (["user:ann"], {"ann-1", "ann-2"}),
        (["user:bob"], set()),
        (["session:s"], {"ann-2", "nobody-2"}),
        (["global"], {"nobody-1"}),
    ],
)
def test_one_sees_ones_own_rows_and_nobodys(
    shared: BlockingMemoranda, role: Any, scopes: list[str] | None, seen: set[str]
) -> None:
    ann = shared.as_subject(Subject(user_id="ann", role=role)).memories
    assert {row.id for row in ann.list(scopes=scopes).data} == seen
    assert ann.count(scopes=scopes) == len(seen)
    for mode in ("dense", "keyword", "hybrid"):
        assert {hit.memory.id for hit in ann.search("plum", scopes=scopes, mode=mode).results} == seen
    assert len(list(ann.export(scopes=scopes))) == 1 + len(seen)
    assert {pair.first for pair in ann.near_duplicates(scopes=scopes).data} <= seen
    found = ann.search("plum", hierarchy={"session": "s", "user": "bob"}).results
    assert {hit.memory.id for hit in found} == {"ann-2", "nobody-2", "nobody-1"}


def test_a_member_writes_as_itself_or_for_nobody(shared: BlockingMemoranda) -> None:
    ann = shared.as_subject(Subject(user_id="ann", role="member")).memories
    assert ann.add("mine by default").memory.user_id == "ann"
    assert ann.add("for all", user_id=None).memory.user_id is None
    with pytest.raises(Forbidden, match="user_id"):
        ann.add("as bob", user_id="bob")
    with pytest.raises(Forbidden, match=r"\[1\].user_id"):
        ann.add_many([{"content": "fine"}, {"content": "as bob", "user_id": "bob"}])
    with pytest.raises(Conflict):
        ann.add("another text", id="bob-1")
    assert ann.update("ann-1", content="changed").content == "changed"
    ann.delete("nobody-1")
    assert shared.memories.count() == 7


def test_a_reader_writes_nothing(shared: BlockingMemoranda) -> None:
    reader = shared.as_subject(Subject(user_id="ann", role="reader")).memories
    verbs = [
        lambda: reader.add("x"),
        lambda: reader.add_many(["x"]),
        lambda: reader.update("ann-1", importance=1),
        lambda: reader.delete("ann-1"),
        lambda: reader.forget(["ann-1"]),
        lambda: reader.import_from([b'{"content": "x"}']),
    ]
    for verb in verbs:
        with pytest.raises(Forbidden, match="reader"):
            verb()
    assert shared.memories.count() == 6
    assert reader.get("ann-1").id == "ann-1"


def test_a_service_works_in_the_scopes_it_names(shared: BlockingMemoranda) -> None:
    service = shared.as_subject(Subject(role="service")).memories
    assert {row.id for row in service.list().data} == {"nobody-1"}
    assert {row.id for row in service.list(scopes=["user:bob"]).data} == {"bob-1", "bob-2"}
    assert service.add("for bob", user_id="bob").memory.user_id == "bob"
    assert service.get("bob-1").id == "bob-1"


@pytest.mark.parametrize("role", ["service", "member", "reader"])
def test_the_house_is_run_by_admins(shared: BlockingMemoranda, role: Any) -> None:
    job = shared.memories.compact()
    other = shared.as_subject(Subject(user_id="ann", role=role)).memories
    verbs = [
        other.stats,
        other.reembed,
        other.compact,
        lambda: other.job(job.id),
        lambda: other.cancel(job.id),
        lambda: other.retry(job.id),
        other.jobs,
    ]
    for verb in verbs:
        with pytest.raises(Forbidden, match="admin"):
            verb()


# --- tenants -------------------------------------------------------------------------------------------


def test_another_tenants_rows_do_not_exist(rc: BlockingMemoranda) -> None:
    north, south = (rc.as_subject(Subject(tenant_id=name)).memories for name in ("north", "south"))
    north.add("the secret recipe", id="same", session_id="s")
    for verb in every_verb(south, "same"):
        with pytest.raises(NotFound):
            verb()
    assert south.add("the secret recipe", id="same", session_id="s").created
    assert south.update("same", content="the other recipe").content == "the other recipe"
    assert north.get("same").content == "the secret recipe"
    assert south.forget(scopes=["all"]).memories == 1
    assert [hit.memory.id for hit in north.search("secret recipe").results] == ["same"]
    assert (north.stats()["memories"], south.stats()["memories"]) == (1, 0)
    job = north.reembed()
    for verb in (south.job, south.wait, south.cancel, south.retry):
        with pytest.raises(NotFound):
            verb(job.id)
    assert south.jobs() == []


STEP = st.tuples(
    st.sampled_from(["add", "update", "delete", "forget", "import", "count_access"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["red stone", "blue stone", "green leaf", "red leaf"]),
    st.sampled_from([None, "s", "t"]),
)


def act(memories: BlockingMemories, step: tuple[str, str, str, str | None]) -> str:
    """Carries a step out; what came of it, without times."""
    verb, id_, text, session = step
    try:
        if verb == "add":
            return str(memories.add(text, id=id_, session_id=session).created)
        if verb == "update":
            return memories.update(id_, content=text).content
        if verb == "delete":
            return str(memories.delete(id_))
        if verb == "forget":
            return str(memories.forget(scopes=[f"session:{session}" if session else "global"]).memories)
        if verb == "import":
            return str(memories.import_from(list(memories.export()), scope="session:u").created)
        return str(memories.count_access([id_]))
    except (NotFound, Conflict) as exc:
        return type(exc).__name__


def look(memories: BlockingMemories) -> Any:
    """All that a tenant shows of its rows, without times and without ids that were drawn."""
    rows = memories.list(limit=100, order="asc", include_archived=True).data
    found = [
        sorted(hit.memory.content for hit in memories.search("red stone", mode=mode, limit=100).results)
        for mode in ("dense", "keyword")
    ]
    return [(row.content, row.session_id, row.access_count) for row in rows], found, memories.count()


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(st.tuples(st.booleans(), STEP), max_size=14))
def test_two_tenants_with_the_same_ids_live_apart(
    house: BlockingMemoranda, steps: list[tuple[bool, Any]]
) -> None:
    """Each of two interleaved tenants behaves as if it were alone."""
    names = [f"tenant-{uuid4()}" for _ in range(4)]
    tenants = [house.as_subject(Subject(tenant_id=name)).memories for name in names]
    together, alone = tenants[:2], tenants[2:]
    for which, step in steps:
        act(together[which], step)
    for which, step in sorted(steps, key=lambda one: one[0]):
        act(alone[which], step)
    for mine, reference in zip(together, alone, strict=True):
        assert look(mine) == look(reference)


# --- the model -----------------------------------------------------------------------------------------

NAME = st.sampled_from([None, None, "1", "2"])
ROW = st.fixed_dictionaries(
    {
        "session_id": NAME,
        "user_id": NAME,
        "agent_id": NAME,
        "channel_id": NAME,
        "kind": st.sampled_from(["note", "fact", "message"]),
        "tags": st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True),
        "metadata": st.dictionaries(
            st.sampled_from(["lang", "year"]), st.sampled_from(["en", 2024, 2025, True, None])
        ),
        "source": st.sampled_from([None, "chat"]),
        "valid_from": st.sampled_from([None, None, PAST, FUTURE]),
        "invalid_at": st.sampled_from([None, None, PAST, FUTURE]),
        "occurred_at": st.sampled_from([PAST - timedelta(days=9), PAST, NOW - timedelta(days=1)]),
        "archived": st.sampled_from([False, False, False, True]),
    }
)
SCOPE = st.sampled_from(["global", *(f"{place}:{n}" for place in PLACES for n in "12")])
QUESTION = st.fixed_dictionaries(
    {},
    optional={
        "scopes": st.lists(SCOPE, min_size=1, max_size=3),
        "kinds": st.lists(st.sampled_from(["note", "fact", "rollup"]), max_size=2),
        "tags": st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "filters": st.sampled_from(
            [
                {"lang": "en"},
                {"year": [2024, 2025]},
                {"type": "gte", "key": "year", "value": 2025},
                {"type": "ne", "key": "lang", "value": "en"},
                {"type": "eq", "key": "year", "value": None},
                {"type": "or", "filters": [{"lang": True}, {"type": "nin", "key": "year", "value": [2024]}]},
            ]
        ),
        "source": st.just("chat"),
        "since": st.just(PAST),
        "until": st.just(PAST),
        "as_of": st.sampled_from(
            [PAST - timedelta(days=5), NOW - timedelta(hours=1), FUTURE + timedelta(days=1)]
        ),
        "include_archived": st.booleans(),
    },
)
SUBJECT = st.sampled_from(
    [
        Subject(),
        Subject(user_id="1", role="member"),
        Subject(user_id="2", role="reader"),
        Subject(role="service"),
    ]
)


def in_scope(row: dict[str, Any], scope: str) -> bool:
    if scope == "global":
        return all(row[key] is None for key in PLACES.values())
    place, _, name = scope.partition(":")
    return bool(row[PLACES[place]] == name)


def fits(held: dict[str, Any], condition: dict[str, Any]) -> bool:
    """A metadata filter, in the words of its documentation."""
    if "filters" in condition:
        return any(fits(held, part) for part in condition["filters"])
    if "type" not in condition:
        return all(
            any(alike(held.get(key), value) for value in (wanted if isinstance(wanted, list) else [wanted]))
            for key, wanted in condition.items()
        )
    key, value = held.get(condition["key"]), condition["value"]
    match condition["type"]:
        case "eq":
            return alike(key, value)
        case "ne":
            return not alike(key, value)
        case "nin":
            return not any(alike(key, one) for one in value)
        case _:
            return isinstance(key, int) and not isinstance(key, bool) and key >= value


def alike(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def expected(row: dict[str, Any], asked: dict[str, Any], subject: Subject) -> bool:
    """Whether a question is about a row: SPEC 1 and `types.Selection`, said again."""
    if subject.role in ("member", "reader") and row["user_id"] not in (None, subject.user_id):
        return False
    scopes = asked.get("scopes")
    if scopes is None and subject.role != "admin":
        scopes = ["global"] if subject.user_id is None else [f"user:{subject.user_id}", "global"]
    if scopes is not None and not any(in_scope(row, scope) for scope in scopes):
        return False
    at = asked.get("as_of", NOW)
    return (
        (asked.get("kinds") is None or row["kind"] in asked["kinds"])
        and set(asked.get("tags", [])) <= set(row["tags"])
        and fits(row["metadata"], asked.get("filters", {}))
        and asked.get("source") in (None, row["source"])
        and not ("since" in asked and row["occurred_at"] < asked["since"])
        and not ("until" in asked and row["occurred_at"] >= asked["until"])
        and (row["valid_from"] is None or row["valid_from"] <= at)
        and (row["invalid_at"] is None or row["invalid_at"] > at)
        and ("as_of" not in asked or row["valid_from"] is not None or row["occurred_at"] <= at)
        and (asked.get("include_archived", False) or not row["archived"])
    )


def fill(house: BlockingMemoranda, rows: list[dict[str, Any]]) -> tuple[str, BlockingMemories]:
    """A new tenant that holds the rows, none archived yet, and its admin."""
    tenant = f"tenant-{uuid4()}"
    admin = house.as_subject(Subject(tenant_id=tenant)).memories
    batch = [
        {key: value for key, value in row.items() if key != "archived"}
        | {"content": f"pear number{n}", "id": f"row-{n}"}
        for n, row in enumerate(rows)
    ]
    admin.add_many(batch)
    return tenant, admin


@settings(max_examples=16, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(ROW, min_size=1, max_size=12),
    asked=st.lists(st.tuples(QUESTION, SUBJECT), min_size=1, max_size=8),
)
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.gate("sqlite", "postgresql-True")
def test_every_way_of_asking_finds_the_rows_of_the_model(
    house: BlockingMemoranda,
    committed: bool,
    rows: list[dict[str, Any]],
    asked: list[tuple[dict[str, Any], Subject]],
) -> None:
    tenant, admin = fill(house, rows)
    for n, row in enumerate(rows):
        if row["archived"]:
            admin.update(f"row-{n}", archived=True)
    if committed:
        house.inner.core.store.words.compact()
    for question, subject in asked:
        wanted = {f"pear number{n}" for n, row in enumerate(rows) if expected(row, question, subject)}
        memories = house.as_subject(msgspec.structs.replace(subject, tenant_id=tenant)).memories
        assert set(contents(memories.list(limit=100, **question).data)) == wanted
        assert set(contents(memories.list(limit=100, order="asc", **question).data)) == wanted
        assert memories.count(**question) == len(wanted)
        for mode in ("dense", "keyword", "hybrid"):
            found = memories.search("pear", mode=mode, limit=100, **question)
            assert {hit.memory.content for hit in found.results} == wanted, mode
            assert found.total_count == len(wanted)
            few = memories.search("pear", mode=mode, limit=2, **question)
            assert len(few.results) == min(2, len(wanted)), "the filter goes before the limit"


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(ROW, min_size=1, max_size=10), asked=QUESTION, subject=SUBJECT)
def test_forgetting_takes_what_a_question_names_and_nothing_else(
    house: BlockingMemoranda, rows: list[dict[str, Any]], asked: dict[str, Any], subject: Subject
) -> None:
    tenant, admin = fill(house, rows)
    asked = {key: value for key, value in asked.items() if key not in ("as_of", "include_archived")}
    everything = [{**row, "valid_from": None, "invalid_at": None, "archived": False} for row in rows]
    wanted = {f"pear number{n}" for n, row in enumerate(everything) if expected(row, asked, subject)}
    memories = house.as_subject(msgspec.structs.replace(subject, tenant_id=tenant)).memories
    lines = list(memories.export(**asked))
    assert len(lines) == 1 + len(wanted)
    if subject.role == "reader" or not any(asked.values()):
        return
    assert memories.forget(**asked).memories == len(wanted)
    kept = {json.loads(line)["content"] for line in list(admin.export())[1:]}
    assert kept == {f"pear number{n}" for n in range(len(rows))} - wanted
    stats = admin.stats()
    assert stats["memories"] == stats["indexed_vectors"] == stats["indexed_words"] == len(kept)
