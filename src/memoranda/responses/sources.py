"""The results of earlier searches of a conversation, as sources that can be cited again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memoranda.providers.chat.base import Source
from memoranda.responses.values import Item
from memoranda.text import prompts
from memoranda.text.quoting import quoted


def past_sources(items: Sequence[Item]) -> list[Source]:
    """The results of earlier searches of a conversation, with the numbers that the model saw."""
    return [
        msgspec.convert(source, Source)
        for item in items
        if item["type"] == "file_search_call"
        for source in item.get("_sources", ())
    ]


def cite_again(items: Sequence[Item], past: Sequence[Item]) -> None:
    """Number the results of searches that a client sends back and that are not stored, after the past results, so that
    they can be cited."""
    number = max((source.number for source in past_sources([*past, *items])), default=0)
    for item in items:
        if item["type"] != "file_search_call" or "_sources" in item or not item.get("results"):
            continue
        sources = [
            Source(
                number=number + at,
                text=str(result.get("text") or ""),
                title=str(result.get("filename") or ""),
                id=str(result.get("file_id") or ""),
            )
            for at, result in enumerate(item["results"], 1)
        ]
        number += len(sources)
        item["_sources"] = msgspec.to_builtins(sources)
        item["_told"] = prompts.passages(
            [
                prompts.passage(
                    source.number,
                    quoted(source.title),
                    quoted(source.text),
                    file_id=source.id,
                    score=source.score,
                )
                for source in sources
            ]
        )
