"""Caches of pure functions of texts, in memory until something is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import TypeVar

T = TypeVar("T")
_caches: list[_lru_cache_wrapper[object]] = []


def kept(maxsize: int, typed: bool = False) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Like `functools.lru_cache`, for functions of texts: `let_go` clears it."""

    def decorate(work: Callable[..., T]) -> _lru_cache_wrapper[T]:
        wrapped = lru_cache(maxsize=maxsize, typed=typed)(work)
        _caches.append(wrapped)
        return wrapped

    return decorate


def let_go() -> None:
    """Clear every such cache of this process."""
    for cache in _caches:
        cache.cache_clear()
