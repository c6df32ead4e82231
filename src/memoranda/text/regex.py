"""Regular expressions that are compiled when they are first used: a command uses few of the hundreds that it imports,
and compiling one takes about half a millisecond."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


def regex(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled when it is first used. It is no `re.Pattern`: call its methods."""
    return cast("re.Pattern[str]", _Pattern(expression, flags))


class _Pattern:
    """Stands for a compiled regular expression, and takes over each of its methods at the first call."""

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
