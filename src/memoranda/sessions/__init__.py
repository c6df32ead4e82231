"""What is said: the log, the sessions it is cut into, their summaries, and the weeks of a channel."""

from memoranda.sessions.beginning import SessionServices, begin
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.values import EXTRACT_JOB, NewMessage, Observed, extraction_mode

__all__ = ["EXTRACT_JOB", "NewMessage", "Observed", "SessionServices", "Sessions", "begin", "extraction_mode"]
