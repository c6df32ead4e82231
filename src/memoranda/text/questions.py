"""A question reduced to its content, without polite phrases. English rules; other languages pass through."""

from __future__ import annotations

import re

from memoranda.text.regex import regex

_POLITE = r"(?:please|kindly|(?:many\ )?thanks(?:\ a\ lot)?|thank\ you(?:\ (?:very|so)\ much)?)"
MAX_CHARACTERS = 4_000
"""Longer queries are pasted text, and are not changed."""

_OPENING = regex(
    rf"""(?:
        (?:hi|hello|hey|greetings|good\ (?:morning|afternoon|evening))
        (?:\ (?:there|everyone|all))?\s*[,!.]+(?!\ world\b)
      | {_POLITE}(?-i:(?=\s*[,!.]|\s+[a-z0-9"'`])),?
      | (?:so|ok|okay|well|um|hmm)\s*,
      | (?:excuse\ me|sorry|i'm\ sorry)\s*[,.!]
      | i\ (?:have|had|'ve\ got)\ a\ (?:quick\ )?question\s*(?:about|on|for\ you)?\s*[:.,-]?
      | (?:quick\ )?question\s*:
      | (?:can|could|would|will)\ you\ (?:{_POLITE}\ )?(?:possibly\ |maybe\ |just\ )?(?:help\ me\ (?:to\ )?)?
        (?:tell|explain|show|give|find|describe|say|list|look\ up|search|remind|understand|figure\ out|know)
        (?:\ (?:to\ )?(?:me|us)\b)?(?:\ (?:something|more|anything|everything|all))?(?:\ (?:about|on|for)\b)?
      | do\ you\ (?:happen\ to\ )?know(?:\ (?:anything|something))?(?:\ about\b)?
      | (?:tell|remind|show|give)\ (?:me|us)\b(?:\ (?:something|more|everything|all))?(?:\ (?:about|on)\b)?
      | (?:i'd|i\ would|we'd|we\ would)\ (?:really\ |also\ )?(?:like|love)
        \ to\ (?:know|learn|understand|find\ out|ask|hear|see)
        (?:\ (?:you|more|something))?(?:\ (?:about|of)\b)?
      | (?:i|we)\ (?:just\ )?(?:want|wanted|need)\ to\ (?:know|learn|understand|find\ out|ask|hear)
        (?:\ (?:you|more|something))?(?:\ about\b)?
      | (?:i|we)(?:'m|\ am|'re|\ are|\ was|\ were)\ (?:just\ )?(?:wondering|curious|interested|looking\ for)
        (?:\ (?:about|in|to\ know)\b)?
      | (?:i|we)\ wonder(?:ed)?(?:\ about\b)?
      | (?:is\ there\ )?any(?:thing)?\ (?:idea|information|info)\ (?:about|on)\b
      | (?:what|how)\ about\b
    )(?=[\s,:?!.]|$)\s*[,:]?\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_CLOSING = regex(
    rf"""(?<=[,.;!?-])\s*(?:
        {_POLITE}(?:\ in\ advance|\ for\ (?:your|the|any)\ help)?
      | if\ you\ (?:can|could|know|don't\ mind|please)
    )\s*[?!.]*$""",
    re.IGNORECASE | re.VERBOSE,
)


def normalise(query: str) -> str:
    """Return the query on one line without greetings, politeness and phrases that only introduce it ("could you please
    tell me", "I'd like to know about"); names, numbers, negations and the subject stay as they were written.

    Only the beginning and the end are examined, and no quotes or code. Never empty unless the query is: if nothing
    would be left, the query on one line is returned. Idempotent.
    """
    plain = " ".join(query.split())
    content = plain
    while len(plain) <= MAX_CHARACTERS and (shorter := _shorter(content)) != content:
        content = shorter
    return content or query


def _shorter(text: str) -> str:
    """The text without one opening and one closing, or the same text."""
    straight = text.replace("’", "'")
    if opening := _OPENING.match(straight):
        rest = text[opening.end() :]
        if any(character.isalnum() for character in rest):
            return rest.strip()
    if closing := _CLOSING.search(straight):
        rest = text[: closing.start()].rstrip(" ,;-")
        if any(character.isalnum() for character in rest):
            return rest
    return text
