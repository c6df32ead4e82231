"""Spans of OpenTelemetry, where its API is installed (the extra `otel`); elsewhere a span does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

try:
    from opentelemetry import propagate, trace
except ModuleNotFoundError:
    TRACES = False
else:
    TRACES = True


def span(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[Any]:
    """Return a span of a call that this process makes."""
    if not TRACES:
        return nullcontext()
    return trace.get_tracer("memoranda").start_as_current_span(name, attributes=dict(attributes))


def request_span(
    name: str, attributes: Mapping[str, str], headers: Mapping[str, str]
) -> AbstractContextManager[Any]:
    """Return a span of a request that this process answers; it goes on with the caller's trace when the headers carry
    one."""
    if not TRACES:
        return nullcontext()
    context = propagate.extract(dict(headers)) if "traceparent" in headers else None
    return trace.get_tracer("memoranda").start_as_current_span(
        name, context, trace.SpanKind.SERVER, attributes=dict(attributes), record_exception=False
    )
