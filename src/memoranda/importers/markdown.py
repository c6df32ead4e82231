"""A Markdown note: front matter, links and tags. Pure functions on text.

Sources: https://docs.basicmemory.com/concepts/knowledge-format and NOTE-FORMAT.md of basicmachines-co/basic-memory;
https://www.mintlify.com/obsidianmd/obsidian-api/api/frontmatter for the properties of Obsidian.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from memoranda.importers.fields import items, name, text

MAX_FRONT_MATTER = 64 << 10
MOST = 64
"""Tags and links that are kept of one note."""
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"\[\[([^\[\]|#^\n]{1,256})[^\[\]\n]{0,256}\]\]")
_LINKED = re.compile(r"^\s*\[\[([^\[\]|#^\n]+)[^\[\]\n]*\]\]\s*$")
_TAG = re.compile(r"(?:^|(?<=\s))#([^\W\d_][\w/-]{0,99})")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_OBSERVATION = re.compile(r"^\s*[-*]\s+\[([^\[\]()\s][^\[\]()]{0,99})\]\s+(\S.*)$", re.MULTILINE)
_RELATION = re.compile(
    r"^\s*[-*]\s+(?:\[[ xX]\]\s*)?([^\[\]\n]{0,100}?)\s*\[\[([^\[\]|#^\n]{1,256})[^\[\]\n]{0,256}\]\]",
    re.MULTILINE,
)
CREATED = ("created", "created_at", "date", "date created", "modified", "updated")
"""Properties that have the date of a note, the first of them first."""


class Note(NamedTuple):
    """A note: its properties, its text without them, and the problem of the properties, if any."""

    properties: dict[str, Any]
    body: str
    problem: str | None = None


def parsed(content: str) -> Note:
    """The note of a file's text. Properties that cannot be read stay in the body."""
    match = _FRONT_MATTER.match(content)
    if match is None:
        return Note({}, content.strip())
    if len(match[1]) > MAX_FRONT_MATTER:
        return Note({}, content.strip(), "has more than 64 KiB of properties")
    import yaml  # saves 20 ms without a note that has properties

    try:
        # An alias that is merged into a mapping copies it: a few lines could become gigabytes.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(match[1], yaml.SafeLoader)):
            return Note({}, content.strip(), "has properties with aliases")
        properties = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return Note({}, content.strip(), "has properties that are not valid YAML")
    if properties is None:
        return Note({}, content[match.end() :].strip())
    if not isinstance(properties, dict):
        return Note({}, content.strip(), "has properties that are not a mapping")
    return Note(properties, content[match.end() :].strip())


def tags(note: Note) -> list[str]:
    """The tags of the properties and of the text, each once."""
    given = note.properties.get("tags", note.properties.get("tag"))
    listed = re.split(r"[,\s]+", given) if isinstance(given, str) else items(given)
    candidates = [str(each).strip().lstrip("#") for each in listed if isinstance(each, str | int)]
    candidates += _TAG.findall(_CODE.sub(" ", note.body))
    return [tag for each in dict.fromkeys(candidates) if (tag := name(each))][:MOST]


def links(body: str) -> list[str]:
    """The notes that a text links to, each once."""
    return list(dict.fromkeys(each.strip() for each in _LINK.findall(_CODE.sub(" ", body))))[:MOST]


def dates(note: Note) -> list[Any]:
    """The dates that its properties have, the one of the note first. A date may be a link to a daily note."""
    values = (note.properties.get(key) for key in CREATED)
    return [_LINKED.sub(r"\1", value) if isinstance(value, str) else value for value in values]


def observations(body: str) -> Iterator[tuple[str, str]]:
    """The observations of basic-memory, `- [category] text`: category and text. Tasks are none."""
    for category, said in _OBSERVATION.findall(_CODE.sub(" ", body)):
        if category.strip().lower() not in ("x", "-") and not said.startswith("("):
            yield text(category), text(said)


def relations(body: str) -> Iterator[tuple[str, str]]:
    """The relations of basic-memory, `- type [[Target]]`: type and target."""
    for kind, target in _RELATION.findall(_CODE.sub(" ", body)):
        yield text(kind) or "relates to", text(target)
