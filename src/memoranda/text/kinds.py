"""Words of which a person chooses one: formats and languages, and opposites. No I/O."""

from __future__ import annotations

from collections.abc import Set

_KINDS = [
    frozenset(kind.split())
    for kind in (
        "english german french spanish italian portuguese dutch polish turkish russian chinese japanese korean arabic"
        " hindi swedish danish norwegian finnish greek czech ukrainian englisch deutsch französisch spanisch"
        " italienisch",
        "metric imperial",
        "celsius fahrenheit kelvin",
        "kilometers kilometres km miles",
        "kilograms kg pounds",
        "grams ounces cups",
        "euros dollars pounds francs yen",
        "markdown json html yaml xml csv latex prose plaintext",
        "bullets lists tables paragraphs",
        "short long brief detailed concise verbose thorough",
        "briefly concisely shortly thoroughly extensively exhaustively",
        "formal informal casual",
        "formally informally casually",
        "tabs spaces",
        "12-hour 24-hour",
        "python javascript typescript java kotlin rust go ruby php c c++ c#",
        "british american",
        "du sie",
        "dark light",
    )
]
"""Things of which one is chosen."""
_OPPOSITES = {
    word: sides
    for sides in (
        "early late",
        "morning evening",
        "mild spicy",
        "sweet dry",
        "hot cold",
        "light dark",
        "large small",
        "big little",
        "long short",
        "fast slow",
        "cheap expensive",
        "quiet loud",
        "thick thin",
        "soft hard",
        "still sparkling",
        "window aisle",
        "upper lower",
        "indoor outdoor",
        "formal casual",
        "wired wireless",
        "manual automatic",
        "online offline",
    )
    for word in sides.split()
}


def of_a_kind(words: Set[str]) -> bool:
    """Return True if words name things of one kind, of which one chooses one: English and German, tabs and spaces."""
    return any(words <= kind for kind in _KINDS)


def opposites(word: str) -> str:
    """Return the pair of opposites that a word is one of ("early late"), empty if it is of none."""
    return _OPPOSITES.get(word.lower(), "")
