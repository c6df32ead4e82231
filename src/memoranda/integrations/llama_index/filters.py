"""LlamaIndex's metadata filters as filters of the product."""

from __future__ import annotations

from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilters

from memoranda.errors import InvalidInput

COMPARISONS = {
    FilterOperator.EQ: "eq",
    FilterOperator.NE: "ne",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "nin",
    FilterOperator.ANY: "in",
    FilterOperator.CONTAINS: "eq",
}
"""Operators that the product has; on a list they ask whether an element matches."""


def filter_of(filters: MetadataFilters) -> dict[str, Any]:
    """The equivalent filter of the product.

    Raises:
        InvalidInput: it has an operator or a condition that the product lacks.
    """
    condition = filters.condition or FilterCondition.AND
    if condition not in (FilterCondition.AND, FilterCondition.OR):
        raise InvalidInput("filters.condition", f"{condition.value!r} is unknown here; use and, or")
    parts = [
        filter_of(part)
        if isinstance(part, MetadataFilters)
        else _comparison(part.key, part.operator, part.value)
        for part in filters.filters
    ]
    return {"type": condition.value, "filters": parts}


def _comparison(key: str, operator: FilterOperator, value: Any) -> dict[str, Any]:
    if operator == FilterOperator.ALL:
        return {"type": "and", "filters": [{"type": "eq", "key": key, "value": element} for element in value]}
    if operator == FilterOperator.IS_EMPTY:
        return {"type": "eq", "key": key, "value": None}
    if operator not in COMPARISONS:
        operators = [*COMPARISONS, FilterOperator.ALL, FilterOperator.IS_EMPTY]
        known = ", ".join(each.value for each in operators)
        raise InvalidInput(f"filters.{key}", f"{operator.value!r} is unknown here; use one of {known}")
    return {"type": COMPARISONS[operator], "key": key, "value": value}
