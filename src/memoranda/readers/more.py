"""Formats that only the extra `formats` reads: .doc, .ppt, .msg, and others that kreuzberg detects by content.

It runs without OCR, without its cache on disk and with one thread.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from memoranda.readers import ole
from memoranda.readers.archive import LOCKED
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import Body
from memoranda.readers.native import panics_are_damage
from memoranda.readers.pptx import UNTITLED

DOC = "application/msword"
PPT = "application/vnd.ms-powerpoint"
MSG = "application/vnd.ms-outlook"
UNKNOWN = "is of a format that cannot be read here"
MISSING = "is of a format that needs an extra: pip install 'memoranda[formats]'"

_STREAMS = {
    "EncryptedPackage": "",
    "PowerPoint Document": PPT,
    "WordDocument": DOC,
    "__properties_version1.0": MSG,
}
"""Streams of an OLE file that identify its type; an empty type is an office document with a password."""
_NO_PROSE = {"application/xml", "text/xml", "application/octet-stream"}
_FIELD = re.compile(
    r"\b(?:TOC|HYPERLINK|PAGEREF|SEQ|REF|EMBED|INCLUDEPICTURE|DOCPROPERTY|STYLEREF|MERGEFIELD)"
    r"(?:[ \t]+(?:\\[a-z@*#]|\"[^\"\n]*\"|_[A-Z]\w+|MERGEFORMAT\b))+[ \t]*"
)
"""The instruction of a Word field, which precedes its result."""
_PROMPTS = re.compile(
    r"^Click to edit Master (?:text|title|subtitle) styles?\s+(?:(?:Second|Third|Fourth|Fifth) level\s+)*",
    re.MULTILINE,
)
"""The placeholder text of a presentation's master."""


def read(path: Path, limits: Limits) -> Document:
    """Return the text that kreuzberg extracts; a message's subject or a file's property is the title. No headings, no
    pages."""
    try:
        kreuzberg: Any = importlib.import_module("kreuzberg")
    except ImportError as exc:
        raise Unreadable("unsupported_file", MISSING) from exc
    data = path.read_bytes()
    media_type = _media_type(kreuzberg, data)
    try:
        with panics_are_damage():
            result = kreuzberg.extract_bytes_sync(data, media_type, config=_config(kreuzberg, limits))
    except (kreuzberg.KreuzbergError, OSError) as exc:
        raise Unreadable("invalid_file", f"is damaged, or locked with a password ({exc})") from exc
    body = Body(limits)
    body.add(_cleaned(str(result.content), media_type))
    title = result.metadata.get("title") or (result.metadata.get("subject") if media_type == MSG else None)
    return body.document(media_type, title if isinstance(title, str) and title != UNTITLED else None)


def _config(kreuzberg: Any, limits: Limits) -> Any:
    return kreuzberg.ExtractionConfig(
        use_cache=False,
        enable_quality_processing=False,
        disable_ocr=True,
        concurrency=kreuzberg.ConcurrencyConfig(max_threads=1),
        max_concurrent_extractions=1,
        extraction_timeout_secs=max(1, int(limits.seconds)),
    )


def _media_type(kreuzberg: Any, data: bytes) -> str:
    streams = ole.names(data)
    for stream, media_type in _STREAMS.items():
        if stream in streams:
            if not media_type:
                raise Unreadable("invalid_file", LOCKED)
            return media_type
    try:
        detected = str(kreuzberg.detect_mime_type_from_bytes(data))
    except (kreuzberg.KreuzbergError, RuntimeError) as exc:
        raise Unreadable("unsupported_file", UNKNOWN) from exc
    if detected in _NO_PROSE:
        raise Unreadable("unsupported_file", UNKNOWN)
    return detected


def _cleaned(text: str, media_type: str) -> str:
    """Return the text without instructions of its program."""
    if media_type == DOC:
        return _FIELD.sub("", text)
    if media_type == PPT:
        return _PROMPTS.sub("", text)
    return text
