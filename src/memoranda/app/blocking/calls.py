"""Classes with the methods of a feature for callers without an event loop, in this process or at a server."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Protocol

from memoranda.concurrency.portal import Portal, following


class Calls(Protocol):
    """Carries out the calls of one feature."""

    def call(self, method: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return the result of a method of the feature; for one that yields, an iterator."""


class InProcess:
    """Carries out calls on `inner`, whose event loop is that of the portal."""

    def __init__(self, inner: Any, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    def call(self, method: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """See `Calls.call`."""
        work = method(self.inner, *args, **named)
        return self._blocking(self.portal.call(work) if inspect.iscoroutine(work) else work)

    def part(self, name: str) -> Any:
        """Return a feature that is an attribute of the feature, blocking."""
        return self._blocking(getattr(self.inner, name))

    def _blocking(self, value: Any) -> Any:
        """Return a value for callers without an event loop: an iterator, or the methods of a feature, blocking."""
        if type(value) is tuple:
            return tuple(self._blocking(each) for each in value)
        if hasattr(type(value), "__anext__"):
            return following(value, self.portal)
        kind = BLOCKING.get(type(value))
        return value if kind is None else kind(InProcess(value, self.portal))


class Feature:
    """The methods of `feature`; `calls` carries them out."""

    feature: ClassVar[type]

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    @property
    def inner(self) -> Any:
        """The feature on its event loop, in this process.

        Raises:
            AttributeError: the feature is at a server.
        """
        if not isinstance(self.calls, InProcess):
            raise AttributeError(f"{type(self).__name__} is at a server and has no inner feature here")
        return self.calls.inner


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
        assert isinstance(self.calls, InProcess)
        return self.calls.part(name)

    return cached_property(part)


def _blocking(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Feature, /, *args: Any, **named: Any) -> Any:
        return self.calls.call(method, args, named)

    call.__name__, call.__qualname__, call.__doc__ = method.__name__, method.__qualname__, method.__doc__
    call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return call
