"""`memoranda serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from memoranda.app.bootstrap import folder_of, rows_url
from memoranda.cli.options import ConfigFile, Data, Settings
from memoranda.cli.output import say
from memoranda.cli.product import configured
from memoranda.config.sections import Config
from memoranda.server import serve as run
from memoranda.server.serve import work as run_worker


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on [default: 127.0.0.1].")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one [default: 8377].")] = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Serve the folder over HTTP until stopped."""
    given = [f"server.host={host}"] if host is not None else []
    given += [f"server.port={port}"] if port is not None else []
    force = configured(data, config, [*(settings or []), *given])
    run(force, started=lambda url: say(welcome(url, force)))


def worker(data: Data = None, config: ConfigFile = None, settings: Settings = None) -> None:
    """Do background work for the servers of a PostgreSQL database until stopped."""
    force = configured(data, config, settings)
    run_worker(force, started=lambda: say(f"working with {force.jobs.workers} workers; Ctrl-C stops"))


def welcome(url: str, config: Config) -> str:
    """What to try, with the server's own address."""
    key = " -H 'Authorization: Bearer YOUR_KEY'" if config.keys else ""
    post = f"curl -s{key} -H 'Content-Type: application/json' {url}/v1/memories"
    elsewhere = not rows_url(config).startswith("sqlite")
    rows = "rows in PostgreSQL" if elsewhere else config.data
    beside = f'goes through this server meanwhile: memoranda search "key" --data {config.data}'
    if folder_of(config) is None:
        beside = (
            "opens the rows itself; give it the same settings" if elsewhere else "cannot reach this memory"
        )
    named = config.model.name or config.model.url
    answers = (
        f"by {named}" if config.model.url else "quoted from what is found; model.url names a language model"
    )
    return f"""Memoranda serves {rows} at {url}
Answers of {url}/v1/responses are {answers}

Remember something, and find it:
  {post} -d '{{"content": "The spare key is under the blue pot."}}'
  {post}/search -d '{{"query": "Where is the key?"}}'

Every route: {url}/openapi.json
The command line {beside}
Ctrl-C stops it."""
