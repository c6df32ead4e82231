"""Conversations as the library keeps them: items as they come back, pages, who sees what."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import Forbidden, InvalidInput, NotFound
from memoranda.responses import records
from memoranda.responses.conversations import keep_summary
from memoranda.responses.values import Summary, compaction_item
from memoranda.types import Subject


class Room:
    """Conversations of whoever acts in one tenant, without a loop."""

    def __init__(self, rc: BlockingMemoranda, tenant: str) -> None:
        self.rc, self.tenant = rc, tenant
        self.admin = self.by()

    def by(self, user: str | None = None, role: str | None = None, tenant: str | None = None) -> Any:
        named: Any = role or ("admin" if user is None else "member")
        subject = Subject(tenant_id=tenant or self.tenant, user_id=user, role=named)
        return self.rc.as_subject(subject).conversations

    def write(self, work: Callable[[Any], Any]) -> Any:
        """The result of a piece of writing behind the library's back."""
        return self.rc.inner.core.store.db.write(work, tenant=self.tenant).result()


@pytest.fixture(scope="module")
def rooms(lasting_home: Any) -> Iterator[Callable[[], Room]]:
    numbers = itertools.count()
    with lasting_home.empty(embedder={"url": "hash:16"}) as opened:
        yield lambda: Room(opened, f"tenant{next(numbers)}")


@pytest.fixture
def room(rooms: Callable[[], Room]) -> Room:
    return rooms()


def said(text: str, role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **fields}


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["content"][0]["text"] for item in items]


def test_a_conversation_is_what_it_was_made_as(room: Room) -> None:
    made = room.admin.create([said("hello")], metadata={"a": "b"})
    assert made.id.startswith("conv_")
    assert (made.metadata, made.user_id, made.summary) == ({"a": "b"}, None, None)
    assert room.admin.get(made.id) == made
    assert room.admin.create().metadata == {}


def test_items_come_back_complete(room: Room) -> None:
    id_ = room.admin.create().id
    added = room.admin.add_items(id_, [said("what?"), said("that", "assistant")])
    question, answer = added.data
    assert question["content"] == [{"type": "input_text", "text": "what?"}]
    assert answer["content"] == [{"type": "output_text", "text": "that", "annotations": [], "logprobs": []}]
    for item in added.data:
        assert (item["type"], item["status"]) == ("message", "completed")
        assert item["id"].startswith("msg_")
        assert room.admin.get_item(id_, item["id"]) == item
        assert not [key for key in item if key.startswith("_")]
    assert (added.first_id, added.last_id, added.has_more) == (question["id"], answer["id"], False)
    assert room.admin.items(id_, order="asc").data == added.data


@pytest.mark.parametrize(
    ("item", "kept"),
    [
        (said("a", id="msg_mine"), True),
        (said("a", id="mine"), False),
        (said("a", id="fc_1"), False),
        (said("a", id="msg_\x00"), False),
        ({"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}", "id": "fc_1"}, True),
        ({"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}", "id": "c"}, False),
        ({"type": "reasoning", "id": "rs_1", "summary": []}, True),
    ],
)
def test_ids_are_kept_where_they_begin_as_they_should(room: Room, item: dict[str, Any], kept: bool) -> None:
    (held,) = room.admin.add_items(room.admin.create().id, [item]).data
    assert (held["id"] == item["id"]) is kept
    assert held["id"].partition("_")[0] in ("msg", "fc", "rs")


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ([], "items"),
        ([said(str(i)) for i in range(21)], "items"),
        ("text", "items"),
        ([said("a"), {"role": "king", "content": "a"}], "items[1].role"),
        ([said("a", id="msg_1"), said("b", id="msg_1")], "items[1].id"),
        ([said("a"), said("b", id="msg_there")], "items[1].id"),
        ([{"type": "item_reference", "id": "msg_there"}], "items[0].type"),
        ([{"type": "compaction", "encrypted_content": "x"}], "items[0].encrypted_content"),
        ([{"type": "function_call", "name": "n", "arguments": "{}"}], "items[0].call_id"),
        ([said("half \ud800")], "items[0]"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_added(room: Room, items: Any, field: str) -> None:
    id_ = room.admin.create([said("there", id="msg_there")]).id
    with pytest.raises(InvalidInput) as caught:
        room.admin.add_items(id_, items)
    assert caught.value.field.startswith(field)
    assert texts(room.admin.items(id_).data) == ["there"]


def test_the_same_id_goes_into_another_conversation(room: Room) -> None:
    for _ in range(2):
        id_ = room.admin.create([said("a", id="msg_1")]).id
        assert room.admin.get_item(id_, "msg_1")["content"][0]["text"] == "a"


def test_a_compaction_item_is_kept_as_it_is(room: Room) -> None:
    item = compaction_item("what came before")
    id_ = room.admin.create([item]).id
    assert room.admin.items(id_).data == [item]


def test_metadata_is_replaced(room: Room) -> None:
    id_ = room.admin.create(metadata={"a": "b", "c": "d"}).id
    assert room.admin.update(id_, metadata={"e": "f"}).metadata == {"e": "f"}
    assert room.admin.get(id_).metadata == {"e": "f"}
    with pytest.raises(InvalidInput, match=r"metadata\.g"):
        room.admin.update(id_, metadata={"g": 1})
    assert room.admin.update(id_, metadata=None).metadata == {}


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(
    limit=st.integers(1, 7), order=st.sampled_from(["asc", "desc"]), added=st.integers(0, 5), data=st.data()
)
def test_pages_are_complete_while_items_come_and_go(
    rooms: Callable[[], Room], limit: int, order: str, added: int, data: Any
) -> None:
    """Each item that is there from the beginning to the end is seen exactly once, in order; one that comes meanwhile
    at most once."""
    here = rooms().admin
    id_ = here.create([said(str(i)) for i in range(12)]).id
    lasting = [item["id"] for item in here.items(id_, limit=100, order=order).data]
    seen: list[str] = []
    after, more = None, True
    while more:
        page = here.items(id_, limit=limit, after=after, order=order)
        seen += [item["id"] for item in page.data]
        after, more = page.last_id, page.has_more
        if added:
            here.add_items(id_, [said("new")])
            added -= 1
        gone = data.draw(st.sampled_from(lasting))
        if gone != after and len(lasting) > 6:
            here.delete_item(id_, gone)
            lasting.remove(gone)
    assert len(seen) == len(set(seen))
    assert [item for item in seen if item in lasting] == lasting


def test_a_page_says_what_is_wrong(room: Room) -> None:
    id_ = room.admin.create([said("a")]).id
    for field, fields in (("limit", {"limit": 0}), ("limit", {"limit": 101}), ("order", {"order": "up"}),
                          ("after", {"after": "msg_nope"}), ("after", {"after": "\x00"})):  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            room.admin.items(id_, **fields)
        assert caught.value.field == field
    empty = room.admin.items(room.admin.create().id)
    assert (empty.data, empty.first_id, empty.last_id, empty.has_more) == ([], None, None, False)


def test_what_is_deleted_is_gone(room: Room) -> None:
    id_ = room.admin.create([said("a", id="msg_a"), said("b", id="msg_b")]).id
    assert room.admin.delete_item(id_, "msg_a").id == id_
    assert texts(room.admin.items(id_).data) == ["b"]
    for verb in (room.admin.get_item, room.admin.delete_item):
        with pytest.raises(NotFound):
            verb(id_, "msg_a")
    room.admin.delete(id_)
    for verb in (room.admin.get, room.admin.delete, room.admin.items):
        with pytest.raises(NotFound):
            verb(id_)
    held = room.write(
        lambda c: c.select("SELECT id FROM conversation_items WHERE conversation_id = ?", [id_])
    )
    assert held == []


def heard(verbs: Any, id_: str, item: str) -> list[str]:
    """What every verb says about a conversation, its id taken out."""
    asked = [
        lambda: verbs.get(id_),
        lambda: verbs.update(id_, metadata={}),
        lambda: verbs.items(id_),
        lambda: verbs.items(id_, after=item),
        lambda: verbs.add_items(id_, [said("x")]),
        lambda: verbs.get_item(id_, item),
        lambda: verbs.delete_item(id_, item),
        lambda: verbs.delete(id_),
    ]
    answers = []
    for ask in asked:
        with pytest.raises(NotFound) as caught:
            ask()
        answers.append(str(caught.value).replace(id_, "ID"))
    return answers


def test_anothers_conversation_is_an_unknown_one(room: Room) -> None:
    made = room.by("ann").create([said("mine", id="msg_1")])
    strangers = [
        room.by("bob"),
        room.by(tenant=f"{room.tenant}-other"),
        room.by("ann", tenant=f"{room.tenant}-other"),
    ]
    for stranger in strangers:
        assert heard(stranger, made.id, "msg_1") == heard(stranger, "conv_nope", "msg_1")
    for friend in (room.by("ann"), room.admin, room.by(role="service")):
        assert friend.get_item(made.id, "msg_1")["content"][0]["text"] == "mine"
    shared = room.admin.create([said("ours")])
    assert texts(room.by("bob").items(shared.id).data) == ["ours"]


def test_a_reader_reads(room: Room) -> None:
    id_ = room.admin.create([said("a", id="msg_a")]).id
    reader = room.by("ann", "reader")
    assert reader.get(id_).id == id_
    for ask in (
        lambda: reader.create(),
        lambda: reader.update(id_, metadata={}),
        lambda: reader.add_items(id_, [said("x")]),
        lambda: reader.delete_item(id_, "msg_a"),
        lambda: reader.delete(id_),
    ):
        with pytest.raises(Forbidden):
            ask()


def test_results_of_searches_are_shown_where_they_are_asked_for(room: Room) -> None:
    id_ = room.admin.create().id
    item = {
        "id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["q"], "results": None,
        "_results": [{"file_id": "file-1", "text": "the kettle"}], "_told": "[1] the kettle",
    }  # fmt: skip
    room.write(lambda c: records.add_items(c, room.tenant, id_, [item], "resp_1"))
    plain = {key: value for key, value in item.items() if not key.startswith("_")}
    assert room.admin.items(id_).data == [plain]
    assert room.admin.get_item(id_, "fs_1") == plain
    included = room.admin.get_item(id_, "fs_1", include=["file_search_call.results"])
    assert included == {**plain, "results": item["_results"]}


def test_items_are_written_together(room: Room) -> None:
    """One wait for the database, not one for each of up to 10 000 items."""
    id_ = room.admin.create([said("first", id="msg_a")]).id
    items = [{**said(name), "id": f"msg_{name}", "type": "message"} for name in ("a", "b", "b", "c")]
    asked = []

    class Seen:
        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def __getattr__(self, verb: str) -> Any:
            asked.append(verb)
            return getattr(self._connection, verb)

    room.write(lambda c: records.add_items(Seen(c), room.tenant, id_, items))  # type: ignore[arg-type]
    assert asked == ["one", "many"]
    assert [item["id"] for item in room.admin.items(id_, order="asc").data] == ["msg_a", "msg_b", "msg_c"]


def kept(room: Room, id_: str, up_to: str, told: list[str], text: str = "told") -> bool:
    summary = Summary(summary=text, summarized_up_to=up_to, token_count=1, created_at=1, by="m")
    return bool(room.write(lambda c: keep_summary(c, room.tenant, id_, summary, told)))


def test_a_summary_goes_with_an_item_that_it_tells_of(room: Room) -> None:
    ids = ["msg_a", "msg_b", "msg_c"]
    id_ = room.admin.create([said(name, id=name) for name in ids]).id
    assert kept(room, id_, "msg_b", ids[:2])
    assert room.admin.get(id_).summary.summary == "told"
    assert room.admin.delete_item(id_, "msg_c").summary is not None
    assert room.admin.delete_item(id_, "msg_a").summary is None
    assert room.admin.get(id_).summary is None


def test_no_summary_is_kept_that_came_too_late(room: Room) -> None:
    ids = ["msg_a", "msg_b", "msg_c"]
    id_ = room.admin.create([said(name, id=name) for name in ids]).id
    assert kept(room, id_, "msg_b", ids[:2], "first")
    assert kept(room, id_, "msg_b", ids[:2], "same")
    assert not kept(room, id_, "msg_a", ids[:1], "shorter")
    room.admin.delete_item(id_, "msg_c")
    assert not kept(room, id_, "msg_c", ids, "of what is gone")
    assert room.admin.get(id_).summary.summary == "same"
    room.admin.delete(id_)
    assert not kept(room, id_, "msg_b", ids[:2])
