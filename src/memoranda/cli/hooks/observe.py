"""Observe new messages of a transcript into the session with the client's session id."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import islice
from typing import Any

from memoranda.cli.hooks.options import Options
from memoranda.cli.hooks.server import Refused, Server, server_of
from memoranda.cli.hooks.state import Position, log
from memoranda.cli.hooks.transcripts import Message, messages_after

BATCH = 200
"""Lines of a transcript that are read before their messages are observed."""
SECONDS = 60.0
"""For how long a request may take."""
PATIENCE, PAUSE = 2.0, 0.05
"""Seconds within which a client writes the last message into its transcript, and those between two looks. Claude Code
calls its hooks before (https://code.claude.com/docs/en/hooks, `last_assistant_message`)."""
WRONG = (400, 409, 413, 422)
"""Statuses of a request with a message that cannot be kept."""
Observe = Callable[[list[Message]], None]


def observe_new(options: Options, given: dict[str, Any]) -> None:
    """Observe what is new in the transcript that a hook's input names.

    Raises:
        OSError: the transcript cannot be read, or the server does not answer.
        Refused: the server refuses all of it.
        MemorandaError: the folder cannot be opened.
    """
    session_id, path = given.get("session_id"), given.get("transcript_path")
    if not session_id or not path:
        return
    position = Position(options.folder, session_id)
    if position.transcript != path:
        position.transcript, position.offset = path, 0
    last = given.get("last_assistant_message") or given.get("prompt_response")
    _await_last(path, position.offset, session_id, last)
    lines = messages_after(path, position.offset, session_id)
    with ExitStack() as stack:
        observe: Observe | None = None
        while lines_read := list(islice(lines, BATCH)):
            messages = list(
                {message["id"]: message for message, _ in lines_read if message is not None}.values()
            )
            if messages:
                observe = observe or _opened(options, session_id, stack)
                position.ids += _stored_ids(observe, messages, options)
            position.offset = lines_read[-1][1]
            position.save()
    if options.event == "compact":  # from here on the client has no longer before it what was said
        position.ids = []
        position.save()


def _await_last(path: str, offset: int, session_id: str, last: str | None) -> None:
    """Wait until the transcript has the last message. One that has nothing new at all had it the last time."""
    end = time.monotonic() + PATIENCE
    while last and time.monotonic() < end:
        new = list(messages_after(path, offset, session_id))
        texts = [message["content"] for message, _ in new if message is not None]
        if not new or any(text in last or last in text for text in texts[-1:]):
            return
        time.sleep(PAUSE)


def _stored_ids(observe: Observe, messages: list[Message], options: Options) -> list[str]:
    """Observe messages together, or one by one if a message is refused. Return the ids of those that are stored."""
    try:
        observe(messages)
    except MessageRefused as exc:
        if len(messages) > 1:
            return [id_ for message in messages for id_ in _stored_ids(observe, [message], options)]
        log(options.folder, options.event, f"message {messages[0]['id']}: {exc}")
        return []
    return [message["id"] for message in messages]


class MessageRefused(Exception):
    """A message is refused and cannot be stored."""


def _opened(options: Options, session_id: str, stack: ExitStack) -> Observe:
    """The function that observes messages: through the server of the folder, or in this process."""
    place: dict[str, Any] = {"session_id": session_id}
    if options.user is not None:
        place["user_id"] = options.user
    server = server_of(options, SECONDS)
    if server is not None:
        return _through(server, place)
    return _here(options, place, stack)


def _through(server: Server, place: dict[str, Any]) -> Observe:
    def observe(messages: list[Message]) -> None:
        try:
            server.post("/v1/messages", {"messages": messages, **place})
        except Refused as exc:
            if exc.status in WRONG:
                raise MessageRefused(str(exc)) from exc
            raise

    return observe


def _here(options: Options, place: dict[str, Any], stack: ExitStack) -> Observe:
    from memoranda.app import blocking
    from memoranda.errors import Conflict, FolderInUse, InvalidInput

    try:
        opened = stack.enter_context(blocking.open(config=options.configuration()))
    except FolderInUse as exc:  # a server has begun meanwhile
        if exc.url is None:
            raise
        return _through(Server(exc.url, options, SECONDS), place)

    def observe(messages: list[Message]) -> None:
        try:
            opened.sessions.observe(messages, **place)
        except (Conflict, InvalidInput) as exc:
            raise MessageRefused(str(exc)) from exc

    return observe
