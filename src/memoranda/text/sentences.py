"""Sentence boundaries by rules: no model, for any script that ends a sentence with a mark."""

from __future__ import annotations

from collections.abc import Iterator

from memoranda.text.regex import regex

_MARKS = ".!?…‼⁇⁈⁉．؟۔܀।॥։።፧៕᙮᠃"
_WIDE_MARKS = "。！？｡"
_CLOSERS = "\"'”’»›)\\]}）」』】〉》〕］*_"
_ITEM = r"(?:[-*+•‣▪◦●–·]|\d{1,3}[.)]|[A-Za-z][.)]|\([A-Za-z0-9]{1,3}\))[ \t]"
_ROW = r"(?:\||[^\r\n|]{1,200}?[ ]\|[ ])"

_END = regex(
    rf"(?P<mark>(?<![{_MARKS}])[{_MARKS}]++[{_CLOSERS}]*+(?=\s))"
    rf"|(?P<wide>[{_WIDE_MARKS}]++[{_CLOSERS}]*+)"
    r"|(?P<blank>(?:\r\n|[\r\n])[^\S\r\n]*+[\r\n]|[\f\u2029])"
    rf"|(?P<line>[\r\n](?=[^\S\r\n]{{0,40}}(?:{_ITEM}|\#{{1,6}}[ ]|{_ROW})))"
)
_SPACE = regex(r"\s*+")
_LAST_WORD = regex(r"(?:^|(?<=[\s(\[\"'“‘/]))[^\s(\[\"'“‘/]*$")
_INITIAL = regex(r"(?:\w\.)*[^\W\d_a-z]\.$")
_DAY = regex(r"\d{1,2}\.$")
_WORD_BEFORE = regex(r"[^\W\d_]+(?=\s+$)")
_WORD_AFTER = regex(r"\s+([^\W\d_]+)")
_ITEM_NUMBER = regex(r"(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,4})\.$")

_NEVER_LAST = frozenset(
    """
    mr mrs ms dr prof st rev gen col capt lt sgt gov sen rep hon pres messrs mme mlle hr fr
    vs v cf e.g eg i.e ie viz fig figs eq eqs no nos nr vol vols pp p ch sec secs art ref refs tab
    approx ca esp resp incl z.b d.h u.a bzw usw.a ggf vgl abb nr s.a p.ex
    """.split()  # noqa: SIM905 - prose reads better than 60 quoted words
)
"""Abbreviations after whose full stop a sentence continues, even before a capital or a number."""

_SELDOM_LAST = frozenset(
    {"al", "etc", "inc", "ltd", "co", "corp", "jr", "sr", "u.s", "u.k", "a.m", "p.m", "ph.d"}
)
"""Abbreviations after whose full stop a sentence continues unless a capital follows."""

_MONTHS = frozenset(
    "januar jänner februar märz mai juni juli oktober dezember mär okt dez".split()  # noqa: SIM905 - as above
)
"""German months whose names are not English, too."""
_SHARED_MONTHS = frozenset("april august september november jan feb apr jun jul aug sept nov".split())  # noqa: SIM905
_BEFORE_DAYS = frozenset({"am", "ab", "bis", "seit", "vom", "zum", "den", "dem", "der", "des"})
_BEFORE_ORDINALS = frozenset({"der", "die", "das", "den", "dem", "des", "im", "zur", "beim"})
"""German words after which a number with a full stop is taken for an ordinal: "der 2. Vorsitzende"."""


def ends(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield where sentences end in the characters [start, stop), ascending: the first visible character after each end,
    or the text's length.

    A sentence ends at a mark and its closing quotes before a space, unless the next word is in lower case or the full
    stop belongs to an abbreviation, an initial, an item's number or a German ordinal ("31. März"); at a full-width mark
    anywhere; at a blank line; and before a line that begins an item of a list or a heading or is a row of a table.
    """
    while match := _END.search(text, start, stop):
        space = _SPACE.match(text, match.end())
        start = space.end() if space else match.end()
        if match.lastgroup != "mark" or _is_end(text, match.start(), match.end(), start):
            yield start


def spans(text: str) -> list[tuple[int, int]]:
    """Return the sentences as characters [start, end), ascending, without the space between: together they contain
    every visible character."""
    sentences: list[tuple[int, int]] = []
    start = len(text) - len(text.lstrip())
    for at in (*ends(text, 0, len(text)), len(text)):
        if at > start:
            sentences.append((start, start + len(text[start:at].rstrip())))
            start = at
    return sentences


def _is_end(text: str, mark: int, end: int, after: int) -> bool:
    """Return True if the mark at `mark`, closed at `end`, ends a sentence; the next text begins at `after`."""
    if after == len(text) or text.count("\n", end, after) > 1:
        return True
    if text[after].islower():
        return False
    return (
        text[mark] != "." or text[mark : mark + 2] == ".." or not _goes_on(text, mark, text[after].isupper())
    )


def _goes_on(text: str, stop: int, capital: bool) -> bool:
    """Return True if the full stop at `stop` belongs to the word before it; `capital`: the next word begins with
    one."""
    begin = max(0, stop - 20)
    match = _LAST_WORD.search(text[begin:stop])
    if not match or not match.group():
        return False
    word = match.group() + "."
    plain = word[:-1].lower()
    if plain in _NEVER_LAST or (plain in _SELDOM_LAST and not capital) or _INITIAL.match(word):
        return True
    first = begin + match.start()
    if _DAY.match(word) and _is_ordinal(text[begin:first], text[stop + 1 : stop + 20]):
        return True
    line = text.rfind("\n", begin, first) + 1 if "\n" in text[begin:first] else begin
    return bool(_ITEM_NUMBER.match(word)) and (line > begin or begin == 0) and not text[line:first].strip()


def _is_ordinal(before: str, after: str) -> bool:
    """Return True if a number with a full stop, between these texts, is a German ordinal: a month follows it, or it
    follows an article."""
    found, next_found = _WORD_BEFORE.search(before), _WORD_AFTER.match(after)
    previous, following = found.group().lower() if found else "", next_found[1].lower() if next_found else ""
    shared = following in _SHARED_MONTHS and previous in _BEFORE_DAYS
    return shared or following in _MONTHS or previous in _BEFORE_ORDINALS
