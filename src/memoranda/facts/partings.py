"""Things and places that one parts from: sold, cancelled, left. Rules, no model, no I/O."""

from __future__ import annotations

import re

from memoranda.facts.claims import whole_sentence
from memoranda.facts.denials import ENDS
from memoranda.text.calendar import DAY, MONTH
from memoranda.text.terms import term_set

_WHO = r"(?P<who>[^,;:]{1,60}?)\s+(?:(?:has|have|just|recently|now|already|also|finally)\s+)*"
_THE = r"(?:the|his|her|their|my|our)\s+"
_ANY = r"(?:(?:an?|the|his|her|their|my|our)\s+)?"
_THING = r"(?P<thing>\S.*?)"
_TAIL = rf"(?:\s+(?:(?:to|for|because|after|last|this|yesterday|today)\b|(?:in|on)\s+(?:\d|{DAY}\b|{MONTH}\b)).*)?"


_SOLD = whole_sentence(rf"{_WHO}(?:sold|gave away|got rid of|donated|returned)\s+{_THE}{_THING}{_TAIL}")
_HAS = whole_sentence(
    rf"{_WHO}(?:has|have|owns?|drives?|rides?|sails?|uses?|rents?)\s+(?!\d|many|several|some){_THING}"
    r"(?:\s+(?:with|who|that|which)\b.*)?"
)
_CANCELLED = whole_sentence(
    rf"{_WHO}(?:(?:cancell?ed|quit|gave up)\s+(?:{_THE})?|stopped\s+{_THE}(?=(?:\S+\s+)*"
    rf"(?:subscription|membership|plan|course|class(?:es)?|lessons?|therapy|treatment|medication|diet)\b)|"
    rf"left\s+{_THE}(?=(?:\S+\s+)*(?:company|firm|agency|startup|team|band|club|choir|orchestra|union|board|"
    rf"committee|army|navy)\b)){_THING}{_TAIL}"
)
"""What goes on until one ends it. Who left the house still has it."""
_GOES_ON = whole_sentence(
    rf"{_WHO}(?:has|have|uses?|takes?|follows?|attends?|plays\s+(?:in|for)|sings\s+in|goes\s+to|works\s+(?:at|for|in)|"
    r"subscribes\s+to|pays\s+for|belongs\s+to|is\s+(?:in|on|a\s+member\s+of))\s+(?!\d|many|several|some)"
    rf"{_ANY}{_THING}"
)
_LOOKS = term_set(
    "old new own used first second big small little nice favourite vintage electric red blue green black white grey"
    " gray brown silver"
)


def parted(new: str, old: str) -> bool:
    """Return True if `new` says that the thing that `old` has is sold or given away: one may buy another."""
    return _same_thing(_SOLD.match(new), _HAS.match(old))


def stopped(new: str, old: str) -> bool:
    """Return True if `new` says that something is cancelled, quit or left that goes on in `old`."""
    return bool(ENDS.search(new)) and _same_thing(_CANCELLED.match(new), _GOES_ON.match(old))


def _same_thing(gone: re.Match[str] | None, had: re.Match[str] | None) -> bool:
    if gone is None or had is None or term_set(gone["who"]) != term_set(had["who"]):
        return False
    thing = term_set(gone["thing"]) - _LOOKS
    return bool(thing) and thing == term_set(had["thing"]) - _LOOKS
