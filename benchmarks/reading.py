"""How the readers fare with real and odd files, as markdown tables; and how much slower PDFs are than the bare parser.

    python benchmarks/reading.py --docs FOLDER [--pages 1000] [--only FORMAT ...]

`FOLDER` holds a folder for each format. Files go through the pool of worker processes, one format after the other.
A page is a page, a slide or a sheet; in formats that have none, 3 000 characters. Memory is a worker's highest
resident set.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pypdfium2

from memoranda.readers import Readers, pdf
from memoranda.readers.base import Document, Limits, Unreadable

PAGE = 3_000
ROUNDS = 7
REASONS = (
    ("locked with a password", "locked"),
    ("(scanned)", "scanned"),
    ("holds no text", "no text"),
    ("is empty", "no text"),
    ("is damaged", "damaged"),
)


@dataclass
class Tally:
    """What became of one format's files."""

    files: int = 0
    ok: int = 0
    pages: int = 0
    characters: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    memory: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    def row(self, name: str) -> str:
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.failed.most_common()) or "none"
        return (
            f"| {name} | {self.files} | {self.ok} | {reasons} | {self.pages / self.seconds:,.0f} "
            f"| {self.slowest * 1000:,.0f} | {self.memory / 1024:,.0f} |"
        )


class Memory:
    """Watches the processes below this one: the most that one of them has had in memory, in KiB."""

    def __init__(self) -> None:
        self.most = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._look()
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self._look()

    def _look(self) -> None:
        for process in descendants():
            try:
                status = Path(f"/proc/{process}/status").read_text()
            except OSError:
                continue
            high = re.search(r"VmHWM:\s+(\d+)", status)
            self.most = max(self.most, int(high[1]) if high else 0)


def descendants() -> set[int]:
    """The ids of all processes below this one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found: set[int] = set()
    wanted = {int(Path("/proc/self").resolve().name)}
    while wanted:
        wanted = {child for child, parent in parents.items() if parent in wanted} - found
        found |= wanted
    return found


def pages_of(document: Document) -> int:
    return len(document.pages) or -(-len(document.text) // PAGE)


def reason_of(error: Unreadable) -> str:
    return next((short for words, short in REASONS if words in str(error)), f"{error.code}: {error}")


async def fare(folder: Path) -> Tally:
    """Reads every file of a folder, one after the other, by a worker that has read one of them before."""
    tally, readers = Tally(), Readers(workers=1, recycle_after=10_000)
    paths = sorted(folder.iterdir())
    with Memory() as memory:
        with contextlib.suppress(Unreadable):
            await readers.read(paths[-1], paths[-1].name)
        for path in paths:
            tally.files += 1
            began = time.perf_counter()
            try:
                document = (await readers.read(path, path.name)).document
            except Unreadable as error:
                tally.failed[reason_of(error)] += 1
            else:
                tally.ok += 1
                tally.pages += pages_of(document)
                tally.characters += len(document.text)
            spent = time.perf_counter() - began
            tally.seconds += spent
            tally.slowest = max(tally.slowest, spent)
    tally.memory = memory.most
    await readers.close()
    return tally


def made_pdf(path: Path, pages: int) -> None:
    """A PDF of `pages` full pages of made-up words, always the same."""
    draw = random.Random(7)
    letters, weights = "etaoinshrdlucmfwypvbgkjqxz", range(26, 0, -1)
    words = ["".join(draw.choices(letters, weights, k=draw.randint(2, 11))) for _ in range(4_000)]
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>"]
    for _ in range(pages):
        lines = "\n".join(f"0 -14 Td ({' '.join(draw.choices(words, k=12))}) Tj" for _ in range(48))
        stream = zlib.compress(f"BT /F1 11 Tf 50 790 Td\n{lines}\nET".encode())
        objects.append(b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(stream), stream))
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R>>>>>>" % len(objects)
        )
    kids = b" ".join(b"%d 0 R" % (5 + 2 * i) for i in range(pages))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%b]>>" % (pages, kids)
    out, places = bytearray(b"%PDF-1.5\n"), []
    for number, thing in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%b\nendobj\n" % (number, thing)
    start, size = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, start)
    path.write_bytes(out)


def bare(path: Path, bounded: bool) -> int:
    """What the parser library alone does: its own loop over pages, for the characters found."""
    document = pypdfium2.PdfDocument(path)
    found = 0
    for index in range(len(document)):
        page = document[index]
        text = page.get_textpage()
        found += len(text.get_text_bounded() if bounded else text.get_text_range())
        text.close()
        page.close()
    document.close()
    return found


def ratio_row(name: str, paths: list[Path], rounds: int) -> str:
    """CPU time over all files, the best of some rounds in which the three take turns."""
    runs = (
        lambda path: bare(path, bounded=True),
        lambda path: bare(path, bounded=False),
        lambda path: len(pdf.read(path, Limits()).text),
    )
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for which, run in enumerate(runs):
            began = time.process_time()
            for path in paths:
                run(path)
            best[which] = min(best[which], time.process_time() - began)
    bounded, ranged, ours = best
    times = " | ".join(f"{1000 * spent:,.1f}" for spent in best)
    return f"| {name} | {times} | {ours / bounded:.2f} | {ours / ranged:.2f} |"


def good_pdfs(folder: Path) -> list[Path]:
    """Those that hold at least a paragraph of text."""
    found = []
    for path in sorted(folder.glob("*.pdf")):
        try:
            if len(pdf.read(path, Limits()).text) >= 200:
                found.append(path)
        except Unreadable:
            continue
    return found


def peak(path: Path) -> tuple[float, float]:
    """MB of a process that has imported the reader, and of one that has read the file as well."""
    code = (
        "import re, sys; from pathlib import Path; from memoranda.readers import pdf;"
        "from memoranda.readers.base import Limits;"
        "status = Path('/proc/self/status');"
        "top = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', status.read_text())[1]) / 1024; idle = top();"
        "pdf.read(Path(sys.argv[1]), Limits()); print(idle, top())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    idle, most = map(float, done.stdout.split())
    return idle, most


def against_the_parser(folder: Path, pages: int) -> None:
    print("\n| CPU ms | bare, bounded text | bare, text range | ours | ours / bounded | ours / range |")
    print("|---|--:|--:|--:|--:|--:|")
    good = good_pdfs(folder)
    print(ratio_row(f"{len(good)} files with text", good, ROUNDS * 3), flush=True)
    with tempfile.TemporaryDirectory() as place:
        long = Path(place) / "long.pdf"
        made_pdf(long, pages)
        print(ratio_row(f"one of {pages:,} pages", [long], ROUNDS - 4), flush=True)
        idle, most = peak(long)
    print(f"\nOne PDF of {pages:,} pages: {most - idle:.0f} MB over an idle process of {idle:.0f} MB.")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--only", nargs="*", metavar="FORMAT")
    given = parser.parse_args()
    print(
        "| format | files | ok | failed | pages/s | slowest, ms | memory, MB |\n|---|--:|--:|---|--:|--:|--:|"
    )
    for folder in sorted(path for path in given.docs.iterdir() if path.is_dir()):
        if not given.only or folder.name in given.only:
            print(asyncio.run(fare(folder)).row(folder.name), flush=True)
    if (given.docs / "pdf").is_dir():
        against_the_parser(given.docs / "pdf", given.pages)


if __name__ == "__main__":
    main()
