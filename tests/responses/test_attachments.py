"""Files inside messages: read once, told as text; images as data URLs."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from memoranda.errors import InvalidInput
from memoranda.responses.attachments import decoded
from memoranda.types import Subject

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CUT = base64.b64encode(b"%PDF-1.4 cut").decode()
ECHO = {"text": "I see", "repeat": True}


def upload(desk: Any, content: bytes, name: str, user: str | None = None) -> str:
    subject = Subject(tenant_id=desk.tenant, user_id=user, role="member" if user else "admin")
    return str(desk.run(desk.inner.as_subject(subject).knowledge.files.upload(content, name)).id)


def ask(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "input_text", "text": "what is this?"}, *parts]}]


def told(desk: Any) -> Any:
    return desk.told()[-1]["content"]


@pytest.mark.parametrize("named", [True, False])
def test_an_uploaded_file_is_told_as_text(desk: Any, named: bool) -> None:
    desk.script(ECHO)
    id_ = upload(desk, b"The boss is Ada.", "boss.txt")
    part = {"type": "input_file", "file_id": id_, **({"filename": "other.txt"} if named else {})}
    made = desk.create(ask(part))
    assert told(desk) == f"what is this?\n\nFile {'other' if named else 'boss'}.txt:\nThe boss is Ada."
    page = desk.run(desk.responses.input_items(made.id)).data
    assert page[0]["content"][1]["file_id"] == id_
    assert "_texts" not in page[0]


def test_a_file_is_remembered_as_it_was_read(desk: Any) -> None:
    """Its text goes with the conversation, though the file is deleted."""
    desk.script(ECHO)
    id_ = upload(desk, b"The boss is Ada.", "boss.txt")
    made = desk.create(ask({"type": "input_file", "file_id": id_}))
    behind = desk.create(ask({"type": "input_file", "file_id": id_}), background=True)
    desk.run(desk.inner.as_subject(desk.admin).knowledge.files.delete(id_))
    desk.create("and now?", previous_response_id=made.id)
    assert "The boss is Ada." in desk.told()[0]["content"]
    assert desk.ended(behind.id).status == "completed"


@pytest.mark.parametrize("head", ["", "data:text/html;charset=utf-8;base64,"])
def test_a_file_that_is_sent_along(desk: Any, head: str) -> None:
    desk.script(ECHO)
    data = head + base64.b64encode(b"<html><body><p>The boss is <b>Ada</b>.</p></body></html>").decode()
    desk.create(ask({"type": "input_file", "file_data": data, "filename": "boss.html"}))
    assert "The boss is Ada." in told(desk)
    if head:
        desk.create(ask({"type": "input_file", "file_data": data}))
        assert "File file" in told(desk)
        assert "The boss is Ada." in told(desk)


def test_images(desk: Any) -> None:
    desk.script(ECHO)
    id_ = upload(desk, PNG, "dot.png")
    made = desk.create(
        ask(
            {"type": "input_image", "file_id": id_},
            {"type": "input_image", "image_url": "https://example.org/a.png"},
        )
    )
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert [part["type"] for part in told(desk)] == ["text", "image_url", "image_url"]
    assert told(desk)[1]["image_url"] == {"url": url, "detail": "auto"}
    assert told(desk)[2]["image_url"]["url"] == "https://example.org/a.png"
    desk.create("and?", previous_response_id=made.id)
    assert desk.told()[0]["content"][1]["image_url"]["url"] == url
    desk.run(desk.inner.as_subject(desk.admin).knowledge.files.delete(id_))
    desk.create("and now?", previous_response_id=made.id)
    assert desk.told()[0]["content"][1] == {"type": "text", "text": "[an image that is not there any more]"}


@pytest.mark.parametrize(
    ("part", "where", "says"),
    [
        ({"type": "input_file", "file_id": "file_none"}, "file_id", "no file"),
        ({"type": "input_image", "file_id": "file_none"}, "file_id", "no file"),
        ({"type": "input_file", "file_data": "%%%"}, "file_data", "base64"),
        ({"type": "input_file", "file_data": "data:text/plain,plain"}, "file_data", "base64"),
        ({"type": "input_file", "file_data": CUT, "filename": "a.pdf"}, "", "cannot be read"),
        ({"type": "input_file", "file_url": "http://127.0.0.1/x"}, "file_url", "not fetched"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_named(desk: Any, part: dict[str, Any], where: str, says: str) -> None:
    desk.script(ECHO)
    with pytest.raises(InvalidInput, match=says) as refused:
        desk.create(ask(part))
    assert refused.value.field == ".".join(filter(None, ["input[0].content[1]", where]))
    assert desk.model.asked == []


def test_a_file_in_an_item_that_is_added_to_a_conversation(desk: Any) -> None:
    """The model reads the text and the image as those of a request, also after the file is deleted, and tokens of the
    text are counted."""
    desk.script(ECHO)
    id_ = upload(desk, b"The boss is Ada. " * 100, "boss.txt")
    items = ask(
        {"type": "input_file", "file_id": id_}, {"type": "input_image", "file_id": upload(desk, PNG, "a.png")}
    )
    conversations = desk.inner.as_subject(desk.admin).conversations
    begun = desk.run(conversations.create(items)).id
    grown = desk.run(conversations.create()).id
    (added,) = desk.run(conversations.add_items(grown, items)).data
    assert "_texts" not in added
    desk.run(desk.inner.as_subject(desk.admin).knowledge.files.delete(id_))
    for conversation in (begun, grown):
        desk.create("and now?", conversation=conversation)
        parts = desk.told()[0]["content"]
        assert parts[1]["text"].startswith("File boss.txt:\nThe boss is Ada.")
        assert parts[2]["image_url"]["url"].startswith("data:image/png;base64,")
    rows = desk.rows("SELECT item FROM conversation_items WHERE tenant_id = ?", desk.tenant)
    with_file = [item for (text,) in rows if "_texts" in (item := json.loads(text))]
    assert [item["_tokens"] > 500 for item in with_file] == [True, True]


@pytest.mark.parametrize("kind", ["input_file", "input_image"])
def test_a_file_that_is_not_there_is_added_to_no_conversation(desk: Any, kind: str) -> None:
    conversations = desk.inner.as_subject(desk.by("bob").subject).conversations
    id_ = desk.run(conversations.create()).id
    for file in ("file_none", upload(desk, PNG, "a.png", user="ada")):
        items = ask({"type": kind, "file_id": file})
        for adding in (conversations.create(items), conversations.add_items(id_, items)):
            with pytest.raises(InvalidInput, match="no file") as refused:
                desk.run(adding)
            assert refused.value.field == "items[0].content[1].file_id"
    assert desk.run(conversations.items(id_)).data == []


def test_files_of_others_are_not_there(desk: Any) -> None:
    mine = upload(desk, b"secret", "a.txt", user="ada")
    picture = upload(desk, PNG, "a.png", user="ada")
    desk.script(ECHO)
    for part in ({"type": "input_file", "file_id": mine}, {"type": "input_image", "file_id": picture}):
        for by in (desk.by("bob"), desk.by(tenant=f"{desk.tenant}-other")):
            with pytest.raises(InvalidInput, match="no file"):
                desk.create(ask(part), by=by)
        assert desk.create(ask(part), by=desk.by("ada")).status == "completed"


def test_a_text_is_no_image(desk: Any) -> None:
    desk.script(ECHO)
    id_ = upload(desk, b"The boss is Ada.", "boss.txt")
    with pytest.raises(InvalidInput, match="is no image"):
        desk.create(ask({"type": "input_image", "file_id": id_}))


def test_decoded() -> None:
    assert decoded("aGk=", "x") == ("", b"hi")
    assert decoded("data:text/plain;base64,aGk=", "x") == ("text/plain", b"hi")
    assert decoded("data:text/plain;charset=utf-8;base64,", "x") == ("text/plain", b"")
    for wrong in ("data:text/plain;base64", "data:,hi", "a", "aGk=\n!", "é"):
        with pytest.raises(InvalidInput, match="base64"):
            decoded(wrong, "x")
