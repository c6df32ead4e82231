"""Facts for callers without an event loop."""

from __future__ import annotations

from memoranda.concurrency.portal import Portal, blocking
from memoranda.facts.facts import Facts


class BlockingFacts:
    """`facts.Facts`, method for method."""

    def __init__(self, inner: Facts, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    extract = blocking(Facts.extract)
    learned_from = blocking(Facts.learned_from)
    consolidate = blocking(Facts.consolidate)
    timeline = blocking(Facts.timeline)
    history = blocking(Facts.history)
    confirm = blocking(Facts.confirm)
    undo = blocking(Facts.undo)
    sweep = blocking(Facts.sweep)
