"""How often the sentence that answers is quoted, without a language model.

    python benchmarks/quotes.py [--files DOCS] [--spans CHUNKING] [--xquad XQUAD] [--embedder URL] [--words] [--fit]

files   the questions below, to a store of their files: right if a quote has the key text.
spans   questions.csv of chunking_evaluation (Smith and Troynikov 2024), to a store of three of its corpora: right if a
        quote is of one of the spans that answer, or has one.
xquad   questions of XQuAD (Artetxe et al. 2020), to the paragraphs that keyword search finds first: right if a quote is
        the sentence in which the answer begins.

`found` are the questions whose text is among those that are quoted from, `first` those that the first quote answers,
`any` those that one of the quotes answers. Half of the questions, of XQuAD those of half of the articles, are to choose
on. `--fit` fits the weights on them, each set counts the same. `--words` quotes by words alone.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoranda import Memoranda
from memoranda.indexes.keyword import WordDoc, open_words
from memoranda.knowledge.passages import source
from memoranda.providers.chat.base import Source
from memoranda.providers.chat.quoting import Floats, Weights, best, candidates, likely, similarities
from memoranda.providers.embeddings import DEFAULT_EMBEDDER, open_embedder
from memoranda.providers.embeddings.base import (
    Embedded,
    Embedder,
    Task,
    TokenVectors,
    Vectors,
    WrappedEmbedder,
)
from memoranda.text.sentences import spans

LIMIT = 10
"""Passages of a question."""
L2 = 0.001
STEP = 2
"""Of the questions to a paragraph of XQuAD, every second one is asked."""
LANGUAGES = ("en", "de", "ru", "zh", "hi")
ARTICLES, PARAGRAPHS = 20, 5
"""Articles of XQuAD, and paragraphs that are quoted from."""
CORPORA = ("state_of_the_union", "chatlogs", "wikitexts")
QUESTIONS = {
    "pdf/markitdown__movie-theater-booking-2024.pdf": (
        ("In which format is New Year Mystery shown?", "4DX"),
        ("Who is the contact person of the cinema?", "Primary Contact: Sarah Johnson"),
        ("How much commission does the booking agency get?", "Commission: 10%"),
        ("How much money does the whole booking bring in?", "$12,500.00"),
        ("Can I rely on the times of the shows?", "showtimes are approximate"),
    ),
    "txt/unstructured__norwich-city.txt": (
        ("In which town was Iwan Roberts born?", "Bangor"),
        ("What did Huddersfield pay for Roberts?", "275,000"),
        ("Which teacher helped Roberts at school?", "Iolo Owen"),
        ("What is the book of Iwan Roberts called?", "All I Want for"),
        ("Which illness did the footballer have on his arm?", "malignant melanoma"),
        ("Who was the opponent in the last game of Roberts for Norwich?", "Gresty Road against Crewe"),
        ("How did Roberts lose his first front tooth?", "best\nfriend's heel"),
    ),
    "md/docling__multi_page.md": (
        ("Who holds the patent on the typewriter?", "Christopher Latham Sholes"),
        ("When did the first version of Microsoft Word come out?", "1983"),
        ("Which word processor ran on CP/M?", "WordStar (1978)"),
        ("What do authors of film scripts write with?", "Final Draft"),
        ("How can several people change one document at the same time?", "Real-Time Collaboration"),
        ("What did Wang Laboratories make?", "dedicated word processing machines"),
        ("Which program can take dictation?", "Dragon NaturallySpeaking"),
    ),
    "md/docling__wiki_duck.html.md": (
        ("What is a male duck called?", "drake"),
        ("Where in the world are there no ducks?", "except Antarctica"),
        ("How many kinds of steamer duck can hardly fly?", "almost flightless"),
        ("What do sea ducks eat?", "fish and shellfish"),
        ("Why did English give up the word ened for a duck?", "avoid confusion"),
        ("How do I recognise a stifftail?", "small size and stiff, upright tails"),
    ),
    "ppt/tika__testPPT_skipBadCompressedObject.ppt": (
        ("How many pilots took part in the study of conflict displays?", "8 General Aviation Pilots"),
        ("How fast was the ownship in the conflict scenarios?", "Speed = 320 kts"),
        ("At which conflict angles did pilots need a tool against loss of separation?", "60 degrees or less"),
        ("Which aid made pilots respond sooner to a conflict?", "lerting led to faster"),
    ),
    "docx/docx4j__Creating_SmartArt_with_docx4j.docx": (
        ("What is inside a glox file?", "just 2 parts"),
        ("Since which release can docx4j make SmartArt?", "docx4j 2.7.0"),
    ),
    "docx/docx4j__OpenDoPE_XHTML.docx": (
        ("What renders XHTML when docx4j converts it?", "Flying Saucer"),
        ("How do I insert two paragraphs of XHTML although there must be one root?", "wrap them in a div"),
    ),
    "txt/unstructured__Bank_Good_Credit_Loan.pptx.txt": (
        ("Which column joins the files of the credit card customers?", "customer no"),
        ("What is in the enquiries file?", "Enquired made by customers"),
    ),
    "docx/markitdown__test_with_comment.docx": (
        ("What is AutoGen for?", "build LLM applications via multiple agents"),
    ),
    "html/unstructured__example-steelJIS-datasheet-utf-16.html": (
        ("What is the steel SNB22-3 made into?", "nuclear reactors"),
        ("What is the Brinell hardness of SNB22-3?", "293-375"),
    ),
    "md/docling__deepseek_title.md.md": (
        ("How many pages of DocLayNet did people annotate?", "80863"),
    ),
    "pdf/pdf.js__bug1019475_1.pdf": (
        ("Who invented the source map format?", "Joseph Schorr"),
        ("Where is the newest draft of the source map specification?", "tc39.es/ecma426"),
    ),
    "html/tika__resume.html": (
        ("Кто видит резюме, если доступ к нему закрыт?", "только те работодатели"),
        ("По какому признаку узнать обман при поиске работы?", "внести оплату"),
    ),
    "doc/tika__test_TIKA-1251.doc": (
        ("Hvilket nummer ringer ansvarsvakten når det brenner?", "tlf 110"),
        ("Hvem vedlikeholder prosedyren for ansvarsvakt?", "Leder har ansvar"),
    ),
}  # fmt: skip
"""By file: questions in words of their own, each with a text that the answer has."""


class Remembering(WrappedEmbedder):
    """An embedder that makes the vectors of a sentence once, since the questions share sentences."""

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self._known: dict[tuple[str, str], tuple[Vectors, TokenVectors | None]] = {}

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        missing = [text for text in dict.fromkeys(texts) if (task, text) not in self._known]
        if missing:
            made = await self.inner.embed(missing, task)
            for text, vector, tokens in zip(missing, made.vectors, made.tokens_of_each, strict=True):
                self._known[task, text] = vector, tokens
        known = [self._known[task, text] for text in texts]
        of_tokens = [tokens for _, tokens in known if tokens is not None]
        return Embedded(np.array([vector for vector, _ in known]), 0, None, of_tokens or None)


class Asked(NamedTuple):
    """A question, the texts to quote from, and the `keys`: a quote is right if it has one of them, or, of a `whole`
    sentence or more, if one of them has it. `answer` is the number of the source that answers, None: any."""

    question: str
    sources: Sequence[Source]
    keys: Sequence[str]
    answer: int | None = None
    whole: bool = False

    def right(self, number: int, quote: str) -> bool:
        """Return True if a quote of a source answers."""
        if self.answer is not None and number != self.answer:
            return False
        said = _plain(quote)
        return any(key in said or (self.whole and said in key) for key in map(_plain, self.keys))

    @property
    def found(self) -> bool:
        """True if the text that answers is among the sources."""
        return any(
            self.answer in (None, source.number) and _plain(key) in _plain(source.text)
            for source in self.sources
            for key in self.keys
        )


Halves = dict[bool, list[Asked]]
"""The questions to choose weights on (True), and those to report."""


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def of_xquad(path: Path) -> Halves:
    """Return the questions of a language; those of articles with an even index are to choose on."""
    articles = json.loads(path.read_text("utf-8"))["data"][:ARTICLES]
    paragraphs = [(at, each) for at, article in enumerate(articles) for each in article["paragraphs"]]
    texts = [paragraph["context"] for _, paragraph in paragraphs]
    halves: Halves = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        words = open_words("tantivy:", Path(folder))
        words.put("t", [WordDoc(seq, text, {"seq": seq}) for seq, text in enumerate(texts)])
        for seq, (at, paragraph) in enumerate(paragraphs):
            for each in paragraph["qas"][::STEP]:
                top = words.search("t", each["question"], PARAGRAPHS).seqs.tolist()
                sources = [Source(number=one, text=texts[one], title="") for one in top]
                begin = each["answers"][0]["answer_start"]
                key = next(texts[seq][start:end] for start, end in spans(texts[seq]) if begin < end)
                halves[at % 2 == 0].append(Asked(each["question"], sources, [key], seq, whole=True))
        words.close()
    return halves


async def of_files(docs: Path, embedder: str) -> Halves:
    """Return `QUESTIONS` with the passages that a store of their files is searched for; those with an even index are to
    choose on."""
    paths = [docs / name for name in QUESTIONS]
    asked = [(question, [key], False) for some in QUESTIONS.values() for question, key in some]
    return await _searched(paths, asked, embedder)


async def of_spans(folder: Path, embedder: str) -> Halves:
    """Return the questions of `questions.csv` with passages; those with an even index are to choose on."""
    with (folder / "questions.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["corpus_id"] in CORPORA]
    asked = [
        (row["question"], [each["content"] for each in json.loads(row["references"])], True) for row in rows
    ]
    return await _searched([folder / f"{name}.md" for name in CORPORA], asked, embedder)


async def _searched(
    paths: Sequence[Path], asked: Sequence[tuple[str, list[str], bool]], embedder: str
) -> Halves:
    async with await Memoranda.open(":memory:", embedder={"url": embedder}) as product:
        stores = product.knowledge.stores
        store = await stores.create(name="files")
        for path in paths:
            await stores.upload(store.id, path)
        while (await stores.get(store.id)).file_counts.in_progress:
            await asyncio.sleep(0.1)
        halves: Halves = {True: [], False: []}
        for at, (question, keys, whole) in enumerate(asked):
            passages = (await stores.search(store.id, question, limit=LIMIT)).data
            sources = [source(passage, number) for number, passage in enumerate(passages)]
            halves[at % 2 == 0].append(Asked(question, sources, keys, whole=whole))
        return halves


class Known(NamedTuple):
    """The sentences for a question with their features, and which of them answer."""

    features: Floats
    right: NDArray[np.bool_]


async def known(asked: Asked, embedder: Embedder | None) -> Known:
    """Return what weights are fitted on."""
    sentences, known = candidates(asked.question, asked.sources)
    if embedder is not None:
        known, sentences = likely(known, sentences)
        known[:, 0] = await similarities(asked.question, sentences, embedder)
    right = [asked.right(each.source.number, each.text) for each in sentences]
    return Known(known, np.array(right, np.bool_))


def fitted(sets: Sequence[Sequence[Known]]) -> Floats:
    """Return the weights under which the sentences that answer have most probability, by Newton's method; each set
    counts the same, and weights are drawn to 0 a little (l2)."""
    cases = [(case, 1.0 / len(some)) for some in sets for case in some if case.right.any()]
    scale = np.vstack([case.features for case, _ in cases]).std(axis=0)
    scale[scale == 0.0] = 1.0
    rows = [(case.features / scale, case.right, share) for case, share in cases]
    weights = np.zeros(len(scale))

    def loss(at: Floats) -> float:
        total = L2 * float(at @ at) / 2
        for matrix, right, share in rows:
            scores = matrix @ at
            total += share * float(np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[right]))
        return total

    for _ in range(100):
        slope, curve = -L2 * weights, L2 * np.eye(len(scale))
        for matrix, right, share in rows:
            scores = matrix @ weights
            all_of, of_right = _softmax(scores), _softmax(np.where(right, scores, -np.inf))
            mean = all_of @ matrix
            slope += share * matrix.T @ (of_right - all_of)
            curve += share * ((matrix * all_of[:, None]).T @ matrix - np.outer(mean, mean))
        step, part, before = np.linalg.solve(curve, slope), 1.0, loss(weights)
        while part > 1e-4 and loss(weights + part * step) > before:
            part /= 2
        weights = weights + part * step
        if before - loss(weights) < 1e-7:
            break
    return weights / scale


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max())
    result: Floats = powers / powers.sum()
    return result


async def measured(name: str, half: Sequence[Asked], embedder: Embedder | None) -> str:
    """Return a row of the table: how many of the questions are answered, and what an answer costs."""
    found = first = some = quotes = 0
    began = time.process_time()
    for asked in half:
        right = [
            asked.right(each.source.number, each.text)
            for each in await best(asked.question, asked.sources, embedder)
        ]
        found, first, some = found + asked.found, first + (right[:1] == [True]), some + any(right)
        quotes += len(right)
    spent = (time.process_time() - began) / len(half) * 1000
    return f"| {name} | {len(half)} | {found} | {first} | {some} | {quotes / len(half):.2f} | {spent:.0f} |"


async def run(args: argparse.Namespace) -> None:
    """Measure what the arguments name."""
    sets: dict[str, Halves] = {}
    if args.files is not None:
        sets["files"] = await of_files(args.files, args.embedder)
    if args.spans is not None:
        sets["spans"] = await of_spans(args.spans, args.embedder)
    if args.xquad is not None:
        model = open_embedder(args.embedder)
        known = (
            LANGUAGES
            if args.words or model.languages is None
            else [one for one in LANGUAGES if one in model.languages]
        )
        sets |= {f"xquad {one}": of_xquad(args.xquad / f"xquad.{one}.json") for one in known}
        model.close()
    await report(sets, None if args.words else Remembering(open_embedder(args.embedder)), fit=args.fit)


async def report(sets: dict[str, Halves], embedder: Embedder | None, *, fit: bool) -> None:
    """Print the weights that fit the halves to choose on, or how many questions of each half are answered."""
    if fit:
        some = [[await known(asked, embedder) for asked in halves[True]] for halves in sets.values()]
        print(dict(zip(Weights._fields, fitted(some).round(3).tolist(), strict=False)))
        return
    print("| | questions | found | first | any | quotes | CPU ms |\n|---|--:|--:|--:|--:|--:|--:|")
    for name, halves in sets.items():
        for chosen_on, half in halves.items():
            print(
                await measured(f"{name}, {'to choose on' if chosen_on else 'left out'}", half, embedder),
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("files", "spans", "xquad"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--embedder", default=DEFAULT_EMBEDDER)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--fit", action="store_true")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
