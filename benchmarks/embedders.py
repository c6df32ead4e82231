"""How good and how fast each embedder is, as a markdown table; `--calibrate` fits what its cosines mean.

    python benchmarks/embedders.py --data FOLDER [--vectors FOLDER] [--calibrate | --batches | --weights] [URL ...]

`--data` holds `scifact/` (BEIR), `locomo/locomo_dev5.json`, and for models of several languages `xquad/`, of which
articles 1, 3, 5 and so on are for fitting. Rates are per second of CPU time, one thread. `--batches` shows what sharing
a run of the model does to a vector, `--weights` what a search finds by the weight of vectors. `--vectors` keeps the
vectors between runs, as the largest model needs about eight CPU minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.linalg import norm
from numpy.typing import NDArray

from memoranda import Memoranda
from memoranda.providers.embeddings import CachedEmbedder, Calibration, Task, open_embedder
from memoranda.providers.embeddings.base import centred
from memoranda.providers.embeddings.onnx import OnnxEmbedder
from memoranda.providers.embeddings.static import StaticEmbedder

MODELS = ("local:arctic-embed-s", "local:potion-base-8m", "local:wordllama", "hash:256")
COLUMNS = (
    "dim",
    "SciFact nDCG@10",
    "LoCoMo R@10",
    "query, CPU ms",
    "turns/s",
    "256-token texts/s",
    "load, CPU ms",
    "MB",
)
WEIGHTS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Group:
    """Passages and the questions asked of them: `relevant[i]` are the passages that answer question i."""

    passages: list[str]
    questions: list[str]
    relevant: list[list[int]]


@dataclass(frozen=True)
class Scored:
    """Cosines (questions, passages) of one group, and which passages are relevant."""

    cosines: Floats
    relevant: list[list[int]]


def scifact(data: Path) -> list[Group]:
    """BEIR SciFact test: title and abstract as one passage."""
    corpus = [json.loads(line) for line in (data / "scifact/corpus.jsonl").open()]
    queries = {q["_id"]: q["text"] for q in map(json.loads, (data / "scifact/queries.jsonl").open())}
    place = {document["_id"]: i for i, document in enumerate(corpus)}
    relevant: dict[str, list[int]] = {query: [] for query in queries}
    for line in (data / "scifact/qrels_test.tsv").read_text().splitlines()[1:]:
        query, document, score = line.split("\t")
        if int(score) > 0:
            relevant[query].append(place[document])
    passages = [f"{document['title']} {document['text']}" for document in corpus]
    return [Group(passages, list(queries.values()), [relevant[query] for query in queries])]


def xquad(path: Path) -> list[Group]:
    """The fitting half of XQuAD in one language: paragraphs and their questions."""
    articles = json.loads(path.read_text())["data"][::2]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    asked = [(each["question"], i) for i, paragraph in enumerate(paragraphs) for each in paragraph["qas"]]
    questions, relevant = [question for question, _ in asked], [[i] for _, i in asked]
    return [Group([paragraph["context"] for paragraph in paragraphs], questions, relevant)]


def locomo(data: Path) -> list[Group]:
    """LoCoMo conversations: turns as `speaker: text [image: caption]`, questions of categories 1 to 4."""
    groups = []
    for sample in json.loads((data / "locomo/locomo_dev5.json").read_text()):
        talk = sample["conversation"]
        turns = [t for key, value in talk.items() if re.fullmatch(r"session_\d+", key) for t in value]
        place = {turn["dia_id"]: i for i, turn in enumerate(turns)}
        asked = [q for q in sample["qa"] if q["category"] in (1, 2, 3, 4)]
        evidence = [_evidence(q, place) for q in asked]
        kept = [i for i, places in enumerate(evidence) if places]
        groups.append(
            Group(
                [_turn(t) for t in turns], [asked[i]["question"] for i in kept], [evidence[i] for i in kept]
            )
        )
    return groups


def _turn(turn: dict[str, str]) -> str:
    caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


def _evidence(question: dict[str, object], place: dict[str, int]) -> list[int]:
    """The turns named as evidence; some ids are joined in one string or padded with zeros."""
    found = re.findall(r"D(\d+):0*(\d+)", " ".join(map(str, question["evidence"])))  # type: ignore[call-overload]
    return sorted({place[name] for name in (f"D{s}:{t}" for s, t in found) if name in place})


def recall(scored: Scored, k: int) -> list[float]:
    """Per question, the share of its relevant passages among the k nearest."""
    top = np.argsort(-scored.cosines, axis=1, kind="stable")[:, :k]
    return [
        len(set(row) & set(rel)) / len(rel) for row, rel in zip(top.tolist(), scored.relevant, strict=True)
    ]


def ndcg(scored: Scored, k: int = 10) -> list[float]:
    """Per question, nDCG@k with binary gains."""
    top = np.argsort(-scored.cosines, axis=1, kind="stable")[:, :k]
    discount = 1 / np.log2(np.arange(2, k + 2))
    return [
        float(discount[np.isin(row, rel)].sum() / discount[: len(rel)].sum())
        for row, rel in zip(top, scored.relevant, strict=True)
    ]


class Vectors:
    """Vectors of one embedder, kept in a folder when there is one."""

    def __init__(self, embedder: CachedEmbedder, folder: Path | None) -> None:
        self.embedder = embedder
        self.folder = folder

    def of(self, name: str, texts: Sequence[str], task: Task) -> Floats:
        """(n, dim) float32, one row per text."""
        file = self.folder / f"{self.embedder.model}.{name}.npy" if self.folder else None
        if file and file.exists():
            kept: Floats = np.load(file)
            return kept
        vectors = asyncio.run(self.embedder.embed(texts, task)).vectors
        if file:
            np.save(file, vectors)
        return vectors

    def score(self, name: str, groups: list[Group]) -> list[Scored]:
        """Every question of a group against every passage of it."""
        scored = []
        for i, group in enumerate(groups):
            passages = self.of(f"{name}{i}", group.passages, "document")
            questions = self.of(f"{name}{i}-questions", group.questions, "query")
            scored.append(Scored(questions @ passages.T, group.relevant))
        return scored


def cpu(embedder: CachedEmbedder, texts: Sequence[str], task: Task) -> float:
    """CPU seconds per text, over rounds of at least a second together, after a warm one."""
    asyncio.run(embedder.embed(texts[:20], task))
    began, rounds, spent = time.process_time(), 0, 0.0
    while spent < 1:
        asyncio.run(embedder.embed(texts, task))
        rounds, spent = rounds + 1, time.process_time() - began
    return spent / rounds / len(texts)


def load_ms(url: str) -> float:
    """CPU milliseconds from a started Python to the first vector, in a process of its own."""
    code = (
        "import asyncio, sys, time; began = time.process_time()\n"
        "from memoranda.providers.embeddings import open_embedder\n"
        "asyncio.run(open_embedder(sys.argv[1]).embed(['one'], 'query')); print(time.process_time() - began)"
    )
    done = subprocess.run([sys.executable, "-c", code, url], check=True, capture_output=True, text=True)
    return 1000 * float(done.stdout)


def megabytes(embedder: CachedEmbedder) -> float:
    """What the model takes on disk."""
    if not isinstance(embedder.inner, OnnxEmbedder | StaticEmbedder):
        return 0
    folder, manifest = embedder.inner.folder.folder, embedder.inner.folder.manifest
    names = [name for name in (manifest.weights, manifest.tokenizer, manifest.scales) if name]
    return sum((folder / name).stat().st_size for name in names) / 1e6


def of_256_tokens(passages: Sequence[str], embedder: CachedEmbedder, wanted: int) -> list[str]:
    """Texts of about 256 tokens: words of the passages, as many as average there."""
    words = " ".join(passages[:200]).split()
    tokens = asyncio.run(embedder.embed([" ".join(words[i : i + 100]) for i in range(0, 2000, 100)])).tokens
    per = max(1, int(256 * 2000 / tokens))
    return [" ".join(words[i * per : (i + 1) * per]) for i in range(wanted)]


def row(url: str, data: Path, folder: Path | None) -> str:
    """One line of the table."""
    embedder = open_embedder(url, cache_size=0)
    vectors = Vectors(embedder, folder)
    papers, talks = scifact(data), locomo(data)
    quality = np.mean([value for scored in vectors.score("scifact", papers) for value in ndcg(scored)])
    recalled = np.mean([value for scored in vectors.score("locomo", talks) for value in recall(scored, 10)])
    query = cpu(embedder, talks[0].questions[:100], "query") * 1000
    short = 1 / cpu(embedder, talks[0].passages[:300], "document")
    long = 1 / cpu(embedder, of_256_tokens(papers[0].passages, embedder, 40), "document")
    return (
        f"| {url} | {embedder.dim} | {quality:.3f} | {recalled:.3f} | {query:.2f} | {short:,.0f} | {long:,.0f} "
        f"| {load_ms(url):.0f} | {megabytes(embedder):.1f} |"
    )


def calibrate(url: str, data: Path, folder: Path | None) -> str:
    """The knots for one model, and what they give; see docs/guides/embedders.md for the reasoning."""
    vectors = Vectors(open_embedder(url, cache_size=0), folder)
    scored = {"LoCoMo": vectors.score("locomo", locomo(data))}
    if len(vectors.embedder.languages or ()) > 1:
        for path in sorted((data / "xquad").glob("xquad.*.json")):
            scored[path.suffixes[0][1:]] = vectors.score(path.stem, xquad(path))
    else:
        scored["SciFact"] = vectors.score("scifact", scifact(data))
    chance = {name: _chance(groups) for name, groups in scored.items()}
    right = {name: _right(groups) for name, groups in scored.items()}
    fitted = fit([*right.values()])
    center, same = direction(vectors, data)
    lines = [
        f"{url}: low {fitted.low:.3f}, firm {fitted.firm:.3f}, same {same:.2f}, center of {norm(center):.2f}"
    ]
    if folder:
        rounded = [round(value, 4) for value in center.tolist()]
        (folder / f"{vectors.embedder.model}.center.json").write_text(json.dumps(rounded))
    for name in scored:
        lines.append(
            f"  {name}: random p50 {_read(fitted, chance[name], 50):.2f} p99 {_read(fitted, chance[name], 99):.2f};"
            f" relevant in the top 10 p10 {_read(fitted, right[name], 10):.2f} p50"
            f" {_read(fitted, right[name], 50):.2f} p90 {_read(fitted, right[name], 90):.2f}; at least"
            + "".join(
                f" {floor}: {np.mean(right[name] >= fitted.cosine(floor)):.0%}" for floor in (0.5, 0.6, 0.7)
            )
        )
    return "\n".join(lines)


def direction(vectors: Vectors, data: Path) -> tuple[Floats, float]:
    """The mean (dim,) of the unit vectors of turns and, for a model of several languages, of paragraphs, each set
    counting the same; and the cosine without it that 95 % of the pairs of turns of one speaker are below."""
    talks = locomo(data)
    turns = [vectors.of(f"locomo{i}", talk.passages, "document") for i, talk in enumerate(talks)]
    means = [np.concatenate(turns).mean(axis=0)]
    if len(vectors.embedder.languages or ()) > 1:
        for path in sorted((data / "xquad").glob("xquad.*.json")):
            means.append(vectors.of(f"{path.stem}0", xquad(path)[0].passages, "document").mean(axis=0))
    center = np.mean(means, axis=0)
    pairs = []
    for talk, made in zip(talks, turns, strict=True):
        speakers = np.array([text.partition(":")[0] for text in talk.passages])
        units = centred(made, tuple(center.tolist()))
        one = np.triu(speakers[:, None] == speakers[None, :], 1)
        pairs.append((units @ units.T)[one])
    return center, float(np.percentile(np.concatenate(pairs), 95))


def fit(right: list[Floats]) -> Calibration:
    """Knots by which nine in ten of the relevant passages found read at least .7, in each set; the line below
    goes on as steeply as from there to the median of the set that scores highest."""
    seven_tenths = min(float(np.percentile(cosines, 10)) for cosines in right)
    middle = max(float(np.median(cosines)) for cosines in right)
    return Calibration(round(middle - (middle - seven_tenths) / 0.3, 3), round(seven_tenths, 3))


def _chance(groups: list[Scored]) -> Floats:
    """Cosines of questions with passages that do not answer them."""
    kept = []
    for scored in groups:
        mask = np.ones(scored.cosines.shape, bool)
        for i, relevant in enumerate(scored.relevant):
            mask[i, relevant] = False
        kept.append(scored.cosines[mask])
    return np.concatenate(kept)


def _right(groups: list[Scored]) -> Floats:
    """Per question, the cosine of its best relevant passage, where that is among the ten nearest."""
    best = []
    for scored in groups:
        tenth = -np.partition(-scored.cosines, 9, axis=1)[:, 9]
        top = [row[relevant].max() for row, relevant in zip(scored.cosines, scored.relevant, strict=True)]
        best.append(np.array(top)[np.array(top) >= tenth])
    return np.concatenate(best)


def _read(calibration: Calibration, cosines: Floats, percentile: float) -> float:
    return calibration.similarity(float(np.percentile(cosines, percentile)))


async def weights(url: str, data: Path) -> str:
    """R@1 and R@10 of hybrid searches by the weight of vectors, as a table: LoCoMo, and XQuAD's fitting half."""
    groups = {"LoCoMo": locomo(data)}
    groups |= {path.suffixes[0][1:]: xquad(path) for path in sorted((data / "xquad").glob("xquad.*.json"))}
    lines = ["| set |" + "".join(f" {weight} |" for weight in WEIGHTS), "|---|" + "--:|" * len(WEIGHTS)]
    for name, some in groups.items():
        found = np.concatenate([await _recalls(url, group) for group in some])
        means = found.mean(axis=0)
        lines.append(f"| {name} |" + "".join(f" {first:.3f} / {ten:.3f} |" for first, ten in means))
    return "\n".join([url, *lines])


async def _recalls(url: str, group: Group) -> NDArray[np.float64]:
    """(questions, weights, 2): R@1 and R@10 of each question."""
    rows = []
    async with await Memoranda.open(":memory:", embedder={"url": url}) as product:
        texts = [{"id": str(i), "content": text} for i, text in enumerate(group.passages)]
        for i in range(0, len(texts), 100):
            await product.memories.add_many(texts[i : i + 100])
        asked = [
            {"query": question, "relevant": [str(i) for i in relevant][:20]}
            for question, relevant in zip(group.questions, group.relevant, strict=True)
        ]
        for i in range(0, len(asked), 250):
            answers = []
            for j in range(0, len(WEIGHTS), 4):
                ways = [{"name": str(weight), "dense_weight": weight} for weight in WEIGHTS[j : j + 4]]
                compared = await product.evaluate(asked[i : i + 250], ways, limit=10)
                answers.append([each.answers for each in compared.questions])
            for parts in zip(*answers, strict=True):
                rows.append([(float(one.rank == 1), one.recall) for part in parts for one in part])
    return np.array(rows)


def batches(url: str, data: Path) -> str:
    """What running several texts at once does to an ONNX model's vectors and to its speed."""
    inner = open_embedder(url).inner
    if not isinstance(inner, OnnxEmbedder):
        return f"{url}: no batches"
    session, names, output = inner._loaded()
    ids = sorted((inner._ids(text) for text in locomo(data)[0].passages[:128]), key=len)

    def run(rows: list[list[int]]) -> Floats:
        padded = np.zeros((len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(padded)
        for i, tokens in enumerate(rows):
            padded[i, : len(tokens)] = tokens
            mask[i, : len(tokens)] = 1
        inputs = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(padded)}
        first: Floats = session.run([output], {name: inputs[name] for name in names})[0][:, 0]
        unit: Floats = first / np.linalg.norm(first, axis=1, keepdims=True)
        return unit

    alone = np.concatenate([run([tokens]) for tokens in ids])
    lines = [
        f"{url}, turns sorted by length",
        "| batch | cosine to alone, least | mean | turns/s |",
        "|--:|--:|--:|--:|",
    ]
    for size in (1, 4, 16, 64):
        began = time.process_time()
        made = np.concatenate([run(ids[i : i + size]) for i in range(0, len(ids), size)])
        spent = time.process_time() - began
        cosines = (made * alone).sum(axis=1)
        lines.append(f"| {size} | {cosines.min():.4f} | {cosines.mean():.4f} | {len(ids) / spent:,.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table, or the calibrations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL_URL")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--batches", action="store_true")
    parser.add_argument("--weights", action="store_true")
    given = parser.parse_args()
    if given.calibrate:
        for url in given.models:
            if url.startswith("hash:"):
                continue
            print(calibrate(url, given.data, given.vectors), flush=True)
        return
    if given.weights:
        for url in given.models:
            print(asyncio.run(weights(url, given.data)), flush=True)
        return
    if given.batches:
        print("\n\n".join(batches(url, given.data) for url in given.models))
        return
    print("| model |", " | ".join(COLUMNS), "|")
    print("|---" + "|--:" * len(COLUMNS) + "|")
    for url in given.models:
        print(row(url, given.data, given.vectors), flush=True)


if __name__ == "__main__":
    main()
