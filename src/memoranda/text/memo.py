"""Results of pure functions, kept in memory by the words they were made of until something is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import TypeVar

T = TypeVar("T")
_kept: list[_lru_cache_wrapper[object]] = []


def kept(maxsize: int, typed: bool = False) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """`functools.lru_cache` for functions of texts: `let_go` empties it."""

    def decorate(work: Callable[..., T]) -> _lru_cache_wrapper[T]:
        wrapped = lru_cache(maxsize=maxsize, typed=typed)(work)
        _kept.append(wrapped)
        return wrapped

    return decorate


def let_go() -> None:
    """Empties every such cache of this process."""
    for one in _kept:
        one.cache_clear()
