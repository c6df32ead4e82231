"""Where a folder is served."""

from __future__ import annotations

from pathlib import Path

from memoranda.cli.mcp_folder import Folder
from memoranda.config import load
from memoranda.server.serve import listening


async def served_at(port: int, data: Path) -> int:
    """The port at which a folder is served whose server should have this one."""
    folder = Folder(load(env={}, overrides={"data": data, "embedder.url": "hash:64"}), port)
    try:
        return int((await folder.url()).rpartition(":")[2])
    finally:
        await folder.close()


async def test_a_port_that_is_taken_is_left(tmp_path: Path) -> None:
    with listening("127.0.0.1", 0) as listener:
        taken = listener.getsockname()[1]
        assert await served_at(taken, tmp_path) not in (0, taken)


async def test_a_free_port_is_used(tmp_path: Path) -> None:
    """Another test may take a port that was free just before, so a second one is tried then."""
    for _ in range(5):
        with listening("127.0.0.1", 0) as listener:
            free = listener.getsockname()[1]
        if await served_at(free, tmp_path) == free:
            return
    raise AssertionError("another port was used than the free one that was asked for")
