"""The declaration of an MCP server in a request, and its checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Meta

from memoranda.config.agent_sections import Responses as Settings
from memoranda.errors import InvalidInput
from memoranda.responses.values import OWN_LABEL
from memoranda.text.stored import compact_json
from memoranda.validation import convert

if TYPE_CHECKING:
    pass

SECRET_LENGTH = 8
"""A header's value of at least this length is masked in the server's answers."""


OWN_HEADERS = ("host", "content-length", "transfer-encoding", "connection", "accept-encoding")


_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


_NOT_IN_URLS = re.compile(r"[\x00-\x20\x7f]")


class ToolFilter(msgspec.Struct, kw_only=True, frozen=True):
    """Tools by name, or by the server's hints about them."""

    tool_names: list[str] | None = None
    read_only: bool | None = None

    def holds(self, tool: Mapping[str, Any]) -> bool:
        """Return True if the filter matches a tool; a filter without any condition matches none."""
        notes = tool.get("annotations") or {}
        if self.tool_names is None and self.read_only is None:
            return False
        named = self.tool_names is None or tool["name"] in self.tool_names
        return named and self.read_only in (None, notes.get("readOnlyHint") is True)


class ApprovalFilter(msgspec.Struct, kw_only=True, frozen=True):
    """Which tools ask first, and which do not; one that neither names asks."""

    always: ToolFilter | None = None
    never: ToolFilter | None = None


class Declared(msgspec.Struct, kw_only=True, frozen=True):
    """A server as a request declares it."""

    type: Literal["mcp"]
    server_label: Annotated[str, Meta(min_length=1, max_length=64)]
    server_url: str | None = None
    server_description: str | None = None
    headers: dict[str, str] | None = None
    authorization: str | None = None
    allowed_tools: list[str] | ToolFilter | None = None
    require_approval: Literal["always", "never"] | ApprovalFilter | None = None
    connector_id: str | None = None
    tunnel_id: str | None = None

    def allows(self, tool: Mapping[str, Any]) -> bool:
        """Return True if the model is offered this tool."""
        if self.allowed_tools is None:
            return True
        if isinstance(self.allowed_tools, list):
            return tool["name"] in self.allowed_tools
        return self.allowed_tools.holds(tool)

    def approves(self, tool: Mapping[str, Any]) -> bool:
        """Return True if this tool runs without asking."""
        asked = self.require_approval
        if not isinstance(asked, ApprovalFilter):
            return asked == "never"
        if asked.always is not None and asked.always.holds(tool):
            return False
        return asked.never is not None and asked.never.holds(tool)


def checked(
    raw: Mapping[str, Any], settings: Settings, open_to_all: bool, where: str = "tools[0]"
) -> Declared:
    """The declaration of a server that may be called. With `open_to_all` any host may, where `mcp_hosts` is not set:
    that is for when only this machine reaches us.

    Raises:
        InvalidInput: a field is wrong, or the host may not be called; the field is named below `where`.
    """
    asked = convert(dict(raw), Declared, where)
    for field in ("connector_id", "tunnel_id"):
        if getattr(asked, field) is not None:
            raise InvalidInput(
                f"{where}.{field}", "is not served here; name the MCP server by its server_url"
            )
    if asked.server_label == OWN_LABEL:
        raise InvalidInput(
            f"{where}.server_label", f"{OWN_LABEL!r} is the label of this server's own tools; take another"
        )
    if asked.server_url is None:
        raise InvalidInput(f"{where}.server_url", "is required")
    _check_headers(asked, where)
    _check_host(
        _address(asked.server_url, f"{where}.server_url"), settings, open_to_all, f"{where}.server_url"
    )
    return asked


def _address(url: str, where: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or _NOT_IN_URLS.search(url):
        raise InvalidInput(where, "must be a URL that begins with http:// or https://")
    if "@" in parts.netloc:
        raise InvalidInput(where, "must not hold a user or password; use `authorization` or `headers`")
    return parts


def _check_host(parts: SplitResult, settings: Settings, open_to_all: bool, where: str) -> None:
    if settings.mcp_hosts is None:
        if open_to_all:
            return
        raise InvalidInput(
            where, "no MCP server may be called here; the setting responses.mcp_hosts names those that may"
        )
    host = str(parts.hostname)
    named = {host, f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"}
    if named.isdisjoint(allowed.lower() for allowed in settings.mcp_hosts):
        raise InvalidInput(
            where, f"the host {host} is not one of responses.mcp_hosts, those that may be called"
        )


def _check_headers(asked: Declared, where: str) -> None:
    for name, value in (asked.headers or {}).items():
        if not _TOKEN.fullmatch(name) or name.lower() in OWN_HEADERS:
            raise InvalidInput(f"{where}.headers", f"{name!r} is no header that can be sent")
        if not _VALUE.fullmatch(value):
            raise InvalidInput(f"{where}.headers.{name}", "holds a character that no header can")
    if asked.authorization is not None:
        if not re.fullmatch(r"[\x21-\x7e]+", asked.authorization):
            raise InvalidInput(f"{where}.authorization", "must be a token, without spaces")
        if any(name.lower() == "authorization" for name in asked.headers or {}):
            raise InvalidInput(
                f"{where}.authorization", "goes without an Authorization header; send one of the two"
            )


def origin(declared: Mapping[str, Any]) -> str:
    """A digest of a server's URL and allowed tools, which identifies its list of tools without naming the server."""
    asked = compact_json([declared.get("server_url"), declared.get("allowed_tools")])
    return sha256(asked.encode()).hexdigest()
