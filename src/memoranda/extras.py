"""Packages that only some installations have, and the extra that brings each: `pip install 'memoranda[EXTRA]'`."""

from __future__ import annotations

EXTRAS = {
    "PIL": "documents",
    "charset_normalizer": "documents",
    "lxml": "documents",
    "pypdfium2": "documents",
    "python_calamine": "documents",
    "rich": "cli",
    "tomlkit": "cli",
    "typer": "cli",
    "prometheus_client": "server",
    "python_multipart": "server",
    "starlette": "server",
    "structlog": "server",
    "uvicorn": "server",
    "mcp": "mcp",
}
"""The extra of each package, by the name that is imported. Storage and index backends name theirs themselves."""


def needed(missing: ModuleNotFoundError) -> str | None:
    """Return which package is missing and the command that installs it; None if no extra brings it."""
    package = (missing.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    return None if extra is None else f"needs the package {package}: pip install 'memoranda[{extra}]'"
