"""Standing instructions of users as facts: their wording, and the questions to which they apply. No I/O."""

from __future__ import annotations

import re

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


def applies(text: str, question: str) -> bool:
    """Return True if an instruction is for a question: it has no condition, or the question has a term of it."""
    rule = rule_of(text)
    condition = None if rule is None else CONDITION.search(rule)
    if condition is None:
        return True
    about = set(terms(condition["when"] or condition["last"])) - _ASKING
    return not about or not about.isdisjoint(terms(question))
