"""Metrics of the server. Labels are route templates, stages, sides and codes: never an id or a text, but for
the first names of unknown fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from memoranda.contexts.assembly import PARTS
from memoranda.providers.chat.base import Model
from memoranda.providers.embeddings.cache import CachedEmbedder
from memoranda.storage.sql.holds import BOUNDS, Spread
from memoranda.store.core import BackgroundWork, Core
from memoranda.store.job_kinds import FILES_LANE
from memoranda.types import Added

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STATUSES = ("completed", "incomplete", "failed", "cancelled")
FACTS = ("kept", "joined", "superseded", "failed", "unread", "archived", "consolidated")
ASKS = ("answered", "quoted", "fallback", "empty")
ASK_MEMORIES = ("qa_turn", "summary", "manual", "pruned")
FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
MOST_NAMES = 100
"""Names of unknown fields that have a count of their own."""
JOB_STATES = ("queued", "running", "completed", "failed", "cancelled")


class Telemetry:
    """The metrics of one server, in a registry of their own."""

    def __init__(self, core: Core, model: Model | None = None) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("http_requests", "Requests answered.", ("method", "route", "status"))
        self.request_seconds = self._histogram("http_request_seconds", "Seconds per request.", ("route",))
        self.stage_seconds = self._histogram(
            "stage_seconds",
            "Seconds per stage: receive, handle, recall (searches only), memory_search (asking), encode.",
            ("stage",),
        )
        self.searches = self._counter("searches", "Searches answered.")
        self.hits = self._counter("search_hits", "Memories found by searches.")
        self.degraded = self._counter(
            "searches_degraded", "Searches that a side could not answer.", ("side",)
        )
        self.upserts = self._counter("upserts", "Memories written, by what came of it.", ("outcome",))
        self.upsert_failures = self._counter(
            "upsert_failures", "Writes that were refused or failed.", ("code",)
        )
        self.ignored_fields = self._counter(
            "ignored_fields", "Unknown fields in requests of other systems' clients.", ("api", "field")
        )
        self._ignored: set[str] = set()
        self.registry.register(_State(core, model))

    def _counter(self, name: str, says: str, labels: Iterable[str] = ()) -> Counter:
        return Counter(f"memoranda_{name}", says, tuple(labels), registry=self.registry)

    def _histogram(self, name: str, says: str, labels: Iterable[str]) -> Histogram:
        return Histogram(f"memoranda_{name}", says, tuple(labels), registry=self.registry, buckets=BUCKETS)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts one request; `route` is the template, `unknown` for paths that are none."""
        self.requests.labels(method, route, str(status)).inc()
        self.request_seconds.labels(route).observe(seconds)

    def searched(self, hits: int, seconds: float, degraded: Iterable[str]) -> None:
        """Counts one search, its hits, and the indexes that failed."""
        self.searches.inc()
        self.hits.inc(hits)
        self.stage_seconds.labels("recall").observe(seconds)
        for side in degraded:
            self.degraded.labels(side).inc()

    def added(self, outcomes: Iterable[Added]) -> None:
        """Counts memories that were created, and those that existed already."""
        created = [outcome.created for outcome in outcomes]
        self.wrote("created", sum(created))
        self.wrote("present", len(created) - sum(created))

    def wrote(self, outcome: str, count: int) -> None:
        """Counts `count` writes that came to `outcome`: created, present or updated."""
        if count:
            self.upserts.labels(outcome).inc(count)

    def ignored(self, api: str, names: Iterable[str]) -> None:
        """Counts unknown fields; `other` stands for a name after the first `MOST_NAMES`, or one that is no name."""
        for name in names:
            if len(self._ignored) < MOST_NAMES and FIELD_NAME.fullmatch(name):
                self._ignored.add(name)
            self.ignored_fields.labels(api, name if name in self._ignored else "other").inc()

    @contextmanager
    def upserting(self) -> Iterator[None]:
        """Counts a failure of the write inside, by the kind of error."""
        try:
            yield
        except Exception as exc:
            self.upsert_failures.labels(type(exc).__name__).inc()
            raise

    def exposition(self) -> bytes:
        """Everything in Prometheus' text format. Reads the database: call it on a worker thread."""
        return generate_latest(self.registry)


class _State(Collector):
    """Metrics that are read at scrape time: sizes, jobs by state, the embedder's work."""

    def __init__(self, core: Core, model: Model | None) -> None:
        self.core = core
        self.model = model

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self._sizes()
        yield from self._writing()
        yield self._jobs()
        yield from self._embedding()
        yield from self._indexing()
        yield from self._answering()
        yield from self._sessions()
        yield from self._asking()
        yield self._background()

    def _sizes(self) -> Iterator[Metric]:
        store = self.core.store
        for name, says, value in (
            ("index_vectors", "Vectors in the index.", store.index.health().get("vectors", 0)),
            (
                "index_documents",
                "Committed documents in the words.",
                store.words.health().get("documents", 0),
            ),
            ("database_bytes", "Bytes of the database.", store.db.health().get("bytes", 0)),
            (
                "embeddings_pending",
                "Memories that wait for a vector.",
                sum(store.pending_counts.copy().values()),
            ),
        ):
            yield GaugeMetricFamily(f"memoranda_{name}", says, value=float(str(value)))
        behind = GaugeMetricFamily(
            "memoranda_index_behind", "1 when an index missed a change, or cannot keep one.", labels=["side"]
        )
        failing = {"words": store.words.health().get("failure") is not None}
        for side in ("index", "words"):
            behind.add_metric([side], float(side in store.behind or failing.get(side, False)))
        yield behind

    def _writing(self) -> Iterator[Metric]:
        """How long changes block the thread that writes the database."""
        holds = self.core.store.db.holds
        changes = HistogramMetricFamily(
            "memoranda_write_seconds", "Seconds for which a change held the writer, by kind.", labels=["kind"]
        )
        for kind, seconds in holds.changes.copy().items():
            changes.add_metric([kind], *_cumulated(seconds.spread()))
        yield changes
        transactions = HistogramMetricFamily(
            "memoranda_write_transaction_seconds", "Seconds for which a transaction held the writer."
        )
        transactions.add_metric([], *_cumulated(holds.transactions.spread()))
        yield transactions

    def _jobs(self) -> Metric:
        counts = dict(
            self.core.store.db.read(lambda c: [(str(state), n) for state, n in c.all("count_jobs")])
        )
        jobs = GaugeMetricFamily("memoranda_jobs", "Jobs kept, by state.", labels=["state"])
        for state in JOB_STATES:
            jobs.add_metric([state], counts.get(state, 0))
        return jobs

    def _background(self) -> Metric:
        failures = CounterMetricFamily(
            "memoranda_background_failures",
            "Failures of background work, by what it is for.",
            labels=["work"],
        )
        for work in get_args(BackgroundWork):
            failures.add_metric([work], self.core.tally[f"background_failures.{work}"])
        return failures

    def _indexing(self) -> Iterator[Metric]:
        tally = self.core.tally.copy()
        files = CounterMetricFamily(
            "memoranda_files_indexed", "Files indexed, by outcome.", labels=["outcome"]
        )
        for outcome in ("completed", "failed", "skipped"):
            files.add_metric([outcome], tally[outcome])
        yield files
        yield CounterMetricFamily("memoranda_chunks_indexed", "Chunks indexed.", value=tally["chunks"])
        yield CounterMetricFamily(
            "memoranda_reading_seconds", "Seconds spent reading files.", value=tally["reading"]
        )
        yield GaugeMetricFamily(
            "memoranda_damaged",
            "Texts and files that are not what was written, as far as it was noticed since the start.",
            value=len(self.core.store.damage),
        )
        row = self.core.store.db.read(lambda c: c.one("count_lane", [FILES_LANE]))
        waiting = 0 if row is None else row[0]
        yield GaugeMetricFamily("memoranda_files_waiting", "Files waiting or being indexed.", value=waiting)

    def _answering(self) -> Iterator[Metric]:
        tally = self.core.tally.copy()
        for name, says, label, values in (
            ("responses", "Responses made, by how they ended.", "status", STATUSES),
            ("response_tokens", "Tokens of language models.", "direction", ("input", "output")),
            ("tool_calls", "Calls of tools that run here.", "outcome", ("completed", "failed")),
            ("mcp_calls", "Calls of tools by MCP clients.", "outcome", ("completed", "refused", "failed")),
            ("summaries", "Summaries of conversations.", "outcome", ("made", "failed")),
            ("context_tokens", "Tokens of contexts, by part.", "part", PARTS),
        ):
            family = CounterMetricFamily(f"memoranda_{name}", says, labels=[label])
            for value in values:
                family.add_metric([value], tally[f"{name}.{value}"])
            yield family
        for name, says in (
            ("responses_quoted", "Responses quoted from what was found, without a language model."),
            ("memories_told", "Memories put before a language model."),
            ("contexts", "Contexts made."),
            ("sessions_retrieved", "Summaries of sessions found for contexts and responses."),
        ):
            yield CounterMetricFamily(f"memoranda_{name}", says, value=tally[name])
        if self.model is not None:
            asked = CounterMetricFamily(
                "memoranda_model", "What the language model was asked, by kind.", labels=["kind"]
            )
            for kind, count in self.model.usage().items():
                asked.add_metric([kind], count)
            yield asked

    def _sessions(self) -> Iterator[Metric]:
        """Messages, sessions and their summaries."""
        tally = self.core.tally.copy()
        outcomes = ("created", "failed", "skipped")
        for name, says, label, values in (
            ("sessions", "Sessions, by what became of them.", "event", ("opened", "closed")),
            ("session_summaries", "Summaries of sessions, by outcome.", "outcome", outcomes),
            (
                "session_rollups",
                "Weeks of channels summarized, by outcome.",
                "outcome",
                ("created", "failed"),
            ),
            ("facts", "Facts taken out of what was said, by what became of them.", "outcome", FACTS),
        ):
            family = CounterMetricFamily(f"memoranda_{name}", says, labels=[label])
            for value in values:
                family.add_metric([value], tally[f"{name}.{value}"])
            yield family
        for name, says in (
            ("messages_observed", "Messages that were kept."),
            ("session_summary_seconds", "Seconds spent making summaries of sessions."),
        ):
            yield CounterMetricFamily(f"memoranda_{name}", says, value=tally[name])

    def _asking(self) -> Iterator[Metric]:
        """Questions to uploaded documents."""
        tally = self.core.tally.copy()
        for name, says, label, values in (
            ("asks", "Questions to uploaded documents, by how they ended.", "status", ASKS),
            ("ask_tokens", "Tokens of their prompts.", "part", ("documents", "memories", "history")),
            ("ask_memories", "Memories made of them, and pruned.", "kind", ASK_MEMORIES),
        ):
            family = CounterMetricFamily(f"memoranda_{name}", says, labels=[label])
            for value in values:
                family.add_metric([value], tally[f"{name}.{value}"])
            yield family
        for name, says in (
            ("ask_memory_searches", "Searches for memories that go with a question."),
            ("ask_memory_hits", "Memories they found."),
            (
                "ask_upsert_failures",
                "Times that nothing could be remembered of an answer; it is tried again.",
            ),
        ):
            yield CounterMetricFamily(f"memoranda_{name}", says, value=tally[name])

    def _embedding(self) -> Iterator[Metric]:
        embedder = self.core.embedder
        if not isinstance(embedder, CachedEmbedder):
            return
        work = embedder.work
        for name, says, value in (
            ("embedding_tokens", "Tokens the model read.", work.tokens),
            ("embedding_texts", "Texts the model read.", work.texts),
            ("embedding_seconds", "Seconds spent waiting for the model.", work.seconds),
            ("embedding_cache_hits", "Questions answered from the cache.", work.cache_hits),
        ):
            yield CounterMetricFamily(f"memoranda_{name}", says, value=value)
        provider = CounterMetricFamily(
            "memoranda_embedding_provider", "What the provider was asked, by kind.", labels=["kind"]
        )
        for kind, count in embedder.usage().items():
            provider.add_metric([kind], count)
        yield provider


def _cumulated(spread: Spread) -> tuple[list[tuple[str, float]], float]:
    """A histogram as Prometheus wants it: (upper bound, observations up to it), and their sum."""
    bounds = [*(str(bound) for bound in BOUNDS), "+Inf"]
    return list(zip(bounds, map(float, accumulate(spread.counts)), strict=True)), spread.seconds
