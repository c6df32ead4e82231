"""Items as a model of chat completions reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from recollect import prompts
from recollect.agent.compaction import decode
from recollect.agent.items import output_text, text_of
from recollect.agent.values import Item
from recollect.models.base import Message

TEXTS = "_texts"
"""The private key of a message under which the texts of its files stand, by the place of the part."""
Images = Mapping[str, str]
"""Data URLs of images that are uploaded files, by file id."""
Names = Mapping[tuple[str, str], str]
"""The names under which tools are offered now, by the label of their server ("" for none) and their own."""


def to_messages(
    items: Sequence[Item], names: Names | None = None, images: Images | None = None
) -> list[Message]:
    """The messages that say what the items say. Calls that follow each other without an answer between them become one
    message with several calls, as chat completions have it. `names` are the names under which tools are offered now, by
    their own."""
    made: list[Message] = []
    asked: dict[str, Item] = {}
    for item in items:
        kind = item["type"]
        if kind == "message":
            made += _message(item, images or {})
        elif kind in ("function_call", "custom_tool_call"):
            _call(made, item["call_id"], item["name"], item.get("arguments") or item.get("input") or "")
        elif kind in ("function_call_output", "custom_tool_call_output"):
            made.append({"role": "tool", "tool_call_id": item["call_id"], "content": output_text(item)})
        elif kind in ("file_search_call", "mcp_call"):
            _served(made, item, names or {})
        elif kind == "mcp_approval_request":
            asked[item["id"]] = item
        elif kind == "mcp_approval_response" and not item["approve"]:
            _refused(made, asked.get(item["approval_request_id"]), item, names or {})
        elif kind == "compaction":
            made.append({"role": "system", "content": decode(item["encrypted_content"])})
    return made


def _message(item: Item, images: Images) -> list[Message]:
    role = "system" if item["role"] == "developer" else item["role"]
    parts = [_part(part, i, item, images) for i, part in enumerate(item["content"])]
    if role == "assistant" or all(part["type"] == "text" for part in parts):
        text = text_of(item) if role == "assistant" else "\n\n".join(part["text"] for part in parts)
        return [{"role": role, "content": text}] if text or role != "assistant" else []
    return [{"role": role, "content": parts}]


def _part(part: Item, place: int, item: Item, images: Images) -> dict[str, Any]:
    if part["type"] == "input_image":
        url = part.get("image_url") or images.get(part.get("file_id") or "", "")
        return {"type": "image_url", "image_url": {"url": url, "detail": part.get("detail", "auto")}}
    if part["type"] == "input_file":
        name = part.get("filename") or part.get("file_id") or "file"
        return {"type": "text", "text": f"File {name}:\n{item.get(TEXTS, {}).get(str(place), '')}"}
    return {"type": "text", "text": part.get("text") or part.get("refusal") or ""}


def _call(made: list[Message], call_id: str, name: str, arguments: str) -> None:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    if made and made[-1]["role"] == "assistant":
        made[-1].setdefault("tool_calls", []).append(call)
    else:
        made.append({"role": "assistant", "content": None, "tool_calls": [call]})


def _served(made: list[Message], item: Item, names: Names) -> None:
    """A call that ran here, and what it gave back."""
    if item["type"] == "file_search_call":
        name, arguments = "file_search", json.dumps({"query": " ".join(item.get("queries") or [])})
        told = item.get("_told") or _results(item)
    else:
        name, arguments = item["name"], item.get("arguments") or "{}"
        told = item.get("_told") or item.get("output") or _error(item)
    call_id = item.get("_call_id") or f"call_{item['id']}"
    _call(
        made,
        call_id,
        names.get((item.get("server_label", ""), name), name),
        arguments if _is_object(arguments) else "{}",
    )
    made.append({"role": "tool", "tool_call_id": call_id, "content": told})


def _refused(made: list[Message], asked: Item | None, answer: Item, names: Names) -> None:
    """A call that the user did not let run."""
    if asked is not None:
        call_id, name = f"call_{asked['id']}", asked["name"]
        _call(
            made,
            call_id,
            names.get((asked["server_label"], name), name),
            asked["arguments"] if _is_object(asked["arguments"]) else "{}",
        )
        made.append(
            {"role": "tool", "tool_call_id": call_id, "content": prompts.refused(answer.get("reason"))}
        )


def _results(item: Item) -> str:
    """The passages that a client sends back with a search of an earlier response."""
    found = item.get("results") or []
    return "\n\n".join(f"{one.get('filename', '')}: {one.get('text', '')}" for one in found) or "No results."


def _error(item: Item) -> str:
    error = item.get("error")
    says = error.get("message") if isinstance(error, dict) else error
    return f"Error: {says}" if says else "No output."


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False
