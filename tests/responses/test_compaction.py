"""Compacted conversations: what a client carries comes back as it was, or is refused."""

from __future__ import annotations

import asyncio
import base64
import zlib
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.config.agent_sections import Summarization
from memoranda.errors import InvalidInput, NotFound
from memoranda.providers.chat.scripted import ScriptedModel
from memoranda.responses import values
from memoranda.responses.conversations import keep_summary
from memoranda.responses.items import checked
from memoranda.responses.messages import to_messages
from memoranda.responses.summaries import compacted
from memoranda.responses.values import Summary, compaction_item, packed, unpack
from memoranda.text import prompts

TEXT = "User: the kettle is green. 水は青い. 😀"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_what_was_packed_comes_back(text: str) -> None:
    assert unpack(packed(text)) == text


@pytest.mark.parametrize(
    "content",
    ["", "rubbish", "gAAAAABo-other-servers", 7, None, packed(TEXT)[:-4], packed(TEXT) + "AAAA", "rc1.", "rc1.é",
     "rc1." + base64.urlsafe_b64encode(b"1234" + zlib.compress(b"other")).decode()],
)  # fmt: skip
def test_rubbish_is_refused_by_name(content: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        unpack(content, "input[3].encrypted_content")
    assert caught.value.field == "input[3].encrypted_content"
    assert "compact" in str(caught.value)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_no_changed_byte_changes_the_text(place: int, change: int) -> None:
    """A bit that only says how hard it was packed may change."""
    body = bytearray(base64.urlsafe_b64decode(packed(TEXT).removeprefix("rc1.")))
    body[place % len(body)] ^= change
    with suppress(InvalidInput):
        assert unpack("rc1." + base64.urlsafe_b64encode(bytes(body)).decode()) == TEXT


def test_what_unpacks_to_more_than_a_mebibyte_is_refused() -> None:
    raw = b"a" * (4 * values.MAX_PACKED_CHARS)
    bomb = zlib.crc32(raw).to_bytes(4, "big") + zlib.compress(raw, 9)
    content = "rc1." + base64.urlsafe_b64encode(bomb).decode()
    assert len(content) < 10_000
    with pytest.raises(InvalidInput, match="damaged"):
        unpack(content)


def test_an_item_is_checked_when_it_comes_in() -> None:
    sent = [{"role": "user", "content": "hello"}, {"type": "compaction", "encrypted_content": "rubbish"}]
    with pytest.raises(InvalidInput) as caught:
        checked(sent, "input")
    assert caught.value.field == "input[1].encrypted_content"


def test_a_model_reads_the_text_of_the_item() -> None:
    carried = checked([compaction_item(TEXT)])
    quoted = f"{prompts.QUOTED}\n\n{prompts.SUMMARY}\n{TEXT}"
    assert to_messages(carried) == [{"role": "user", "content": quoted}]


def test_a_conversation_becomes_its_questions_and_one_item() -> None:
    model = ScriptedModel([{"text": "The kettle is green; the price is open."}])
    items = checked(
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "What colour is the kettle?"},
            {"role": "assistant", "content": "Green."},
            {"role": "user", "content": "And what does it cost?"},
            {"type": "function_call", "call_id": "c1", "name": "stock", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "3"},
            {"type": "function_call", "call_id": "c2", "name": "price", "arguments": "{}"},
        ]
    )
    made = asyncio.run(compacted(items, model, Summarization()))
    assert [item["type"] for item in made] == ["message", "message", "compaction", "function_call"]
    assert [item["role"] for item in made[:2]] == ["user", "user"]
    assert unpack(made[2]["encrypted_content"]) == "The kettle is green; the price is open."
    assert made[3]["call_id"] == "c2"
    again = asyncio.run(
        compacted(
            [*made[:3], *checked("Go on.")],
            ScriptedModel([{"when": "price is open", "text": "ok"}]),
            Summarization(),
        )
    )
    assert unpack(again[-1]["encrypted_content"]) == "ok"


@pytest.mark.rows_in("sqlite")
def test_a_stored_summary_is_carried_over(desk: Any) -> None:
    """Also one that covers the whole conversation."""
    conversations = desk.inner.as_subject(desk.admin).conversations
    texts = ["The PIN is 4711.", "I have a dog."]
    talk = desk.run(conversations.create([{"role": "user", "content": text} for text in texts]))
    ids = [item["id"] for item in desk.run(conversations.items(talk.id, order="asc")).data]
    for covered, read in ((ids[:1], "User: I have a dog."), (ids, "")):
        summary = Summary(summary="The PIN: 4711", summarized_up_to=covered[-1], token_count=9, created_at=1)
        keep = partial(keep_summary, tenant=desk.tenant, id_=talk.id, summary=summary, summarized=covered)
        assert desk.inner.core.store.db.write(keep).result()
        desk.script({"when": "Earlier notes:\nThe PIN: 4711", "text": "The PIN is 4711; a dog."})
        made = desk.run(desk.responses.compact(conversation=talk.id))
        assert desk.told()[-1]["content"].endswith(f"Conversation:\n{read}\n\nThe notes:")
        assert unpack(made.output[-1]["encrypted_content"]) == "The PIN is 4711; a dog."


@pytest.mark.rows_in("sqlite")
def test_forgetting_a_phrase_finds_it_where_it_is_packed(desk: Any) -> None:
    desk.script({"text": "Hello.", "repeat": True})
    packed = compaction_item("Ada has a dog called Rex.")
    carried = desk.create([packed, {"role": "user", "content": "Hello"}])
    other = desk.create([compaction_item("Ada has a cat."), {"role": "user", "content": "Hello"}])
    talk = desk.run(desk.rc.inner.as_subject(desk.admin).conversations.create(items=[packed]))
    receipt = desk.rc.as_subject(desk.admin).memories.forget(text="dog called rex")
    assert receipt.counts["responses"] == 1
    assert receipt.counts["items"] == 1
    with pytest.raises(NotFound):
        desk.run(desk.responses.get(carried.id))
    assert desk.run(desk.responses.get(other.id)).id == other.id
    assert desk.run(desk.rc.inner.as_subject(desk.admin).conversations.items(talk.id)).data == []
