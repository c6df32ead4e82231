"""Standing instructions of users as facts: how they are worded, and which question they are for. No I/O."""

from __future__ import annotations

import re

from memoranda.text.terms import terms

TAG = "instruction"
"""The tag of a standing instruction that holds."""
_FORM = re.compile(r"^(?P<who>.{1,80}?)['’]s standing instruction: (?P<rule>.+)$", re.DOTALL)
CONDITION = re.compile(
    r"^(?:whenever|every\s+time|each\s+time|when|if)\s+(?P<when>[^,]+),\s+"
    r"|\s(?:whenever|every\s+time|each\s+time|when|if)\s+(?P<last>(?:i|we|you)\s+.+)$",
    re.IGNORECASE,
)
"""For which questions a rule is."""
_ASKING = frozenset(
    terms(
        "i you we ask mention talk say write send share answer reply explain give use suggest tell question about"
    )
)
_CHOOSES = re.compile(
    r"^(?:always\s+|only\s+)?(?:answer|reply|respond|write|speak|talk|use|call|address|sign|format|greet|keep)\b",
    re.IGNORECASE,
)
"""Rules that choose one of several: another choice takes the place of the earlier one."""


def worded(rule: str, user: str | None) -> str:
    """Return a rule as a fact of a user, by name where that is known."""
    return f"{user or 'The user'}'s standing instruction: {rule[0].lower()}{rule[1:]}"


def rule_of(text: str) -> str | None:
    """Return the rule that a fact tells as an instruction or as the end of one, None for other facts."""
    match = _FORM.match(text)
    return None if match is None else match["rule"]


def rechosen(new: str, old: str) -> bool:
    """Return True if two rules choose differently between things of one kind: they are the same but for one word."""
    first, second = (re.sub(r"^(?:always|only)\s+", "", rule.lower()).split() for rule in (new, old))
    if (
        len(first) != len(second)
        or not (_CHOOSES.match(new) and _CHOOSES.match(old))
        or first[0] != second[0]
    ):
        return False
    return sum(one != other for one, other in zip(first, second, strict=True)) == 1


def applies(text: str, question: str) -> bool:
    """Return True if an instruction is for a question: it has no condition, or the question has a term of it."""
    rule = rule_of(text)
    condition = None if rule is None else CONDITION.search(rule)
    if condition is None:
        return True
    about = set(terms(condition["when"] or condition["last"])) - _ASKING
    return not about or not about.isdisjoint(terms(question))
