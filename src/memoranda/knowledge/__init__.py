"""Knowledge: documents in, cited passages out."""

from __future__ import annotations

from memoranda.knowledge.admin import Admin
from memoranda.knowledge.files import Files, Staged
from memoranda.knowledge.stores import Stores
from memoranda.knowledge.uploads import Uploads
from memoranda.store.core import Core
from memoranda.types import Subject

__all__ = ["Admin", "Files", "Knowledge", "Staged", "Stores", "Uploads"]


class Knowledge:
    """The files and vector stores that one subject sees."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self.subject = subject
        self.files = Files(core, subject)
        self.uploads = Uploads(core, subject, self.files)
        self.stores = Stores(core, subject, self.files)
        self.admin = Admin(core, subject)
