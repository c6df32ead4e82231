"""Questions to uploaded documents, with memory: questions, answers, and memories of them."""

from memoranda.document_qa.asking import UploadAsk
from memoranda.document_qa.documents import Documents
from memoranda.document_qa.values import AskRequest, Document, DocumentAnswer, LogEntry

__all__ = ["AskRequest", "Document", "DocumentAnswer", "Documents", "LogEntry", "UploadAsk"]
