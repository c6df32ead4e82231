"""The vectors of memories, also of those that are being stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoranda.store.core import Core
from memoranda.text.stored import compact_json


def stored_vectors(core: Core, tenant: str, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return the vectors (dim,) of the first windows of memories, by id, of those that are embedded. Synchronous."""
    store, unstored = core.store, core.ingest.unstored
    seqs = store.db.read(lambda c: c.all("seqs_by_id", [tenant, compact_json(list(ids))]), tenant)
    by_seq: dict[int, str] = dict(seqs)
    made = {id_: vector for seq, id_ in by_seq.items() if (vector := unstored.get((tenant, seq))) is not None}
    key = [tenant, store.space, compact_json(list(by_seq))]
    rows = store.db.read(lambda c: c.all("part_vectors", key), tenant)
    return made | {by_seq[seq]: np.frombuffer(blob, dtype="<f4") for seq, blob in rows}
