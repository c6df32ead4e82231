"""What asking documents does beside the verbs, from the opening of a library on."""

from __future__ import annotations

from memoranda.document_qa.backfill import DERIVE_JOB, Backfill
from memoranda.document_qa.remembering import Remembering, edited, gone
from memoranda.document_qa.turns import REMEMBER_JOB
from memoranda.errors import ConfigError
from memoranda.store.core import Core
from memoranda.store.jobs import MEMORY_LANE

DIMENSION = "uploadask.memory.memoryVectorDim"


def begin(core: Core) -> None:
    """Registers jobs and hooks; to be called before jobs are worked on.

    Raises:
        ConfigError: memories are to have other vectors than the embedder makes.
    """
    asked = core.config.sources.get(DIMENSION)
    if asked is not None and asked.value != core.store.index.dim:
        raise ConfigError(
            DIMENSION,
            f"is {asked.value}, and {core.store.model} makes vectors of {core.store.index.dim} dimensions, for "
            "memories as for documents; leave the key out, or choose another embedder",
        )
    core.jobs.handlers[REMEMBER_JOB] = Remembering(core).remember
    core.jobs.handlers[DERIVE_JOB] = Backfill(core).derive
    core.jobs.lanes |= {REMEMBER_JOB: MEMORY_LANE, DERIVE_JOB: MEMORY_LANE}
    core.store.cascades.append(gone)
    core.store.edits.append(edited)
