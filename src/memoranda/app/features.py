"""The features of the application."""

from __future__ import annotations

from functools import partial

from memoranda.app import auto_embedder, backfills, maintenance, migration
from memoranda.app.auto_embedder import AutoEmbedder
from memoranda.app.migration import Moves
from memoranda.document_qa.feature import feature as document_qa
from memoranda.facts.feature import feature as facts
from memoranda.knowledge.feature import feature as knowledge
from memoranda.memory_stores.feature import feature as memory_stores
from memoranda.providers.embeddings.cache import CachedEmbedder
from memoranda.responses.engine import Engine
from memoranda.responses.feature import feature as responses
from memoranda.sessions.feature import feature as sessions
from memoranda.store.core import Core
from memoranda.store.feature import Feature


def features(core: Core, engine: Engine, moves: Moves, auto: AutoEmbedder | None) -> tuple[Feature, ...]:
    """Return all features, in the order of their cascades, edits, erasers and starts."""
    return (
        Feature(caches=(partial(_forget_queries, core),)),
        maintenance.feature(core),
        migration.feature(moves),
        responses(engine),
        knowledge(core),
        sessions(core),
        facts(core),
        document_qa(core),
        memory_stores(core),
        backfills.feature(core),
        *(() if auto is None else (auto_embedder.feature(auto),)),
    )


def _forget_queries(core: Core) -> None:
    """Clear the embeddings of queries, which may contain what was erased."""
    for embedder in core.embedders.opened():
        if isinstance(embedder, CachedEmbedder):
            embedder.forget()
