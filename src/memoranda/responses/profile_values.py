"""Agent profiles as values: their fields, their checks, their changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.errors import InvalidInput
from memoranda.knowledge.checks import StoreMetadata, metadata_of, text_of
from memoranda.responses.declared import KINDS, MAX_TOOLS, check_tools, flat, without_secrets
from memoranda.responses.values import CHOICES, Temperature, ToolChoice
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
