"""Messages: the log, its sessions, their summaries, and weekly rollups of channels."""

from memoranda.sessions.sessions import Sessions
from memoranda.sessions.values import EXTRACT_JOB, NewMessage, Observed, extraction_mode

__all__ = ["EXTRACT_JOB", "NewMessage", "Observed", "Sessions", "extraction_mode"]
