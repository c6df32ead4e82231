"""`/v1/models`: what this server answers with."""

from __future__ import annotations

from recollect.api import wire
from recollect.api.errors import Refused
from recollect.api.route import Call, Route
from recollect.recollect import Recollect


def known(recollect: Recollect) -> list[wire.ModelObject]:
    """Every model: today, the one embedder."""
    embedder = recollect.core.embedder
    return [
        wire.ModelObject(id=embedder.model, dimensions=embedder.dim, max_input_tokens=embedder.max_tokens)
    ]


def named(recollect: Recollect, id: str) -> wire.ModelObject:
    """The model that `id` names: by its own name, or as the configuration writes it.

    Raises:
        Refused: 404 `model_not_found`; the message lists the known ones.
    """
    models = known(recollect)
    for model in models:
        if id in (model.id, recollect.config.embedder.url):
            return model
    says = f"the model {id!r} does not exist here; known: {', '.join(model.id for model in models)}"
    raise Refused(404, "model_not_found", says, "model")


async def page(call: Call[None, None]) -> wire.ModelList:
    return wire.ModelList(data=known(call.house.recollect))


async def get(call: Call[None, None]) -> wire.ModelObject:
    return named(call.house.recollect, call.id)


ROUTES = (
    Route("GET", "/v1/models", "Every model", page, "read", wire.ModelList),
    Route("GET", "/v1/models/{model}", "One model", get, "read", wire.ModelObject),
)
