"""Claims of facts: subject, attribute, value. Rules for the most common sentences, no model, no I/O."""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from memoranda.facts.attributes import PURPOSE, attribute_of, is_value_of, may_be_value, where_or_when
from memoranda.facts.denials import ENDS, NEGATION, without_denial
from memoranda.text.calendar import MONTH_BEGINS
from memoranda.text.kinds import opposites
from memoranda.text.memo import kept
from memoranda.text.regex import Regex, regex
from memoranda.text.terms import term_set, terms

LONGEST = 600
"""Characters of a fact up to which rules read what it says: what is longer is more than a sentence."""
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
_TIMES = regex(
    r"(?<!\bis)(?<!\bare)(?<!\bbe)\s+(?:since|from|as of|starting|until|in|on|ab|seit)\s+(?:the\s+)?"
    r"(?:(?:early|mid|late)\s+)?"
    rf"(?:\d{{4}}|\d{{1,2}}\.?\s+\w+|{MONTH_BEGINS}\w*(?:\s+\d{{1,4}})?"
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
    `old` is the value that the sentence itself says is over; `over` means that `value` is; `several` that it may be
    one of several, unless the other sentence says what it is now; `owner` is the subject that this one belongs to
    (Mara, of Mara's sister)."""

    subject: frozenset[str]
    attribute: frozenset[str]
    value: frozenset[str]
    old: frozenset[str] = frozenset()
    over: bool = False
    several: bool = False
    owner: frozenset[str] = frozenset()


def whole_sentence(text: str) -> Regex:
    """Return the expression of a sentence that is all of a text."""
    return regex(rf"^{text}[.!\s]*$", re.IGNORECASE)


_STATES: tuple[tuple[str, Regex], ...] = (
    (
        "residence",
        whole_sentence(
            rf"{_NAME}\s+{_NOW}(?:lives?|living|lived|resides?|residing|settled|been living|wohnt|lebt)\s+"
            rf"(?:in|at)\s+{_PLACE}"
        ),
    ),
    (
        "residence",
        whole_sentence(rf"{_NAME}\s+{_NOW}(?:moved|moving|moves|relocated|relocates)\s+(?:back\s+)?(?:from\s+(?P<old>\S.*?)\s+)?"
                 rf"(?:to|into)\s+{_PLACE}{_OUT_OF.replace('old', 'old2')}"),
    ),
    ("residence", whole_sentence(rf"{_NAME}\s+ist\s+nach\s+{_PLACE}\s+gezogen")),
    (
        "employer",
        whole_sentence(rf"{_NAME}\s+{_NOW}(?:works?|working|been working|employed|joined|started|starts|hired)\s+"
                 rf"(?:as\s+.{{1,40}}?\s+)?"
                 rf"(?:at|for|by|bei)\s+(?!{_HOURS}){_PLACE}"),
    ),
    ("employer", whole_sentence(rf"{_NAME}\s+arbeitet\s+bei\s+{_PLACE}")),
    ("occupation", whole_sentence(rf"{_NAME}\s+{_NOW}(?:works?|working)\s+as\s+(?:an?\s+)?{_PLACE}")),
    ("name", whole_sentence(rf"{_NAME}(?:['’]s)?\s+(?:is|are)\s+(?:called|named)\s+{_PLACE}")),
    ("marriage", whole_sentence(rf"{_NAME}\s+{_NOW}(?:been\s+|got\s+|become\s+)?"
                          rf"(?P<value>single|married|engaged|divorced|widowed)(?:\s+(?:again|to|since|for)\b.*)?")),
)  # fmt: skip
_LEFT = whole_sentence(
    rf"{_NAME}\s+{_NOW}(?:(?:left|quit|gave up|cancell?ed)\s+|stopped\s+(?=\w+ing\b))"
    rf"(?:(?:(?:his|her|their|the|my|our)\s+)?(?:\w+\s+)?(?:job|position|role)\s+(?:at|with|for|in|as)\s+(?:an?\s+)?)?{_PLACE}"
)
_RESIGNED = whole_sentence(
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
_SWITCH = whole_sentence(
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
_OF = whole_sentence(
    rf"(?P<who>[^,;:]{{1,60}}?)(?:['’]s?\s+|\s+)(?P<what>{_SINGLE})\s+"
    rf"(?:is|are|was|will be|has been|became|changed to|moved to|is now)\s+"
    rf"(?:now\s+|set to\s+|moved to\s+|changed to\s+)*{_PLACE}"
)
_OF_THE = whole_sentence(
    rf"the\s+(?P<what>{_SINGLE})\s+(?:of|for)\s+(?P<who>[^,;:]{{1,60}}?)\s+(?:is|are|was|will be|has been|became)\s+"
    rf"(?:now\s+|set to\s+|moved to\s+|changed to\s+)*{_PLACE}"
)
_FOR = whole_sentence(
    rf"{_NAME}\s+{_NOW}(?P<verb>prefers?|chose|picked|decided to use|was decided to use|was decided to go with|"
    rf"decided to go with)\s+{_PLACE}\s+(?P<what>(?:for|as)\s+\S.*?)"
)
_USES = whole_sentence(
    rf"{_NAME}\s+{_NOW}uses?\s+{_PLACE}\s+(?P<what>(?:for|as)\s+\S.*?)(?P<now>\s+(?:now|instead|these days))?"
)
_OVER = whole_sentence(
    rf"{_NAME}\s+{_NOW}prefers?\s+{_PLACE}\s+(?:over|to|than|rather than|instead of)\s+(?P<old>\S.*?)"
)
_NOT = r",?\s+(?:(?:and|but)\s+)?(?:not|rather than|instead of|nicht|statt|anstatt)\s+"
_INSTEAD = whole_sentence(
    rf"{_NAME}\s+(?:is|are|was|will be|ist|sind|prefers?|wants?|uses?|likes?|chose|picked|needs?|takes?)\s+"
    rf"(?:now\s+|going to be\s+|to be\s+)*{_PLACE}{_NOT}(?P<old>\S.*?)(?:\s+any\s?more)?"
)
_AT = whole_sentence(
    rf"(?:the\s+)?(?P<who>[^,;:]{{1,60}}?)\s+(?:is|are|will be)\s+{_NOW}(?:in|at)\s+{_PLACE}"
)
_PREFERS = whole_sentence(
    rf"{_NAME}\s+{_NOW}prefers?\s+(?P<value>[\w-]+?)(?P<now>\s+(?:now|instead|these days))?"
)
_DECIDED = regex(r"(?:it was decided|[^,;:]{1,60}? decided) (?:to|on) (?P<what>.+)", re.IGNORECASE)
_CHOICES = frozenset(["use", "take", "choose", "keep", "buy", "go", "stick", "switch", "wear", "paint"])
"""Verbs whose object is one of several: another of the same kind takes its place."""
_PLACES = frozenset(["in", "at", "on", "to", "with", "for", "from", "by", "as", "until", "before", "after"])
_MODE = whole_sentence(
    rf"{_NAME}\s+{_NOW}prefers?\s+(?:the\s+|an?\s+)?(?P<value>[\w-]+)\s+"
    r"(?P<what>modes?|themes?|seats?|sides?|layouts?|formats?|units?|styles?|views?|keyboards?|languages?|times?|roasts?|sizes?)"
)
_OF_TWO = whole_sentence(
    rf"{_NAME}\s+{_NOW}prefers?\s+(?:the\s+|an?\s+)?(?P<value>[\w-]+)\s+(?P<what>[\w\s-]{{2,40}}?)"
)


@kept(8_192)
def claims(text: str) -> tuple[Claim, ...]:
    """Return what a sentence claims, by every rule that fits; empty if none does, or the text is no sentence."""
    if len(text) > LONGEST:
        return ()
    said = _TIMES.sub("", _SEIT.sub("", " ".join(text.split())))
    if match := _INSTEAD.match(said):
        return (_claim(match, "", over=False),)
    over = bool(ENDS.search(said))
    plain = ENDS.sub(" ", without_denial(said)) if over else said
    if not over and NEGATION.search(said):
        return ()
    results: list[Claim] = []
    for attribute, pattern in _STATES:
        if match := pattern.match(" ".join(plain.split())):
            results.append(_claim(match, attribute_of(attribute, match), over))
    if (match := _LEFT.match(said) or _RESIGNED.match(said)) and not _UNNAMED.match(match["value"]):
        results.append(_claim(match, "", True))
    if match := _SWITCH.match(said):
        results.append(_claim(match, "", over))
    of = _OF.match(said) or _OF_THE.match(said)
    if (match := _AT.match(said)) and not (of and is_value_of(of["what"], match["value"])):
        results.append(_claim(match, where_or_when(match["value"]), over))
    elif of and (over or match or may_be_value(of["what"], of["value"])):
        purpose = PURPOSE.search(of["value"])
        results.append(_claim(of, f"{of['what']} {purpose[1] if purpose else ''}", over))
    if match := _PREFERS.match(said):
        results.append(replace(_claim(match, "preferred", over), several=match["now"] is None))
    if match := _USES.match(said):
        results.append(replace(_claim(match, f"uses {match['what']}", over), several=match["now"] is None))
    if match := _FOR.match(said):
        results.append(_claim(match, f"uses {match['what']}", over))
    if match := _OVER.match(said):
        results.append(_claim(match, "", over))
    elif match := _MODE.match(said):
        results.append(_claim(match, f"prefers {match['what']}", over))
    elif (match := _OF_TWO.match(said)) and (sides := opposites(match["value"])):
        results.append(_claim(match, f"prefers {sides} {match['what']}", over))
    return tuple(results)


def _claim(match: re.Match[str], attribute: str, over: bool) -> Claim:
    groups = match.groupdict()
    old = groups.get("old") or groups.get("old2") or ""
    return Claim(
        subject=term_set(match["who"]) - _RENEWED,
        attribute=term_set(attribute),
        value=term_set(match["value"]),
        old=term_set(old),
        over=over,
        owner=term_set(owner[1]) if (owner := _OWNER.match(match["who"])) else frozenset(),
    )


_OWNER = regex(r"(.*\w)(?:['’]s|(?<=s)['’])\s", re.IGNORECASE)
_PERSONAL = term_set("residence dwelling street employer workplace occupation marriage")
_RENEWED = term_set("new updated revised latest current final actual")
"""What a subject is called when its value has changed: the new budget is the budget."""


class Correction(msgspec.Struct, frozen=True):
    """A value that replaces another one, in a sentence that does not name the attribute."""

    value: str
    old: str

    def concerns(self, text: str) -> bool:
        """Return True if a text has the old value, and not the new one."""
        words = term_set(text)
        old, value = term_set(self.old), term_set(self.value)
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
_CORRECTION = whole_sentence(rf"(?:{_CHANGE})+(?P<value>{_FEW_WORDS}){_NOT}(?P<old>{_FEW_WORDS})")
_NO_VALUE = (
    r"(?!(?:no|not|yes|why|maybe|ok|okay|sure|sorry|well|or|and|but|if|whether|please|thanks|definitely|probably|certainly|"
    r"today|tonight|tomorrow|now|yet|really|me|so|that|this|it|only|just|always|necessarily|bad|nein|ja)\b)"
)
_BARE_CORRECTION = whole_sentence(rf"{_NO_VALUE}(?P<value>[\w'’-]+){_NOT}{_NO_VALUE}(?P<old>[\w'’-]+)")


def correction_in(text: str) -> Correction | None:
    """Return what a sentence corrects that does not say of what: "Change of plan: navy, not green"."""
    plain = " ".join(text.split())
    match = _CORRECTION.match(plain) or _BARE_CORRECTION.match(plain)
    return None if match is None else Correction(match["value"], match["old"])


_OWNED = regex(r"(?:the\s+)?[\w.-]+(?:['’]s|s['’])\s+([\w-]+)", re.IGNORECASE)
"""What belongs to the subject of a sentence: Tim's sister."""


def conflicting(new: str, old: str) -> bool:
    """Return True if `new` gives an attribute another value than `old` does, as far as the rules see."""
    return any(_against(claim, other, old) for claim in claims(new) for other in (*claims(old), None))


def _against(new: Claim, old: Claim | None, text: str) -> bool:
    if old is None:  # a value that the new sentence says is over, in a sentence that no rule reads
        said = frozenset(terms(text))
        gone = new.value if new.over else new.old
        fits = bool(gone) and bool(new.subject) and new.subject <= said and gone <= said and not claims(text)
        if new.over and (_FELT.search(text) or not _HOLDS.search(text)):
            return False
        owned = _OWNED.match(text)
        return fits and (owned is None or term_set(owned[1]) <= new.subject | gone)
    if not same_subject(new.subject, old.subject) or _belongs(new, old) or _belongs(old, new):
        return False
    if bool(new.owner) != bool(old.owner) and (new.over or old.over or old.attribute & _PERSONAL):
        return False
    if new.over:
        return bool(new.value) and new.value <= old.value | old.attribute and not old.over
    if new.old and new.old <= old.value and not new.value <= old.value:
        return True
    if new.several and old.several:
        return False
    same = bool(new.attribute) and new.attribute == old.attribute and not old.over
    return same and new.value != old.value and not new.value < old.value and not old.value < new.value


def same_subject(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return True if two subjects are the same, or one is the other with words left out."""
    return first == second or (bool(first) and bool(second) and (first <= second or second <= first))


_ADVERBS = term_set("still now just recently currently already also actually meanwhile finally only probably")
_ABOUT = regex(
    r"(?P<who>[^,;:]{1,60}?)\s+(?:is|are|was|were|will|has|have|costs?|ist|sind|kostet)\b", re.IGNORECASE
)
"""The subject of a sentence about a thing."""


def about_same(first: str, second: str) -> bool:
    """Return True unless the subjects of two sentences differ in a word: Mara's budget, and Mara's holiday budget."""
    matches = _ABOUT.match(first), _ABOUT.match(second)
    mine, theirs = (
        None if match is None else term_set(match["who"]) - _RENEWED - _ADVERBS for match in matches
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
