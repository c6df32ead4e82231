"""Quoted texts in a prompt: no mark of the prompt can stand in them."""

from __future__ import annotations

from memoranda.text import prompts
from memoranda.text.regex import regex

_HEADINGS = "|".join(
    heading.rstrip(":")
    for heading in (
        prompts.DOCUMENTS,
        prompts.MEMORIES,
        prompts.SESSIONS,
        prompts.SUMMARY,
        prompts.RECENT,
        prompts.NOT_MENTIONED.strip(),
    )
)
_DAY = r"(?:since )?\d{2} \w{3,12} \d{4}"
_MARK = regex(
    rf"(\[(?:\d{{1,4}}|Doc [^\]\n]{{1,300}}/Chunk \d+|Score: [\d.]+|{_DAY}[^\]\n]{{0,80}})|"
    rf"\bFound \d+ relevant memor(?:y|ies)|(?:{_HEADINGS}))(?=[\]:])"
)
"""Headings and marks of the prompt, without their last character."""


def quoted(text: str) -> str:
    """Return a text in which each heading and each mark of the prompt (`[2]`, `[Doc 3/Chunk 4]`, `Documents:`) has a
    backslash before its last character, so that it is none."""
    return _MARK.sub(r"\1\\", text)
