"""The answer to a question: from the model, or, without one or if it fails, quotes from the documents."""

from __future__ import annotations

import msgspec

from memoranda.contexts.result_text import chunk_mark
from memoranda.document_qa.prompting import Prompt
from memoranda.document_qa.values import By, Status
from memoranda.errors import ModelError, SpendingLimit
from memoranda.knowledge.passages import source
from memoranda.providers.chat.base import Ask
from memoranda.providers.chat.completion import complete
from memoranda.providers.chat.extractive import NOTHING_TO_QUOTE
from memoranda.store.core import Core
from memoranda.store.retrieval.evidence import Evidence

ASK, SUMMARY = "upload_ask", "upload_ask.summary"
"""The purposes of answers and summaries, by which costs are summed."""


class Answer(msgspec.Struct):
    """An answer, its author, the status of the question, the evidence of its sources, and the kinds of sources that it
    was made with. `failed` says why there is none of the model, and no memories are used."""

    text: str
    by: By
    model: str
    status: Status
    evidence: Evidence
    used: list[str]
    failed: set[str] = set()


async def answer(core: Core, tenant: str, question: str, prompt: Prompt) -> Answer:
    """Return the model's answer to the prompt. If the model fails, the answer is the best sentences of the prompt's
    passages, without memories.

    Raises:
        ModelError: the model failed, and `model.fallback` is off.
        SpendingLimit: the tenant has reached its daily limit, and `model.fallback` is off.
    """
    sources = [source(passage, at, chunk_mark(passage)) for at, passage in enumerate(prompt.passages, 1)]
    ask = Ask(messages=prompt.messages, question=question, sources=sources, stream=False)
    model, failed = core.model, set[str]()
    if not model.quotes_only:
        ask.max_tokens = core.config.model.max_output_tokens
        try:
            reply = await complete(core.costs.paid(model, tenant, ASK), ask)
            name = reply.name or model.name
            return Answer(reply.text, "model", name, "answered", prompt.evidence, prompt.used)
        except (ModelError, SpendingLimit) as exc:
            if core.fallback is None:
                raise
            model, failed = core.fallback, {"spending" if isinstance(exc, SpendingLimit) else "model"}
    judged = prompt.written
    text, name = await complete(model, msgspec.structs.replace(ask, max_tokens=None, evidence=judged.level))
    used = [] if text == NOTHING_TO_QUOTE else ["documents"]
    status: Status = "empty" if not used or judged.level == "none" else "fallback" if failed else "quoted"
    return Answer(text, "heuristic", name, status, judged, used, failed)
