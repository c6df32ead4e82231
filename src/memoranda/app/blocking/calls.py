"""Classes with the methods of a feature for callers without an event loop, in this process or at a server."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
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
        return following(work, self.portal) if inspect.isasyncgen(work) else self.portal.call(work)


class Feature:
    """The methods of `feature`; `calls` carries them out."""

    feature: ClassVar[type]

    def __init__(self, calls: Calls) -> None:
        self.calls = calls


def methods_of(feature: type) -> dict[str, Callable[..., Any]]:
    """Return the public methods of a feature that are coroutines or yield asynchronously, by name."""
    return {
        name: method
        for name, method in vars(feature).items()
        if not name.startswith("_")
        and (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method))
    }


def blocking_feature(feature: type) -> type[Feature]:
    """Return a class with the methods of a feature, which wait for their results."""
    methods = {name: _blocking(method) for name, method in methods_of(feature).items()}
    parts = {**methods, "feature": feature, "__doc__": feature.__doc__, "__module__": __name__}
    return type(f"Blocking{feature.__name__}", (Feature,), parts)


def _blocking(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Feature, /, *args: Any, **named: Any) -> Any:
        return self.calls.call(method, args, named)

    call.__name__, call.__qualname__, call.__doc__ = method.__name__, method.__qualname__, method.__doc__
    call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return call
