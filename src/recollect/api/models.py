"""`/v1/models`: what this server answers with."""

from __future__ import annotations

import asyncio
import logging

from recollect.api import wire
from recollect.api.errors import Refused
from recollect.api.route import Call, Route
from recollect.errors import ModelError
from recollect.recollect import Recollect

log = logging.getLogger("recollect.http")
PATIENCE = 3.0
"""Seconds that the language model's server has for naming its models."""


def embedders(recollect: Recollect) -> list[wire.ModelObject]:
    """The models that make embeddings: today, one."""
    embedder = recollect.core.embedder
    return [
        wire.ModelObject(id=embedder.model, dimensions=embedder.dim, max_input_tokens=embedder.max_tokens)
    ]


async def known(recollect: Recollect) -> list[wire.ModelObject]:
    """Every model. Of a language model's server that does not answer just now, the one that is configured."""
    model = recollect.engine.model
    try:
        async with asyncio.timeout(PATIENCE):
            names = await model.names()
    except (ModelError, TimeoutError) as exc:
        log.warning("the language model's server did not name its models: %s", exc)
        names = [model.name]
    reads = recollect.config.model.context_tokens
    return [
        *embedders(recollect),
        *(wire.ModelObject(id=name, max_input_tokens=reads) for name in dict.fromkeys(names)),
    ]


def named(recollect: Recollect, id: str) -> wire.ModelObject:
    """The embedder that `id` names: by its own name, or as the configuration writes it.

    Raises:
        Refused: 404 `model_not_found`; the message lists the known ones.
    """
    return _found(embedders(recollect), recollect, id)


def _found(models: list[wire.ModelObject], recollect: Recollect, id: str) -> wire.ModelObject:
    for model in models:
        if id == model.id:
            return model
    if id == recollect.config.embedder.url:
        return models[0]
    says = f"the model {id!r} does not exist here; known: {', '.join(model.id for model in models)}"
    raise Refused(404, "model_not_found", says, "model")


async def page(call: Call[None, None]) -> wire.ModelList:
    return wire.ModelList(data=await known(call.house.recollect))


async def get(call: Call[None, None]) -> wire.ModelObject:
    recollect = call.house.recollect
    return _found(await known(recollect), recollect, call.id)


ROUTES = (
    Route("GET", "/v1/models", "Every model", page, "read", wire.ModelList),
    Route("GET", "/v1/models/{model}", "One model", get, "read", wire.ModelObject),
)
