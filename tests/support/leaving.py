"""A client that closes its connection while its request is being answered."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from support.waiting import until


def post_and_leave(url: str, body: Mapping[str, Any], when: Callable[[], Any], what: str) -> None:
    """POST a JSON body and close the connection, without reading an answer, as soon as `when` is true; `what` it waits
    for is said when it never is."""
    address = urlsplit(url)
    content = json.dumps(body).encode()
    head = (
        f"POST {address.path} HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection((str(address.hostname), address.port or 80), timeout=30) as connection:
        connection.sendall(head.encode() + content)
        until(when, what)
