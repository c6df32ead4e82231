"""Evaluates ways of searching on a bundled set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memoranda.app.evals import assistant, synthetic
from memoranda.app.evals.dataset import Dataset
from memoranda.app.evals.evaluation import Evaluation, EvaluationQuestion, SearchConfiguration
from memoranda.app.evals.run import write
from memoranda.app.memoranda import Memoranda
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput
from memoranda.providers.embeddings.base import Embedded, Task, WrappedEmbedder
from memoranda.store.core import Core
from memoranda.types import Subject

SETS: Mapping[str, Callable[[], Dataset]] = {"synthetic": synthetic.read, "assistant": assistant.read}


async def evaluate_bundled(
    product: Memoranda,
    subject: Subject,
    name: str,
    configurations: Sequence[SearchConfiguration | Mapping[str, Any]],
    *,
    limit: int = 10,
) -> Evaluation:
    """Evaluate configurations on a bundled set (`synthetic`, `assistant`), which is written to a store of its own in
    memory, embedded by the product's model at the cost of the subject's tenant.

    Raises:
        InvalidInput: there is no such set; see `evaluate`.
    """
    if name not in SETS:
        raise InvalidInput("set", f"must be one of {', '.join(SETS)}")
    dataset = await product.core.threads.run(SETS[name])
    dataset = replace(
        dataset, memories={key: replace(memory, id=key) for key, memory in dataset.memories.items()}
    )
    config = Config(data=":memory:", search=product.config.search)
    charged = _Charged(product.core, subject.tenant_id)
    async with await Memoranda.open(config=config, embedder=charged) as temporary:
        written = await write(temporary.memories, dataset)
        ids = {key: id_ for id_, keys in written.keys.items() for key in keys}
        questions = [
            EvaluationQuestion(
                query=question.text,
                relevant=list(dict.fromkeys(ids[key] for key in question.grades)),
                misleading=list(dict.fromkeys(ids[key] for key in sorted(question.wrong))),
                scopes=question.scopes,
                category=question.category,
            )
            for question in dataset.questions
        ]
        evaluation = await temporary.evaluate(questions, configurations, limit=limit)
    return replace(evaluation, set=name)


class _Charged(WrappedEmbedder):
    """The embedder of a product, at the cost of one tenant."""

    def __init__(self, core: Core, tenant: str) -> None:
        super().__init__(core.embedder)
        self._costs, self._tenant = core.costs, tenant

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        return await self._costs.embed(self.inner, texts, task, tenant=self._tenant, purpose="embeddings")
