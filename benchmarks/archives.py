"""What an archive of a whole tenant costs: export, restore into an empty folder, and the same restore again.

    python benchmarks/archives.py --rows 10000 100000

Three fifths of the rows are memories with two sources each, a fifth messages in sessions of a hundred, a fifth chunks
of ten files. Each command runs as a process of its own, with the hash embedder: its CPU seconds, with the start of
Python, and its peak memory.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from growth import LANGUAGE
from memoranda import Memoranda
from memoranda.text.splitting import Chunking

NOON = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
MODEL = "hash:256"
SESSION, BATCH, FILES = 100, 2_000, 10
LINES_PER_CHUNK = 2.07


def fill(folder: Path, rows: int) -> None:
    """Write the rows in a process of its own: a child's peak memory begins with that of its parent."""
    process = multiprocessing.get_context("spawn").Process(target=_fill, args=(folder, rows))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit("the folder could not be filled")


def _fill(folder: Path, rows: int) -> None:
    asyncio.run(_write(folder, rows))


async def _write(folder: Path, rows: int) -> None:
    """Write the rows, and wait until everything is embedded and indexed."""
    async with await Memoranda.open(folder, embedder={"url": MODEL}, sessions={"summarize": False}) as rc:
        notes = [
            {
                "content": LANGUAGE.text(i),
                "user_id": f"u{i % 50}",
                "source_refs": [f"a{i % 97}", f"b{i % 89}"],
            }
            for i in range(3 * rows // 5)
        ]
        for start in range(0, len(notes), BATCH):
            await rc.memories.add_many(notes[start : start + BATCH])
        for session in range(rows // 5 // SESSION):
            said = [
                {
                    "content": LANGUAGE.text(1_000_000 + session * SESSION + i),
                    "user_id": f"u{session % 50}",
                    "occurred_at": NOON + timedelta(days=session, seconds=i),
                }
                for i in range(SESSION)
            ]
            await rc.observe(said, channel_id=f"c{session % 10}")
        lines = int(rows / 5 * LINES_PER_CHUNK / FILES)
        ids = []
        for file in range(FILES):
            text = "\n".join(f"{LANGUAGE.text(2_000_000 + file * lines + i)}." for i in range(lines))
            ids.append((await rc.knowledge.files.upload(text.encode(), f"{file}.md")).id)
        await rc.knowledge.stores.create(name="docs", file_ids=ids, chunking=Chunking(size=100, overlap=0))
        while (jobs := rc.core.store.db.read(lambda c: dict(c.all("count_jobs")))) and (
            jobs.get("queued") or jobs.get("running")
        ):
            await asyncio.sleep(0.05)


def measure(what: str, folder: Path, *command: str) -> None:
    """Run a command on a folder and print its row."""
    settings = ("--set", f"embedder.url={MODEL}", "--set", "sessions.summarize=false", "--data", str(folder))
    process = subprocess.Popen(
        [sys.executable, "-m", "memoranda", *command, *settings], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{what} failed")
    seconds = usage.ru_utime + usage.ru_stime
    print(f"| {what} | {seconds:.1f} | {usage.ru_maxrss / 1024:.0f} |", flush=True)


def main() -> None:
    """Print a table for each number of rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    for rows in parser.parse_args().rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fill(folder / "full", rows)
            plain, vectors = str(folder / "plain.zip"), str(folder / "vectors.zip")
            print(f"\n| {rows:,} rows | CPU s | peak MiB |\n|---|--:|--:|")
            measure("`stats`, for comparison", folder / "full", "stats")
            measure("`export -o x.zip`", folder / "full", "export", "-o", plain)
            measure("`export --vectors -o x.zip`", folder / "full", "export", "--vectors", "-o", vectors)
            measure("`import x.zip` into an empty folder", folder / "plain", "import", plain)
            measure("the same again", folder / "plain", "import", plain)
            measure("`import x.zip` with vectors", folder / "vectors", "import", vectors)
            sizes = [os.path.getsize(path) / 1e6 for path in (plain, vectors)]
            print(f"\nThe archive has {sizes[0]:.1f} MB, with vectors {sizes[1]:.1f} MB.")


if __name__ == "__main__":
    main()
