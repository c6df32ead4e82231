"""Documents in, text out: `Readers` reads files in processes of their own; `formats` knows which reader reads what."""

from recollect.readers.base import Document, Limits, Unreadable
from recollect.readers.pool import Parsed, Readers

__all__ = ["Document", "Limits", "Parsed", "Readers", "Unreadable"]
