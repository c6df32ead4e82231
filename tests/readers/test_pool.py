"""The worker pool against readers that hang, crash and eat memory, each really run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from operator import not_
from pathlib import Path

import pytest

from memoranda.readers import Limits, Readers, Unreadable, pool
from memoranda.text.splitting import Chunking
from support.waiting import until, until_async

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
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False


def _group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _reads(path: Path) -> int:
    """How often the file was read."""
    return path.with_suffix(".reads").stat().st_size


def _deaths(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says of readers that died."""
    return [record.getMessage() for record in caplog.records if record.name == "memoranda.readers"]


def _await_end(pids: list[int]) -> None:
    """Waits until none of the processes is alive, for half as long as the alarm of a read would take."""
    until(lambda: [pid for pid in pids if _alive(pid)], "the end of the processes", 30, accept=not_)


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


def test_a_relative_path_begins_where_its_caller_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await readers.read(saying("fine"), "a.odd")
        path = saying("fine")
        monkeypatch.chdir(path.parent)
        assert (await readers.read(Path(path.name), "b.odd")).document.text == str(readers.pids()[0])

    tell(tmp_path, story)


@pytest.mark.parametrize(
    ("said", "reads", "code", "words"),
    [
        ("crash", 2, "invalid_file", "signal 11, Segmentation fault"),
        ("die 2 29", 2, "invalid_file", "signal 29, I/O possible"),
        ("die 2 9", 2, "server_error", "was killed (signal 9, Killed)"),
        ("die 1 14", 1, "invalid_file", "took longer than 20 seconds"),
        ("exit 2 3", 2, "server_error", "ended with 3"),
        ("exit 2 0", 2, "server_error", "ended with 0"),
        ("raise", 1, "invalid_file", "ValueError: odd"),
        ("refuse", 1, "invalid_file", "is not to my taste"),
        ("deep", 1, "invalid_file", "nested too deeply"),
    ],
)
@pytest.mark.gate("crash", "exit 2 3", "raise", "refuse")
def test_a_file_that_breaks_its_reader_says_so_and_the_next_is_read(
    said: str, reads: int, code: str, words: str, tmp_path: Path
) -> None:
    """One whose reader dies is read twice, any other once."""

    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        path = saying(said)
        error = await _refused(readers, path)
        assert error.code == code
        assert words in str(error)
        assert _reads(path) == reads
        assert (await readers.read(saying("fine"), "fine.odd")).document.text

    tell(tmp_path, story)


@pytest.mark.parametrize(
    ("said", "ending"), [("die 1 29", "signal 29, I/O possible"), ("exit 1 3", "exit code 3")]
)
@pytest.mark.parametrize("used", [False, True])
def test_a_file_whose_reader_died_once_is_read_by_another(
    said: str, ending: str, used: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        if used:
            await readers.read(saying("fine"), "fine.odd")
        path = saying(said)
        parsed = await readers.read(path, "a.odd")
        assert parsed.document.text == str(readers.pids()[0])
        assert _reads(path) == 2
        (death,) = _deaths(caplog)
        assert f"({ending})" in death

    tell(tmp_path, story)


def test_the_log_tells_how_each_reader_died_and_its_last_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await _refused(readers, saying("die 2 11"))
        assert _deaths(caplog) == [
            f"a reader died (signal 11, Segmentation fault), its last words: death {time} is near"
            for time in (1, 2)
        ]
        fields = [vars(record) for record in caplog.records if record.name == "memoranda.readers"]
        assert [each["exit_code"] for each in fields] == [-11, -11]
        assert len({each["pid"] for each in fields}) == 2
        assert {each["levelno"] for each in fields} == {logging.WARNING}

    tell(tmp_path, story)


def test_a_reader_that_ends_as_a_request_comes_is_replaced_and_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its end counts for none of the two that make it the file's fault."""

    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        pid = int((await readers.read(saying("fine"), "fine.odd")).document.text)
        (worker,) = readers._all
        assert worker.process.stdin is not None
        os.kill(pid, signal.SIGSTOP)
        worker.process.stdin.close()
        worker.process.stdin = (tmp_path / "void").open("wb", 0)
        path = saying("die 1 11")
        reading = asyncio.create_task(readers.read(path, "a.odd"))
        while not (tmp_path / "void").stat().st_size:
            await asyncio.sleep(0.01)
        os.kill(pid, signal.SIGCONT)
        await reading
        assert _reads(path) == 2
        (death,) = _deaths(caplog)
        assert "signal 11" in death

    tell(tmp_path, story)


def test_a_write_to_the_request_pipe_ends_no_reader(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The kernel may tell a reader of a write long after the reader has taken what was written."""

    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        pid = (await readers.read(saying("fine"), "fine.odd")).document.text
        (worker,) = readers._all
        assert worker.process.stdin is not None
        path = saying("sleep 0.5")
        reading = asyncio.create_task(readers.read(path, "a.odd"))
        while not path.with_suffix(".reads").exists():
            await asyncio.sleep(0.01)
        worker.process.stdin.write(b"\0")
        assert (await reading).document.text == pid
        assert _deaths(caplog) == []

    tell(tmp_path, story)


@pytest.mark.parametrize("said", ["sleep 300", "spin", "child"])
@pytest.mark.gate("child")
def test_a_file_that_takes_too_long_is_given_up_with_everything_it_started(said: str, tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await readers.read(saying("fine"), "fine.odd")
        group = readers.pids()[0]
        path = saying(said)
        error = await _refused(readers, path)
        assert _reads(path) == 1
        assert error.code == "invalid_file"
        assert "longer than 1 seconds" in str(error)
        await until_async(lambda: not _group_alive(group), "the end of what it started")
        assert (await readers.read(saying("fine"), "fine.odd")).document.text

    tell(tmp_path, story, limits=Limits(seconds=1.0))


def test_a_file_that_eats_memory_is_given_up(tmp_path: Path) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        path = saying("eat 2000")
        error = await _refused(readers, path)
        assert _reads(path) == 1
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


def test_a_worker_that_died_unasked_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await readers.read(saying("fine"), "f.odd")
        os.kill(readers.pids()[0], signal.SIGKILL)
        await asyncio.sleep(0.2)
        assert (await readers.read(saying("fine"), "f.odd")).document.text
        (death,) = _deaths(caplog)
        assert "(signal 9, Killed)" in death

    tell(tmp_path, story)


def test_files_are_read_side_by_side(tmp_path: Path) -> None:
    """Each is read to its end once the other was begun."""

    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await asyncio.gather(*(readers.read(saying("fine"), "f.odd") for _ in range(2)))
        paths = [saying("with 2 3") for _ in range(2)]
        await asyncio.gather(*(readers.read(path, "s.odd") for path in paths))
        assert [_reads(path) for path in paths] == [1, 1]

    tell(tmp_path, story, workers=2, limits=Limits(seconds=60))


def test_a_caller_that_is_cancelled_ends_the_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        await readers.read(saying("fine"), "f.odd")
        pid = readers.pids()[0]
        path = saying("sleep 15")
        reading = asyncio.create_task(readers.read(path, "s.odd"))
        await asyncio.sleep(0.2)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.to_thread(_await_end, [pid])
        assert _reads(path) == 1
        assert _deaths(caplog) == []

    tell(tmp_path, story)


def test_readers_that_close_end_the_reading(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(readers: Readers, saying: Callable[[str], Path]) -> None:
        path = saying("sleep 15")
        reading = asyncio.create_task(_refused(readers, path))
        while not path.with_suffix(".reads").exists():
            await asyncio.sleep(0.01)
        await readers.close()
        assert "closed" in str(await reading)
        assert _reads(path) == 1
        assert _deaths(caplog) == []

    tell(tmp_path, story)


@pytest.mark.parametrize("said", ["spin", "native 60"])
def test_workers_end_with_a_killed_parent(said: str, tmp_path: Path) -> None:
    """The parent is killed while one worker is idle and another is at work, a minute before its alarm. A child of the
    parent lives on, with what it inherits."""
    (tmp_path / "fine.odd").write_text("fine")
    (tmp_path / "long.odd").write_text(said)
    program = f"""
import asyncio, subprocess
from pathlib import Path
from memoranda.readers import Limits, Readers
async def main():
    readers = Readers(2, Limits(seconds=60), extra={EXTRA!r})
    here = Path({str(tmp_path)!r})
    await asyncio.gather(*(readers.read(here / "fine.odd", "fine.odd") for _ in range(2)))
    other = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
    print(other.pid, *readers.pids(), flush=True)
    await readers.read(here / "long.odd", "long.odd")
asyncio.run(main())
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    other, *pids = (int(pid) for pid in parent.stdout.readline().split())
    try:
        while not (tmp_path / "long.reads").exists():
            time.sleep(0.01)
        time.sleep(0.2)
        assert len(pids) == 2
        assert all(_alive(pid) for pid in pids)
        parent.kill()
        parent.wait()
        _await_end(pids)
    finally:
        for pid in (other, *pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_a_worker_whose_parent_ended_while_it_started_ends(tmp_path: Path) -> None:
    """Its request pipe is open still."""
    lifeline, held = os.pipe()
    worker = subprocess.Popen(
        [sys.executable, "-P", "-c", pool.START, pool.ROOT, "200", str(lifeline)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[lifeline],
    )
    os.close(lifeline)
    os.close(held)
    with worker:
        assert worker.wait(10) == 0
        assert worker.stdout is not None
        assert worker.stdout.read() == b"", "it was never ready"


def test_closed_readers_say_so(tmp_path: Path) -> None:
    async def main() -> None:
        readers = Readers(1)
        await readers.close()
        await readers.close()
        with pytest.raises(Unreadable, match="closed"):
            await readers.read(tmp_path / "x.txt", "x.txt")

    asyncio.run(main())
