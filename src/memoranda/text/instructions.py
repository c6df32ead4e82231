"""Standing instructions of users as facts: their wording, their detection, and the questions to which they apply.
No I/O."""

from __future__ import annotations

import re

from memoranda.text.kinds import of_a_kind
from memoranda.text.regex import regex
from memoranda.text.terms import terms
from memoranda.types import Memory

UNNAMED = "The user"
"""The name of a user whose name is not known."""
TAG = "instruction"
"""The tag of a standing instruction in force."""
EXTRACTED = "extraction"
"""The `source` of a fact that was extracted from a conversation."""
RULES = "rules"
"""The `extracted_by` of a fact that was extracted by rules, not by a model."""
_FORM = regex(r"^(?P<who>.{1,80}?)['’]s standing instruction: (?P<rule>.+)$", re.DOTALL)
CONDITION = regex(
    r"^(?:whenever|every\s+time|each\s+time|when|if)\s+(?P<when>[^,]+),\s+"
    r"|\s(?:whenever|every\s+time|each\s+time|when|if)\s+(?P<last>(?:i|we|you)\s+.+)$",
    re.IGNORECASE,
)
"""The condition of a rule: the questions to which it applies."""
_ASKING = frozenset(
    terms(
        "i you we ask mention talk say write send share answer reply explain give use suggest tell question about"
    )
)
_CHOOSES = regex(
    r"^(?:always\s+|only\s+|immer\s+)?(?:answer|reply|respond|write|speak|talk|use|format|greet|keep|give|round|"
    r"antworte|schreib|sprich|verwende|nutze|benutze)\b",
    re.IGNORECASE,
)
_NAMES = regex(r"^(?:always\s+)?(?:call|address|sign)\b|^nenne?\s+mich\b", re.IGNORECASE)
"""Rules that choose one of several options, of which a later choice replaces an earlier one: one of a kind, a number,
or a name."""


_LEAD = r"^((?:(?:always|never|only|ever|please|do\s+not|don['’]t|no\s+longer)\s+)*)"
_VERBS = tuple(
    (regex(_LEAD + verbs, re.IGNORECASE), verb)
    for verbs, verb in (
        (
            r"(?:mention(?:ing)?|(?:talk|speak)(?:ing)?\s+about|bring(?:ing)?\s+up|"
            r"refer(?:ring)?\s+to(?!\s+me\s+as))\b",
            "mention",
        ),
        (r"(?:call(?:ing)?\s+me|(?:address(?:ing)?|refer(?:ring)?\s+to)\s+me\s+as)\b", "call me"),
        (r"(?:suggest|recommend|offer)(?:ing)?\b", "suggest"),
        (
            r"(?:(?:answer|respond|reply|speak|talk|add|show|keep)(?:ing)?|(?:us|writ|giv|includ|provid|mak)(?:e|ing)|"
            r"put(?:ting)?)\b(?:\s+me\b)?",
            "use",
        ),
    )
)
"""Verbs that ask for the same: to use bullet points, and to answer in bullet points."""
_FORBIDS = regex(r"^(?:never|do\s+not|don['’]t|no\s+longer)\s+(?:ever\s+)?", re.IGNORECASE)
_ALWAYS = frozenset(terms("always only"))


def worded(rule: str, user: str | None) -> str:
    """Return a rule as a fact of a user, by name where that is known."""
    return f"{user or UNNAMED}'s standing instruction: {rule[0].lower()}{rule[1:]}"


def is_standing(memory: Memory) -> bool:
    """Return True for a standing instruction in force: a fact with the tag, extracted by rules from a user's statement.

    A tag alone is not enough: a model, which may obey a document, writes facts with tags of its choice by its tools,
    but no metadata.
    """
    return (
        memory.kind == "fact"
        and TAG in memory.tags
        and rule_of(memory.content) is not None
        and memory.metadata.get("extracted_by") == RULES
    )


def rule_of(text: str) -> str | None:
    """Return the rule that a fact states as an instruction or as the end of one, None for other facts."""
    match = _FORM.match(text)
    return None if match is None else match["rule"]


def of_different_people(first: str, second: str) -> bool:
    """Return True if two facts are standing instructions of people with different names."""
    matches = _FORM.match(first), _FORM.match(second)
    names = {match["who"] for match in matches if match is not None} - {UNNAMED}
    return len(names) > 1


def rechosen(new: str, old: str) -> bool:
    """Return True if two rules choose differently between things of one kind: they are the same but for one word."""
    first, second = (re.sub(r"^(?:always|only)\s+", "", rule.lower()).split() for rule in (new, old))
    if len(first) != len(second) or first[0] != second[0]:
        return False
    differ = [{word, other} for word, other in zip(first, second, strict=True) if word != other]
    if len(differ) != 1:
        return False
    if _NAMES.match(new) and _NAMES.match(old):
        return True
    (words,) = differ
    alike = all(word.isdigit() for word in words) or of_a_kind(words)
    return alike and _CHOOSES.match(new) is not None and _CHOOSES.match(old) is not None


def with_common_verb(rule: str) -> str:
    """Return a rule with its verb replaced by the first of those that ask for the same."""
    for pattern, verb in _VERBS:
        if pattern.match(rule):
            return pattern.sub(rf"\1{verb}", rule, count=1)
    return rule


def opposed(first: str, second: str) -> bool:
    """Return True if one of two rules forbids exactly what the other asks for."""
    denials = [bool(_FORBIDS.match(rule)) for rule in (first, second)]
    bare = [frozenset(terms(_FORBIDS.sub("", rule))) - _ALWAYS for rule in (first, second)]
    return denials[0] != denials[1] and bare[0] == bare[1]


def applies(text: str, question: str) -> bool:
    """Return True if an instruction is for a question: it has no condition, or the question has a term of it."""
    rule = rule_of(text)
    condition = None if rule is None else CONDITION.search(rule)
    if condition is None:
        return True
    about = set(terms(condition["when"] or condition["last"])) - _ASKING
    return not about or not about.isdisjoint(terms(question))
