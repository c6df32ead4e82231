"""What a message states in its own words: without code, quoted lines and questions. By marks alone, in any language."""

from __future__ import annotations

import re

from memoranda.text.regex import regex
from memoranda.text.sentences import END_MARKS, QUESTION_MARKS, is_question, is_statement, spans

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
