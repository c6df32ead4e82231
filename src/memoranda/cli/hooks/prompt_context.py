"""The context that hooks add: at the start of a session, and before a prompt."""

from __future__ import annotations

from typing import Any

from memoranda.cli.hooks.options import Options
from memoranda.cli.hooks.server import Server
from memoranda.cli.hooks.state import Position

FACTS, SESSIONS, LOOKED_AT = 50, 5, 50
"""Most facts and summaries in an introduction, and most sessions that are searched for summaries."""
CHARS = 8_000
"""Of facts and of summaries together; Claude Code takes 10 000 characters of a hook."""
PROMPT_CHARS = 2_000
"""Of a prompt that are searched for; logs and files may stand behind them."""
BUDGET = 1_500
"""Tokens of a context, those of the prompt included."""


def introduction(server: Server, options: Options, session_id: str) -> str:
    """Return what is known of the user, and the summaries of recent sessions; an empty text if there is nothing."""
    query = [("kinds", "fact"), ("limit", str(FACTS))]
    if options.user is not None:
        query += [("scopes", f"user:{options.user}"), ("scopes", "global")]
    facts = [
        f"- {fact['content']} ({fact['occurred_at'][:10]})"
        for fact in server.get("/v1/memories", query)["data"]
    ]
    sessions = server.get("/v1/sessions", [("limit", str(LOOKED_AT))])["data"]
    own = [session for session in sessions if options.user is None or session["user_id"] == options.user]
    summaries = [
        f"- {session['ended_at'][:10]}: {session['summary']}"
        for session in own
        if session["summary"] and session["id"] != session_id
    ][:SESSIONS]
    parts = [
        f"{heading}\n" + "\n".join(lines)
        for heading, given in (
            ("What is known from earlier sessions:", facts),
            ("Recent sessions:", summaries),
        )
        if (lines := _fitting(given))
    ]
    return "\n\n".join(parts)


def _fitting(lines: list[str]) -> list[str]:
    """The first lines that have half of the characters."""
    kept: list[str] = []
    left = CHARS // 2
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return kept


def context(server: Server, options: Options, prompt: str, position: Position) -> str:
    """Return what is remembered for a prompt, without what was said in the session itself, with a sentence if it
    probably does not answer; an empty text if there is nothing."""
    body: dict[str, Any] = {
        "query": prompt[:PROMPT_CHARS],
        "budget": BUDGET,
        "exclude": position.ids,
        "marks": False,
        "count_access": True,
    }
    if options.user is not None:
        body["hierarchy"] = {"user": options.user}
    *before, _ = server.post("/v1/context", body)["messages"]
    rules_last = sorted(before, key=lambda message: bool(message["role"] == "system"))
    return "\n\n".join(message["content"] for message in rules_last)
