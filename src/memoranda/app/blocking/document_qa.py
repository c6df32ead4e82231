"""Asking uploaded documents for callers without an event loop."""

from __future__ import annotations

from memoranda.concurrency.portal import Portal, blocking
from memoranda.document_qa.asking import UploadAsk
from memoranda.document_qa.documents import Documents


class BlockingDocuments:
    """`uploadask.Documents`, method for method."""

    def __init__(self, inner: Documents, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    add = blocking(Documents.add)
    add_text = blocking(Documents.add_text)
    list = blocking(Documents.list)
    get = blocking(Documents.get)
    wait = blocking(Documents.wait)
    delete = blocking(Documents.delete)


class BlockingUploadAsk:
    """`uploadask.UploadAsk`, method for method."""

    def __init__(self, inner: UploadAsk, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal
        self.documents = BlockingDocuments(inner.documents, portal)

    ask = blocking(UploadAsk.ask)
    sessions = blocking(UploadAsk.sessions)
    session = blocking(UploadAsk.session)
    messages = blocking(UploadAsk.messages)
    delete_session = blocking(UploadAsk.delete_session)
    logs = blocking(UploadAsk.logs)
    log_entry = blocking(UploadAsk.log_entry)
    remember = blocking(UploadAsk.remember)
    memories = blocking(UploadAsk.memories)
    delete_memory = blocking(UploadAsk.delete_memory)
    derive = blocking(UploadAsk.derive)

    def acting_for(self, user_id: str | None) -> BlockingUploadAsk:
        """Return the same for the user that a service or an admin names, see `UploadAsk.acting_for`."""
        return BlockingUploadAsk(self.inner.acting_for(user_id), self.portal)
