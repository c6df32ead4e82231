"""Parsers written in Rust panic on some damaged files, which raises no ordinary exception in Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memoranda.readers.base import Unreadable


@contextmanager
def panics_are_damage() -> Iterator[None]:
    """Make a parser's panic an `Unreadable`; everything else passes."""
    try:
        yield
    except BaseException as exc:
        if type(exc).__name__ != "PanicException":
            raise
        raise Unreadable("invalid_file", "is damaged: the parser gave up on it") from exc
