"""The worker pool against readers that hang, crash and eat memory, each really run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from recollect.readers import Limits, Readers, Unreadable
from recollect.text.splitting import Chunking

EXTRA = {".odd": "hostile:read"}
Story = Callable[[Readers, Callable[[str], Path]], Awaitable[None]]


@pytest.fixture(autouse=True)
def _hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def tell(
    tmp_path: Path, story: Story, *, workers: int = 1, limits: Limits | None = None, recycle: int = 200
) -> None:
    names = iter(range(100))

    def saying(text: str) -> Path:
        path = tmp_path / f"{next(names)}.odd"
        path.write_text(text)
        return path

    async def main() -> None:
        readers = Readers(workers, limits or Limits(seconds=20), recycle_after=recycle, extra=EXTRA)
        try:
            await story(readers, saying)
        finally:
            await readers.close()
        assert readers.pids() == [] or not any(_alive(pid) for pid in readers.pids())

    asyncio.run(main())


def _alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False


def _group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


async def _refused(readers: Readers, path: Path) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        await readers.read(path, path.name)
    return caught.value


def test_a_worker_reads_one_file_after_another(tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        first = await readers.read(saying("fine"), "a.odd")
        second = await readers.read(saying("fine"), "b.odd", Chunking(size=100))
        assert first.document.text == second.document.text == str(readers.pids()[0])
        assert first.chunks == []
        assert [(place.start, place.end) for place in second.chunks] == [(0, len(second.document.text))]

    tell(tmp_path, story)


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ("crash", "invalid_file", "signal 11"),
        ("exit 3", "server_error", "ended with 3"),
        ("raise", "invalid_file", "ValueError: odd"),
        ("refuse", "invalid_file", "is not to my taste"),
        ("deep", "invalid_file", "nested too deeply"),
    ],
)
def test_a_file_that_breaks_its_reader_says_so_and_the_next_is_read(
    said: str, code: str, words: str, tmp_path: Path
) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        error = await _refused(readers, saying(said))
        assert error.code == code
        assert words in str(error)
        assert (await readers.read(saying("fine"), "fine.odd")).document.text

    tell(tmp_path, story)


@pytest.mark.parametrize("said", ["sleep 60", "spin", "child"])
def test_a_file_that_takes_too_long_is_given_up_with_everything_it_started(said: str, tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await readers.read(saying("fine"), "fine.odd")
        began = time.monotonic()
        group = readers.pids()[0]
        error = await _refused(readers, saying(said))
        assert error.code == "invalid_file"
        assert "longer than 1 seconds" in str(error)
        assert time.monotonic() - began < 10
        while _group_alive(group) and time.monotonic() - began < 15:
            await asyncio.sleep(0.05)
        assert not _group_alive(group), "what it started is gone, too"
        assert (await readers.read(saying("fine"), "fine.odd")).document.text

    tell(tmp_path, story, limits=Limits(seconds=1.0))


def test_a_file_that_eats_memory_is_given_up(tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        error = await _refused(readers, saying("eat 2000"))
        assert error.code == "invalid_file"
        assert "needs more than 100 MiB" in str(error)
        assert (await readers.read(saying("eat 40"), "fine.odd")).document.text

    tell(tmp_path, story, limits=Limits(seconds=20, memory_bytes=100 << 20))


def test_what_a_library_prints_is_no_answer(tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        for _ in range(3):
            assert (await readers.read(saying("print"), "p.odd")).document.text.isdecimal()

    tell(tmp_path, story)


def test_a_worker_is_renewed_after_many_files(tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        pids = [(await readers.read(saying("fine"), "f.odd")).document.text for _ in range(5)]
        assert len(set(pids)) == 3
        assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]

    tell(tmp_path, story, recycle=2)


def test_a_worker_that_died_unasked_is_replaced(tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await readers.read(saying("fine"), "f.odd")
        os.kill(readers.pids()[0], signal.SIGKILL)
        await asyncio.sleep(0.2)
        assert (await readers.read(saying("fine"), "f.odd")).document.text

    tell(tmp_path, story)


def test_files_are_read_side_by_side(tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await asyncio.gather(*(readers.read(saying("fine"), "f.odd") for _ in range(2)))
        began = time.monotonic()
        await asyncio.gather(*(readers.read(saying("sleep 1"), "s.odd") for _ in range(2)))
        assert time.monotonic() - began < 1.9

    tell(tmp_path, story, workers=2)


def test_a_caller_that_is_cancelled_ends_the_reading(tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await readers.read(saying("fine"), "f.odd")
        pid = readers.pids()[0]
        reading = asyncio.create_task(readers.read(saying("sleep 15"), "s.odd"))
        await asyncio.sleep(0.2)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        until = time.monotonic() + 5
        while _alive(pid) and time.monotonic() < until:
            await asyncio.sleep(0.05)
        assert not _alive(pid)

    tell(tmp_path, story)


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    """The parent is killed while one worker is idle and another is at work, which its alarm ends."""
    (tmp_path / "fine.odd").write_text("fine")
    (tmp_path / "spin.odd").write_text("spin")
    program = f"""
import asyncio
from pathlib import Path
from recollect.readers import Limits, Readers
async def main():
    readers = Readers(2, Limits(seconds=1), extra={EXTRA!r})
    here = Path({str(tmp_path)!r})
    await asyncio.gather(*(readers.read(here / "fine.odd", "fine.odd") for _ in range(2)))
    print(*readers.pids(), flush=True)
    await readers.read(here / "spin.odd", "spin.odd")
asyncio.run(main())
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    until = time.monotonic() + 15
    while any(_alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.1)
    assert pids
    assert not any(_alive(pid) for pid in pids)


def test_closed_readers_say_so(tmp_path: Path) -> None:
    async def main() -> None:
        readers = Readers(1)
        await readers.close()
        await readers.close()
        with pytest.raises(Unreadable, match="closed"):
            await readers.read(tmp_path / "x.txt", "x.txt")

    asyncio.run(main())
