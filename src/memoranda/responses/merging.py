"""Merging of a request with an agent profile. No I/O."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from memoranda.config.sections import Config, Summarization
from memoranda.errors import InvalidInput
from memoranda.responses.declared import FILE_SEARCH, MAX_STORES, Tool, kind_of, stores_of
from memoranda.responses.profile_values import Profile, ProfileMemory
from memoranda.responses.values import MemoryUse, ResponseRequest

OWN = ("model", "tool_choice", "temperature", "top_p", "max_output_tokens")
"""Fields of the request that replace those of the profile as a whole."""
GROUPS = ("text", "reasoning")
"""Fields whose members are merged one by one."""
MAX_FILLED = 1_000_000
"""Characters that variables may add to an agent's instructions."""
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}")


class Summarized(Summarization, frozen=True, kw_only=True):
    """How a long conversation is summarized, and who says whether it is: an agent, or what is switched for the tenant
    and for `channel_id`, else the configuration."""

    by_agent: bool = False
    channel_id: str | None = None


class Effective(msgspec.Struct, kw_only=True):
    """What is to be answered: the request with all that its agent adds, how long conversations are summarized, the
    agent's id. `left_out` are vector stores of the agent that are not searched: they are gone or not for this subject
    to see, or files are not searched here at all."""

    request: ResponseRequest
    summarization: Summarized
    agent_id: str | None = None
    left_out: list[str] = []


def merged(profile: Profile, request: ResponseRequest) -> ResponseRequest:
    """The request with the fields of the profile; fields of the request take precedence.

    Its tools come first, then those of the profile that it does not replace: functions by name, MCP servers by label,
    others by type. A file search has the stores of both. The profile's instructions go before the request's.

    Raises:
        InvalidInput: the instructions need a variable without a value; or both name too many stores.
    """
    whole = {name: _first(getattr(request, name), getattr(profile, name)) for name in OWN}
    groups = {name: _over(getattr(profile, name), getattr(request, name)) for name in GROUPS}
    return msgspec.structs.replace(
        request,
        agent=None,
        agent_id=profile.id,
        instructions=_instructions(profile, request),
        tools=_tools(profile.tools, request.tools),
        memory=_memory(profile.memory, request.memory),
        **whole,
        **groups,
    )


def _first(value: Any, other: Any) -> Any:
    return other if value is None else value


def _over(below: dict[str, Any] | None, above: dict[str, Any] | None) -> dict[str, Any] | None:
    return above if below is None else below if above is None else {**below, **above}


def _instructions(profile: Profile, request: ResponseRequest) -> str | None:
    own = (
        filled(profile.instructions, {**profile.variables, **(request.variables or {})})
        if profile.instructions
        else None
    )
    return "\n\n".join(text for text in (own, request.instructions) if text) or request.instructions


def filled(text: str, variables: Mapping[str, str]) -> str:
    """The text with each `{{name}}` replaced, once: placeholders inside values are not replaced.

    Raises:
        InvalidInput: a variable has no value; or the text becomes longer than `MAX_FILLED` characters.
    """
    chars_left = MAX_FILLED

    def value(place: re.Match[str]) -> str:
        nonlocal chars_left
        if place[1] not in variables:
            says = f"is missing: the agent's instructions need a value for {{{{{place[1]}}}}}"
            raise InvalidInput(f"variables.{place[1]}", says)
        chars_left -= len(variables[place[1]])
        if chars_left < 0:
            raise InvalidInput(
                f"variables.{place[1]}", f"makes the instructions longer than {MAX_FILLED} characters"
            )
        return variables[place[1]]

    return _PLACE.sub(value, text)


def _tools(below: list[Tool], above: list[Tool] | None) -> list[Tool] | None:
    if above is None:
        return below or None
    named = {kind_of(tool) for tool in above}
    search = next((tool for tool in below if tool["type"] == FILE_SEARCH), None)
    own = above if search is None else _searching(above, search)
    return [*own, *(tool for tool in below if kind_of(tool) not in named)]


def _searching(above: list[Tool], search: Tool) -> list[Tool]:
    """The request's tools; the first file search among them also searches the profile's stores."""
    at = next((i for i, tool in enumerate(above) if tool.get("type") == FILE_SEARCH), None)
    if at is None:
        return above
    own = above[at]
    named = own.get("vector_store_ids")
    if named is None:
        named = []
    if not isinstance(named, list):  # the tool's own validation reports it
        return above
    both = [*named, *(id_ for id_ in search["vector_store_ids"] if id_ not in named)]
    if len(both) > MAX_STORES:
        says = f"are {len(both)} with those of the agent; at most {MAX_STORES} are searched together"
        raise InvalidInput(f"tools[{at}].vector_store_ids", says)
    return [*above[:at], {**search, **own, "vector_store_ids": both}, *above[at + 1 :]]


def _memory(below: ProfileMemory | None, above: MemoryUse | bool | None) -> MemoryUse | bool | None:
    if below is None or above is False:
        return above
    defaults = MemoryUse(
        retrieval=_first(below.retrieval, below.episodic),
        extraction=below.episodic,
        max_results=below.max_results,
        min_score=below.min_score,
        kinds=None if below.kinds is None else list(below.kinds),
        share=below.share,
    )
    if above is True:
        return msgspec.structs.replace(defaults, retrieval=True)
    given = {} if above is None else {name: getattr(above, name) for name in MemoryUse.__struct_fields__}
    return msgspec.structs.replace(
        defaults, **{name: value for name, value in given.items() if value is not None}
    )


def effective(
    profile: Profile | None,
    request: ResponseRequest,
    config: Config,
    seen: Collection[str] | None = None,
    switched: bool | None = None,
) -> Effective:
    """The request merged with its profile and the configuration. `seen` are the stores of the profile that the subject
    may read (None: all of them); the others are left out, like deleted ones. `switched` says whether conversations
    are summarized in the request's channel and tenant (None: nothing is switched there).

    Raises:
        InvalidInput: as `merged`; or the request searches files where that is switched off.
    """
    searching = config.responses.file_search
    if not searching:
        _refuse_search(request.tools or [])
    if profile is None:
        return Effective(request=request, summarization=_summarized(None, request, config, switched))
    stores = stores_of(profile.tools)
    readable = stores if seen is None else [id_ for id_ in stores if id_ in seen]
    readable = readable if searching else []
    return Effective(
        request=merged(profile if readable == stores else narrowed(profile, readable), request),
        summarization=_summarized(profile, request, config, switched),
        agent_id=profile.id,
        left_out=[id_ for id_ in stores if id_ not in readable],
    )


def _summarized(
    profile: Profile | None, request: ResponseRequest, config: Config, switched: bool | None
) -> Summarized:
    own = None if profile is None or profile.memory is None else profile.memory.summarization
    settings = msgspec.structs.asdict(config.summarization)
    settings["enabled"] = _first(own, _first(switched, config.summarization.enabled))
    return Summarized(**settings, by_agent=own is not None, channel_id=channel_of(request))


def channel_of(request: ResponseRequest) -> str | None:
    """The channel that a request names."""
    return request.memory.channel_id if isinstance(request.memory, MemoryUse) else None


def _refuse_search(tools: list[Tool]) -> None:
    for i, tool in enumerate(tools):
        if tool.get("type") == FILE_SEARCH:
            says = "files are not searched here: `responses.file_search` is false; leave the tool out"
            raise InvalidInput(f"tools[{i}].type", says)


def narrowed(profile: Profile, readable: Collection[str]) -> Profile:
    """The profile with a file search over its `readable` stores only, or without one if none is left; then no tool
    choice demands it."""
    tools = []
    for tool in profile.tools:
        if tool["type"] != FILE_SEARCH:
            tools.append(tool)
        elif left := [id_ for id_ in tool["vector_store_ids"] if id_ in readable]:
            tools.append({**tool, "vector_store_ids": left})
    choice = profile.tool_choice
    demanded = choice.get("type") == FILE_SEARCH if isinstance(choice, dict) else not tools
    gone = len(tools) < len(profile.tools) and demanded
    return msgspec.structs.replace(profile, tools=tools, tool_choice=None if gone else choice)
