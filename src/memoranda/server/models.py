"""`/v1/models`: what this server answers with."""

from __future__ import annotations

import asyncio
import logging
import re

from memoranda.app.memoranda import Memoranda
from memoranda.errors import ModelError
from memoranda.server import wire
from memoranda.server.errors import Refused
from memoranda.server.route import Call, Route

log = logging.getLogger("memoranda.http")
OTHERS = re.compile(
    r"embed|whisper|\btts\b|dall-e|moderation|transcri|rerank|realtime|image|\bsora\b|\bbge\b|\bocr\b|"
    r"^(?:babbage|davinci)-\d",
    re.IGNORECASE,
)
"""Names of models that answer no questions, which servers list beside those that do."""
PATIENCE = 3.0
"""Seconds that the language model's server has for naming its models."""


def embedders(memoranda: Memoranda) -> list[wire.ModelObject]:
    """The models that make embeddings: today, one."""
    embedder = memoranda.core.embedder
    return [
        wire.ModelObject(id=embedder.model, dimensions=embedder.dim, max_input_tokens=embedder.max_tokens)
    ]


async def known(memoranda: Memoranda) -> list[wire.ModelObject]:
    """Every model that can be used here, those that answer first: not what else the language model's server lists, such
    as embedding models. Of a server that does not answer just now, the model that is configured."""
    model = memoranda.engine.model
    try:
        async with asyncio.timeout(PATIENCE):
            names = await model.names()
    except (ModelError, TimeoutError) as exc:
        log.warning("the language model's server did not name its models: %s", exc)
        names = [model.name]
    reads = memoranda.config.model.context_tokens
    answering = [name for name in dict.fromkeys(names) if name == model.name or not OTHERS.search(name)]
    return [
        *(wire.ModelObject(id=name, max_input_tokens=reads) for name in answering),
        *embedders(memoranda),
    ]


def named(memoranda: Memoranda, id: str) -> wire.ModelObject:
    """The embedder that `id` names: by its own name, or as the configuration writes it.

    Raises:
        Refused: 404 `model_not_found`; the message lists the known ones.
    """
    return _found(embedders(memoranda), memoranda, id)


def _found(models: list[wire.ModelObject], memoranda: Memoranda, id: str) -> wire.ModelObject:
    for model in models:
        if id == model.id:
            return model
    if id == memoranda.config.embedder.url:
        return models[-1]
    says = f"the model {id!r} does not exist here; known: {', '.join(model.id for model in models)}"
    raise Refused(404, "model_not_found", says, "model")


async def page(call: Call[None, None]) -> wire.ModelList:
    return wire.ModelList(data=await known(call.house.memoranda))


async def get(call: Call[None, None]) -> wire.ModelObject:
    memoranda = call.house.memoranda
    return _found(await known(memoranda), memoranda, call.id)


ROUTES = (
    Route("GET", "/v1/models", "Every model that can be used", page, "read", wire.ModelList),
    Route("GET", "/v1/models/{model}", "One model", get, "read", wire.ModelObject),
)
