"""Positions where a conversation may be cut: between turns, where a turn is one request of the user and all its
answers. A cut never separates a call from its output, which models reject."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from memoranda.responses.counting import tokens_of_item
from memoranda.responses.values import Item
from memoranda.text.tokens import DEFAULT_ENCODING

ASKING = ("user", "system", "developer")


def starts_of(items: Sequence[Item]) -> list[int]:
    """Where turns begin, ascending; the first is 0. Messages in a row that ask, of the user or a developer, begin one
    turn together."""
    if not items:
        return []
    whole = _uncut(items)
    starts = [0]
    for at in range(1, len(items)):
        if _asks(items[at]) and not _asks(items[at - 1]) and at not in whole:
            starts.append(at)
    return starts


def turns_of(items: Sequence[Item]) -> list[list[Item]]:
    """The items by turn, oldest first."""
    starts = starts_of(items)
    return [list(items[start:end]) for start, end in pairwise([*starts, len(items)])]


def pinned(items: Sequence[Item], new: Sequence[Item]) -> int:
    """The first of `items` that must stay because `new` holds the other half of a call that it begins; their number
    where there is none."""
    wanted = {key for item in new for key in _links(item)}
    return next((at for at, item in enumerate(items) if wanted & set(_links(item))), len(items))


def fitting(
    items: Sequence[Item], budget: int, new: Sequence[Item] = (), encoding: str = DEFAULT_ENCODING
) -> tuple[int, int]:
    """The first item of the newest whole turns that fit into `budget` tokens, and their tokens. Items that `new`
    continues stay even if they do not fit."""
    starts = starts_of(items)
    first, spent = len(items), 0
    last = pinned(items, new)
    for start in reversed(starts):
        tokens = sum(tokens_of_item(item, encoding) for item in items[start:first])
        if spent + tokens > budget and first <= last:
            break
        first, spent = start, spent + tokens
    return first, spent


def _asks(item: Item) -> bool:
    return item.get("type", "message") == "message" and item.get("role") in ASKING


def _links(item: Item) -> list[str]:
    """The keys that link this item to others: its call, or the approval it asks for or gives."""
    kind = item.get("type", "message")
    if kind == "mcp_approval_request":
        return [f"approval {item.get('id')}"]
    tied = [f"approval {item['approval_request_id']}"] if item.get("approval_request_id") else []
    return [*tied, f"call {item['call_id']}"] if item.get("call_id") else tied


def _uncut(items: Sequence[Item]) -> set[int]:
    """The positions before which no cut may be made, because linked items are on both sides of them."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for at, item in enumerate(items):
        for key in _links(item):
            first.setdefault(key, at)
            last[key] = at
    return {at for key, start in first.items() for at in range(start + 1, last[key] + 1)}
