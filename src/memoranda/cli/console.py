"""`memoranda console`."""

from __future__ import annotations

import asyncio
import signal
import webbrowser
from typing import Annotated

import typer

from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.mcp_folder import Folder
from memoranda.cli.output import say
from memoranda.config.sections import Config
from memoranda.errors import ConfigError


@common_options(json=False)
def console(
    invocation: Invocation,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser, or only print the address.")
    ] = True,
) -> None:
    """Open the web console of the folder's server, or of one that runs until it is stopped."""
    config = invocation.config
    if not config.console.enabled:
        raise ConfigError("console.enabled", "is false, so there is no console; set it to true")
    asyncio.run(run(config, browser=browser))


async def run(config: Config, *, browser: bool) -> None:
    """Print the console's address and open it; serve the folder until stopped if no other process does.

    Raises:
        FolderInUse: another process has the folder and does not serve it.
    """
    from memoranda.server.console import (
        PATH,
    )  # what serves takes long to import, and other commands do without

    folder = Folder(config, config.server.port)
    stopped = asyncio.Event()
    try:
        address = f"{await folder.url()}{PATH}"
        typer.echo(address)
        if browser and not await asyncio.to_thread(webbrowser.open, address):
            say("no browser could be opened; open the address above in one")
        if not folder.serves:
            return
        say("Ctrl-C stops the server")
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        await stopped.wait()
    finally:
        await folder.close()
