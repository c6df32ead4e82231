"""Measures how much of the text that answers is in the first characters of what a search in documents returns."""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from memoranda.app.evals.run import Progress
from memoranda.app.evals.written import measured
from memoranda.app.memoranda import Memoranda
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput
from memoranda.knowledge.checks import chunking_checked
from memoranda.knowledge.values import Passage
from memoranda.text.splitting import Chunking

QUESTIONS = "questions.csv"
HALVES = ("choose", "report")
"""Questions take turns within their document: what is chosen looks at the first half, and the other one is reported."""
_SIZES = re.compile(r"(\d+)/(\d+)")
_FORM = "give a folder with questions.csv (question, references, corpus_id) and a document for each corpus_id"


class Reference(msgspec.Struct, frozen=True):
    """Characters [start_index, end_index) of a document, and their text."""

    content: str
    start_index: int
    end_index: int


class Question(msgspec.Struct, frozen=True):
    """A question, the name of the file that answers it, the places that do, and the half that it belongs to."""

    text: str
    filename: str
    references: list[Reference]
    half: str


class Corpus(msgspec.Struct, frozen=True):
    """The documents of a folder, and the questions about them."""

    name: str
    documents: list[Path]
    questions: list[Question]


class Shares(NamedTuple):
    """Of the first so many characters of the passages, best first, the share of the gold characters that are in them
    (`recall`), also of the passages that fit into them whole (`whole`), the share of them that is gold (`precision`;
    what is repeated counts once as gold), and the number of passages that begin in them."""

    recall: float
    whole: float
    precision: float
    passages: float


class HalfQuality(msgspec.Struct, kw_only=True):
    """The means of `Shares` over one half of the questions, or all, by the number of characters."""

    half: str
    questions: int
    recall: dict[str, float]
    whole: dict[str, float]
    precision: dict[str, float]
    passages: dict[str, float]


class ChunkingQuality(msgspec.Struct, kw_only=True):
    """One way to split: its chunks, the bytes that the data folder grows by for each (texts, vectors and indexes,
    without the uploaded files), and how each half is answered."""

    strategy: str
    size: int
    overlap: int
    header: bool
    chunks: int
    bytes_per_chunk: int
    halves: list[HalfQuality]


class ChunkingReport(msgspec.Struct, kw_only=True):
    """Each way to split the documents of a folder, measured within the first `characters`, half and twice as many."""

    dataset: str
    model: str
    characters: int
    ways: list[ChunkingQuality]


class _Stored(msgspec.Struct, frozen=True):
    """A store with the documents of a corpus: its chunks, texts by file name, bytes, and the model."""

    store_id: str
    chunks: int
    texts: dict[str, str]
    bytes: int
    model: str


def read(folder: Path) -> Corpus:
    """Return the documents and the questions of a folder in the form of chunking_evaluation.

    Raises:
        InvalidInput: a file is missing or has another form; names the file and line.
    """
    path = folder / QUESTIONS
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as exc:
        raise InvalidInput(str(path), f"cannot be read: {exc}; {_FORM}") from exc
    documents: dict[str, Path] = {}
    counts: dict[str, int] = {}
    questions = []
    for number, row in enumerate(rows, start=1):
        where = f"{path}, question {number}"
        try:
            name, text, references = row["corpus_id"], row["question"], row["references"]
            found = msgspec.json.decode(references, type=list[Reference])
        except (KeyError, TypeError, msgspec.DecodeError) as exc:
            raise InvalidInput(where, f"has another form ({exc}); {_FORM}") from exc
        if not text or not any(reference.content for reference in found):
            raise InvalidInput(where, f"has no text or no references; {_FORM}")
        if name not in documents:
            documents[name] = _document(folder, name, where)
        half = HALVES[counts.get(name, 0) % 2]
        counts[name] = counts.get(name, 0) + 1
        questions.append(Question(text, documents[name].name, found, half))
    if len(questions) < 2:
        raise InvalidInput(str(path), f"has fewer than two questions; {_FORM}")
    return Corpus(folder.name, list(documents.values()), questions)


def _document(folder: Path, name: str, where: str) -> Path:
    found = sorted(path for path in folder.glob("*") if path.stem == name and path.name != QUESTIONS)
    if len(found) != 1:
        raise InvalidInput(
            where, f"names the document {name!r}, of which there are {len(found)} in the folder"
        )
    return found[0]


def ways(
    sizes: Sequence[str], config: Config, *, strategy: str | None = None, header: bool | None = None
) -> list[Chunking]:
    """Return a chunking for each of the sizes (`SIZE/OVERLAP`), without any the configured one.

    Raises:
        InvalidInput: one is no such pair, or out of range.
    """
    own = config.knowledge
    chosen = []
    for given in sizes or [f"{own.chunk_size}/{own.chunk_overlap}"]:
        match = _SIZES.fullmatch(given)
        if match is None:
            raise InvalidInput(
                "--chunks", f"{given!r} is not like 200/50, tokens of a chunk and of its overlap"
            )
        chunking = Chunking(
            strategy=strategy or own.chunking,  # type: ignore[arg-type]  # checked below
            size=int(match[1]),
            overlap=int(match[2]),
            header=own.contextual_header if header is None else header,
        )
        chosen.append(chunking_checked(chunking, "--chunks"))
    return chosen


async def measure(
    corpus: Corpus,
    chunkings: Sequence[Chunking],
    *,
    depth: int,
    characters: int,
    embedder: str | None,
    progress: Progress,
) -> ChunkingReport:
    """Upload all documents to one store for each chunking, and search it for the `depth` best chunks for every
    question, with default options otherwise."""
    measures, model = [], ""
    for number, chunking in enumerate(chunkings):
        with TemporaryDirectory(prefix="memoranda-eval-") as data:
            settings: dict[str, object] = {} if embedder is None else {"url": embedder}
            config = measured(data, embedder=settings)
            stored = await _stored(corpus, chunking, config, Path(data))
            model, asked = stored.model, len(corpus.questions) * number
            async with await Memoranda.open(config=config) as product:
                answers = []
                for done, question in enumerate(corpus.questions, start=1):
                    search = product.knowledge.stores.search
                    found = await search(stored.store_id, question.text, limit=depth)
                    answers.append(found.data)
                    progress("asking", asked + done, len(corpus.questions) * len(chunkings))
        measures.append(_quality(corpus, chunking, stored, answers, characters))
    return ChunkingReport(dataset=corpus.name, model=model, characters=characters, ways=measures)


async def _stored(corpus: Corpus, chunking: Chunking, config: Config, data: Path) -> _Stored:
    async with await Memoranda.open(config=config) as product:
        store = await product.knowledge.stores.create(name=corpus.name, chunking=chunking)
    empty = _bytes(data)
    texts, chunks = dict[str, str](), 0
    async with await Memoranda.open(config=config) as product:
        stores = product.knowledge.stores
        files = [await stores.upload(store.id, path) for path in corpus.documents]
        for file, path in zip(files, corpus.documents, strict=True):
            done = await stores.wait_file(store.id, file.id)
            if done.status != "completed":
                raise InvalidInput(str(path), f"was not indexed: {done.last_error}")
            texts[path.name] = await stores.text(store.id, file.id)
            chunks += done.chunk_count
        model = product.core.store.model
    return _Stored(store.id, chunks, texts, _bytes(data) - empty, model)


def _bytes(data: Path) -> int:
    """Return the bytes of the database and the indexes, without those of the uploaded files."""
    paths = [path for path in data.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in paths if path.relative_to(data).parts[0] != "files")


def _quality(
    corpus: Corpus,
    chunking: Chunking,
    stored: _Stored,
    answers: Sequence[Sequence[Passage]],
    characters: int,
) -> ChunkingQuality:
    limits = (characters // 2, characters, 2 * characters)
    halves: dict[str, list[list[Shares]]] = {half: [] for half in (*HALVES, "all")}
    for question, passages in zip(corpus.questions, answers, strict=True):
        gold = gold_spans(question, stored.texts[question.filename])
        shares = [within(passages, question.filename, gold, limit) for limit in limits]
        halves[question.half].append(shares)
        halves["all"].append(shares)
    return ChunkingQuality(
        strategy=chunking.strategy,
        size=chunking.size,
        overlap=chunking.overlap,
        header=chunking.header,
        chunks=stored.chunks,
        bytes_per_chunk=round(stored.bytes / max(1, stored.chunks)),
        halves=[_half(name, limits, every) for name, every in halves.items()],
    )


def _half(name: str, limits: Sequence[int], every: Sequence[Sequence[Shares]]) -> HalfQuality:
    means = [Shares(*map(statistics.fmean, zip(*column, strict=True))) for column in zip(*every, strict=True)]

    def by_limit(what: str) -> dict[str, float]:
        return {str(limit): round(getattr(mean, what), 4) for limit, mean in zip(limits, means, strict=True)}

    return HalfQuality(half=name, questions=len(every), **{what: by_limit(what) for what in Shares._fields})


def gold_spans(question: Question, text: str) -> list[tuple[int, int]]:
    """Return the places of the references in the text that was read out of the document.

    Raises:
        InvalidInput: the text does not have one of them.
    """
    spans = []
    for reference in question.references:
        start = reference.start_index
        if not text.startswith(reference.content, start):
            start = text.find(reference.content)
        if start < 0:
            raise InvalidInput(
                question.filename, f"does not have a reference of {question.text!r}: {reference.content!r}"
            )
        spans.append((start, start + len(reference.content)))
    return spans


def within(passages: Sequence[Passage], filename: str, gold: Sequence[tuple[int, int]], limit: int) -> Shares:
    """Return how much of the gold characters is in the first `limit` characters of the passages."""
    wanted = {at for start, end in gold for at in range(start, end)}
    cut, whole = set[int](), set[int]()
    left = room = limit
    begun = 0
    for passage in passages:
        length = passage.end - passage.start
        own = wanted if passage.filename == filename else set[int]()
        if left > 0:
            cut |= own.intersection(range(passage.start, passage.start + min(length, left)))
            left -= min(length, left)
            begun += 1
        if length <= room:
            whole |= own.intersection(range(passage.start, passage.end))
            room -= length
    return Shares(
        len(cut) / len(wanted), len(whole) / len(wanted), len(cut) / max(1, limit - left), float(begun)
    )
