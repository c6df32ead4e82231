"""Small exports of other systems, in the form in which they are documented, and what an import of each comes to."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

Files = dict[str, str]


class Sample(NamedTuple):
    """An export: its files by name, whether they are one zip file, a folder or one file, how many of each kind are
    imported, and how many are not, by kind and reason."""

    format: str
    form: str
    files: Files
    imported: dict[str, int]
    skipped: dict[tuple[str, str], int]


def undated(out: bytes) -> bytes:
    """An export of ours as JSONL without the date in its header, as two exports of the same memories have in common."""
    return re.sub(rb'^(\{"memoranda_export":1),"created_at":"[^"]*"', rb"\1", out)


def write(sample: Sample, folder: Path) -> Path:
    """Writes an export below a folder; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    return packed(sample.files, sample.form, folder / sample.format)


def packed(files: Mapping[str, str | bytes], form: str, path: Path) -> Path:
    """Writes files as a zip file, a folder or one file."""
    if form == "zip":
        with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path.with_suffix(".zip")
    for name, content in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path if form == "folder" else path / next(iter(files))


def jsonl(*records: Any) -> str:
    """Records, one on each line."""
    return "".join(json.dumps(each) + "\n" for each in records)


def chatgpt_node(
    id_: str, parent: str | None, role: str, said: str | None, at: float | None = None, **fields: Any
) -> dict[str, Any]:
    """A node of a ChatGPT conversation, with a message of the content type `text` unless `content` is given."""
    message: dict[str, Any] | None = None
    if said is not None or fields:
        content = {"content_type": "text", "parts": [said]}
        message = {"id": id_, "author": {"role": role}, "create_time": at, "content": content, **fields}
    return {"id": id_, "message": message, "parent": parent, "children": []}


def chatgpt_conversation(
    id_: str, nodes: list[dict[str, Any]], current: str | None, **fields: Any
) -> dict[str, Any]:
    """A ChatGPT conversation."""
    mapping = {node["id"]: node for node in nodes}
    for node in nodes:
        if node["parent"] in mapping:
            mapping[node["parent"]]["children"].append(node["id"])
    head = {"title": f"Title of {id_}", "create_time": 1736209400.0, "conversation_id": id_, "id": id_}
    return {**head, "mapping": mapping, "current_node": current, **fields}


def _chatgpt_first() -> dict[str, Any]:
    profile = {
        "content_type": "user_editable_context",
        "user_profile": "I am Ada.",
        "user_instructions": "Be short.",
    }
    remembered = {
        "content_type": "model_editable_context",
        "model_set_context": "1. [2024-05-01]. Has a dog named Rex.\n",
    }
    image = {
        "content_type": "multimodal_text",
        "parts": [{"content_type": "image_asset_pointer"}, "What is this?"],
    }
    return chatgpt_conversation("c1", [
        chatgpt_node("root", None, "system", None),
        chatgpt_node("s1", "root", "system", ""),
        chatgpt_node("p1", "s1", "user", None, content=profile),
        chatgpt_node("m1", "p1", "assistant", None, content=remembered),
        chatgpt_node("u0", "m1", "user", "Where do herons nest? (first try)", 1736209410.5),
        chatgpt_node("u1", "m1", "user", "Where do herons nest?", 1736209420.25),
        chatgpt_node("t1", "u1", "assistant", None, content={"content_type": "thoughts", "thoughts": []}),
        chatgpt_node("b1", "t1", "assistant", "Watches herons.", 1736209421.0, recipient="bio"),
        chatgpt_node("o1", "b1", "tool", "Model set context updated.", 1736209422.0),
        chatgpt_node("a1", "o1", "assistant", "In colonies\ue200cite\ue202turn0\ue201, in trees.", 1736209423.0),
        chatgpt_node("u2", "a1", "user", None, 1736209500.0, content=image),
        chatgpt_node("a2", "u2", "assistant", "A heron.", 1736209510.0),
    ], "a2", gizmo_id="g-p-birds")  # fmt: skip


def _chatgpt_second() -> dict[str, Any]:
    return chatgpt_conversation("c2", [
        chatgpt_node("root", None, "system", None),
        chatgpt_node("u1", "root", "user", "Is tea older than coffee?", 1736300000.0),
        chatgpt_node("a1", "u1", "assistant", "Tea is.", None),
    ], None)  # fmt: skip


CLAUDE = [
    {
        "uuid": "0c1", "name": "Bread", "created_at": "2025-01-01T12:00:00.123456Z", "account": {"uuid": "acc"},
        "chat_messages": [
            {
                "uuid": "m1", "sender": "human", "text": "How long does rye rise?", "created_at": "2025-01-01T12:00Z",
                "content": [{"type": "text", "text": "How long does rye rise?"}],
                "attachments": [{"file_name": "recipe.txt", "extracted_content": "Rye, water, salt."}],
                "files": [{"file_name": "photo.jpg"}],
            },
            {
                "uuid": "m2", "sender": "assistant", "text": "Overnight.", "created_at": "2025-01-01T12:00:09Z",
                "content": [{"type": "thinking", "thinking": "..."}, {"type": "text", "text": "Overnight."}],
            },
            {"uuid": "m3", "sender": "assistant", "content": [{"type": "tool_use", "name": "web"}], "text": ""},
            {"uuid": "m4", "sender": "human", "text": "Thanks", "content": []},
        ],
    },
    {"uuid": "0c2", "name": "", "created_at": "2025-01-02T12:00:00Z", "chat_messages": []},
]  # fmt: skip
CLAUDE_MEMORIES = [
    {
        "conversations_memory": "Bakes bread.",
        "project_memories": {"p1": "Plans a bakery."},
        "account_uuid": "acc",
    }
]
CLAUDE_PROJECT = {
    "uuid": "p1", "name": "Bakery", "description": "A shop", "prompt_template": "Answer as a baker.",
    "created_at": "2024-12-01T00:00:00Z",
    "docs": [{"uuid": "d1", "filename": "plan.md", "content": "Open in May.", "created_at": "2024-12-02T00:00:00Z"}],
}  # fmt: skip


def _claude_code() -> Files:
    session = "4f35e220-c435-4cf7-b9b9-f40426042847"
    base = {"sessionId": session, "cwd": "/home/ada/shop", "gitBranch": "main", "isSidechain": False}

    def line(uuid: str, type_: str, content: Any, **fields: Any) -> dict[str, Any]:
        at = f"2025-05-26T07:27:{uuid.zfill(2)}.079Z"
        return {
            **base,
            "uuid": uuid,
            "type": type_,
            "message": {"role": type_, "content": content},
            "timestamp": at,
            **fields,
        }

    main = jsonl(
        {"type": "summary", "summary": "Config", "leafUuid": "42f8"},
        {"type": "file-history-snapshot", "messageId": "1", "snapshot": {}},
        {"type": "permission-mode", "permissionMode": "default", "sessionId": session},
        {"type": "queue-operation", "operation": "dequeue", "sessionId": session},
        line("1", "user", "Add a config file"),
        line("2", "user", "<command-name>/clear</command-name>"),
        line("3", "user", "Caveat: ...", isMeta=True),
        line("10", "user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        line("4", "assistant", [{"type": "thinking", "thinking": "hm"}]),
        line("5", "assistant", [{"type": "text", "text": "I will add config.toml."}]),
        line("6", "assistant", [{"type": "tool_use", "name": "Write", "input": {}}]),
        line("7", "user", [{"type": "tool_result", "tool_use_id": "x", "content": "written"}]),
        line("8", "user", [{"type": "text", "text": "Thank you"}, {"type": "image", "source": {}}]),
    )
    agent = jsonl(line("9", "user", "Look for files", isSidechain=True, agentId="a74"))
    note = "# Shop\n\nThe shop uses TOML."
    return {
        f"-home-ada-shop/{session}.jsonl": main,
        "-home-ada-shop/agent-a74.jsonl": agent,
        "-home-ada-shop/memory/shop.md": note,
    }


def _codex() -> Files:
    at = "2025-10-29T00:59:38.317Z"

    def said(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        return {"timestamp": at, "type": "response_item", "payload": payload}

    new = jsonl(
        {
            "timestamp": at,
            "type": "session_meta",
            "payload": {"id": "019a", "timestamp": at, "cwd": "/tmp/x"},
        },
        said("user", "<environment_context>...</environment_context>"),
        said("developer", "Follow the rules."),
        said("user", "What is 2+2?"),
        {
            "timestamp": at,
            "type": "event_msg",
            "payload": {"type": "user_message", "message": "What is 2+2?"},
        },
        {"timestamp": at, "type": "turn_context", "payload": {"model": "o4-mini"}},
        said("assistant", "4"),
    )
    old = jsonl(
        {"id": "0001", "timestamp": "2025-06-01T10:00:00Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files"}]},
        {"record_type": "state"},
    )
    return {
        "2025/10/29/rollout-2025-10-29T00-59-38-019a.jsonl": new,
        "2025/06/01/rollout-2025-06-01-0001.jsonl": old,
    }


def _gemini() -> Files:
    meta = {
        "sessionId": "92f6",
        "projectHash": "a33c",
        "startTime": "2025-10-18T14:57:28Z",
        "lastUpdated": "2025-10-18T15:00:00Z",
    }
    old = {
        **meta,
        "messages": [
            {"id": "1", "timestamp": "2025-10-18T14:57:28.974Z", "type": "user", "content": "List the files"},
            {
                "id": "2",
                "timestamp": "2025-10-18T14:57:30Z",
                "type": "gemini",
                "content": "There are two.",
                "thoughts": [],
            },
            {"id": "3", "timestamp": "2025-10-18T14:57:31Z", "type": "info", "content": "Update available"},
        ],
    }
    new = jsonl(
        {**meta, "sessionId": "b7e1"},
        {"id": "1", "timestamp": "2025-11-18T14:57:28Z", "type": "user", "content": [{"text": "Rename it"}]},
        {"id": "2", "timestamp": "2025-11-18T14:57:29Z", "type": "gemini", "content": ""},
        {"id": "2", "timestamp": "2025-11-18T14:57:29Z", "type": "gemini", "content": "Renamed."},
        {"id": "3", "timestamp": "2025-11-18T14:57:40Z", "type": "user", "content": "Undo"},
        {"$rewindTo": "3"},
        {"$set": {"summary": "Renaming"}},
    )
    chats = "tmp/a33c/chats"
    return {
        f"{chats}/session-2025-10-18T14-57-92f6.json": json.dumps(old),
        f"{chats}/session-b7e1.jsonl": new,
    }


MEM0 = {
    "results": [
        {
            "id": "m1", "memory": "Prefers tea", "user_id": "ada", "run_id": "r1",
            "metadata": {"$category": "drinks\x00"},
            "categories": ["food"], "created_at": "2024-07-01T12:00:00.000000-07:00", "updated_at": None, "hash": "x",
        },
        {"id": "m2", "memory": "Owns a boat", "agent_id": "bot", "metadata": None, "created_at": "2024-07-02"},
        {"id": "m3", "memory": None},
    ],
    "relations": [{"source": "ada", "relationship": "works_at", "target": "acme"}],
}  # fmt: skip
MCP = jsonl(
    {
        "type": "entity",
        "name": "Ada",
        "entityType": "person",
        "observations": ["Speaks Welsh", "Plays chess"],
    },
    {"type": "entity", "name": "Acme", "entityType": "company", "observations": []},
    {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"},
)
NOTE = """---
title: Coffee Brewing
permalink: coffee-brewing
tags: [coffee, brewing]
created: 2024-03-01
---
# Coffee Brewing

- [method] Pour over gives clarity #filter
- [x] a task that is done
- relates_to [[Bean Origins|beans]]
"""
VAULT = {
    ".obsidian/app.json": "{}",
    "Daily/2024-05-01.md": "---\ndate: 2024-05-01T08:00:00\ntags: journal, spring\n---\n"
    "Met [[Grace]] today. #meeting\n`#code`",
    "Grace.md": "Grace keeps bees.",
    "Empty.md": "---\ntags: [x]\n---\n",
    "image.png": "not text",
}
LETTA = {
    "agents": [
        {
            "id": "agent-0", "name": "sam", "block_ids": ["block-0"],
            "messages": [
                {"id": "message-0", "role": "system", "content": [{"type": "text", "text": "You are Sam."}]},
                {
                    "id": "message-1", "role": "user", "created_at": "2025-03-01T10:00:00Z",
                    "content": [{"type": "text", "text": '{"type": "user_message", "message": "Do you like owls?"}'}],
                },
                {
                    "id": "message-2", "role": "assistant", "created_at": "2025-03-01T10:00:05Z",
                    "content": [{"type": "text", "text": "The user asks about owls."}],
                    "tool_calls": [{"function": {"name": "send_message", "arguments": '{"message": "I do!"}'}}],
                },
                {"id": "message-3", "role": "tool", "content": [{"type": "text", "text": "OK"}]},
                {"id": "message-4", "role": "user", "content": '{"type": "heartbeat", "reason": "..."}'},
            ],
        }
    ],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "The user likes owls."},
        {"id": "block-1", "label": "x", "value": ""},
    ],
    "groups": [], "files": [], "sources": [], "tools": [], "mcp_servers": [],
}  # fmt: skip
OPEN_WEBUI = [
    {
        "id": "w1", "user_id": "u", "title": "Pumps", "created_at": 1725000000,
        "chat": {
            "title": "Pumps", "models": ["llama3"],
            "history": {
                "currentId": "3",
                "messages": {
                    "1": {"id": "1", "parentId": None, "role": "user", "content": "A pump?", "timestamp": 1725000001},
                    "2": {"id": "2", "parentId": "1", "role": "assistant", "content": "No.", "timestamp": 1725000002},
                    "3": {
                        "id": "3", "parentId": "1", "role": "assistant", "timestamp": 1725000003,
                        "content": '<details type="reasoning" done="true">hm</details>\nIt moves fluids.',
                    },
                },
            },
        },
    }
]  # fmt: skip

ZEP = {
    "edges": [
        {
            "uuid": "e1", "name": "LIKES", "fact": "Ada likes tea", "source_node_uuid": "n1", "target_node_uuid": "n2",
            "created_at": "2026-05-02T00:00:00Z", "valid_at": "2026-05-01T10:00:00Z", "invalid_at": None,
        },
        {"name": "LIKES", "fact": "without a uuid"},
    ],
    "nodes": [{"uuid": "n1", "name": "Ada", "summary": "A person.", "labels": ["Person"], "created_at": "2026-05-01"}],
    "episodes": [{"uuid": "p1", "source": "message", "content": "I like tea", "created_at": "2026-05-01T10:00:00Z"}],
}  # fmt: skip


def bundle(records: Mapping[str, list[dict[str, Any]]], tombstones: list[dict[str, Any]]) -> Files:
    """The files of a bundle of Portable Memory, by records of each kind."""
    files = {f"items/{kind}.jsonl": jsonl(*each) for kind, each in records.items()}
    return summed(files | ({"audit/tombstones.jsonl": jsonl(*tombstones)} if tombstones else {}))


def summed(files: Mapping[str, str]) -> Files:
    """The files of a bundle of Portable Memory, with the sums of their content."""
    files = {file: content for file, content in files.items() if file not in ("manifest.json", "CHECKSUMS")}
    listed = [
        {"path": file, "sha256": sha256(content.encode()).hexdigest(), "bytes": len(content.encode())}
        for file, content in sorted(files.items())
    ]
    sums = "".join(f"{each['sha256']}  {each['path']}\n" for each in listed)
    manifest = {
        "format": "1.1.0", "generator": "acme/1.0", "conformanceLevel": "L2", "createdAt": "2026-02-01T00:00:00Z",
        "exportMode": "full", "schemaVersion": 1, "embeddingModel": "", "embeddingDim": 0, "embeddingsIncluded": False,
        "capabilities": [], "counts": {}, "files": listed,
        "bundleDigest": sha256(sums.encode()).hexdigest(),
    }  # fmt: skip
    return {"manifest.json": json.dumps(manifest), "CHECKSUMS": sums, **files}


def portable_episode(id_: str, said: str, **fields: Any) -> dict[str, Any]:
    """A record of Portable Memory with a text."""
    at = "2026-01-05T09:30:00Z"
    return {
        "id": id_, "eventTime": at, "mentionTime": at, "ingestionTime": at, "sourceType": "note", "actors": [],
        "summary": said[:8], "details": said, "sensitivity": "low", "metadata": {}, "categories": [],
        "importance": 0.5, "confidence": 0.7, "lifecycleState": "HOT", "extractionState": "done", "accessCount": 0,
        "pinned": False, "vaultRefs": [], **fields,
    }  # fmt: skip


def portable_fact(id_: str, said: str, since: str, **fields: Any) -> dict[str, Any]:
    """A fact of Portable Memory."""
    return {
        "id": id_, "episodeID": "e1", "subject": "Ada", "predicate": "states", "object": said, "text": said,
        "tValidFrom": since, "confidence": 0.9, "importance": 0.5, "createdAt": since, **fields,
    }  # fmt: skip


PORTABLE: dict[str, list[dict[str, Any]]] = {
    "context": [{"id": "k1", "label": "Garden", "archived": False, "createdAt": "2026-01-01T00:00:00Z"}],
    "episode": [
        portable_episode("e1", "Ada planted coffee.", contextID="k1", categories=["plants"], mood="glad"),
        portable_episode("e2", "Ada lost her keys."),
        portable_episode("e3", "Ada burnt the toast.", deletedAt="2026-01-06T00:00:00Z"),
        portable_episode("e4", ""),
    ],
    "fact": [
        portable_fact("f1", "Ada rents the garden", "2024-01-01T00:00:00Z", tValidTo="2999-01-01T00:00:00Z"),
        portable_fact("f2", "Ada lives in Oslo", "2025-01-01T00:00:00Z"),
        portable_fact("f3", "Ada drinks cocoa", "2025-01-01T00:00:00Z", supersededBy="f4"),
        portable_fact("f4", "The keys are gone", "2025-01-01T00:00:00Z", episodeID="e2"),
        portable_fact("f5", "The toast is black", "2025-01-01T00:00:00Z", episodeID="e3"),
    ],
    "entity": [
        {"id": "n1", "type": "person", "canonicalName": "Ada", "aliases": [], "summary": "Gardener"},
        {"id": "n2", "type": "company", "canonicalName": "Acme", "aliases": [], "summary": ""},
    ],
    "edge": [
        {
            "id": "d1", "srcEntityID": "n1", "dstEntityID": "n2", "edgeType": "works_at", "confidence": 1,
            "tValidFrom": "2023-05-01T00:00:00Z", "ingestionTime": "2026-01-01T00:00:00Z", "evidenceEpisodeIDs": ["e1"],
        },
        {"id": "d2", "srcEntityID": "n1", "dstEntityID": "n9", "edgeType": "knows"},
    ],
    "resource": [{"id": "r1", "uri": "file:///plan.md", "title": "Plan", "summary": "", "created": "2026-01-01"}],
    "chunk": [{"id": "c1", "resourceID": "r1", "position": 0, "text": "Sow in May.", "sensitivity": "low"}],
    "core": [{"id": "human", "content": "The user is Ada.", "charBudget": 2000, "version": 1}],
    "preference": [{"key": "language", "value": "Welsh"}],
    "procedure": [{"id": "p1", "name": "Water", "triggerPattern": "dry soil", "steps": ["Fill", "Pour"]}],
    "factLink": [{"srcFactID": "f2", "dstFactID": "f1", "linkType": "refines"}],
    "secretRef": [{"id": "s1", "label": "Bank", "preview": "***"}],
    "acmeMood": [{"id": "m1", "mood": "glad"}],
}  # fmt: skip
TOMBSTONE = {
    "id": "t1", "op": "delete", "targetKind": "episode", "targetID": "e2", "deletedAt": "2026-01-07T00:00:00Z",
    "actor": "ada", "derived": {"factIDs": [], "edgeIDs": [], "entityIDs": [], "chunkIDs": []},
}  # fmt: skip
SAMPLES = [
    Sample(
        "chatgpt", "zip",
        {"conversations.json": json.dumps([_chatgpt_first(), _chatgpt_second()]), "user.json": "{}", "image.png": "x"},
        {"conversation": 2, "message": 6, "fact": 2, "note": 2},
        {
            ("message", "is a system prompt"): 1,
            ("message", "is context of custom instructions or memories"): 2,
            ("message", "is reasoning of the model"): 1,
            ("message", "is a call of a tool"): 1,
            ("message", "is the output of a tool"): 1,
            ("message", "is on a branch that was replaced"): 1,
            ("file", "has nothing to import"): 2,
        },
    ),
    Sample(
        "chatgpt", "folder",
        {
            "conversations-000.json": json.dumps([_chatgpt_first()]),
            "conversations-001.json": json.dumps([_chatgpt_second()]),
            "export_manifest.json": "{}",
        },
        {"conversation": 2, "message": 6, "fact": 2, "note": 2},
        {
            ("message", "is a system prompt"): 1,
            ("message", "is context of custom instructions or memories"): 2,
            ("message", "is reasoning of the model"): 1,
            ("message", "is a call of a tool"): 1,
            ("message", "is the output of a tool"): 1,
            ("message", "is on a branch that was replaced"): 1,
            ("file", "has nothing to import"): 1,
        },
    ),
    Sample(
        "claude", "zip",
        {
            "conversations.json": json.dumps(CLAUDE), "memories.json": json.dumps(CLAUDE_MEMORIES),
            "projects/p1.json": json.dumps(CLAUDE_PROJECT), "users.json": "[]",
        },
        {"conversation": 1, "message": 3, "note": 3, "document": 2},
        {
            ("message", "is a call of a tool"): 1,
            ("attachment", "is not in the export"): 1,
            ("conversation", "has no messages to import"): 1,
            ("file", "has nothing to import"): 1,
        },
    ),
    Sample(
        "claude-code", "folder", _claude_code(),
        {"conversation": 1, "message": 3, "note": 1},
        {
            ("record", "is of the type summary, not a message"): 1,
            ("record", "is of the type file-history-snapshot, not a message"): 1,
            ("record", "is of the type permission-mode, not a message"): 1,
            ("record", "is of the type queue-operation, not a message"): 1,
            ("message", "is written by the program"): 3,
            ("message", "is reasoning of the model"): 1,
            ("message", "is a call of a tool"): 1,
            ("message", "is the output of a tool"): 1,
            ("message", "is between the program and a subagent"): 1,
        },
    ),
    Sample(
        "codex", "folder", _codex(),
        {"conversation": 2, "message": 3},
        {
            ("message", "is written by the program"): 1,
            ("message", "is an instruction of the program"): 1,
            ("record", "is of the type user_message, not a message"): 1,
            ("record", "is of the type turn_context, not a message"): 1,
            ("record", "is of the type unknown, not a message"): 1,
        },
    ),
    Sample(
        "gemini-cli", "folder", _gemini(),
        {"conversation": 2, "message": 4},
        {("message", "is written by the program"): 1, ("message", "is taken back by the user"): 1},
    ),
    Sample(
        "portable-memory", "folder", bundle(PORTABLE, [TOMBSTONE]),
        {"note": 5, "fact": 3, "document": 1},
        {
            ("episode", "is deleted in the bundle"): 2,
            ("episode", "has no text"): 1,
            ("fact", "is deleted in the bundle"): 2,
            ("fact", "is superseded, at a time that is not given"): 1,
            ("entity", "has no text"): 1,
            ("edge", "has no edgeType, or no entity that is in the bundle"): 1,
            ("resource", "has no text"): 1,
            ("factLink", "is a link"): 1,
            ("secretRef", "is a reference to a secret"): 1,
            ("record", "is of a kind that is not known"): 1,
        },
    ),
    Sample("mem0", "file", {"mem0.json": json.dumps(MEM0, indent=1)}, {"fact": 3}, {("memory", "has no memory"): 1}),
    Sample("mcp-memory", "file", {"memory.jsonl": MCP}, {"fact": 4}, {}),
    Sample("zep", "file", {"graph.json": json.dumps(ZEP)}, {"fact": 1, "note": 2}, {("record", "has no uuid"): 1}),
    Sample(
        "letta", "file", {"sam.af": json.dumps(LETTA)},
        {"conversation": 1, "message": 2, "note": 1},
        {
            ("block", "has no text"): 1,
            ("message", "is a system prompt"): 1,
            ("message", "is the output of a tool"): 1,
            ("message", "is written by the program"): 1,
        },
    ),
    Sample(
        "open-webui", "file", {"chats.json": json.dumps(OPEN_WEBUI)},
        {"conversation": 1, "message": 2}, {("message", "is on a branch that was replaced"): 1},
    ),
    Sample("basic-memory", "folder", {"coffee/Coffee Brewing.md": NOTE}, {"note": 1, "fact": 2}, {}),
    Sample(
        "obsidian", "folder", VAULT, {"note": 2}, {("note", "has no text"): 1, ("file", "has nothing to import"): 1}
    ),
]  # fmt: skip
