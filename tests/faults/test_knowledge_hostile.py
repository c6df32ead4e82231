"""Files made to harm, through a whole server: each ends within its limits, and searches go on as if nothing were."""

from __future__ import annotations

import io
import json
import random
import threading
import time
import zipfile
from collections.abc import Iterator
from operator import not_
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.waiting import until

from . import indexer

DOCS = Path(__file__).resolve().parents[3] / "shared" / "data" / "docs"
LIMITS = {"seconds": 4, "memory_bytes": 300 << 20, "unpacked_bytes": 64 << 20}
GROWTH = 400 << 20
"""Bytes that the server itself may grow by."""
ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))


def word_file(document: bytes, size: int = 0) -> bytes:
    """A .docx of this document, followed by so many zeros."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.writestr("[Content_Types].xml", "<Types/>")
        with made.open("word/document.xml", "w", force_zip64=True) as part:
            part.write(document)
            for _ in range(size >> 20):
                part.write(bytes(1 << 20))
    return held.getvalue()


def nested_mail(levels: int) -> bytes:
    """A mail in a mail in a mail."""
    return b"Content-Type: message/rfc822\r\n\r\n" * levels + b"Subject: deep\r\n\r\nthe last one\r\n"


def mail_of_itself(times: int) -> bytes:
    """A mail that has itself attached so many times, and that again."""
    inner = b"Subject: me\r\nContent-Type: text/plain\r\n\r\nhello\r\n"
    for _ in range(2):
        part = b"--b\r\nContent-Type: message/rfc822\r\n\r\n" + inner
        inner = b"Subject: me\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" + part * min(times, 1_000)
        inner, times = inner + b"--b--\r\n", 20
    return inner


def hostile() -> dict[str, bytes]:
    """Each file by its name."""
    made = {
        "bomb.docx": word_file(b"<w:document>", 256 << 20),
        "laughs.docx": word_file(f"<!DOCTYPE d [<!ENTITY e0 'lol'>{ENTITIES}]><d>&e11;</d>".encode()),
        "nested.html": b"<html><body>" + b"<div>" * 1_000_000 + b"deep",
        "attributes.html": b"<p " + b" ".join(b"a%d=1" % n for n in range(300_000)) + b">text</p>",
        "entities.html": b"<p>" + b"&amp;" * 2_000_000,
        "line.txt": b"a" * (20 << 20),
        "words.txt": b"ab " * (3 << 20),
        "nested.json": b"[" * 10_000 + b"]" * 10_000,
        "nested.eml": nested_mail(10_000),
        "itself.eml": mail_of_itself(1_000),
        "nested.md": b"> " * 10_000 + b"quoted\n" + b"#" * 100_000 + b" heading",
        "nested.pdf": b"%PDF-1.4\n1 0 obj " + b"<< /A [" * 100_000 + b" endobj",
        "nested.rtf": b"{\\rtf1 " + b"{" * 300_000 + b"deep" + b"}" * 300_000 + b"}",
        "zeros.txt": bytes(5 << 20),
    }
    for path in random.Random(5).sample(sorted((DOCS / "pdf").glob("*")), 3) if DOCS.is_dir() else []:
        made[path.name] = path.read_bytes()
    return made


@pytest.fixture
def url(tmp_path: Path) -> Iterator[tuple[str, Any]]:
    """A server whose readers may take little."""
    settings = {
        **indexer.SETTINGS,
        "data": str(tmp_path / "data"),
        "readers": LIMITS,
        "jobs": {},
        "knowledge": {},
    }
    settings["server"] = {"port": 0}
    with indexer.living(tmp_path / "said.log", "serve", json.dumps(settings)) as life:
        yield life.ready(), life
        assert life.process.poll() is None
        assert life.end(15) == 0
        life.gone()
    assert "Traceback" not in life.log.read_text()


class Searching(threading.Thread):
    """Asks a store again and again; how long each answer took."""

    def __init__(self, url: str, store: str) -> None:
        super().__init__()
        self.path = f"{url}/v1/vector_stores/{store}/search"
        self.stop = threading.Event()
        self.seconds: list[float] = []
        self.wrong: list[Any] = []

    def run(self) -> None:
        with httpx.Client(timeout=20) as http:
            while not self.stop.is_set():
                began = time.perf_counter()
                found = http.post(self.path, json={"query": "a calm sea"})
                self.seconds.append(time.perf_counter() - began)
                if found.status_code != 200 or not found.json()["data"]:
                    self.wrong.append(found.text)
                time.sleep(0.01)


def resident(pid: int) -> int:
    """Bytes that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
def test_files_made_to_harm(url: tuple[str, Any]) -> None:
    base, life = url
    with httpx.Client(base_url=base, timeout=60) as http:
        store = http.post("/v1/vector_stores", json={}).json()["id"]
        path = f"/v1/vector_stores/{store}/files"
        http.post(path, files={"file": ("calm.txt", b"a calm sea and a prosperous voyage")})
        until(lambda: http.get(f"{path}?filter=in_progress").json()["data"], "the indexed file", accept=not_)
        searching = Searching(base, store)
        searching.start()
        try:
            idle = most = resident(life.process.pid)
            for name, content in hostile().items():
                assert http.post(path, files={"file": (name, content)}).status_code == 200, name
            began = time.perf_counter()

            def left() -> Any:
                nonlocal most
                most = max(most, resident(life.process.pid))
                return http.get(f"{path}?filter=in_progress").json()["data"]

            until(left, "no file in progress", accept=not_, every=0.05)
            whole = time.perf_counter() - began
        finally:
            searching.stop.set()
            searching.join()
        held = http.get(f"{path}?limit=100").json()["data"]
        names = {one["id"]: http.get(f"/v1/files/{one['id']}").json()["filename"] for one in held}
    for one in held:
        print(names[one["id"]], one["status"], one["chunk_count"], one["last_error"])
    slowest = sorted(searching.seconds)
    print(f"{most - idle >> 20} MiB more; slowest {slowest[-5:]} of {len(slowest)} in {whole} s")
    assert searching.wrong == []
    assert slowest[-1 - len(slowest) // 100] < whole / 20
    assert slowest[-1] < whole / 5  # one may meet what else this machine does
    assert most - idle < GROWTH
    for one in held:
        failed = one["status"] == "failed" and one["last_error"]["code"] in (
            "invalid_file",
            "unsupported_file",
        )
        assert failed or one["status"] == "completed", (names[one["id"]], one)
