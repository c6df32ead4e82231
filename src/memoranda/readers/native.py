"""Parsers written in Rust give up on some damaged files with a panic, which Python sees as no ordinary exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memoranda.readers.base import Unreadable


@contextmanager
def panics_are_damage() -> Iterator[None]:
    """Makes a parser's panic an `Unreadable`; everything else passes."""
    try:
        yield
    except BaseException as exc:
        if type(exc).__name__ != "PanicException":
            raise
        raise Unreadable("invalid_file", "is damaged: the parser gave up on it") from exc
