"""Tool calls that a model writes into its answer as text, in place of the field for them. No I/O.

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
"""Characters by which a text must look like a call."""
MOST = 64_000
"""Characters of the calls of one answer."""


class WrittenCalls:
    """Reads the text of one answer; what may be a call of one of the functions `names` is held back."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held = ""
        self._holding = False
        self._begun = False

    def feed(self, text: str) -> str:
        """Return the text that is known to be none; empty while that is not known."""
        self._held += text
        ready = ""
        while self._held:
            if self._holding:
                if self._possible():
                    break
                self._holding = False
                size = next((len(one) for one in _OPENS if self._held.startswith(one)), 1)
            else:
                size = self._before()
                if not size and not self._holding:
                    break
            ready += self._held[:size]
            self._held = self._held[size:]
        return ready

    def end(self) -> tuple[str, list[CallPart]]:
        """Return what was held back: text, or calls."""
        held, self._held, self._holding = self._held, "", False
        calls = _calls(held, self._names)
        return ("", calls) if calls else (held, [])

    def _before(self) -> int:
        """Return how many characters stand before what may begin a call, and hold what does."""
        if not self._begun and (begins := self._held.lstrip()):
            self._begun = True
            if begins[0] in "{[":
                self._holding = True
                return 0
        elif not self._begun:
            return 0
        places = [place for one in _OPENS if (place := self._held.find(one)) >= 0]
        if places:
            self._holding = True
            return min(places)
        longest = max(map(len, _OPENS)) - 1
        tails = range(min(longest, len(self._held)), 0, -1)
        part = next((n for n in tails if any(one.startswith(self._held[-n:]) for one in _OPENS)), 0)
        return len(self._held) - part

    def _possible(self) -> bool:
        """Return True while what is held back may be calls and no more."""
        if len(self._held) > MOST:
            return False
        begins = _BEGINS.match(self._held)
        if begins is None:
            return len(self._held) < DECIDED
        return begins["name"] is None or begins["name"] in self._names


def _calls(text: str, names: Collection[str]) -> list[CallPart]:
    """The calls that a text consists of; empty if anything else is in it, or a function that was not offered."""
    if not _BEGINS.match(text):
        return []
    found: list[CallPart] = []
    decoder, at = json.JSONDecoder(strict=False), _after_marks(text, 0)
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        for one in value if isinstance(value, list) else [value]:
            call = _call(one, names)
            if call is None:
                return []
            found.append(CallPart(index=f"written {len(found)}", function=call))
        at = _after_marks(text, end)
    return found


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
