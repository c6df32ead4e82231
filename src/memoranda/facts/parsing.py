"""What a model answers when it is asked for facts, read with patience. No I/O."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from memoranda.clock import micros
from memoranda.facts.tags import told_tags
from memoranda.text.sentences import spans
from memoranda.text.terms import terms

MOST = 50
"""Facts taken out of one answer; what comes after is left."""
MOST_CHARS = 200_000
"""Characters of an answer that are looked at."""
LONGEST = 600
"""Characters of one fact; a longer one is no fact."""
MOST_TAGS = 8
TAG_CHARS = 40
ATTEMPTS = 500
"""Places of an answer at which JSON may begin that are tried."""
UNSAID = 0.7
"""The confidence of a fact whose own was not told."""
LOOSE = 0.5
"""The confidence of a fact that came as prose."""
LEVELS = {"certain": 0.95, "very high": 0.95, "high": 0.9, "medium": 0.6, "moderate": 0.6, "low": 0.3}

_TEXT_KEYS = ("fact", "text", "content", "memory", "statement", "value")
_LIST_KEYS = ("facts", "memories", "items", "results", "data", "extracted_facts")
_SOURCE_KEYS = ("messages", "message", "sources", "source", "message_numbers", "message_ids")
_FENCE = re.compile(r"```[\w-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[-*+•–]|\(?\d{1,3}[.):]|\([a-z]\))\s+(?P<text>\S.*)$")
_TALK = re.compile(
    r"^(?:sure|okay|ok|certainly|of course|here (?:are|is)|the following|below (?:are|is)|based on|as an ai|let me"
    r"|note that|there (?:are|is|were|was) (?:no|nothing|not)|i (?:found|have|could|did|cannot|can't|am|'m)"
    r"|no (?:new |relevant |useful )?facts?\b|none\b|null\b|nothing\b|n/a\b|hier sind|es gibt keine)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\d+")
_DATE = re.compile(r"^\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})([T ].+)?)?)?\s*$")
_WANT = re.compile(r"[\s,]*")
_LAST_COMMA = re.compile(r",(\s*[}\]])")
_WRAPPER = re.compile(rf'\{{\s*"(?:{"|".join(_LIST_KEYS)})"\s*:\s*')
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fact that may be one. `confidence` is in 0..1; `valid_from` and `valid_until` are microseconds since 1970,
    None when not told; `messages` are the numbers, from 1, of the messages it rests on, empty when not told."""

    text: str
    confidence: float = UNSAID
    tags: tuple[str, ...] = ()
    valid_from: int | None = None
    valid_until: int | None = None
    messages: tuple[int, ...] = ()


def parsed(answer: str) -> list[Candidate]:
    """The facts in an answer, in their order, each text once, at most 50.

    Read are: JSON (a list, an object with a list, objects one after the other), fenced or with words around it; of one
    that is cut off what is complete. Elements are objects or strings. Without JSON, bullets, else sentences. Nothing is
    raised.
    """
    text = _CONTROL.sub(" ", answer[:MOST_CHARS]).strip()
    found: dict[str, Candidate] = {}
    for one in _candidates(text):
        found.setdefault(one.text.casefold(), one)
        if len(found) >= MOST:
            break
    return list(found.values())


def _candidates(text: str) -> Iterator[Candidate]:
    blocks = [block.strip() for block in _FENCE.findall(text)]
    for block in (*blocks, text):
        read = [one for value in _json(_LAST_COMMA.sub(r"\1", block)) for one in _read(value, 0)]
        if read:
            yield from read
            return
    said = _FENCE.sub(lambda block: "" if block[1].lstrip()[:1] in ("[", "{") else block[1], text).strip()
    if not said.startswith(("[", "{")):
        yield from _prose(said)


# --- JSON ------------------------------------------------------------------------------------------


def _json(text: str) -> Iterator[Any]:
    """The lists and objects in a text, and of one that is cut off or broken those of its elements that are whole."""
    at = 0
    for _ in range(ATTEMPTS):
        begins = _next_start(text, at)
        if begins is None:
            return
        value, at = _value(text, begins)
        if value is not None:
            yield value
        elif text[begins] == "[":
            strings, at = _strings(text, begins + 1)
            yield from strings
        elif wrapped := _WRAPPER.match(text, begins):
            at = wrapped.end()
        else:
            broken = text.find("}", begins)
            at = len(text) if broken < 0 else broken + 1


def _next_start(text: str, at: int) -> int | None:
    starts = [place for mark in "[{" if (place := text.find(mark, at)) >= 0]
    return min(starts) if starts else None


def _value(text: str, at: int) -> tuple[Any, int]:
    """The JSON value at a place and where it ends; (None, `at`) when there is none."""
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at
    return value, end


def _strings(text: str, at: int) -> tuple[list[str], int]:
    """The complete strings of a list that breaks off, from its beginning on, and where they end."""
    held: list[str] = []
    while (begins := _WANT.match(text, at)) and text[begins.end() : begins.end() + 1] == '"':
        value, end = _value(text, begins.end())
        if not isinstance(value, str) or not re.match(r"\s*[,\]]", text[end:]):
            break
        held.append(value)
        at = end
    return held, at


def _read(value: Any, depth: int) -> Iterator[Candidate]:
    """The facts in a decoded value: lists in lists and objects with a list are looked into, three deep."""
    if isinstance(value, str):
        if (made := _made(value, {})) is not None:
            yield made
    elif isinstance(value, list) and depth < 3:
        for one in value:
            yield from _read(one, depth + 1)
    elif isinstance(value, Mapping):
        told = next((value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)), None)
        if told is not None:
            if (made := _made(told, value)) is not None:
                yield made
        elif depth < 3:
            for key in _LIST_KEYS:
                if isinstance(value.get(key), list | Mapping):
                    yield from _read(value[key], depth + 1)


def _made(text: str, fields: Mapping[str, Any]) -> Candidate | None:
    said = tidy(text)
    if not 3 <= len(said) <= LONGEST or not terms(said) or _TALK.match(said):
        return None
    starts = _moment(fields.get("valid_from"))
    ends = _moment(fields.get("valid_until", fields.get("valid_to")))
    return Candidate(
        text=said,
        confidence=_confidence(fields.get("confidence")),
        tags=_tags(fields.get("tags", fields.get("tag", fields.get("category")))),
        valid_from=starts,
        valid_until=ends if starts is None or ends is None or ends > starts else None,
        messages=_numbers(next((fields[key] for key in _SOURCE_KEYS if key in fields), None)),
    )


def tidy(text: str) -> str:
    """A text as one line, without what cannot be stored."""
    return " ".join(_CONTROL.sub(" ", text).split())


def _confidence(value: Any) -> float:
    """A share of 1 out of what was said for one: numbers, percents, words; what makes no sense is not told."""
    if isinstance(value, str):
        said = value.strip().lower()
        if said in LEVELS:
            return LEVELS[said]
        percent = said.endswith("%")
        try:
            value = float(said.rstrip("% ")) / (100.0 if percent else 1.0)
        except ValueError:
            return UNSAID
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        return UNSAID
    if 1.0 < value <= 100.0:
        value = value / 100.0 if value >= 2.0 else 1.0
    return min(1.0, max(0.0, float(value)))


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False


def _tags(value: Any) -> tuple[str, ...]:
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, Sequence):
        return ()
    said = [tidy(tag).lower() for tag in listed if isinstance(tag, str)]
    return told_tags(tag for tag in said if 0 < len(tag) <= TAG_CHARS)[:MOST_TAGS]


def _numbers(value: Any) -> tuple[int, ...]:
    """Numbers of messages however they are written: 3, "3", "m3", "[1, 2]", lists of these."""
    listed = value if isinstance(value, list) else [value]
    found: list[int] = []
    for one in listed[:100]:
        if isinstance(one, bool):
            continue
        if isinstance(one, int):
            found.append(one)
        elif isinstance(one, str):
            found += [int(number) for number in _NUMBERED.findall(one[:100]) if len(number) <= 6]
    return tuple(dict.fromkeys(number for number in found if 0 < number < 1_000_000))


def _moment(value: Any) -> int | None:
    """Microseconds since 1970 of an ISO date, a month, a year; None of anything else."""
    if not isinstance(value, str) or not (told := _DATE.match(value[:40])):
        return None
    try:
        if told[4]:
            return micros(datetime.fromisoformat(value.strip()))
        return micros(datetime(int(told[1]), int(told[2] or 1), int(told[3] or 1), tzinfo=UTC))
    except (ValueError, OverflowError):
        return None


# --- prose -----------------------------------------------------------------------------------------


def _prose(text: str) -> Iterator[Candidate]:
    lines = [match["text"] for line in text.splitlines() if (match := _BULLET.match(line))]
    said = lines or [text[start:stop] for start, stop in spans(text)]
    for one in said:
        plain = re.sub(r"[*_`]{1,3}", "", one).strip().strip("\"'")
        if plain.endswith((":", "?")) or plain.startswith(("{", "[", "#")):
            continue
        if (made := _made(plain, {})) is not None:
            yield replace(made, confidence=LOOSE)
