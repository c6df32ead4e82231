"""Asking uploaded documents, with memory: questions, answers, and what is remembered of them."""

from recollect.uploadask.asking import UploadAsk
from recollect.uploadask.beginning import begin
from recollect.uploadask.documents import Documents
from recollect.uploadask.values import Asked, AskRequest, Document, LogEntry

__all__ = ["AskRequest", "Asked", "Document", "Documents", "LogEntry", "UploadAsk", "begin"]
