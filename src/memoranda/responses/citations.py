"""Where an answer cites: its markers and its quotes, as annotations in characters. No I/O."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from memoranda.providers.chat.base import Source
from memoranda.providers.chat.extractive import UNLIKELY, memory_name
from memoranda.responses.values import Item
from memoranda.text import prompts
from memoranda.text.highlights import GAP
from memoranda.text.prompts import quoted
from memoranda.text.regex import regex
from memoranda.text.sentences import END_MARKS
from memoranda.text.sentences import spans as sentence_spans
from memoranda.text.terms import UNSPACED

LONG_ENOUGH = 20
"""Characters of a quote that is looked for; it has four words as well."""
WORDS_ENOUGH = 4
UNSPACED_ENOUGH = 10
"""Characters of a quote in a script without spaces."""
MAX_QUOTES = 200

_NUMBER = regex(r"[0-9]{1,6}")
_LIST = r"[0-9]{1,6}(?: ?[,;，、；] ?[0-9]{1,6}){0,31}"
_MARKER = regex(rf"\[ ?{_LIST} ?\]|【 ?{_LIST} ?(?:†[^【】\n]{{0,80}})?】")
_CODE = regex(r"^ {0,3}```.*?(?:^ {0,3}```|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_PARAGRAPH = regex(r"\n\s*\n")
_PAIRED = regex(r"“[^“”]+”|„[^„“”]+[“”]|«[^«»]+»|「[^「」]+」|『[^『』]+』")
_STRAIGHT = regex(r'"[^"]+"')
_UNSPACED = regex(f"[{UNSPACED}]")
_BETWEEN = regex(rf"[\s{END_MARKS},;:)、，；：]*")
_FOLDED = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00ad": None})


class Span(msgspec.Struct, frozen=True):
    """A citation of the source of that number by the characters [start, end)."""

    start: int
    end: int
    number: int = 0


def annotations(text: str, sources: Sequence[Source]) -> list[dict[str, Any]]:
    """The citations in a text as `file_citation` annotations, in its order; they do not overlap.

    A marker `[n]` or `【n】` with the number of a document becomes one; in `[n, m]` each number does. Other numbers,
    those of memories, and what is in code stay text. A quote of some length that stands word for word in a document
    is one too, unless a marker of that document follows it. `text[start_index:end_index]` is the annotation's `text`,
    and `index` where it begins; all count characters.
    """
    documents = {source.number: source for source in sources if source.kind == "document"}
    if not documents:
        return []
    code = [Span(match.start(), match.end()) for match in _CODE.finditer(text)]
    markers = [span for span in _markers(text) if span.number in documents and not _meets(span, code)]
    quotes = _quoted(text, list(documents.values()), markers, code)
    spans = sorted([*markers, *quotes], key=lambda span: span.start)
    return [_annotation(text, span, documents[span.number]) for span in spans]


def quoted_memories(
    text: str, memories: Sequence[str], titles: Sequence[str] = (), *, quotes_only: bool = True
) -> set[int]:
    """Return the indexes of the memories that a text quotes word for word.

    If a model that only quotes wrote the text, it names a memory by its title after each quote, see
    `providers.chat.extractive`, and these quotes count. If none of the memories with this title has the quote, as where
    it is a row of a table with its columns, all of them are returned. In other texts, and where no memory is named, a
    sentence of a memory and a quote in quotation marks count, both of some length.
    """
    folded, answer = [_folded(memory) for memory in memories], _folded(text)
    sentences = [
        {_unlisted(memory[start:end]) for start, end in sentence_spans(memory)} - {""} for memory in memories
    ]
    names = [_folded(memory_name(title)) for title in titles or [""] * len(memories)]
    if quotes_only and (named := list(_named_quotes(answer, set(names)))):
        return {
            index
            for quote, name in named
            for index in _having(quote, [i for i, own in enumerate(names) if own == name], folded, sentences)
        }
    quotes = {_trimmed(text[quote.start + 1 : quote.end - 1]) for quote in _quotes(text)}
    return {
        index
        for index, memory in enumerate(folded)
        if any(_enough(one) and one in answer for one in sentences[index])
        or any(_enough(quote) and quote in memory for quote in quotes)
    }


def _named_quotes(answer: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the quotes of a folded answer that one of these names follows, each with the name."""
    code = [Span(match.start(), match.end()) for match in _CODE.finditer(answer)]
    ends = [(span.start, span.end, "") for span in _markers(answer) if not _meets(span, code)]
    for name in (*names, UNLIKELY.strip()):
        pattern = re.compile(re.escape(name))
        ends += [(match.start(), match.end(), name) for match in pattern.finditer(answer)]
    begin = 0
    for start, end, name in sorted(ends):
        if name in names and (quote := _unlisted(answer[begin:start])):
            yield quote, name
        begin = max(begin, end)


def _having(
    quote: str, indexes: Sequence[int], memories: Sequence[str], sentences: Sequence[Collection[str]]
) -> list[int]:
    """Return those of the indexes whose memory has a quote: as a sentence, else in all its parts, else its longest end
    as a sentence, as behind a heading; if there is none, all."""
    parts = [_trimmed(part) for part in quote.split(GAP)]
    ends = {
        index: max((len(one) for one in sentences[index] if quote.endswith(f" {one}")), default=0)
        for index in indexes
    }
    longest = max(ends.values())
    return (
        [index for index in indexes if quote in sentences[index]]
        or [index for index in indexes if all(part in memories[index] for part in parts)]
        or [index for index in indexes if ends[index] == longest]
    )


def _markers(text: str) -> Iterator[Span]:
    """Every marker: the whole of one that has one number, the digits of each in one that has several."""
    for match in _MARKER.finditer(text):
        listed = match.group().partition("†")[0]
        numbers = list(_NUMBER.finditer(listed))
        if len(numbers) == 1:
            yield Span(match.start(), match.end(), int(numbers[0].group()))
            continue
        for digits in numbers:
            yield Span(match.start() + digits.start(), match.start() + digits.end(), int(digits.group()))


def _quoted(
    text: str, documents: Sequence[Source], markers: Sequence[Span], code: Sequence[Span]
) -> list[Span]:
    """The quotes that stand in a document and are not cited by a marker."""
    folded: list[tuple[int, str]] = []
    spans: list[Span] = []
    for quote in _quotes(text):
        quoted_text = _trimmed(text[quote.start + 1 : quote.end - 1])
        if not _enough(quoted_text) or any(_meets(quote, places) for places in (code, markers, spans)):
            continue
        folded = folded or [(source.number, _folded(source.text)) for source in documents]
        holding = [number for number, words in folded if quoted_text in words]
        if holding and not _followed(text, quote.end, markers, holding):
            spans.append(Span(quote.start, quote.end, holding[0]))
    return spans


def _quotes(text: str) -> list[Span]:
    """Where quotes stand, their marks included, in order. Straight marks pair up within a paragraph."""
    places: list[Span] = []
    begin = 0
    for gap in (*_PARAGRAPH.finditer(text), None):
        end = len(text) if gap is None else gap.start()
        for pattern in (_PAIRED, _STRAIGHT):
            places += [Span(match.start(), match.end()) for match in pattern.finditer(text, begin, end)]
        begin = end if gap is None else gap.end()
    return sorted(places, key=lambda span: span.start)[:MAX_QUOTES]


def _enough(quoted_text: str) -> bool:
    """Return True if a quote is long enough that a match in a document is no coincidence."""
    unspaced = len(_UNSPACED.findall(quoted_text))
    return unspaced >= UNSPACED_ENOUGH or (
        len(quoted_text) >= LONG_ENOUGH and len(quoted_text.split()) >= WORDS_ENOUGH
    )


def _followed(text: str, end: int, markers: Sequence[Span], numbers: Sequence[int]) -> bool:
    """Return True if markers stand right after the quote, and one of them names one of these documents."""
    at = end
    for span in markers[bisect_left(markers, end, key=lambda span: span.start) :]:
        between = text[at : span.start].strip("[]【】 ,;，、；")
        if not _BETWEEN.fullmatch(between):
            return False
        if span.number in numbers:
            return True
        at = span.end
    return False


def _meets(span: Span, places: Sequence[Span]) -> bool:
    """Return True if a span overlaps one of `places`, which are sorted and disjoint."""
    at = bisect_left(places, span.end, key=lambda place: place.start) - 1
    return at >= 0 and places[at].end > span.start


def _trimmed(text: str) -> str:
    """The folded text without signs at its ends."""
    return _folded(text).rstrip(f"{END_MARKS},;:、，；： ").lstrip("… ")


def _unlisted(text: str) -> str:
    """The trimmed text without the sign of a list or a heading."""
    return _trimmed(text).lstrip("-*•# ")


def _folded(text: str) -> str:
    """The text with one space for white space, and one kind of quotation marks."""
    return " ".join(text.translate(_FOLDED).split())


def _annotation(text: str, span: Span, source: Source) -> dict[str, Any]:
    return {
        "type": "file_citation",
        "file_id": source.id,
        "filename": source.title,
        "index": span.start,
        "text": text[span.start : span.end],
        "start_index": span.start,
        "end_index": span.end,
    }


def past_sources(items: Sequence[Item]) -> list[Source]:
    """The results of earlier searches of a conversation, with the numbers that the model saw."""
    return [
        msgspec.convert(source, Source)
        for item in items
        if item["type"] == "file_search_call"
        for source in item.get("_sources", ())
    ]


def cite_again(items: Sequence[Item], past: Sequence[Item]) -> None:
    """Number the results of searches that a client sends back and that are not stored, after the past results, so that
    they can be cited."""
    number = max((source.number for source in past_sources([*past, *items])), default=0)
    for item in items:
        if item["type"] != "file_search_call" or "_sources" in item or not item.get("results"):
            continue
        sources = [
            Source(
                number=number + at,
                text=str(result.get("text") or ""),
                title=str(result.get("filename") or ""),
                id=str(result.get("file_id") or ""),
            )
            for at, result in enumerate(item["results"], 1)
        ]
        number += len(sources)
        item["_sources"] = msgspec.to_builtins(sources)
        item["_told"] = prompts.passages(
            [
                prompts.passage(
                    source.number,
                    quoted(source.title),
                    quoted(source.text),
                    file_id=source.id,
                    score=source.score,
                )
                for source in sources
            ]
        )
