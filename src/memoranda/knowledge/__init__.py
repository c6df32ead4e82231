"""Knowledge: documents in, cited passages out."""

from __future__ import annotations

import asyncio

from memoranda.knowledge.admin import Admin
from memoranda.knowledge.expiry import Expiry
from memoranda.knowledge.files import Files, Staged
from memoranda.knowledge.pipeline import Pipeline
from memoranda.knowledge.removal import REMOVE_JOB, Removal
from memoranda.knowledge.stores import Stores
from memoranda.knowledge.uploads import Uploads
from memoranda.store.core import Core
from memoranda.types import Subject

__all__ = ["Admin", "Files", "Knowledge", "Librarian", "Staged", "Stores", "Uploads"]


class Knowledge:
    """The files and vector stores that one subject sees."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self.subject = subject
        self.files = Files(core, subject)
        self.uploads = Uploads(core, subject, self.files)
        self.stores = Stores(core, subject, self.files)
        self.admin = Admin(core, subject)


class Librarian:
    """The background work of knowledge: indexing, removing, expiring."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.removal = Removal(core)
        self.pipeline = Pipeline(core, self.removal)
        self.expiry = Expiry(core)
        core.jobs.handlers[REMOVE_JOB] = self.removal.remove
        self._watch: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start the clock."""
        self._watch = asyncio.create_task(self.expiry.watch(), name="knowledge-expiry")

    async def end(self) -> None:
        """Stop the clock, and end the processes that read documents."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self.core.readers.close()
