"""Options of `memoranda eval`, and the datasets that its arguments name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Concatenate

import msgspec
import typer
from msgspec.structs import replace

from memoranda.app.evals import beir, locomo, longmemeval
from memoranda.app.evals.dataset import Dataset
from memoranda.errors import InvalidInput
from memoranda.store.retrieval.scoring import RERANKS


class Mode(StrEnum):
    """How to search; `all` runs the three one after the other, and `words` is the former name of `keyword`."""

    HYBRID = "hybrid"
    DENSE = "dense"
    KEYWORD = "keyword"
    WORDS = "words"
    ALL = "all"


class Style(StrEnum):
    """Whose conversation it is, see `memoranda.store.retrieval.rerank_weights`."""

    PEOPLE = "people"
    ASSISTANT = "assistant"
    PLAIN = "plain"


ModeOption = Annotated[Mode, typer.Option("--mode", help="How to search; `all` compares the three.")]
EmbedderOption = Annotated[
    str | None, typer.Option("--embedder", metavar="URL", help="The model, instead of the configured one.")
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Ask only the first so many questions.")
]
SpreadOption = Annotated[
    int | None,
    typer.Option("--limit", min=1, help="Ask at most so many questions of each set, evenly spread."),
]
DepthOption = Annotated[int, typer.Option("--depth", min=1, max=100, help="Answers per question.")]
WeightOption = Annotated[
    float | None,
    typer.Option("--dense-weight", min=0, max=1, help="Weight of meaning against words, when fused."),
]
RerankOption = Annotated[
    str | None, typer.Option("--rerank", metavar="NAME", help=f"The second stage: {', '.join(RERANKS)}.")
]
RecencyOption = Annotated[
    str | None,
    typer.Option("--recency", metavar="NAME", help="What age makes of memories: off, decay, boost."),
]
TimesOption = Annotated[
    bool | None, typer.Option("--times/--no-times", help="Whether times that a question names count.")
]
EnrichOption = Annotated[
    bool | None, typer.Option("--enrich/--no-enrich", help="Whether questions are embedded under a header.")
]
AblateOption = Annotated[
    bool, typer.Option("--ablate", help="Every switch on and off, a row each, instead of modes.")
]
DataOption = Annotated[
    str, typer.Option("--data", metavar="DIR", help="Keep the store here; a second run embeds nothing.")
]
DumpOption = Annotated[
    Path | None, typer.Option("--dump", metavar="FILE", help="Write one JSON line per question and mode.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


class SearchOptions(msgspec.Struct, frozen=True):
    """The options of the commands that measure a search."""

    mode: ModeOption = Mode.HYBRID
    embedder: EmbedderOption = None
    limit: LimitOption = None
    depth: DepthOption = 10
    dense_weight: WeightOption = None
    rerank: RerankOption = None
    recency: RecencyOption = None
    times: TimesOption = None
    enrich: EnrichOption = None
    ablate: AblateOption = False
    data: DataOption = ":memory:"
    dump: DumpOption = None
    json: JsonOption = False


SEARCH_OPTIONS = inspect.signature(SearchOptions, eval_str=True).parameters


def search_options(command: Callable[Concatenate[SearchOptions, ...], None]) -> Callable[..., None]:
    """Give a command the options of `SearchOptions`, which it takes as its first argument. Typer sees the options after
    the command's own."""

    @wraps(command)
    def run(**values: Any) -> None:
        options = SearchOptions(**{name: values.pop(name) for name in SEARCH_OPTIONS})
        command(options, **values)

    signature = inspect.signature(command, eval_str=True)
    own = list(signature.parameters.values())[1:]
    run.__signature__ = signature.replace(parameters=[*own, *SEARCH_OPTIONS.values()])  # type: ignore[attr-defined]
    return run


def any_dataset(path: Path) -> Dataset:
    """Return the dataset of a BEIR folder, a LongMemEval file or a LoCoMo-style one."""
    if path.is_dir():
        return beir.read(path)
    return longmemeval.read(path) if longmemeval.is_longmemeval(path) else locomo.read(path)


def limited(dataset: Dataset, limit: int | None) -> Dataset:
    """Return the dataset with its first so many questions.

    Raises:
        InvalidInput: it has none.
    """
    if limit is not None:
        dataset = replace(dataset, questions=dataset.questions[:limit])
    if not dataset.questions:
        raise InvalidInput(dataset.name, "holds no question with a known answer")
    return dataset
