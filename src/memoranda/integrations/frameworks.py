"""Frameworks that adapters need and that are not installed with the product."""

from importlib import import_module
from importlib.util import find_spec
from shlex import quote


def require(module: str, package: str) -> None:
    """Checks that a framework can be imported.

    Raises:
        ImportError: it cannot; names the command that installs it, and the file that was imported instead, if any.
    """
    try:
        import_module(module)
    except ImportError as exc:
        root = module.partition(".")[0]
        spec = find_spec(root)
        says = f"this adapter needs {package}: pip install {quote(package)}"
        if spec is not None and spec.origin is not None:
            says += f". {root} is imported from {spec.origin}, which failed: {exc}"
        raise ImportError(says) from exc
