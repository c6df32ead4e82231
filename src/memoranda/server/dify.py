"""`/retrieval`: vector stores as external knowledge of Dify."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memoranda.errors import Forbidden, InvalidInput, MissingKey, NotFound, Unauthorized
from memoranda.knowledge import Knowledge
from memoranda.knowledge.values import Passage, PassageQuery
from memoranda.server.errors import ErrorEnvelope, Problem
from memoranda.server.route import Api, Call, Route
from memoranda.store.paging import all_rows
from memoranda.types import Question

Operator = Literal[
    "is", "is not", "in", "not in", "empty", "not empty", "null", "not null", "=", "≠", ">", "<", "≥", "≤", "before",
    "after",
]  # fmt: skip
"""Dify's operators but those that look inside a text, which filters do not."""
Value = str | int | float | None | Annotated[list[str], Meta(max_length=1_000)]
COMPARISONS = {
    "is": "eq", "is not": "ne", "in": "in", "not in": "nin", "empty": "eq", "not empty": "ne", "null": "eq",
    "not null": "ne", "=": "eq", "≠": "ne", ">": "gt", "<": "lt", "≥": "gte", "≤": "lte", "before": "lt", "after": "gt",
}  # fmt: skip
"""Dify's operators as ours."""
VALUELESS = frozenset({"empty", "not empty", "null", "not null"})
NUMERIC = frozenset({"=", "≠", ">", "<", "≥", "≤"})
NUMBER = r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$"
Attribute = Annotated[str, Meta(extra_json_schema={"pattern": r"^[^$]"})]
"""The name of an attribute of files."""
BAD_HEADER, BAD_KEY, NO_KNOWLEDGE = 1001, 1002, 2001
PAGE = 100


class DifyFailure(ErrorEnvelope):
    """An error: what went wrong, and Dify's code with the message. 1001 is a missing key, 1002 one that is not allowed,
    2001 unknown knowledge; any other error has its HTTP status."""

    error_code: int
    error_msg: str


def failure(status: int, error: Problem, exc: Exception) -> DifyFailure:
    codes: dict[type[Exception], int] = {
        MissingKey: BAD_HEADER, Unauthorized: BAD_KEY, Forbidden: BAD_KEY, NotFound: NO_KNOWLEDGE,
    }  # fmt: skip
    code = next((code for kind, code in codes.items() if isinstance(exc, kind)), status)
    return DifyFailure(error, code, error.message)


class RetrievalSetting(msgspec.Struct, kw_only=True):
    """How many records at most, and the least similarity, 0 to 1 (0: no floor)."""

    top_k: Annotated[int, Meta(ge=1, le=1_000)] = 10
    score_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None


class DifyCondition(msgspec.Struct, kw_only=True):
    """A comparison of a file's attribute. `name` is the attribute, or a list with one."""

    name: Attribute | Annotated[list[Attribute], Meta(min_length=1, max_length=1)]
    comparison_operator: Operator
    value: Value = None


def _with(schema: dict[str, Any], *operators: str) -> dict[str, Any]:
    """The schema of a condition with one of the operators, whose value is like this."""
    return {
        "required": ["value"],
        "properties": {"comparison_operator": {"enum": list(operators)}, "value": schema},
    }


Condition = Annotated[
    DifyCondition,
    Meta(
        extra_json_schema={
            "anyOf": [
                {"properties": {"comparison_operator": {"enum": sorted(VALUELESS)}}},
                _with({"type": "array", "maxItems": 1_000}, "in", "not in"),
                _with({"type": ["string", "number"]}, "is", "is not", "before", "after"),
                _with({"type": ["string", "number"], "pattern": NUMBER}, *sorted(NUMERIC)),
            ]
        }
    ),
]


class MetadataCondition(msgspec.Struct, kw_only=True):
    """Comparisons that must all hold, or with `or` at least one of them."""

    conditions: Annotated[list[Condition], Meta(max_length=500)] = []
    logical_operator: Literal["and", "or"] = "and"


class RetrievalBody(msgspec.Struct, kw_only=True):
    """A search in one vector store: `knowledge_id` is its id or its name."""

    knowledge_id: Annotated[str, Meta(min_length=1)]
    query: Question
    retrieval_setting: RetrievalSetting = msgspec.field(default_factory=RetrievalSetting)
    metadata_condition: MetadataCondition | None = None


class DifyRecord(msgspec.Struct, kw_only=True):
    """A chunk that was found: its text, its score (0 to 1), the file's title or name, and where it is from."""

    content: str
    score: float
    title: str
    metadata: dict[str, Any]


class Retrieval(msgspec.Struct, kw_only=True):
    """The chunks, best first."""

    records: list[DifyRecord]


async def retrieve(call: Call[RetrievalBody, None]) -> Retrieval:
    body = call.body
    store = await store_named(call.workspace.knowledge, body.knowledge_id)
    setting = body.retrieval_setting
    query = PassageQuery(
        queries=[body.query],
        limit=setting.top_k,
        threshold=setting.score_threshold,
        filters=None if body.metadata_condition is None else filters_of(body.metadata_condition),
    )
    answer = await call.workspace.knowledge.stores.search([store], query)
    call.state.telemetry.searched(len(answer.data), answer.query_time, answer.degraded)
    return Retrieval(records=[_record(passage) for passage in answer.data])


async def store_named(knowledge: Knowledge, name: str) -> str:
    """The id of the vector store with this id, else of the one with this name that has not expired.

    Raises:
        NotFound: there is none for this subject.
        InvalidInput: several have the name.
    """
    try:
        return (await knowledge.stores.get(name)).id
    except NotFound:
        pass
    stores = all_rows(knowledge.stores.list, PAGE)
    named = [store.id async for store in stores if store.name == name and store.status != "expired"]
    if len(named) > 1:
        raise InvalidInput("knowledge_id", f"is the name of {len(named)} vector stores; send an id")
    if not named:
        raise NotFound(f"no vector store {name!r}")
    return named[0]


def filters_of(asked: MetadataCondition) -> dict[str, Any] | None:
    """Convert conditions to a filter of this library; None without conditions.

    Raises:
        InvalidInput: names the condition that is wrong or not supported.
    """
    parts = [
        _condition(condition, f"metadata_condition.conditions[{i}]")
        for i, condition in enumerate(asked.conditions)
    ]
    return {"type": asked.logical_operator, "filters": parts} if parts else None


def _condition(asked: DifyCondition, path: str) -> dict[str, Any]:
    key = asked.name if isinstance(asked.name, str) else asked.name[0]
    if not key or key.startswith("$"):
        raise InvalidInput(f"{path}.name", "must be the name of an attribute")
    operator, value = asked.comparison_operator, asked.value
    if operator in VALUELESS:
        return {"type": COMPARISONS[operator], "key": key, "value": None}
    if isinstance(value, list) != (operator in ("in", "not in")) or value is None:
        what = "a list of texts" if operator in ("in", "not in") else "a text or a number"
        raise InvalidInput(f"{path}.value", f"must be {what} with {operator!r}")
    if operator in NUMERIC and isinstance(value, str):
        value = _number(value, f"{path}.value", operator)
    return {"type": COMPARISONS[operator], "key": key, "value": value}


def _number(text: str, path: str, operator: str) -> float:
    try:
        return float(text)
    except ValueError as exc:
        raise InvalidInput(path, f"must be a number with {operator!r}") from exc


def _record(passage: Passage) -> DifyRecord:
    place = {
        "vector_store_id": passage.vector_store_id,
        "file_id": passage.file_id,
        "filename": passage.filename,
        "chunk_id": passage.chunk_id,
        "page": passage.page,
        "last_page": passage.last_page,
        "heading": passage.heading,
    }
    metadata = {**passage.attributes, **{name: value for name, value in place.items() if value is not None}}
    return DifyRecord(
        content=passage.text, score=passage.score, title=passage.title or passage.filename, metadata=metadata
    )


DIFY = Api("dify", envelope=DifyFailure, failure=failure)
ROUTES = (
    Route(
        "POST", "/retrieval", "Search a vector store, for Dify", retrieve, "read", Retrieval, RetrievalBody, api=DIFY
    ),
)  # fmt: skip
