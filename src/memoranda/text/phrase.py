"""A phrase search in texts, regardless of case and white space."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from memoranda.errors import InvalidInput
from memoranda.text.terms import folded_of

MAX_CHARS = 1_000


class Phrase:
    """Words in order. Case, the kind of white space, apostrophes and hyphens, and signs that cannot be seen do not
    matter; the phrase matches whole words only: `Ann` is in "call ann!", not in "planning".

    Raises:
        InvalidInput: there is no letter or digit in it, or it is too long.
    """

    def __init__(self, words: str) -> None:
        folded = folded_of(words).strip() if isinstance(words, str) else ""
        if len(folded) > MAX_CHARS or not re.search(r"\w", folded):
            raise InvalidInput("text", f"must be words, {MAX_CHARS} characters at most")
        parts = r"\s+".join(map(re.escape, folded.split()))
        before = r"(?<!\w)" if re.match(r"\w", folded) else ""
        after = r"(?!\w)" if re.search(r"\w$", folded) else ""
        self._pattern = re.compile(f"{before}{parts}{after}")

    def within(self, *texts: str | None) -> bool:
        """Return True if any of the texts contains the phrase."""
        return any(text and self._pattern.search(folded_of(text)) for text in texts)

    def within_json(self, *texts: str | None) -> bool:
        """Return True if a string or a key of any of these JSON texts contains the phrase."""
        return any(text and self._in(msgspec.json.decode(text)) for text in texts)

    def _in(self, value: Any) -> bool:
        if isinstance(value, str):
            return self.within(value)
        if isinstance(value, dict):
            return any(self.within(key) or self._in(part) for key, part in value.items())
        return isinstance(value, list) and any(map(self._in, value))
