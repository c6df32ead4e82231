"""Detects the type of a file: by its content, and by its name only to distinguish kinds of text.

Nothing is unpacked here but the few bytes in which an OpenDocument file declares its type.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from memoranda.readers import ole
from memoranda.readers.archive import LOCKED
from memoranda.readers.base import Unreadable
from memoranda.text.decoding import HEAD, NotText, decoded, is_text

PDF = "application/pdf"
RTF = "application/rtf"
HTML = "text/html"
MAIL = "message/rfc822"
NOTEBOOK = "application/x-ipynb+json"
PLAIN = "text/plain"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
WORD_XML = "application/vnd.ms-word.xml"
DOC = "application/msword"
XLS = "application/vnd.ms-excel"
PPT = "application/vnd.ms-powerpoint"
MSG = "application/vnd.ms-outlook"
EPUB = "application/epub+zip"
ODT = "application/vnd.oasis.opendocument.text"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODP = "application/vnd.oasis.opendocument.presentation"
READ = "texts, Markdown, CSV, JSON, source code, HTML, mail, PDF, Word, Excel, PowerPoint, OpenDocument, RTF and EPUB"
CUT_SHORT = "is damaged: its directory of parts cannot be read, it may be cut short"

SUFFIXES = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"), "text/markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht", ".shtml"), HTML),
    **dict.fromkeys((".eml", ".mht", ".mhtml", ".mbox"), MAIL),
    **dict.fromkeys((".json", ".geojson", ".webmanifest"), "application/json"),
    **dict.fromkeys((".jsonl", ".ndjson"), "application/jsonl"),
    **dict.fromkeys((".xml", ".xsd", ".xsl", ".xslt", ".rss", ".atom", ".wsdl", ".plist"), "application/xml"),
    **dict.fromkeys((".yaml", ".yml"), "application/yaml"),
    **dict.fromkeys((".c", ".h"), "text/x-c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "text/x-c++"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "text/javascript"),
    **dict.fromkeys((".ts", ".tsx"), "application/typescript"),
    **dict.fromkeys((".sh", ".bash", ".zsh"), "application/x-sh"),
    **dict.fromkeys((".tex", ".sty", ".cls"), "text/x-tex"),
    ".ipynb": NOTEBOOK,
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".toml": "application/toml",
    ".css": "text/css",
    ".cs": "text/x-csharp",
    ".go": "text/x-golang",
    ".java": "text/x-java",
    ".php": "text/x-php",
    ".py": "text/x-python",
    ".rb": "text/x-ruby",
    ".rs": "text/x-rust",
    ".rst": "text/x-rst",
    ".sql": "application/sql",
    ".srt": "application/x-subrip",
    ".vtt": "text/vtt",
}
"""Kinds of text by file extension; any other is `text/plain`."""

_OFFICE = {
    **dict.fromkeys((".docx", ".docm", ".dotx", ".dotm"), DOCX),
    **dict.fromkeys((".pptx", ".pptm", ".ppsx", ".ppsm", ".potx"), PPTX),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xltx"), XLSX),
    ".epub": EPUB,
    ".odt": ODT,
    ".ods": ODS,
    ".odp": ODP,
}
_OLD_OFFICE = {".doc": DOC, ".dot": DOC, ".xls": XLS, ".xlt": XLS, ".ppt": PPT, ".pps": PPT, ".msg": MSG}
_FOLDERS = {"word": DOCX, "ppt": PPTX, "xl": XLSX}
_MAIN_PARTS = {b"wordprocessingml": DOCX, b"presentationml": PPTX, b"spreadsheetml": XLSX}
_STREAMS = {
    "WordDocument": DOC,
    "Workbook": XLS,
    "Book": XLS,
    "PowerPoint Document": PPT,
    "__properties_version1.0": MSG,
}
_BINARY = (
    (0, b"\x89PNG", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF8", "a GIF image"),
    (8, b"WEBP", "a WebP image"),
    (0, b"BM", "a BMP image"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
    (0, b"\0\0\1\0", "an icon"),
    (0, b"8BPS", "a Photoshop image"),
    (4, b"ftypheic", "a HEIC image"),
    (4, b"ftypavif", "an AVIF image"),
    (4, b"ftypM4A", "an audio file"),
    (4, b"ftyp", "a video"),
    (0, b"\x1a\x45\xdf\xa3", "a video"),
    (8, b"AVI ", "a video"),
    (0, b"ID3", "an audio file"),
    (0, b"\xff\xfb", "an audio file"),
    (0, b"OggS", "an audio file"),
    (0, b"fLaC", "an audio file"),
    (8, b"WAVE", "an audio file"),
    (0, b"\x7fELF", "a program"),
    (0, b"MZ", "a program"),
    (0, b"\xcf\xfa\xed\xfe", "a program"),
    (0, b"\xca\xfe\xba\xbe", "a program"),
    (0, b"\0asm", "a program"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"BZh", "a bzip2 archive"),
    (0, b"\xfd7zXZ", "an xz archive"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (0, b"7z\xbc\xaf", "a 7z archive"),
    (0, b"Rar!", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"SQLite format 3", "an SQLite database"),
    (0, b"PAR1", "a Parquet file"),
    (60, b"BOOKMOBI", "a Kindle book"),
    (0, b"wOF", "a font"),
    (0, b"OTTO", "a font"),
    (0, b"\0\1\0\0", "a font"),
)
"""Signatures: offset, bytes and type."""
_MAIL_FIELDS = re.compile(
    rb"^(from|to|subject|date|received|message-id|mime-version|return-path|delivered-to):",
    re.IGNORECASE | re.MULTILINE,
)
_FIELDS_ONLY = re.compile(rb"(?:From [^\n]*\n)?(?:[!-9;-~]+[ \t]*:[^\n]*\n(?:[ \t]+[^\n]*\n)*)+\s*")
_BEFORE_HTML = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*", re.DOTALL)
_SURELY_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)
_LIKELY_HTML = re.compile(
    r"<(?:meta|title|link|table|div|p|h[1-6]|a|br|img|ul|ol|font|center|article|section)[\s/>]",
    re.IGNORECASE,
)
"""Tags at the beginning of a page. Scripts and styles are none: components of source code begin with them, too."""
_WORD_XML = re.compile(r"<\?mso-application\s+progid=\"Word\.Document\"|<(?:w:wordDocument|pkg:package)[\s>]")
_SVG = re.compile(r"<(?:!DOCTYPE\s+)?svg[\s>]")


def media_type(path: Path, filename: str) -> str:
    """Return the media type of the file at `path`, which its owner calls `filename`.

    Raises:
        Unreadable: it is empty, locked with a password, damaged so that its type is unknown, or has no
            text.
    """
    with path.open("rb") as file:
        head = file.read(HEAD)
    if not head:
        raise Unreadable("invalid_file", "is empty")
    suffix = PurePosixPath(filename.replace("\\", "/")).suffix.lower()
    if head.startswith(b"PK") and head[2:4] in (b"\3\4", b"\5\6", b"\7\x08"):
        return _zipped(path, head, suffix)
    if head.startswith(ole.MAGIC):
        return _compound(path, suffix)
    if _is_pdf(path, head, suffix):
        return PDF
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{\\rtf"):
        return RTF
    if not is_text(head):
        raise unsupported(_looks_like(head))
    return _text(head, suffix)


def unsupported(what: str) -> Unreadable:
    """Return the error for a file without text; `what` names its type."""
    return Unreadable("unsupported_file", f"is {what}; what can be read are {READ}")


def _is_pdf(path: Path, head: bytes, suffix: str) -> bool:
    """Return True for a PDF. PDF programs skip bytes before the header; a text may mention the header."""
    at = head[:1_024].find(b"%PDF-")
    if at < 0:
        return False
    if not head[:at].strip(b"\xef\xbb\xbf \t\r\n\0") or suffix == ".pdf":
        return True
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2_048))
        return b"%%EOF" in file.read()


def _zipped(path: Path, head: bytes, suffix: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if declared := _declared_type(archive, names):
                return declared
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        known = _OFFICE.get(suffix) or _begins(head)
        if known:
            return known  # its reader reports what is wrong with it
        raise Unreadable("invalid_file", CUT_SHORT) from None
    tops = {name.replace("\\", "/").lstrip("/").split("/", 1)[0].lower() for name in names}
    if "[content_types].xml" in tops or "_rels" in tops:
        for folder, detected in _FOLDERS.items():
            if folder in tops:
                return detected
    if "mimetype" not in tops and suffix in _OFFICE:
        return _OFFICE[suffix]
    raise unsupported("a zip archive")


def _declared_type(archive: zipfile.ZipFile, names: list[str]) -> str | None:
    """Return the type that an OpenDocument file, a book, or the list of parts of an office file declares; None
    without."""
    if "mimetype" in names:
        mimetype = _beginning(archive, "mimetype", 100).decode("ascii", "replace").strip()
        for known in (EPUB, ODT, ODS, ODP):
            if mimetype.startswith(known):
                return known
        if mimetype.startswith("application/vnd.oasis.opendocument."):
            raise unsupported(f"an OpenDocument {mimetype.rpartition('.')[2]}")
    if "META-INF/container.xml" in names and any(name.endswith(".opf") for name in names):
        return EPUB
    if "[Content_Types].xml" in names:
        types = _beginning(archive, "[Content_Types].xml", 1 << 20)
        kinds = {kind for word, kind in _MAIN_PARTS.items() if word in types and b".main+xml" in types}
        if len(kinds) == 1:
            return kinds.pop()
    return None


def _beginning(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """Return the first bytes of a member; empty if it cannot be unpacked."""
    try:
        with archive.open(name) as member:
            return member.read(size)
    except (RuntimeError, OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return b""


def _begins(head: bytes) -> str | None:
    """Return the type of a zip file without a directory, by the names at its beginning; None if unknown."""
    if b"mimetypeapplication/epub+zip" in head:
        return EPUB
    for word, detected in ((b"opendocument.text", ODT), (b"opendocument.spreadsheet", ODS), (b"word/", DOCX)):
        if word in head:
            return detected
    return PPTX if b"ppt/" in head else XLSX if b"xl/" in head else None


def _compound(path: Path, suffix: str) -> str:
    streams = ole.names(path.read_bytes())
    if "EncryptedPackage" in streams:
        raise Unreadable("invalid_file", LOCKED)
    for stream, detected in _STREAMS.items():
        if stream in streams:
            return detected
    if suffix in _OLD_OFFICE:
        return _OLD_OFFICE[suffix]
    if not streams:
        raise Unreadable("invalid_file", "is damaged: the directory of its streams cannot be read")
    raise unsupported("an OLE file of another program")


def _text(head: bytes, suffix: str) -> str:
    """Return the kind of text that begins like this."""
    begins = _decoded(head)
    text = begins[_end(_BEFORE_HTML, begins) :]
    if _WORD_XML.search(begins[:2_000]):
        return WORD_XML
    if _SVG.match(text) and suffix not in SUFFIXES:
        raise unsupported("an SVG image")
    by_name = SUFFIXES.get(suffix)
    if _SURELY_HTML.match(text) or (by_name is None and suffix != ".txt" and _LIKELY_HTML.match(text)):
        return HTML
    if by_name in (None, PLAIN) and _is_mail(begins):
        return MAIL
    return by_name or PLAIN


def _is_mail(begins: str) -> bool:
    """Return True if the text begins with the header of a mail: nothing but fields, among them three that mails
    have."""
    raw = begins.replace("\r\n", "\n").encode("utf-8", "replace")
    header, gap, _ = raw.partition(b"\n\n")
    header = header.lstrip(b"\n")
    names = {name.lower() for name in _MAIL_FIELDS.findall(header)}
    fields = header + b"\n" if gap else header[: header.rfind(b"\n") + 1]
    sent = names & {b"message-id", b"received", b"mime-version", b"return-path", b"delivered-to"}
    return len(names) >= 3 and bool(sent) and b"from" in names and _FIELDS_ONLY.fullmatch(fields) is not None


def _decoded(head: bytes) -> str:
    """Return the beginning of a text; a character that is cut at its end is left out."""
    for data in (head, head[:-1], head[:-2], head[:-3]):
        try:
            text = decoded(data)
        except NotText:
            continue
        if not text.guessed and not text.replaced:
            return text.text
    return head.decode("latin-1")


def _end(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


def _looks_like(head: bytes) -> str:
    for at, magic, what in _BINARY:
        if head[at : at + len(magic)] == magic:
            return what
    return "binary, of a kind that is not known"
