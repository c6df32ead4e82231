"""PDFs made byte by byte."""

from __future__ import annotations

import zlib
from collections.abc import Sequence


def page(lines: Sequence[str]) -> bytes:
    """A content stream with a line of text for each of `lines`."""
    shown = "\n".join(f"({line}) Tj 0 -14 Td" for line in lines)
    return f"BT /F 11 Tf 50 790 Td\n{shown}\nET".encode("latin-1")


def written(objects: dict[int, bytes], trailer: bytes = b"") -> bytes:
    """The objects as a PDF file with its table of offsets."""
    out, places = bytearray(b"%PDF-1.5\n"), {}
    for number, thing in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, thing)
    start, size = len(out), max(objects) + 1
    out += b"xref\n0 %d\n" % size + b"0000000000 65535 f \n"
    for number in range(1, size):
        out += b"%010d 00000 n \n" % places[number]
    return bytes(out + b"trailer<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, start))


def pdf_of(
    pages: Sequence[bytes],
    bookmarks: Sequence[tuple[str, int]] = (),
    title: str = "",
    extra: bytes = b"",
    trailer: bytes = b"",
    fields: Sequence[bytes] = (),
) -> bytes:
    """A PDF of content streams; `bookmarks` are (title, page index); `extra` goes into the first page, where
    the widgets `fields` of a form are, too."""
    objects = {1: b"", 2: b"", 3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"}
    pixels = zlib.compress(bytes(100))
    objects[4] = (
        b"<</Type/XObject/Subtype/Image/Width 10/Height 10/ColorSpace/DeviceGray/BitsPerComponent 8"
        b"/Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(pixels), pixels)
    )
    objects[5] = f"<</Title({title})>>".encode("latin-1")
    kids = []
    widgets = b" ".join(b"%d 0 R" % number for number in range(6, 6 + len(fields)))
    for number, field in enumerate(fields, 6):
        objects[number] = b"<</Type/Annot/Subtype/Widget/Rect[0 0 9 9]%b>>" % field
    if fields:
        extra += b"/Annots[%b]" % widgets
    for index, content in enumerate(pages):
        at = max(objects) + 1
        objects[at] = b"<</Length %d>>stream\n%b\nendstream" % (len(content), content)
        objects[at + 1] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R"
            b"/Resources<</Font<</F 3 0 R>>/XObject<</I 4 0 R>>>>%b>>" % (at, b"" if index else extra)
        )
        kids.append(at + 1)
    objects[2] = b"<</Type/Pages/Count %d/Kids[%b]>>" % (
        len(kids),
        b" ".join(b"%d 0 R" % kid for kid in kids),
    )
    root = max(objects) + 1
    for place, (words, index) in enumerate(bookmarks):
        following = b"/Next %d 0 R" % (root + place + 2) if place + 1 < len(bookmarks) else b""
        objects[root + place + 1] = b"<</Title(%b)/Parent %d 0 R/Dest[%d 0 R/Fit]%b>>" % (
            words.encode("latin-1"),
            root,
            kids[index],
            following,
        )
    objects[root] = b"<</Type/Outlines>>"
    if bookmarks:
        objects[root] = b"<</Type/Outlines/Count %d/First %d 0 R/Last %d 0 R>>" % (
            len(bookmarks),
            root + 1,
            root + len(bookmarks),
        )
    objects[1] = b"<</Type/Catalog/Pages 2 0 R/Outlines %d 0 R/AcroForm<</Fields[%b]>>>>" % (root, widgets)
    return written(dict(sorted(objects.items())), b"/Info 5 0 R" + trailer)
