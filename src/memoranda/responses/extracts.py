"""A summary without a model: the sentences of a conversation that tell most, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memoranda.responses import compaction
from memoranda.responses.items import text_of
from memoranda.responses.values import Item
from memoranda.text.extracting import chosen, looked_at, sentences, weights

SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System", "developer": "System"}
EARLIER = "Earlier"
TOLD = 1.5
"""How much more a sentence tells that an earlier summary had."""
ASKED = 0.5
"""How much more one of the user tells."""
FIRST = 100.0
"""How much more the user's first one tells."""


def extract(items: Sequence[Item], before: str, most: int) -> str:
    """The sentences that tell most of `before` (an earlier summary) and `items`, as one text of at most `most` tokens;
    always the same for the same conversation. The user's first request goes before all."""
    held = looked_at(list(sentences(_texts(items, before))))
    scores = weights(held)
    first = next((i for i, one in enumerate(held) if one.speaker == "User"), None)
    if first is not None:
        scores[first] += FIRST
    return chosen(held, most, scores)


def _texts(items: Sequence[Item], before: str) -> Iterator[tuple[str, str, float, int]]:
    """Who said what, and how much more it tells: what an earlier summary has, and what the user said; its tokens are
    not known."""
    for line in before.splitlines():
        speaker, _, said = line.partition(": ")
        known = said and speaker in (*SPEAKERS.values(), EARLIER)
        yield (speaker, said, TOLD, 0) if known else (EARLIER, line, TOLD, 0)
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            speaker = SPEAKERS.get(item["role"], "System")
            yield speaker, text_of(item), ASKED if speaker == "User" else 0.0, 0
        elif kind == "compaction":
            yield EARLIER, compaction.told(item), TOLD, 0
