"""The server's log: one JSON object per line on standard error, without texts, queries or ids of memories."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import Processor


REFUSED = (401, 403)


def configure(level: str) -> None:
    """Sends every logger of this process, uvicorn's too, through structlog."""
    import structlog  # imported late: only the server needs it

    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.format_exc_info,
    ]
    final: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.EventRenamer("message"),
        structlog.processors.JSONRenderer(),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=final))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "uvicorn.error", "mcp"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))


def request_line(log: logging.Logger, scope: Any, status: int, seconds: float) -> None:
    """One line for one request: the route's template instead of the path, the tenant, no query string. Whom the server
    refused is a warning, with the address and the name of the key."""
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
    else:
        log.info("request", extra=fields)
