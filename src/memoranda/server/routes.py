"""Every route there is: what the server answers, what OpenAPI says, and what the tests go through."""

from __future__ import annotations

from memoranda.app.operations import BACKFILLS, COSTS
from memoranda.contexts.operations import OPERATIONS as CONTEXTS
from memoranda.facts.operations import OPERATIONS as FACTS
from memoranda.knowledge.admin_operations import OPERATIONS as ADMIN
from memoranda.responses.agent_operations import OPERATIONS as AGENTS
from memoranda.server import (
    archives,
    chat,
    conversations,
    dify,
    embeddings,
    entries,
    evaluations,
    files,
    health,
    mem0,
    memories,
    memory_stores,
    models,
    openapi,
    responses,
    route,
    sessions,
    store_files,
    upload_ask,
    uploads,
    vector_stores,
)
from memoranda.server.route import Route
from memoranda.sessions.switch_operations import OPERATIONS as SWITCHES

ROUTES: tuple[Route, ...] = (
    *route.routes("facts", FACTS),
    *memories.ROUTES,
    *entries.ROUTES,
    *route.routes("contexts", CONTEXTS),
    *evaluations.ROUTES,
    *files.ROUTES,
    *uploads.ROUTES,
    *upload_ask.ROUTES,
    *vector_stores.ROUTES,
    *store_files.ROUTES,
    *responses.ROUTES,
    *chat.ROUTES,
    *conversations.ROUTES,
    *sessions.ROUTES,
    *route.routes("agents", AGENTS),
    *archives.ROUTES,
    *route.routes("knowledge.admin", ADMIN),
    *route.routes("switches", SWITCHES),
    *route.routes("costs", COSTS),
    *route.routes("backfills", BACKFILLS),
    *models.ROUTES,
    *embeddings.ROUTES,
    *health.ROUTES,
    *openapi.ROUTES,
    *mem0.ROUTES,
    *dify.ROUTES,
    *memory_stores.ROUTES,
)
