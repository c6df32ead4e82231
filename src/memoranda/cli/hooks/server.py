"""The server of a data folder, over the HTTP client of the standard library: half of httpx's time to import."""

from __future__ import annotations

import http.client
import json
import os
from typing import Any
from urllib.parse import urlencode

from memoranda.cli.hooks.options import Options
from memoranda.storage.data_lock import url_of_other


class Refused(Exception):
    """The server answered with another status than 200; `status` is that."""

    def __init__(self, status: int, says: str) -> None:
        super().__init__(f"the server answered {status}: {says}")
        self.status = status


class Server:
    """Calls the server of a data folder, with a key where it asks for one."""

    def __init__(self, url: str, options: Options, seconds: float) -> None:
        self._options = options
        place = url.split("://", 1)[-1].rstrip("/")
        self._connection = http.client.HTTPConnection(place, timeout=seconds)
        self._key = os.environ.get("MEMORANDA_KEY")

    def get(self, path: str, query: list[tuple[str, str]]) -> Any:
        """Return the answer of a GET request.

        Raises:
            Refused: the server does not answer with 200.
            OSError: it does not answer.
        """
        return self._call("GET", f"{path}?{urlencode(query)}", None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer of a POST request; raises as `get`."""
        return self._call("POST", path, json.dumps(body).encode())

    def _call(self, method: str, path: str, body: bytes | None) -> Any:
        status, answer = self._sent(method, path, body)
        if status == 401 and self._key is None:
            self._key = self._options.configuration().operator_key()
            status, answer = self._sent(method, path, body)
        if status != 200:
            raise Refused(status, answer.decode("utf-8", "replace")[:500])
        return json.loads(answer)

    def _sent(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        headers = {"content-type": "application/json"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()


def server_of(options: Options, seconds: float) -> Server | None:
    """Return the server of the folder, which answers within so many seconds; None if no process serves it."""
    url = url_of_other(options.folder)
    return None if url is None else Server(url, options, seconds)
