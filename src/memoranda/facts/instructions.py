"""Standing instructions of users, and their withdrawal. English and German rules; no I/O."""

from __future__ import annotations

import re

from memoranda.facts.parsing import Candidate, tidy
from memoranda.text.instructions import CONDITION, TAG, worded
from memoranda.text.regex import regex
from memoranda.text.sentences import spans
from memoranda.text.statements import own_text
from memoranda.text.terms import terms

CONFIDENCE = 0.8
LONGEST = 240
"""The most characters of an instruction; a longer text is a task."""
MOST = 3
"""Instructions of one message."""
_LEAD = r"(?:(?:and|but|so|ok|okay|also|oh|hey|hi|thanks|great|please|just|btw|by the way|bitte|und|aber)[,!]?\s+)*"
_STANDING = (
    r"(?:from\s+now\s+on|going\s+forward|from\s+here\s+on|in\s+(?:the\s+)?future|for\s+(?:all\s+)?future\s+\w+|"
    r"in\s+(?:all|every|each)\s+(?:of\s+)?(?:your\s+)?(?:answers?|repl(?:y|ies)|responses?)|ab\s+(?:jetzt|sofort)|von\s+nun\s+an|in\s+zukunft|künftig)"
)
_VERB = (
    r"(?:add|address|answer|apologi[sz]e|ask|assume|avoid|be|begin|call|check|cite|convert|end|explain|format|give|"
    r"greet|include|keep|list|make|mention|offer|omit|prefer|quote|recommend|refer|remind|reply|respond|round|say|show|"
    r"sign|skip|speak|spell|start|stick\s+to|stop|suggest|summari[sz]e|talk|tell|translate|treat|use|warn|write)"
)
_DOING = (
    r"(?:add|address|answer|apologi[sz]|ask|assum|begin|call|check|cit|convert|end|explain|formatt|giv|greet|includ|keep|"
    r"list|mak|mention|offer|quot|recommend|refer|remind|repeat|reply|respond|say|send|show|sign|speak|start|suggest|"
    r"summari[sz]|talk|tell|translat|treat|us|warn|writ)ing"
)
_WISH = r"i(?:['’]d\s+like|\s+(?:want|need|expect|would\s+like))\s+you\s+to\s+"
_RULE = rf"(?:(?:always|never|only|do\s+not(?:\s+ever)?|don['’]t(?:\s+ever)?)\s+)?{_VERB}\b\s*.*"
_PATTERNS = tuple(
    regex(rf"^{_LEAD}{pattern}$", re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"(?P<rule>(?:always|never)\s+(?:ever\s+)?{_VERB}\b\s*.+)",
        r"(?P<rule>never\s+(?:ever\s+)?(?:apologi[sz]e|summari[sz]e|translate))",
        rf"(?P<rule>(?:do\s+not|don['’]t)\s+ever\s+{_VERB}\b\s*.+)",
        rf"{_STANDING}[,:]?\s+(?:please\s+)?(?:{_WISH}|you\s+(?:should|must|have\s+to)\s+)?(?P<rule>{_RULE})",
        rf"(?:{_WISH}|you\s+(?:should|must|have\s+to)\s+)(?P<rule>{_RULE})\s+{_STANDING}",
        rf"(?P<rule>{_RULE})\s+{_STANDING}",
        r"(?:please\s+)?(?:remember|make\s+sure|be\s+sure)\s+(?:to\s+|that\s+you\s+|you\s+)?(?P<rule>(?:always|never)\s+.+)",
        r"(?:please\s+)?remember\s+to\s+(?P<always>\w+\s+.+\s+(?:every\s*time|each\s+time|in\s+every\s+.+))",
        r"i(?:['’]d\s+(?:like|prefer)|\s+(?:want|need|prefer|expect|would\s+like|would\s+prefer))\s+(?:for\s+)?you\s+to\s+"
        r"(?P<rule>(?:always|never)\s+.+)",
        r"you\s+(?:should|must|have\s+to|need\s+to|are\s+to)\s+(?P<rule>(?:always|never)\s+.+)",
        rf"(?P<rule>(?:whenever|every\s+time|each\s+time)\s+(?:i|we|you)\s+[^,]+,\s+(?:please\s+)?{_RULE})",
        rf"(?P<rule>(?:when|if)\s+(?:i\s+(?:ask|mention|talk|say|write|send|share)|you\s+(?:answer|reply|write|explain|give|"
        rf"mention|use|suggest|recommend|talk))\b[^,]*,\s+(?:please\s+)?(?:always|never)\s+{_VERB}\b\s*.+)",
        r"(?P<rule>(?:antworte|schreib|sprich|verwende|nutze|nenne|gib|benutze|duze|sieze)e?\s+(?:mir\s+|mich\s+)?(?:bitte\s+)?"
        rf"(?:immer|nie(?:mals)?|nur\s+noch|{_STANDING})\b.+)",
        rf"{_STANDING}[,:]?\s+(?P<rule>(?:antworte|schreib|sprich|verwende|nutze|nenne|gib|benutze)\b.+)",
    )
)
_STYLE = (
    r"(?:emojis?|emoticons|smileys|bullet\s+points|bullets|lists|markdown|tables|headings|comments|jokes|puns|disclaimers|"
    r"apologies|abbreviations|jargon|small\s+talk|exclamation\s+marks|follow-up\s+questions|semicolons|hashtags|links|"
    r"aufzählungen|tabellen|witze|abkürzungen)"
)
_LANGUAGE = "(?:english|german|french|spanish|italian|portuguese|dutch|polish|turkish|russian)"
_SPRACHE = "(?:deutsch|englisch|französisch|spanisch|italienisch)"
_ANSWERS = r"(?:(?:your\s+|all\s+)?(?:answers|replies|responses|explanations))"


def _from_now_on(wish: str) -> tuple[str, str]:
    """Return patterns of a wish before and after the words that make it a standing one."""
    return (
        rf"{_STANDING}[,:]?\s+(?:please\s+|bitte\s+)?{wish}",
        rf"(?:please\s+|bitte\s+)?{wish},?\s+{_STANDING}",
    )


_WISHES = tuple(
    (regex(rf"^{_LEAD}{pattern}$", re.IGNORECASE), rule)
    for patterns, rule in (
        (
            (
                *_from_now_on(rf"no\s+(?:more\s+)?(?P<what>{_STYLE})"),
                r"no\s+more\s+(?P<what>emojis|emoticons|smileys|bullet\s+points|jokes|puns|disclaimers|exclamation\s+marks)",
                rf"i\s+(?:do\s+not|don['’]t)\s+(?:want|need)\s+(?:to\s+see\s+)?(?:any\s+)?(?P<what>{_STYLE})\s+in\s+{_ANSWERS}",
            ),
            "never use {what}",
        ),
        (
            (
                rf"keine?\s+(?P<what>{_STYLE})\s+mehr",
                *_from_now_on(rf"keine?\s+(?P<what>{_STYLE})(?:\s+mehr)?"),
            ),
            "verwende nie {what}",
        ),
        (
            _from_now_on(
                r"keep\s+(?:it|things|everything)\s+(?P<what>short|brief|concise|simple|formal|casual|friendly)"
            ),
            "always keep answers {what}",
        ),
        (
            _from_now_on(rf"(?P<what>(?:much\s+)?(?:short|long|brief|simpl)er)\s+{_ANSWERS}"),
            "always give {what} answers",
        ),
        (_from_now_on(r"(?P<what>duze|sieze)\s+mich"), "{what} mich immer"),
        (_from_now_on(r"be\s+(?P<what>(?:more\s+|less\s+)?\w+)"), "always be {what}"),
        (
            (
                *_from_now_on(rf"only\s+(?:in\s+)?(?P<what>{_LANGUAGE})"),
                *_from_now_on(rf"(?:in\s+)?(?P<what>{_LANGUAGE})\s+only"),
            ),
            "always answer in {what}",
        ),
        (
            (
                *_from_now_on(r"only\s+(?P<what>metric|imperial)\s+units"),
                *_from_now_on(r"(?P<what>metric|imperial)\s+units\s+only"),
            ),
            "always use {what} units",
        ),
        (
            _from_now_on(rf"(?:nur\s+)?(?:noch\s+)?auf\s+(?P<what>{_SPRACHE})(?:\s+antworten)?"),
            "antworte immer auf {what}",
        ),
        (
            _from_now_on(r"(?P<what>kürzer|kurz|knapp|knapper|ausführlicher|einfacher)\s+antworten"),
            "antworte immer {what}",
        ),
    )
    for pattern in patterns
)
"""Wishes without a verb that says what to do, and the rules that they mean."""
_MAY_WISH = regex(rf"{_STANDING}|\bno\s+more\b|\b(?:want|need|mehr)\b", re.IGNORECASE)
"""Words of which each wish has one, and few other sentences."""
_ASKED = regex(
    rf"^{_LEAD}(?:can|could|would|will)\s+you\s+(?:please\s+)?(?P<rule>{_VERB}\b.+\s{_STANDING})$",
    re.IGNORECASE,
)
"""A rule as a question."""
_WITHDRAWALS = tuple(
    regex(rf"^{_LEAD}{pattern}$", re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"(?:you\s+)?(?:can|may)\s+stop\s+(?P<rest>{_DOING}\b.+)",
        rf"(?P<stop>stop)\s+(?P<rest>{_DOING}\b.+)",
        r"(?P<stop>stop)\s+(?:it\s+)?with\s+(?:all\s+)?(?:the|your|these|those)\s+(?P<thing>.+)",
        r"(?:you\s+)?(?:can|may)\s+stop\s+with\s+(?:the|your|these|those)\s+(?P<thing>.+)",
        r"(?P<stop>(?:i\s+)?(?:do\s+not|don['’]t)\s+(?:want|need)\s+you\s+to|do\s+not|don['’]t)\s+"
        rf"(?P<rest>{_VERB}\b.+?)\s+any\s?(?:more|longer)",
        r"(?:you\s+)?(?:no\s+longer\s+(?:have|need)\s+to|don['’]t\s+(?:have|need)\s+to|do\s+not\s+(?:have|need)\s+to|needn['’]t)\s+"
        r"(?P<rest>.+?)(?:\s+any\s?(?:more|longer)|\s+from\s+now\s+on)?",
        r"(?:you\s+)?(?:can|may)\s+(?P<again>\w+\s+.+?)\s+again",
        r"(?:forget|ignore|drop|cancel)\s+(?:the|my|that)\s+(?:rule|instruction|request|wish)\s+(?:about|on|to|of|that|with)\s+"
        rf"(?:(?P<rest>(?:\w+ing|{_VERB})\b.+)|(?P<thing>.+))",
        r"du\s+(?:musst|brauchst)\s+(?:nicht\s+mehr|nicht\s+länger)\s+(?P<rest>.+)",
    )
)
_POLITE = regex(r"^please\s+|(?:,?\s+(?:please|pls|plz|thanks|thank\s+you|thx|bitte|danke))+$", re.IGNORECASE)
_NO_RULE = regex(
    r"^(?:always|never|do\s+not|don['’]t)\s+(?:ever\s+)?(?:mind\b|say\s+never\b|be\s+(?:afraid|sorry|late)\b|tell\s+(?:him|her|them|a\s+lie)\b|"
    r"give\s+(?:up|in)\b|give\s+a\s+\w+$|make\s+the\s+same\b|make\s+me\s+laugh\b|keep\s+that\b)"
    r"|^(?:stop|start|be|say|tell|ask)$",
    re.IGNORECASE,
)
_EVERY_TIME = regex(
    r"\b(?:always|never|only|not|don['’]t|no\s+longer|immer|nie\w*|nur)\b|^(?:antworte|schreib|sprich|verwende|nutze|nenne|gib|benutze)",
    re.IGNORECASE,
)
"""Phrases that apply every time, or are German."""


def instructions(text: str, speaker: str | None) -> list[Candidate]:
    """Return the standing instructions in one message of a user, and what it withdraws of earlier ones, in its order.

    An instruction is written as `Ada's standing instruction: always use metric units`, in the words of the message.
    What is asked for once ("use metric units here") is none, nor is what stands in code, in quotation marks, or behind
    a line that ends with a colon.
    """
    candidates: dict[str, Candidate] = {}
    own = own_text(text[:8_000])
    for start, stop in spans(own):
        said = tidy(own[start:stop]).rstrip(" .!…")
        if said.endswith("?"):
            asked = _ASKED.match(said.rstrip(" ?"))
            said = "" if asked is None else asked["rule"]
        if not said or len(said) > LONGEST:
            continue
        candidate = _instruction(said, speaker) or _withdrawal(said, speaker)
        if candidate is not None:
            candidates.setdefault(candidate.text.casefold(), candidate)
    return list(candidates.values())[:MOST]


def _instruction(said: str, speaker: str | None) -> Candidate | None:
    if _MAY_WISH.search(said):
        polite = _POLITE.sub("", said)
        for pattern, rule in _WISHES:
            if wish := pattern.match(polite):
                return Candidate(worded(rule.format(what=wish["what"]), speaker), CONFIDENCE, (TAG,))
    for pattern in _PATTERNS:
        if match := pattern.match(said):
            groups = match.groupdict()
            rule = groups.get("rule") or f"always {groups['always']}"
            rule = _POLITE.sub("", rule.strip())
            rule = re.sub(r"^stop\s+(?=\w+ing\b)", "no longer ", rule, flags=re.IGNORECASE)
            plain = CONDITION.sub("", rule)
            if _NO_RULE.search(plain) or len(terms(plain)) < 2:
                return None
            if plain == rule and not _EVERY_TIME.search(rule):
                rule = f"always {rule[0].lower()}{rule[1:]}"
            return Candidate(worded(rule, speaker), CONFIDENCE, (TAG,))
    return None


def _withdrawal(said: str, speaker: str | None) -> Candidate | None:
    for pattern in _WITHDRAWALS:
        if match := pattern.match(said):
            groups = match.groupdict()
            rest = groups.get("rest") or (f"using {groups['thing']}" if groups.get("thing") else None)
            rest = rest and _POLITE.sub("", rest)
            rule = f"no longer {rest}" if rest else str(groups["again"])
            short = rest and (groups.get("stop") or groups.get("thing")) and len(terms(rest)) < 2
            if short:
                return None
            return Candidate(worded(rule, speaker), CONFIDENCE, (TAG,))
    return None
