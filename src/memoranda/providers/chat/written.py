"""Tool calls that a model writes into its answer as text, instead of the field for them. No I/O.

Read are, at the end of an answer: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` (Hermes, Qwen), the same
JSON in a fence (```json) or after `[TOOL_CALLS]` (Mistral), one object or a list, and an answer that is nothing else.
The arguments may be called `parameters`, `args` or `input`, and be JSON in a string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from memoranda.providers.chat.chunks import CallPart, Function

_OPENS = ("```", "<tool_call>", "[TOOL_CALLS]")
_BEGINS = re.compile(
    r"\s*(?:```[\w-]*\s*|<tool_call>\s*|\[TOOL_CALLS\]\s*)?\[?\s*\{\s*"
    r'"(?:(?:name|tool|tool_name)"\s*:\s*"(?P<name>[^"]*)"|(?:name|tool|function|type|id|tool_name|arguments|parameters)"\s*:)'
)
_BETWEEN = re.compile(r"(?:[\s,;]|```[\w-]*|</?tool_call>|\[TOOL_CALLS\])*")
DECIDED = 80
"""Characters within which a text must look like a call."""
MOST = 64_000
"""The most characters of the calls of one answer."""


class WrittenCalls:
    """Reads the text of one answer; what may be a call of one of the functions `names` is buffered."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._buffer = ""
        self._buffering = False
        self._begun = False

    def feed(self, text: str) -> str:
        """Return the text that is certainly no call; empty while that is undecided."""
        self._buffer += text
        ready = ""
        while self._buffer:
            if self._buffering:
                if self._possible():
                    break
                self._buffering = False
                size = next((len(mark) for mark in _OPENS if self._buffer.startswith(mark)), 1)
            else:
                size = self._before()
                if not size and not self._buffering:
                    break
            ready += self._buffer[:size]
            self._buffer = self._buffer[size:]
        return ready

    def end(self) -> tuple[str, list[CallPart]]:
        """Return the buffered text, or its calls."""
        rest, self._buffer, self._buffering = self._buffer, "", False
        calls = _calls(rest, self._names)
        return ("", calls) if calls else (rest, [])

    def _before(self) -> int:
        """Return how many characters precede what may begin a call, and start buffering there."""
        if not self._begun and (begins := self._buffer.lstrip()):
            self._begun = True
            if begins[0] in "{[":
                self._buffering = True
                return 0
        elif not self._begun:
            return 0
        places = [place for mark in _OPENS if (place := self._buffer.find(mark)) >= 0]
        if places:
            self._buffering = True
            return min(places)
        longest = max(map(len, _OPENS)) - 1
        tails = range(min(longest, len(self._buffer)), 0, -1)
        part = next((n for n in tails if any(mark.startswith(self._buffer[-n:]) for mark in _OPENS)), 0)
        return len(self._buffer) - part

    def _possible(self) -> bool:
        """Return True while the buffered text may consist of calls only."""
        if len(self._buffer) > MOST:
            return False
        begins = _BEGINS.match(self._buffer)
        if begins is None:
            return len(self._buffer) < DECIDED
        return begins["name"] is None or begins["name"] in self._names


def _calls(text: str, names: Collection[str]) -> list[CallPart]:
    """Return the calls of a text that consists of calls; empty if it has other text, or a function that was not
    offered."""
    if not _BEGINS.match(text):
        return []
    parts: list[CallPart] = []
    decoder, at = json.JSONDecoder(strict=False), _after_marks(text, 0)
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        for item in value if isinstance(value, list) else [value]:
            call = _call(item, names)
            if call is None:
                return []
            parts.append(CallPart(index=f"written {len(parts)}", function=call))
        at = _after_marks(text, end)
    return parts


def _after_marks(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return at if between is None else between.end()


def _call(value: Any, names: Collection[str]) -> Function | None:
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    if not isinstance(value, dict):
        return None
    name = next((value[key] for key in ("name", "tool", "tool_name", "function") if key in value), None)
    if name not in names:
        return None
    keys = ("arguments", "parameters", "args", "input")
    arguments: Any = next((value[key] for key in keys if key in value), {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}", strict=False)
        except (ValueError, RecursionError):
            return None
    return Function(name=name, arguments=arguments) if isinstance(arguments, dict) else None
