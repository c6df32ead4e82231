"""Every route there is: what the server answers, what OpenAPI says, and what the tests go through."""

from __future__ import annotations

from recollect.api import embeddings, health, jobs, memories, models, openapi
from recollect.api.route import Route

ROUTES: tuple[Route, ...] = (
    *memories.ROUTES,
    *jobs.ROUTES,
    *models.ROUTES,
    *embeddings.ROUTES,
    *health.ROUTES,
    *openapi.ROUTES,
)
