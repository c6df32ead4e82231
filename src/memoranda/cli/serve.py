"""`memoranda serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from memoranda.app.bootstrap import folder_of, rows_url
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.output import say
from memoranda.cli.product import load_config
from memoranda.config.sections import Config
from memoranda.server.console import PATH as CONSOLE
from memoranda.server.serve import serve as run
from memoranda.server.serve import work as run_worker


@common_options(json=False)
def serve(
    invocation: Invocation,
    host: Annotated[str | None, typer.Option(help="The address to listen on [default: 127.0.0.1].")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one [default: 8377].")] = None,
) -> None:
    """Serve the folder over HTTP until stopped."""
    server_settings = [f"server.host={host}"] if host is not None else []
    server_settings += [f"server.port={port}"] if port is not None else []
    settings = [*(invocation.settings or []), *server_settings]
    config = load_config(invocation.data, invocation.config_file, settings)
    run(config, started=lambda url: say(welcome(url, config)))


@common_options(json=False)
def worker(invocation: Invocation) -> None:
    """Do background work for the servers of a PostgreSQL database until stopped."""
    config = invocation.config
    run_worker(config, started=lambda: say(f"working with {config.jobs.workers} workers; Ctrl-C stops"))


def welcome(url: str, config: Config) -> str:
    """Return the text that a started server prints: its address, and requests to try."""
    key = " -H 'Authorization: Bearer YOUR_KEY'" if config.keys else ""
    post = f"curl -s{key} -H 'Content-Type: application/json' {url}/v1/memories"
    other_database = not rows_url(config).startswith("sqlite")
    rows = "rows in PostgreSQL" if other_database else config.data
    command_line = f'goes through this server meanwhile: memoranda search "key" --data {config.data}'
    if folder_of(config) is None:
        command_line = (
            "opens the rows itself; give it the same settings"
            if other_database
            else "cannot reach this memory"
        )
    model = config.model.name or config.model.url
    answers = (
        f"by {model}" if config.model.url else "quoted from what is found; model.url names a language model"
    )
    open_to = (
        ""
        if config.keys
        else "Without keys, every program on this machine is admin, and a proxy is refused: docs/guides/proxies.md\n"
    )
    console = f"The web console is at {url}{CONSOLE}\n" if config.console.enabled else ""
    return f"""Memoranda serves {rows} at {url}
{open_to}{console}Answers of {url}/v1/responses are {answers}

Remember something, and find it:
  {post} -d '{{"content": "The spare key is under the blue pot."}}'
  {post}/search -d '{{"query": "Where is the key?"}}'

Every route: {url}/openapi.json
The command line {command_line}
Ctrl-C stops it."""
