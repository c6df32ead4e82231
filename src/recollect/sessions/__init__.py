"""What is said: the log, the sessions it is cut into, their summaries, and the weeks of a channel."""

from recollect.sessions.beginning import Rooms, begin
from recollect.sessions.sessions import Sessions
from recollect.sessions.values import EXTRACT_JOB, NewMessage, Observed, extraction_mode

__all__ = ["EXTRACT_JOB", "NewMessage", "Observed", "Rooms", "Sessions", "begin", "extraction_mode"]
