"""Tool calls assembled from parts, which servers send in different ways. No I/O."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import msgspec

from memoranda.providers.chat.base import ToolCallDelta
from memoranda.providers.chat.chunks import CallPart
from memoranda.text.tokens import well_formed


class Nameless(Exception):
    """A call ended without the name of a function."""


class _Call:
    """One call so far. `key` identifies it in the stream: its index, or None."""

    __slots__ = ("arguments", "extra", "id", "key", "name", "number", "sent")

    def __init__(self, number: int, key: Any) -> None:
        self.number = number
        self.key = key
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []
        self.extra: Any = None
        self.sent = False

    @property
    def whole(self) -> bool:
        """True if the arguments are complete JSON."""
        try:
            msgspec.json.decode("".join(self.arguments))
        except msgspec.DecodeError:
            return False
        return True

    def delta(self, text: str) -> ToolCallDelta | None:
        """Add arguments and return the delta to send; None before the name is known."""
        if text:
            self.arguments.append(text)
        if self.sent:
            return ToolCallDelta(self.number, text) if text else None
        if not self.name:
            return None
        self.sent = True
        self.id = self.id or new_call_id()
        return ToolCallDelta(self.number, "".join(self.arguments), self.id, self.name)


class Calls:
    """The calls of one answer, numbered in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_key: dict[Any, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def feed(self, parts: list[CallPart]) -> list[ToolCallDelta]:
        """Return the deltas of the parts in one chunk."""
        deltas: list[ToolCallDelta] = []
        touched: list[_Call] = []
        for part in parts:
            call = self._call(part, touched)
            touched.append(call)
            function = part.function
            if function is not None and function.name and not call.name:
                call.name = function.name
            if part.id and not call.id:
                call.id = str(part.id)
            call.extra = part.extra_content or call.extra
            delta = call.delta(well_formed(as_text(function.arguments)) if function is not None else "")
            if delta is not None:
                deltas.append(delta)
        return deltas

    def end(self) -> list[ToolCallDelta]:
        """Return an empty object for calls without arguments.

        Raises:
            Nameless: a call has no name.
        """
        if not all(call.sent for call in self._calls):
            raise Nameless
        return [ToolCallDelta(call.number, "{}") for call in self._calls if not any(call.arguments)]

    def extras(self) -> dict[str, Any]:
        """Return the extra content to send back with a call, by the id of the call."""
        return {call.id: call.extra for call in self._calls if call.id and call.extra}

    def _call(self, part: CallPart, touched: list[_Call]) -> _Call:
        if not isinstance(part.index, int | str):
            return self._unnumbered(part, touched)
        call = self._by_key.get(part.index)
        if call is None or _another(call, part):
            return self._new(part.index)
        return call

    def _unnumbered(self, part: CallPart, touched: list[_Call]) -> _Call:
        """Return the call of a part without an index: the one with its id, else the last, unless the part begins
        another."""
        if part.id:
            known = next((call for call in self._calls if call.id == str(part.id)), None)
            if known is not None:
                return known
        if not self._calls:
            return self._new(None)
        last = self._calls[-1]
        name = part.function.name if part.function is not None else None
        begins = bool(name) and (last in touched or last.name not in (None, name) or last.whole)
        return self._new(None) if begins or _another(last, part) else last

    def _new(self, key: Any) -> _Call:
        call = _Call(len(self._calls), key)
        self._calls.append(call)
        self._by_key[key] = call
        return call


def _another(call: _Call, part: CallPart) -> bool:
    """Return True if the part begins another call although it has the index of `call`: some servers always send 0."""
    name = part.function.name if part.function is not None else None
    if not part.id or not name or call.id in (None, str(part.id)):
        return False
    return call.name != name or not any(call.arguments) or call.whole


def as_text(arguments: Any) -> str:
    """Return arguments as JSON text."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def new_call_id() -> str:
    """Return an id for a call without one."""
    return f"call_{token_hex(12)}"
