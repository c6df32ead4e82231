"""The second stage of ranking: weights of a message's context in its conversation. Pure arithmetic.

A style is a linear model over `FEATURES`, in units of the fused score: a message's score is its fused score plus the
sum of `weight x (feature - mean)`. Means are those of the messages that the weights were fitted on, so that memories
which are no messages, and get nothing, compete with an average one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.errors import ConfigError

Floats = NDArray[np.float64]
FEATURES = (
    "tokens",
    "overlap",
    "around",
    "sitting",
    "speaker",
    "length",
    "asks",
    "answers",
    "dated",
    "when",
    "author",
)
"""The columns of a feature matrix:

| feature | range | what it is |
|---|---|---|
| tokens | -1..1 | token similarity to the question, see `token_vectors.max_sim`; 0 from a model without token vectors |
| overlap | 0..1 | share of the question's terms it has, rare ones counting more, names of speakers left out |
| around | 0..1 | share that its neighbours have and it does not |
| sitting | 0..1 | the best fused score of another candidate of the same sitting |
| speaker | -1..1 | 1: the question names its speaker; -1: it names another; 0: it names no speaker |
| length | .. | natural logarithm of 2 + the spaces in it, up to 100 of them |
| asks | 0, 1 | it ends by asking |
| answers | 0, 1 | what was said before it ends by asking |
| dated | 0, 1 | it has a word of time in it, and the question asks when |
| when | 0..1 | how near it was said to a time that the question names |
| author | 0, 1 | it was said by the user of an assistant; by the assistant, where the question asks it what it said |
"""
STEEPNESS = 4.0
STYLES = ("people", "assistant", "plain")
RERANKS = ("auto", *STYLES, "sessions", "off")


class Weights(msgspec.Struct, frozen=True):
    """A style's weights and means by feature; the weight of any other feature is 0. `steepness` is that of `squashed`:
    the more the features weigh beside the fused score, the lower."""

    name: str
    weights: Mapping[str, float]
    means: Mapping[str, float] = msgspec.field(default_factory=dict)
    steepness: float = STEEPNESS

    def parts(self, features: Floats) -> Floats:
        """Return what each feature (n, len(FEATURES)) adds to the fused score of each message, in the same shape."""
        return (features - _vector(self.means)) * _vector(self.weights)

    @property
    def neutral(self) -> Floats:
        """The features, (len(FEATURES),), that add nothing."""
        return _vector(self.means)


def _vector(values: Mapping[str, float]) -> Floats:
    return np.array([values.get(name, 0.0) for name in FEATURES])


PEOPLE = Weights(
    "people",
    {
        "tokens": 7.547,
        "overlap": 1.021,
        "around": 1.592,
        "sitting": 1.311,
        "speaker": 0.261,
        "length": 0.268,
        "asks": -0.264,
        "answers": 0.228,
        "dated": 0.921,
        "when": 1.197,
    },
    {
        "tokens": 0.279,
        "overlap": 0.07,
        "around": 0.055,
        "sitting": 0.526,
        "speaker": 0.292,
        "length": 3.109,
        "asks": 0.285,
        "answers": 0.271,
        "dated": 0.038,
        "when": 0.045,
    },
    steepness=1.5,
)
"""Chats between people, with a model that has token vectors. Fitted on five conversations of LoCoMo (`memoranda eval
fit`)."""
WITHOUT_TOKENS = Weights(
    "people",
    {
        "overlap": 0.386,
        "around": 0.569,
        "sitting": 0.432,
        "speaker": 0.11,
        "length": 0.176,
        "asks": -0.101,
        "answers": 0.077,
        "dated": 0.365,
        "when": 0.405,
    },
    {
        "overlap": 0.082,
        "around": 0.029,
        "sitting": 0.477,
        "speaker": 0.492,
        "length": 3.102,
        "asks": 0.278,
        "answers": 0.279,
        "dated": 0.04,
        "when": 0.046,
    },
)
"""Chats between people, with a model without token vectors."""
ASSISTANT = Weights(
    "assistant",
    {"overlap": 0.1, "sitting": 0.1, "when": 0.2, "author": 0.15},
    {"sitting": 0.5, "author": 0.5},
)
"""A user and an assistant. Set by hand: what a user says is evidence more often than the assistant's replies. The
weights of chats between people hurt here, so only small weights of style-independent features are used."""
PLAIN = Weights("plain", {"when": 0.2})
"""Messages whose speakers are unknown: the fused score, and the time that a question names."""
PRESETS = {style.name: style for style in (PEOPLE, ASSISTANT, PLAIN)}
TOKENS = FEATURES.index("tokens")


def squashed(scores: Floats, steepness: float = STEEPNESS) -> Floats:
    """Scores of any size mapped onto (0, 1) in the same order: the logistic function, steepest at .5."""
    squashed_scores: Floats = 1.0 / (1.0 + np.exp(-steepness * (scores - 0.5)))
    return squashed_scores


def unsquashed(scores: Floats) -> Floats:
    """Return the scores of which these are the `squashed` ones with the usual steepness."""
    inside = np.clip(scores, 1e-4, 1.0 - 1e-4)
    sums: Floats = 0.5 + np.log(inside / (1.0 - inside)) / STEEPNESS
    return sums


def load(path: str | Path, key: str = "search.rerank_weights") -> dict[str, Weights]:
    """Return the presets, with those of a file replaced: JSON or YAML as `memoranda eval fit` writes it, `{style:
    {weights: {feature: number}, means: {feature: number}}}`.

    Raises:
        ConfigError: the file cannot be read or has another shape.
    """
    import yaml  # saves 20 ms without a file

    try:
        read = yaml.safe_load(Path(path).expanduser().read_text("utf-8"))
        given = msgspec.convert(read, dict[str, dict[str, Any]])
        styles = {
            name: Weights(
                name,
                msgspec.convert(style.get("weights", {}), dict[str, float]),
                msgspec.convert(style.get("means", {}), dict[str, float]),
            )
            for name, style in given.items()
        }
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as exc:
        raise ConfigError(key, f"the file {path} cannot be read as weights: {exc}") from exc
    for style in styles.values():
        if style.name not in STYLES:
            raise ConfigError(key, f"{path} names the style {style.name!r}; use one of {', '.join(STYLES)}")
        for name, number in (*style.weights.items(), *style.means.items()):
            if name not in FEATURES or not np.isfinite(number):
                raise ConfigError(
                    key,
                    f"{path}: {style.name} has {name}: {number}; use finite numbers for {', '.join(FEATURES)}",
                )
    return PRESETS | styles
