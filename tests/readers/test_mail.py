"""Mails: who wrote to whom, the words, and what is attached, read by the readers of its own format."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.readers import mail
from memoranda.readers.base import Document, Limits, Unreadable

DOCS = Path(__file__).parents[3] / "shared" / "data" / "docs"


Read = Callable[..., Document]


def message(words: str = "words", subject: str = "Subject") -> EmailMessage:
    made = EmailMessage()
    made["From"] = "Änne <a@example.com>"
    made["To"] = "b@example.com"
    made["Subject"] = subject
    made["Date"] = "Fri, 20 Nov 2026 10:00:00 +0000"
    made.set_content(words)
    return made


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def reading(made: EmailMessage | bytes, limits: Limits | None = None) -> Document:
        path = tmp_path / "mail.eml"
        path.write_bytes(made if isinstance(made, bytes) else made.as_bytes())
        return mail.read(path, limits or Limits())

    return reading


HEADER = "From: Änne <a@example.com>\nTo: b@example.com\nDate: Fri, 20 Nov 2026 10:00:00 +0000"


def test_header_and_words(read: Read) -> None:
    found = read(message("one\n\ntwo ü", "Größe\u2009und Maß, " * 10))
    assert found.text == f"{HEADER}\n\none\n\ntwo ü"
    assert found.title == " ".join(("Größe und Maß, " * 10).split())
    assert (found.media_type, found.headings, found.notes) == ("message/rfc822", [], [])


def test_plain_words_go_before_the_same_in_html(read: Read) -> None:
    both = message("plain words")
    both.add_alternative("<p>rich <b>words</b></p>", subtype="html")
    assert read(both).text == f"{HEADER}\n\nplain words"
    empty = message(" ")
    empty.add_alternative("<h1>Rich</h1><p>words<script>x</script></p>", subtype="html")
    found = read(empty)
    assert found.text == f"{HEADER}\n\nRich\n\nwords"
    assert [(one.level, one.text) for one in found.headings] == [(2, "Rich")]
    assert found.text.startswith("Rich", found.headings[0].start)


@pytest.mark.parametrize(
    ("plain", "counts"),
    [("Please view this in a browser.", False), ("Your lamps were sent on Monday, all of them.", True)],
)
def test_a_plain_part_with_few_of_the_words_is_a_stub(read: Read, plain: str, counts: bool) -> None:
    rich = "Your order 4711 of two lamps was sent on Monday and arrives on Friday, before noon, if all goes well."
    both = message(plain)
    both.add_alternative(f"<p>{rich}</p>", subtype="html")
    both.get_payload()[1].add_related(b"GIF89a\1\0\1\0", "image", "gif", filename="dot.gif")
    assert (
        read(both).text.removeprefix(f"{HEADER}\n\n")
        == f"{plain if counts else rich}\n\nAttachment: dot.gif (is a GIF image)"
    )


def test_what_is_attached_stands_under_its_name(read: Read) -> None:
    made = message()
    made.add_attachment(
        "# Große Frage\n\nand more".encode(), maintype="text", subtype="markdown", filename="fräge.md"
    )
    made.add_attachment(b"\x89PNG\r\n\x1a\n\0\0", maintype="image", subtype="png", filename="bild.png")
    made.add_attachment(b"", maintype="text", subtype="plain", filename="none.txt")
    made.add_attachment(b"<p>no name</p>", maintype="text", subtype="html")
    found = read(made)
    assert found.text == (
        f"{HEADER}\n\nwords\n\nfräge.md\n\n# Große Frage\n\nand more\n\nAttachment: bild.png (is a PNG image)\n"
        "Attachment: none.txt (is empty)\n\nAttachment\n\nno name"
    )
    assert [(one.level, one.text) for one in found.headings] == [
        (1, "fräge.md"), (2, "Große Frage"), (1, "Attachment"),
    ]  # fmt: skip
    assert all(found.text.startswith(one.text, one.start) for one in found.headings)


def test_an_attached_document_is_read_by_its_reader(read: Read) -> None:
    buffer = io.BytesIO()
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "word/document.xml",
            f"<w:document xmlns:w='{word}'><w:body><w:p><w:r><w:t>From Word</w:t></w:r></w:p></w:body></w:document>",
        )
    made = message()
    made.add_attachment(buffer.getvalue(), maintype="application", subtype="octet-stream", filename="a.bin")
    made.add_attachment(
        buffer.getvalue()[:200], maintype="application", subtype="octet-stream", filename="cut.docx"
    )
    before = set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else set()
    text = read(made).text
    assert "a.bin\n\nFrom Word" in text
    assert (
        "Attachment: cut.docx (is damaged: its directory of parts cannot be read, it may be cut short)"
        in text
    )
    if before:
        assert len(os.listdir("/proc/self/fd")) <= len(before)


def test_mails_inside_of_mails(read: Read) -> None:
    inner = message("the innermost", "Number 5")
    for number in (4, 3, 2, 1):
        outer = message(f"words {number}", f"Number {number}")
        outer.add_attachment(inner)
        inner = outer
    found = read(inner)
    assert found.title == "Number 1"
    assert [one.text for one in found.headings] == ["Number 2", "Number 3"]
    assert "words 3" in found.text
    assert "words 4" not in found.text
    assert found.text.endswith("Attachment: Number 4 (is more than 3 mails deep)")


def test_a_mail_attached_as_a_file(read: Read) -> None:
    made = message()
    made.add_attachment(
        message("inside").as_bytes(), maintype="application", subtype="octet-stream", filename="a.eml"
    )
    assert read(made).text.endswith(f"Subject\n\n{HEADER}\n\ninside")


ENVELOPE = b"From a@example.com Fri Nov 20 10:00:00 2026"


def test_each_mail_of_a_mailbox_stands_under_its_subject(read: Read) -> None:
    second = message("words two\n\nFrom here on\nNote: no mail\n", "")
    second.add_attachment(b"# Deep", maintype="text", subtype="markdown", filename="a.md")
    mails = [
        message("words one", "One").as_bytes(),
        second.as_bytes(),
        message("words three", "Three").as_bytes(),
    ]
    found = read(b"".join(b"%b\n%b\n" % (ENVELOPE, mail) for mail in mails))
    assert found.text == (
        f"One\n\n{HEADER}\n\nwords one\n\n(no subject)\n\n{HEADER}\n\nwords two\n\nFrom here on\nNote: no mail\n\n"
        f"a.md\n\n# Deep\n\nThree\n\n{HEADER}\n\nwords three"
    )
    assert [(one.level, one.text) for one in found.headings] == [
        (1, "One"), (1, "(no subject)"), (2, "a.md"), (3, "Deep"), (1, "Three"),
    ]  # fmt: skip
    assert found.title is None


def test_only_a_file_that_begins_with_an_envelope_is_a_mailbox(read: Read) -> None:
    quoted = f"words\n\n{ENVELOPE.decode()}\nSubject: quoted\n\nend"
    assert read(message(quoted)).text == f"{HEADER}\n\n{quoted}"
    alone = read(ENVELOPE + b"\r\n" + message("alone", "One").as_bytes())
    assert (alone.title, alone.text, alone.headings) == ("One", f"{HEADER}\n\nalone", [])


def test_a_mailbox_that_is_attached(read: Read) -> None:
    made = message()
    mails = b"".join(b"%b\n%b\n" % (ENVELOPE, message(word, word).as_bytes()) for word in ("one", "two"))
    made.add_attachment(mails, maintype="application", subtype="mbox", filename="a.mbox")
    assert [heading.text for heading in read(made).headings] == ["one", "two"]


def test_a_page_kept_with_what_makes_it_look(read: Read) -> None:
    made = EmailMessage()
    made["Subject"] = "Saved page"
    made.set_content("<p>page</p>", subtype="html")
    made.add_related(b"p { color: red }", maintype="text", subtype="css")
    made.add_related(b"GIF89a\1\0\1\0", maintype="image", subtype="gif", filename="dot.gif")
    assert read(made).text == "page\n\nAttachment: dot.gif (is a GIF image)"


@pytest.mark.parametrize(
    ("raw", "title", "words"),
    [
        (b"Subject: =?utf-8?q?a=C3=A4?= =?utf-8?b?w7Y=?= c\n\nx", "aäö c", "x"),
        (b"Subject: =?no-such?q?a=E4?= =?utf-8?b?%%%?=\n\nx", "aä=?utf-8?b?%%%?=", "x"),
        ("Subject: größer\n\nx".encode(), "größer", "x"),
        ("Subject: größer\n\nx".encode("latin-1"), "größer", "x"),
        (b"Subject: folded\n over\n\tlines\n\nx", "folded over lines", "x"),
        (b"Content-Type: text/plain; charset=no-such\n\nsch\xf6n", None, "schön"),
        (b"Content-Type: text/plain; charset=koi8-r\n\n\xf0\xd2\xc9\xd7\xc5\xd4", None, "Привет"),
        (b"Content-Type: multipart/mixed\n\nno boundary", None, "no boundary"),
        (b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\nnever ended", None, "never ended"),
        (b"Content-Transfer-Encoding: base64\n\naGVsbG8gdGhlcmU", None, "hello there"),
        (b"Content-Type: ;;;\nContent-Disposition: \xff\xfe\n\nx", None, "x"),
        ("Content-Type: text/plain; charset=undefined\n\nHello wörld".encode(), None, "Hello wörld"),
        (b"Content-Type: text/plain; charset=undefined\n\nHello w\xf6rld", None, "Hello wörld"),
        (b"Content-Type: text/plain; charset=idna\n\nHello w\xf6rld", None, "Hello wörld"),
        (b"Content-Type: text/plain; charset*=utf-8''x; charset*0=utf-8\n\nwords", None, "words"),
        (b"Content-Disposition: inline; filename*=utf-8''a.txt; filename*0=a.txt\n\nwords", None, "words"),
        (b"no header at all\n", None, "no header at all"),
        ("Subject: wide\n\nwords in UTF-16".encode("utf-16"), "wide", "words in UTF-16"),
    ],
)  # fmt: skip
def test_odd_mails(read: Read, raw: bytes, title: str | None, words: str) -> None:
    found = read(raw)
    assert (found.title, found.text) == (title, words)


def test_parts_are_counted(read: Read) -> None:
    many = b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\nwords\n" * 50 + b"--x--\n"
    assert read(many).text.count("words") == 50
    with pytest.raises(Unreadable, match="has more than 20 parts"):
        read(many, Limits(parts=20))


@pytest.mark.parametrize("depth", [60, 2_000])
def test_parts_inside_each_other(read: Read, depth: int) -> None:
    raw = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (at, at) for at in range(depth)
    )
    with pytest.raises(Unreadable, match="too many parts inside each other"):
        read(raw + b"\nwords")


def test_nothing_to_read(read: Read) -> None:
    with pytest.raises(Unreadable, match="holds no text"):
        read(b"Subject: only\n\n")


LINES = st.sampled_from(
    [b"Subject: =?utf-8?q?a?=", b"Content-Type: multipart/mixed; boundary=x", b"--x", b"--x--", b"", b"", b"words",
     b"Content-Type: text/html; charset=\"utf-8", b"<p>rich", b"Content-Transfer-Encoding: base64", b"aGVsbG8=", b"%%%",
     b"Content-Type: message/rfc822", b"Content-Disposition: attachment; filename*=utf-8''a%C3", b"\xff\xfe\xe4", b"\0",
     b"Content-Type: multipart/alternative; boundary=x", b"From: \xe4 <a@b>", b"Content-Transfer-Encoding: x-uuencode"]
)  # fmt: skip


@given(lines=st.lists(LINES, max_size=25))
def test_any_mail_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.eml"
    path.write_bytes(b"\n".join(lines))
    try:
        found = mail.read(path, Limits())
    except Unreadable as refused:
        found = Document(text=str(refused), media_type=refused.code)
    assert found.text.strip()
    assert found.text.encode()
    assert all(one.text == found.text[one.start : one.start + len(one.text)] for one in found.headings)


@pytest.mark.skipif(not DOCS.is_dir(), reason="the folder shared/data/docs is not beside the checkout")
def test_real_mails() -> None:
    found = {path.name: mail.read(path, Limits()) for path in sorted((DOCS / "eml").iterdir())}
    assert len(found) == 10
    assert all(one.title for one in found.values())
    assert "Attachment: testPNG.png (is a PNG image)" in found["tika__testEmailWithPNGAtt.eml"].text
    assert found["unstructured__fake-email-attachment.eml"].headings[0].text == "fake-attachment.txt"
    assert "Roses are red" in found["unstructured__fake-email-utf-16.eml"].text
    assert "third message in the digest" in found["unstructured__mime-multipart-digest.eml"].text
