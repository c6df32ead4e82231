"""What commands share: the options `--data`, `--config`, `--set` and `--json`, what follows from them, and the options
that select memories."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Protocol, Self, TypeVar

import typer

from memoranda.cli.new_folder import missing_folders, remove_unused
from memoranda.cli.options import ConfigFile, Data, Json, Settings, selection_of
from memoranda.cli.output import emit, say
from memoranda.cli.product import (
    Product,
    load_config,
    open_product,
    require_folder,
)
from memoranda.cli.usage_errors import UsageError
from memoranda.config.sections import Config
from memoranda.errors import MemorandaError

Row = TypeVar("Row", covariant=True)
PAGE = 100
"""Rows of one page of a list that is read whole."""


if TYPE_CHECKING:
    from memoranda.app.blocking.features import BlockingKnowledge, BlockingMemories


class Page(Protocol[Row]):
    """A page of a list, as every `list` method returns it."""

    @property
    def data(self) -> Sequence[Row]: ...
    @property
    def has_more(self) -> bool: ...
    @property
    def last_id(self) -> str | None: ...


def all_rows(list_page: Callable[..., Page[Row]], *args: Any, **fields: Any) -> Iterator[Row]:
    """Yield the rows of every page of a list; `list_page` takes the arguments, `limit` and `after`."""
    after = None
    while True:
        page = list_page(*args, limit=PAGE, after=after, **fields)
        yield from page.data
        if not page.has_more:
            return
        after = page.last_id


class Invocation:
    """One call of a command: the values of the common options.

    The configuration is loaded and the product is opened when a command first uses them. The product is closed when the
    command ends. A data folder that it created is removed if an error ends the command before anything is written.
    """

    def __init__(
        self,
        *,
        data: Data = None,
        config: ConfigFile = None,
        settings: Settings = None,
        as_json: Json = False,
    ) -> None:
        self.data, self.config_file, self.settings, self.as_json = data, config, settings, as_json
        self.creates_folder = False
        """True if the command creates a data folder that does not exist; the others refuse one."""
        self._resources = ExitStack()
        self._new_folders: list[Path] = []
        """The data folder and those above it, if the command creates them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.__exit__(kind, error, trace)
        if isinstance(error, (MemorandaError, UsageError)):
            remove_unused(self._new_folders)

    @cached_property
    def config(self) -> Config:
        """The configuration.

        Raises:
            ConfigError: a key or value is wrong.
        """
        return load_config(self.data, self.config_file, self.settings)

    @cached_property
    def product(self) -> Product:
        """The whole application: the data folder opened here, or the server that has it open.

        Raises:
            FolderInUse: another process has the folder open and serves nothing.
            NotFound: there is no data folder, and the command does not create one.
        """
        if not self.creates_folder:
            require_folder(self.config)
        else:
            self._new_folders = missing_folders(self.config)
        return self._resources.enter_context(open_product(self.config))

    @property
    def memories(self) -> BlockingMemories:
        """The memories of the product."""
        return self.product.memories

    @property
    def knowledge(self) -> BlockingKnowledge:
        """The files and vector stores of the product."""
        return self.product.knowledge

    def show(self, value: Any, text: str) -> None:
        """Print a value on standard output: as JSON with `--json`, else as this text, if it is not empty."""
        if self.as_json:
            emit(value)
        elif text:
            typer.echo(text)

    def show_page(self, page: Page[Row], line: Callable[[Row], str], empty: str | None = None) -> None:
        """Print a page of a list: as JSON with `--json`, else a line for each row and how to get the next page.
        `empty` is printed on standard error if there are no rows."""
        self.show(page, "\n".join(map(line, page.data)))
        if empty is not None and not page.data and not self.as_json:
            say(empty)
        if page.has_more and not self.as_json:
            say(f"there are more: add --after {page.last_id}")


Command = Callable[Concatenate[Invocation, ...], None]
OPTIONS = inspect.signature(Invocation, eval_str=True).parameters
"""The common options: the parameters of an `Invocation`."""
SELECTION = inspect.signature(selection_of, eval_str=True).parameters
"""The options that select memories."""


def common_options(
    *, json: bool = True, creates_folder: bool = False, creates_folder_with: str = ""
) -> Callable[[Command], Callable[..., None]]:
    """Return a decorator that gives a command the common options, without `--json` if `json` is false.

    A command takes an `Invocation` as its first argument. In its place, typer sees the common options after the
    command's own. A product of a data folder that does not exist is refused, unless `creates_folder` is true or the
    option that `creates_folder_with` names is given.
    """
    options = [option for name, option in OPTIONS.items() if json or name != "as_json"]

    def decorate(command: Command) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            common = {option.name: values.pop(option.name) for option in options}
            with Invocation(**common) as invocation:
                invocation.creates_folder = creates_folder or bool(values.get(creates_folder_with))
                command(invocation, **values)

        signature = inspect.signature(command, eval_str=True)
        own = list(signature.parameters.values())[1:]
        run.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        return run

    return decorate


def selection_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options that select memories, except those that `without` names.

    A command takes the keyword `selection`, the fields that the options set. In its place, typer sees the options.
    """
    options = [option for name, option in SELECTION.items() if name not in without]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(invocation: Invocation, **values: Any) -> None:
            given = {option.name: values.pop(option.name) for option in options}
            command(invocation, selection=selection_of(**given), **values)

        signature = inspect.signature(command, eval_str=True)
        own = list(signature.parameters.values())
        place = list(signature.parameters).index("selection")
        own[place : place + 1] = options
        run.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return run

    return decorate
