"""The answer to a question: from the model, or, without one or if it fails, quotes from the documents."""

from __future__ import annotations

import msgspec

from memoranda.document_qa.prompting import Prompt, heuristic
from memoranda.document_qa.values import By, Status
from memoranda.errors import ModelError, SpendingLimit
from memoranda.knowledge.passages import source
from memoranda.knowledge.values import Passage
from memoranda.providers.chat.base import Ask
from memoranda.providers.chat.quoting import best
from memoranda.providers.chat.said import said
from memoranda.store.core import Core
from memoranda.store.retrieval.evidence import Evidence

ASK, SUMMARY = "upload_ask", "upload_ask.summary"
"""The purposes of answers and summaries in the ledger."""
HEURISTIC = "extractive"


class Answer(msgspec.Struct):
    """An answer, its author, the status of the question, the sources and their evidence. `remembers` is True if
    memories were used."""

    text: str
    by: By
    model: str
    status: Status
    passages: list[Passage]
    evidence: Evidence
    remembers: bool
    used: list[str]
    degraded: set[str] = msgspec.field(default_factory=set)


async def answer(core: Core, tenant: str, question: str, prompt: Prompt) -> Answer:
    """Return the model's answer to the prompt. If the model fails, the answer is the best sentences of the prompt's
    passages, without memories.

    Raises:
        ModelError: the model failed, and `model.fallback` is off.
        SpendingLimit: the tenant has reached its daily limit, and `model.fallback` is off.
    """
    if core.model.quotes_only:
        return await _quoted(core, question, prompt, "quoted", set())
    try:
        reply = await said(core.ledger.paid(core.model, tenant, ASK), _ask(core, question, prompt))
    except (ModelError, SpendingLimit) as exc:
        if core.fallback is None:
            raise
        why = "spending" if isinstance(exc, SpendingLimit) else "model"
        return await _quoted(core, question, prompt, "fallback", {why})
    return Answer(
        text=reply.text,
        by="model",
        model=reply.name or core.model.name,
        status="answered",
        passages=prompt.passages,
        evidence=prompt.evidence,
        remembers=True,
        used=prompt.used,
    )


def _ask(core: Core, question: str, prompt: Prompt) -> Ask:
    return Ask(
        messages=prompt.messages,
        question=question,
        sources=[source(passage, number) for number, passage in enumerate(prompt.passages, 1)],
        max_tokens=core.config.model.max_output_tokens,
        stream=False,
    )


async def _quoted(
    core: Core,
    question: str,
    prompt: Prompt,
    status: Status,
    degraded: set[str],
) -> Answer:
    sources = [source(passage, number) for number, passage in enumerate(prompt.passages)]
    quotes = await best(question, sources, core.embedder)
    text, quoted, evidence = await core.threads.run(heuristic, question, prompt.passages, quotes)
    return Answer(
        text=text,
        by="heuristic",
        model=HEURISTIC,
        status=status if quoted and evidence.level != "none" else "empty",
        passages=prompt.passages,
        evidence=evidence,
        remembers=not degraded,
        used=["documents"] if quoted else [],
        degraded=degraded,
    )
