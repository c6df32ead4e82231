"""Questions to documents: ask, read sessions and the log, store notes, derive memories from past answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar, Unpack

import msgspec

from memoranda.clock import moment, now_micros
from memoranda.config.agent_sections import UploadAsk as Settings
from memoranda.contexts.assembly import semantic_query
from memoranda.document_qa import log, prompting, turns
from memoranda.document_qa.access import acting, called, seen_as, stored_id_of
from memoranda.document_qa.answering import answer
from memoranda.document_qa.backfill import DERIVE_JOB
from memoranda.document_qa.documents import Documents
from memoranda.document_qa.finding import find, memories_of
from memoranda.document_qa.prompting import HistoryMessage
from memoranda.document_qa.remembering import prune, remove_session
from memoranda.document_qa.values import (
    IMPORTANCE,
    SOURCES,
    AskFields,
    AskRequest,
    AskSession,
    DocumentAnswer,
    LogEntry,
)
from memoranda.errors import InvalidInput, NotFound
from memoranda.memories.memories import Memories
from memoranda.memories.pages import read_page
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.values import MessagePage
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_be_admin, must_write
from memoranda.store.core import Core
from memoranda.store.ids import new_id
from memoranda.store.paging import Listed, Paging, as_page, check_page
from memoranda.store.rows import Record, fetch_ids
from memoranda.store.validation import check_name
from memoranda.types import Job, Memory, Order, Subject
from memoranda.validation import checked

T = TypeVar("T")
MAX_PAGE = 1_000
OFF = "is off: set it to true to have answers remembered"


class UploadAsk:
    """Documents, questions and memories of one subject's user. `documents` are the user's."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject
        self._tenant = subject.tenant_id
        self.documents = Documents(core, subject)

    @property
    def _settings(self) -> Settings:
        return self._core.config.upload_ask

    def acting_for(self, user_id: str | None) -> UploadAsk:
        """Return the same for the user that a service or an admin names.

        Raises:
            Forbidden: the subject is bound to another user.
        """
        return UploadAsk(self._core, acting(self.subject, user_id))

    # --- asking ------------------------------------------------------------------------------------

    async def ask(self, question: str | AskRequest, **fields: Unpack[AskFields]) -> DocumentAnswer:
        """Answer a question from the user's documents, memories and the recent messages of the session.

        The answer is stored with the question before it is returned; memories of it follow by a job.

        Raises:
            InvalidInput: names the field and the fix.
            NotFound: the user has no such session or document.
            ModelError: the model failed, and `model.fallback` is off.
        """
        began, asked_at = time.perf_counter(), now_micros()
        must_write(self.subject)
        asked = self._checked(question, fields)
        session_id, said, store_id, unread = await self._begun(asked)
        core, tokens = self._core, asked.max_history_tokens or 0
        query = semantic_query(asked.question, [message.content for message in said])
        found = await find(core, self.subject, query[: core.max_query_chars], asked, store_id, session_id)
        prompt = await core.threads.run(
            prompting.prompt, asked.question, found.passages, found.memories, said, core.config, tokens
        )
        reply = await answer(core, self._tenant, asked.question, prompt)
        memory_tokens = prompt.tokens.get("memories", 0) if "memories" in reply.used else 0
        result = DocumentAnswer(
            id=new_id("qry_"),
            session_id=called(self.subject, session_id),
            answer=reply.text,
            answered_by=reply.by,
            model=reply.model,
            status=reply.status,
            evidence=reply.evidence.level,
            evidence_probability=reply.evidence.probability,
            degraded=sorted(found.degraded | reply.failed | ({"documents"} if unread else set())),
            sources=prompting.chunks_shown(prompt.passages, reply.text),
            memories=[] if reply.failed else prompting.memories_shown(prompt, found.memories, reply.text),
            used=reply.used,
            used_document_tokens=prompt.tokens.get("documents", 0),
            used_memory_tokens=memory_tokens,
            used_history_tokens=prompt.tokens.get("recent", 0),
            latency_ms=int((time.perf_counter() - began) * 1_000),
            memory_search_ms=found.memory_ms,
            created_at=moment(max(now_micros(), asked_at + 1)),
        )
        row = await core.threads.run(log.row_of, self.subject, session_id, asked.question, result)
        used = list(prompt.numbers) if "memories" in reply.used else []
        turn = turns.Turn(row, asked_at, begins=asked.session_id is None, used=used)
        await turns.store(core, self.subject, turn, remember=self._settings.memory)
        core.tally[f"asks.{result.status}"] += 1
        core.tally["ask_tokens.documents"] += result.used_document_tokens
        core.tally["ask_tokens.memories"] += result.used_memory_tokens
        core.tally["ask_tokens.history"] += result.used_history_tokens
        return result

    def _checked(self, question: str | AskRequest, fields: AskFields) -> AskRequest:
        """Return the question, with what is configured for what is left out."""
        settings = self._settings
        if not settings.enabled:
            raise InvalidInput("upload_ask.enabled", "is off; set it to true to ask documents here")
        if isinstance(question, AskRequest) and fields:
            raise InvalidInput(next(iter(fields)), "goes inside the AskRequest that is given, not beside it")
        given = question if isinstance(question, AskRequest) else AskRequest(question=question, **fields)
        asked = checked(given)
        if len(asked.question) > self._core.max_query_chars:
            raise InvalidInput("question", f"is longer than {self._core.max_query_chars} characters")
        check_name(asked.session_id, "sessionId")
        return msgspec.structs.replace(
            asked,
            top_k_docs=_number(asked.top_k_docs, settings.document_results),
            top_k_mems=_number(asked.top_k_mems, settings.memory_results) if settings.memory else 0,
            max_history_tokens=_number(asked.max_history_tokens, settings.history_tokens),
        )

    async def _begun(self, asked: AskRequest) -> tuple[str, list[HistoryMessage], str | None, int]:
        """Return the id under which the session is stored; its recent messages, within the budget; the store of the
        documents, and how many of them are still being indexed."""

        def read(c: Connection) -> tuple[str, list[HistoryMessage]]:
            if asked.session_id is None:
                return new_id("ask_"), []
            stored_id = stored_id_of(c, self.subject, asked.session_id)
            there = turns.check_session(c, self.subject, stored_id)
            with_history = there and asked.include_history
            return stored_id, turns.history(c, self._tenant, stored_id) if with_history else []

        session_id, said = await self._read(read)
        store_id, unread = await self.documents.standing()
        if asked.document_ids is not None:
            await self.documents.check(store_id, asked.document_ids)
        return session_id, prompting.trimmed(said, asked.max_history_tokens or 0), store_id, unread

    # --- sessions ----------------------------------------------------------------------------------

    async def sessions(
        self, *, limit: int = 20, after: str | None = None, before: str | None = None, order: str = "desc"
    ) -> Listed[AskSession]:
        """Return one page of the user's sessions, the latest first unless `order` is `asc`; for an admin all of the
        tenant's.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no session.
        """
        check_page(limit, order, MAX_PAGE)
        place = Paging(limit, after, before, order == "desc")
        return await self._read(lambda c: log.sessions(c, self.subject, place))

    async def session(self, id: str) -> AskSession:
        """Return one session.

        Raises:
            NotFound: no such session for this subject.
        """
        return await self._read(lambda c: log.session(c, self.subject, id))

    async def messages(
        self,
        id: str,
        *,
        limit: int = 100,
        after: str | None = None,
        before: str | None = None,
        order: Order = "asc",
    ) -> MessagePage:
        """Return one page of the questions and answers of a session, in order.

        Raises:
            NotFound: no such session for this subject.
            InvalidInput: a field is wrong, or the cursor names no message of it.
        """
        stored_id = await self._seen(id)
        return await Sessions(self._core, self.subject).messages(
            stored_id, limit=limit, after=after, before=before, order=order
        )

    async def delete_session(self, id: str) -> None:
        """Delete a session: its messages and the memories of them. The log of questions stays.

        Raises:
            NotFound: no such session for this subject.
        """
        must_write(self.subject)
        stored_id = await self._seen(id)
        await Sessions(self._core, self.subject).delete(stored_id)
        await remove_session(self._core, self._tenant, stored_id)

    async def _seen(self, id: str) -> str:
        """Return the id under which a session of this subject is stored."""
        await self.session(id)
        return await self._read(lambda c: seen_as(c, self.subject, id))

    # --- the log -----------------------------------------------------------------------------------

    async def logs(
        self,
        *,
        session_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
        before: str | None = None,
        order: str = "desc",
    ) -> Listed[LogEntry]:
        """Return one page of the user's questions with their answers, the latest first unless `order` is `asc`; for an
        admin all of the tenant's.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no row of the log.
        """
        check_page(limit, order, MAX_PAGE)
        place = Paging(limit, after, before, order == "desc")
        return await self._read(lambda c: log.logged(c, self.subject, session_id, place))

    async def log_entry(self, id: str) -> LogEntry:
        """Return one row of the log.

        Raises:
            NotFound: no such row for this subject.
        """
        return await self._read(lambda c: log.entry(self.subject, log.seen(c, self.subject, id)))

    # --- memories ----------------------------------------------------------------------------------

    async def remember(
        self, content: str, *, session_id: str | None = None, importance: int = IMPORTANCE["manual"]
    ) -> Memory:
        """Store a note for later answers.

        Raises:
            InvalidInput: names the field and the fix; or `upload_ask.memory` is off.
            NotFound: the session is another's.
        """
        must_write(self.subject)
        if not self._settings.memory:
            raise InvalidInput("upload_ask.memory", OFF)
        stored_id = None if session_id is None else await self._existing(session_id)
        added = await Memories(self._core, self.subject).add(
            content, kind="note", source="manual", session_id=stored_id, importance=importance
        )
        self._core.tally["ask_memories.manual"] += added.created
        await prune(self._core, self._tenant, self.subject.user_id)
        return self._shown(added.memory)

    async def _existing(self, session_id: str) -> str:
        """Return the id under which an existing session of this user is stored."""

        def read(c: Connection) -> str:
            stored_id = stored_id_of(c, self.subject, session_id)
            if not turns.check_session(c, self.subject, stored_id):
                raise NotFound(f"no session {session_id!r}")
            return stored_id

        return await self._read(read)

    def _shown(self, memory: Memory) -> Memory:
        named = None if memory.session_id is None else called(self.subject, memory.session_id)
        return msgspec.structs.replace(memory, session_id=named)

    async def memories(
        self, *, limit: int = 20, after: str | None = None, before: str | None = None, order: str = "desc"
    ) -> Listed[Memory]:
        """Return one page of the memories of this user, newest first unless `order` is `asc`.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no memory.
        """
        check_page(limit, order, MAX_PAGE)
        where, place = memories_of(self.subject, None), Paging(limit, after, before, order == "desc")
        page = await self._read(lambda c: read_page(c, self.subject, where, place))
        shown = list(map(self._shown, page.data))
        return as_page(shown, [memory.id for memory in shown], page.has_more)

    async def delete_memory(self, id: str) -> None:
        """Delete one memory of this user.

        Raises:
            NotFound: no such memory for this subject.
        """
        rows = await self._read(lambda c: fetch_ids(c, self._tenant, [id]))
        if id not in rows or not self._owns(rows[id]):
            raise NotFound(f"no memory {id!r}")
        await Memories(self._core, self.subject).delete(id)

    def _owns(self, row: Record) -> bool:
        return row.user_id == self.subject.user_id and row.source in SOURCES

    # --- long work ---------------------------------------------------------------------------------

    async def derive(self, *, rows_per_second: float | None = None) -> Job:
        """Start the job that makes memories of answers in the log without one, from times when `upload_ask.memory` was
        off. It can be cancelled, and resumes where it stopped.

        Raises:
            Forbidden: the subject is not an admin.
            InvalidInput: `upload_ask.memory` is off.
        """
        must_be_admin(self.subject, "derive")
        if not self._settings.memory:
            raise InvalidInput("upload_ask.memory", OFF)
        if rows_per_second is not None and rows_per_second <= 0:
            raise InvalidInput("rows_per_second", "must be above 0; leave it out for no limit")
        payload = {"rows_per_second": rows_per_second}
        id_ = await self._core.jobs.enqueue(self._tenant, DERIVE_JOB, payload, dedup_key="derive")
        return await self._core.jobs.get(self._tenant, id_)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.run(self._core.store.db.read, work, self._tenant)


def _number(asked: int | None, configured: int) -> int:
    return configured if asked is None else asked
