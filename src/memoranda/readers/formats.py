"""All formats by media type, and the function that reads a file of any of them.

A format is a line in `READERS`. Its module is loaded with the first file of its kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from memoranda.extras import needed
from memoranda.readers import detect, plain
from memoranda.readers.base import Document, Limits, Reader, Unreadable

READERS: dict[str, str] = {
    detect.PDF: "memoranda.readers.pdf:read",
    detect.DOCX: "memoranda.readers.docx:read",
    detect.WORD_XML: "memoranda.readers.docx:read",
    detect.PPTX: "memoranda.readers.pptx:read",
    detect.XLSX: "memoranda.readers.sheets:read",
    detect.XLS: "memoranda.readers.sheets:read",
    detect.ODS: "memoranda.readers.sheets:read",
    detect.ODT: "memoranda.readers.odt:read",
    detect.ODP: "memoranda.readers.odt:read",
    detect.RTF: "memoranda.readers.rtf:read",
    detect.EPUB: "memoranda.readers.epub:read",
    detect.DOC: "memoranda.readers.more:read",
    detect.PPT: "memoranda.readers.more:read",
    detect.MSG: "memoranda.readers.more:read",
    detect.HTML: "memoranda.readers.html:read",
    detect.NOTEBOOK: "memoranda.readers.notebook:read",
    detect.MAIL: "memoranda.readers.mail:read",
    "text/csv": "memoranda.readers.delimited:read",
    "text/tab-separated-values": "memoranda.readers.delimited:read",
    plain.MARKDOWN: "memoranda.readers.plain:markdown",
    "application/json": "memoranda.readers.plain:json",
    "application/jsonl": "memoranda.readers.plain:json",
    plain.PLAIN: "memoranda.readers.plain:read",
}
"""Media type to "module:function". Any other kind of text is read as `text/plain`."""


def read(path: Path, filename: str, limits: Limits, extra: Mapping[str, str] = {}) -> Document:
    """Return the text of the file at `path`, which its owner calls `filename`.

    `extra` names readers as `READERS` does, in addition or as replacements: by media type, or by file extension with
    its dot, which takes precedence over the content.

    Raises:
        Unreadable: it has no readable text; the message says why.
    """
    suffix = PurePosixPath(filename.replace("\\", "/")).suffix.lower()
    by_suffix = extra.get(suffix) if suffix else None
    if by_suffix and path.stat().st_size == 0:
        raise Unreadable("invalid_file", "is empty")
    kind = "" if by_suffix else detect.media_type(path, filename)
    named = by_suffix or extra.get(kind) or READERS.get(kind) or READERS[plain.PLAIN]
    document = reader(named)(path, limits)
    if kind and document.media_type == plain.PLAIN:
        document.media_type = kind
    if not document.text.strip():
        raise Unreadable("invalid_file", "holds no text")
    if len(document.text) > limits.characters:
        raise plain.too_long(limits)
    return document


def reader(named: str) -> Reader:
    """Return the function that "module:function" names.

    Raises:
        Unreadable: there is none.
        ModuleNotFoundError: a package of the extra `documents` is missing.
    """
    module, _, function = named.partition(":")
    try:
        loaded: Reader = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as exc:
        if needed(exc) is not None:
            raise
        raise Unreadable("server_error", f"its reader {named} cannot be loaded: {exc}") from exc
    except (ImportError, AttributeError) as exc:
        raise Unreadable("server_error", f"its reader {named} cannot be loaded: {exc}") from exc
    return loaded
