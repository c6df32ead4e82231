"""Measures whether responses answer questions with known answers: by terms, and by a model as judge if wanted."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

import msgspec

from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.run import Progress
from memoranda.app.evals.written import written
from memoranda.app.memoranda import Memoranda
from memoranda.errors import InvalidInput
from memoranda.providers.chat.completion import complete, instructed
from memoranda.responses.values import MemoryUse, text_of
from memoranda.text.terms import terms

JUDGE = (
    "Is the reply to the question right? It is if it says what the answer says, in whatever words, also among other"
    " things. Reply with yes or no."
)
JUDGE_TOKENS = 200
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_OTHER = re.compile(r"[\W_]+")


class AnswerQuality(msgspec.Struct, kw_only=True):
    """The replies to the questions of a category.

    `match` is the share that has the answer word for word, normalised as SQuAD does (Rajpurkar et al. 2016: lower case,
    without punctuation and articles). `terms` is the mean share of the answer's stemmed terms that the reply has.
    `judged` is the share that the model calls right, None without a judge. `none` is the share whose evidence was
    `none`. `words` is the mean number of words of a reply.
    """

    category: str
    title: str
    questions: int
    match: float
    terms: float
    judged: float | None
    none: float
    words: float


class AnswerReport(msgspec.Struct, kw_only=True):
    """All categories, first `all`. `answered_by` is the language model, or `extractive`."""

    dataset: str
    model: str
    answered_by: str
    categories: list[AnswerQuality]


class _Reply(msgspec.Struct, frozen=True):
    question: Question
    text: str
    none: bool
    by: str
    judged: bool | None


async def measure(
    dataset: Dataset, *, embedder: str | None, data: str, judge: bool, progress: Progress
) -> AnswerReport:
    """Ask every question whose answer is known, each as a response with the memories of its conversation.

    Raises:
        InvalidInput: no question has an answer; or a judge is wanted and no model is configured.
    """
    asked = [question for question in dataset.questions if question.answer or _never_said(dataset, question)]
    if not any(question.answer for question in asked):
        raise InvalidInput(dataset.name, "has no question with an answer in words")
    async with written(dataset, embedder=embedder, data=data, progress=progress) as (product, stored):
        if judge and product.engine.model.quotes_only:
            raise InvalidInput("--judge", "needs a language model; set model.url")
        replies = []
        for number, question in enumerate(asked, 1):
            replies.append(await _reply(product, question, judge))
            progress("asking", number, len(asked))
        model = stored.model
    overall = [reply for reply in replies if not _never_said(dataset, reply.question)]
    groups = {"all": overall} | {
        name: [reply for reply in replies if reply.question.category == name]
        for name in dict.fromkeys(reply.question.category for reply in replies)
    }
    return AnswerReport(
        dataset=dataset.name,
        model=model,
        answered_by=replies[0].by,
        categories=[
            _quality(name, dataset.titles.get(name, ""), group) for name, group in groups.items() if group
        ],
    )


def _never_said(dataset: Dataset, question: Question) -> bool:
    return dataset.overall is not None and question.category not in dataset.overall


async def _reply(product: Memoranda, question: Question, judge: bool) -> _Reply:
    sessions = [scope.partition(":")[2] for scope in question.scopes or () if scope.startswith("session:")]
    response = await product.responses.create(
        question.text, store=False, memory=MemoryUse(session_id=sessions[0]) if sessions else None
    )
    text = " ".join(text_of(item) for item in response.output if item["type"] == "message")
    right = await _judged(product, question, text) if judge and question.answer else None
    by = str(response.extensions.get("answered_by", ""))
    return _Reply(question, text, response.extensions.get("evidence", "none") == "none", by, right)


async def _judged(product: Memoranda, question: Question, reply: str) -> bool:
    exchange = f"Question: {question.text}\nAnswer: {question.answer}\nReply: {reply}"
    ask = instructed(JUDGE, exchange, JUDGE_TOKENS, temperature=0.0)
    return "yes" in (await complete(product.engine.model, ask)).text.lower()


def normalised(text: str) -> str:
    """Return a text in lower case without punctuation and English articles."""
    return " ".join(_ARTICLE.sub(" ", _OTHER.sub(" ", text.lower())).split())


def matches(reply: str, answer: str) -> bool:
    """Return True if a reply has the words of an answer, in their order."""
    return f" {normalised(answer)} " in f" {normalised(reply)} "


def share_of_terms(reply: str, answer: str) -> float:
    """Return the share of the answer's stemmed terms that a reply has; 1 if it has none."""
    wanted = set(terms(answer))
    return len(wanted & set(terms(reply))) / len(wanted) if wanted else 1.0


def _quality(name: str, title: str, replies: Sequence[_Reply]) -> AnswerQuality:
    known = [reply for reply in replies if reply.question.answer]
    judged = [float(reply.judged) for reply in known if reply.judged is not None]
    return AnswerQuality(
        category=name,
        title=title,
        questions=len(replies),
        match=_mean([float(matches(reply.text, reply.question.answer)) for reply in known]),
        terms=_mean([share_of_terms(reply.text, reply.question.answer) for reply in known]),
        judged=_mean(judged) if judged else None,
        none=_mean([float(reply.none) for reply in replies]),
        words=_mean([float(len(reply.text.split())) for reply in replies]),
    )


def _mean(values: Sequence[float]) -> float:
    return round(statistics.fmean(values), 4) if values else 0.0
