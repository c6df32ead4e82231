"""What searches of a conversation found, so that it can be cited again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memoranda.providers.chat.base import Source
from memoranda.responses.values import Item
from memoranda.text import prompts


def past_sources(items: Sequence[Item]) -> list[Source]:
    """What earlier searches of a conversation found, with the numbers that the model saw."""
    return [
        msgspec.convert(one, Source)
        for item in items
        if item["type"] == "file_search_call"
        for one in item.get("_sources", ())
    ]


def cite_again(items: Sequence[Item], past: Sequence[Item]) -> None:
    """Numbers what the searches among the items found that a client sends back and nobody has stored, after what was
    found in the past: so they can be cited."""
    number = max((source.number for source in past_sources([*past, *items])), default=0)
    for item in items:
        if item["type"] != "file_search_call" or "_sources" in item or not item.get("results"):
            continue
        sources = [
            Source(
                number=number + at,
                text=str(one.get("text") or ""),
                title=str(one.get("filename") or ""),
                id=str(one.get("file_id") or ""),
            )
            for at, one in enumerate(item["results"], 1)
        ]
        number += len(sources)
        item["_sources"] = msgspec.to_builtins(sources)
        item["_told"] = prompts.passages(
            [
                prompts.passage(one.number, one.title, one.text, file_id=one.id, score=one.score)
                for one in sources
            ]
        )
