"""Differences between chat-completions servers, as data: one row each, chosen by `model.provider` or by the URL."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from memoranda.errors import ConfigError


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of server.

    `hosts` are ends of host names and `port` the usual port by which a URL is recognised. `key_variable` has its key,
    read for its own host only. `max_tokens` is its name of the bound on the answer. `leaves_out` are parameters that
    it does not accept. `developer`: it knows that role. `one_system` puts all instructions into one message at the
    start, as chat templates require. `inline_thinking` reads `<think>` in the answer as reasoning. `named_tool`:
    `tool_choice` can name a function; `required` is its word for "some tool". `call_id_chars` is the number of letters
    and digits of a tool call's id, 0 is any. `few_at_once`: one call delays others. `written_calls` reads a tool call
    that is in the answer as JSON text.
    """

    name: str
    hosts: tuple[str, ...] = ()
    port: int | None = None
    key_variable: str | None = None
    max_tokens: str = "max_tokens"
    developer: bool = False
    one_system: bool = False
    inline_thinking: bool = True
    named_tool: bool = True
    required: str = "required"
    call_id_chars: int = 0
    leaves_out: frozenset[str] = frozenset()
    few_at_once: bool = False
    written_calls: bool = True


_NEW = frozenset({"verbosity"})

QUIRKS = {
    quirks.name: quirks
    for quirks in (
        Quirks(
            name="openai",
            hosts=("api.openai.com", ".openai.azure.com", ".services.ai.azure.com"),
            key_variable="OPENAI_API_KEY",
            max_tokens="max_completion_tokens",
            developer=True,
            inline_thinking=False,
            written_calls=False,
        ),
        Quirks(name="vllm", port=8000, one_system=True, leaves_out=_NEW),
        Quirks(
            name="ollama",
            hosts=("ollama.com",),
            port=11434,
            one_system=True,
            named_tool=False,
            leaves_out=_NEW | {"tool_choice", "parallel_tool_calls"},
            few_at_once=True,
        ),
        Quirks(name="litellm", port=4000),
        Quirks(
            name="llama.cpp",
            port=8080,
            one_system=True,
            named_tool=False,
            leaves_out=_NEW | {"reasoning_effort"},
            few_at_once=True,
        ),
        Quirks(
            name="gemini",
            hosts=("generativelanguage.googleapis.com",),
            key_variable="GEMINI_API_KEY",
            one_system=True,
            leaves_out=_NEW | {"parallel_tool_calls", "presence_penalty", "frequency_penalty", "logprobs"},
        ),
        Quirks(
            name="mistral",
            hosts=("api.mistral.ai",),
            key_variable="MISTRAL_API_KEY",
            required="any",
            call_id_chars=9,
            leaves_out=_NEW | {"stream_options", "reasoning_effort", "logprobs"},
        ),
        Quirks(name="generic"),
    )
}


def quirks_of(provider: str | None, url: str) -> Quirks:
    """Return the quirks of the provider of that name, or of the one that the URL shows; `generic` if it shows none.

    Raises:
        ConfigError: there is no provider of that name.
    """
    if provider is not None:
        if provider not in QUIRKS:
            raise ConfigError("model.provider", f"{provider!r} is unknown; use one of {', '.join(QUIRKS)}")
        return QUIRKS[provider]
    parts = urlsplit(url)
    host = parts.hostname or ""
    known = QUIRKS.values()
    by_host = (quirks for quirks in known if any(host.endswith(end) for end in quirks.hosts))
    by_port = (quirks for quirks in known if quirks.port is not None and quirks.port == parts.port)
    return next(by_host, None) or next(by_port, None) or QUIRKS["generic"]
