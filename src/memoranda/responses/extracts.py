"""Extractive summaries: the most informative sentences of a conversation, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memoranda.responses import compaction
from memoranda.responses.items import text_of
from memoranda.responses.values import Item
from memoranda.text.extracting import chosen, looked_at, sentences, weights

SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System", "developer": "System"}
EARLIER = "Earlier"
SUMMARY_WEIGHT = 1.5
"""Added to the weight of a sentence of an earlier summary."""
USER_WEIGHT = 0.5
"""Added to the weight of a sentence of the user."""
FIRST_WEIGHT = 100.0
"""Added to the weight of the user's first sentence."""


def extract(items: Sequence[Item], before: str, most: int) -> str:
    """The most informative sentences of `before` (an earlier summary) and `items`, as one text of at most `most`
    tokens; deterministic. The user's first request always has a place."""
    candidates = looked_at(list(sentences(_texts(items, before))))
    scores = weights(candidates)
    first = next((i for i, candidate in enumerate(candidates) if candidate.speaker == "User"), None)
    if first is not None:
        scores[first] += FIRST_WEIGHT
    return chosen(candidates, most, scores)


def _texts(items: Sequence[Item], before: str) -> Iterator[tuple[str, str, float, int]]:
    """Yield speaker, text, added weight and 0 tokens (not known) for each line of an earlier summary and each item."""
    for line in before.splitlines():
        speaker, _, text = line.partition(": ")
        known = text and speaker in (*SPEAKERS.values(), EARLIER)
        yield (speaker, text, SUMMARY_WEIGHT, 0) if known else (EARLIER, line, SUMMARY_WEIGHT, 0)
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            speaker = SPEAKERS.get(item["role"], "System")
            yield speaker, text_of(item), USER_WEIGHT if speaker == "User" else 0.0, 0
        elif kind == "compaction":
            yield EARLIER, compaction.unpacked(item), SUMMARY_WEIGHT, 0
