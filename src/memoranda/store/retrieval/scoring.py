"""The score of a hit: the probability that it is relevant to the question. Pure arithmetic.

It is one sum for every search: the logistic function of an intercept, of `weight x feature` over `FEATURES`, of how few
texts were searched, of how near the nearest one is, and of how far a hit is behind the best one of its style. No part
depends on the range that the candidates of one search happen to have, so that scores are comparable between searches.
Talks between people are more alike than other texts, so that they have weights of their own; the weights of all are
fitted on labelled questions and measured on groups left out (`memoranda eval fit`, docs/evaluation.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.errors import ConfigError

Floats = NDArray[np.float64]
FEATURES = (
    "similarity",
    "tokens",
    "coverage",
    "around",
    "sitting",
    "speaker",
    "length",
    "asks",
    "answers",
    "dated",
    "when",
    "author",
    "lacks",
)
"""The columns of a feature matrix; those from `around` to `author`, except `length` and `asks`, are 0 for what is no
message:

| feature | range | what it is |
|---|---|---|
| similarity | 0..1 | calibrated similarity of its vector to the question's |
| tokens | -1..1 | token similarity to the question, see `token_vectors.max_sim`; 0 from a model without token vectors |
| coverage | 0..1 | share of the question's terms it has, rare ones counting more, names of speakers left out |
| around | 0..1 | share that its neighbours have and it does not |
| sitting | 0..1.5 | the best similarity + coverage / 2 of another candidate of the same sitting |
| speaker | -1..1 | 1: the question names its speaker; -1: it names another; 0: it names no speaker |
| length | .. | natural logarithm of 2 + the spaces in it, up to 100 of them |
| asks | 0, 1 | it ends by asking |
| answers | 0, 1 | what was said before it ends by asking |
| dated | 0, 1 | it has a word of time in it, and the question asks when |
| when | 0..1 | how near it was said to a time that the question names |
| author | 0, 1 | it was said by the user of an assistant; by the assistant, where the question asks it what it said |
| lacks | 0..1 | share of the ids in the question, such as E09 (`numbers.ids_in`), that are not in it |
"""
SIMILARITY, TOKENS, COVERAGE = (FEATURES.index(name) for name in ("similarity", "tokens", "coverage"))
INTERCEPT, FEW, LEVEL, BEHIND = "intercept", "few", "level", "behind"
MANY = 50
"""So many texts, and more, are many: `few` is the logarithm of how many times fewer were searched."""
PARTS = (INTERCEPT, *FEATURES, FEW, LEVEL, BEHIND)
"""What a sum is made of."""
STYLES = ("people", "assistant", "plain")
RERANKS = ("auto", *STYLES, "sessions", "off")
BY_VECTOR, BY_TERMS = ("similarity", "tokens"), ("coverage", "around")
"""The features that the weights of a search's two sides are for."""
DENSE, WORDS = 0.65, 0.35
"""The weights of the two sides of a search for which the weights of the features are: those of the model that ships."""
UNKNOWN = 0.5, 0.3
"""The similarity to expect of a text without one: a constant, and what full coverage adds."""


class Weights(msgspec.Struct, frozen=True):
    """A style's weights by feature; the weight of any other feature is 0. `means` are what the features are taken to be
    where they are not computed. `few` weighs how few texts were searched, `level` how near the nearest candidate is (by
    its token similarity, in a model without those by its similarity), `behind` how far behind the best one is."""

    name: str
    intercept: float
    weights: Mapping[str, float]
    means: Mapping[str, float] = msgspec.field(default_factory=dict)
    few: float = 0.0
    level: float = 0.0
    behind: float = 0.0

    @property
    def vector(self) -> Floats:
        """The weights, (len(FEATURES),)."""
        return _vector(self.weights)

    @property
    def nearness(self) -> int:
        """The column of the features that says how near a candidate is."""
        return TOKENS if "tokens" in self.weights else SIMILARITY

    @property
    def neutral(self) -> Floats:
        """The mean features, (len(FEATURES),)."""
        return _vector(self.means)


def _vector(values: Mapping[str, float]) -> Floats:
    return np.array([values.get(name, 0.0) for name in FEATURES])


def logistic(sums: Floats) -> Floats:
    """Return the probabilities of which these are the logits."""
    result: Floats = 1.0 / (1.0 + np.exp(-sums))
    return result


def logits(probabilities: Floats) -> Floats:
    """Return the logits of probabilities, which are kept inside 1e-6 .. 1 - 1e-6."""
    inside = np.clip(probabilities, 1e-6, 1.0 - 1e-6)
    result: Floats = np.log(inside / (1.0 - inside))
    return result


def fewness(searched: int | None) -> float:
    """Return how many times fewer than `MANY` texts were searched, as a natural logarithm, 0..3.9; 0 for None: many."""
    return 0.0 if searched is None else float(np.log(MANY / min(MANY, max(1, searched))))


def expected(coverage: Floats) -> Floats:
    """Return the similarities (n,) to expect of texts that cover so much of the question's terms."""
    return UNKNOWN[0] + UNKNOWN[1] * coverage


def factors(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the factors on what vectors (`dense`) and what terms (`words`) add, for these weights of a search's two
    sides, which count relative to each other."""
    total = weights["dense"] + weights["words"] or 1.0
    return {"dense": weights["dense"] / total / DENSE, "words": weights["words"] / total / WORDS}


def summands(
    features: Floats, styles: Sequence[Weights], searched: int | None, sides: Mapping[str, float] = {}
) -> Floats:
    """Return what each of `PARTS` adds to the sum of each candidate, (n, len(PARTS)).

    `features` (n, len(FEATURES)) are those of candidates of these `styles` (n). `searched` is how many texts there were
    to compare, None: many. `sides` are factors on what vectors (`dense`) and what terms (`words`) add.
    """
    factors = dict.fromkeys(BY_VECTOR, sides.get("dense", 1.0)) | dict.fromkeys(
        BY_TERMS, sides.get("words", 1.0)
    )
    few = fewness(searched)
    added = np.zeros((len(features), len(PARTS)))
    inside = slice(1, 1 + len(FEATURES))
    added[:, inside] = features * _vector({name: factors.get(name, 1.0) for name in FEATURES})
    for style in {id(style): style for style in styles}.values():
        mine = np.array([other is style for other in styles])
        added[mine, 0], added[mine, -3] = style.intercept, few * style.few
        added[mine, inside] *= style.vector
        added[mine, -2] = style.level * features[mine, style.nearness].max()
        sums = added[mine].sum(axis=1)
        added[mine, -1] = style.behind * (sums - sums.max())
    return added


def scored_texts(weights: Weights, similarities: Floats, coverages: Floats, searched: int | None) -> Floats:
    """Return the scores (n,) of texts of which no more is known than their similarities (NaN: not known) and how much
    of the question's terms they cover."""
    values = np.tile(weights.neutral, (len(coverages), 1))
    values[:, SIMILARITY] = np.where(np.isnan(similarities), expected(coverages), similarities)
    values[:, COVERAGE] = coverages
    return logistic(summands(values, [weights] * len(coverages), searched).sum(axis=1))


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
