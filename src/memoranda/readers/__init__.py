"""Documents in, text out: `Readers` reads files in processes of their own; `formats` knows which reader reads what."""

from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.pool import Readers
from memoranda.readers.worker import Parsed

__all__ = ["Document", "Limits", "Parsed", "Readers", "Unreadable"]
