"""Recall right after a write, while its embeddings are pending, against recall once they are stored."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import msgspec

from memoranda.app.evals import metrics
from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.observed import check_messages, embed_pending, message_of
from memoranda.app.evals.run import Progress
from memoranda.app.evals.written import measured
from memoranda.app.memoranda import Memoranda
from memoranda.store.ingest import Ingest
from memoranda.store.rows import Draft
from memoranda.types import NewMemory

K = 10
STEP = 40
"""Messages observed at once, as a client sends a stretch of a conversation."""


class Freshness(msgspec.Struct, kw_only=True):
    """Recall@10 in three states of the same rows, averaged over questions.

    `fresh`: the messages that answer were just written, all others are embedded; `settled`: the same question once they
    are embedded, too. `importing`: half of the conversations' messages wait, among them those that answer;
    `imported`: the same questions at the end. `degraded`: the share of the answers that said `embedding`.
    """

    dataset: str
    model: str
    questions: int
    fresh: float
    settled: float
    fresh_degraded: float
    import_questions: int
    importing: float
    imported: float
    importing_degraded: float


class _Pending(Ingest):
    """Stores no vector that a search makes: otherwise a few questions would end the measured state."""

    def store_later(self, tenant: str, drafts: Sequence[Draft]) -> None:
        pass


class _DeferredProduct:
    """A product that makes pending embeddings only on request."""

    def __init__(self, product: Memoranda) -> None:
        self.product = product
        core = product.core
        pending = _Pending(core.store, core.embedder, core.threads, core.ingest.bounds, core.costs)
        msgspec.structs.force_setattr(core, "ingest", pending)
        self.keys: dict[str, str] = {}

    async def observe(self, messages: Mapping[str, NewMemory]) -> None:
        """Write messages, a stretch of one session at a time."""
        for session in dict.fromkeys(message.session_id for message in messages.values()):
            some = [(key, message) for key, message in messages.items() if message.session_id == session]
            said = [message_of(message) for _, message in some]
            observed = await self.product.sessions.observe(said, session_id=session)
            self.keys |= {outcome.message.id: key for outcome, (key, _) in zip(observed, some, strict=True)}

    async def settle(self) -> None:
        """Embed everything that is pending."""
        await embed_pending(self.product.core)

    async def ask(self, questions: Sequence[Question]) -> tuple[list[float], list[bool]]:
        """Return the recall@10 of each question, and whether its answer was degraded by a missing embedding."""
        recalls, degraded = [], []
        for question in questions:
            results = await self.product.memories.search(
                question.text, scopes=question.scopes, limit=K, threshold=0.0
            )
            ranked = [self.keys[hit.memory.id] for hit in results.results]
            recalls.append(metrics.recall(ranked, question.grades, K))
            degraded.append("embedding" in results.degraded)
        return recalls, degraded


async def measure(dataset: Dataset, *, embedder: str | None, progress: Progress) -> Freshness:
    """Measure both states over the messages of a dataset.

    Raises:
        InvalidInput: the memories of the dataset are no messages of sessions.
    """
    check_messages(dataset)
    model_settings = {} if embedder is None else {"url": embedder}
    idle = {"workers": 0}  # nothing is embedded in the background
    config = measured(":memory:", embedder=model_settings, jobs=idle)
    async with await Memoranda.open(config=config) as product:
        model = product.core.store.model
        fresh, settled, missed = await _after_each_stretch(_DeferredProduct(product), dataset, progress)
    async with await Memoranda.open(config=config) as product:
        importing, imported, waited = await _during_an_import(_DeferredProduct(product), dataset, progress)
    return Freshness(
        dataset=dataset.name,
        model=model,
        questions=len(fresh),
        fresh=_mean(fresh),
        settled=_mean(settled),
        fresh_degraded=_mean(missed),
        import_questions=len(importing),
        importing=_mean(importing),
        imported=_mean(imported),
        importing_degraded=_mean(waited),
    )


async def _after_each_stretch(
    product: _DeferredProduct, dataset: Dataset, progress: Progress
) -> tuple[list[float], list[float], list[bool]]:
    """After each stretch of the conversations, ask what it answers: at once, and again once it is embedded."""
    fresh: list[float] = []
    settled: list[float] = []
    missed: list[bool] = []
    known: set[str] = set()
    items = list(dataset.memories.items())
    for at in range(0, len(items), STEP):
        stretch = dict(items[at : at + STEP])
        await product.observe(stretch)
        known |= stretch.keys()
        asked = [
            question
            for question in dataset.questions
            if question.grades.keys() <= known and question.grades.keys() & stretch.keys()
        ]
        recalls, degraded = await product.ask(asked)
        await product.settle()
        fresh += recalls
        missed += degraded
        settled += (await product.ask(asked))[0]
        progress("after each stretch", at + len(stretch), len(items))
    return fresh, settled, missed


async def _during_an_import(
    product: _DeferredProduct, dataset: Dataset, progress: Progress
) -> tuple[list[float], list[float], list[bool]]:
    """Ask what the second half of the messages answers while all of its embeddings are pending, and again at the
    end."""
    items = list(dataset.memories.items())
    half = dict(items[1::2])
    await product.observe(dict(items[::2]))
    await product.settle()
    await product.observe(half)
    asked = [question for question in dataset.questions if question.grades.keys() & half.keys()]
    importing, waited = await product.ask(asked)
    progress("during an import", 1, 2)
    await product.settle()
    imported, _ = await product.ask(asked)
    progress("during an import", 2, 2)
    return importing, imported, waited


def _mean(values: Sequence[float]) -> float:
    return round(statistics.fmean(values), 4) if values else 0.0
