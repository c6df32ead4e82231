"""`memoranda sessions`: sessions and their messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer

from memoranda.cli.derived import add_commands
from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import After, Limit, Order, Since, Until, moment, text_of
from memoranda.cli.output import beginning, plain, set_fields_text
from memoranda.sessions.operations import OPERATIONS
from memoranda.sessions.values import Message, NewMessage, Session

Id = Annotated[str, typer.Argument(metavar="SESSION", help="The session.")]
TEXTS = ("summary", "topics", "decisions", "open_questions", "action_items")
"""Parts of a summary, each shown below its heading."""

app = group()


@app.callback()
@common_options()
def sessions(invocation: Invocation, context: typer.Context) -> None:
    """List sessions; show, summarize, close and delete them."""
    if context.invoked_subcommand is None:
        _list(invocation, {})


@app.command("list")
@common_options()
def list_(
    invocation: Invocation,
    channel: Annotated[str | None, typer.Option(metavar="ID", help="Only of this channel.")] = None,
    status: Annotated[
        list[str] | None,
        typer.Option(help="Only open, closed, summarized or failed ones; repeat for more."),
    ] = None,
    participant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those in which this person spoke.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    after: After = None,
    order: Order = "desc",
) -> None:
    """List sessions, newest first."""
    fields: dict[str, Any] = {
        "channel_id": channel,
        "status": status or None,
        "participant": participant,
        "since": moment(since, "--since"),
        "until": moment(until, "--until"),
        "limit": limit,
        "after": after,
        "order": order,
    }
    _list(invocation, fields)


def _list(invocation: Invocation, fields: dict[str, Any]) -> None:
    page = invocation.product.sessions.list(**fields)
    invocation.show_page(page, _session_line, "no sessions; memoranda sessions add begins one")


@app.command("messages")
@common_options()
def messages(
    invocation: Invocation, id_: Id, limit: Limit = 100, after: After = None, order: Order = "asc"
) -> None:
    """Show what was said in a session, in order."""
    page = invocation.product.sessions.messages(id_, limit=limit, after=after, order=order)
    invocation.show_page(page, _message_line)


@app.command("add")
@common_options(creates_folder=True)
def add(
    invocation: Invocation,
    id_: Id,
    content: Annotated[
        str, typer.Argument(metavar="TEXT", help="What was said; - reads it from standard input.")
    ],
    role: Annotated[str, typer.Option(help="Who said it: user, assistant, ...")] = "user",
    speaker: Annotated[str | None, typer.Option(metavar="NAME", help="The name of who said it.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="Whose message it is.")] = None,
    extraction: Annotated[
        bool | None,
        typer.Option(
            "--extract/--no-extract", help="Take facts out of it, or never [default: facts.extraction]."
        ),
    ] = None,
    occurred_at: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="When it was said, in ISO 8601 [default: now].")
    ] = None,
) -> None:
    """Add a message to a session; one that does not exist is begun."""
    message = NewMessage(
        content=text_of(content, "content"),
        role=role,
        speaker=speaker,
        user_id=msgspec.UNSET if user is None else user,
        occurred_at=moment(occurred_at, "--occurred-at"),
    )
    observed = invocation.product.sessions.observe(message, session_id=id_, extraction=extraction)[0]
    invocation.show(
        observed, f"{observed.message.id}  {'added' if observed.created else 'was there already'}"
    )


def _session_text(session: Session) -> str:
    return "\n".join([set_fields_text(session, leave_out=TEXTS), *_summary_lines(session)])


def _summary_lines(session: Session) -> Iterator[str]:
    for name in TEXTS:
        if value := getattr(session, name):
            yield f"\n{name.replace('_', ' ')}"
            yield from (plain(f"  {line}") for line in ([value] if isinstance(value, str) else value))


def _session_line(session: Session) -> str:
    who = ", ".join(session.participants)
    return plain(
        f"{session.id}  {session.status}  {session.started_at:%Y-%m-%d %H:%M}  {session.message_count} messages  {who}"
        f"  {beginning(session.summary or '')}"
    ).rstrip()


def _message_line(message: Message) -> str:
    speaker = message.speaker or message.role
    return plain(f"{message.id}  {message.occurred_at:%Y-%m-%d %H:%M}  {speaker}: {message.content}")


add_commands(
    app,
    "sessions",
    OPERATIONS,
    {
        "get": _session_text,
        "summarize": _session_text,
        "close": _session_line,
        "update_message": _message_line,
    },
)
