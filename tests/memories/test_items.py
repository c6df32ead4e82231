"""Memories of kind `item`: entries of a key-value store, apart from what agents remember otherwise."""

from __future__ import annotations

from typing import Any

from memoranda.store.rows import TEXT_SEPARATOR

ITEM: dict[str, Any] = {"kind": "item"}


def test_an_item_is_itself_by_its_id(memories: Any) -> None:
    first, second = memories.add("tea", id="a", **ITEM), memories.add("tea", id="b", **ITEM)
    assert (first.created, second.created, memories.add("tea", id="a", **ITEM).created) == (True, True, False)
    assert memories.add("tea").created
    assert memories.update("b", content="coffee").content == "coffee"
    assert memories.update("b", content="tea").content == "tea"
    assert memories.add("milk", **ITEM).memory.id != memories.add("milk", **ITEM).memory.id


def test_items_are_seen_by_their_kind_alone(memories: Any) -> None:
    memories.add("a green kettle", id="item", **ITEM)
    memories.add("a blue kettle", id="note")

    def found(**fields: Any) -> list[str]:
        return [hit.memory.id for hit in memories.search("kettle", **fields).results]

    assert found() == found(mode="dense") == found(mode="keyword") == ["note"]
    assert found(kinds=["item"]) == ["item"]
    assert sorted(found(kinds=["item", "note"])) == ["item", "note"]
    assert [memory.id for memory in memories.list().data] == ["note"]
    assert (memories.count(), memories.count(kinds=["item"])) == (1, 1)
    assert memories.get("item").kind == "item"
    assert memories.forget(scopes=["all"]).memories == 2


def test_each_text_of_an_item_has_a_vector_of_its_own(memories: Any) -> None:
    texts = ["the fence is red", "the kettle was bought in Potsdam, and is green"]
    memories.add(TEXT_SEPARATOR.join([*texts, " "]), id="two", **ITEM)
    memories.add(TEXT_SEPARATOR.join(texts), id="note")

    def cosine(id_: str, text: str) -> float:
        hits = memories.search(text, kinds=["item", "note"], mode="dense", explain=True).results
        return next(hit.explanation.cosine for hit in hits if hit.memory.id == id_)

    for text in texts:
        assert cosine("two", text) > 0.999
        assert cosine("note", text) < 0.99
