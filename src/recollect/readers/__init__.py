"""Documents in, text out: `Readers` reads files in processes of their own; `formats` knows which reader reads what."""

from recollect.readers.base import Document, Limits, Unreadable
from recollect.readers.pool import Readers
from recollect.readers.worker import Parsed

__all__ = ["Document", "Limits", "Parsed", "Readers", "Unreadable"]
