"""Notes on what users say of themselves, by a table of patterns and without a model: a stopgap, English and German.

A note is the sentence as it was said, under the speaker's name. It stands for nothing: a context shows the message.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memoranda.facts.parsing import Candidate, tidy
from memoranda.text.regex import Regex, regex
from memoranda.text.sentences import own_text, statements
from memoranda.text.terms import terms

MOST_CHARS = 8_000
"""Characters of one message that are looked at: a pasted document does not describe its sender."""
LONGEST = 240
"""The most characters of a sentence; a longer one says more than one thing."""
CONFIDENCE = 0.8
USER = "The user"
"""The name of a speaker whose name is not known."""


class Rule(NamedTuple):
    """The kind of a sentence that begins so."""

    kind: str
    begins: Regex


_OPENING = (
    r"(?:(?:and|but|so|well|also|yes|no|actually|by the way|btw|und|aber|also|ja|nein|übrigens)\b,?\s+){0,2}"
)
_VERY = r"(?:(?:really|absolutely|usually|always|still|also|just|now|have|recently|finally)\s+){0,2}"


def _rule(kind: str, begins: str) -> Rule:
    return Rule(kind, regex(rf"{_OPENING}(?:{begins})(?:(?!\w)|(?<=\s))", re.IGNORECASE))


RULES = (
    _rule("preference", rf"i\s+{_VERY}(?:prefer|like|love|enjoy|hate|dislike|avoid)"),
    _rule("preference", r"i\s+(?:don['’]t|do not|can['’]t|cannot)\s+(?:like|eat|drink|stand|want|use)"),
    _rule("preference", r"i(?:['’]d| would)\s+rather"),
    _rule("preference", r"my\s+favou?rite"),
    _rule("preference", r"ich\s+(?:mag|liebe|hasse|bevorzuge|vermeide|esse|trinke)"),
    _rule("preference", r"mein(?:e|er)?\s+liebling\w*"),
    _rule("fact", rf"i\s+{_VERY}(?:live|work|study|teach|speak|own|drive|play|use)"),
    _rule(
        "fact",
        rf"i(?:['’]ve)?\s*{_VERY}(?:moved|joined|started|quit|left|bought|sold|adopted|married|switched)",
    ),
    _rule(
        "fact",
        r"i(?:['’]m| am)\s+(?=(?:an?|not|now|no longer|allergic|from|vegan|vegetarian|married|single)\b)",
    ),
    _rule(
        "fact",
        r"i(?:['’]m| am)\s+(?=(?:retired|pregnant|divorced|based|working|living|learning|\d+\s+years)\b)",
    ),
    _rule("fact", r"i\s+was\s+born"),
    _rule("fact", r"i(?:\s+have|['’]ve\s+got)\s+(?:an?|two|three|no|\d+)"),
    _rule("fact", r"i\s+no\s+longer"),
    _rule("fact", r"my\s+name(?:\s+is|['’]s)"),
    _rule("fact", r"ich\s+(?:bin|wohne|lebe|arbeite|studiere|spreche|fahre|spiele|heiße)"),
    _rule("fact", r"ich\s+habe\s+(?:eine?n?|zwei|drei|keine?n?|\d+)"),
    _rule("fact", r"mein\s+name\s+ist"),
    _rule("entity", r"(?:my|our)\s+(?:[\w-]+\s+){1,3}(?:is|are)\s+(?:called|named)"),
    _rule("entity", r"(?:my|our)\s+(?:birthday|address|e-?mail|phone(?:\s+number)?|budget|deadline)\s+is"),
    _rule(
        "entity", r"(?:my|our)\s+(?:boss|manager|team|company|project|job|doctor|wife|husband|partner)\s+is"
    ),
    _rule("entity", r"(?:the|our)\s+(?:[\w-]+\s+){1,4}is\s+(?:now\s+)?(?:on|at|in)"),
    _rule("entity", r"(?:mein|unser)e?\s+(?:[\w-]+\s+){1,3}(?:heißt|ist)"),
    _rule("decision", rf"(?:i|we)(?:['’]ve)?\s+{_VERY}(?:decided|agreed|chose|settled|committed)"),
    _rule(
        "decision",
        r"(?:i|we)(?:['’]ll| will|['’]?(?:re|m| are) going to)\s+(?:use|go|switch|move)",
    ),
    _rule("decision", r"let['’]?s\s+(?:use|go with|stick with|switch to)"),
    _rule("decision", r"(?:ich|wir)\s+(?:nehmen|nehme|entscheiden|entscheide)"),
    _rule("decision", r"(?:ich habe|wir haben)\s+(?:uns|mich)\s+(?:entschieden|geeinigt)"),
)


def captured(text: str, speaker: str | None, most: int) -> list[Candidate]:
    """Return notes on at most `most` sentences of a message in which its author states something, in their order, with
    the kind of their pattern as the tag. Questions, code and quotations are left out."""
    notes: dict[str, Candidate] = {}
    for sentence in statements(own_text(text[:MOST_CHARS])):
        said = tidy(sentence)
        if len(said) > LONGEST:
            continue
        found = ((rule.kind, match) for rule in RULES if (match := rule.begins.match(said)))
        for kind, match in found:
            if terms(said[match.end() :]):
                note = f"{speaker or USER}: {said}"
                notes.setdefault(note.casefold(), Candidate(note, CONFIDENCE, (kind,)))
                break
    return list(notes.values())[:most]
