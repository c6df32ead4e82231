"""The sentences of texts that answer a question best, chosen by its terms. No I/O, no model.

A sentence counts the question's words that it has (stemmed, without function words), the rarer among the sentences the
more (Robertson and Sparck Jones), and more where two of them stand side by side as in the question; less when it is
long, cut off where the text begins or ends, or without a number though the question asks for one. Words of a source's
title count alike for all its sentences. Words that were quoted already count little, so that the next sentence adds
something. The words of a heading count for the sentence below it; it is quoted, before that, only if it has a number.
A question is no answer: it is quoted only where no statement has words of the question beside its title, and its words
count for the next sentence. A question that a source replies to is left out, and what a summary repeats of a text that
a source took the place of. Beside a quote of a message or a fact, a summary is quoted only for further words of the
question. A row of a table is quoted with the names of its columns, see `text.tables`. A line of code is quoted alone,
in backquotes, and scores half. Of a very long sentence or row the parts with the question's words are quoted, see
`text.excerpts`. Lines without an end of a sentence, as records have, are quoted one by one where together they are too
long.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from memoranda.providers.chat.base import Source
from memoranda.text.calendar import DAYS, MONTHS
from memoranda.text.code_blocks import code_blocks
from memoranda.text.excerpts import beginning, excerpt, row_excerpt
from memoranda.text.regex import regex
from memoranda.text.sentences import END_MARKS, is_ended, is_question, spans
from memoranda.text.tables import Row, tables
from memoranda.text.terms import query_terms, term_set, terms
from memoranda.text.tokens import well_formed
from memoranda.types import KINDS

MOST = 3
ENOUGH = 0.45
"""Share of the best sentence's score that another needs."""
PAIR = 0.5
"""The extra weight of two adjacent words of the question, beside the weight of each."""
SEEN = 0.5
"""The weight of a word that was quoted already."""
FIRST_SOURCE, EACH_SOURCE = 1.25, 0.97
"""The weight of the first source's sentences, and the factor from each source to the next."""
USUAL_TERMS = 20
"""A sentence of more terms has less weight."""
MAX_CHARS = 400
MAX_SENTENCES = 2_000
FRAGMENT = 3
"""A sentence of fewer terms is a heading or a fragment."""
HEADING_WORDS = 12
ABOVE = 0.5
"""The weight of a word in the heading above a sentence, relative to a word of its own."""
CUT = 0.5
"""The weight of a sentence that is cut off, and of a line of code."""
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
_ITEM = regex(r"^[-*•]\s|\d")
"""The beginning of an item of a list, or a number: short, but no fragment."""
_NUMBER_ASKED = regex(
    r"\b(?:when|how\s+(?:many|much|long|old|far|fast|often|tall|big|large|high|heavy)|(?:what|which)\s+(?:price|date|day|year|time|"
    r"temperature|number|amount)|(?:until|till|since)\s+when|wann|seit\s+wann|wie\s*(?:viele?|lange|schnell|hoch|gro(?:ß|ss)|alt|oft|weit|schwer|"
    r"teuer)|was\s+kostet|kosten|cost)\b",
    re.IGNORECASE,
)
_NUMBER = regex(
    rf"\d|\b(?:{'|'.join([*MONTHS, *DAYS])}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|"
    r"thousand|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|hundert|tausend|noon|midnight|today|tonight|tomorrow|"
    r"yesterday|heute|morgen|gestern)\b",
    re.IGNORECASE,
)
UNNUMBERED = 0.5
"""The weight of a sentence without a number for a question that asks for one."""
_FUNCTION_WORDS = term_set(
    "der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren wird werden wurde hat"
    " haben hatte wer was wann wo wie warum wieso welche welcher welches welchen ich du er sie es wir ihr mich mir dich"
    " dir uns euch sich mein dein sein unser im in an am auf aus bei mit nach von vom zu zum zur für über unter bis"
    " nicht kein keine auch noch nur schon man kann le la les un une des du de et ou est sont que qui quel quelle el"
    " los las una y es son qué cuál il lo gli di che"
)
"""Words of German, French, Spanish and Italian that say nothing by themselves; those of English are no terms."""
_TITLE = regex(r"\s*#[ \t]+([^\n]+)")
_DIGITS = regex(r"\d+")
_HAS_DIGIT = regex(r"\d")
_VISIBLE = regex(r"[^\n]")


class Sentence(msgspec.Struct, frozen=True):
    """A sentence of `source`, or a `row` of a table in it, at its place among all. `above` are the terms of the heading
    over it, `title` those of the source's name and of the heading of level 1 that it begins with, `about` those of what
    the source took the place of and has not itself; `heading` is one over it that has a number."""

    source: Source
    place: int
    weight: float
    text: str
    terms: tuple[str, ...]
    above: frozenset[str] = frozenset()
    title: frozenset[str] = frozenset()
    about: frozenset[str] = frozenset()
    heading: str = ""
    row: Row | None = None


def best(question: str, sources: Sequence[Source]) -> list[Sentence]:
    """Return at most three sentences: the best one, then others in the sources' order; if none has a term of the
    question, the first that is no fragment."""
    sentences = [each for each in _sentences(sources, bool(_NUMBER_ASKED.search(question))) if each.text]
    terms_asked = query_terms(question)
    asked = [term for term in terms_asked if term not in _FUNCTION_WORDS] or terms_asked
    wanted, pairs = set(asked), set(pairwise(asked))
    left = [each for each in sentences if wanted & {*each.terms, *each.above, *each.title, *each.about}]
    left = _not_repeating(left, sources)
    statements = [each for each in left if not _asks(each)]
    if any(wanted & {*each.terms, *each.above, *each.about} for each in statements):
        left = statements
    if not left:
        first = [each for each in sentences if len(each.terms) >= FRAGMENT][:1] or sentences[:1]
        return [_shown(each, wanted) for each in first]
    rarity = _rarity(wanted, sentences)
    chosen: list[Sentence] = []
    quoted_terms = set[str]()
    least = 0.0
    while left and len(chosen) < MOST:
        top = max(left, key=lambda each: (_score(each, rarity, pairs), -each.place))
        score = _score(top, rarity, pairs)
        least = least or ENOUGH * score
        if score < least:
            break
        chosen += [top, *([] if chosen else _rivals(top, left, wanted))]
        rarity = {term: value * (SEEN if term in top.terms else 1) for term, value in rarity.items()}
        left = [each for each in left if each not in chosen and set(each.terms) != set(top.terms)]
        if top.source.kind == "memory" and top.source.form != "summary":
            quoted_terms |= {*top.terms, *top.title}
            left = [
                each
                for each in left
                if each.source.form != "summary" or wanted.intersection(each.terms) - quoted_terms
            ]
    return [_shown(each, wanted) for each in chosen[:1] + sorted(chosen[1:], key=lambda each: each.place)]


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


def _rivals(best: Sentence, others: Sequence[Sentence], wanted: set[str]) -> list[Sentence]:
    """Return the first sentence of another source that has the same words of the question, those of its title too, and
    other numbers: the two may contradict each other. A summary does not contradict a fact, which is kept up to date,
    nor does a sentence contradict what it repeats."""
    numbers = set(_DIGITS.findall(best.text))
    words = wanted & {*best.terms, *best.title}
    return [
        each
        for each in others
        if each.source is not best.source
        and not (best.source.form == "fact" and each.source.form == "summary")
        and not set(best.terms) <= set(each.terms)
        and wanted.intersection(each.terms)
        and wanted & {*each.terms, *each.title} == words
        and numbers
        and (found := set(_DIGITS.findall(each.text)))
        and found != numbers
    ][:1]


def _shown(sentence: Sentence, wanted: set[str]) -> Sentence:
    """Return a sentence with the text that is quoted: of a very long one the parts with words of the question; behind
    its heading, if that has a number and words of the question that the sentence lacks."""
    if not sentence.heading or not wanted & (sentence.above - set(sentence.terms)):
        return replace(sentence, text=_marked(_short(sentence, wanted, MAX_CHARS)))
    heading, text = sentence.heading, sentence.text.lstrip("-*• ")
    if len(f"{heading}: {text}") > MAX_CHARS:
        heading = beginning(heading, MAX_CHARS // 2 - 4)
        text = _short(sentence, wanted, MAX_CHARS - len(f"{heading}: ")).lstrip("-*• ")
    return replace(sentence, text=_marked(f"{heading}: {text}"))


def _sentences(sources: Sequence[Source], numbered: bool) -> list[Sentence]:
    """Return the sentences of all sources; those without a number weigh less if the answer is to be `numbered`."""
    sentences: list[Sentence] = []
    for number, source in enumerate(sources):
        weight = EACH_SOURCE**number * (1 if number else FIRST_SOURCE)
        named = _TITLE.match(source.text)
        title = term_set(f"{source.title} {named[1] if named else ''}")
        about = term_set(f"{source.about}\n{source.question}") - term_set(source.text)
        above, heading = frozenset[str](), ""
        text = without_sources(source.text, source.title) if source.kind == "memory" else source.text
        for part, whole in _parts(text, source.columns):
            if len(sentences) == MAX_SENTENCES:
                return sentences
            row = part if isinstance(part, Row) else None
            plain = well_formed(part.text if isinstance(part, Row) else part)
            own = tuple(terms(plain[: 4 * MAX_CHARS]))
            if whole is None:
                above, heading = frozenset(own), plain if _HAS_DIGIT.search(plain) else ""
                continue
            share = 1.0 if whole else CUT
            share *= UNNUMBERED if numbered and not _NUMBER.search(f"{heading} {plain}") else 1.0
            sentences.append(
                Sentence(
                    source, len(sentences), weight * share, plain, own, above, title, about, heading, row
                )
            )
            above, heading = frozenset(own) if is_question(plain) else frozenset(), ""
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
    places = [(start + begin, start + end) for begin, end in spans(text[start:stop])]
    for number, (begin, end) in enumerate(places):
        if end - begin > MAX_CHARS and (records := _records(text[begin:end])):
            yield from ((record, True) for record in records)
            continue
        said = " ".join(text[begin:end].split())
        ended = is_ended(said)
        follows = text[end:stop].strip()
        if said.startswith("#") or (
            not ended
            and follows
            and "\n" in text[end : end + 3]
            and len(said.split()) <= HEADING_WORDS
            and not said.startswith(("-", "*", "•"))
        ):
            yield said.lstrip("# "), None
            continue
        long = len(text) >= LONG_SOURCE
        begun = not (long and number == 0 and begin == len(text) - len(text.lstrip()) and said[:1].islower())
        yield said, begun and (ended or not long or bool(follows) or end < len(text.rstrip()))


def _records(text: str) -> list[str]:
    """Return the lines of a text; none if most of them go on in lower case, as those of wrapped prose do."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    wrapped = sum(line[0].islower() for line in lines[1:])
    return lines if 2 * wrapped < len(lines) - 1 else []


def _rarity(wanted: set[str], sentences: Sequence[Sentence]) -> dict[str, float]:
    """Return the weight of each wanted term: the fewer sentences have it, the more."""
    having = Counter(
        term for each in sentences for term in wanted & {*each.terms, *each.above, *each.title, *each.about}
    )
    total = len(sentences)
    return {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in having.items()}


def _score(sentence: Sentence, rarity: dict[str, float], pairs: set[tuple[str, str]]) -> float:
    own = {*sentence.terms, *sentence.about} - sentence.title
    total = sum(rarity.get(term, 0.0) for term in own)
    total += ABOVE * sum(rarity.get(term, 0.0) for term in (sentence.above | sentence.title) - own)
    beside = pairs.intersection(pairwise(sentence.terms))
    total += PAIR * sum(rarity.get(term, 0.0) for pair in beside for term in pair)
    length = len(sentence.terms)
    whole = length >= FRAGMENT or sentence.source.form == "fact" or _ITEM.search(sentence.text)
    fragment = 1.0 if whole else 0.5
    long: float = max(1.0, length / USUAL_TERMS) ** 0.25
    return sentence.weight * fragment * total / long


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
