"""Sentence boundaries by rules: no model, for any script that ends a sentence with a mark; and what a message states
in its own words, without code, quoted lines and questions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoranda.text.regex import regex

_SENTENCE_TERMINAL = """
    0021 002E 003F 0589 061D-061F 06D4 0700-0702 07F9 0837 0839 083D-083E 0964-0965 104A-104B 1362 1367-1368 166E
    1735-1736 17D4-17D5 1803 1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5E-1B5F 1B7D-1B7F 1C3B-1C3C 1C7E-1C7F 2024
    203C-203D 2047-2049 2CF9-2CFB 2E2E 2E3C 2E53-2E54 2E60-2E61 3002 A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F
    A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE12 FE15-FE16 FE52 FE56-FE57 FF01 FF0E FF1F FF61 10A56-10A57 10F55-10F59
    10F86-10F89 11047-11048 110BE-110C1 11141-11143 111C5-111C6 111CD 111DE-111DF 11238-11239 1123B-1123C 112A9
    113D4-113D5 1144B-1144C 115C2-115C3 115C9-115D7 11641-11642 1173C-1173E 11944 11946 11A42-11A43 11A9B-11A9C
    11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5 16B37-16B38 16B44 16D6E-16D6F 16E98 1BC9F 1DA88
"""
"""The code points with the property Sentence_Terminal (STerm) in PropList.txt of Unicode 18.0."""
_LATIN = range(0x80), range(0x2000, 0x2070), range(0x2E00, 0x2E80)
"""The blocks Basic Latin, General Punctuation and Supplemental Punctuation: their marks stand inside addresses, numbers
and names as well, so that a sentence ends at one of them only before a space."""


def _expanded(ranges: str) -> str:
    """Return the characters of ranges of code points in hexadecimal."""
    bounds = [[int(bound, 16) for bound in each.split("-")] for each in ranges.split()]
    return "".join(chr(code) for bound in bounds for code in range(bound[0], bound[-1] + 1))


TERMINALS = _expanded(_SENTENCE_TERMINAL)
"""The characters that end a sentence in any script. The Greek question mark is a semicolon, so it is none."""
QUESTION_MARKS = "?؟፧᥅‽⁇⁈⁉⳺⳻⸮⹔꘏꛷︖﹖？𑅃"
"""Those of `TERMINALS` that end a question, by their names in Unicode."""
CLOSERS = "\"'”’»›)]}）」』】〉》〕］｣*_\ufe0e\ufe0f"
"""What may follow the mark in its sentence: closing quotes, brackets, emphasis, the style of an emoji (‼️)."""
_FULL_STOPS = "．﹒"
_SPACED = "".join(mark for mark in TERMINALS if any(ord(mark) in block for block in _LATIN)) + "…"
_UNSPACED = "".join(mark for mark in TERMINALS if mark not in _SPACED + _FULL_STOPS)
"""Marks at which a sentence ends without a space, too; a full-width full stop also stands in numbers."""
END_MARKS = f"{TERMINALS}…"
_NO_TERMINALS = "\u0e01-\u0eff"
"""Thai and Lao, which end sentences with spaces alone and have more of them than sentences."""
_LEAST = 100
"""The fewest characters of a sentence that a space ends."""
_CLOSED = f"[{re.escape(CLOSERS)}]*+"
_ITEM = r"(?:[-*+•‣▪◦●–·]|\d{1,3}[.)]|[A-Za-z][.)]|\([A-Za-z0-9]{1,3}\))[ \t]"
_ROW = r"(?:\||[^\r\n|]{1,200}?[ ]\|[ ])"

_END = regex(
    rf"[{_SPACED}{_UNSPACED}{_FULL_STOPS}\r\n\f\u2029{_NO_TERMINALS}](?:"
    rf"(?P<mark>(?<=[{_SPACED}])(?<![{_SPACED}].)[{_SPACED}]*+{_CLOSED}(?=\s))"
    rf"|(?P<unspaced>(?:(?<=[{_UNSPACED}])|(?<=[{_FULL_STOPS}])(?<!\d.)(?!\d))[{END_MARKS}]*+{_CLOSED})"
    r"|(?P<blank>(?:(?<=\r)\n|(?<=\n)|(?<=\r)(?!\n))[^\S\r\n]*+[\r\n]|(?<=[\f\u2029]))"
    rf"|(?P<line>(?<=[\r\n])(?=[^\S\r\n]{{0,40}}(?:{_ITEM}|\#{{1,6}}[ ]|{_ROW})))"
    rf"|(?P<gap>(?<=[{_NO_TERMINALS}])[ ]++(?=[{_NO_TERMINALS}])))"
)
"""It begins with a set of characters, which is searched for several times as fast as alternatives are."""
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


def is_ended(text: str) -> bool:
    """Return True if a text ends with an end mark, a colon or a semicolon, and closing quotes."""
    return _unquoted(text).endswith((*END_MARKS, ":", ";", "：", "；"))


def is_question(text: str) -> bool:
    """Return True if a question mark is among the marks that a text ends with, before closing quotes."""
    return any(mark in QUESTION_MARKS for mark in _last_marks(text))


def is_statement(text: str) -> bool:
    """Return True if a text ends with an end mark, but is no question."""
    return bool(_last_marks(text)) and not is_question(text)


def _unquoted(text: str) -> str:
    return text.rstrip().rstrip(CLOSERS + " ")


def _last_marks(text: str) -> str:
    text = _unquoted(text)
    return text[len(text.rstrip(END_MARKS)) :]


def ends(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield where sentences end in the characters [start, stop), ascending: the first visible character after each end,
    or the text's length.

    A sentence ends at a mark of Latin text and its closing quotes before a space, unless the next word is in lower case
    or the full stop belongs to an abbreviation, an initial, an item's number or a German ordinal ("31. März"); at a
    mark of another script anywhere (rule SB11 of Unicode's annex 29); in Thai and Lao, which have no marks, at a space
    after at least 100 characters; at a blank line; and before a line that begins an item of a list or a heading or is a
    row of a table.
    """
    last = start
    while match := _END.search(text, start, stop):
        space = _SPACE.match(text, match.end())
        start = space.end() if space else match.end()
        if _is_boundary(text, match, start, last):
            last = start
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


def _is_boundary(text: str, match: re.Match[str], after: int, last: int) -> bool:
    """Return True if a match of `_END` ends a sentence; the next text begins at `after`, the sentence at `last`."""
    mark, end = match.span()
    if match.lastgroup == "gap":
        return mark - last >= _LEAST
    if match.lastgroup != "mark" or after == len(text) or text.count("\n", end, after) > 1:
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


_FENCED = regex(r"(```|~~~|\"\"\").*?(?:\1|\Z)", re.DOTALL)
"""Code, and a text in three quotation marks."""
_TAG = regex(r"<([\w-]+)>")
_QUOTED_LINE = regex(r"^[ \t]*>.*$", re.MULTILINE)
_AFTER_QUESTION = regex(rf"(?<=[{QUESTION_MARKS}])\s+")
"""Where a question ends that is followed by a lower-case letter, as in chats."""
_CLAUSE = regex(r"[,;:]\s+|[，、；：]|\s+[–—-]+\s+")
_LINE = regex(r"[\r\n]+[ \t]*(?:(?:[-*•+]|\d{1,2}[.)])[ \t]+)?|\A[ \t]*(?:[-*•+]|\d{1,2}[.)])[ \t]+")
"""A new line, with the mark of an item."""
_QUOTED = regex(rf"[\"“„«][^\"“”„«»]*[{END_MARKS}][^\"“”„«»]*[\"“”»]")
"""Sentences in quotation marks."""
_PASTED = regex(r"(?<=:)[^\S\n]*\n.*", re.DOTALL)
"""What follows a line that ends with a colon."""


def own_text(text: str) -> str:
    """Return the text without code, quoted lines and sentences, blocks between tags, and what follows a line that ends
    with a colon. Each line is a sentence of its own."""
    plain = _QUOTED_LINE.sub("", _FENCED.sub(" ", _without_blocks(text)))
    return _LINE.sub("\n\n", _QUOTED.sub(" ", _PASTED.sub("", plain)))


def _without_blocks(text: str) -> str:
    """Return the text without what stands between tags, as in `<memory>...</memory>`."""
    kept, at, open_tags = [], 0, set[str]()
    for tag in _TAG.finditer(text):
        name = tag[1]
        if tag.start() < at or name in open_tags:
            continue
        ends = text.find(f"</{name}>", tag.end())
        if ends < 0:
            open_tags.add(name)
            continue
        kept.append(text[at : tag.start()])
        at = ends + len(name) + 3
    return " ".join([*kept, text[at:]])


def statements(text: str) -> list[str]:
    """Return the sentences of a text that state something, in order; of a question its clauses but the last: "I'm
    vegan, what can I eat?" states "I'm vegan"."""
    results: list[str] = []
    for sentence in _sentences(text):
        results += _CLAUSE.split(sentence)[:-1] if is_question(sentence) else [sentence]
    return results


def may_only_ask(text: str) -> bool:
    """Return True if no sentence of a text ends with the mark of a statement: it asks, with or without a mark."""
    return not any(is_statement(sentence) for sentence in _sentences(text))


def _sentences(text: str) -> list[str]:
    return [part for start, stop in spans(text) for part in _AFTER_QUESTION.split(text[start:stop])]
