"""The server's log on standard error, without texts, queries or ids of memories: one JSON object a line, or lines for a
terminal."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor

    from memoranda.config.data_sections import Server

REFUSED = (401, 403)
READS = frozenset(("GET", "HEAD", "OPTIONS"))
SLOW_SECONDS = 1.0
"""The time from which on a read is logged at level info."""


def configure(server: Server) -> None:
    """Send every logger of this process, uvicorn's too, through structlog, at the level and in the format of the
    configuration."""
    import structlog  # imported late: only the server needs it

    terminal = sys.stderr.isatty()
    text = terminal if server.log_format == "auto" else server.log_format == "text"
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if text else "iso", utc=not text),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.format_exc_info,
    ]
    final: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if text:
        colours = terminal and "NO_COLOR" not in os.environ
        renderer = structlog.dev.ConsoleRenderer(
            colors=colours, sort_keys=False, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
        )
        final += [_in_words, renderer]
    else:
        final += [structlog.processors.EventRenamer("message"), structlog.processors.JSONRenderer()]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=final))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(server.log_level.upper())
    for noisy in ("httpx", "httpcore", "uvicorn.error", "mcp"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))


def _in_words(logger: Any, name: str, line: EventDict) -> EventDict:
    """Return the line without its logger and without fields that are None; that of a request begins with the method,
    the route, the status and the milliseconds."""
    del line["logger"]
    if line["event"] == "request":
        line["event"] = f"{line.pop('method')} {line.pop('route')} {line.pop('status')} {line.pop('ms')} ms"
    return {key: value for key, value in line.items() if value is not None}


def request_line(log: logging.Logger, scope: Any, status: int, seconds: float) -> None:
    """One line for one request: the route's template instead of the path, the tenant, no query string. Whom the server
    refused is a warning, with the address and the name of the key. A read that succeeds at once is of level debug: some
    clients poll a file's state dozens of times a second."""
    state = scope["memoranda"]
    fields = {
        "request_id": state.request_id,
        "method": scope.get("method", scope["type"]),
        "route": state.route,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "tenant": state.tenant,
        "key": state.key,
    }
    if status in REFUSED:
        client = scope.get("client") or ("",)
        log.warning("request", extra={**fields, "address": client[0]})
    elif fields["method"] in READS and status < 400 and seconds < SLOW_SECONDS:
        log.debug("request", extra=fields)
    else:
        log.info("request", extra=fields)
