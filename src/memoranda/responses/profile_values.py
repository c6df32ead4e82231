"""Agent profiles as values: their fields, their checks, their changes, and what a request is with one. No I/O."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.config.agent_sections import Summarization
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput
from memoranda.knowledge.checks import StoreMetadata, metadata_of, text_of
from memoranda.responses.declared import (
    FILE_SEARCH,
    KINDS,
    MAX_STORES,
    MAX_TOOLS,
    Tool,
    check_tools,
    flat,
    kind_of,
    stores_of,
    without_secrets,
)
from memoranda.responses.values import CHOICES, MemoryUse, ResponseRequest, Temperature, ToolChoice
from memoranda.types import NO_NUL, Kinds, Share, any_text, some_text
from memoranda.validation import convert

MAX_NAME_CHARS = 256
MAX_DESCRIPTION_CHARS = 4_096
MAX_INSTRUCTIONS_CHARS = 256_000
MAX_VARIABLES = 64
MAX_VARIABLE_CHARS = 8_192
MAX_OPTIONS_BYTES = 64 << 10
ID = re.compile(r"agent_[A-Za-z0-9_.-]{1,64}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
Name = Annotated[str, some_text(MAX_NAME_CHARS)]
Variables = Annotated[
    dict[str, Annotated[str, Meta(extra_json_schema={"maxLength": MAX_VARIABLE_CHARS, "pattern": NO_NUL})]],
    Meta(max_length=MAX_VARIABLES, extra_json_schema={"propertyNames": {"pattern": f"^{VARIABLE.pattern}$"}}),
]


def _required(type_: Any) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(type_) if field.required]


KnownTool = Annotated[
    dict[str, Any],
    Meta(
        extra_json_schema={
            "anyOf": [
                {"properties": {"type": {"const": kind}}, "required": ["type", *_required(type_)]}
                for kind, type_ in KINDS.items()
            ]
        }
    ),
]
Tools = Annotated[list[KnownTool], Meta(max_length=MAX_TOOLS)]
Count = Annotated[int, Meta(ge=1)]
Description = Annotated[str, any_text(MAX_DESCRIPTION_CHARS)]
Instructions = Annotated[str, any_text(MAX_INSTRUCTIONS_CHARS)]


class ProfileMemory(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What an agent does with memory where a request does not say. `episodic` looks memories up and has facts taken out
    of what is said, or neither; `retrieval` is the first of the two alone, as are the bounds: memories at most, their
    least similarity, their kinds. With `share` what is said to it is remembered for the user whichever agent answers;
    else for this agent alone. `summarization` replaces the beginning of long conversations by a summary. Null is as
    configured."""

    episodic: bool | None = None
    retrieval: bool | None = None
    max_results: Annotated[int, Meta(ge=1, le=100)] | None = None
    min_score: Share | None = None
    kinds: Kinds | None = None
    share: bool | None = None
    summarization: bool | None = None


class NewProfile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An agent to be made. What a request leaves open is as it says here; `variables` are values for each `{{name}}` in
    the instructions, where a request gives none. `metadata` is about the agent and goes into no response."""

    name: Name
    description: Description | None = None
    instructions: Instructions | None = None
    model: Name | None = None
    tools: Tools = []
    tool_choice: ToolChoice | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    max_output_tokens: Count | None = None
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    memory: ProfileMemory | None = None
    variables: Variables = {}
    metadata: StoreMetadata = {}


class Profile(NewProfile, kw_only=True, tag_field="object", tag="agent"):
    """An agent. `user_id` made it (null: it is the tenant's); `read_only` ones are of the configuration, and have no
    times. Times are Unix seconds. Secrets in tools read `***` wherever it is shown."""

    id: str
    user_id: str | None = None
    read_only: bool = False
    created_at: int | None = None
    updated_at: int | None = None


class ProfileChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The fields of an agent to change; what is left out stays, null is what a new agent has."""

    name: Name | UnsetType = UNSET
    description: Description | None | UnsetType = UNSET
    instructions: Instructions | None | UnsetType = UNSET
    model: Name | None | UnsetType = UNSET
    tools: Tools | None | UnsetType = UNSET
    tool_choice: ToolChoice | None | UnsetType = UNSET
    temperature: Temperature | None | UnsetType = UNSET
    top_p: Share | None | UnsetType = UNSET
    max_output_tokens: Count | None | UnsetType = UNSET
    reasoning: dict[str, Any] | None | UnsetType = UNSET
    text: dict[str, Any] | None | UnsetType = UNSET
    memory: ProfileMemory | None | UnsetType = UNSET
    variables: Variables | None | UnsetType = UNSET
    metadata: StoreMetadata | None | UnsetType = UNSET


def fields_of(value: msgspec.Struct, type_: type[msgspec.Struct] = NewProfile) -> dict[str, Any]:
    """The fields of `type_` that the value has set, as plain data."""
    values = {name: getattr(value, name) for name in type_.__struct_fields__}
    return {name: msgspec.to_builtins(each) for name, each in values.items() if each is not UNSET}


def checked(given: Any, where: str = "") -> NewProfile:
    """The profile that was given, as a value or a mapping, once nothing in it is wrong.

    Raises:
        InvalidInput: names the field by its path, below `where`, and the fix.
    """
    raw = fields_of(given) if isinstance(given, NewProfile) else given
    profile = convert(raw, NewProfile, where)
    profile.tools = [flat(tool) for tool in profile.tools]
    if isinstance(profile.tool_choice, dict):
        profile.tool_choice = flat(profile.tool_choice)
    at = f"{where}." if where else ""
    text_of(profile.name, f"{at}name", MAX_NAME_CHARS, empty=False)
    most = {"description": MAX_DESCRIPTION_CHARS, "instructions": MAX_INSTRUCTIONS_CHARS, "model": 256}
    for field, length in most.items():
        if (text := getattr(profile, field)) is not None:
            text_of(text, f"{at}{field}", length, empty=field != "model")
    check_tools(profile.tools, f"{at}tools")
    _check_choice(profile.tool_choice, f"{at}tool_choice")
    for field in ("reasoning", "text", "tool_choice"):
        _check_size(getattr(profile, field), f"{at}{field}")
    _check_variables(profile.variables, f"{at}variables")
    metadata_of(profile.metadata, f"{at}metadata")
    return profile


def _check_choice(choice: str | dict[str, Any] | None, where: str) -> None:
    if isinstance(choice, str) and choice not in CHOICES:
        raise InvalidInput(where, f"must be one of {', '.join(CHOICES)}, or an object that names a tool")
    if isinstance(choice, Mapping) and not isinstance(choice.get("type"), str):
        raise InvalidInput(f"{where}.type", "is required, such as function or file_search")


def _check_size(value: Any, where: str) -> None:
    try:
        size = len(msgspec.json.encode(value))
    except (UnicodeEncodeError, OverflowError, TypeError) as exc:
        raise InvalidInput(where, f"cannot be written as JSON: {exc}") from exc
    if size > MAX_OPTIONS_BYTES:
        raise InvalidInput(where, f"is {size} bytes as JSON, at most {MAX_OPTIONS_BYTES} are kept")


def _check_variables(variables: Mapping[str, str], where: str) -> None:
    if len(variables) > MAX_VARIABLES:
        raise InvalidInput(where, f"holds {len(variables)} variables, at most {MAX_VARIABLES} are kept")
    for name, value in variables.items():
        if not VARIABLE.fullmatch(name):
            raise InvalidInput(
                f"{where}.{name}"[:100], "variables are named with letters, digits and _, at most 64 of them"
            )
        text_of(value, f"{where}.{name}", MAX_VARIABLE_CHARS)


def changed(profile: NewProfile, change: Mapping[str, Any]) -> NewProfile:
    """The profile with the fields of `change`; null is what a new profile has.

    Raises:
        InvalidInput: names the field and the fix.
    """
    raw = fields_of(profile) | dict(change)
    return checked({name: value for name, value in raw.items() if value is not None})


def configured(entry: Any, where: str) -> Profile:
    """A profile of the configuration: the same fields, and an `id`.

    Raises:
        InvalidInput: names the field by its path, below `where`, and the fix.
    """
    if not isinstance(entry, Mapping):
        raise InvalidInput(where, "must be an agent profile: a mapping with an `id` and a `name`")
    id_ = entry.get("id")
    if not isinstance(id_, str) or not ID.fullmatch(id_):
        says = "must be agent_ and then up to 64 letters, digits, dots, _ or -, such as agent_support"
        raise InvalidInput(f"{where}.id", says)
    fields = checked({key: value for key, value in entry.items() if key != "id"}, where)
    return Profile(id=id_, read_only=True, **_fields(fields))


def _fields(profile: NewProfile) -> dict[str, Any]:
    return {name: getattr(profile, name) for name in NewProfile.__struct_fields__}


def profile_of(fields: NewProfile, **own: Any) -> Profile:
    """The profile of these fields and of `own`: id, owner and times."""
    return Profile(**_fields(fields), **own)


def shown(profile: Profile) -> Profile:
    """The profile without the secrets in its tools."""
    return msgspec.structs.replace(profile, tools=without_secrets(profile.tools))


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
