"""Install mem0's client in .cache/mem0, as pinned in tests/wire/sdks/mem0.txt, and print the folder.

It is no development dependency: it wants an older protobuf than the product has. The packages that the development
environment has already are left out, and so is what only mem0's own storage needs.
"""

import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bootstrap import CACHE, ROOT, call, find_uv, index_settings

PINNED = ROOT / "tests" / "wire" / "sdks" / "mem0.txt"
FOLDER = CACHE / "mem0"
INSTALLED = FOLDER / ".installed"


def main() -> None:
    """Install what is not installed as it is pinned now."""
    if not INSTALLED.is_file() or INSTALLED.read_text() != PINNED.read_text():
        shutil.rmtree(FOLDER, ignore_errors=True)
        into = ["--python", sys.executable, "--target", FOLDER, "--no-deps", "--require-hashes"]
        env = {**os.environ, **index_settings(os.environ)}
        call(find_uv(), "pip", "install", *into, "-r", PINNED, env=env)
        INSTALLED.write_text(PINNED.read_text())
    print(FOLDER)


if __name__ == "__main__":
    main()
