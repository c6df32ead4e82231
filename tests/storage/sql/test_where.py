"""The SQL form of a filter never hides a row that the filter lets through, and is exact when it says so."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pysqlite3 import dbapi2 as sqlite

from memoranda.filters import AllOf, AnyOf, Compare, Filter, matches
from memoranda.storage.dialect import NUMBERS, TEXT
from memoranda.storage.sql.where import compile_where

text = st.sampled_from(["a", "b", "É", ""]) | st.none()
number = st.sampled_from([0, 5, -1, 10**15]) | st.none()
TEXT_KEYS, NUMBER_KEYS = sorted(TEXT), sorted(NUMBERS)
rows = st.fixed_dictionaries(
    dict.fromkeys(TEXT_KEYS, text) | dict.fromkeys(NUMBER_KEYS, number) | {"lang": text}
)
value = text | number | st.booleans() | st.just(1.5)


def compares() -> st.SearchStrategy[Filter]:
    key = st.sampled_from([*TEXT_KEYS, *NUMBER_KEYS, "lang"])
    single = st.builds(Compare, key, st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]), value)
    several = st.builds(Compare, key, st.sampled_from(["in", "nin"]), st.lists(value, max_size=3).map(tuple))
    return single | several


trees = st.recursive(
    compares(),
    lambda inner: (
        st.builds(AllOf, st.lists(inner, max_size=3).map(tuple))
        | st.builds(AnyOf, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=6,
)


@given(rows, trees)
def test_sql_lets_through_what_matches_does(row: dict[str, object], where: Filter) -> None:
    columns = TEXT | NUMBERS
    raw = sqlite.connect(":memory:")
    raw.execute(f"CREATE TABLE memories ({', '.join(columns.values())})")
    raw.execute(
        f"INSERT INTO memories VALUES ({', '.join('?' * len(columns))})", [row[key] for key in columns]
    )
    compiled = compile_where(where)
    through = bool(raw.execute(f"SELECT 1 FROM memories WHERE {compiled.sql}", compiled.params).fetchall())
    raw.close()
    expected = matches(where, row)
    if compiled.exact:
        assert through == expected
    elif expected:
        assert through
