"""Commands as users start them, in processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(folder: Path, *options: str) -> Iterator[str]:
    """A server on the folder, as its address."""
    command = [sys.executable, "-m", "memoranda", "serve", "--port", "0", *options]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield server.stderr.readline().split()[-1]
        finally:
            server.send_signal(signal.SIGINT)
            server.stderr.read()
