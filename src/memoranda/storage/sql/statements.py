"""Named SQL: `queries/*.sql` has blocks that begin with `-- name: ...`, in one text for every database.

A word in braces stands for syntax that differs between databases; `render` replaces it:

| word | means |
|---|---|
| `{seqs ?}` `{texts ?}` | a table with one column `value`: the elements of a JSON list of ints, of strings |
| `{join}` | a join in which the left side is read first, where the planner could choose otherwise |

A statement that needs other syntax is written again, under the same name, in `queries/<dialect>/*.sql`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_NAME = re.compile(r"^-- name: (\w+)[^\n]*\n", re.MULTILINE)
_LIST = re.compile(r"\{(seqs|texts) (\?\d*)\}")
_PLACE = re.compile(r"\?(\d*)")
_POSTGRES_LIST = {
    "seqs": r"(SELECT value::bigint AS value FROM jsonb_array_elements_text(CAST({} AS jsonb)) AS value)",
    "texts": r"(SELECT value FROM jsonb_array_elements_text(CAST({} AS jsonb)) AS value)",
}


@lru_cache(maxsize=2048)
def render(sql: str, dialect: str) -> str:
    """Return the statement in `dialect`: `sqlite`, or `postgres`, which numbers its parameters `$1, $2, ...`."""
    if dialect == "sqlite":
        return _LIST.sub(r"json_each(\2)", sql).replace("{join}", "CROSS JOIN")
    sql = _LIST.sub(lambda match: _POSTGRES_LIST[match[1]].format(match[2]), sql).replace("{join}", "JOIN")
    count = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"${match[1] or count}"

    return _PLACE.sub(numbered, sql)


@cache
def statements(dialect: str) -> dict[str, str]:
    """Return every named statement, by name, in one dialect.

    Raises:
        ValueError: two blocks share a name.
    """
    folder = files("memoranda.storage.sql").joinpath("queries")
    named = dict(_named(folder))
    own = folder.joinpath(dialect)
    if own.is_dir():
        named |= dict(_named(own))
    return {name: render(sql, dialect) for name, sql in named.items()}


def _named(folder: Traversable) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for entry in sorted(folder.iterdir(), key=lambda path: path.name):
        if not entry.name.endswith(".sql"):
            continue
        parts = _NAME.split(entry.read_text("utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in seen:
                raise ValueError(f"{entry.name}: the statement {name} is named twice")
            seen.add(name)
            yield name, body.strip().rstrip(";")


@cache
def migrations(dialect: str) -> list[tuple[int, str]]:
    """Return the schema's history for one dialect: (version, script), ascending. Versions are the same in all."""
    folder = files("memoranda.storage.sql").joinpath("migrations").joinpath(dialect)
    scripts = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return sorted((int(entry.name.split("_", 1)[0]), entry.read_text("utf-8")) for entry in scripts)
