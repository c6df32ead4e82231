"""Frameworks that adapters need and that are not installed with the product."""

from importlib import import_module


def require(module: str, package: str) -> None:
    """Checks that a framework is installed.

    Raises:
        ImportError: it is not; names the command that installs it.
    """
    try:
        import_module(module)
    except ImportError as exc:
        raise ImportError(f"this adapter needs {package}: pip install {package}") from exc
