"""Background work of questions to documents: jobs and hooks."""

from __future__ import annotations

from memoranda.config.sections import Config
from memoranda.document_qa.backfill import DERIVE_JOB, Backfill
from memoranda.document_qa.erasing import count_turns, erase_asked
from memoranda.document_qa.remembering import Remembering, edited, gone
from memoranda.document_qa.turns import REMEMBER_JOB
from memoranda.errors import ConfigError
from memoranda.store.core import Core
from memoranda.store.jobs import MEMORY_LANE

DIMENSION = "uploadask.memory.memoryVectorDim"


def check_dimension(config: Config, model: str, dim: int) -> None:
    """Compare the configured dimension of memories with that of the model.

    Raises:
        ConfigError: they differ.
    """
    asked = config.sources.get(DIMENSION)
    if asked is not None and asked.value != dim:
        raise ConfigError(
            DIMENSION,
            f"is {asked.value}, and {model} makes vectors of {dim} dimensions, for memories as for documents; leave the"
            " key out, or choose another embedder",
        )


def begin(core: Core) -> None:
    """Register jobs and hooks; call it before jobs run."""
    core.jobs.handlers[REMEMBER_JOB] = Remembering(core).remember
    core.jobs.handlers[DERIVE_JOB] = Backfill(core).derive
    core.jobs.lanes |= {REMEMBER_JOB: MEMORY_LANE, DERIVE_JOB: MEMORY_LANE}
    core.store.cascades.append(gone)
    core.store.edits.append(edited)
    core.erasers.append(erase_asked)
    core.derived.append(count_turns)
