"""`memoranda sessions`: what was said, and the sessions it belongs to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import msgspec
import typer

from memoranda.cli.groups import group
from memoranda.cli.options import After, ConfigFile, Data, Json, Limit, Order, Settings, Since, Until, moment
from memoranda.cli.output import UNSET, beginning, emit, plain, rows, say
from memoranda.cli.product import configured, house
from memoranda.config.sections import Config
from memoranda.sessions.values import Message, NewMessage, Session

Id = Annotated[str, typer.Argument(metavar="SESSION", help="The session.")]
MessageId = Annotated[str, typer.Argument(metavar="MESSAGE", help="The message.")]
TEXTS = ("summary", "topics", "decisions", "open_questions", "action_items")
"""Parts of a summary, each shown below its heading."""

app = group()


@app.callback()
def sessions(
    context: typer.Context,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List sessions; show, summarize, close and delete them."""
    if context.invoked_subcommand is None:
        _list(configured(data, config, settings), {}, as_json=as_json)


@app.command("list")
def list_(
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
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
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
    _list(configured(data, config, settings), fields, as_json=as_json)


def _list(config: Config, fields: dict[str, Any], *, as_json: bool) -> None:
    with house(config) as held:
        page = held.sessions.list(**fields)
    if as_json:
        emit(page)
        return
    for one in page.data:
        typer.echo(_session_line(one))
    if not page.data:
        say("no sessions; memoranda sessions add begins one")
    if page.has_more:
        say(f"there are more: add --after {page.last_id}")


@app.command("show")
def show(
    id_: Id, data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Show a session, with its summary."""
    with house(configured(data, config, settings)) as held:
        _show(held.sessions.get(id_), as_json=as_json)


@app.command("messages")
def messages(
    id_: Id,
    limit: Limit = 100,
    after: After = None,
    order: Order = "asc",
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show what was said in a session, in order."""
    with house(configured(data, config, settings)) as held:
        page = held.sessions.messages(id_, limit=limit, after=after, order=order)
    if as_json:
        emit(page)
        return
    for one in page.data:
        typer.echo(_message_line(one))
    if page.has_more:
        say(f"there are more: add --after {page.last_id}")


@app.command("add")
def add(
    id_: Id,
    text: Annotated[str, typer.Argument(help="What was said; - reads it from standard input.")],
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
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Add a message to a session; one that does not exist is begun."""
    said = NewMessage(
        content=sys.stdin.read() if text == "-" else text,
        role=role,
        speaker=speaker,
        user_id=msgspec.UNSET if user is None else user,
        occurred_at=moment(occurred_at, "--occurred-at"),
    )
    with house(configured(data, config, settings)) as held:
        done = held.sessions.observe(said, session_id=id_, extraction=extraction)[0]
    if as_json:
        emit(done)
    else:
        typer.echo(f"{done.message.id}  {'added' if done.created else 'was there already'}")


@app.command("summarize")
def summarize(
    id_: Id, data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Make the summary of a session now."""
    with house(configured(data, config, settings)) as held:
        _show(held.sessions.summarize(id_), as_json=as_json)


@app.command("close")
def close(
    id_: Id, data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Close a session; its summary and facts are made soon."""
    with house(configured(data, config, settings)) as held:
        done = held.sessions.close(id_)
    emit(done) if as_json else typer.echo(_session_line(done))


@app.command("delete")
def delete(
    id_: Id, data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Delete a session: its messages, their memories, its summary, and the facts from it."""
    with house(configured(data, config, settings)) as held:
        held.sessions.delete(id_)
    emit({"id": id_, "deleted": True}) if as_json else typer.echo(f"{plain(id_)}  deleted")


@app.command("update-message")
def update_message(
    id_: Id,
    message: MessageId,
    text: Annotated[str, typer.Argument(help="Its new text.")],
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Give a message another text; its memory, summary and facts follow."""
    with house(configured(data, config, settings)) as held:
        done = held.sessions.update_message(id_, message, text)
    emit(done) if as_json else typer.echo(_message_line(done))


@app.command("delete-message")
def delete_message(
    id_: Id,
    message: MessageId,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Delete a message, with what was made of it."""
    with house(configured(data, config, settings)) as held:
        held.sessions.delete_message(id_, message)
    emit({"id": message, "deleted": True}) if as_json else typer.echo(f"{plain(message)}  deleted")


def _show(session: Session, *, as_json: bool) -> None:
    if as_json:
        emit(session)
    else:
        typer.echo("\n".join(_session_lines(session)))


def _session_lines(session: Session) -> Iterator[str]:
    fields: dict[str, Any] = msgspec.to_builtins(session, builtin_types=(datetime,))
    shown = {name: value for name, value in fields.items() if name not in TEXTS and value not in UNSET}
    yield from (plain(line) for line in rows(shown))
    for name in TEXTS:
        if value := fields[name]:
            yield f"\n{name.replace('_', ' ')}"
            yield from (plain(f"  {line}") for line in ([value] if isinstance(value, str) else value))


def _session_line(one: Session) -> str:
    who = ", ".join(one.participants)
    return plain(
        f"{one.id}  {one.status}  {one.started_at:%Y-%m-%d %H:%M}  {one.message_count} messages  {who}"
        f"  {beginning(one.summary or '')}"
    ).rstrip()


def _message_line(one: Message) -> str:
    return plain(f"{one.id}  {one.occurred_at:%Y-%m-%d %H:%M}  {one.speaker or one.role}: {one.content}")
