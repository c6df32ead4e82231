"""Classes with the methods of a feature for callers without an event loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from memoranda.concurrency.portal import Runner


class Feature:
    """The methods of a feature, `inner`, whose coroutines the portal runs."""

    feature: ClassVar[type]

    def __init__(self, inner: Any, portal: Runner) -> None:
        self.inner = inner
        self.portal = portal

    def waited(self, value: Any) -> Any:
        """Return the value of a method for callers without an event loop: the result of a coroutine, an iterator, or
        the methods of a feature, blocking."""
        if inspect.iscoroutine(value):
            value = self.portal.call(value)
        if type(value) is tuple:
            return tuple(self.waited(each) for each in value)
        if hasattr(type(value), "__anext__"):
            return self.portal.following(value)
        kind = next((BLOCKING[kind] for kind in type(value).__mro__ if kind in BLOCKING), None)
        return value if kind is None else kind(value, self.portal)


BLOCKING: dict[type, type[Feature]] = {}
"""The blocking class of each feature."""


def methods_of(feature: type) -> dict[str, Callable[..., Any]]:
    """Return the public methods of a feature that are coroutines or yield asynchronously, by name."""
    return {
        name: method
        for name, method in vars(feature).items()
        if not name.startswith("_")
        and (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method))
    }


def blocking_feature(
    feature: type, *, parts: Sequence[str] = (), returning: Sequence[str] = ()
) -> type[Feature]:
    """Return a class with the methods of a feature, which wait for their results. `parts` are attributes that are
    features, `returning` methods that return one at once."""
    verbs = methods_of(feature) | {name: getattr(feature, name) for name in returning}
    members = {name: _blocking(method) for name, method in verbs.items()} | {
        name: _part(name) for name in parts
    }
    about = {"feature": feature, "__doc__": feature.__doc__, "__module__": __name__}
    BLOCKING[feature] = made = type(f"Blocking{feature.__name__}", (Feature,), members | about)
    return made


def _part(name: str) -> cached_property[Any]:
    def part(self: Feature) -> Any:
        return self.waited(getattr(self.inner, name))

    return cached_property(part)


def _blocking(method: Callable[..., Any]) -> Callable[..., Any]:
    name = method.__name__

    def call(self: Feature, /, *args: Any, **named: Any) -> Any:
        return self.waited(getattr(self.inner, name)(*args, **named))

    call.__name__, call.__qualname__, call.__doc__ = name, method.__qualname__, method.__doc__
    call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return call
