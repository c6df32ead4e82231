"""Lenient parsing of the facts in an answer of a model. No I/O."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal
from unicodedata import normalize

import msgspec
from msgspec.structs import replace

from memoranda.clock import micros
from memoranda.facts.existing import Existing
from memoranda.facts.tags import informative_tags
from memoranda.text.regex import regex
from memoranda.text.sentences import END_MARKS, is_question, spans
from memoranda.text.terms import terms

MOST = 50
"""The most facts from one answer; later ones are ignored."""
MOST_CHARS = 200_000
"""The most characters of an answer that are parsed."""
LONGEST = 600
"""The most characters of a fact; a longer text is none."""
MOST_TAGS = 8
TAG_CHARS = 40
ATTEMPTS = 500
"""The most places of an answer at which JSON is tried."""
UNSAID = 0.7
"""The confidence of a fact that comes without one."""
LOOSE = 0.5
"""The confidence of a fact that came as prose."""
LEVELS = {"certain": 0.95, "very high": 0.95, "high": 0.9, "medium": 0.6, "moderate": 0.6, "low": 0.3}

Op = Literal["add", "same", "replaces", "ends"]
_TEXT_KEYS = ("text", "fact", "content", "memory", "statement", "value")
_LIST_KEYS = ("facts", "memories", "items", "results", "data", "extracted_facts")
_SOURCE_KEYS = ("messages", "message", "sources", "source", "message_numbers", "message_ids")
_FENCE = regex(r"```[\w-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_BULLET = regex(r"^\s*(?:[-*+•–]|\(?\d{1,3}[.):]|\([a-z]\))\s+(?P<text>\S.*)$")
_TALK = regex(
    r"^(?:sure|okay|ok|certainly|of course|here (?:are|is)|the following|below (?:are|is)|based on|as an ai|let me"
    r"|note that|there (?:are|is|were|was) (?:no|nothing|not)|i (?:found|have|could|did|cannot|can't|am|'m)"
    r"|no (?:new |relevant |useful )?facts?\b|none\b|null\b|nothing\b|n/a\b|hier sind|es gibt keine)",
    re.IGNORECASE,
)
_OP = regex(r"(?P<op>same|replace|end)", re.IGNORECASE)
_OPS: dict[str, Op] = {"same": "same", "replace": "replaces", "end": "ends"}
_NUMBERED = regex(r"\d+")
_DATE = regex(r"^\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})([T ].+)?)?)?\s*$")
_WANT = regex(r"[\s,]*")
_LAST_COMMA = regex(r",(\s*[}\]])")
_WRAPPER = regex(rf'\{{\s*"(?:{"|".join(_LIST_KEYS)})"\s*:\s*')
_CONTROL = regex("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class Candidate(msgspec.Struct, frozen=True):
    """A fact that may be one. `confidence` is in 0..1; `valid_from` and `valid_until` are microseconds since 1970,
    None when not given; `messages` are the numbers, from 1, of the messages it rests on, empty when not given. `op`
    says what it is to the known facts `of`, numbers from 1, in the words `quote` of a message; `known` are these
    facts. `instructs` says that it is how the assistant is to answer from now on, in the words `quote`."""

    text: str
    confidence: float = UNSAID
    tags: tuple[str, ...] = ()
    valid_from: int | None = None
    valid_until: int | None = None
    messages: tuple[int, ...] = ()
    op: Op = "add"
    of: tuple[int, ...] = ()
    quote: str = ""
    instructs: bool = False
    known: tuple[Existing, ...] = ()


def parsed(answer: str) -> list[Candidate]:
    """Return the facts in an answer, in their order, each text once, at most 50.

    Read are: JSON (a list, an object with a list, objects one after the other), fenced or with words around it; of one
    that is cut off what is complete. Elements are objects or strings. Without JSON, bullets, else sentences. Nothing is
    raised.
    """
    text = _CONTROL.sub(" ", answer[:MOST_CHARS]).strip()
    candidates: dict[str, Candidate] = {}
    for candidate in _candidates(text):
        candidates.setdefault(candidate.text.casefold().rstrip(f" {END_MARKS}"), candidate)
        if len(candidates) >= MOST:
            break
    return list(candidates.values())


def _candidates(text: str) -> Iterator[Candidate]:
    blocks = [block.strip() for block in _FENCE.findall(text)]
    for block in (*blocks, text):
        read = [candidate for value in _json(_LAST_COMMA.sub(r"\1", block)) for candidate in _read(value, 0)]
        if read:
            yield from read
            return
    said = _FENCE.sub(lambda block: "" if block[1].lstrip()[:1] in ("[", "{") else block[1], text).strip()
    if not said.startswith(("[", "{")):
        yield from _prose(said)


# --- JSON ------------------------------------------------------------------------------------------


def _json(text: str) -> Iterator[Any]:
    """Yield the lists and objects in a text; of one that is cut off or broken, its complete elements."""
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
    """Return the JSON value at a place and where it ends; (None, `at`) if there is none."""
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at
    return value, end


def _strings(text: str, at: int) -> tuple[list[str], int]:
    """Return the complete strings at the beginning of a list that breaks off, and where they end."""
    strings: list[str] = []
    while (begins := _WANT.match(text, at)) and text[begins.end() : begins.end() + 1] == '"':
        value, end = _value(text, begins.end())
        if not isinstance(value, str) or not re.match(r"\s*[,\]]", text[end:]):
            break
        strings.append(value)
        at = end
    return strings, at


def _read(value: Any, depth: int) -> Iterator[Candidate]:
    """Yield the facts in a decoded value, in nested lists and objects down to a depth of three."""
    if isinstance(value, str):
        if (candidate := _candidate(value, {})) is not None:
            yield candidate
    elif isinstance(value, list) and depth < 3:
        for item in value:
            yield from _read(item, depth + 1)
    elif isinstance(value, Mapping):
        text = next((value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)), None)
        if text is not None:
            if (candidate := _candidate(text, value)) is not None:
                yield candidate
        elif depth < 3:
            for key in _LIST_KEYS:
                if isinstance(value.get(key), list | Mapping):
                    yield from _read(value[key], depth + 1)


def _candidate(text: str, fields: Mapping[str, Any]) -> Candidate | None:
    said = tidy(text)
    if not 3 <= len(said) <= LONGEST or not terms(said) or _TALK.match(said):
        return None
    starts = _moment(fields.get("since", fields.get("valid_from")))
    ends = _moment(fields.get("until", fields.get("valid_until")))
    op, of = _relation(fields)
    quote = fields.get("quote")
    return Candidate(
        text=said,
        confidence=_confidence(fields.get("confidence")),
        tags=_tags(fields.get("tags", fields.get("tag", fields.get("category")))),
        valid_from=starts,
        valid_until=ends if starts is None or ends is None or ends > starts else None,
        messages=_numbers(next((fields[key] for key in _SOURCE_KEYS if key in fields), None)),
        op=op,
        of=of,
        quote=tidy(quote)[:LONGEST] if isinstance(quote, str) else "",
        instructs=str(fields.get("instruction")).lower() == "true",
    )


def _relation(fields: Mapping[str, Any]) -> tuple[Op, tuple[int, ...]]:
    """Return what a fact is said to be to which known facts, in any notation: "replaces F2", "replaces 2", or
    "replaces" with the numbers under `of`."""
    op = fields.get("op")
    match = _OP.match(op.strip()) if isinstance(op, str) else None
    of = () if match is None else _numbers(op) or _numbers(fields.get("of"))
    return (_OPS[match["op"].lower()], of) if match is not None and of else ("add", ())


def tidy(text: str) -> str:
    """Return a text as one line, with composed accents (Unicode's form NFC), without characters that are not stored."""
    return " ".join(_CONTROL.sub(" ", normalize("NFC", text)).split())


def _confidence(value: Any) -> float:
    """Return a confidence in 0..1 from a number, a percentage or a word; `UNSAID` for anything else."""
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
    return informative_tags(tag for tag in said if 0 < len(tag) <= TAG_CHARS)[:MOST_TAGS]


def _numbers(value: Any) -> tuple[int, ...]:
    """Return the numbers of messages in any notation: 3, "3", "m3", "[1, 2]", lists of these."""
    listed = value if isinstance(value, list) else [value]
    numbers: list[int] = []
    for item in listed[:100]:
        if isinstance(item, bool):
            continue
        if isinstance(item, int):
            numbers.append(item)
        elif isinstance(item, str):
            numbers += [int(number) for number in _NUMBERED.findall(item[:100]) if len(number) <= 6]
    return tuple(dict.fromkeys(number for number in numbers if 0 < number < 1_000_000))


def _moment(value: Any) -> int | None:
    """Return the microseconds since 1970 of an ISO date, a month or a year; None for anything else."""
    if not isinstance(value, str) or not (match := _DATE.match(value[:40])):
        return None
    try:
        if match[4]:
            return micros(datetime.fromisoformat(value.strip()))
        return micros(datetime(int(match[1]), int(match[2] or 1), int(match[3] or 1), tzinfo=UTC))
    except (ValueError, OverflowError):
        return None


def parsed_merge(answer: str) -> tuple[tuple[int, ...], str]:
    """Return the numbers of the facts that an answer reads as one, and its text; nothing if it has no such object."""
    text = _CONTROL.sub(" ", answer[:MOST_CHARS])
    for block in (*_FENCE.findall(text), text):
        for value in _json(_LAST_COMMA.sub(r"\1", block)):
            if isinstance(value, Mapping) and isinstance(value.get("text"), str):
                return _numbers(value.get("facts")), tidy(value["text"])
    return (), ""


# --- prose -----------------------------------------------------------------------------------------


def _prose(text: str) -> Iterator[Candidate]:
    lines = [match["text"] for line in text.splitlines() if (match := _BULLET.match(line))]
    said = lines or [text[start:stop] for start, stop in spans(text)]
    for sentence in said:
        plain = re.sub(r"[*_`]{1,3}", "", sentence).strip().strip("\"'")
        if plain.endswith((":", "：")) or is_question(plain) or plain.startswith(("{", "[", "#")):
            continue
        if (candidate := _candidate(plain, {})) is not None:
            yield replace(candidate, confidence=LOOSE)
