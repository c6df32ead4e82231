"""`/v1/models`: the models that this server can use."""

from __future__ import annotations

import asyncio
import logging

from memoranda.app.memoranda import Memoranda
from memoranda.errors import ModelError
from memoranda.providers.chat.base import chat_models
from memoranda.server import wire
from memoranda.server.errors import Refused
from memoranda.server.route import Call, Route

log = logging.getLogger("memoranda.http")
PATIENCE = 3.0
"""Timeout in seconds for the language model's server to list its models."""


def embedders(memoranda: Memoranda) -> list[wire.ModelObject]:
    """The models that make embeddings: today, one."""
    embedder = memoranda.core.embedder
    return [
        wire.ModelObject(id=embedder.model, dimensions=embedder.dim, max_input_tokens=embedder.max_tokens)
    ]


async def known(memoranda: Memoranda) -> list[wire.ModelObject]:
    """Every model that can be used here, chat models first. Other models of the language model's server, such as
    embedding models, are left out. If that server does not answer, the configured model stands for its list."""
    model = memoranda.engine.model
    try:
        async with asyncio.timeout(PATIENCE):
            names = await model.names()
    except (ModelError, TimeoutError) as exc:
        log.warning("the language model's server did not name its models: %s", exc)
        names = [model.name]
    reads = memoranda.config.model.context_tokens
    return [
        *(wire.ModelObject(id=name, max_input_tokens=reads) for name in chat_models(names, model.name)),
        *embedders(memoranda),
    ]


def named(memoranda: Memoranda, id: str) -> wire.ModelObject:
    """The embedder that `id` names: by its own name, or as the configuration writes it.

    Raises:
        Refused: 404 `model_not_found`; the message lists the known ones.
    """
    return _model_named(embedders(memoranda), memoranda, id)


def _model_named(models: list[wire.ModelObject], memoranda: Memoranda, id: str) -> wire.ModelObject:
    for model in models:
        if id == model.id:
            return model
    if id == memoranda.config.embedder.url:
        return models[-1]
    says = f"the model {id!r} does not exist here; known: {', '.join(model.id for model in models)}"
    raise Refused(404, "model_not_found", says, "model")


async def page(call: Call[None, None]) -> wire.ModelList:
    return wire.ModelList(data=await known(call.state.memoranda))


async def get(call: Call[None, None]) -> wire.ModelObject:
    memoranda = call.state.memoranda
    return _model_named(await known(memoranda), memoranda, call.id)


ROUTES = (
    Route("GET", "/v1/models", "Every model that can be used", page, "read", wire.ModelList),
    Route("GET", "/v1/models/{model}", "One model", get, "read", wire.ModelObject),
)
