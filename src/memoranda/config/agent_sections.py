"""Settings of what models do and what callers may: responses, sessions, facts, keys, spending."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memoranda.config.sources import Count, Seconds, Section, Size, Text, Unit, Weight
from memoranda.types import Role

ModelUrl = Annotated[
    str, Meta(pattern=r"^[a-z][a-z0-9+.-]*:", description="a URL such as `http://localhost:8000/v1`")
]
OPERATOR_TENANT = "default"
"""The tenant whose admins operate the installation, and which owns the jobs about all tenants."""


class Model(Section, frozen=True, kw_only=True):
    """The language model."""

    url: ModelUrl | None = None
    """The language model: a chat-completions API, such as `http://localhost:8000/v1`, or `scripted:FILE` for tests;
    unset, answers are quoted from what was found."""
    name: Text | None = None
    """The model that answers when a request names none."""
    api_key: Text | None = None
    """The key of the API; at most one of `api_key`, `api_key_env` and `api_key_file`."""
    api_key_env: Text | None = None
    """The environment variable that holds it."""
    api_key_file: Text | None = None
    """The file that holds it, read anew for each request."""
    provider: Text | None = None
    """Whose API it is, where its address does not tell."""
    timeout: Seconds = 60.0
    """Seconds without more of an answer before a call is given up."""
    retries: Size = 2
    """Tries after the first, only while nothing of the answer has come."""
    context_tokens: Count = 128_000
    """Tokens the model reads."""
    context_role: Literal["user", "system"] = "user"
    """The role of the message that quotes memories, documents and summaries to it; `system` for models whose turns
    must alternate."""
    max_output_tokens: Count | None = None
    """Tokens it writes at most when a request does not say; unset, as the API has it."""
    fallback: bool = True
    """Whether a question that the model fails is answered with quotes from what was found."""

    def __repr__(self) -> str:
        return f"Model(url={self.url!r}, name={self.name!r})"


class Responses(Section, frozen=True, kw_only=True):
    """How a response is made."""

    max_tool_calls: Count = 32
    """Tool calls of one response when the request does not say."""
    tool_timeout: Seconds = 30.0
    """Seconds one tool call may take."""
    memory: bool = True
    """Whether memories are looked up before the model is asked."""
    memory_results: Count = 10
    """Memories given to the model at most."""
    memory_min_score: Unit | None = None
    """Least similarity of such a memory, 0 to 1, in place of what contexts find relevant."""
    memory_tokens: Count = 2_000
    """Tokens of memories given to the model at most."""
    memory_forget: Literal["confirmed", "immediately"] = "confirmed"
    """Whether the tool `memory_forget` lists first and deletes once the user has `confirmed`, or deletes `immediately`
    what has every term of the query."""
    file_results: Count = 10
    """Passages of one file search at most."""
    file_min_score: Unit = 0.5
    """Least similarity of such a passage, 0 to 1; one that is probably relevant (a score of .5) is taken below it,
    too."""
    file_tokens: Count = 4_000
    """Tokens of passages given to the model at most."""
    file_search: bool = True
    """Whether responses search files; a request that asks for it where it is off is refused."""
    search_first: bool | None = None
    """Whether files are searched for the question before the model's first turn, where a request has `file_search`;
    unset, for small models."""
    keepalive: Seconds = 15.0
    """Seconds between signs of life on a stream."""
    background_at_once: Size = 8
    """Background responses that run at once; 0 leaves them to `memoranda worker`."""
    mcp_hosts: list[str] | None = None
    """Hosts of MCP servers that may be called; unset, any while only this machine reaches the server and no `keys` are
    set, and none otherwise."""


class Summarization(Section, frozen=True, kw_only=True):
    """Summaries of long conversations: all but the last turns are replaced."""

    enabled: bool = False
    """Whether long conversations are given to the model as a summary and their last turns."""
    strategy: Literal["lazy", "eager"] = "lazy"
    """`lazy`: made by the request that needs it; `eager`: after a response."""
    token_threshold: Count = 8_000
    """Tokens of a conversation above which it is summarized."""
    window_size: Count = 10
    """Last turns that are shown in full."""
    summary_max_tokens: Count = 500
    """Tokens of a summary at most."""
    model: str | None = None
    """Another model's name for summaries; unset or empty, the one that answers."""


class Sessions(Section, frozen=True, kw_only=True):
    """The message log and its sessions."""

    enabled: bool = True
    """Whether a channel's messages are cut into sessions; off, the log of what is said goes on, and nothing is closed
    or summarized."""
    gap_minutes: Annotated[float, Meta(gt=0)] = 30.0
    """Minutes of silence after which a session has ended; exactly so many are none too many."""
    min_messages: Count = 4
    """Messages of a session that is summarized."""
    summarize: bool = True
    """Whether closed sessions are summarized: by the model, or by rules where none is configured."""
    summary_model: str | None = None
    """Another model's name for it; unset, the one that answers."""
    summary_version: Count = 1
    """Raise it, and all sessions are summarized again."""
    summary_max_tokens: Count = 300
    """Tokens of a summary at most."""
    rollups: bool = True
    """Whether a channel's weeks are summarized, too."""
    max_retrieved: Size = 3
    """Summaries of earlier sessions in a context at most."""
    snippet_chars: Count = 420
    """Characters of each of them."""
    recent_messages: Size = 10
    """Messages of the conversation in a context that names its session or channel and gives none itself; 0: none."""
    time_zone: Text | None = None
    """Where callers are who do not say so, such as `Europe/Berlin`: for days without a zone, and the day of what comes
    in UTC; null: UTC. A key (`keys[].time_zone`), a request (`X-Memoranda-Time-Zone`) and `Subject(time_zone=...)`
    say it for one user."""
    index_messages: bool = True
    """Whether searches find what is said, in responses too; off, memory is as if nothing were said, and the log goes
    on."""
    min_length: Size = 10
    """Characters of a message that is found at least."""
    max_length: Size = 0
    """Characters of one at most; 0: any number."""
    roles: list[str] = msgspec.field(default_factory=lambda: ["user", "assistant"])
    """Roles whose messages are found; `tool` is what tools gave back."""
    batch_size: Count = 100
    """Messages that are kept in one transaction."""


class Facts(Section, frozen=True, kw_only=True):
    """Facts of conversations."""

    extraction: Literal["off", "lazy", "eager"] = "off"
    """Whether facts are taken out of what is said: `lazy` when a session is closed, `eager` after each turn; agents
    and requests may ask for it, or not."""
    model: str | None = None
    """The language model's name for this, when not `model.name`."""
    capture_rules: bool = False
    """Whether patterns make notes of preferences, decisions and facts in what users say, without a model."""
    max_per_turn: Count = 3
    """Notes that patterns make of one message at most."""
    reconcile: bool = True
    """Whether the model is asked, in a job, what facts that callers write end of the others."""
    decay: bool = True
    """Whether facts that are not used lose worth, and are archived in time."""
    half_life_days: Annotated[float, Meta(gt=0)] = 90.0
    """Days without use after which a fact is worth half, when the least valuable are looked for."""
    consolidation_hours: Size = 24
    """How often related facts are made one; 0: only when asked for."""


class UploadAsk(Section, frozen=True, kw_only=True):
    """Asking uploaded documents at `/api/v1/upload-ask`."""

    enabled: bool = True
    """Whether uploaded documents can be asked at `/api/v1/upload-ask`."""
    memory: bool = True
    """Whether memories are looked up for a question and made of its answer; off, the message log and the log of
    questions go on."""
    document_results: Count = 5
    """Chunks of documents that a question looks up when it does not say."""
    memory_results: Size = 3
    """Memories that a question looks up when it does not say."""
    memory_min_score: Unit = 0.0
    """Least similarity of such a memory, 0 to 1; 0 is no floor."""
    document_tokens: Count = 4_000
    """Tokens of documents in a prompt at most."""
    memory_tokens: Count = 1_000
    """Tokens of memories in a prompt at most."""
    history_tokens: Size = 800
    """Tokens of what was said last in a prompt at most, when a question does not say."""
    summary_every_turns: Count = 6
    """Questions of a session after which they are summarized as one memory."""
    summary_above_tokens: Count = 4_000
    """Tokens of a session, since the last summary, above which it is summarized earlier."""
    summary_max_tokens: Count = 300
    """Tokens of such a summary at most."""
    prune_limit: Size = 200
    """Memories of questions, summaries and notes that are kept of a user."""


ToolSet = Literal["core", "full", "read", "chatgpt"]


class Mcp(Section, frozen=True, kw_only=True):
    """The MCP server."""

    tools: ToolSet = "core"
    """The tools that the MCP server offers where a URL names no set: `core`, `full`, `read` or `chatgpt`."""
    sessions: bool = False
    """Whether `/mcp` has sessions and event streams, kept by one server, for clients that need them."""
    allowed_origins: list[str] = msgspec.field(default_factory=list)
    """Origins of web pages, such as `https://app.example.com`, that may call `/mcp` of a server with keys, beside
    pages of the server's own origin."""


class Console(Section, frozen=True, kw_only=True):
    """The web console at `/console`."""

    enabled: bool = True
    """Whether the server has the web console at `/console`, and accepts the cookie of its login."""


class Spending(Section, frozen=True, kw_only=True):
    """What a tenant may spend in a day (UTC) unless an admin says otherwise; null is as much as it likes."""

    model_calls_per_day: Size | None = None
    """Calls of a language model that a tenant may make in a day, UTC; unset, as many as it likes."""
    model_tokens_per_day: Size | None = None
    """Tokens that a language model may read and write for a tenant in a day."""
    background_tokens_per_day: Size | None = None
    """Tokens of these that extraction of facts and summaries in the background may use; then they wait for the next
    day."""
    embedded_tokens_per_day: Size | None = None
    """Tokens that a tenant may have embedded by a provider in a day."""


class Prices(Section, frozen=True, kw_only=True):
    """What a provider charges for a million tokens; null is not known, and counts as nothing beside a price that is."""

    currency: Text = "USD"
    """The currency of these prices."""
    tokens_in: Weight | None = None
    """What the provider charges for a million tokens that the model reads."""
    tokens_out: Weight | None = None
    """What it charges for a million tokens that the model writes."""
    tokens_embedded: Weight | None = None
    """What it charges for a million tokens that are embedded."""

    def cost(self, tokens_in: int, tokens_out: int, tokens_embedded: int = 0) -> float | None:
        """Return what so many tokens cost, to a millionth of the currency; None if no price is known."""
        prices = (self.tokens_in, self.tokens_out, self.tokens_embedded)
        if not any(price is not None for price in prices):
            return None
        counts = (tokens_in, tokens_out, tokens_embedded)
        return round(sum(n * (price or 0.0) for n, price in zip(counts, prices, strict=True)) / 1e6, 6)


class ServerKey(Section, frozen=True, kw_only=True):
    """A bearer key and whom it stands for. Exactly one of `key`, `key_env` and `key_file` is given; `key` is the
    secret, wherever it was read from."""

    name: Text
    """What logs and `doctor` call it; each name once."""
    role: Role
    """`admin` sees all of the tenant, `service` the scopes it names, `member` and `reader` rows of their user or of
    none; a reader writes nothing."""
    key: Text = ""
    """The bearer key itself."""
    key_env: Text | None = None
    """The environment variable that holds it."""
    key_file: Text | None = None
    """The file that holds it."""
    tenant: Text = OPERATOR_TENANT
    """The tenant it opens."""
    user: Text | None = None
    """The user it stands for."""
    time_zone: Text | None = None
    """Where its user is, such as `Europe/Berlin`; null: as `sessions.time_zone`."""

    def __repr__(self) -> str:
        return (
            f"ServerKey(name={self.name!r}, role={self.role!r}, tenant={self.tenant!r}, user={self.user!r})"
        )
