"""What every server imports and loads: a process that has imported this is copied by `server_process.context`."""

import httptools  # noqa: F401
import pysqlite3  # noqa: F401
import structlog.stdlib  # noqa: F401
import turbovec  # noqa: F401
import uvloop  # noqa: F401
import websockets.server  # noqa: F401

import support.server_process  # noqa: F401
from memoranda.text import tokens

tokens.count("A tokenizer takes a third of a second to load.")
