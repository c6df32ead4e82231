"""Observe new messages of a transcript into the session with the client's session id."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from typing import Any

from memoranda.cli.hooks.options import Options
from memoranda.cli.hooks.server import Refused, Server, server_of
from memoranda.cli.hooks.state import Position, log, others_left
from memoranda.cli.hooks.transcripts import Message, messages_after

BATCH = 200
"""Lines of a transcript that are read before their messages are observed."""
SECONDS = 60.0
"""For how long a request may take."""
PATIENCE, PAUSE = 2.0, 0.05
"""Seconds within which a client writes the last message into its transcript, and those between two looks. Claude Code
calls its hooks before (https://code.claude.com/docs/en/hooks, `last_assistant_message`)."""
CATCH_UP = 5.0
"""Seconds after which a hook begins with no more transcripts of other sessions."""
WRONG = (400, 409, 413, 422)
"""Statuses of a request with a message that cannot be kept."""
Observe = Callable[[list[Message], dict[str, str]], None]
"""Stores messages in the place that the fields name."""


def observe_new(options: Options, given: dict[str, Any]) -> None:
    """Observe what is new in the transcript that a hook's input names, and then, for a while, in those of sessions that
    ended without a hook.

    Raises:
        OSError: the transcript cannot be read, or the server does not answer.
        Refused: the server refuses all of it.
        MemorandaError: the folder cannot be opened.
    """
    session_id, path = given.get("session_id"), given.get("transcript_path")
    if not session_id or not path:
        return
    position = Position(options.folder, session_id, options.owner)
    position.follow(path)
    _await_last(position, given.get("last_assistant_message") or given.get("prompt_response"))
    position.absent = not os.path.exists(path)
    if os.path.isdir(options.folder):
        position.save()
    with ExitStack() as stack:
        observer = Observer(options, stack)
        if position.absent:
            log(options.folder, options.event, f"there is no transcript at {path}")
        else:
            _observe_from(position, observer)
        if options.event == "compact":  # from here on the client has no longer before it what was said
            position.ids = []
            position.save()
        end = time.monotonic() + CATCH_UP
        for left in others_left(options.folder, position):
            if time.monotonic() > end:
                break
            try:
                _observe_from(left, observer)
            except Exception as exc:  # one that cannot be read hides no other
                log(options.folder, options.event, f"{left.transcript}: {type(exc).__name__}: {exc}")


def _observe_from(position: Position, observer: Observer) -> None:
    """Observe what a transcript has behind a position."""
    lines = messages_after(position.transcript, position.offset, position.session_id)
    while lines_read := list(islice(lines, BATCH)):
        messages = list({message["id"]: message for message, _ in lines_read if message is not None}.values())
        if messages:
            position.ids += observer.stored_ids(position.session_id, messages)
        position.offset = lines_read[-1][1]
        position.save()


def _await_last(position: Position, last: str | None) -> None:
    """Wait until the transcript has the last message. One that has nothing new at all had it the last time; a new one
    may not even be there yet, and one that never came is not waited for again."""
    end = time.monotonic() + PATIENCE
    while last and not position.absent and time.monotonic() < end:
        if os.path.exists(position.transcript):
            new = list(messages_after(position.transcript, position.offset, position.session_id))
            texts = [message["content"] for message, _ in new if message is not None]
            if (not new and position.offset) or any(text in last or last in text for text in texts[-1:]):
                return
        time.sleep(PAUSE)


class MessageRefused(Exception):
    """A message is refused and cannot be stored."""


class Observer:
    """Stores messages, through the server of the folder or in this process; neither is opened before the first one."""

    def __init__(self, options: Options, stack: ExitStack) -> None:
        self._options = options
        self._stack = stack
        self._observe: Observe | None = None

    def stored_ids(self, session_id: str, messages: list[Message]) -> list[str]:
        """Observe messages together, or one by one if a message is refused. Return the ids of those that are stored."""
        place = {"session_id": session_id}
        if self._options.user is not None:
            place["user_id"] = self._options.user
        self._observe = self._observe or self._opened()
        try:
            self._observe(messages, place)
        except MessageRefused as exc:
            if len(messages) > 1:
                return [id_ for message in messages for id_ in self.stored_ids(session_id, [message])]
            log(self._options.folder, self._options.event, f"message {messages[0]['id']}: {exc}")
            return []
        return [message["id"] for message in messages]

    def _opened(self) -> Observe:
        server = server_of(self._options, SECONDS)
        return self._here() if server is None else _through(server)

    def _here(self) -> Observe:
        from memoranda.app import blocking
        from memoranda.errors import Conflict, FolderInUse, InvalidInput

        try:
            opened = self._stack.enter_context(blocking.open(config=self._options.configuration()))
        except FolderInUse as exc:  # a server has begun meanwhile
            if exc.url is None:
                raise
            return _through(Server(exc.url, self._options, SECONDS))

        def observe(messages: list[Message], place: dict[str, str]) -> None:
            try:
                opened.sessions.observe(messages, **place)  # type: ignore[arg-type]
            except (Conflict, InvalidInput) as exc:
                raise MessageRefused(str(exc)) from exc

        return observe


def _through(server: Server) -> Observe:
    def observe(messages: list[Message], place: dict[str, str]) -> None:
        try:
            server.post("/v1/messages", {"messages": messages, **place})
        except Refused as exc:
            if exc.status in WRONG:
                raise MessageRefused(str(exc)) from exc
            raise

    return observe
