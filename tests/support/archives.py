"""Archives that tests unpack."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Extracts a tar file, nothing outside of the folder."""
    with tarfile.open(archive) as file:
        if hasattr(tarfile, "data_filter"):  # Debian's 3.11.2 has none
            file.extraction_filter = tarfile.data_filter
        file.extractall(folder)
