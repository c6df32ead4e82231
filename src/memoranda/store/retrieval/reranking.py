"""Scores the candidates of a search: their rows are read, and each gets the probability that it is relevant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from memoranda.clock import micros
from memoranda.filters import any_of
from memoranda.providers.embeddings.base import Calibration, QueryEmbedding, TokenVectors
from memoranda.providers.embeddings.onnx import max_sim
from memoranda.storage.sql.base import Connection, Database
from memoranda.store.retrieval import superseding
from memoranda.store.retrieval.fusion import (
    COVERED_PENALTY,
    SESSION_BONUS,
    Ranking,
    Target,
    blended,
    boosted,
    decayed,
    estimated,
    reordered,
)
from memoranda.store.retrieval.rerank_features import (
    Around,
    Candidate,
    features,
    read,
    read_neighbours,
    speakers,
    style_of,
)
from memoranda.store.retrieval.scoring import (
    COVERAGE,
    FEATURES,
    PARTS,
    PRESETS,
    SIMILARITY,
    STYLES,
    WITHOUT_TOKENS,
    Weights,
    expected,
    logistic,
    summands,
)
from memoranda.text.questions import coverage, rarity
from memoranda.text.stored import compact_json
from memoranda.text.terms import query_terms

DEPTH = 160
"""The number of candidates whose texts are read, best fused score first; the others stay below them."""
BYTES = 16 * 8_000
"""The most bytes of token vectors that are compared: 8 000 tokens of 128 dimensions, about 2 ms of CPU."""
DOCUMENTS, WRITTEN = "documents", frozenset({"chunk", "document"})
"""The style of texts that nobody said, and their kinds."""
COVERING = 10
"""The number of first candidates whose session summaries penalise messages of the same sessions."""
DAY, HOUR = 86_400_000_000, 3_600_000_000
Floats = NDArray[np.float64]


class How(msgspec.Struct, frozen=True):
    """How candidates are scored: `rerank` is one of `scoring.RERANKS`, `recency` is `off`, `decay` or `boost`; `times`:
    times that the question names count; the weights by style, and the half-life of unused facts in days."""

    rerank: str = "auto"
    recency: str = "decay"
    times: bool = True
    styles: Mapping[str, Weights] = msgspec.field(default_factory=lambda: PRESETS)
    half_life_days: float = 90.0

    @property
    def styled(self) -> bool:
        """True if texts are read for their features, and messages scored by the style of their conversation."""
        return self.rerank in ("auto", *STYLES)

    def style(self, name: str, *, tokens: bool) -> Weights:
        """Return the weights of a style, with token similarities or without."""
        style = self.styles[name]
        return style if tokens or style is not PRESETS[name] else WITHOUT_TOKENS[name]


PASSAGES = How(rerank="plain", recency="off")
"""How chunks of documents are scored."""


class Stage(msgspec.Struct, frozen=True):
    """How candidates were scored: the preset, and the names of the columns of `Ranking.added` and `Ranking.factors`."""

    preset: str | None
    added: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()

    def formula(self, scope_weight: float, added: Mapping[str, float], factors: Mapping[str, float]) -> str:
        """Return the formula of a score as text."""
        if self.preset == "sessions":
            score = f"({' + '.join(f'{value:.3f} {name}' for name, value in added.items())})"
        else:
            score = f"logistic({' '.join(f'{value:+.3f} {name}' for name, value in added.items())})"
        return " x ".join(
            [f"{scope_weight:g}", score, *(f"{value:.3f} {name}" for name, value in factors.items())]
        )


class _Rows(msgspec.Struct):
    """The first candidates of a ranking as rows, None for a row that is removed or not needed, and the neighbours of
    messages. `codes` are those of the token vectors of rows, by seq and part."""

    rows: list[Candidate | None]
    around: Around
    codes: list[tuple[int, bytes]]

    def there(self) -> list[int]:
        """The places of the rows that are not removed."""
        return [i for i, row in enumerate(self.rows) if row is not None]


class RerankQuery(msgspec.Struct, frozen=True):
    """A question to a tenant's rows that pass one of `targets`; ages and times are relative to `now`. `embedding` is
    the question's in the space of vectors `space`, None where it has none; `fresh` are the vectors (windows, dim), by
    seq, of rows that have no stored ones yet. `searched` is how many texts there are to compare, None: many. `weights`
    are factors on what vectors (`dense`) and what terms (`words`) add, 1 by default."""

    tenant: str
    question: str
    now: datetime
    targets: Sequence[Target]
    embedding: QueryEmbedding | None
    space: int
    calibration: Calibration
    fresh: Mapping[int, NDArray[np.float32]] = {}
    searched: int | None = None
    weights: Mapping[str, float] = {}

    @property
    def tokens(self) -> TokenVectors | None:
        """The token vectors of the question; None from a model without them."""
        return None if self.embedding is None else self.embedding.tokens

    def similarities(self, cosines: Floats) -> Floats:
        """Return the similarities (n,) of cosines, NaN where there is none."""
        if self.embedding is None:
            return np.full(len(cosines), np.nan)
        knots = self.calibration
        similar: Floats = np.interp(cosines, [knots.low, knots.firm, 1.0], [0.0, 0.7, 1.0])
        return similar


def rescored(db: Database, asked: RerankQuery, ranked: Ranking, how: How) -> tuple[Ranking, Stage]:
    """Return the candidates by their scores, and how these were made."""
    if not len(ranked):
        return ranked, Stage(None)
    looked = _looked(db, asked, ranked.seqs[:DEPTH].tolist(), how)
    if how.rerank == "sessions":
        plain = ranked.fused / np.where(ranked.scope_weights > 0, ranked.scope_weights, 1.0)
        scores, added, kinds = _merged(asked.question, asked.now, plain, looked)
        stage, sums = Stage("sessions", ("base", "recency", "overlap"), ("kind",)), scores
        relevance, factors = np.full(len(ranked), np.nan), [kinds]
        scores = scores * kinds
    else:
        sums, added, preset = _summed(asked, ranked, looked, how)
        stage = Stage(preset, PARTS)
        scores, factors = logistic(sums), []
        relevance = scores if asked.calibration.center else np.full(len(ranked), np.nan)
    if how.recency != "off":
        stage = replace(stage, factors=(*stage.factors, how.recency))
        factors.append(_aged(asked.now, len(ranked), looked, how))
        scores = scores * factors[-1]
    scores = scores * ranked.scope_weights
    if how.styled:
        stage = replace(stage, factors=(*stage.factors, "newer"))
        factors.append(_superseding(db, asked, looked, scores, sums))
        scores = scores * factors[-1]
    columns = np.column_stack(factors) if factors else np.empty((len(ranked), 0))
    return reordered(ranked, scores, relevance, added, columns), stage


def _superseding(db: Database, asked: RerankQuery, looked: _Rows, scores: Floats, sums: Floats) -> Floats:
    """Return the factors (n,) by which memories that supersede others rise from their scores, which are of these
    sums."""
    factors = np.ones(len(scores))
    if asked.embedding is None or asked.calibration.center is None:
        return factors
    first = np.argsort(-scores[: len(looked.rows)], kind="stable")[: superseding.DEPTH]
    rows = [looked.rows[i] for i in first]
    if sum(row is not None for row in rows) < 2:
        return factors
    key = [asked.tenant, asked.space, compact_json([row.seq for row in rows if row is not None])]
    stored = db.read(lambda c: c.all("part_vectors", key), asked.tenant, late=True)
    vectors = {seq: windows[0] for seq, windows in asked.fresh.items()}
    vectors |= {seq: np.frombuffer(blob, dtype="<f4") for seq, blob in stored}
    placed = sums[first] / superseding.UNIT
    found = superseding.pairs(
        asked.question, asked.embedding.vector, rows, vectors, placed, asked.calibration
    )
    risen = superseding.lifted(scores[first], found)
    factors[first] = np.where(scores[first] > 0, risen / np.maximum(scores[first], 1e-12), 1.0)
    return factors


def _looked(db: Database, asked: RerankQuery, seqs: list[int], how: How) -> _Rows:
    tenant, where = asked.tenant, any_of(*(target.where for target in asked.targets))

    def work(c: Connection) -> _Rows:
        rows = read(c, tenant, seqs)
        around = read_neighbours(c, tenant, rows, where) if how.styled else {}
        codes: list[tuple[int, bytes]] = []
        if how.styled and asked.tokens is not None:
            key = [tenant, asked.space, compact_json(list(rows))]
            codes = [(seq, code) for seq, code in c.all("token_codes", key)]
        return _Rows([rows.get(seq) for seq in seqs], around, codes)

    return db.read(work, tenant, late=True)


def _summed(
    asked: RerankQuery, ranked: Ranking, looked: _Rows, how: How
) -> tuple[Floats, Floats, str | None]:
    """Return the sums (n,) of candidates, what each of `PARTS` adds to them, (n, len(PARTS)), and the style of the
    messages among them, or of the first one, which is that of candidates that were not read, too; None if texts do not
    count."""
    there, rows = looked.there(), [row for row in looked.rows if row is not None]
    tokens = _token_similarities(asked.tokens, looked, ranked.cosines) if how.styled else None
    styles = _styles(rows, how)
    spoken = (style for row, style in zip(rows, styles, strict=True) if row.kind == "message")
    most = next(spoken, styles[0] if styles else "plain")
    names = dict(zip(there, styles, strict=True))
    weights = [how.style(names.get(at, most), tokens=tokens is not None) for at in range(len(ranked))]
    added = summands(
        _values(asked, ranked, looked, how, tokens, weights), weights, asked.searched, asked.weights
    )
    sums = added.sum(axis=1)
    below = len(looked.rows)
    sums[below:] = np.minimum(sums[below:], sums[:below].min())
    return sums, added, most if how.styled else None


def _values(
    asked: RerankQuery,
    ranked: Ranking,
    looked: _Rows,
    how: How,
    tokens: Floats | None,
    weights: Sequence[Weights],
) -> Floats:
    """Return the features (n, len(FEATURES)) of candidates; of those whose texts were not read, or do not count, the
    similarity, the keyword score and what is usual for their style."""
    there, rows = looked.there(), [row for row in looked.rows if row is not None]
    known = asked.similarities(ranked.cosines)
    values = np.zeros((len(ranked), len(FEATURES)))
    some = None if tokens is None else tokens[there]
    values[there] = features(
        asked.question, asked.now, rows, looked.around, known[there], some, timed=how.times
    )
    read = np.zeros(len(ranked), np.bool_)
    read[there] = how.styled
    if read.all():
        return values
    bare = np.stack([style.neutral for style in weights])
    bare[:, COVERAGE] = _keywords(ranked, values[:, COVERAGE], bare[:, COVERAGE])
    bare[:, SIMILARITY] = np.where(np.isnan(known), expected(bare[:, COVERAGE]), known)
    return np.where(read[:, None], values, bare)


def _styles(rows: Sequence[Candidate], how: How) -> list[str]:
    """Return the style of each row: of messages that of their conversation."""
    messages = [row for row in rows if row.kind == "message"]
    spoken = style_of(speakers(messages)) if how.rerank == "auto" else how.rerank
    spoken = spoken if how.styled else "plain"
    return [
        spoken if row.kind == "message" else DOCUMENTS if row.kind in WRITTEN else "plain" for row in rows
    ]


def _keywords(ranked: Ranking, coverage: Floats, mean: Floats) -> Floats:
    """Return the keyword scores (n,) as coverages, in the order of BM25: the best one is what it covers of the
    question's terms, the others are relative to it; the `mean` ones where keyword search found nothing."""
    bm25 = np.nan_to_num(ranked.bm25)
    best = int(bm25.argmax())
    return mean if bm25[best] <= 0 else bm25 / bm25[best] * coverage[best]


def _token_similarities(question: TokenVectors | None, looked: _Rows, cosines: Floats) -> Floats | None:
    """Return the token similarity (n,) of each candidate, of its most similar part; predicted from its cosine where its
    token vectors are not made yet or were not read. None if that is so of all."""
    if question is None or not looked.codes:
        return None
    place = {row.seq: at for at, row in enumerate(looked.rows) if row is not None}
    codes = sorted((place[seq], code) for seq, code in looked.codes)
    sizes = np.cumsum([len(code) for _, code in codes])
    codes = codes[: 1 + int(np.searchsorted(sizes, BYTES))]
    similar = np.full(len(cosines), -np.inf)
    texts = [code for _, code in codes]
    np.maximum.at(similar, [at for at, _ in codes], max_sim(question.astype(np.float32, copy=False), texts))
    unknown = np.isneginf(similar)
    if unknown.any():
        mean = float(np.nanmean(cosines)) if not np.isnan(cosines).all() else 0.0
        cosines = np.where(np.isnan(cosines), mean, cosines)
        similar[unknown] = estimated(cosines[~unknown], similar[~unknown], cosines[unknown])
    return similar


def _merged(question: str, now: datetime, plain: Floats, looked: _Rows) -> tuple[Floats, Floats, Floats]:
    """Return the scores of messages and session summaries as one list, see `fusion.blended`."""
    texts = [row.content if row else "" for row in looked.rows]
    covered = coverage(texts, query_terms(question))
    overlap, ages = np.zeros(len(plain)), np.full(len(plain), np.inf)
    overlap[: len(texts)] = covered @ rarity(covered)
    ages[: len(texts)] = [(micros(now) - row.occurred_at) / HOUR if row else np.inf for row in looked.rows]
    added = blended(plain, ages, overlap)
    kinds = np.ones(len(plain))
    retrieved = [row for row in looked.rows[:COVERING] if row is not None and row.kind == "session_summary"]
    for i, row in enumerate(looked.rows):
        if row is None:
            continue
        if row.kind == "session_summary":
            kinds[i] = SESSION_BONUS
        elif row.kind == "message" and any(_covers(summary, row) for summary in retrieved):
            kinds[i] = COVERED_PENALTY
    return added.sum(axis=1), added, kinds


class _Window(msgspec.Struct):
    """The time window of a session in its summary's metadata."""

    started_at: datetime | None = None
    ended_at: datetime | None = None


def _covers(summary: Candidate, message: Candidate) -> bool:
    """Return True if a message is of a summarized session: by its id, or by its channel and time."""
    if summary.session_id is not None and message.session_id is not None:
        return summary.session_id == message.session_id
    if summary.channel_id is None or summary.channel_id != message.channel_id:
        return False
    try:
        window = msgspec.json.decode(summary.metadata, type=_Window)
    except msgspec.ValidationError:
        return False
    if window.started_at is None or window.ended_at is None:
        return False
    return micros(window.started_at) <= message.occurred_at <= micros(window.ended_at)


def _aged(now: datetime, n: int, looked: _Rows, how: How) -> Floats:
    """Return the factors (n,) of memories by time and importance."""
    factors, at = np.ones(n), micros(now)
    if how.recency == "decay":
        facts = [(i, row) for i, row in enumerate(looked.rows) if row is not None and row.kind == "fact"]
        unused = [(at - max(row.last_accessed_at or 0, row.created_at)) / DAY for _, row in facts]
        factors[[i for i, _ in facts]] = decayed(np.array(unused), how.half_life_days)
        return factors
    there = [(i, row) for i, row in enumerate(looked.rows) if row is not None]
    importance = np.array([float(row.importance) for _, row in there])
    ages = np.array([(at - row.occurred_at) / DAY for _, row in there])
    factors[[i for i, _ in there]] = boosted(importance, ages)
    return factors
