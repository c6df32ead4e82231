"""Facts out of what users say, by patterns and without a model: preferences, facts, entities, decisions. No I/O.

English, and the commonest of these in German. Facts are written in the third person, under the speaker's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest

import msgspec

from memoranda.facts.naming import is_called
from memoranda.facts.parsing import Candidate, tidy
from memoranda.facts.standalone import understandable
from memoranda.facts.statements import OPENINGS, own_text, statements
from memoranda.text.calendar import DAY, MONTH_BEGINS
from memoranda.text.regex import Regex, regex
from memoranda.text.sentences import spans
from memoranda.text.terms import terms

MOST_CHARS = 8_000
"""Characters of one message that are looked at: a pasted document does not describe its sender."""
LONGEST = 240
"""The most characters of a sentence; a longer one says more than one thing."""
USER = "The user"
"""The name of a speaker whose name is not known."""


class Rule(msgspec.Struct, frozen=True):
    """A regular expression for a whole statement and the sentence for its matches. `{name}` is the speaker; groups are
    named in `sentence`. `confidence` is the share of the matches of such patterns that were true and understandable,
    among 139 facts of LoCoMo that were read by hand: .9 for what a speaker is, likes or calls something, .87 for what
    a speaker does or decides, .8 for what a speaker has."""

    kind: str
    pattern: Regex
    sentence: str
    confidence: float


def _rule(kind: str, expression: str, sentence: str, confidence: float) -> Rule:
    whole = rf"^(?:{_BEGIN},?\s+)*(?:{expression})(?:[.!…\s]*)$"
    return Rule(kind, regex(whole, re.IGNORECASE | re.DOTALL), sentence, confidence)


_BEGIN = (
    rf"(?:{OPENINGS}|btw|by the way|fyi|honestly|"
    r"(?:(?:just|please)\s+)?(?:remember|note|keep\s+in\s+mind)(?:\s+that)?)"
)
_ADVERB = (
    r"(?:(?:really|absolutely|definitely|just|also|still|now|recently|usually|always|actually|currently|finally"
    r")\s+)*"
)
_REST = r"(?P<rest>\S.*?)"
_FLEETING = (
    r"questions?|problems?|issues?|ideas?|feeling|doubts?|look|to|been|no\s+idea|headache|meetings?|clue|choice|chance|minute|"
    r"moment|preference|the\s+following|just|never|already|eaten|taken|written|seen|gone|done|given|forgotten|broken|"
    r"chosen|driven|fallen|spoken|tried|used|worked|looked|read|heard|thought|made|found|lost|decided"
)
_OWN = r"(?P<what>[\w'’ -]{2,40}?)"
_DATE = rf"(?:{MONTH_BEGINS}[a-z]*\.?\s+\d|\d|{DAY}s?\b)"
_VALUE = rf"(?P<rest>(?:(?:on|in|at|for)\s+)?(?:the\s+)?(?:{_DATE}|(?-i:(?!I\b)[A-Z])|[€$£]|\S+@\S).*?)"
"""Values that are a number, a date, a name or an address: nothing temporary."""
_NO_NAME = (
    r"(?!(?-i:(?:on|in|at|not|no|the|an?|too|very|quite|really|also|still|already|my|hard|easy|difficult|different|wrong|long|"
    r"short|common|rare|\w{2,}(?<!fr)ed|\w{2,}ing)\b))"
)
"""What "my name is" has before what is said of a name, in lower case."""
_CALLED = (
    r"(?!(?:today|tonight|tomorrow|\w+day|later|again|soon|any\s?time|sometime|asap|instead|maybe|please|then|when|if|before|"
    r"after|as|immediately|first|whatever|names)\b)(?=(?-i:[^\W\d_a-z])|[\w'’-]+(?:\s+please)?$)"
)
"""What "call me" has before a name: no time. A name in lower case is one word, see `is_called`."""

_PRONOUN = (
    r"(?:it|this|that|these|those|he|she|him|her|you|they|them|who\w*|which\w*|what\w*|ones?|all|both|each|none|"
    r"others?|(?:any|every|no|some)(?:body|one|thing)|das|es|er|sie|alles)"
)
_NAMELESS = regex(rf"(?:.*(?<![\w'’-]))?{_PRONOUN}(?:\s+(?:of|for|that|wh\w+)\s.*)?$", re.DOTALL)
"""A subject that is a pronoun ("it", "the first one", "everyone of us"), its first letter in lower case: the IT budget
is none."""

_CALL = regex(rf"(?:{_BEGIN},?\s+|(?:just|please)\s+)*call\s+me\b", re.IGNORECASE)

RULES: tuple[Rule, ...] = (
    _rule(
        "preference",
        rf"i(?:['’]d|\s+would)\s+rather\s+(?!not\b)(?:have\s+|use\s+)?{_REST}",
        "{name} prefers {rest}",
        0.87,
    ),
    _rule(
        "preference",
        rf"i\s+{_ADVERB}(?P<verb>prefer|like|love|enjoy|adore|hate|dislike|avoid)\s+{_REST}",
        "{name} {verb}s {rest}",
        0.9,
    ),
    _rule(
        "preference",
        rf"i\s+{_ADVERB}(?:do\s+not|don['’]t|can(?:no|['’])?t\s+stand\s+to)\s+"
        rf"(?P<verb>like|eat|drink|want|enjoy|use|speak|own|drive|smoke|have(?=\s+an?\s+(?!(?:{_FLEETING}|lot|specific|particular|preferred|single|strong|set)\b)))"
        rf"\s+(?!.*\b(?:yet|handy|in\s+mind)$){_REST}",
        "{name} does not {verb} {rest}",
        0.9,
    ),
    _rule("preference", rf"i\s+can(?:not|['’]t)\s+(?P<verb>eat|drink)\s+{_REST}", "{name} cannot {verb} {rest}", 0.87),
    _rule("preference", rf"i\s+can(?:not|['’]t)\s+stand\s+(?!up\b){_REST}", "{name} dislikes {rest}", 0.87),
    _rule(
        "preference",
        rf"my\s+favou?rite\s+{_OWN}\s+(?P<be>is|are)\s+{_REST}",
        "{name}'s favourite {what} {be} {rest}",
        0.9,
    ),
    _rule(
        "fact",
        rf"(?:my\s+name(?:\s+is|['’]s)\s+{_NO_NAME}|"
        rf"(?:(?:just|please)\s+)*call\s+me\s+{_CALLED})(?P<rest>[^\W\d_][\w' -]{{1,40}}?)(?:\s+please)?",
        "{name}'s name is {rest}",
        0.9,
    ),
    _rule("fact", rf"i(?:['’]ve|\s+have)?\s+{_ADVERB}moved\s+{_REST}", "{name} moved {rest}", 0.9),
    _rule("fact", rf"i\s+{_ADVERB}(?P<verb>live|work|study|teach|volunteer)\s+{_REST}", "{name} {verb}s {rest}", 0.9),
    _rule("fact", rf"i(?:['’]m|\s+am)\s+{_ADVERB}based\s+{_REST}", "{name} lives {rest}", 0.9),
    _rule("fact", rf"i\s+{_ADVERB}(?P<verb>use|drive|speak|own|play)\s+{_REST}", "{name} {verb}s {rest}", 0.87),
    _rule(
        "fact",
        rf"i(?:\s+{_ADVERB}have|['’]ve\s+got)\s+(?!(?:an?\s+)?(?:{_FLEETING})\b){_REST}",
        "{name} has {rest}",
        0.8,
    ),
    _rule(
        "fact",
        rf"i\s+{_ADVERB}(?P<verb>started|joined|quit|left|resigned|switched|stopped|bought|sold|adopted|married|"
        rf"got(?=\s+(?:an?|two|three|my|our)\s))\s+"
        rf"(?!(?:in\s+\d{{4}}|(?:last|this)\s+\w+|yesterday|today)\W*$){_REST}",
        "{name} {verb} {rest}",
        0.87,
    ),
    _rule(
        "fact",
        r"i(?:['’]ve|\s+have)\s+been\s+(?P<verb>(?!(?:feeling|dealing|doing|going|getting|meaning\s+to\s+ask)\b)[a-z]+ing)\s+"
        rf"{_REST}",
        "{name} has been {verb} {rest}",
        0.87,
    ),
    _rule(
        "fact",
        rf"i\s+{_ADVERB}no\s+longer\s+(?P<verb>[a-z]+)\s+{_REST}",
        "{name} no longer {verb}s {rest}",
        0.9,
    ),
    _rule(
        "fact",
        r"i(?:['’]m|\s+am)\s+(?P<rest>(?:not\s+|no\s+longer\s+)?(?:allergic\s+to|from|"
        r"an?\s+(?!(?:bit|little|tad)\b(?!\s+of\b))\w|\d{1,3}\s+years|vegan\b|vegetarian\b|married\b|single\b|divorced\b|widowed\b|engaged(?=$|\s+to\b)|"
        r"retired\b|pregnant\b|left-handed\b|afraid\s+of|learning|working|living)\S*.*?)",
        "{name} is {rest}",
        0.9,
    ),
    _rule("fact", rf"i\s+was\s+born\s+{_REST}", "{name} was born {rest}", 0.9),
    _rule(
        "entity",
        rf"(?:my|our)\s+{_OWN}\s+(?:is|are)\s+(?:called|named)\s+{_REST}",
        "{name}'s {what} is called {rest}",
        0.9,
    ),
    _rule("entity", rf"(?:my|our)\s+{_OWN}(?:['’]s)?\s+name\s+is\s+{_REST}", "{name}'s {what} is called {rest}", 0.9),
    _rule(
        "entity",
        rf"(?:my|our)\s+(?P<what>birthday|address|email|phone(?:\s+number)?|budget|deadline|boss|manager|team|company|"
        rf"project|job|hometown|doctor|flight|appointment|wife|husband|partner)\s+(?P<be>is|are)\s+(?:now\s+)?{_REST}",
        "{name}'s {what} {be} {rest}",
        0.9,
    ),
    _rule("entity", rf"(?:my|our)\s+{_OWN}\s+(?P<be>is|are)\s+(?:now\s+)?{_VALUE}", "{name}'s {what} {be} {rest}", 0.9),
    _rule(
        "entity",
        rf"(?P<what>(?:the|our)\s+[\w'’ -]{{2,60}}?)\s+(?:is|are|will\s+be)\s+(?:now\s+)?{_VALUE}",
        "{what:c} is {rest}",
        0.87,
    ),
    _rule(
        "entity",
        rf"(?P<what>[\w-]+(?:\s+(?:of|for)\s+(?:the\s+)?[\w-]+(?:\s+[\w-]+)?)?)\s+is\s+(?:now\s+)?"
        rf"(?P<rest>on\s+(?:the\s+)?{_DATE}.*?)",
        "{what:c} is {rest}",
        0.87,
    ),
    _rule(
        "decision",
        rf"we(?:['’]re|\s+are)\s+{_ADVERB}going\s+with\s+(?!(?:my|our|his|her|their|them|you|him|friends)\b){_REST}",
        "It was decided to go with {rest}",
        0.87,
    ),
    _rule(
        "decision",
        rf"(?P<who>i|we)(?:['’]ve|\s+have)?\s+{_ADVERB}(?P<verb>decided|agreed|settled|chose|committed)\s+{_REST}",
        "{who} {verb} {rest}",
        0.9,
    ),
    _rule(
        "decision",
        rf"(?P<who>i|we)(?:['’]ll|\s+will|\s+are\s+going\s+to|['’]re\s+going\s+to|\s+am\s+going\s+to|['’]m\s+going\s+to)\s+"
        rf"(?P<verb>use|go\s+with|switch\s+to|move\s+to|stick\s+with|drop(?!\s+(?:by|off|in|out|you|it)\b))\s+{_REST}",
        "{who} decided to {verb} {rest}",
        0.87,
    ),
    _rule(
        "decision", rf"let['’]?s\s+(?P<verb>use|go\s+with|stick\s+with|switch\s+to)\s+{_REST}",
        "It was decided to {verb} {rest}", 0.8,
    ),
    _rule("preference", rf"ich\s+(?:mag|liebe)\s+{_REST}", "{name} mag {rest}", 0.87),
    _rule("preference", rf"ich\s+bevorzuge\s+{_REST}", "{name} bevorzugt {rest}", 0.87),
    _rule("fact", rf"ich\s+(?P<verb>wohne|lebe|arbeite|studiere)\s+{_REST}", "{name} {verb:t} {rest}", 0.9),
    _rule("fact", r"ich\s+bin\s+(?P<rest>allergisch\s+gegen\s+.+?|nach\s+\w+\s+gezogen)", "{name} ist {rest}", 0.9),
    _rule("fact", r"ich\s+hei(?:ß|ss)e\s+(?P<rest>[^\W\d_][\w' -]{1,40}?)", "{name} heißt {rest}", 0.9),
    _rule(
        "decision",
        r"wir\s+haben\s+(?:uns\s++)?+(?!.*\b(?:nichts?|nie|kein\w*)\b)(?P<rest>.+?\s(?:entschieden|beschlossen))",
        "Es wurde {rest}",
        0.87,
    ),
)  # fmt: skip

_NO_LONGER = regex(
    r"(?:(?<=['’]m )not|(?<=\bam )not|\b(?:do not|don['’]t)(?= (?:prefer|like|love|enjoy|adore|eat|drink|want|use|"
    r"live|work|study|teach|volunteer|drive|speak|own|play|have an?) )) (?P<rest>.+?) any ?(?:more|longer)$",
    re.IGNORECASE,
)
"""Denials with "anymore" ("I don't live in Rome anymore"), which are written as "no longer"."""
_ENDED = regex(r" (?:no longer|quit|left|resigned|stopped|sold) ")
"""Facts that something is over: another one may follow, as in "I left Acme, I work at Globex"."""
_PAST = regex(r"\bused\s+to\b", re.IGNORECASE)
_UNSURE = regex(
    r"\b(?:if|wish|would|maybe|perhaps|might|could|should|when\s+i\s+was|pretend|imagine|suppose|guess|"
    r"wenn|vielleicht|würde|könnte|falls)\b",
    re.IGNORECASE,
)
_SUPPOSED = regex(
    rf"^(?:{_BEGIN},?\s+)*(?:let['’]?s\s+(?:say|assume|suppose)|assum(?:e|ing)|hypothetically|say,|"
    r"in\s+(?:this|the|my)\s+(?:story|novel|scenario|game|role-?\s?play)|angenommen|stell(?:en)?\s+(?:dir|sie\s+sich)\s+vor|"
    r"nehmen\s+wir\s+an)\b"
    r"|\bin\s+(?:this|the|my)\s+(?:story|novel|scenario|game|role-?\s?play)$",
    re.IGNORECASE,
)
"""Hypothetical and fictional sentences. "For example, I ..." mostly states what is so."""
_OTHERS_SAY = regex(
    r"(?<!\bi\s)(?<!\bich\s)(?<!\byou\s)\b(?:said|says|told|tells|claims?|claimed|wrote|writes|sings|goes|thinks|thought|sent|"
    r"texted|sagt|sagte|meint|meinte|schrieb|schreibt|denkt|dachte|glaubt)(?:\s+(?:me|us|him|her|them|mir|uns))?"
    r"(?:\s+(?:this|that|das))?\s*[,:]$",
    re.IGNORECASE,
)
"""Text before what another person says, without quotation marks. "As you said" agrees with what follows."""
_JOKE = (
    r"(?:(?:just|only|(?:i['’]?m|i\s+am)(?:\s+(?:just|only))?)\s+(?:kidding|joking)|(?:das\s+)?war\s+nur\s+(?:ein\s+)?"
    r"(?:scherz|spa(?:ß|ss))|nur\s+(?:ein\s+)?(?:scherz|spa(?:ß|ss)))"
)
_JOKING = regex(rf"(?:^|[,;:–—-]\s*|\s){_JOKE}\b", re.IGNORECASE)
_TAKEN_BACK = regex(rf"^(?:(?:no|haha|lol|nein|well)\W+)*(?:{_JOKE}|kidding|not\s+really)\W*$", re.IGNORECASE)
"""A sentence that says that the one before it is not meant."""
_ASKS = regex(
    r"^(?:who|what|when|where|why|how|which|do|does|did|can|could|is|are|will|would|should|was|wer|wie|wo|was|warum)\b",
    re.IGNORECASE,
)
_QUOTED = regex(r"\"[^\"\n]{8,}\"|“[^“”\n]{8,}”|„[^„“”\n]{8,}[“”]|«[^«»\n]{8,}»|(?<!\w)'[^'\n]{8,}'(?!\w)")
_CLAUSE = regex(
    r",?\s+(?:but|because|since(?=\s+(?:i|it|we|they|he|she)\b)|although|though|so that|aber|weil|obwohl)\s+.*$"
    r"|;\s.*$"
    r"|,?\s+and\s+(?=(?:the|it|they|he|she|there|this|that|everything)\b).*$"
    r"|,?\s+so\s+please\b.*$"
    r"|,\s+my\s+(?:wife|husband|partner|girlfriend|boyfriend|sister|brother|mother|father|mom|mum|dad|son|daughter|boss|friend|"
    r"parents?|kids?|roommate|colleague)\b.*$"
    r"|,?\s+and\s+(?-i:[A-Z][a-z]+)\s+(?:is|has|likes|loves|hates|prefers|wants|works|lives|studies|drives|plays)\b.*$"
    r"|,?\s+und\s+(?:meine?\s+)?\w+\s+(?:mag|ist|hat|wohnt|lebt|arbeitet|liebt|heißt)\b.*$"
    r"|,\s+(?:so|please|which|who|tell|keep|just|then|right)\b.*$"
    r"|,\s+(?=[^,]*\b(?:is|are|was|were|will|gives?|has|have|i|me|we|us|they|them|it|you|he|she)\b).*$",
    re.IGNORECASE,
)
"""Text after a statement that does not belong to it."""
_ALONG = regex(r"(?<=[!:;])\s+|,\s+|\s+[–—-]+\s+|\s+but\s+(?=(?:now\s+)?(?:i|we|my|our)\b)", re.IGNORECASE)
"""Where a statement may begin after other text."""
_OPEN = regex(r"[!:]$")
_SINCE = regex(
    r"(?<!\band)(?<!\bsince)(?<!\buntil)(?<!\bby)(?<!\bback)\s+(?:then|from\s+(?:today|now)(?:\s+on)?)$",
    re.IGNORECASE,
)
_CHAT = regex(r"(?:[\s,]+(?:lol|lmao|rofl|ha(?:ha)+h?|hehe|tbh|imo|imho|ngl|btw))+$", re.IGNORECASE)
_AND = regex(r",?\s+(?:and|und)\s+(?=(?:now\s+)?(?:i|we|my|our|ich|wir)\b)", re.IGNORECASE)
_SHARED_ICH = regex(
    r"(?:,(?!\s+liebe\b)|,?\s+und)\s+(?=(?-i:wohne|lebe|arbeite|studiere|mag|liebe|bevorzuge|hei(?:ß|ss)e|bin|habe|spiele|fahre|"
    r"spreche|komme|möchte|will|brauche|suche|esse|trinke|nutze|verwende|lerne|gehe|mache|kann)\b)",
    re.IGNORECASE,
)
"""Where a second verb has the "ich" of the first one."""
_APOSTROPHE = regex(r"(?<=^i)(?=(?:m|ve)\s)|(?<=\bi\sdon)(?=t\b)|(?<=\bi\scan)(?=t\b)", re.IGNORECASE)
"""Where an apostrophe is missing."""
_ICH = regex(rf"(?:{_BEGIN},?\s+)*ich\b", re.IGNORECASE)
_SHARED_I = regex(
    r"(?:,|,?\s+(?:and|but))\s+(?=(?:(?:also|now|currently|usually|really|still)\s+)?(?:"
    r"(?P<sure>(?:am|want|need|would\s+like)\b)|live\s+(?:in|at|with|near|on)\b|work\s+(?:at|for|as)\b|study\s+at\b|"
    r"speak\s+(?-i:[A-Z])|(?:drive|own|use|have|play)\s+(?:an?|the|my|our|(?:two|three|four|five|\d+)(?=\s+\w))\b|"
    r"(?:love|prefer|enjoy|hate)\s+(?:\w+ing|an?|the|my|to)\b))",
    re.IGNORECASE,
)
"""Where a second verb in the present tense has the "I" of the first one; `sure` if it cannot be an infinitive."""
_I = regex(rf"(?:{_BEGIN},?\s+)*i\b", re.IGNORECASE)
_GOVERNS = regex(
    r"\b(?:to|can|could|will|would|must|may|let|helps?|makes?|made|see|saw|seen|watch\w*|hear\w*|had|got|fe(?:el|lt)|"
    r"notice\w*|who|that|which|when\w*|after|before|while|until|"
    r"where|how|we|you|they|he|she|people)\b|['’](?:ll|d)\b",
    re.IGNORECASE,
)
"""Words after which a verb may be an infinitive, or have another subject."""
_THEIRS = {
    "i'm": "they are", "i've": "they have", "i'll": "they will", "i'd": "they would", "i": "they", "me": "them",
    "my": "their", "mine": "theirs", "myself": "themselves", "am": "are", "our": "their", "us": "them", "we": "they",
}  # fmt: skip
_FIRST_PERSON = regex(
    r"\b(?:(?<!\bwar\s)i|i['’](?:m|ve|ll|d)|(?<!\bthe\s)us|(?<!\d)(?<!\d\s)am|me|my|mine|myself|our|we)\b(?!['’])",
    re.IGNORECASE,
)
_NAMES = frozenset(("US", "ME", "AM"))
"""What is a name or a time of day in capital letters: the US."""
_IHRE = {
    word + ending: "/".join(their + ending for their in theirs.split())
    for word, theirs in (("mein", "sein ihr"), ("unser", "ihr"))
    for ending in ("", "e", "em", "en", "er", "es")
} | {"mich": "sich", "mir": "sich", "uns": "sich"}
_ERSTE_PERSON = regex(rf"\b(?:{'|'.join(_IHRE)})\b", re.IGNORECASE)
_GERMAN = regex(r"\b(?:ich|wir)\b", re.IGNORECASE)
_TIMED = regex(
    r"\b(?:right now|at the moment|today|tonight|for lunch|this morning|gerade|heute)\b", re.IGNORECASE
)
_ASIDE = regex(r"(?:\s+[–—-]+|[–—-]+)\s+.*$")


def captured(text: str, speaker: str | None = None, most: int = 3) -> list[Candidate]:
    """Return the facts that patterns find in one message of a user, in its order, at most `most`.

    Left out are questions, quotations, jokes, fiction, what is said with an if or a maybe, what holds for the moment
    only, and all that `own_text` leaves out. The tag of a fact is the kind of its pattern.
    """
    candidates: dict[str, Candidate] = {}
    plain = _QUOTED.sub('""', own_text(text[:MOST_CHARS]))
    sentences = [_APOSTROPHE.sub("'", tidy(plain[start:stop])) for start, stop in spans(plain)]
    sentences = [part for said in sentences for part in (statements(said) if "?" in said else [said])]
    for said, following in zip_longest(sentences, sentences[1:], fillvalue=""):
        if _TAKEN_BACK.match(following):
            continue
        for candidate in _of_sentence(said, speaker):
            candidates.setdefault(candidate.text.casefold(), candidate)
    return list(candidates.values())[:most]


def _of_sentence(said: str, speaker: str | None) -> Iterator[Candidate]:
    if len(said) > LONGEST or said.endswith("?") or '""' in said or _ASKS.match(said):
        return
    if _SUPPOSED.search(said.rstrip(" .!…")) or _JOKING.search(said):
        return
    for part in _AND.split(_with_subjects(said)):
        begins = [0, *(cut.end() for cut in _ALONG.finditer(part))]
        for begin in begins:
            if candidate := _of_clause(part[:begin], part[begin:], speaker):
                yield candidate
                if not _ENDED.search(candidate.text):
                    break


def _with_subjects(said: str) -> str:
    """Return a sentence with the subject that its verbs share before each: "ich heiße Jo und wohne in Bonn"."""
    if _UNSURE.search(said):
        return said
    if _ICH.match(said):
        return _SHARED_ICH.sub(" und ich ", said)
    if not _I.match(said):
        return said
    return _SHARED_I.sub(
        lambda cut: " and I " if cut["sure"] or not _GOVERNS.search(said[: cut.start()]) else cut[0], said
    )


def _of_clause(before: str, said: str, speaker: str | None) -> Candidate | None:
    """Return the fact in a statement that follows `before`: an "if" there applies to it, unless a colon ends that."""
    clause = _SINCE.sub("", _ASIDE.sub("", _CLAUSE.sub("", said)).rstrip(" .!…"))
    unsure = clause if _OPEN.search(before.rstrip()) else before + clause
    if (
        _OTHERS_SAY.search(before.rstrip())
        or _UNSURE.search(unsure)
        or _PAST.search(clause)
        or _TIMED.search(clause)
    ):
        return None
    clause = _NO_LONGER.sub(r"no longer \g<rest>", _CHAT.sub("", clause))
    for rule in RULES:
        if match := rule.pattern.match(clause):
            if not understandable(match["rest"]) or (_CALL.match(clause) and not is_called(match["rest"])):
                return None
            if (what := match.groupdict().get("what")) and _NAMELESS.match(what[0].lower() + what[1:]):
                return None
            sentence = _sentence(rule, match, speaker, bool(_GERMAN.search(clause)))
            return Candidate(sentence, rule.confidence, (rule.kind,)) if len(terms(sentence)) > 1 else None
    return None


def _sentence(rule: Rule, match: re.Match[str], speaker: str | None, german: bool) -> str:
    name = speaker or ("Der Nutzer" if german else USER)
    groups = {key: value for key, value in match.groupdict().items() if value is not None}
    groups["rest"] = _in_third_person(groups["rest"], _IHRE if german else _THEIRS)
    who = groups.get("who", "").lower()
    if "verb" in groups:
        groups["verb"] = _conjugated(" ".join(groups["verb"].lower().split()), rule.sentence)
    sentence = rule.sentence.replace("{verb}s", "{verb}").replace("{verb:t}", "{verb}")
    if "{what:c}" in sentence:
        sentence = sentence.replace("{what:c}", "{what}")
        groups["what"] = groups["what"][0].upper() + groups["what"][1:]
    if who == "we":
        sentence = sentence.replace("{who} {verb}", "It was {verb}").replace(
            "{who} decided", "It was decided"
        )
        if groups.get("verb") == "chose":
            groups["verb"] = "decided on"
    return sentence.format(name=name, **(groups | {"who": name}))


def _conjugated(verb: str, sentence: str) -> str:
    if "{verb:t}" in sentence:
        return verb[:-1] + ("et" if verb[-2:-1] in ("t", "d") else "t")
    if "{verb}s" not in sentence:
        return verb
    if verb == "have":
        return "has"
    if verb.endswith("y") and verb[-2:-1] not in ("", *"aeiou"):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "o")) else f"{verb}s"


def _in_third_person(rest: str, pronouns: Mapping[str, str]) -> str:
    def replaced(word: re.Match[str]) -> str:
        return word[0] if word[0] in _NAMES else pronouns.get(word[0].lower().replace("’", "'"), word[0])

    return (_FIRST_PERSON if pronouns is _THEIRS else _ERSTE_PERSON).sub(replaced, rest)
