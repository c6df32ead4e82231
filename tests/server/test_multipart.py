"""Forms as clients send them, in whatever slices they arrive; what is wrong is told, and the file is taken back."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memoranda.errors import InvalidInput, MemorandaError
from memoranda.server.errors import ClientGone, Refused
from memoranda.server.multipart import PIECE, FilePart, FilledForm, last_name, read_form, unflatten
from memoranda.storage.blobs import open_blobs

BOUNDARY = "xYzZY"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
HUNG_UP = object()
SILENCE = object()


class Sink:
    """Takes files, and knows what became of each."""

    def __init__(self) -> None:
        self.files: list[tuple[str, str | None, bytes]] = []
        self.broken: list[BaseException] = []
        self.undone: list[int] = []
        self.largest = 0

    async def take(self, part: FilePart) -> int:
        held = bytearray()
        try:
            async for piece in part.pieces:
                self.largest = max(self.largest, len(piece))
                held += piece
        except BaseException as exc:
            self.broken.append(exc)
            raise
        self.files.append((part.filename, part.media_type, bytes(held)))
        return len(held)

    async def undo(self, taken: int) -> None:
        self.undone.append(taken)


class Sent:
    """A body as a server hands it over: pieces, then the end, silence, or a client that hung up."""

    def __init__(self, *pieces: bytes, then: object = None) -> None:
        self.pieces = list(pieces)
        self.then = then

    async def receive(self) -> dict[str, Any]:
        if self.pieces:
            piece = self.pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self.pieces or self.then)}
        if self.then is SILENCE:
            await asyncio.sleep(30)
        return {"type": "http.disconnect"}


def sliced(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)] or [b""]


def part(disposition: str | bytes, data: bytes = b"", *headers: str) -> bytes:
    says = disposition.encode() if isinstance(disposition, str) else disposition
    more = "".join(f"{header}\r\n" for header in headers).encode()
    return b"--xYzZY\r\nContent-Disposition: form-data; " + says + b"\r\n" + more + b"\r\n" + data + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--xYzZY--\r\n"


FILE = part('name="file"; filename="a.txt"', b"hello", "Content-Type: text/plain")
PURPOSE = part('name="purpose"', b"assistants")


def read(
    body: bytes | Sent, sink: Sink | None = None, headers: dict[str, str] | None = None, **options: Any
) -> FilledForm[int]:
    sink = sink or Sink()
    sent = body if isinstance(body, Sent) else Sent(body)
    options = {"most": 10_000_000, "patience": 5.0} | options
    return asyncio.run(read_form(sent.receive, headers or FORM, sink.take, undo=sink.undo, **options))


def refusal(body: bytes | Sent, sink: Sink | None = None, **options: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        read(body, sink, **options)
    return caught.value.status, caught.value.code


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 100_000])
@pytest.mark.parametrize("parts", [(PURPOSE, FILE), (FILE, PURPOSE)])
def test_fields_come_before_or_after_the_file(parts: tuple[bytes, ...], size: int) -> None:
    sink = Sink()
    read_ = read(Sent(*sliced(form(*parts), size)), sink)
    assert read_ == FilledForm([("purpose", "assistants")], 5)
    assert sink.files == [("a.txt", "text/plain", b"hello")]
    assert sink.undone == []


NASTY = [
    b"",
    b"\r\n",
    b"\r\n--xYzZ",
    b"\r\n--xYzZX\r\n--xYzZ\r\n-",
    b"--xYzZY",
    b"\r\r\n\r\n--\r\n--xYz\r\n--xYzZ\r",
    b"\r\n--xYzZYnot\r\n",
    bytes(range(256)) * 5,
    b"\r\n" * 500,
]


@pytest.mark.parametrize("size", [1, 2, 5, 11, 4096])
def test_what_looks_like_a_boundary_is_data(size: int) -> None:
    for data in NASTY:
        sink = Sink()
        body = form(PURPOSE, part('name="file"; filename="a"', data), part('name="after"', b"yes"))
        assert read(Sent(*sliced(body, size)), sink).fields == [("purpose", "assistants"), ("after", "yes")]
        assert sink.files == [("a", None, data)]


def test_random_bytes_in_random_slices() -> None:
    chance = random.Random(7)
    for _ in range(40):
        data = bytes(chance.choice(b"\r\n-xYzZ") for _ in range(chance.randrange(400)))
        data = data.replace(b"\r\n--xYzZY", b"")
        body, pieces = form(part('name="file"; filename="a"', data), PURPOSE), []
        while body:
            cut = chance.randrange(1, 9)
            pieces.append(body[:cut])
            body = body[cut:]
        sink = Sink()
        read(Sent(*pieces), sink)
        assert sink.files[0][2] == data


def test_a_file_is_handed_on_in_pieces() -> None:
    data = os.urandom(3 << 20)
    sink = Sink()
    read(Sent(*sliced(form(PURPOSE, part('name="file"; filename="a"', data)), 65_536)), sink)
    assert sink.files[0][2] == data
    assert sink.largest <= PIECE + 65_536


def test_a_piece_is_handed_on_before_the_rest_has_arrived() -> None:
    """The client sends more only once the sink has what came before."""
    data = [os.urandom(PIECE) for _ in range(6)]
    sink = Sink()

    class Waits(Sent):
        given = 0

        async def receive(self) -> dict[str, Any]:
            self.given += 1
            assert taken >= (self.given - 3) * PIECE
            return await super().receive()

    taken = 0

    async def take(part: FilePart) -> int:
        nonlocal taken
        async for piece in part.pieces:
            taken += len(piece)
        return taken

    sent = Waits(part('name="file"; filename="a"')[:-2], *data, b"\r\n--xYzZY--")
    asyncio.run(read_form(sent.receive, FORM, take, undo=sink.undo, most=10_000_000, patience=5.0))
    assert taken == 6 * PIECE


# --- as clients encode it ------------------------------------------------------------------------------


def by_openai(call: Callable[[openai.OpenAI], Any]) -> tuple[bytes, dict[str, str]]:
    """What the official client sends."""
    sent: list[tuple[bytes, dict[str, str]]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append((request.read(), dict(request.headers)))
        return httpx.Response(200, json={})

    http = httpx.Client(transport=httpx.MockTransport(answer))
    call(openai.OpenAI(api_key="k", base_url="http://localhost/v1", http_client=http))
    return sent[0]


@pytest.mark.parametrize("size", [1, 50, 65_536])
def test_an_upload_of_the_official_client(size: int) -> None:
    expires: Any = {"anchor": "created_at", "seconds": 3600}
    body, headers = by_openai(
        lambda client: client.files.create(
            file=("Résumé \u4e2d.pdf", b"%PDF-1.7\r\n--x"), purpose="assistants", expires_after=expires
        )
    )
    sink = Sink()
    filled = read(Sent(*sliced(body, size)), sink, headers)
    assert unflatten(filled.fields) == {
        "purpose": "assistants",
        "expires_after": {"anchor": "created_at", "seconds": "3600"},
    }
    assert sink.files == [("Résumé \u4e2d.pdf", "application/pdf", b"%PDF-1.7\r\n--x")]


def test_a_part_of_an_upload_of_the_official_client() -> None:
    body, headers = by_openai(lambda client: client.uploads.parts.create("upload_1", data=b"some bytes"))
    sink = Sink()
    assert read(body, sink, headers, file="data").file == 10


def test_names_that_httpx_escapes_come_back() -> None:
    for name in (
        'a"b.txt',
        "semi;colon=.txt",
        "100%.txt",
        " \u202fspace.txt",
        "'.txt",
        "a" * 255,
        'x"; y="z',
    ):
        request = httpx.Request("POST", "http://h", files={"file": (name, b"x")})
        sink = Sink()
        read(request.read(), sink, dict(request.headers))
        assert sink.files[0][0] == name.strip()


@pytest.mark.parametrize(
    ("says", "name"),
    [
        ('filename="../../etc/passwd"', "passwd"),
        (r'filename="C:\x\y.pdf"', "y.pdf"),
        (r'filename="C:\\x\\y.pdf"', "y.pdf"),
        (r'filename="\\server\share\y.pdf"', "y.pdf"),
        ("filename=plain.txt", "plain.txt"),
        ('filename="a\x00b\x1b[31m.txt"', "ab[31m.txt"),
        ("filename=\"no.txt\"; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt", "naïve €.txt"),
        ("filename*=iso-8859-1'en'%A3.txt; filename=\"no.txt\"", "£.txt"),
        ("filename*=UTF-8''..%2f..%2fetc%2fpasswd", "passwd"),
        ("filename*0=\"long \"; filename*1=\"name.txt\"", "long name.txt"),
        ('FileName="a.txt"', "a.txt"),
    ],
)  # fmt: skip
def test_only_the_last_part_of_a_path_is_kept(says: str, name: str) -> None:
    sink = Sink()
    read(form(part(f'name="file"; {says}', b"x")), sink)
    assert sink.files[0][0] == name


def test_names_that_are_not_utf8_are_read_as_latin1() -> None:
    sink = Sink()
    read(form(part(b'name="file"; filename="caf\xe9.txt"', b"x")), sink)
    assert sink.files[0][0] == "café.txt"


@pytest.mark.parametrize("name", ["", "/", "..", "a/..", "a/", "\x00\x01", "C:\\", "  ", "./."])
def test_a_file_without_a_name_is_refused(name: str) -> None:
    assert last_name(name) == ""
    sink = Sink()
    with pytest.raises(InvalidInput, match="file: has no file name"):
        read(form(part(f'name="file"; filename="{name}"', b"x")), sink)
    assert sink.files == []


# --- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, (415, "unsupported_media_type")),
        ({"content-type": "application/json"}, (415, "unsupported_media_type")),
        ({"content-type": "multipart/mixed; boundary=x"}, (415, "unsupported_media_type")),
        ({"content-type": "multipart/form-data"}, (400, "invalid_multipart")),
        ({"content-type": "multipart/form-data; boundary="}, (400, "invalid_multipart")),
        ({"content-type": "multipart/form-data; boundary=" + "x" * 300}, (400, "invalid_multipart")),
        (FORM | {"content-encoding": "gzip"}, (415, "unsupported_encoding")),
        (FORM | {"content-length": "x"}, (400, "invalid_value")),
        (FORM | {"content-length": "99999999999"}, (413, "file_too_large")),
    ],
)
def test_headers_that_are_refused(headers: dict[str, str], expected: tuple[int, str]) -> None:
    sink = Sink()
    assert refusal(form(FILE), sink, headers=headers or {"host": "x"}) == expected
    assert sink.files == []


def test_a_quoted_boundary() -> None:
    headers = {"content-type": f'Multipart/Form-Data; charset=utf-8; boundary="{BOUNDARY}"'}
    assert read(form(FILE), headers=headers).file == 5


WHOLE = form(PURPOSE, FILE, part('name="after"', b"yes"))


def test_a_body_cut_anywhere_is_refused_and_the_file_taken_back() -> None:
    for cut in range(len(WHOLE) - len(b"--\r\n") + 1):
        sink = Sink()
        assert refusal(Sent(WHOLE[:cut]), sink) == (400, "invalid_multipart"), cut
        assert len(sink.files) == len(sink.undone), cut
    assert read(WHOLE[:-2]).file == 5


def test_a_client_that_hangs_up_anywhere_leaves_nothing() -> None:
    inside = 0
    for cut in range(1, len(WHOLE) - len(b"--\r\n") + 1):
        sink = Sink()
        with pytest.raises(ClientGone):
            read(Sent(WHOLE[:cut], then=HUNG_UP), sink)
        assert len(sink.files) == len(sink.undone), cut
        inside += len(sink.broken)
        assert all(isinstance(exc, ClientGone) for exc in sink.broken)
    assert inside > 5


def test_silence_is_408_and_the_sink_hears_so() -> None:
    sink = Sink()
    at = WHOLE.index(b"hello") + 2
    assert refusal(Sent(WHOLE[:at], then=SILENCE), sink, patience=0.05) == (408, "request_timeout")
    assert [type(exc) for exc in sink.broken] == [Refused]
    sink = Sink()
    assert refusal(Sent(WHOLE[:-10], then=SILENCE), sink, patience=0.05) == (408, "request_timeout")
    assert sink.undone == [5]


def test_a_request_that_is_cancelled_leaves_nothing() -> None:
    for cut in (WHOLE.index(b"hello") + 2, len(WHOLE) - 10):
        sink = Sink()
        sent = Sent(WHOLE[:cut], then=SILENCE)

        async def cancel(sent: Sent = sent, sink: Sink = sink) -> None:
            task = asyncio.create_task(
                read_form(sent.receive, FORM, sink.take, undo=sink.undo, most=100, patience=9)
            )
            await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

        asyncio.run(cancel())
        assert len(sink.broken) + len(sink.undone) == 1


@pytest.mark.parametrize("size", [1, 1000])
def test_a_file_of_the_limit_is_taken_and_one_byte_more_is_not(size: int) -> None:
    body = form(PURPOSE, part('name="file"; filename="a"', b"x" * 1000), PURPOSE)
    assert read(Sent(*sliced(body, size)), most=1000).file == 1000
    sink = Sink()
    assert refusal(Sent(*sliced(body, size)), sink, most=999) == (413, "file_too_large")
    assert [type(exc) for exc in sink.broken] == [Refused]
    assert sink.undone == []


def test_fields_have_limits() -> None:
    assert read(form(FILE, part('name="a"', b"x" * 65_536))).file == 5
    assert refusal(form(FILE, part('name="a"', b"x" * 65_537))) == (413, "request_too_large")
    many = [part(f'name="a{n}"', b"x" * 60_000) for n in range(20)]
    sink = Sink()
    assert refusal(form(FILE, *many), sink) == (413, "request_too_large")
    assert sink.undone == [5]
    assert refusal(form(FILE, *[part('name="a"')] * 600)) == (413, "request_too_large")


def test_a_body_that_goes_on_after_its_end_is_cut_off() -> None:
    more = [b"x" * 65_536] * 60
    assert refusal(Sent(form(FILE), *more), most=10) == (413, "request_too_large")


def test_headers_of_a_part_have_limits() -> None:
    for part_ in (part('name="a"', b"", "X: " + "x" * 20_000), part('name="a"', b"", *["X: x"] * 2_000)):
        assert refusal(form(FILE, part_)) == (400, "invalid_multipart")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (form(PURPOSE), "file: is required"),
        (form(), "file: is required"),
        (form(part('name="file"', b"no file name")), "file: is required"),
        (form(FILE, FILE), "file: is there twice"),
        (form(FILE, part('name="other"; filename="b.txt"')), "other: is a file; the file of this form is `file`"),
        (form(FILE, part('filename="b.txt"')), "a part has no name"),
        (form(FILE, part('name=""', b"x")), "a part has no name"),
        (form(FILE, b"--xYzZY\r\n\r\nno headers\r\n"), "a part has no name"),
        (form(FILE, part('name="a"', b"\xff")), "a: is not UTF-8 at byte 0"),
        (form(part('name="file"; filename="a"', b"eA==", "Content-Transfer-Encoding: base64")), "file: is encoded"),
        (b"not a form", "the body is no form"),
        (b"", "the body is no form"),
        (form(FILE, part("name=\"a\"; x*=1; x*0=2; x*=3", b"x")), "a header cannot be read"),
    ],
)  # fmt: skip
def test_forms_that_make_no_sense_are_told_apart_and_leave_nothing(body: bytes, error: str) -> None:
    sink = Sink()
    with pytest.raises(MemorandaError) as told:
        read(body, sink)
    assert error in str(told.value)
    assert len(sink.undone) == len(sink.files)


def test_a_client_that_still_sends_is_heard_out_before_it_is_refused() -> None:
    body = Sent(form(FILE, FILE), *[b"x" * 1000] * 50)
    with pytest.raises(InvalidInput):
        read(body)
    assert body.pieces == []


def test_what_the_sink_refuses_is_what_the_caller_hears() -> None:
    async def refuse(part: FilePart) -> int:
        async for _ in part.pieces:
            raise InvalidInput("file", "over quota")
        return 0

    sent = Sent(*sliced(form(part('name="file"; filename="a"', b"x" * 1_000_000)), 65_536))
    sink = Sink()
    with pytest.raises(InvalidInput, match="over quota"):
        asyncio.run(read_form(sent.receive, FORM, refuse, undo=sink.undo, most=2_000_000, patience=5))
    assert sent.pieces == []
    assert sink.undone == []


def test_what_the_sink_leaves_is_passed_over() -> None:
    async def ignore(part: FilePart) -> str:
        return part.filename

    async def undo(taken: str) -> None:
        raise AssertionError(taken)

    sent = Sent(*sliced(form(FILE, PURPOSE), 3))
    filled = asyncio.run(read_form(sent.receive, FORM, ignore, undo=undo, most=100, patience=5))
    assert filled == FilledForm([("purpose", "assistants")], "a.txt")


def test_into_a_folder_and_nothing_left_of_what_broke(tmp_path: Path) -> None:
    """The sink as the server has it: bytes go to their place as they come."""
    blobs = open_blobs("folder:", tmp_path, None)

    async def stage(part: FilePart) -> str:
        writer = blobs.writer("t", "file-1")
        try:
            async for piece in part.pieces:
                await asyncio.to_thread(writer.write, piece)
            await asyncio.to_thread(writer.commit)
        except BaseException:
            writer.abort()
            raise
        return "file-1"

    async def undo(id: str) -> None:
        blobs.delete("t", id)

    data = os.urandom(1_000_000)
    body = form(PURPOSE, part('name="file"; filename="a"', data), PURPOSE)
    for cut in (300_000, 999_000, len(body) - 20):
        sent = Sent(*sliced(body[:cut], 65_536), then=HUNG_UP)
        with pytest.raises(ClientGone):
            asyncio.run(read_form(sent.receive, FORM, stage, undo=undo, most=2_000_000, patience=5))
        assert list(blobs.stored(0)) == []
    sent = Sent(*sliced(body, 65_536))
    filled = asyncio.run(read_form(sent.receive, FORM, stage, undo=undo, most=2_000_000, patience=5))
    assert b"".join(blobs.read("t", filled.file)) == data


# --- names of fields -----------------------------------------------------------------------------------


def test_fields_unfold() -> None:
    fields = [
        ("purpose", "assistants"),
        ("expires_after[anchor]", "created_at"),
        ("expires_after[seconds]", "3600"),
        ("chunking_strategy[static][max_chunk_size_tokens]", "800"),
        ("file_ids[]", "b"),
        ("file_ids[]", "a"),
        ("a[b][c][d]", ""),
        ("a[b][e][]", "1"),
        ("json", '{"a": 1}'),
        ("a b", "c.d"),
    ]
    assert unflatten(fields) == {
        "purpose": "assistants",
        "expires_after": {"anchor": "created_at", "seconds": "3600"},
        "chunking_strategy": {"static": {"max_chunk_size_tokens": "800"}},
        "file_ids": ["b", "a"],
        "a": {"b": {"c": {"d": ""}, "e": ["1"]}},
        "json": '{"a": 1}',
        "a b": "c.d",
    }
    assert unflatten([]) == {}
    assert unflatten([("a[b][c][d][]", "1")]) == {"a": {"b": {"c": {"d": ["1"]}}}}


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["a[b][c][d][e]"], "deeper than 4"),
        (["a" + "[b]" * 5_000], "deeper than 4"),
        (["a", "a"], "is there twice"),
        (["a[b]", "a[b]"], "is there twice"),
        (["a", "a[b]"], "as a value, too"),
        (["a[b]", "a"], "is there twice"),
        (["a", "a[]"], "as a value, too"),
        (["a[]", "a"], "is there twice"),
        (["a[]", "a[b]"], "as a value, too"),
        (["a[b]", "a[]"], "as a value, too"),
        (["a[b"], "no name of a field"),
        (["a]"], "no name of a field"),
        (["[a]"], "no name of a field"),
        (["a[b]c"], "no name of a field"),
        (["a[[b]]"], "no name of a field"),
        ([""], "no name of a field"),
        (["a[][b]"], "before its end"),
        (["a[][]"], "before its end"),
    ],
)
def test_names_that_contradict_each_other_are_refused(names: list[str], error: str) -> None:
    with pytest.raises(InvalidInput, match=error) as told:
        unflatten([(name, "x") for name in names])
    assert told.value.field == names[-1]
