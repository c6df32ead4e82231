"""Compares ways of searching, question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from memoranda.app.evals import metrics
from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.report import by_category
from memoranda.app.evals.run import Answer, Asking, Run, search_as
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories
from memoranda.store.core import Core
from memoranda.store.paging import check_limit
from memoranda.types import Id, Scopes, SearchMode, Share, Subject
from memoranda.types import Question as QuestionText
from memoranda.validation import convert

S = TypeVar("S", bound=msgspec.Struct)

OWN = "own"
MOST_QUESTIONS = 500
MOST_CONFIGURATIONS = 4
MOST_LIMIT = 100
MOST_RESULTS = 50_000
"""The most results of one evaluation, over all questions and configurations."""
PAGE = 500
ALL = "all"
TEXT = 300
"""Characters of a memory that an evaluation shows."""


class EvaluationQuestion(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A question and the ids of the memories that answer it. `misleading` are ids of near misses, which count as
    noise. `scopes` says where to search, by default in all that the subject may see; `category` groups the scores."""

    query: QuestionText
    relevant: Annotated[list[Id], Meta(min_length=1, max_length=20)]
    misleading: Annotated[list[Id], Meta(max_length=20)] = []
    scopes: Scopes | None = None
    category: Annotated[str, Meta(max_length=64)] = ""


class SearchConfiguration(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A way of searching: fields as in a search, None for the configured value. `dense_weight` is the weight of vector
    search, 0..1; keyword search has the rest. `name` is by default the mode."""

    name: Annotated[str, Meta(max_length=64)] = ""
    mode: SearchMode = "hybrid"
    dense_weight: Share | None = None
    rerank: Literal["auto", "people", "assistant", "plain", "sessions", "off"] | None = None
    recency: Literal["off", "decay", "boost"] | None = None
    times: bool | None = None
    enrich: bool | None = None


DEFAULTS = SearchConfiguration(name="configured")


class Answered(msgspec.Struct, kw_only=True):
    """What one configuration returned for a question: ids with their scores, best first; the rank of the first id that
    is relevant, from 1, None without one; the share of the relevant ids that were returned; and `degraded`."""

    ids: list[str]
    scores: list[float]
    rank: int | None
    recall: float
    degraded: list[str]


class Compared(msgspec.Struct, kw_only=True):
    """A question with an answer of each configuration, in their order."""

    query: str
    category: str
    relevant: list[str]
    misleading: list[str]
    answers: list[Answered]


class Scored(msgspec.Struct, kw_only=True):
    """Means of one configuration over `all` questions and those of each category, by measure (`recall@5`, `mrr`, ...);
    `questions` counts them. `degraded` counts the questions whose search was degraded."""

    name: str
    scores: dict[str, dict[str, int | float]]
    degraded: int


class Evaluation(msgspec.Struct, kw_only=True):
    """Configurations compared on one set. `texts` has the beginning of each memory that `questions` names, by id, at
    most 300 characters. Ids of a bundled set name nothing that is stored."""

    set: str
    limit: int
    configurations: list[Scored]
    questions: list[Compared]
    texts: dict[str, str]


class Evaluations:
    """Comparisons of ways to search the memories that one subject sees."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def evaluate(
        self,
        questions: Sequence[EvaluationQuestion | Mapping[str, Any]],
        configurations: Sequence[SearchConfiguration | Mapping[str, Any]] = (DEFAULTS,),
        *,
        limit: int = 10,
    ) -> Evaluation:
        """Ask every question with every configuration of a search, and compare the results with the memories that
        answer it.

        Args:
            questions: 1..500 questions, each with the ids of its memories: `{"query": ..., "relevant": [...]}`, see
                `EvaluationQuestion`.
            configurations: 1..4 ways of searching, each under a name of its own (`{"mode": "keyword"}`), see
                `SearchConfiguration`.
            limit: how many results each question asks for, 1..100; at most 50 000 for all. No floor applies, and the
                language model does not help (`hyde`, `model_rerank`).

        Raises:
            InvalidInput: names the field; also if a memory does not exist.
        """
        _check_number("questions", questions, MOST_QUESTIONS)
        _check_number("configurations", configurations, MOST_CONFIGURATIONS)
        check_limit(limit, MOST_LIMIT)
        if len(questions) * len(configurations) * limit > MOST_RESULTS:
            raise InvalidInput(
                "limit",
                f"x questions x configurations is above {MOST_RESULTS:,} results; ask for fewer of each",
            )
        given = _converted("questions", questions, EvaluationQuestion)
        runs = _runs(_converted("configurations", configurations, SearchConfiguration), limit)
        for at, each in enumerate(given):
            _check_question(self._core, each, f"questions[{at}]")
        texts = await _texts(self._core, self.subject, given)
        asked = [_question(number, question) for number, question in enumerate(given, start=1)]
        memories = Memories(self._core, self.subject)
        for at, question in enumerate(asked):
            for run in runs:
                try:
                    hits, degraded = await search_as(memories, question, run.asking)
                except InvalidInput as exc:
                    says = str(exc).removeprefix(f"{exc.field}: ")
                    raise InvalidInput(f"questions[{at}].{exc.field}", says) from exc
                texts |= {hit.memory.id: hit.memory.content[:TEXT] for hit in hits}
                ranked, scores = [hit.memory.id for hit in hits], [hit.score for hit in hits]
                run.answers.append(Answer(question, ranked, scores, degraded))
        return await self._core.threads.run(_compared_runs, asked, runs, limit, texts)


def _compared_runs(
    asked: list[Question], runs: Sequence[Run], limit: int, texts: dict[str, str]
) -> Evaluation:
    dataset = Dataset(OWN, {}, asked)
    return Evaluation(
        set=OWN,
        limit=limit,
        configurations=[_scored(dataset, run) for run in runs],
        questions=[
            _compared(question, [run.answers[at] for run in runs]) for at, question in enumerate(asked)
        ],
        texts=texts,
    )


def _check_question(core: Core, question: EvaluationQuestion, place: str) -> None:
    if len(question.query) > core.max_query_chars:
        raise InvalidInput(f"{place}.query", f"is longer than {core.max_query_chars} characters")
    if question.category == ALL:
        raise InvalidInput(f"{place}.category", f"{ALL!r} is the name of the means over all; choose another")


def _check_number(field: str, values: Sequence[Any], most: int) -> None:
    if not 1 <= len(values) <= most:
        raise InvalidInput(field, f"must hold 1 to {most}, not {len(values)}")


def _converted(field: str, values: Sequence[Any], type_: type[S]) -> list[S]:
    """Return validated values, also of structs that were built in code."""
    return [
        convert(
            msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value,
            type_,
            f"{field}[{at}]",
        )
        for at, value in enumerate(values)
    ]


def _runs(configurations: Sequence[SearchConfiguration], limit: int) -> list[Run]:
    runs: list[Run] = []
    for at, configuration in enumerate(configurations):
        asking = Asking(**msgspec.structs.asdict(configuration), limit=limit, assisted=False)
        if any(asking.label == run.asking.label for run in runs):
            raise InvalidInput(
                f"configurations[{at}].name",
                f"{asking.label!r} is the name of another one; give each a name of its own",
            )
        runs.append(Run(asking, [], None))
    return runs


async def _texts(core: Core, subject: Subject, questions: Sequence[EvaluationQuestion]) -> dict[str, str]:
    """Return the beginning of each memory that the questions name."""
    named = list(dict.fromkeys(id_ for each in questions for id_ in (*each.relevant, *each.misleading)))
    texts: dict[str, str] = {}
    for at in range(0, len(named), PAGE):
        rows = await core.visible_rows(subject, named[at : at + PAGE])
        texts |= {id_: row.content[:TEXT] for id_, row in rows.items()}
    for at, question in enumerate(questions):
        for field in ("relevant", "misleading"):
            for id_ in getattr(question, field):
                if id_ not in texts:
                    raise InvalidInput(
                        f"questions[{at}].{field}", f"{id_!r} is no memory; take it out of the question"
                    )
    return texts


def _question(number: int, asked: EvaluationQuestion) -> Question:
    return Question(
        id=str(number),
        text=asked.query,
        category=asked.category,
        grades=dict.fromkeys(asked.relevant, 1.0),
        wrong=frozenset(asked.misleading),
        scopes=asked.scopes,
    )


def _scored(dataset: Dataset, run: Run) -> Scored:
    scores = by_category(dataset, run)
    return Scored(
        name=run.asking.label,
        scores={name: values for name, values in scores.items() if name},
        degraded=sum(bool(answer.degraded) for answer in run.answers),
    )


def _compared(question: Question, answers: Sequence[Answer]) -> Compared:
    return Compared(
        query=question.text,
        category=question.category,
        relevant=list(question.grades),
        misleading=sorted(question.wrong),
        answers=[_answered(question, answer) for answer in answers],
    )


def _answered(question: Question, answer: Answer) -> Answered:
    rank = next((at for at, id_ in enumerate(answer.ranked, start=1) if id_ in question.grades), None)
    return Answered(
        ids=answer.ranked,
        scores=answer.scores,
        rank=rank,
        recall=metrics.recall(answer.ranked, question.grades, max(1, len(answer.ranked))),
        degraded=answer.degraded,
    )
