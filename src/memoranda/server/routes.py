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
    derived,
    dify,
    embeddings,
    entries,
    evaluations,
    file_batches,
    files,
    health,
    mem0,
    memories,
    memory_stores,
    models,
    openapi,
    responses,
    sessions,
    store_files,
    upload_ask,
    uploads,
    vector_stores,
)
from memoranda.server.route import Route
from memoranda.sessions.switch_operations import OPERATIONS as SWITCHES

ROUTES: tuple[Route, ...] = (
    *derived.routes("facts", FACTS),
    *memories.ROUTES,
    *entries.ROUTES,
    *derived.routes("contexts", CONTEXTS),
    *evaluations.ROUTES,
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
    *derived.routes("agents", AGENTS),
    *archives.ROUTES,
    *derived.routes("knowledge.admin", ADMIN),
    *derived.routes("switches", SWITCHES),
    *derived.routes("costs", COSTS),
    *derived.routes("backfills", BACKFILLS),
    *models.ROUTES,
    *embeddings.ROUTES,
    *health.ROUTES,
    *openapi.ROUTES,
    *mem0.ROUTES,
    *dify.ROUTES,
    *memory_stores.ROUTES,
)
