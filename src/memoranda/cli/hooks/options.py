"""The words of `memoranda hook`, read without the library that reads those of other commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from memoranda.text.hashing import digest

if TYPE_CHECKING:
    from memoranda.config.sections import Config

EVENTS = ("session-start", "prompt", "stop", "compact")


class Options(NamedTuple):
    """What a hook is called with."""

    event: str
    data: str | None = None
    user: str | None = None
    config: str | None = None
    settings: tuple[str, ...] = ()

    def configuration(self) -> Config:
        """Return the configuration that the options, the environment and the file make. It takes a while to import.

        Raises:
            ConfigError: a key or value is wrong.
        """
        from pathlib import Path

        from memoranda.config import load

        overrides: dict[str, object] = {}
        if self.settings:
            from memoranda.cli.options import pairs

            overrides = pairs([*self.settings], "--set")
        if self.data is not None:
            overrides["data"] = self.data
        return load(None if self.config is None else Path(self.config), overrides=overrides)

    @property
    def owner(self) -> str:
        """A digest of whom messages are stored for: the user, and the key or configuration that says the tenant."""
        return digest(*map(str, (self.user, self.config, self.settings, os.environ.get("MEMORANDA_KEY"))))

    @property
    def folder(self) -> str:
        """The data folder."""
        return self.configuration().data if self.data is None else self.data


class WrongWords(ValueError):
    """A word of a hook is wrong. `options` are those of the other words: they say where the log is."""

    def __init__(self, message: str, options: Options) -> None:
        super().__init__(message)
        self.options = options


def read_options(words: list[str]) -> Options:
    """Return the options of `EVENT [--data DIR] [--user ID] [--config FILE] [--set KEY=VALUE]...`.

    Raises:
        WrongWords: a word is none of these, or the event is missing.
    """
    names = {"--data": "data", "--user": "user", "--config": "config"}
    given: dict[str, str] = {}
    settings: list[str] = []
    event = wrong = ""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in names or name == "--set":
            value = value if equals else next(rest, "")
            if name == "--set":
                settings.append(value)
            else:
                given[names[name]] = value
        elif word in EVENTS and not event:
            event = word
        else:
            wrong = wrong or f"{word!r} is no option or event of a hook"
    if not (event or wrong):
        wrong = "an event is missing"
    options = Options(event or "hook", settings=tuple(settings), **given)
    if wrong:
        raise WrongWords(
            f"{wrong}; use one of {', '.join(EVENTS)}, with {', '.join((*names, '--set'))}", options
        )
    return options
