"""Ablation of the switches of a search: the value and the cost of each, on and off by itself."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from memoranda.app.evals.run import Asking

OFF = {"rerank": "off", "recency": "off", "times": False, "enrich": False}
"""Every switch off: keyword search and vector search, fused."""


def switched(asking: Asking) -> Iterator[Asking]:
    """Yield the configurations that an ablation compares, the defaults last: keyword search and vector search alone,
    the two fused with every switch off, one switch on, one switch off, and each preset whatever the conversation is."""
    off = replace(asking, mode="hybrid", **OFF)
    default = replace(asking, mode="hybrid")
    yield replace(off, mode="keyword", name="keyword search alone")
    yield replace(off, mode="dense", name="vectors alone")
    yield replace(off, name="all switches off")
    yield replace(off, enrich=True, name="off, enrich on")
    yield replace(off, rerank="plain", times=True, name="off, times on")
    yield replace(off, rerank="auto", name="off, rerank on")
    for preset in ("people", "assistant", "plain", "sessions"):
        yield replace(default, rerank=preset, name=f"rerank {preset}")
    yield replace(default, rerank="off", name="rerank off")
    yield replace(default, times=False, name="times off")
    yield replace(default, enrich=True, name="enrich on")
    yield replace(default, recency="off", name="recency off")
    yield replace(default, recency="boost", name="recency boost")
    yield replace(default, name="default")
