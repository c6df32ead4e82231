"""Reads the files of datasets, with errors that name the file and its form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from memoranda.errors import InvalidInput


def read_json(path: Path, form: str) -> Any:
    """Return the value in a JSON file of questions in the named form.

    Raises:
        InvalidInput: the file cannot be read, or is not JSON.
    """
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise InvalidInput(
            str(path), f"cannot be read: {reason}; give the path of a file in the form of {form}"
        ) from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidInput(
            str(path), f"is not JSON ({exc}); give the path of a file in the form of {form}"
        ) from exc


def read_yaml(path: Path, example: str) -> Any:
    """Return the value in a YAML file in the form of the named example.

    Raises:
        InvalidInput: the file cannot be read, or is not YAML; names the line.
    """
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except OSError as exc:
        says = f"cannot be read: {(exc.strerror or str(exc)).lower()}"
    except UnicodeDecodeError:
        says = "is not UTF-8"
    except yaml.YAMLError as exc:
        at = getattr(exc, "problem_mark", None)
        says = "is not YAML" if at is None else f"is not YAML in line {at.line + 1}"
    raise InvalidInput(str(path), f"{says}; give a file in the form of {example}")
