"""Small servers that answer as embedding providers do, by their published references, and fail on demand.

The vectors are the hash embedder's, so that texts of the same words are alike. References:

- OpenAI: https://platform.openai.com/docs/api-reference/embeddings/create and /docs/guides/error-codes
- Gemini: https://ai.google.dev/api/embeddings#method:-models.batchembedcontents
- Vertex AI: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api and
  https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/projects.locations.publishers.models/embedContent
- Google's errors: https://cloud.google.com/apis/design/errors and google.rpc.RetryInfo
- Ollama: https://docs.ollama.com/api/embed and https://docs.ollama.com/api/errors
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from memoranda.providers.embeddings.hash import HashEmbedder
from memoranda.text import tokens


@dataclass
class Asked:
    """One request as the server received it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float = field(default_factory=time.monotonic)

    @property
    def texts(self) -> list[str]:
        """The texts in it, whichever provider's shape it has."""
        body = self.body
        if "input" in body:
            return list(body["input"])
        if "instances" in body:
            return [each["content"] for each in body["instances"]]
        return [each["content"]["parts"][0]["text"] for each in body.get("requests", [body])]


@dataclass
class Reply:
    """What to answer once instead: a status and a body (an object or raw bytes), after `delay` seconds; `cut` ends the
    connection in the middle of the body."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False


Change = Callable[[Asked, Any], Any]


class Provider:
    """A server on a free port, until `close`. `replies` are used up first, one a request; `change` has the last word on
    what is answered otherwise; `dim` is what its models make when no dimension is asked for. While `speaks` is not set
    it is silent; `answered` counts the requests that it is done with."""

    def __init__(self, dim: int = 256) -> None:
        self.dim = dim
        self.asked: list[Asked] = []
        self.replies: deque[Reply] = deque()
        self.change: Change = lambda asked, body: body
        self.delay = 0.0
        self.speaks = threading.Event()
        self.speaks.set()
        self.answered = 0
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                provider.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def close(self) -> None:
        self.speaks.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers["content-length"]))
        asked = Asked(handler.path, {k.lower(): v for k, v in handler.headers.items()}, json.loads(raw))
        with self._lock:
            self.asked.append(asked)
            reply = self.replies.popleft() if self.replies else None
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            if reply is None:
                reply = Reply(body=self.change(asked, self.body(asked)), delay=self.delay)
            time.sleep(reply.delay)
            self.speaks.wait()
            self._send(handler, reply)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True
        finally:
            with self._lock:
                self._now -= 1
                self.answered += 1

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body or {}).encode()
        handler.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        if reply.cut:
            handler.wfile.write(content[: len(content) // 2])
            handler.wfile.flush()
            handler.close_connection = True
            handler.connection.shutdown(2)
        else:
            handler.wfile.write(content)

    def body(self, asked: Asked) -> Any:
        """What the provider whose path it is answers to this request."""
        if asked.path.endswith("/embeddings"):
            return self.openai(asked)
        if asked.path.endswith("/api/embed"):
            return self.ollama(asked)
        if asked.path.endswith(":batchEmbedContents"):
            dim = asked.body["requests"][0].get("outputDimensionality")
            return {"embeddings": [{"values": each.tolist()} for each in self.vectors(asked.texts, dim)]}
        if asked.path.endswith(":embedContent"):
            values = self.vectors(asked.texts, asked.body.get("outputDimensionality"))[0]
            usage = {"promptTokenCount": count(asked.texts)}
            return {"embedding": {"values": values.tolist()}, "usageMetadata": usage, "truncated": False}
        dim = asked.body["parameters"].get("outputDimensionality")
        return {"predictions": [
            {"embeddings": {"values": vector.tolist(),
                            "statistics": {"token_count": count([text]), "truncated": False}}}
            for text, vector in zip(asked.texts, self.vectors(asked.texts, dim), strict=True)
        ]}  # fmt: skip

    def openai(self, asked: Asked) -> Any:
        made = self.vectors(asked.texts, asked.body.get("dimensions"))
        packed = asked.body.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": i,
                "embedding": base64.b64encode(vector.tobytes()).decode() if packed else vector.tolist(),
            }
            for i, vector in enumerate(made)
        ]
        read = count(asked.texts)
        return {
            "object": "list",
            "data": data,
            "model": asked.body.get("model", "the-default"),
            "usage": {"prompt_tokens": read, "total_tokens": read},
        }

    def ollama(self, asked: Asked) -> Any:
        made = self.vectors(asked.texts, asked.body.get("dimensions"))
        return {
            "model": asked.body["model"],
            "embeddings": made.tolist(),
            "total_duration": 14143917,
            "load_duration": 1019500,
            "prompt_eval_count": count(asked.texts),
        }

    def vectors(self, texts: Sequence[str], dim: int | None) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The hash embedder's, twice as long: providers need not normalise."""
        return 2 * HashEmbedder(dim or self.dim, 1).compute(texts, "document").vectors


def count(texts: Sequence[str]) -> int:
    """What OpenAI's tokenizer for embeddings counts."""
    return sum(tokens.count(text, "cl100k_base") for text in texts)
