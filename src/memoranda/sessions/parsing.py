"""Parsing of a model's answer into a digest: JSON, fenced JSON, incomplete JSON, a list, or prose."""

from __future__ import annotations

import json
import re
from typing import Any

from memoranda.errors import ModelBroken
from memoranda.sessions.digests import ENTITIES, ITEM_CHARS, LISTED, TOPICS, Digest
from memoranda.store.ids import nameable
from memoranda.text.extracting import trimmed
from memoranda.text.storable import storable

_FENCE = re.compile(r"```(?:json)?\s*\n?(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
MAX_CHARS = 200_000
"""The most characters of an answer that are parsed."""
_TEXT = r'"(?:[^"\\]|\\.)*"'
_LIMITS = {
    "topics": 2 * TOPICS,
    "decisions": LISTED,
    "open_questions": LISTED,
    "action_items": LISTED,
    "entities": ENTITIES,
}


def parsed(answer: str, by: str, most: int) -> Digest:
    """Return the digest in a model's answer, with at most `most` tokens of summary; prose is the summary.

    Raises:
        ModelBroken: nothing in it can be a summary.
    """
    text = storable(_THOUGHTS.sub("", answer[:MAX_CHARS])).strip()
    answered = _object(text)
    if answered is None:
        answered = {"summary": _prose(text)}
    elif isinstance(answered, list):
        answered = {"summary": " ".join(_texts(answered))}
    summary = trimmed(storable(" ".join(_texts(answered.get("summary")))), most)
    if not summary:
        raise ModelBroken("the model's answer holds no summary")
    lists = {name: _listed(answered.get(name), limit) for name, limit in _LIMITS.items()}
    return Digest(summary=summary, by=by, **lists)


def _object(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the JSON in a text, complete or not; None for prose."""
    fenced = _FENCE.search(text)
    body = fenced[1] if fenced else text
    start = min((at for at in (body.find("{"), body.find("[")) if at >= 0), default=-1)
    if start < 0 or (not fenced and body[:start].count("\n") > 2):
        return None
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(body[start:])
    except (ValueError, RecursionError):
        return _half(body[start:])
    return value if isinstance(value, dict | list) else None


def _half(body: str) -> dict[str, Any] | None:
    """Return the fields of an object that breaks off, or is not quite JSON; None if there are none."""
    fields: dict[str, Any] = {}
    summary = re.search(r'"summary"\s*:\s*"((?:[^"\\]|\\.)*)', body, re.DOTALL)
    if summary:
        fields["summary"] = _unescaped(summary[1])
    for name in _LIMITS:
        match = re.search(rf'"{name}"\s*:\s*\[([^\]]*)', body, re.DOTALL)
        if match:
            fields[name] = [_unescaped(quoted[1:-1]) for quoted in re.findall(_TEXT, match[1])]
    return fields or None


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def _prose(text: str) -> str:
    return " ".join(_FENCE.sub(r"\1", text).split())


def _texts(value: Any) -> list[str]:
    """Return the texts in a value of any shape."""
    if isinstance(value, str):
        return [" ".join(value.split())] if value.strip() else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _listed(value: Any, limit: int) -> list[str]:
    """Return a list of short texts, each once; an object counts as the texts in it, one text as a list with commas."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        value = [] if value is None else [value]
    texts = (" ".join(_texts(item))[:ITEM_CHARS].strip() for item in value)
    return list(dict.fromkeys(text for text in texts if text and nameable(text)))[:limit]
