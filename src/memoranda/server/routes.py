"""Every route there is: what the server answers, what OpenAPI says, and what the tests go through."""

from __future__ import annotations

from memoranda.server import (
    admin,
    agents,
    backfills,
    chat,
    context,
    conversations,
    embeddings,
    facts,
    file_batches,
    files,
    health,
    jobs,
    memories,
    models,
    openapi,
    responses,
    sessions,
    store_files,
    upload_ask,
    uploads,
    usage,
    vector_stores,
)
from memoranda.server.route import Route

ROUTES: tuple[Route, ...] = (
    *facts.ROUTES,
    *memories.ROUTES,
    *context.ROUTES,
    *files.ROUTES,
    *uploads.ROUTES,
    *upload_ask.ROUTES,
    *vector_stores.ROUTES,
    *store_files.ROUTES,
    *file_batches.ROUTES,
    *responses.ROUTES,
    *chat.ROUTES,
    *conversations.ROUTES,
    *sessions.ROUTES,
    *agents.ROUTES,
    *admin.ROUTES,
    *usage.ROUTES,
    *backfills.ROUTES,
    *jobs.ROUTES,
    *models.ROUTES,
    *embeddings.ROUTES,
    *health.ROUTES,
    *openapi.ROUTES,
)
