"""The attributes that values belong to: names, dates, sums, places. Rules, no model, no I/O."""

from __future__ import annotations

import re

from memoranda.facts.naming import is_name
from memoranda.text.calendar import DAY, MONTH, SEASON
from memoranda.text.regex import regex

PURPOSE = regex(r"\sfor\s+(\D+)$", re.IGNORECASE)
_NAMED = regex(
    r"boss|manager|wife|husband|partner|spouse|girlfriend|boyfriend|doctor|dentist|owner|lead|maintainer",
    re.IGNORECASE,
)
"""Attributes whose values are names."""
_DATED = regex(r"(?:due|start|release) date|birthday|deadline|date", re.IGNORECASE)
_MEASURED = regex(r"number|budget|age|time|price|cost|rent|salary|version|weight|height", re.IGNORECASE)
"""Attributes whose value is a date, or has a number: what else is said of them is no other value."""
_GENERIC = regex(r"(?:an?|the|another|this|that|their|his|her|my|our)\s", re.IGNORECASE)
_REGION = regex(
    r"the\s+(?:netherlands|united\s|us|usa|uk|uae|philippines|bahamas|maldives|gambia|congo|hague|bronx|midwest|balkans|"
    r"caribbean|alps|\w+\s+(?:republic|islands))\b",
    re.IGNORECASE,
)
"""Names of places that have an article."""
_CAPITAL = regex(rf"(?!(?i:{DAY})s?\b)\b[^\W\d_a-zß-öø-ÿ]")
"""The beginning of a name."""
_SEVERAL = regex(
    r"\b(?:sister|brother|son|daughter|child|kid|cousin|aunt|uncle|friend|colleague|neighbou?r|cat|dog|pet|horse)$",
    re.IGNORECASE,
)
"""Of whom one may have several, each with a name."""
_NO_PLACE = regex(
    r"(?:linux|windows|mac(?:os)?|postgres\w*|mysql|sqlite|emacs|vim|python|rust|typescript|aws|azure|gcp|kubernetes|docker|"
    r"react|slack|teams|notion|marketing|sales|engineering|finance|hr|support|product|management|decaf|part[\s-]time|"
    r"full[\s-]time|remote|plan\s|room\s|floor\s|(?:an?|the|another)\s+(?:\w+\s+)?(?:team|desk|room|floor|project|department|"
    r"role|position|plan|office|seat|question|topic)\b|eine[rm]\s|meine[rm]\s|der\s+(?:nähe|innenstadt|stadt|altstadt)\b)",
    re.IGNORECASE,
)
"""What one may move to, or live in, beside a place of its own: a team, a flat share, a tool."""
_DWELLING = regex(
    r"\b(?:apartment|cabin|caravan|condo|cottage|dorm|flat|house|studio|van|villa)\b", re.IGNORECASE
)
_CHANGED = regex(r"\b(?:now|just|recently|joined|started|starts|hired)\b", re.IGNORECASE)
_CLOCK = regex(r"\d|(?:noon|midnight)\b", re.IGNORECASE)
_DATE = regex(
    rf"(?:(?:the|next|this|last|early|mid|late|end\s+of)[\s-]+)*(?:\d{{4}}\b|{MONTH}\b|{SEASON}\b|"
    rf"(?:\d+|an?|one)?\s*(?:days?|weeks?|months?|years?)\b)",
    re.IGNORECASE,
)
_WHEN = regex(
    rf"\b(?:{DAY}s?|{MONTH}|{SEASON}|today|tomorrow|tonight|next|weeks?|months?|years?|\d{{1,2}}(?:st|nd|rd|th|\.)?"
    rf"(?!\d|:|\s*(?:[ap]m|h|hours?|minutes?|o['’]clock)\b)|\d{{4}}(?:-\d\d?)*)\b",
    re.IGNORECASE,
)
"""Words of a date."""
_FLIGHT = regex(r"(?-i:[A-Z])|[a-z]{1,3}\s?\d{1,5}\b", re.IGNORECASE)
_SOON = regex(r"\d+\s*(?:h|hours?|min|minutes?)\b", re.IGNORECASE)


def attribute_of(attribute: str, match: re.Match[str]) -> str:
    """Return the attribute of a value, which is another for one without a name: one may live in Rome and in a small
    flat, and move to a new desk; and work at Acme and for a big company."""
    value = match["value"]
    if attribute == "name" and _SEVERAL.search(match["who"]):
        return ""
    if attribute == "residence" and _NO_PLACE.match(value):
        return ""
    if attribute == "residence" and value[0].isdigit():
        return "street"
    if _CAPITAL.search(value):
        return attribute
    if attribute == "residence" and _GENERIC.match(value) and not _REGION.match(value):
        return "dwelling" if _DWELLING.search(value) else ""
    if attribute == "employer" and _GENERIC.match(value):
        return attribute if _CHANGED.search(match[0][: match.start("value") - match.start()]) else "workplace"
    return attribute


def where_or_when(value: str) -> str:
    """Return the attribute of a value after "in" or "at": a meeting in May is at 10, in a room, and in Rome."""
    if _SOON.match(value):
        return ""
    if _DATE.match(value):
        return "date"
    if _CLOCK.match(value):
        return "time"
    return "location" if _CAPITAL.search(value) else "room"


def is_value_of(attribute: str, value: str) -> bool:
    """Return True if what follows "in" or "at" is the value of an attribute, and not a place or another time."""
    if attribute.lower().endswith("address"):
        return any(map(str.isdigit, value))
    if _DATED.fullmatch(attribute):
        return _DATE.match(value) is not None
    return _MEASURED.fullmatch(attribute) is not None and _CLOCK.match(value) is not None


def may_be_value(attribute: str, value: str) -> bool:
    """Return True unless a value only says how something is: a wife who is a teacher, a budget that is tight."""
    if _NAMED.fullmatch(attribute):
        return is_name(value)
    if attribute.lower() == "flight":
        return _FLIGHT.match(value) is not None
    if attribute.lower() == "address":
        return value[0].isupper() or any(map(str.isdigit, value))
    if _DATED.fullmatch(attribute):
        return _WHEN.search(value) is not None
    return _MEASURED.fullmatch(attribute) is None or any(map(str.isdigit, value)) or bool(_CLOCK.match(value))
