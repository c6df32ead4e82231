"""Scripts of a fake model, as data: turns that match asks, each with its text, calls or failure. No I/O.

A script in JSON:

    {"turns": [
        {"when": "capital", "offered": "find", "calls": [{"name": "find", "arguments": {"query": "capital"}}]},
        {"after": "Paris", "text": "It is Paris [1].", "repeat": true},
        {"text": ["Hel", "lo"], "delay": 0.05},
        {"status": 503, "message": "loading"}
    ]}
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from memoranda.errors import ConfigError
from memoranda.providers.chat.base import (
    Ended,
    EndReason,
    Message,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from memoranda.text.tokens import well_formed

ARGUMENT_CHARS = 12
"""Characters of a call's arguments in one piece."""
_WORD = re.compile(r"\s*\S+|\s+$")


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that the model calls. Arguments that are text go out as they stand, valid JSON or not."""

    name: str
    arguments: str | dict[str, Any] = {}
    id: str | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer, and what it fits.

    `when` is a regular expression to be found in the last user's text, `offered` the name of a tool that must be
    offered, `after` a regular expression to be found in a tool's result since the last user's text ("" is any result).
    A turn is used once, with `repeat` always.

    It says `reasoning`, `text` or `refusal`, then `calls`. A text goes out word by word, a list piece by piece;
    `{question}` in it stands for the last user's text. `first` and `delay` are seconds before the first piece and
    before every other one. `finish` is why it ends (else `tool_calls` after calls, `stop` after anything else).
    `usage` True counts words, False says nothing. With `pause_at` it waits for `Play.resume` once that many pieces are
    out: before the first for 0, before the end for their number.

    Or it fails: `status` with `message` and `headers` answers nothing else. After what it says, `hang` sends nothing
    more and keeps the connection, `cut` ends it in the middle, `garbage` goes out in place of the end.
    """

    when: str | None = None
    offered: str | None = None
    after: str | None = None
    repeat: bool = False
    reasoning: str | list[str] = ""
    text: str | list[str] = ""
    refusal: str | list[str] = ""
    calls: list[Call] = []
    first: float = 0.0
    delay: float = 0.0
    pause_at: int | None = None
    finish: EndReason | None = None
    usage: TokenUsage | bool = True
    status: int | None = None
    message: str = "the script says so"
    headers: dict[str, str] = {}
    hang: bool = False
    cut: bool = False
    garbage: str | None = None

    @property
    def fails(self) -> bool:
        """True if the answer has no proper end."""
        return self.hang or self.cut or self.garbage is not None


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Turns in order, of which the first that fits and is not used up answers; `models` are its names."""

    turns: list[Turn]
    models: tuple[str, ...] = ("scripted",)


Scripted = Script | Sequence[Turn | Mapping[str, Any]] | str | Path
"""A script, its turns, or the path of one in JSON."""


def script_of(given: Scripted) -> Script:
    """The script that is `given`; one in JSON is `{"turns": [...]}` or the list alone.

    Raises:
        ConfigError: the file cannot be read, or it is no script; the message says where.
    """
    if isinstance(given, Script):
        return given
    try:
        if not isinstance(given, str | Path):
            return _checked(Script(turns=[_turn(turn) for turn in given]))
        decoded = msgspec.json.decode(Path(given).expanduser().read_bytes())
        return _checked(msgspec.convert({"turns": decoded} if isinstance(decoded, list) else decoded, Script))
    except OSError as exc:
        raise ConfigError("model.url", f"the script {given} cannot be read: {exc.strerror}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError, re.error) as exc:
        file = f"{given} " if isinstance(given, str | Path) else ""
        raise ConfigError("model.url", f"{file}is no script: {exc}; see docs/guides/models.md") from exc


def _turn(given: Turn | Mapping[str, Any]) -> Turn:
    return given if isinstance(given, Turn) else msgspec.convert(dict(given), Turn)


def _checked(script: Script) -> Script:
    for turn in script.turns:
        for pattern in (turn.when, turn.after):
            if pattern is not None:
                re.compile(pattern)
    return script


class TurnCriteria(msgspec.Struct, frozen=True):
    """The criteria of a turn: the last user's text, the tools' results since, the names of the tools offered."""

    question: str
    results: list[str]
    tools: list[str]

    @classmethod
    def of(cls, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> TurnCriteria:
        """Return the criteria of `messages` and `tools` of chat completions."""
        last = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
        results = [plain(m.get("content")) for m in messages[last + 1 :] if m.get("role") == "tool"]
        question = plain(messages[last].get("content")) if last >= 0 else ""
        return cls(question, results, [tool.get("function", {}).get("name", "") for tool in tools])


class Cue(msgspec.Struct, frozen=True):
    """A turn being played: the ask that it answers, and its number."""

    turn: Turn
    number: int
    asked: TurnCriteria
    play: Play

    async def reached(self, sent: int) -> None:
        """Wait for `Play.resume` if the turn pauses after `sent` pieces."""
        if sent == self.turn.pause_at:
            await self.play.pause()

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces of the answer, without its end."""
        turn = self.turn
        yield from (ReasoningDelta(text) for text in self._texts(turn.reasoning))
        yield from (TextDelta(text) for text in self._texts(turn.text))
        yield from (RefusalDelta(text) for text in self._texts(turn.refusal))
        for index, call in enumerate(turn.calls):
            text = call.arguments
            arguments = text if isinstance(text, str) else msgspec.json.encode(text).decode()
            yield ToolCallDelta(index, "", call.id or f"call_{self.number}_{index}", call.name)
            for at in range(0, len(arguments), ARGUMENT_CHARS):
                yield ToolCallDelta(index, arguments[at : at + ARGUMENT_CHARS])

    def end(self, model: str) -> Ended:
        """Return the end of the answer, under the model name `model`."""
        turn = self.turn
        reason: EndReason = turn.finish or ("tool_calls" if turn.calls else "stop")
        if isinstance(turn.usage, TokenUsage):
            return Ended(reason, turn.usage, model)
        return Ended(reason, self._counted() if turn.usage else None, model)

    def _counted(self) -> TokenUsage:
        said = sum(len("".join(self._texts(part)).split()) for part in (self.turn.text, self.turn.refusal))
        return TokenUsage(input=len(self.asked.question.split()), output=said)

    def _texts(self, given: str | list[str]) -> list[str]:
        texts = _WORD.findall(given) if isinstance(given, str) else given
        return [well_formed(text.replace("{question}", self.asked.question)) for text in texts]


class Play:
    """A script being played, and its unused turns. Safe within one event loop, `resume` from any thread.

    `paused` is how many turns wait for `resume` now."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.paused = 0
        self._resumed: Future[None] = Future()
        self._left = list(script.turns)
        self._number = 0

    def next(self, asked: TurnCriteria) -> Cue | None:
        """Return the first unused turn that fits, None if there is none."""
        turn = next((turn for turn in self._left if _fits(turn, asked)), None)
        if turn is None:
            return None
        if not turn.repeat:
            self._left = [other for other in self._left if other is not turn]
        self._number += 1
        return Cue(turn, self._number, asked, self)

    def add(self, *turns: Turn | Mapping[str, Any]) -> None:
        """Add turns at the end."""
        self._left += script_of(list(turns)).turns

    async def pause(self) -> None:
        """Wait until `resume` is called."""
        self.paused += 1
        try:
            await asyncio.shield(asyncio.wrap_future(self._resumed))
        finally:
            self.paused -= 1

    def resume(self) -> None:
        """Resume the paused turns; later turns do not pause any more. Idempotent."""
        if not self._resumed.done():
            self._resumed.set_result(None)

    @property
    def left(self) -> list[Turn]:
        """Turns that were not used, or are for repeated use."""
        return list(self._left)


def unscripted(asked: TurnCriteria) -> str:
    """Return the message for an ask that no turn fits."""
    after_results = f" after {len(asked.results)} tool results" if asked.results else ""
    tools = f" with the tools {', '.join(asked.tools)}" if asked.tools else ""
    return f"no turn of the script fits {asked.question[:200]!r}{after_results}{tools}"


def _fits(turn: Turn, asked: TurnCriteria) -> bool:
    return (
        (turn.when is None or re.search(turn.when, asked.question) is not None)
        and (turn.offered is None or turn.offered in asked.tools)
        and (turn.after is None or any(re.search(turn.after, result) for result in asked.results))
    )


def plain(content: Any) -> str:
    """Return the text of a message's content, which is text, a list of parts, or None."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""
