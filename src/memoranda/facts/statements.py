"""What a person states, among what the person asks, in one message. English and German rules; no I/O."""

from __future__ import annotations

import re
from unicodedata import normalize

from memoranda.text.folding import with_apostrophes
from memoranda.text.regex import regex
from memoranda.text.sentences import spans

_ASKED = regex(r"[?？؟][\"'”’»)\s]*$")
_AFTER_QUESTION = regex(r"(?<=[?？؟])\s+")
"""Where a question ends that is followed by a lower-case letter, as in chats."""
_INTERROGATIVE = regex(
    r"^(?:(?:and|but|so|or|also|ok|okay|und|oder|aber)\s+)?(?:who|whom|whose|what|when|where|why|how|which|"
    r"do(?!\s+not\b)|does|did|can|could|is|isn['’]t|are|aren['’]t|will|would|should|"
    r"wer|wen|wem|wie|wo|was|wann|warum|welche\w*|ist|sind|kann|soll)\b",
    re.IGNORECASE,
)
_OWN = regex(
    r"^(?:(?:and|but|so|since|as|because|given that|now that|also|und|aber|da|weil)\s+)?"
    r"(?:i|i['’]\w+|we|we['’]\w+|my|our|ich|wir|mein\w*|unser\w*)\b",
    re.IGNORECASE,
)
_CLAUSE = regex(r"[,;:]\s+|\s+[–—-]+\s+")
_CONFIRMS = regex(
    r"^\W*(?:yes|yeah|yep|yup|right|correct|exactly|true|indeed|sure|absolutely|definitely|of course|i do|i am|we do|"
    r"we are|that['’]?s (?:right|correct|true)|you['’]?re right|ja|genau|richtig|stimmt|korrekt)\b"
    r"(?!\W*(?:but|aber)\b)",
    re.IGNORECASE,
)

_CHECKS = regex(
    r"^\W*(?:(?:is|was) (?:that|this|it) (?:all )?(?:right|correct|true|so|ok|okay|accurate)|right|correct|true|"
    r"(?:did|do) i (?:get|have|understand) (?:that|it|this)(?: (?:right|correctly))?|am i right|agreed|ok|okay|"
    r"stimmt(?: das)?|richtig|korrekt)\W*$",
    re.IGNORECASE,
)
"""Questions that only ask whether what was said before is right."""

OPENINGS = r"and|but|so|well|oh|hey|hi|hello|ok|okay|alright|yep|also|actually|yes|no|now|hallo|ja|und|aber"
"""Words with which a statement or a request may begin."""
_BEGIN = rf"(?:{OPENINGS}|please|can\s+you|could\s+you|bitte|kannst\s+du|könntest\s+du)"
_TASK = regex(
    rf"^(?:{_BEGIN},?\s+)*(?:(?:translate|rewrite|rephrase|paraphrase|proofread|übersetz\w*|korrigier\w*|formulier\w*)\b|"
    r"correct\s+(?:this|these|the|my\s+(?:text|e-?mail|mail|essay|letter|sentences?|grammar|english|german|spelling|draft))\b|"
    r"(?:improve|shorten|complete|continue|repeat|summari[sz]e)\s+\w|(?:improve|shorten|summari[sz]e)\s*(?=:)|"
    r"(?:write|schreib\w*)\s+(?:(?:me|us|him|her|them|mir|uns|ihm|ihr|ihnen)\s+)?"
    r"(?!(?:an?|the|eine?n?)\s+(?:note|reminder|memo|following\s+down|notiz)\b)(?:an?|the|some|about|\d+|ein\w*|den|die)\b)"
    r"[^:]*:(?P<text>\s.*)?$",
    re.IGNORECASE | re.DOTALL,
)
"""A task with the text it is about, which states nothing: "Translate this: I live in Rome"."""
_FENCED = regex(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED_LINE = regex(r"^[ \t]*>.*$", re.MULTILINE)
_PASTED = regex(r"(?<=:)[^\S\n]*+\n\s*+#{1,6}[ \t]+\S.*", re.DOTALL)
"""A document with a heading, after words that end with a colon."""
_ABOUT_ONESELF = regex(
    r"\b(?:me|myself|my\s+(?:profile|preferences|facts|rules|details|data|settings)):$", re.IGNORECASE
)
_BLANK_LINE = regex(r"\n[ \t]*\n")
_ITEM = regex(r"^[ \t]*(?:[-*•+]|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_NEW_LINE = regex(
    r"(?<![,;])\n(?=[ \t]*(?:(?:i|i['’]\w+|my|we|our|please|always|never|from\s+now\s+on|thanks?|ich|wir|mein\w*)\b|"
    r"(?-i:[A-Z]\w{0,20}:\s)))",
    re.IGNORECASE,
)
"""Where a line begins a sentence of its own, without a mark at the end of the one before."""


def own_text(text: str) -> str:
    """Return the text of a message without code, quoted lines, a document that was pasted, and the text of a task: that
    is all that follows, or if it begins in the line of the task, what comes before a blank line. Items of a list and
    lines that begin a sentence are sentences of their own."""
    plain = with_apostrophes(_QUOTED_LINE.sub("", _FENCED.sub(" ", text)))
    pasted = _PASTED.search(plain)
    if pasted is not None and not _ABOUT_ONESELF.search(plain[max(0, pasted.start() - 80) : pasted.start()]):
        plain = plain[: pasted.start()]
    parts, at = list[str](), 0
    for start, stop in spans(plain):
        if start < at:
            continue
        task = _TASK.match(" ".join(plain[start:stop].split()))
        if task is None:
            continue
        parts.append(plain[at:start])
        blank = _BLANK_LINE.search(plain, start)
        if not task["text"] or blank is None:
            at = len(plain)
            break
        at = blank.end()
    plain = "".join([*parts, plain[at:]])
    return _ITEM.sub("\n", _NEW_LINE.sub("\n\n", plain))


def statements(text: str) -> list[str]:
    """Return the sentences of a message that state something, in order, with composed accents (Unicode's form NFC).

    A question is none. Of a question that follows a statement of one's own in the same sentence, the statement is kept:
    "I live in Munich, is there a good baker?" states "I live in Munich".
    """
    results: list[str] = []
    text = with_apostrophes(normalize("NFC", text))
    parts = [part for start, stop in spans(text) for part in _AFTER_QUESTION.split(text[start:stop])]
    for sentence in parts:
        if not _ASKED.search(sentence):
            if not _INTERROGATIVE.match(sentence) or sentence.rstrip().endswith((".", "!")):
                results.append(sentence)
            continue
        clauses = _CLAUSE.split(sentence)
        results += [clause for clause in clauses[:-1] if _OWN.match(clause)]
    return results


def confirmed(text: str) -> bool:
    """Return True if a message says yes to the message before it."""
    return bool(_CONFIRMS.match(text)) and not _ASKED.search(text)


def confirmable(text: str) -> str:
    """Return the part of a message that the answer "yes" confirms.

    It is its last question, with the sentence before it where the question only asks whether that is right; in a
    message without a question it is the last sentence.
    """
    parts = [part for start, stop in spans(text) for part in _AFTER_QUESTION.split(text[start:stop])]
    questions = [at for at, part in enumerate(parts) if _ASKED.search(part)]
    last = questions[-1] if questions else len(parts) - 1
    first = last - 1 if last > 0 and questions and _CHECKS.match(parts[last]) else last
    return " ".join(parts[first : last + 1])
