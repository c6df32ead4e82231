"""Claims of facts: subject, attribute, value. Rules for the most common sentences, no model, no I/O."""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from memoranda.facts.naming import is_name
from memoranda.text.memo import kept
from memoranda.text.regex import Regex, regex
from memoranda.text.terms import terms

_NAME = r"(?P<who>[^,;:]{1,60}?)"
_NOW = r"(?:(?:has|have|is|now|just|recently|currently|already|also|actually|since)\s+)*"
_PLACE = r"(?P<value>\S.*?)"
_OUT_OF = r"(?:\s+from\s+(?P<old>\S.*?))?"
_HOURS = (
    r"(?-i:(?=[a-z\d]))(?:(?:nights?|home|weekends?|times)\b(?!\s+(?:(?-i:[A-Z])|depot\b|goods\b))|"
    r"the\s+(?:weekends?|moment|(?:first|second|third|last)\s+time)\b|an?\s+(?:hour|day|week|month|year|while)\b(?!\s+care)|"
    r"\d[\d.:]*(?:\s*[ap]m\b|\s*h\b|\s+(?-i:[a-z]))|\d[\d.:]*[.!\s]*$|(?:least|most|about|around|half|almost|over|all)\s|"
    r"(?:free|fun|money|hours|days|weeks|years|noon|midnight|lunch|lunchtime|headquarters|hand|myself|themselves|"
    r"(?:several|many|various|different|other|some)\s+\w+|clients|customers)\b)"
)
"""When, where or why one works, in place of for whom."""
_NEGATION = regex(
    r"\b(?:not|no|never|none|without|cannot|nor|neither|nicht|kein\w*)\b|n['’]t\b", re.IGNORECASE
)
_ENDS = regex(
    r"\b(?:no longer|not any\s?more|any\s?(?:more|longer)(?=[\s.!]*$)|stopped|quit|gave up|left|cancelled|"
    r"nicht mehr)\b",
    re.IGNORECASE,
)
_CEASES = regex(
    r"\b(?:no longer|not any\s?more|any\s?(?:more|longer)(?=[\s.!]*$)|(?:stopped|quit|gave up)(?=\s\w+ing\b)|"
    r"nicht mehr)\b",
    re.IGNORECASE,
)
"""What denies the verb after it. Who left Rome may love it."""
_ANY_MORE = regex(r"\bany\s?(?:more|longer)[\s.!]*$", re.IGNORECASE)
_DENIES = regex(r"\b(?:do|does)(?:\s+not|n['’]t)\b|\bnot\b|n['’]t\b", re.IGNORECASE)
_LIKES = frozenset(terms("likes loves enjoys prefers adores favours mag liebt"))
_DISLIKES = frozenset(terms("dislikes hates avoids detests"))
_TIMES = regex(
    r"(?<!\bis)(?<!\bare)(?<!\bbe)\s+(?:since|from|as of|starting|until|in|on|ab|seit)\s+(?:the\s+)?"
    r"(?:(?:early|mid|late)\s+)?"
    r"(?:\d{4}|\d{1,2}\.?\s+\w+|(?:jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)\w*(?:\s+\d{1,4})?"
    r"|next \w+|last \w+)\b.*$",
    re.IGNORECASE,
)

_SEIT = regex(
    r"\s+(?:jetzt|nun|inzwischen|mittlerweile|aktuell|derzeit|momentan|gerade|seit(?:\s+[\w.]+){1,3}?)"
    r"(?=\s+(?:nicht\s+mehr\s+)?(?:in|bei|als|nach)\s)",
    re.IGNORECASE,
)
"""German adverbs of time before a place."""


class Claim(msgspec.Struct, frozen=True):
    """One value of one attribute of one subject, as stemmed terms. `single` attributes have one value at a time;
    `old` is the value that the sentence itself says is over; `over` means that `value` is; `now` that it was another
    before; `owner` is the subject that this one belongs to (Mara, of Mara's sister)."""

    subject: frozenset[str]
    attribute: frozenset[str]
    value: frozenset[str]
    old: frozenset[str] = frozenset()
    over: bool = False
    now: bool = False
    owner: frozenset[str] = frozenset()


def _pattern(text: str) -> Regex:
    return regex(rf"^{text}[.!\s]*$", re.IGNORECASE)


_STATES: tuple[tuple[str, Regex], ...] = (
    (
        "residence",
        _pattern(
            rf"{_NAME}\s+{_NOW}(?:lives?|living|lived|resides?|residing|settled|been living|wohnt|lebt)\s+"
            rf"(?:in|at)\s+{_PLACE}"
        ),
    ),
    (
        "residence",
        _pattern(rf"{_NAME}\s+{_NOW}(?:moved|moving|moves|relocated|relocates)\s+(?:back\s+)?(?:from\s+(?P<old>\S.*?)\s+)?"
                 rf"(?:to|into)\s+{_PLACE}{_OUT_OF.replace('old', 'old2')}"),
    ),
    ("residence", _pattern(rf"{_NAME}\s+ist\s+nach\s+{_PLACE}\s+gezogen")),
    (
        "employer",
        _pattern(rf"{_NAME}\s+{_NOW}(?:works?|working|been working|employed|joined|started|starts|hired)\s+"
                 rf"(?:as\s+.{{1,40}}?\s+)?"
                 rf"(?:at|for|by|bei)\s+(?!{_HOURS}){_PLACE}"),
    ),
    ("employer", _pattern(rf"{_NAME}\s+arbeitet\s+bei\s+{_PLACE}")),
    ("occupation", _pattern(rf"{_NAME}\s+{_NOW}(?:works?|working)\s+as\s+(?:an?\s+)?{_PLACE}")),
    ("name", _pattern(rf"{_NAME}(?:['’]s)?\s+(?:is|are)\s+(?:called|named)\s+{_PLACE}")),
    ("marriage", _pattern(rf"{_NAME}\s+{_NOW}(?:been\s+|got\s+|become\s+)?"
                          rf"(?P<value>single|married|engaged|divorced|widowed)(?:\s+(?:again|to|since|for)\b.*)?")),
)  # fmt: skip
_LEFT = _pattern(
    rf"{_NAME}\s+{_NOW}(?:(?:left|quit|gave up|cancelled)\s+|stopped\s+(?=\w+ing\b))"
    rf"(?:(?:(?:his|her|their|the|my|our)\s+)?(?:\w+\s+)?(?:job|position|role)\s+(?:at|with|for|in|as)\s+(?:an?\s+)?)?{_PLACE}"
)
_RESIGNED = _pattern(
    rf"{_NAME}\s+{_NOW}(?:resigned\s+(?:from|as)|moved\s+(?:away\s+from|out\s+of))\s+{_PLACE}"
)
_UNNAMED = regex(r"(?:an?|the|his|her|their|my|our)\s+[^A-Z]*$")
"""What one leaves that has no name: a job, the party."""
_HOLDS = regex(
    r"\b(?:is|are|works?|working|lives?|living|studies|teaches|volunteers|plays|runs|attends|joined|started|employed|uses?|"
    r"drives?|takes?|eats?|drinks?|smokes?|\w+ing)\b",
    re.IGNORECASE,
)
_FELT = regex(r"\b(?:likes?|loves?|hates?|dislikes?|enjoys?|was|were|has|had|worked|lived)\b", re.IGNORECASE)
"""Verbs of sentences that stay true when their subject leaves."""
_SWITCH = _pattern(
    rf"{_NAME}\s+{_NOW}(?P<verb>switched|changed|migrated|went|moved|replaced)\s+(?:back\s+)?"
    rf"(?:from\s+)?(?P<old>\S.*?)\s+(?:to|with|by)\s+{_PLACE}"
)
_SINGLE = (
    r"(?:(?:favou?rite|preferred|primary|main|current)\s+[\w -]{2,40}?|e-?mail(?:\s+address)?|phone(?:\s+number)?|"
    r"home\s*town|due date|start date|release date|birthday|name|number|address|job|boss|manager|budget|deadline|home|"
    r"city|age|wife|husband|partner|spouse|girlfriend|boyfriend|employer|occupation|date|time|location|venue|title|"
    r"status|price|cost|rent|salary|password|plan|version|default|doctor|dentist|appointment|meeting|flight|size|"
    r"weight|height|capital|owner|lead|maintainer)"
)
_OF = _pattern(
    rf"(?P<who>[^,;:]{{1,60}}?)(?:['’]s?\s+|\s+)(?P<what>{_SINGLE})\s+"
    rf"(?:is|are|was|will be|has been|became|changed to|moved to|is now)\s+"
    rf"(?:now\s+|set to\s+|moved to\s+|changed to\s+)*{_PLACE}"
)
_PURPOSE = regex(r"\sfor\s+(\D+)$", re.IGNORECASE)
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
_CAPITAL = regex(r"(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b)\b[^\W\d_a-zß-öø-ÿ]")
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
    r"role|position|plan|office|seat|question|topic)\b|eine[rm]\s|meine[rm]\s|der\s+(?:nähe|innenstadt|stadt|altstadt)\b|"
    r"deutschland\b)",
    re.IGNORECASE,
)
"""What one may move to, or live in, beside a place of its own: a team, a flat share, a tool."""
_DWELLING = regex(
    r"\b(?:apartment|cabin|caravan|condo|cottage|dorm|flat|house|studio|van|villa)\b", re.IGNORECASE
)
_CHANGED = regex(r"\b(?:now|just|recently|joined|started|starts|hired)\b", re.IGNORECASE)
_OF_THE = _pattern(
    rf"the\s+(?P<what>{_SINGLE})\s+(?:of|for)\s+(?P<who>[^,;:]{{1,60}}?)\s+(?:is|are|was|will be|has been|became)\s+"
    rf"(?:now\s+|set to\s+|moved to\s+|changed to\s+)*{_PLACE}"
)
_FOR = _pattern(
    rf"{_NAME}\s+{_NOW}(?P<verb>prefers?|chose|picked|decided to use|was decided to use|was decided to go with|"
    rf"decided to go with)\s+{_PLACE}\s+(?P<what>(?:for|as)\s+\S.*?)"
)
_OVER = _pattern(
    rf"{_NAME}\s+{_NOW}prefers?\s+{_PLACE}\s+(?:over|to|than|rather than|instead of)\s+(?P<old>\S.*?)"
)
_NOT = r",?\s+(?:(?:and|but)\s+)?(?:not|rather than|instead of|nicht|statt|anstatt)\s+"
_INSTEAD = _pattern(
    rf"{_NAME}\s+(?:is|are|was|will be|ist|sind|prefers?|wants?|uses?|likes?|chose|picked|needs?|takes?)\s+"
    rf"(?:now\s+|going to be\s+|to be\s+)*{_PLACE}{_NOT}(?P<old>\S.*?)(?:\s+any\s?more)?"
)
_AT = _pattern(rf"(?:the\s+)?(?P<who>[^,;:]{{1,60}}?)\s+(?:is|are|will be)\s+{_NOW}(?:in|at)\s+{_PLACE}")
_CLOCK = regex(r"\d|(?:noon|midnight)\b", re.IGNORECASE)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTH = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ember|ober)?"
)
_SEASON = r"(?:spring|summer|autumn|fall|winter)"
_DATE = regex(
    rf"(?:(?:the|next|this|last|early|mid|late|end\s+of)[\s-]+)*(?:\d{{4}}\b|{_MONTH}\b|{_SEASON}\b|"
    rf"(?:\d+|an?|one)?\s*(?:days?|weeks?|months?|years?)\b)",
    re.IGNORECASE,
)
_WHEN = regex(
    rf"\b(?:{_DAY}|{_MONTH}|{_SEASON}|today|tomorrow|tonight|next|weeks?|months?|years?|\d{{1,2}}(?:st|nd|rd|th|\.)?"
    rf"(?!\d|:|\s*(?:[ap]m|h|hours?|minutes?|o['’]clock)\b)|\d{{4}}(?:-\d\d?)*)\b",
    re.IGNORECASE,
)
"""Words of a date."""
_FLIGHT = regex(r"(?-i:[A-Z])|[a-z]{1,3}\s?\d{1,5}\b", re.IGNORECASE)
_SOON = regex(r"\d+\s*(?:h|hours?|min|minutes?)\b", re.IGNORECASE)
_PREFERS = _pattern(rf"{_NAME}\s+{_NOW}prefers?\s+(?P<value>[\w-]+?)(?P<now>\s+(?:now|instead|these days))?")
_DECIDED = regex(r"(?:it was decided|[^,;:]{1,60}? decided) (?:to|on) (?P<what>.+)", re.IGNORECASE)
_CHOICES = frozenset(["use", "take", "choose", "keep", "buy", "go", "stick", "switch", "wear", "paint"])
"""Verbs whose object is one of several: another of the same kind takes its place."""
_PLACES = frozenset(["in", "at", "on", "to", "with", "for", "from", "by", "as", "until", "before", "after"])
_MODE = _pattern(
    rf"{_NAME}\s+{_NOW}prefers?\s+(?:the\s+|an?\s+)?(?P<value>[\w-]+)\s+"
    r"(?P<what>modes?|themes?|seats?|sides?|layouts?|formats?|units?|styles?|views?|keyboards?|languages?|times?|roasts?|sizes?)"
)


@kept(8_192)
def claims(text: str) -> tuple[Claim, ...]:
    """Return what a sentence claims, by every rule that fits; empty if none does."""
    said = _TIMES.sub("", _SEIT.sub("", " ".join(text.split())))
    if match := _INSTEAD.match(said):
        return (_claim(match, "", over=False),)
    over = bool(_ENDS.search(said))
    plain = _ENDS.sub(" ", _without_denial(said)) if over else said
    if not over and _NEGATION.search(said):
        return ()
    results: list[Claim] = []
    for attribute, pattern in _STATES:
        if match := pattern.match(" ".join(plain.split())):
            results.append(_claim(match, _kind_of_value(attribute, match), over))
    if (match := _LEFT.match(said) or _RESIGNED.match(said)) and not _UNNAMED.match(match["value"]):
        results.append(_claim(match, "", True))
    if match := _SWITCH.match(said):
        results.append(_claim(match, "", over))
    of = _OF.match(said) or _OF_THE.match(said)
    if (match := _AT.match(said)) and not (of and _is_value_of(of["what"], match["value"])):
        results.append(_claim(match, _where_or_when(match["value"]), over))
    elif of and (over or match or _may_be(of["what"], of["value"])):
        purpose = _PURPOSE.search(of["value"])
        results.append(_claim(of, f"{of['what']} {purpose[1] if purpose else ''}", over))
    if match := _PREFERS.match(said):
        results.append(replace(_claim(match, "preferred", over), now=match["now"] is not None))
    if match := _FOR.match(said):
        results.append(_claim(match, f"uses {match['what']}", over))
    if match := _OVER.match(said):
        results.append(_claim(match, "", over))
    elif match := _MODE.match(said):
        results.append(_claim(match, f"prefers {match['what']}", over))
    return tuple(results)


def _without_denial(text: str) -> str:
    """Return a sentence that ends with "anymore" without the negation that goes with it: both are one denial."""
    return _DENIES.sub(" ", text) if _ANY_MORE.search(text) else text


def _kind_of_value(attribute: str, match: re.Match[str]) -> str:
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


def _where_or_when(value: str) -> str:
    """Return the attribute of a value after "in" or "at": a meeting in May is at 10, in a room, and in Rome."""
    if _SOON.match(value):
        return ""
    if _DATE.match(value):
        return "date"
    if _CLOCK.match(value):
        return "time"
    return "location" if _CAPITAL.search(value) else "room"


def _is_value_of(attribute: str, value: str) -> bool:
    """Return True if what follows "in" or "at" is the value of an attribute, and not a place or another time."""
    if attribute.lower().endswith("address"):
        return any(map(str.isdigit, value))
    if _DATED.fullmatch(attribute):
        return _DATE.match(value) is not None
    return _MEASURED.fullmatch(attribute) is not None and _CLOCK.match(value) is not None


def _may_be(attribute: str, value: str) -> bool:
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


def _claim(match: re.Match[str], attribute: str, over: bool) -> Claim:
    groups = match.groupdict()
    old = groups.get("old") or groups.get("old2") or ""
    return Claim(
        subject=_terms(match["who"]) - _RENEWED,
        attribute=_terms(attribute),
        value=_terms(match["value"]),
        old=_terms(old),
        over=over,
        owner=_terms(owner[1]) if (owner := _OWNER.match(match["who"])) else frozenset(),
    )


def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


_OWNER = regex(r"(.*\w)(?:['’]s|(?<=s)['’])\s", re.IGNORECASE)
_PREFERRED = _terms("preferred")
_PERSONAL = _terms("residence dwelling employer workplace occupation marriage")
_RENEWED = _terms("new updated revised latest current final actual")
"""What a subject is called when its value has changed: the new budget is the budget."""


class Correction(msgspec.Struct, frozen=True):
    """A value that replaces another one, in a sentence that does not name the attribute."""

    value: str
    old: str

    def concerns(self, text: str) -> bool:
        """Return True if a text has the old value, and not the new one."""
        words = _terms(text)
        old, value = _terms(self.old), _terms(self.value)
        return bool(old) and bool(value) and old <= words and not value <= words

    def applied(self, text: str) -> str:
        """Return the text with the new value in place of the old one; unchanged if the text words the old one
        differently."""
        return re.sub(rf"\b{re.escape(self.old)}\b", lambda _: self.value, text, count=1, flags=re.IGNORECASE)


_CHANGE = (
    r"(?:(?:there is a )?change of plans?|plans? changed|correction|update|sorry|actually|no|wait|i mean(?:t)?|"
    r"make (?:it|that)|let['’]?s make it|we['’]?ll go with|planänderung|korrektur|doch|nein)[,:;.!\s–—-]+"
)
_FEW_WORDS = r"(?:[\w'’.-]+\s+){0,3}[\w'’.-]+?"
_CORRECTION = _pattern(rf"(?:{_CHANGE})+(?P<value>{_FEW_WORDS}){_NOT}(?P<old>{_FEW_WORDS})")
_NO_VALUE = (
    r"(?!(?:no|not|yes|why|maybe|ok|okay|sure|sorry|well|or|and|but|if|whether|please|thanks|definitely|probably|certainly|"
    r"today|tonight|tomorrow|now|yet|really|me|so|that|this|it|only|just|always|necessarily|bad|nein|ja)\b)"
)
_BARE_CORRECTION = _pattern(rf"{_NO_VALUE}(?P<value>[\w'’-]+){_NOT}{_NO_VALUE}(?P<old>[\w'’-]+)")


def correction_in(text: str) -> Correction | None:
    """Return what a sentence corrects that does not say of what: "Change of plan: navy, not green"."""
    plain = " ".join(text.split())
    match = _CORRECTION.match(plain) or _BARE_CORRECTION.match(plain)
    return None if match is None else Correction(match["value"], match["old"])


_PARTED = _pattern(
    rf"{_NAME}\s+{_NOW}(?:sold|gave away|got rid of|donated|returned)\s+(?:the|his|her|their|my|our)\s+{_PLACE}"
    r"(?:\s+(?:(?:to|for|because|last|this|yesterday|today)\b|(?:in|on)\s+(?:\d|[A-Z]\w+day\b)).*)?"
)
_HAS = _pattern(
    rf"{_NAME}\s+{_NOW}(?:has|have|owns?|drives?|rides?|sails?|uses?|rents?)\s+(?!\d|many|several|some){_PLACE}"
    r"(?:\s+(?:with|who|that|which)\b.*)?"
)
_OWNED = regex(r"(?:the\s+)?[\w.-]+(?:['’]s|s['’])\s+([\w-]+)", re.IGNORECASE)
"""What belongs to the subject of a sentence: Tim's sister."""


def conflicting(new: str, old: str) -> bool:
    """Return True if `new` gives an attribute another value than `old` does, as far as the rules see."""
    return any(_against(claim, other, old) for claim in claims(new) for other in (*claims(old), None))


def parted(new: str, old: str) -> bool:
    """Return True if `new` says that the thing that `old` has is sold or given away."""
    gone, had = _PARTED.match(new), _HAS.match(old)
    if gone is None or had is None or _terms(gone["who"]) != _terms(had["who"]):
        return False
    thing, had_thing = _terms(gone["value"]) - _LOOKS, _terms(had["value"]) - _LOOKS
    return bool(thing) and thing == had_thing


_LOOKS = _terms(
    "old new own used first second big small little nice favourite vintage electric red blue green black white grey"
    " gray brown silver"
)


def _against(new: Claim, old: Claim | None, text: str) -> bool:
    if old is None:  # a value that the new sentence says is over, in a sentence that no rule reads
        said = frozenset(terms(text))
        gone = new.value if new.over else new.old
        fits = bool(gone) and bool(new.subject) and new.subject <= said and gone <= said and not claims(text)
        if new.over and (_FELT.search(text) or not _HOLDS.search(text)):
            return False
        owned = _OWNED.match(text)
        return fits and (owned is None or _terms(owned[1]) <= new.subject | gone)
    if not same_subject(new.subject, old.subject) or _belongs(new, old) or _belongs(old, new):
        return False
    if bool(new.owner) != bool(old.owner) and (new.over or old.over or old.attribute & _PERSONAL):
        return False
    if new.over:
        return bool(new.value) and new.value <= old.value | old.attribute and not old.over
    if new.old and new.old <= old.value and not new.value <= old.value:
        return True
    if new.attribute == _PREFERRED and not new.now and not old.now:
        return False  # one may prefer several things
    same = bool(new.attribute) and new.attribute == old.attribute and not old.over
    return same and new.value != old.value and not new.value < old.value and not old.value < new.value


def same_subject(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return True if two subjects are the same, or one is the other with words left out."""
    return first == second or (bool(first) and bool(second) and (first <= second or second <= first))


_ADVERBS = _terms("still now just recently currently already also actually meanwhile finally only probably")
_ABOUT = regex(
    r"(?P<who>[^,;:]{1,60}?)\s+(?:is|are|was|were|will|has|have|costs?|ist|sind|kostet)\b", re.IGNORECASE
)
"""The subject of a sentence about a thing."""


def about_same(first: str, second: str) -> bool:
    """Return True unless the subjects of two sentences differ in a word: Mara's budget, and Mara's holiday budget."""
    matches = _ABOUT.match(first), _ABOUT.match(second)
    mine, theirs = (
        None if match is None else _terms(match["who"]) - _RENEWED - _ADVERBS for match in matches
    )
    return mine is None or theirs is None or mine == theirs


def _belongs(claim: Claim, to: Claim) -> bool:
    """Return True if a claim is about what belongs to the subject of the other: Mara's wife, and Mara."""
    return claim.subject != to.subject and bool(claim.owner) and to.subject <= claim.owner


def redecided(new: str, old: str) -> bool:
    """Return True if two decisions are the same but for one word: another place, time or person in it (print in Turin,
    print in Nantes), or another of one kind where one is chosen (use the blue poster, use the red poster)."""
    first, second = (_DECIDED.fullmatch(text.strip().rstrip(" .!")) for text in (new, old))
    if first is None or second is None:
        return False
    mine, theirs = first["what"].lower().split(), second["what"].lower().split()
    if len(mine) != len(theirs):
        return False
    differ = [at for at, (word, other) in enumerate(zip(mine, theirs, strict=True)) if word != other]
    if len(differ) != 1 or differ[0] == 0:
        return False
    at = differ[0]
    return mine[at - 1] in _PLACES or (mine[0] in _CHOICES and at < len(mine) - 1)


def flipped(new: str, old: str) -> bool:
    """Return True if two sentences take opposite sides of one thing: one likes what the other dislikes, or denies what
    the other says. One may have words of its own, if it is no denial."""
    bare = not (_REASON.search(new) and _REASON.search(old))
    return any(_opposite(mine, theirs) for mine in _sides(new, bare) for theirs in _sides(old, bare))


def _opposite(first: _Side, second: _Side) -> bool:
    if first.side == second.side or not first.about or not second.about:
        return False
    if not (first.side or first.about <= second.about) or not (second.side or second.about <= first.about):
        return False  # what is denied is narrower
    shared = first.about & second.about
    nested = shared in (first.about, second.about)
    return nested and len(shared) > 1 and 2 * len(shared) > len(first.about | second.about)


_REASON = regex(
    r"(?:,\s*|\s)(?:because|due\s+to|thanks\s+to|so\s+that|(?:as|since)\s+(?:he|she|they|it)|for\s+(?:\w+\s+)?reasons?|"
    r"weil|wegen)\b.*$",
    re.IGNORECASE,
)
_PRESENT = regex(r"(?<!\bright\s)\bnow\b|\b(?:nowadays|these\s+days|jetzt)\b", re.IGNORECASE)
_CEASED = _terms(
    "longer anymore any more stopped quit nicht kein keine keinen keinem keiner keines nie niemals mehr"
)
"""Words of denials that the analyzer keeps."""
_ITEM = r"(?!\d)[\w-]{1,40}"
_LISTED = regex(rf"(?<![\w-]){_ITEM}(?:,\s{_ITEM}){{0,6}},?\s(?:or|nor|oder)\s{_ITEM}", re.IGNORECASE)
_BETWEEN = regex(r",?\s(?:or|nor|oder)\s|,\s", re.IGNORECASE)


class _Side(msgspec.Struct, frozen=True):
    side: bool
    about: frozenset[str]


@kept(8_192)
def _sides(text: str, bare: bool) -> tuple[_Side, ...]:
    """Return the polarity and the terms of a sentence, without words for the present and, if `bare`, without a reason:
    a like and a dislike are opposites, as are a sentence and its denial. One that denies one thing or another has a
    side for each of them, too."""
    text = _PRESENT.sub("", _CEASES.sub(" not ", _without_denial(" ".join(text.split()))))
    text = _REASON.sub("", text) if bare else text
    against = bool(_terms(text) & _DISLIKES)
    denied = len(_NEGATION.findall(text)) % 2 == 1
    listed = _LISTED.search(text) if against != denied else None
    sentences = [text]
    if listed is not None:
        things = _BETWEEN.split(listed[0])
        sentences += [f"{text[: listed.start()]}{thing}{text[listed.end() :]}" for thing in things]
    gone = _LIKES | _DISLIKES | _CEASED
    return tuple(_Side(against == denied, _terms(sentence) - gone) for sentence in sentences)
