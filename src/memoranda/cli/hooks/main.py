"""One call of a hook: JSON at standard input, the added context at standard output.

Whatever fails, the client goes on: the exit code is 0, standard output is empty, and the log says why.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

from memoranda.cli.hooks.options import Options, WrongWords, read_options
from memoranda.cli.hooks.state import Position, log

LIMITS = {"prompt": 0.28, "session-start": 5.0}
"""Seconds from the start of the process until the output; a prompt has 0.3 including the end of the process."""
NAMES = {"conversation_id": "session_id", "sessionId": "session_id", "hookEventName": "hook_event_name"}
"""The fields of Cursor and VS Code by the names that Claude Code, Codex and Gemini CLI have."""
LEAST = 0.02
"""Seconds that are left in any case."""


def run_hook(words: list[str]) -> None:
    """Run a hook with the words behind `memoranda hook`. Never raises, but for the end of the process."""
    options = Options("hook")
    try:
        options = read_options(words)
        text, introduced = answer(options, sys.stdin.buffer.read())
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
        if introduced is not None:  # not before: a call that ends at its limit has introduced nothing
            introduced.introduced = True
            introduced.save()
    except Exception as exc:
        message = f"{type(exc).__name__}: {exc}"
        if isinstance(exc, WrongWords):
            options, message = exc.options, str(exc)
        with suppress(OSError):  # no place to write the log: the client goes on all the same
            log(options.folder, options.event, message)
        sys.exit(0)


def answer(options: Options, given: bytes) -> tuple[str, Position | None]:
    """Return the output of the hook in the format of the client, an empty text if there is nothing to add, and the
    position of the session if the output introduces it.

    Raises:
        Exception: the hook failed.
    """
    event_input: dict[str, Any] = json.loads(given)
    if not isinstance(event_input, dict):
        raise TypeError("the input of a hook is a JSON object")
    for name, own in NAMES.items():
        event_input[own] = event_input.get(own) or event_input.get(name) or ""
    if options.event in LIMITS:
        _limit(LIMITS[options.event] - age(), options)
        try:
            text, introduced = _context_for(options, event_input)
        finally:  # at the end of the process an alarm would kill it
            signal.setitimer(signal.ITIMER_REAL, 0)
        return _formatted(event_input, text) if text else "", introduced
    from memoranda.cli.hooks.observe import observe_new

    observe_new(options, event_input)
    return "", None


def _context_for(options: Options, event_input: dict[str, Any]) -> tuple[str, Position | None]:
    """Return what is known about the user, and before a prompt also the memories for it; and the position of the
    session if this introduces it.

    If no server was running at the start of the session, the first prompt gets the introduction.
    """
    from memoranda.cli.hooks import prompt_context
    from memoranda.cli.hooks.server import server_of

    session_id = str(event_input.get("session_id") or "")
    position = Position(options.folder, session_id, options.owner)
    if (path := event_input.get("transcript_path")) and os.path.isdir(options.folder):
        position.follow(path)
        position.save()  # whatever becomes of this call, a later one finds the transcript
    server = server_of(options, LIMITS[options.event])
    if server is None:
        return "", None
    parts = []
    introduces = options.event == "session-start" or not position.introduced
    if introduces:
        parts.append(prompt_context.introduction(server, options, session_id))
    if options.event == "prompt" and (prompt := str(event_input.get("prompt") or "").strip()):
        parts.append(prompt_context.context(server, options, prompt, position))
    return "\n\n".join(part for part in parts if part), position if introduces else None


def _formatted(event_input: dict[str, Any], text: str) -> str:
    """Return the text in the format of the client: Cursor, whose events begin with a small letter, has its own."""
    event = str(event_input.get("hook_event_name", ""))
    if event[:1].islower():
        return json.dumps({"additional_context": text})
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


def _limit(seconds: float, options: Options) -> None:
    """End the process after so many seconds. An exception could be raised where Python ignores it, as in a callback of
    the garbage collector."""

    def late(*_: object) -> NoReturn:
        with suppress(OSError):
            log(options.folder, options.event, "no answer in time; the client goes on without it")
        os._exit(0)

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, max(LEAST, seconds))


def age() -> float:
    """Return the seconds since this process was started, or its CPU time where the system does not report them."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            started = int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, AttributeError):
        return time.process_time()
