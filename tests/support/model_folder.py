"""A shipped model as a folder of a user's own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from memoranda.providers.embeddings.local import MODELS
from memoranda.providers.embeddings.manifest import open_folder


def copied_model(name: str, folder: Path) -> Path:
    """Copy the files of a model, and its manifest, which names no package; return the folder."""
    model = open_folder(MODELS / name)
    folder.mkdir()
    for file in model.manifest.files:
        shutil.copy(model.folder / file, folder)
    manifest = json.loads((MODELS / name / "model.json").read_bytes())
    del manifest["package"], manifest["install"]
    (folder / "model.json").write_text(json.dumps(manifest))
    return folder
