"""The weights by which hits are scored, for each style of text. Fitted by `memoranda eval fit`, see
docs/evaluation.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from memoranda.errors import ConfigError
from memoranda.store.retrieval.scoring import FEATURES, Weights

BUNDLED = Path(__file__).with_name("scoring_weights.json")
"""The weights by style, for models with token vectors and for those without, in the form of `load`."""


def _bundled(kind: str) -> dict[str, Weights]:
    read = msgspec.json.decode(BUNDLED.read_bytes())
    return {name: msgspec.convert({**style, "name": name}, Weights) for name, style in read[kind].items()}


PRESETS = _bundled("tokens")
"""The weights by style: chats between people, a user and an assistant, other memories, documents. Those of `when`,
`sitting` and `author` in the second and third are set by hand: there are too few labelled questions for them."""
WITHOUT_TOKENS = _bundled("without_tokens")
"""The same for a model without token vectors."""


def load(path: str | Path, key: str = "search.rerank_weights") -> dict[str, Weights]:
    """Return the presets, with those of a file replaced: JSON or YAML as `memoranda eval fit` writes it, `{style:
    {intercept: number, weights: {feature: number}, means: {feature: number}, few: number, level: number, behind:
    number}}`.

    Raises:
        ConfigError: the file cannot be read or has another shape.
    """
    import yaml  # saves 20 ms without a file

    try:
        read = yaml.safe_load(Path(path).expanduser().read_text("utf-8"))
        given = msgspec.convert(read, dict[str, dict[str, Any]])
        styles = {name: msgspec.convert({**style, "name": name}, Weights) for name, style in given.items()}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as exc:
        raise ConfigError(
            key, f"the file {path} cannot be read as weights, which `memoranda eval fit --out` writes: {exc}"
        ) from exc
    for style in styles.values():
        if style.name not in PRESETS:
            raise ConfigError(key, f"{path} names the style {style.name!r}; use one of {', '.join(PRESETS)}")
        single = {name: getattr(style, name) for name in ("intercept", "few", "level", "behind")}
        for name, number in (*style.weights.items(), *style.means.items(), *single.items()):
            if name not in (*FEATURES, *single) or not np.isfinite(number):
                raise ConfigError(
                    key,
                    f"{path}: {style.name} has {name}: {number}; use finite numbers for {', '.join(FEATURES)}",
                )
    return PRESETS | styles
