"""Tags of facts: words for what a fact is about. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from memoranda.facts.grounding import COMMON
from memoranda.text.terms import STOPWORDS, WORD, terms, visible

MOST = 3
GENERIC = frozenset(
    terms(
        "fact memory memories preference decision plan commitment choice reason people person project user personal "
        "surroundings information info general statement conversation other misc entity entities true useful "
        "instruction"
    )
)
"""Terms of tags that fit every fact: models repeat them from the prompt."""


def informative_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags that are informative, each once."""
    return tuple(dict.fromkeys(tag for tag in tags if not set(terms(tag)) <= GENERIC))


def content_tags(text: str, speakers: Iterable[str]) -> tuple[str, ...]:
    """Return up to three words of a fact as its tags, lower case, without names of speakers and words of every fact."""
    names = {term for name in speakers for term in terms(name)}
    tags: dict[str, str] = {}
    for word in WORD.findall(visible(text).lower()):
        term = next(iter(terms(word)), "")
        if len(word) > 2 and word not in STOPWORDS and term and term not in names | COMMON | GENERIC:
            tags.setdefault(term, word)
    return tuple(tags.values())[:MOST]
