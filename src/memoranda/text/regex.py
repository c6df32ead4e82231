"""Regular expressions that are compiled when they are first used: a command uses few of the hundreds that it imports,
and compiling one takes about half a millisecond."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol, cast

_ASCII_LETTERS = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
_OTHER_DIGIT = re.compile(r"[^\D0-9]")


class Regex(Protocol):
    """The methods of `re.Pattern` that are used here. The functions of `re` do not take a `Regex`."""

    def match(self, string: str, pos: int = ..., endpos: int = ...) -> re.Match[str] | None: ...

    def fullmatch(self, string: str, pos: int = ..., endpos: int = ...) -> re.Match[str] | None: ...

    def search(self, string: str, pos: int = ..., endpos: int = ...) -> re.Match[str] | None: ...

    def findall(self, string: str) -> list[Any]: ...

    def finditer(self, string: str, pos: int = ..., endpos: int = ...) -> Iterator[re.Match[str]]: ...

    def split(self, string: str, maxsplit: int = ...) -> list[Any]: ...

    def sub(self, repl: str | Callable[[re.Match[str]], str], string: str, count: int = ...) -> str: ...


def regex(expression: str, flags: int = 0) -> Regex:
    """Return a regular expression that is compiled when one of its methods is first called."""
    return cast("Regex", _Uncompiled(expression, flags))


def in_ascii(text: str) -> str:
    """Return a text, of the same length, with ASCII letters and digits for those that a regular expression takes for
    them: "s" for the long s and "i" for the dotless one, which `str.lower` leaves, and digits of all scripts. What
    matched is then a key of a table in lower case, or what `int` reads as it is."""
    if text.isascii():
        return text
    return _OTHER_DIGIT.sub(lambda digit: str(int(digit[0])), text.translate(_ASCII_LETTERS))


class _Uncompiled:
    """Compiles its expression when it is first asked for a method, and keeps the methods that it was asked for."""

    def __init__(self, expression: str, flags: int) -> None:
        self._expression = expression
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._expression, self._flags)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._compiled, name)
        setattr(self, name, method)
        return method
