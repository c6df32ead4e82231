"""The weights by which hits are scored, for each style of text. Fitted by `memoranda eval fit`, see
docs/evaluation.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from memoranda.errors import ConfigError
from memoranda.store.retrieval.scoring import FEATURES, Weights

_PEOPLE = Weights(
    "people",
    intercept=-9.357,
    weights={
        "similarity": 0.758,
        "tokens": 9.456,
        "coverage": 1.327,
        "around": 1.588,
        "sitting": 1.607,
        "speaker": 0.268,
        "length": 0.203,
        "asks": -0.281,
        "answers": 0.225,
        "dated": 0.946,
        "when": 1.518,
    },
    means={
        "similarity": 0.644,
        "tokens": 0.325,
        "coverage": 0.117,
        "around": 0.072,
        "sitting": 0.765,
        "speaker": 0.514,
        "length": 3.519,
        "asks": 0.139,
        "answers": 0.503,
        "dated": 0.113,
        "when": 0.08,
    },
    few=0.537,
    behind=1.16,
)
_PEOPLE_WITHOUT_TOKENS = Weights(
    "people",
    intercept=-11.688,
    weights={
        "similarity": 7.972,
        "coverage": 2.231,
        "around": 1.621,
        "sitting": 1.632,
        "speaker": 0.25,
        "length": 0.353,
        "asks": -0.217,
        "answers": 0.226,
        "dated": 0.896,
        "when": 1.483,
    },
    means={
        "similarity": 0.652,
        "coverage": 0.115,
        "around": 0.072,
        "sitting": 0.768,
        "speaker": 0.535,
        "length": 3.496,
        "asks": 0.149,
        "answers": 0.503,
        "dated": 0.112,
        "when": 0.083,
    },
    few=0.537,
    behind=1.364,
)
_ASSISTANT = Weights(
    "assistant",
    intercept=-13.06,
    weights={
        "similarity": 5.173,
        "tokens": 18.884,
        "coverage": 1.076,
        "length": -0.341,
        "asks": 0.175,
        "sitting": 1.6,
        "author": 1.5,
        "when": 0.7,
    },
    means={
        "similarity": 0.512,
        "tokens": 0.306,
        "coverage": 0.037,
        "sitting": 0.6,
        "length": 3.183,
        "asks": 0.03,
        "author": 0.5,
    },
    few=0.508,
    behind=0.862,
)
_ASSISTANT_WITHOUT_TOKENS = Weights(
    "assistant",
    intercept=-12.335,
    weights={
        "similarity": 11.966,
        "coverage": 2.766,
        "length": 0.25,
        "asks": 0.161,
        "sitting": 1.6,
        "author": 1.5,
        "when": 0.7,
    },
    means={
        "similarity": 0.523,
        "coverage": 0.039,
        "sitting": 0.6,
        "length": 3.189,
        "asks": 0.031,
        "author": 0.5,
    },
    few=0.496,
    behind=1.047,
)
_PLAIN = Weights(
    "plain",
    intercept=-9.854,
    weights={
        "similarity": 5.173,
        "tokens": 18.884,
        "coverage": 1.076,
        "length": -0.341,
        "asks": 0.175,
        "when": 0.7,
    },
    means={
        "similarity": 0.512,
        "tokens": 0.306,
        "coverage": 0.037,
        "length": 3.183,
        "asks": 0.03,
    },
    few=0.508,
    behind=0.862,
)
_PLAIN_WITHOUT_TOKENS = Weights(
    "plain",
    intercept=-9.654,
    weights={
        "similarity": 11.966,
        "coverage": 2.766,
        "length": 0.25,
        "asks": 0.161,
        "when": 0.7,
    },
    means={
        "similarity": 0.523,
        "coverage": 0.039,
        "length": 3.189,
        "asks": 0.031,
    },
    few=0.496,
    behind=1.047,
)
_DOCUMENTS = Weights(
    "documents",
    intercept=-7.906,
    weights={
        "similarity": 3.554,
        "tokens": 12.482,
        "coverage": 2.037,
        "length": -0.379,
    },
    means={
        "similarity": 0.534,
        "tokens": 0.391,
        "coverage": 0.152,
        "length": 4.581,
    },
    few=0.08,
    behind=1.876,
)
_DOCUMENTS_WITHOUT_TOKENS = Weights(
    "documents",
    intercept=-7.67,
    weights={
        "similarity": 9.109,
        "coverage": 3.915,
        "length": -0.185,
    },
    means={
        "similarity": 0.541,
        "coverage": 0.155,
        "length": 4.571,
    },
    few=0.117,
    behind=1.739,
)
PRESETS = {
    "people": _PEOPLE,
    "assistant": _ASSISTANT,
    "plain": _PLAIN,
    "documents": _DOCUMENTS,
}
"""The weights by style: chats between people, a user and an assistant, other memories, documents. Those of `when`,
`sitting` and `author` in the second and third are set by hand: there are too few labelled questions for them."""
WITHOUT_TOKENS = {
    "people": _PEOPLE_WITHOUT_TOKENS,
    "assistant": _ASSISTANT_WITHOUT_TOKENS,
    "plain": _PLAIN_WITHOUT_TOKENS,
    "documents": _DOCUMENTS_WITHOUT_TOKENS,
}
"""The same for a model without token vectors."""


def load(path: str | Path, key: str = "search.rerank_weights") -> dict[str, Weights]:
    """Return the presets, with those of a file replaced: JSON or YAML as `memoranda eval fit` writes it, `{style:
    {intercept: number, weights: {feature: number}, means: {feature: number}, few: number, behind: number}}`.

    Raises:
        ConfigError: the file cannot be read or has another shape.
    """
    import yaml  # saves 20 ms without a file

    try:
        read = yaml.safe_load(Path(path).expanduser().read_text("utf-8"))
        given = msgspec.convert(read, dict[str, dict[str, Any]])
        styles = {name: msgspec.convert({**style, "name": name}, Weights) for name, style in given.items()}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as exc:
        raise ConfigError(key, f"the file {path} cannot be read as weights: {exc}") from exc
    for style in styles.values():
        if style.name not in PRESETS:
            raise ConfigError(key, f"{path} names the style {style.name!r}; use one of {', '.join(PRESETS)}")
        single = {"intercept": style.intercept, "few": style.few, "behind": style.behind}
        for name, number in (*style.weights.items(), *style.means.items(), *single.items()):
            if name not in (*FEATURES, *single) or not np.isfinite(number):
                raise ConfigError(
                    key,
                    f"{path}: {style.name} has {name}: {number}; use finite numbers for {', '.join(FEATURES)}",
                )
    return PRESETS | styles
