"""Measures in each language whether a search finds what a person said, and how sure it is of what nobody said."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from memoranda.app.evals.reading import read_yaml
from memoranda.app.evals.run import Progress
from memoranda.app.evals.written import measured
from memoranda.app.memoranda import Memoranda
from memoranda.errors import InvalidInput
from memoranda.types import NewMemory

BUNDLED = Path(__file__).parent / "languages.yaml"
_BETWEEN = " | "


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The memories of one person, each with a question (`MEMORY | QUESTION`), and questions about what was never said.
    Weights may be fitted on it if `fit`."""

    language: str
    fit: bool
    said: list[str]
    never: list[str]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    languages: list[Language]


class _Answer(msgspec.Struct, frozen=True):
    """The place of the right memory from 1 on (None if it was not found, or nothing answers), whether the evidence is
    strong, and the score of the first hit (0 without hits)."""

    place: int | None
    strong: bool
    score: float


class LanguageQuality(msgspec.Struct, kw_only=True):
    """How a search does in one language, or in all of one half (`fit`, `held out`).

    `recall_at_1` and `recall_at_5` are shares of `questions`, `strong` is how many of these have strong evidence, and
    `score` is the mean score of the first hit. `never`, `never_strong` and `never_score` are the same of questions that
    nothing answers.
    """

    language: str
    fit: bool
    questions: int
    recall_at_1: float
    recall_at_5: float
    strong: int
    score: float
    never: int
    never_strong: int
    never_score: float


class LanguageReport(msgspec.Struct, kw_only=True):
    """The languages of a file in its order, and each half that has any of them."""

    dataset: str
    model: str
    languages: list[LanguageQuality]
    halves: list[LanguageQuality]


def read(path: Path = BUNDLED, *, only: Sequence[str] = (), held_out: bool = False) -> list[Language]:
    """Return the languages of a YAML file like the bundled one: those named in `only` (empty: all), without the ones to
    fit on if `held_out`.

    Raises:
        InvalidInput: the file is missing or has another shape; it lacks a language, or all are left out.
    """
    try:
        languages = msgspec.convert(read_yaml(path, BUNDLED.name), _File).languages
    except msgspec.ValidationError as exc:
        raise InvalidInput(str(path), f"{exc}; give a file like {BUNDLED.name}") from exc
    for one in languages:
        for line in one.said:
            if line.count(_BETWEEN) != 1:
                raise InvalidInput(
                    f"{path.name}, {one.language}", f"{line!r} is not like `MEMORY | QUESTION`"
                )
        if not one.said or not one.never:
            raise InvalidInput(f"{path.name}, {one.language}", "needs lines in `said` and in `never`")
    languages = [one for one in languages if not (held_out and one.fit)]
    known = [one.language for one in languages]
    if unknown := [name for name in only if name not in known]:
        raise InvalidInput("--language", f"{unknown[0]!r} must be one of {', '.join(known)}")
    if not languages:
        raise InvalidInput(
            str(path), "has no language to measure; give a file with one that is not `fit: true`"
        )
    return [one for one in languages if not only or one.language in only]


async def measure(
    path: Path, languages: Sequence[Language], *, embedder: str | None, progress: Progress
) -> LanguageReport:
    """Store the memories of each language for a user of its own, all in one tenant, and ask that user's questions by a
    search with default options."""
    config = measured(":memory:", embedder={} if embedder is None else {"url": embedder})
    answers = []
    async with await Memoranda.open(config=config) as product:
        for number, language in enumerate(languages, 1):
            answers.append((language, *await _answers(product, language)))
            progress("asking", number, len(languages))
        model = product.core.store.model
    halves = []
    for name, fit in (("fit", True), ("held out", False)):
        said = [answer for language, some, _ in answers if language.fit is fit for answer in some]
        never = [answer for language, _, some in answers if language.fit is fit for answer in some]
        if said:
            halves.append(_quality(name, fit, said, never))
    return LanguageReport(
        dataset=path.stem,
        model=model,
        languages=[_quality(one.language, one.fit, said, never) for one, said, never in answers],
        halves=halves,
    )


async def _answers(product: Memoranda, language: Language) -> tuple[list[_Answer], list[_Answer]]:
    """Return the answers to the questions about what was said, and to those about what was not."""
    subject = msgspec.structs.replace(product.subject, user_id=language.language, role="member")
    memories = product.as_subject(subject).memories
    pairs = [line.split(_BETWEEN) for line in language.said]
    added = await memories.add_many([NewMemory(content=text) for text, _ in pairs])

    async def answer(question: str, right: str | None) -> _Answer:
        found = await memories.search(question)
        ids = [hit.memory.id for hit in found.results]
        place = ids.index(right) + 1 if right in ids else None
        return _Answer(place, found.evidence == "strong", found.results[0].score if ids else 0.0)

    said = [await answer(asked, one.memory.id) for (_, asked), one in zip(pairs, added, strict=True)]
    return said, [await answer(asked, None) for asked in language.never]


def _quality(name: str, fit: bool, said: Sequence[_Answer], never: Sequence[_Answer]) -> LanguageQuality:
    places = [answer.place for answer in said if answer.place is not None]
    return LanguageQuality(
        language=name,
        fit=fit,
        questions=len(said),
        recall_at_1=round(sum(place == 1 for place in places) / len(said), 4),
        recall_at_5=round(sum(place <= 5 for place in places) / len(said), 4),
        strong=sum(answer.strong for answer in said),
        score=round(statistics.fmean(answer.score for answer in said), 4),
        never=len(never),
        never_strong=sum(answer.strong for answer in never),
        never_score=round(statistics.fmean(answer.score for answer in never), 4),
    )
