"""Names, told from words that say how or where someone is. English rules, no I/O."""

from __future__ import annotations

import re

from memoranda.text.regex import regex

_PEOPLES = (
    r"african|american|arab|asian|australian|austrian|brazilian|british|buddhist|canadian|catholic|chinese|danish|dutch|"
    r"english|european|finnish|french|german|greek|hindu|indian|irish|italian|japanese|jewish|korean|mexican|muslim|"
    r"norwegian|polish|portuguese|protestant|russian|scottish|spanish|swedish|swiss|turkish|ukrainian|vietnamese|welsh"
)
_OF_A_PEOPLE = regex(rf"(?:{_PEOPLES})\b", re.IGNORECASE)
DESCRIPTION = (
    r"(?:an?|the|another|some|any|this|that|these|those|their|his|her|its|my|our|your|not|no|now|so|too|very|really|quite|"
    r"pretty|rather|still|already|just|only|also|always|never|usually|often|currently|almost|both|more|less|most|well|"
    r"in|on|at|out|off|over|up|down|from|of|for|to|by|with|under|between|near|back|away|home|here|there|abroad|asleep|"
    r"alive|alone|awake|aware|about|around|due|one|someone|somebody|anyone|nobody|who|what)\b"
    r"|(?:(?!\w*(?:fri?ed|hamm?ed|ahmed|jared)\b)\w{3,}(?:ing|ful|ous|ive|able|ible|ish|less|ed)|"
    r"angry|bad|big|blind|blonde?|boss|broke|brown|busy|calm|clever|close|cold|cool|cranky|crazy|cruel|cute|dead|deaf|"
    r"different|difficult|drunk|early|easy|elderly|excellent|fair|fat|fine|free|friendly|fun|funny|gay|gone|good|great|"
    r"grumpy|happy|hard|healthy|heavy|honest|hot|hungry|ill|kind|late|lazy|left|lesbian|lonely|loud|lovely|lucky|mad|"
    r"mean|moody|new|nice|okay|ok|old|older|patient|perfect|picky|poor|pregnant|proud|queer|quiet|ready|right|rude|"
    r"sad|safe|sane|sceptical|shy|sick|silly|single|skeptical|slow|smart|sober|sorry|strict|strong|super|sure|sweet|"
    rf"tall|thin|tough|ugly|unwell|upset|vegan|vegetarian|weak|weird|wrong|young|younger|{_PEOPLES})(?=$|[\s,.!-])"
)
"""An expression for the beginning of what is said of someone, in lower case."""
_DESCRIBES = regex(DESCRIPTION)
_MOST_WORDS = 3
"""Words of a name in lower case."""


def is_name(value: str) -> bool:
    """Return True if `value` is a name or a number, with or without a capital letter ("Tom", "tom maier", "lh 123"),
    and not what is said of someone ("a teacher", "pregnant", "German", "on vacation")."""
    if not value[0].islower():
        return not _OF_A_PEOPLE.match(value)
    return len(value.split()) <= _MOST_WORDS and not _DESCRIBES.match(value)
