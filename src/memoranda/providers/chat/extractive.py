"""Answers without a language model: quotes of the best sentences of search results, each with its source."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from memoranda.config.agent_sections import Model as Settings
from memoranda.errors import ModelRefused
from memoranda.providers.chat.base import Ask, Ended, Model, Piece, TextDelta, TokenUsage, ToolCallDelta
from memoranda.providers.chat.calls import new_call_id
from memoranda.providers.chat.quoting import Sentence, best
from memoranda.providers.chat.script import TurnCriteria
from memoranda.providers.embeddings.base import Embedder
from memoranda.text.tokens import count, well_formed

SEARCHES = ("file_search", "memory_search")
"""Suffixes of the names of functions that are called with the question."""
NOTHING = (
    "I found nothing that answers this. No language model is answering, and without one I can only quote."
)
UNLIKELY = "I found nothing that is likely to answer this. The closest: "
NOTHING_TO_QUOTE = (
    "I have nothing to quote from: no documents or memories go with this. "
    "No language model is answering, and without one I can only quote."
)


class ExtractiveModel(Model):
    """Calls the offered search tools with the question, then quotes the best sentences of the results. Deterministic;
    no network. `embedder` returns the model that compares sentences with the question, see `quoting`; None: their words
    are compared."""

    name = "extractive"
    quotes_only = True

    def __init__(self, embedder: Callable[[], Embedder] | None = None) -> None:
        self._embedder = embedder

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        if ask.response_format and ask.response_format.get("type") not in (None, "text"):
            raise ModelRefused(
                "no language model is answering, and quotes cannot be given the form that is asked for"
            )
        asked = TurnCriteria.of(ask.messages, ask.tools)
        question = well_formed(ask.question or asked.question)
        usage = TokenUsage(input=0, output=0)
        if calls := [] if asked.results else searches(ask):
            for index, name in enumerate(calls):
                arguments = msgspec.json.encode({"query": question}).decode()
                yield ToolCallDelta(index, arguments, new_call_id(), name)
            yield Ended("tool_calls", usage, self.name)
            return
        quotes = await best(question, ask.sources, self._embedder and self._embedder())
        texts = _texts(quotes, ask, bool(asked.results))
        shown = _within(texts, ask.max_tokens)
        for number, text in enumerate(shown):
            yield TextDelta(f" {text}" if number else text)
        yield Ended("stop" if len(shown) == len(texts) else "length", usage, self.name)


def searches(ask: Ask) -> list[str]:
    """Return the functions to call with the question, by `SEARCHES` and `tool_choice`."""
    if ask.tool_choice == "none":
        return []
    only = ask.tool_choice.get("function", {}).get("name") if isinstance(ask.tool_choice, dict) else None
    functions = [tool.get("function", {}) for tool in ask.tools]
    return [
        function["name"]
        for function in functions
        if str(function.get("name")).endswith(SEARCHES)
        and "query" in (function.get("parameters") or {}).get("properties", {})
        and only in (None, function["name"])
    ]


def _texts(sentences: Sequence[Sentence], ask: Ask, searched: bool) -> list[str]:
    quotes = [quoted(sentence) for sentence in sentences]
    if quotes and ask.evidence == "none":
        return [f"{UNLIKELY}{quotes[0]}"]
    return quotes or [NOTHING if searched else NOTHING_TO_QUOTE]


def quoted(sentence: Sentence) -> str:
    """Return the sentence with its marker; a memory is named, since it has no file that a marker could refer to."""
    source = sentence.source
    if source.mark:
        return f"{sentence.text} ({source.mark})"
    if source.kind == "document":
        return f"{sentence.text} [{source.number}]"
    return f"{sentence.text} {memory_name(source.title)}"


def memory_name(title: str) -> str:
    """Return what follows the quote of a memory with this title."""
    return f"(memory: {well_formed(title)})" if title else "(from memory)"


def _within(texts: list[str], most: int | None) -> list[str]:
    """Return as many texts as fit into `most` tokens."""
    if most is None:
        return texts
    fitting: list[str] = []
    for text in texts:
        most -= count(text) + 1
        if most < 0:
            break
        fitting.append(text)
    return fitting


def open_extractive(settings: Settings, embedder: Callable[[], Embedder] | None) -> ExtractiveModel:
    """Open the extractive model; it has no settings."""
    return ExtractiveModel(embedder)
