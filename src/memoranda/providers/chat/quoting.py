"""The sentences of texts that answer a question best: those that are most similar to it, token by token, and have its
words.

A sentence is scored by its token similarity to the question, see `embeddings.token_vectors`, or by the similarity of
its vector where the model has no token vectors; by the words of the question that it has, the rarer the more, and by
those that only what is around it has: its heading, the message before it; and by the rank of its source.
Without a model in this process, or in a language that the model does not cover, the last three count alone. The weights
are fitted by `benchmarks/quotes.py`, see docs/evaluation.md.

What may be quoted is decided by marks and structure. A question is quoted only where there is no statement, and its
words count for the next sentence. A question that a source replies to is left out, and what a summary repeats of a text
that a source took the place of. Beside a quote of a message or a fact, a summary is quoted only for further words of
the question. A heading counts for the sentence below it, and is quoted before that only if it has a number. A row of a
table is quoted with the names of its columns, see `text.tables`, a line of code alone, in backquotes. Of a very long
sentence or row the parts with the question's words are quoted, see `text.highlights`. Lines without an end of a
sentence, as records have, are quoted one by one where together they are too long.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from memoranda.errors import EmbedderUnavailable
from memoranda.providers.chat.base import Source
from memoranda.providers.embeddings.base import Embedder
from memoranda.providers.embeddings.onnx import max_sim
from memoranda.text.analysis import ENGLISH, STEMMERS, Wanted, language_in, occurrences, search_terms
from memoranda.text.highlights import beginning, excerpt, row_excerpt
from memoranda.text.regex import regex
from memoranda.text.sentences import END_MARKS, is_ended, is_question, spans
from memoranda.text.tables import Row, tables
from memoranda.text.terms import query_terms, term_set, terms
from memoranda.text.tokens import well_formed
from memoranda.types import KINDS

_FENCE = regex(r"^[ \t]{0,3}`{3,}+[ \t]*+([^\n`]*+)$", re.MULTILINE)


def code_blocks(text: str) -> list[tuple[int, int]]:
    """Return the characters [start, end) of each block, ascending, its fences of backquotes included.

    A part of a document may start or end inside a block. A start inside is assumed if the first fence names no language
    and either is the only fence and below a line of text, or a fence with a language stands where it would be closed.
    """
    fences = list(_FENCE.finditer(text))
    named = [bool(fence[1].strip()) for fence in fences]
    inside = (
        bool(fences) and not named[0] and (any(named[1::2]) if fences[1:] else _is_below(text, fences[0]))
    )
    starts = (
        [0, *(fence.start() for fence in fences[1::2])] if inside else [one.start() for one in fences[::2]]
    )
    stops = [fence.end() for fence in fences[not inside :: 2]]
    return list(zip_longest(starts, stops, fillvalue=len(text)))[: len(starts)]


def _is_below(text: str, fence: re.Match[str]) -> bool:
    """Return True if the line before a fence is not blank."""
    return bool(text[: fence.start()].removesuffix("\n").rpartition("\n")[2].strip())


Floats = NDArray[np.float64]
MOST = 3


class Weights(NamedTuple):
    """The weights of the features of a sentence in a softmax over all sentences, see `features`, and `enough`: the
    share of the best one's probability that a further quote needs."""

    similarity: float
    words: float
    around: float
    rank: float
    enough: float


TOKENS = Weights(14.6, 4.4, 0.4, -1.2, 0.25)
VECTORS = Weights(11.2, 3.9, 0.4, -2.0, 0.25)
WORDS = Weights(0.0, 7.3, 3.4, -2.2, 0.35)
"""By token similarity, by the similarity of vectors, and by words alone."""
MAX_EMBEDDED = 24
"""Sentences that are embedded for a question: those that score best by words."""
EMBEDDED_CHARS = 800
"""The characters of a sentence that are embedded."""
MAX_CHARS = 400
MAX_SENTENCES = 2_000
CUT = -2.0
"""What is added to the score of a line of code, and of a sentence that is cut off."""
FRAGMENT = 3
"""A text of fewer terms that something took the place of is not looked for in summaries."""
HEADING_WORDS = 12
LONG_SOURCE = 200
"""A text of at least so many characters may begin or end inside a sentence."""
_MARKER = regex(r"`[^`\n]+`|\[(\d+(?:\s*[,;–-]\s*\d+)*)\]|【([^】]{1,40})】")
_NAME = r"(?:[^()\n]|\([^()\n]*\))*"
_SOURCE = regex(
    rf" \(memory: (?:(?:{_NAME}, |fact since )?\d\d [^\W\d_]+ \d{{4}}|{'|'.join(KINDS)})\)|"
    rf"(?<=[{END_MARKS}:;]) \(memory: {_NAME}\)"
)
"""The source behind a quote in an earlier answer: a name and a day, a day, or a kind; behind the end of a sentence any
name, as that of a file."""
_ANSWER = "assistant"
"""The name of the speaker in the titles of earlier answers."""
_TITLE = regex(r"\s*#[ \t]+([^\n]+)")
_HAS_DIGIT = regex(r"\d")
_VISIBLE = regex(r"[^\n]")


class Sentence(msgspec.Struct, frozen=True):
    """A sentence of `source`, the number `rank` among the sources from 0, or a `row` of a table in it, at its place
    among all. `around` is what its source says of it: the heading over it or the question before it, the
    message that the source replies to, and what it took the place of. `heading` is one over it that has a number, and
    `above` any; `whole` is False for a line of code and for what is cut off."""

    source: Source
    rank: int
    place: int
    text: str
    terms: tuple[str, ...]
    around: str = ""
    title: str = ""
    above: str = ""
    heading: str = ""
    whole: bool = True
    row: Row | None = None


async def best(question: str, sources: Sequence[Source], embedder: Embedder | None = None) -> list[Sentence]:
    """Return at most three sentences: the best one, then others in the sources' order; without sentences none."""
    sentences, known = await asyncio.to_thread(candidates, question, sources)
    if not sentences:
        return []
    weights, similarity = WORDS, None
    if embedder is not None and covers(embedder, question):
        known, sentences = likely(known, sentences)
        similarity = await similarities(question, sentences, embedder)
        if similarity is not None:
            weights = TOKENS if embedder.token_dim else VECTORS
            known[:, 0] = similarity
    return await asyncio.to_thread(chosen, question, sentences, known, weights)


def covers(embedder: Embedder, question: str) -> bool:
    """Return True if a model in this process was trained on the language of a question."""
    known = embedder.languages
    return not embedder.remote and (known is None or language_in(question) in {"", *known})


def candidates(question: str, sources: Sequence[Source]) -> tuple[list[Sentence], Floats]:
    """Return the sentences that may be quoted, in order, and their features (n, 4) with a similarity of 0."""
    sentences = _not_repeating([each for each in _sentences(sources) if each.text], sources)
    wanted = _wanted(question, sources)
    statements = [each for each in sentences if not _asks(each)]
    if any(_found(f"{each.text}\n{each.around}", wanted) for each in statements):
        sentences = statements
    return sentences, features(wanted, sentences)


def _wanted(question: str, sources: Sequence[Source]) -> Wanted:
    """Return the terms of a question in the languages of the sources."""
    spoken = ({language_in(source.text) for source in sources} & STEMMERS.keys()) - {ENGLISH}
    return Wanted(frozenset(search_terms(question, spoken)), (ENGLISH, *sorted(spoken)))


def features(wanted: Wanted, sentences: Sequence[Sentence]) -> Floats:
    """Return the features (n, 4) of sentences, in the order of `Weights`.

    | feature | range | what it is |
    |---|---|---|
    | similarity | -1..1 | its token similarity to the question, or that of its vector; here 0 |
    | words | 0..1 | share of the question's terms that it has, each weighted by its rarity among the sentences |
    | around | 0..1 | the share that what is around it has, or the title of its source |
    | rank | >= 0 | ln(1 + rank of its source) |
    """
    titles = {title: _found(title, wanted) for title in {each.title for each in sentences}}
    around = {around: _found(around, wanted) for around in {each.around for each in sentences}}
    own = [_found(each.text, wanted) - titles[each.title] for each in sentences]
    outside = [
        (titles[each.title] | around[each.around]) - terms for each, terms in zip(sentences, own, strict=True)
    ]
    having = Counter(term for some in (*own, *outside) for term in some)
    total = len(sentences)
    rarity = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in having.items()}
    least = sum(rarity.values()) or 1.0
    columns = (
        np.zeros(total),
        [sum(rarity[term] for term in some) / least for some in own],
        [sum(rarity[term] for term in some) / least for some in outside],
        np.log1p([each.rank for each in sentences]),
    )
    return np.column_stack(columns).astype(np.float64)


def _found(text: str, wanted: Wanted) -> frozenset[str]:
    return frozenset(term for _, _, term in occurrences(text[: 4 * MAX_CHARS], wanted))


def likely(known: Floats, sentences: Sequence[Sentence]) -> tuple[Floats, list[Sentence]]:
    """Return the sentences that score best by words, in order, with their features."""
    scores = known @ np.array(WORDS[: known.shape[1]])
    places = np.sort(np.argsort(-scores, kind="stable")[:MAX_EMBEDDED])
    return known[places], [sentences[place] for place in places]


async def similarities(question: str, sentences: Sequence[Sentence], embedder: Embedder) -> Floats | None:
    """Return the similarity (n,) of sentences to a question, of their tokens or their vectors; None if the model does
    not answer."""
    texts = [
        f"{each.above}: {each.text}"[:EMBEDDED_CHARS] if each.above else each.text[:EMBEDDED_CHARS]
        for each in sentences
    ]
    try:
        asked = await embedder.embed([question], "query")
        made = await embedder.embed(texts)
    except EmbedderUnavailable:
        return None
    if asked.token_vectors and made.token_vectors:
        of_question = asked.token_vectors[0].astype(np.float32)
        return max_sim(of_question, [codes.tobytes() for codes in made.token_vectors])
    return np.array(
        [embedder.calibration.similarity(float(cosine)) for cosine in made.vectors @ asked.vectors[0]]
    )


def chosen(question: str, sentences: Sequence[Sentence], known: Floats, weights: Weights) -> list[Sentence]:
    """Return what is quoted of sentences with these features, as it is quoted."""
    scores = known @ np.array(weights[: known.shape[1]])
    scores += [0.0 if each.whole else CUT for each in sentences]
    wanted = set(query_terms(question))
    content = scores - known[:, 3] * weights.rank
    least = content[np.argmax(scores)] + math.log(weights.enough)
    quotes: list[Sentence] = []
    quoted_terms = set[str]()
    for at in np.argsort(-scores, kind="stable"):
        each = sentences[at]
        if len(quotes) == MOST:
            break
        adds = bool(weights.similarity) or known[at, 1:3].any()
        if (
            content[at] < least
            or (quotes and not adds)
            or any(set(each.terms) == set(quote.terms) for quote in quotes)
        ):
            continue
        if (
            quoted_terms
            and each.source.form == "summary"
            and not wanted.intersection(each.terms) - quoted_terms
        ):
            continue
        quotes.append(each)
        if each.source.kind == "memory" and each.source.form != "summary":
            quoted_terms |= {*each.terms, *terms(each.source.title)}
    return [_shown(each, wanted) for each in quotes[:1] + sorted(quotes[1:], key=lambda each: each.place)]


def without_sources(text: str, title: str) -> str:
    """Return the text of a memory with this title; that of an answer of the assistant without the sources that it names
    behind its quotes."""
    return _SOURCE.sub("", text) if title.partition(", ")[0] == _ANSWER else text


def _not_repeating(sentences: Sequence[Sentence], sources: Sequence[Source]) -> list[Sentence]:
    """Return the sentences without questions that a source replies to, and without sentences of summaries that repeat
    what a source took the place of."""
    ended = [source.about[start:stop] for source in sources for start, stop in spans(source.about)]
    known = [f" {' '.join(said)} " for text in ended if len(said := terms(text)) >= FRAGMENT]
    asked = {tuple(terms(source.question)) for source in sources if source.question}
    return [
        each
        for each in sentences
        if (each.source.question or each.terms not in asked)
        and not (each.source.form == "summary" and any(said in f" {' '.join(each.terms)} " for said in known))
    ]


def _asks(sentence: Sentence) -> bool:
    """Return True if a sentence is a question; a row of a table is none."""
    return sentence.row is None and is_question(sentence.text)


def _shown(sentence: Sentence, wanted: set[str]) -> Sentence:
    """Return a sentence with the text that is quoted: of a very long one the parts with words of the question; behind
    its heading, if that has a number and words of the question that the sentence lacks."""
    if not sentence.heading or not wanted & (term_set(sentence.heading) - set(sentence.terms)):
        return replace(sentence, text=_marked(_short(sentence, wanted, MAX_CHARS)))
    heading, text = sentence.heading, sentence.text.lstrip("-*• ")
    if len(f"{heading}: {text}") > MAX_CHARS:
        heading = beginning(heading, MAX_CHARS // 2 - 4)
        text = _short(sentence, wanted, MAX_CHARS - len(f"{heading}: ")).lstrip("-*• ")
    return replace(sentence, text=_marked(f"{heading}: {text}"))


def _sentences(sources: Sequence[Source]) -> list[Sentence]:
    """Return the sentences of all sources."""
    sentences: list[Sentence] = []
    for rank, source in enumerate(sources):
        named = _TITLE.match(source.text)
        title = f"{source.title}\n{named[1] if named else ''}"
        above = heading = ""
        text = without_sources(source.text, source.title) if source.kind == "memory" else source.text
        for part, whole in _parts(text, source.columns):
            if len(sentences) == MAX_SENTENCES:
                return sentences
            row = part if isinstance(part, Row) else None
            plain = well_formed(part.text if isinstance(part, Row) else part)
            if whole is None:
                above, heading = plain, plain if _HAS_DIGIT.search(plain) else ""
                continue
            sentences.append(
                Sentence(
                    source=source,
                    rank=rank,
                    place=len(sentences),
                    text=plain,
                    terms=tuple(terms(plain[: 4 * MAX_CHARS])),
                    around="\n".join(filter(None, [above, source.question, source.about])),
                    title=title,
                    above=above,
                    heading=heading,
                    whole=whole,
                    row=row,
                )
            )
            above, heading = plain if is_question(plain) else "", ""
    return sentences


def _parts(text: str, columns: str | None) -> Iterator[tuple[str | Row, bool | None]]:
    """Yield the sentences of a text, rows of tables, lines of code, and headings, each with True if it is whole, False
    for a line of code, None for a heading."""
    blocks = code_blocks(text)
    plain = _blanked(text, blocks)
    places: list[tuple[int, int, list[tuple[str | Row, bool]]]] = [
        (table.start, table.end, [(row, True) for row in table.rows]) for table in tables(plain, columns)
    ]
    places += [(start, end, [(line, False) for line in _code(text[start:end])]) for start, end in blocks]
    at = 0
    for start, end, parts in sorted(places):
        yield from _prose(plain, at, start)
        yield from parts
        at = end
    yield from _prose(plain, at, len(plain))


def _blanked(text: str, blocks: Sequence[tuple[int, int]]) -> str:
    """Return the text with spaces in the place of code, line by line."""
    for start, end in blocks:
        text = text[:start] + _VISIBLE.sub(" ", text[start:end]) + text[end:]
    return text


def _code(block: str) -> Iterator[str]:
    """Yield the lines of a block of code, each as code; a very long one up to the end of a word."""
    for line in block.splitlines():
        said = line.strip()
        if said and not said.startswith("```"):
            yield said if "`" in said else f"`{beginning(said, MAX_CHARS - 4)}`"


def _prose(text: str, start: int, stop: int) -> Iterator[tuple[str, bool | None]]:
    """Yield the sentences of a text. A line without an end is a heading, but not within three of them or more."""
    places = [(start + begin, start + end) for begin, end in spans(text[start:stop])]
    sentences = [" ".join(text[begin:end].split()) for begin, end in places]
    lines = [_is_line(said) for said in sentences]
    for number, (begin, end) in enumerate(places):
        if end - begin > MAX_CHARS and (records := _records(text[begin:end])):
            yield from ((record, True) for record in records)
            continue
        said, last = sentences[number], number == len(places) - 1
        follows = not last or bool(text[end:stop].strip())
        heads = lines[number] and "\n" in text[end : end + 3] and follows
        if said.startswith("#") or (heads and not _within_lines(lines, number)):
            yield said.lstrip("# "), None
            continue
        long = len(text) >= LONG_SOURCE
        begun = not (long and number == 0 and begin == len(text) - len(text.lstrip()) and said[:1].islower())
        whole = begun and (is_ended(said) or not long or follows or end < len(text.rstrip()))
        yield said, whole


def _within_lines(lines: Sequence[bool], at: int) -> bool:
    """Return True if a line is one of three or more, but not the last of them."""
    after = lines[at + 1 : at + 3]
    return after == [True, True] or (after[:1] == [True] and at > 0 and lines[at - 1])


def _is_line(said: str) -> bool:
    """Return True if a text is short, has no end mark, and is no item of a list."""
    return (
        not is_ended(said)
        and len(said.split()) <= HEADING_WORDS
        and not said.startswith(("-", "*", "•", "#"))
    )


def _records(text: str) -> list[str]:
    """Return the lines of a text; none if most of them go on in lower case, as those of wrapped prose do."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    wrapped = sum(line[0].islower() for line in lines[1:])
    return lines if 2 * wrapped < len(lines) - 1 else []


def _short(sentence: Sentence, wanted: set[str], most: int) -> str:
    """Return the text of a sentence, or of a very long one the parts with words of the question."""
    if sentence.row is None:
        return excerpt(sentence.text, wanted, most)
    return well_formed(row_excerpt(sentence.row, wanted, most))


def _marked(text: str) -> str:
    """Return the text with markers such as `[1]` in it escaped, except in code."""
    return _MARKER.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    number = match[1] or match[2]
    return f"({number})" if number and number != "0" else match[0]
