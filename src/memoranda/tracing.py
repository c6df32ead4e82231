"""Spans of OpenTelemetry, where the program that runs this one uses it; elsewhere a span does nothing.

Spans go nowhere before a program has imported OpenTelemetry and configured it, so this module does not import it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any


def span(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[Any]:
    """Return a span of a call that this process makes."""
    if (trace := sys.modules.get("opentelemetry.trace")) is None:
        return nullcontext()
    started: AbstractContextManager[Any] = trace.get_tracer("memoranda").start_as_current_span(
        name, attributes=dict(attributes)
    )
    return started


def request_span(
    name: str, attributes: Mapping[str, str], headers: Mapping[str, str]
) -> AbstractContextManager[Any]:
    """Return a span of a request that this process answers; it goes on with the caller's trace when the headers carry
    one."""
    if (trace := sys.modules.get("opentelemetry.trace")) is None:
        return nullcontext()
    from opentelemetry import propagate

    context = propagate.extract(dict(headers)) if "traceparent" in headers else None
    started: AbstractContextManager[Any] = trace.get_tracer("memoranda").start_as_current_span(
        name, context, trace.SpanKind.SERVER, attributes=dict(attributes), record_exception=False
    )
    return started
