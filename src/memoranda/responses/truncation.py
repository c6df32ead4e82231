"""What is cut from a request that is longer than the model's context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from memoranda.errors import InvalidInput
from memoranda.responses.history import Past
from memoranda.responses.messages import (
    fitting,
    starts_of,
    tokens_of_items,
    tokens_of_messages,
    tokens_of_tools,
    turns_of,
)
from memoranda.responses.plan import Plan
from memoranda.responses.values import Item
from memoranda.text.tokens import DEFAULT_ENCODING

ANSWER_RESERVE = 1_024
"""Tokens reserved for the answer if neither the request nor the configuration limits it."""


class ContextTooLong(InvalidInput):
    """The request is longer than the model's context: `context_length_exceeded`."""


def fitted(
    plan: Plan, system: list[dict[str, Any]], shapes: list[dict[str, Any]], limit: int
) -> tuple[Past, list[Item]]:
    """The past and the input of a plan, cut to what the messages before them (`system`) and the tools (`shapes`) leave
    of the model's context of `limit` tokens.

    Raises:
        ContextTooLong: it is too long, and must not be cut; the message names truncation if that helps.
    """
    truncation = plan.request.truncation or "disabled"
    try:
        return _cut(plan, system, shapes, limit, truncation)
    except ContextTooLong as exc:
        if truncation != "disabled" or plan.exchange is not None:  # chat completions have no such field
            raise
        _cut(plan, system, shapes, limit, "auto")
        says = str(exc).removeprefix(f"{exc.field}: ")
        raise ContextTooLong(exc.field, f"{says}, or send truncation: auto") from exc


def _cut(
    plan: Plan, system: list[dict[str, Any]], shapes: list[dict[str, Any]], limit: int, truncation: str
) -> tuple[Past, list[Item]]:
    """The past and the input with this truncation. With `auto`, old turns of an input that brings its own history
    are left out, too.

    Raises:
        ContextTooLong: it is too long.
    """
    past, new = (plan.past, plan.input) if truncation == "disabled" else _past_and_new(plan)
    used = (
        tokens_of_messages(system, plan.encoding)
        + tokens_of_tools(shapes, plan.encoding)
        + tokens_of_items(new, plan.encoding)
        + min(plan.response.max_output_tokens or ANSWER_RESERVE, limit // 2)
    )
    return fit(past, used, limit, truncation, new, plan.encoding), new


def fit(
    past: Past,
    used_tokens: int,
    limit: int,
    truncation: str,
    new: Sequence[Item] = (),
    encoding: str = DEFAULT_ENCODING,
) -> Past:
    """The past, cut to what `used_tokens` (instructions, tools, `new` input, reserve for the answer) leave of `limit`.
    With truncation `auto` the oldest whole turns are dropped, and the summary only if no turn fits beside it; a turn
    whose call `new` answers stays.

    Raises:
        ContextTooLong: it does not fit, and truncation is `disabled` or does not help.
    """
    budget = limit - used_tokens
    if past.tokens <= budget:
        return past
    if truncation != "auto":
        raise _too_long(used_tokens + past.tokens, limit, "earlier turns, " if past.tokens else "")
    summary = past.summary
    summary_tokens = 0 if summary is None else summary.token_count
    start, tokens = fitting(past.items, budget - summary_tokens, new, encoding)
    if summary_tokens and (tokens + summary_tokens > budget or start == len(past.items)):
        bare = fitting(past.items, budget, new, encoding)
        if summary_tokens > budget or bare[0] < len(past.items):
            (start, tokens), summary, summary_tokens = bare, None, 0
    if tokens > budget:
        raise _too_long(used_tokens, limit)
    items = past.items[start:]
    turns = len(starts_of(items))
    return replace(
        past,
        items=items,
        summary=summary,
        turns=turns,
        tokens=tokens + summary_tokens,
        dropped=past.dropped + past.turns - turns,
    )


def _too_long(tokens: int, limit: int, past: str = "") -> ContextTooLong:
    """Return the error for a request of so many tokens; `past` names an earlier part of them."""
    parts = f"with instructions, tools, {past}and the reserve for the answer"
    says = f"is {tokens} tokens {parts}; the context of the model is {limit} tokens: shorten it"
    return ContextTooLong("input", says)


def _past_and_new(plan: Plan) -> tuple[Past, list[Item]]:
    """The past with the older turns of the input, and the input's last turn."""
    turns = turns_of(plan.input)
    older = [item for turn in turns[:-1] for item in turn]
    if not older:
        return plan.past, plan.input
    past = replace(
        plan.past,
        items=[*plan.past.items, *older],
        turns=plan.past.turns + len(turns) - 1,
        tokens=plan.past.tokens + tokens_of_items(older, plan.encoding),
    )
    return past, turns[-1]
