"""Every format: recognised by its content, read to the last message, and what is left out is said."""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import InvalidInput
from memoranda.importers.formats import FORMATS, NAMES, OWN, detected, known
from memoranda.importers.sources import Source
from memoranda.importers.values import Conversation, Entry, Item, Skipped
from support.exports import SAMPLES, Sample, chatgpt_conversation, chatgpt_node, jsonl, packed, write


def items(path: Path, format: str) -> list[Item]:
    """What a reader yields."""
    with Source(path) as source:
        return list(FORMATS[format].read(source))


def sample(format: str) -> Sample:
    return next(each for each in SAMPLES if each.format == format)


def read_sample(format: str, folder: Path) -> tuple[list[Conversation], dict[str, Entry]]:
    """The conversations with messages of a sample, and its memories by text."""
    found = items(write(sample(format), folder), format)
    entries = {each.content: each for each in found if isinstance(each, Entry)}
    return [each for each in found if isinstance(each, Conversation) and each.messages], entries


def test_there_is_a_sample_of_every_format() -> None:
    assert {each.format for each in SAMPLES} == {
        name for name, each in FORMATS.items() if not each.has_fields
    }


@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: f"{one.format}-{one.form}")
def test_a_sample_is_recognised_and_read(one: Sample, tmp_path: Path) -> None:
    path = write(one, tmp_path)
    assert detected(path) == one.format
    imported: Counter[str] = Counter()
    skipped: Counter[tuple[str, str]] = Counter()
    for item in items(path, one.format):
        if isinstance(item, Skipped):
            skipped[item.kind, item.reason] += 1
        elif isinstance(item, Entry):
            imported[item.kind] += 1
        elif item.messages:
            imported["conversation"] += 1
            imported["message"] += len(item.messages)
        else:
            skipped["conversation", "has no messages to import"] += 1
    assert imported == one.imported
    assert skipped == one.skipped


@pytest.mark.parametrize("form", ["zip", "folder"])
@pytest.mark.parametrize("one", SAMPLES, ids=lambda one: f"{one.format}-{one.form}")
def test_every_format_is_read_from_a_zip_file_and_a_folder(one: Sample, form: str, tmp_path: Path) -> None:
    path = packed(one.files, form, tmp_path / "other")
    if one.format != "obsidian" or form == "folder":
        assert detected(path) == one.format
    read = [each for each in items(path, one.format) if not isinstance(each, Skipped)]
    assert len(read) == len(
        [each for each in items(write(one, tmp_path), one.format) if not isinstance(each, Skipped)]
    )


def test_chatgpt(tmp_path: Path) -> None:
    conversations, entries = read_sample("chatgpt", tmp_path)
    first, second = conversations
    assert [(each.role, each.content) for each in first.messages] == [
        ("user", "Where do herons nest?"),
        ("assistant", "In colonies, in trees."),
        ("user", "What is this?"),
        ("assistant", "A heron."),
    ]
    assert first.messages[0].occurred_at == datetime.fromtimestamp(1736209420.25, UTC)
    assert (first.title, first.metadata) == ("Title of c1", {"project": "g-p-birds"})
    assert [each.content for each in second.messages] == ["Is tea older than coffee?", "Tea is."]
    assert set(entries) == {"Watches herons.", "Has a dog named Rex.", "I am Ada.", "Be short."}
    assert entries["Has a dog named Rex."].occurred_at == datetime(2024, 5, 1, tzinfo=UTC)


def test_chatgpt_memories_keep_their_lines_and_those_without_a_date(tmp_path: Path) -> None:
    context = (
        "1. [2024-04-30]. User likes tea.\n\n2. [2024-05-02]. User's list:\n- milk\n\n1. two eggs\n2. oil\n\n"
        "3. User has a dog named Rex.\n4. [2024-05-04] User sails."
    )
    remembered = {"content_type": "model_editable_context", "model_set_context": context}
    nodes = [chatgpt_node("m", None, "assistant", None, 1736209410.0, content=remembered)]
    files = {"conversations.json": json.dumps([chatgpt_conversation("c", nodes, "m")])}
    found = items(packed(files, "file", tmp_path), "chatgpt")
    assert [(each.content, each.occurred_at) for each in found if isinstance(each, Entry)] == [
        ("User likes tea.", datetime(2024, 4, 30, tzinfo=UTC)),
        ("User's list:\n- milk\n\n1. two eggs\n2. oil", datetime(2024, 5, 2, tzinfo=UTC)),
        ("User has a dog named Rex.", datetime.fromtimestamp(1736209410, UTC)),
        ("User sails.", datetime(2024, 5, 4, tzinfo=UTC)),
    ]


def test_claude(tmp_path: Path) -> None:
    conversations, entries = read_sample("claude", tmp_path)
    assert [(each.role, each.content) for each in conversations[0].messages] == [
        ("user", "How long does rye rise?"), ("assistant", "Overnight."), ("user", "Thanks"),
    ]  # fmt: skip
    assert set(entries) == {
        "Bakes bread.", "Plans a bakery.", "Bakery\n\nA shop\n\nAnswer as a baker.", "Open in May.",
        "Rye, water, salt.",
    }  # fmt: skip
    assert entries["Open in May."].metadata == {"file_name": "plan.md", "project": "p1", "title": "Bakery"}
    assert entries["Rye, water, salt."].metadata["conversation"] == "0c1"


def test_claude_code(tmp_path: Path) -> None:
    conversations, _ = read_sample("claude-code", tmp_path)
    assert [each.content for each in conversations[0].messages] == [
        "Add a config file", "I will add config.toml.", "Thank you",
    ]  # fmt: skip
    assert conversations[0].id == "4f35e220-c435-4cf7-b9b9-f40426042847"
    assert conversations[0].metadata == {"cwd": "/home/ada/shop", "git_branch": "main"}


def test_a_message_of_claude_of_an_unknown_type_has_its_text(tmp_path: Path) -> None:
    blocks = [
        [{"type": "voice_note", "title": "x"}],
        [{"type": "tool_use"}],
        [{"type": "voice_note"}, {"type": "thinking"}],
    ]
    messages = [
        {"uuid": str(number), "sender": "human", "text": f"Words {number}", "content": content}
        for number, content in enumerate(blocks)
    ]
    files = {"conversations.json": json.dumps([{"uuid": "c", "chat_messages": messages}])}
    (*skipped, conversation) = items(packed(files, "file", tmp_path), "claude")
    assert isinstance(conversation, Conversation)
    assert [each.content for each in conversation.messages] == ["Words 0"]
    assert [each.reason for each in skipped if isinstance(each, Skipped)] == [
        "is a call of a tool",
        "is reasoning of the model",
    ]


def test_words_of_users_of_claude_code_are_told_from_those_of_the_program(tmp_path: Path) -> None:
    opened = "<ide_opened_file>The user opened the file /secret/plan.md.</ide_opened_file>"
    command = "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
    caveat = "Caveat: The messages below were generated by the user while running local commands."
    reminder = "<system-reminder>x</system-reminder>"
    said: list[tuple[Any, str]] = [
        ([{"type": "text", "text": reminder}, {"type": "text", "text": "My question"}], "My question"),
        ([{"type": "text", "text": opened}, {"type": "text", "text": "Rename it"}], "Rename it"),
        (f"{reminder}\n{opened}\n\nAnd then?", "And then?"),
        (f"{command}<command-args>check the tax module</command-args>", "check the tax module"),
        (f"{command}<command-args></command-args>", ""),
        ("<user-memory-input>use TOML</user-memory-input>", "use TOML"),
        ("<bash-stdout>no end", ""),
        (caveat, ""),
        (
            [{"type": "text", "text": caveat}, {"type": "text", "text": "Caveat: it is slow"}],
            "Caveat: it is slow",
        ),
    ]
    lines = [
        {
            "type": "user",
            "sessionId": "s",
            "uuid": str(number),
            "message": {"role": "user", "content": content},
        }
        for number, (content, _) in enumerate(said)
    ]
    found = items(packed({"s.jsonl": jsonl(*lines)}, "file", tmp_path), "claude-code")
    (conversation,) = (each for each in found if isinstance(each, Conversation))
    assert [each.content for each in conversation.messages] == [words for _, words in said if words]
    reasons = [each.reason for each in found if isinstance(each, Skipped)]
    assert reasons == ["is written by the program"] * 3


def test_a_resumed_session_of_claude_code_is_not_read_twice(tmp_path: Path) -> None:
    def lines(session: str, *records: tuple[str, str]) -> str:
        return jsonl(
            *(
                {
                    "type": "user",
                    "sessionId": session,
                    "uuid": uuid,
                    "message": {"role": "user", "content": said},
                }
                for uuid, said in records
            )
        )

    first, second = ("r1", "Plan the holiday"), ("r2", "In June")
    files = {
        "p/b.jsonl": lines("b", first, second),
        "p/a.jsonl": lines("a", first, second, ("r3", "And trains?"), ("r1", "Another text")),
        "p/c.jsonl": lines("c", first),
    }
    folder = packed(files, "folder", tmp_path / "projects")
    for number, file in enumerate(files):
        os.utime(folder / file, (1_700_000_000 + number, 1_700_000_000 + number))
    found = items(folder, "claude-code")
    assert [
        (each.id, [message.content for message in each.messages])
        for each in found
        if isinstance(each, Conversation)
    ] == [("b", ["Plan the holiday", "In June"]), ("a", ["And trains?", "Another text"])]
    skipped = [(each.place, each.reason) for each in found if isinstance(each, Skipped)]
    places = ["p/a.jsonl, line 1", "p/a.jsonl, line 2", "p/c.jsonl, line 1"]
    assert skipped == [(place, "is repeated from an earlier record") for place in places]


def test_gemini_cli(tmp_path: Path) -> None:
    conversations, _ = read_sample("gemini-cli", tmp_path)
    assert [[each.content for each in one.messages] for one in conversations] == [
        ["List the files", "There are two."],
        ["Rename it", "Renamed."],
    ]
    assert [each.title for each in conversations] == [None, "Renaming"]


def test_mem0(tmp_path: Path) -> None:
    _, entries = read_sample("mem0", tmp_path)
    tea = entries["Prefers tea"]
    assert (tea.user_id, tea.session_id, tea.tags, tea.metadata) == (
        "ada",
        "r1",
        ["food"],
        {"category": "drinks\ufffd"},
    )
    assert tea.occurred_at == datetime(2024, 7, 1, 19, tzinfo=UTC)
    assert "ada works at acme" in entries


def test_mcp_memory(tmp_path: Path) -> None:
    _, entries = read_sample("mcp-memory", tmp_path)
    assert set(entries) == {"Ada: Speaks Welsh", "Ada: Plays chess", "Acme (company)", "Ada works at Acme"}
    lines = [json.loads(line) for line in sample("mcp-memory").files["memory.jsonl"].splitlines()]
    graph = {"entities": lines[:2], "relations": lines[2:]}
    path = packed({"graph.json": json.dumps(graph, indent=2)}, "file", tmp_path)
    assert detected(path) == "mcp-memory"
    assert {each.content for each in items(path, "mcp-memory") if isinstance(each, Entry)} == set(entries)


def test_letta(tmp_path: Path) -> None:
    conversations, entries = read_sample("letta", tmp_path)
    assert [each.content for each in conversations[0].messages] == ["Do you like owls?", "I do!"]
    assert entries["The user likes owls."].agent_id == "sam"


def test_open_webui(tmp_path: Path) -> None:
    conversations, _ = read_sample("open-webui", tmp_path)
    assert [each.content for each in conversations[0].messages] == ["A pump?", "It moves fluids."]


def test_notes(tmp_path: Path) -> None:
    _, entries = read_sample("basic-memory", tmp_path / "a")
    fact = entries["Coffee Brewing: Pour over gives clarity #filter"]
    assert (fact.kind, fact.metadata["observation"], fact.tags) == (
        "fact",
        "method",
        ["coffee", "brewing", "filter"],
    )
    assert "Coffee Brewing relates to Bean Origins" in entries
    _, entries = read_sample("obsidian", tmp_path / "b")
    daily = next(each for each in entries.values() if each.metadata["title"] == "2024-05-01")
    assert daily.tags == ["journal", "spring", "meeting"]
    assert daily.metadata["links"] == ["Grace"]
    assert daily.occurred_at == datetime(2024, 5, 1, 8, tzinfo=UTC)


def test_our_own_export_is_recognised(tmp_path: Path) -> None:
    for content in ("", jsonl({"memoranda_export": 1}), jsonl({"content": "a"}), '[{"content": "a"}]'):
        assert detected(packed({"own.jsonl": content}, "file", tmp_path)) == OWN


def test_episodes_of_zep_are_not_taken_for_our_own_lines(tmp_path: Path) -> None:
    episode = {"uuid": "e1", "content": "Ada said hello", "source": "message", "created_at": "2024-05-01"}
    for content in (json.dumps([episode]), jsonl(episode)):
        path = packed({"episodes.jsonl": content}, "file", tmp_path)
        assert detected(path) == "zep"
        (entry,) = items(path, "zep")
        assert isinstance(entry, Entry)
        assert entry.occurred_at == datetime(2024, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize("content", ["no JSON", '{"a": 1}', "[1, 2]", b"\x00\xff", "[" * 100_000])
def test_an_unknown_format_is_an_error_that_lists_the_formats(content: str | bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=f"no known format.*{', '.join(NAMES)}"):
        detected(packed({"x.json": content}, "file", tmp_path))
    with pytest.raises(
        InvalidInput, match="'nope' is no format; use one of memoranda, memoranda-archive, chatgpt, "
    ):
        known("nope")


# --- damage and hostile input ----------------------------------------------------------------------------------------


def test_a_damaged_conversation_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    whole = json.dumps(chatgpt_conversation("c1", [chatgpt_node("u", None, "user", "Hello")], "u"))
    broken = whole.replace('"mapping":', '"mapping"')
    files = {
        "conversations.json": f'[{whole}, {broken}, {{"id": "x"}}, {whole.replace("c1", "c2")}, {whole[:-40]}'
    }
    found = items(packed(files, "zip", tmp_path / "export"), "chatgpt")
    assert [each.id for each in found if isinstance(each, Conversation)] == ["c1", "c2"]
    failed = [each for each in found if isinstance(each, Skipped) and each.failed]
    assert [each.place.split(" is ")[0].split(" ends ")[0] for each in failed] == [
        f"conversations.json, conversation {number}" for number in (2, 3, 5)
    ]  # fmt: skip
    assert "cut short" in failed[2].place


def test_a_zip_bomb_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("conversations-000.json", json.dumps([chatgpt_conversation("c1", [], None)]))
        with archive.open("conversations-001.json", "w") as member:
            for _ in range(24):
                member.write(b" " * (1 << 20))
    found = items(path, "chatgpt")
    assert [each.id for each in found if isinstance(each, Conversation)] == ["c1"]
    assert [(each.reason, each.failed) for each in found if isinstance(each, Skipped)] == [
        ("cannot be unpacked", True)
    ]


@pytest.mark.parametrize("part", [0.02, 0.5, 0.99])
def test_a_truncated_zip_file_is_an_error_that_says_so(part: float, tmp_path: Path) -> None:
    path = write(sample("chatgpt"), tmp_path)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * part)])
    with pytest.raises(InvalidInput, match=r"chatgpt\.zip is damaged: .* it may be cut short"):
        detected(path)


def test_a_locked_zip_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = write(sample("chatgpt"), tmp_path)
    raw = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := raw.find(mark, at + 1)) >= 0:
            raw[at + flags] |= 1
    path.write_bytes(raw)
    with pytest.raises(InvalidInput, match=r"cannot be read: conversations\.json is locked with a password"):
        detected(path)


def test_links_and_cycles_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    vault = packed({"a.md": "open"}, "folder", tmp_path / "vault")
    (vault / "link.md").symlink_to(secret)
    (vault / "loop").symlink_to(vault)
    assert [each.content for each in items(vault, "obsidian") if isinstance(each, Entry)] == ["a\n\nopen"]
    nodes = [chatgpt_node("a", "b", "user", "Hi"), chatgpt_node("b", "a", "user", "Ho")]
    files = {"conversations.json": json.dumps([chatgpt_conversation("c", nodes, "a")])}
    found = items(packed(files, "folder", tmp_path / "cycle"), "chatgpt")
    assert [len(each.messages) for each in found if isinstance(each, Conversation)] == [2]


def test_properties_with_aliases_are_not_expanded(tmp_path: Path) -> None:
    levels = "\n".join(f"k{n}: &k{n} {{<<: [*k{n - 1}, *k{n - 1}]}}" for n in range(1, 30))
    vault = packed({"a.md": f"---\nk0: &k0 {{a: 1}}\n{levels}\n---\nText"}, "folder", tmp_path / "vault")
    found = items(vault, "obsidian")
    assert [each.reason for each in found if isinstance(each, Skipped)] == ["has properties with aliases"]
    assert len([each for each in found if isinstance(each, Entry)]) == 1
