"""What questions to documents add to an open library."""

from __future__ import annotations

from memoranda.config.sections import Config
from memoranda.document_qa.backfill import DERIVE_JOB, Backfill
from memoranda.document_qa.erasing import count_turns, erase_asked
from memoranda.document_qa.remembering import Remembering, edited, gone
from memoranda.document_qa.turns import REMEMBER_JOB
from memoranda.errors import ConfigError
from memoranda.store.core import Core
from memoranda.store.feature import Feature
from memoranda.store.job_kinds import MEMORY_LANE, JobKind

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


def feature(core: Core) -> Feature:
    """Declare the jobs, reactions to changed memories and eraser of questions to documents."""
    return Feature(
        jobs={
            REMEMBER_JOB: JobKind(Remembering(core).remember, MEMORY_LANE),
            DERIVE_JOB: JobKind(Backfill(core).derive, MEMORY_LANE),
        },
        cascades=(gone,),
        edits=(edited,),
        erasers=(erase_asked,),
        derived=(count_turns,),
    )
