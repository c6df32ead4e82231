"""What `/v1/responses` takes and answers, beside the values of the responses package.

Unknown fields are ignored, as OpenAI's clients expect. Times are whole seconds since 1970."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from memoranda.responses.items import MAX_ITEMS, SentItem
from memoranda.responses.records import ResponseEntry
from memoranda.responses.values import ONE_HISTORY, Item, ResponseRequest, ResponseUsage, Status
from memoranda.validation.constraints import Constraint, OneOf

Limit = Annotated[int, Meta(ge=1, le=100)]


SentInput = str | Annotated[list[SentItem], Meta(max_length=MAX_ITEMS)]


class ResponseBody(ResponseRequest, kw_only=True):
    """A response to be made."""

    input: SentInput | None = None


class InputTokensBody(ResponseRequest, kw_only=True):
    """A request as for a response, whose input is only counted."""

    input: SentInput | None = None


class CompactBody(ResponseRequest, kw_only=True):
    """What is to be compacted: `input`, and what `previous_response_id` leads to. `model` is required, as by OpenAI."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        ONE_HISTORY,
        OneOf(
            ("input", "previous_response_id", "conversation"),
            "holds nothing to compact, nor does what came before",
        ),
    )
    input: SentInput | None = None
    model: str


class ResponseFrame(ResponseRequest, kw_only=True):
    """A text frame of a client: `response.create` with the fields of a response, beside `type` or in `response`.
    Responses of one `stream_id` come one after the other, those of several at the same time. With `generate` false
    nothing is answered; the input waits for what follows it. Which fields go together is checked when it is its
    turn."""

    constraints: ClassVar[tuple[Constraint, ...]] = ()
    type: str
    stream_id: str | None = None
    generate: bool | None = None
    response: ResponseRequest | None = None


class ResponseQuery(msgspec.Struct, kw_only=True):
    """How a response is shown. `stream` sends its events again, from the one behind number `starting_after`."""

    include: list[str] | None = None
    stream: bool = False
    starting_after: int | None = None
    include_obfuscation: bool | None = None


class ResponsesQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of the stored responses, of one status when it is named."""

    limit: Limit = 20
    after: str | None = None
    before: str | None = None
    order: Literal["asc", "desc"] = "desc"
    status: Status | None = None


class InputItemsQuery(msgspec.Struct, kw_only=True):
    """A page of what was said to the model."""

    limit: Limit = 20
    after: str | None = None
    order: Literal["asc", "desc"] = "desc"
    include: list[str] | None = None


class ItemPage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of items; `after=last_id` asks for the next one."""

    data: list[Item]
    first_id: str
    last_id: str
    has_more: bool


class ResponseEntryObject(ResponseEntry, kw_only=True, tag_field="object", tag="response.entry"):
    """A response in a list, without its output."""


class ResponsePage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of responses; `after=last_id` asks for the next one."""

    data: list[ResponseEntryObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedResponse(msgspec.Struct, kw_only=True, tag_field="object", tag="response"):
    """The id that is gone."""

    id: str
    deleted: bool = True


class InputTokens(msgspec.Struct, kw_only=True, tag_field="object", tag="response.input_tokens"):
    """How many tokens the model would read."""

    input_tokens: int


class CompactionObject(msgspec.Struct, kw_only=True, tag_field="object", tag="response.compaction"):
    """Items that stand for those that were given; the one of type `compaction` is for this server to read."""

    id: str
    created_at: int
    output: list[Item]
    usage: ResponseUsage
