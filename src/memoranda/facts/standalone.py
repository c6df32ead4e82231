"""Checks that a fact is understood without its conversation. English and German rules; no I/O."""

from __future__ import annotations

import re

from memoranda.text.regex import regex
from memoranda.text.terms import terms

_POINTS = regex(
    r"\b(?:it|he|she|him|they|them|these|those|there|you|your|yours|ones?|es|ihn|ihm|ihnen|dort|du|dich|dir|dein\w*)\b"
    r"|\bthis\b(?!\s+(?:year|month|week|weekend|spring|summer|autumn|fall|winter|morning|evening)\b)"
    r"|(?:^|\b(?:about|all|at|by|for|from|in|into|like|of|on|through|to|with)\s+)that\b|\bthat$"
    r"|\bthe\s+(?:(?:first|second|third|last|other|former|latter|above|previous)\s+(?:options?|choices?|suggestions?|ideas?|"
    r"versions?|answers?|examples?|plans?|drafts?|sentences?|paragraphs?|lines?|sections?|repl(?:y|ies)|responses?)\b"
    r"(?!\s+(?:of|for|in|to|at|with|from)\b)|(?:former|latter)$)"
    r"|^the\s+(?:options?|suggestions?|ideas?|tips|recommendations?|answers?|examples?|template|structure|draft|outline)$"
    r"|\bher\b(?!\s+\w)|\bsomething\s+(?:i|we|that|to)\b|^(?:das|dies\w*|so)\b",
    re.IGNORECASE,
)
"""Words that point at what was said elsewhere."""
_ADVERBIAL = regex(
    r"\b(?:for\s+(?:about\s+|almost\s+|over\s+)?(?:\w+\s+){0,3}(?:years?|months?|weeks?|days?|while|time)"
    r"|(?:an?\s+few|an?|\w+)\s+(?:years?|months?|weeks?|days?)\s+ago|recently|lately|now|too|as\s+(?:usual|well)|again"
    r"|sometimes|often|an?\s+(?:lot|bit|while)|these\s+days|so\s+far|hard|busy|great|well|fine|good|much|more|better"
    r"|really|pretty|around|out|up)\b",
    re.IGNORECASE,
)
_VAGUE = regex(
    r"^(?:an?\s+|some\s+|so\s+many\s+|such\s+an?\s+|the\s+)?(?:\w+\s+)?(?:something|anything|everything|nothing|stuff|things?"
    r"|stor(?:y|ies)|surge|shot|blast|bunch|fan|feelings?|lots?|question|news|point|chance|time|moment|day|break|mix)\b"
    r"(?!\s+(?:of(?!\s+(?:emotions|feelings))|in|for)\s+\w)",
    re.IGNORECASE,
)
"""An object that says nothing by itself."""


def understandable(rest: str) -> bool:
    """Return True if what follows the verb of a fact is understood without the conversation.

    It does not point at what was said elsewhere ("loves it"), has an object beside adverbials ("has been playing for a
    month now"), and the object says something by itself ("has something to show").
    """
    if _POINTS.search(rest) or _VAGUE.match(rest):
        return False
    return bool(terms(_ADVERBIAL.sub(" ", rest)))
