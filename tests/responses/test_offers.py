"""Which tools a model is offered, and what it must or may call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.config.agent_sections import Responses
from memoranda.errors import InvalidInput
from memoranda.responses.offers import MAX_TOOLS, choice, offers
from memoranda.responses.plan import tools_of
from memoranda.responses.steps import ToolCall
from memoranda.responses.tools.base import Tool
from memoranda.responses.tools.files import FileSearch

FIND = {
    "type": "function",
    "name": "find",
    "description": "Finds.",
    "parameters": {"type": "object"},
    "strict": True,
}
PATCH = {
    "type": "custom",
    "name": "patch",
    "description": "Patches.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: LINE"},
}
SEARCH: Tool = FileSearch(["vs_1"], 5)
MEMORY = tools_of([{"type": "memory_search"}], Responses())[0]
HELD = offers([FIND, PATCH], [SEARCH, MEMORY])
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "function", "custom", "find", "mcp", "none"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "name", "description", "parameters", "format", "strict", "tools", "mode"]
            ),
            inner,
        )
    ),
    max_leaves=8,
)


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def test_functions_and_house_tools_side_by_side() -> None:
    assert list(HELD.functions) == ["find", "patch"]
    assert list(HELD.here) == ["file_search", "memory_search"]
    known = HELD.known([ToolCall("c", "file_search", "{}")], None)  # type: ignore[arg-type]
    assert known.client == {"find", "patch"}
    assert (known.here, known.asking) == ({"file_search", "memory_search"}, [])
    shapes = {one["function"]["name"]: one["function"] for one in HELD.shapes()}
    assert shapes["find"] == {key: FIND[key] for key in ("name", "description", "parameters", "strict")}
    assert shapes["patch"]["parameters"]["required"] == ["input"]
    assert shapes["patch"]["description"] == "Patches.\n\nstart: LINE"
    assert [one["function"]["name"] for one in HELD.shapes(here=False)] == ["find", "patch"]
    assert [one["function"]["name"] for one in HELD.shapes(["memory_search"])] == ["memory_search"]


def test_a_name_of_the_clients_goes_before_ours() -> None:
    held = offers([{"type": "function", "name": "file_search"}], [SEARCH, MEMORY])
    assert list(held.here) == ["file_search_2", "memory_search"]
    assert held.names == {
        ("", "file_search"): "file_search_2",
        ("memoranda", "memory_search"): "memory_search",
    }
    assert held.shapes(["file_search_2"])[0]["function"]["name"] == "file_search_2"


def test_types_that_nobody_knows_are_passed_over() -> None:
    assert offers([{"type": "web_search"}, {"type": "computer"}, {}], []).shapes() == []


@pytest.mark.parametrize(
    ("tools", "field"),
    [
        ([{"type": "function"}], "tools[0].name"),
        ([{"type": "function", "name": "a b"}], "tools[0].name"),
        ([{"type": "function", "name": ["a"]}], "tools[0].name"),
        ([FIND, FIND], "tools[1].name"),
        ([{**FIND, "parameters": []}], "tools[0].parameters"),
        ([{**FIND, "description": 5}], "tools[0].description"),
        ([{**PATCH, "format": "text"}], "tools[0].format"),
        ([{**PATCH, "description": ["x"]}], "tools[0].description"),
        ([{"type": "web_search"}] * (MAX_TOOLS + 1), "tools"),
    ],
)
def test_what_is_wrong_with_a_tool_is_named(tools: list[dict[str, Any]], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        offers(tools, [])
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("asked", "told", "only"),
    [
        (None, None, None),
        ("auto", "auto", None),
        ("none", "none", None),
        ("required", "required", None),
        ({"type": "function", "name": "find"}, named("find"), None),
        ({"type": "custom", "name": "patch"}, named("patch"), None),
        ({"type": "file_search"}, named("file_search"), None),
        ({"type": "mcp", "server_label": "memoranda"}, named("memory_search"), None),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "file_search"}, FIND]},
            "required",
            ["file_search", "find"],
        ),
        ({"type": "allowed_tools", "tools": []}, "auto", []),
    ],
)  # fmt: skip
def test_choices(asked: Any, told: Any, only: list[str] | None) -> None:
    assert choice(asked, HELD) == (told, only)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ("must", "tool_choice"),
        ({"type": "function", "name": "fly"}, "tool_choice"),
        ({"type": "function", "name": ["find"]}, "tool_choice.name"),
        ({"type": "web_search"}, "tool_choice"),
        ({}, "tool_choice.type"),
        ({"type": "allowed_tools", "tools": 5}, "tool_choice.tools"),
        ({"type": "allowed_tools", "tools": [5]}, "tool_choice.tools[0]"),
        ({"type": "allowed_tools", "mode": "never", "tools": []}, "tool_choice.mode"),
        ({"type": "allowed_tools", "tools": [{"type": "function", "name": "fly"}]}, "tool_choice.tools[0]"),
    ],
)
def test_what_is_wrong_with_a_choice_is_named(asked: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        choice(asked, HELD)
    assert refused.value.field == field


@given(
    st.lists(st.dictionaries(st.sampled_from(["type", "name", "format", "description"]), ANYTHING)), ANYTHING
)
def test_whatever_is_declared_is_refused_or_taken(declared: list[dict[str, Any]], asked: Any) -> None:
    for tool in declared:
        tool.setdefault("type", "function")
    try:
        held = offers(declared, [SEARCH])
        if isinstance(asked, str | dict):
            choice(asked, held)
    except InvalidInput as exc:
        assert exc.field.startswith("tool")  # noqa: PT017 - either outcome is right
