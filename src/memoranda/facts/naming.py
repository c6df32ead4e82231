"""Names, told from words that say how or where someone is. English rules, no I/O.

A word in lower case is taken for a name only if it is a common one: a fact that is lost because "thai" passed for a
name is worse than two names that stay.
"""

from __future__ import annotations

import re

from memoranda.text.regex import regex

_COMMON = frozenset(
    """
    aaron abby abdul abigail achim ada adam adrian agnes ahmad ahmed aisha alan albert alejandro alessandro alex
    alexa alexander alexandra alexis alfred ali alice alicia alina alison amanda amelia amir amy ana andre andrea
    andreas andrew andy angela anita anja ann anna anne annette annie anton antonia antonio arthur astrid ava axel
    barbara beatrice ben benjamin bernd beth bettina bianca bill bob boris brandon brian brigitte bruno caitlin
    camila carina carl carla carlos carmen carol caroline catherine cecilia charles charlie charlotte chloe chris
    christa christian christina christine christoph christopher cindy claire clara claudia claus clemens connor
    cornelia cristina daisy dan daniel daniela danny dave david deborah dennis derek diana diane diego dieter dirk
    dmitri dominik donna dora doris dorothy dylan eddie edgar edith edward elena eli elias elijah elisa elisabeth
    elizabeth ella ellen elsa emil emily emma enrique eric erik erika ernst esther ethan eva evan eve fabian fatima
    felix fernando fiona florian francesca francesco francis frank franz fred freddy frederik frida friedrich
    gabriel gabriele gary georg george gerald gerd gina giovanni gisela gloria greg gregor greta gudrun guido gunter
    hanna hannah hans harald harry hassan heather heidi heike heiko heinz helen helena helga helmut henry herbert
    hugo ian ibrahim ida igor ilse ines inga ingrid irene iris isaac isabel isabella ivan jack jackie jacob jake
    jakob james jamie jan jana jane janet janine jason javier jean jeff jennifer jenny jens jeremy jessica jill jim
    jimmy joachim joan joanna jochen joe joel joerg johan johann johanna johannes john johnny jonas jonathan jordan
    jorge jose joseph joshua juan juanita judith judy julia julian juliane julie juliet jutta kai karen karin karl
    karsten kate katharina katherine kathrin kathy katie katja katrin keith kelly ken kenneth kevin kim kirsten
    klara klaus konrad kristin kristina kurt kyle lara larry lars laura lauren lea leah lena leo leon leonard leonie
    lewis liam lily linda lisa logan lois lotte louis louise luca lucas lucia lucy luigi luis luisa lukas luke lydia
    maggie magnus malte manfred manuel mara marcel marco marcus margaret maria marie marina mario marion mark markus
    marlene martha martin martina mary mateo mathias matthew matthias max maximilian maya megan mehmet melanie
    melissa mia michael michaela michelle miguel mike mila milan miriam mohamed mohammad mohammed molly monica
    monika moritz muhammad nadia nadine nancy naomi natalia natalie nathan neil nick nicola nicolas nicole niklas
    nils nina noah nora norbert norman oleg olga oliver olivia oscar oskar otto owen pablo pamela patricia patrick
    paul paula paulina pedro peggy peter petra philip philipp pia pierre rachel rainer ralf ralph ramon raphael
    rebecca regina renate ricardo richard rita rob robert roberto robin rodrigo roger roland rolf roman ron ronald
    rosa rosie rudi rudolf russell ruth ryan sabine sabrina sally sam samantha samira samuel sandra santiago sara
    sarah scott sean sebastian sergio sharon silke silvia simon simone sofia sofie sonia sonja sophia sophie stefan
    stefanie stella stephan stephanie stephen steve steven susan susanne suzanne sven svenja sylvia tamara tanja
    tanya tara ted teresa theo theresa thomas thorsten tim timo timothy tina tobias todd tom tomas tommy tony tracy
    udo ulrich ulrike ursula ute uwe valentina valerie vanessa vera verena veronica victor victoria viktor vincent
    volker walter wendy werner wilhelm will william wolfgang xavier yannick yasmin yusuf yvonne zoe
    """.split()  # noqa: SIM905 - prose reads better than hundreds of quoted words
)
_TITLE = regex(r"(?:dr|mr|mrs|ms|prof)\.?\s+[^\W\d_]")
_PEOPLES = (
    r"african|albanian|algerian|american|arab|argentinian|asian|australian|austrian|belgian|brazilian|british|buddhist|"
    r"bulgarian|canadian|catholic|chilean|chinese|colombian|croatian|cuban|czech|danish|dutch|egyptian|english|european|"
    r"filipino|finnish|french|german|greek|hindu|hungarian|indian|indonesian|iranian|iraqi|irish|israeli|italian|"
    r"japanese|jewish|kenyan|korean|lebanese|malaysian|mexican|moroccan|muslim|nigerian|norwegian|pakistani|persian|peruvian|"
    r"polish|portuguese|protestant|romanian|russian|scottish|serbian|slovak|slovenian|spanish|swedish|swiss|syrian|"
    r"taiwanese|thai|tunisian|turkish|ukrainian|vietnamese|welsh"
)
_OF_A_PEOPLE = regex(rf"(?:{_PEOPLES})(?=$|[.!,]|\s+(?![A-Z]))", re.IGNORECASE)
_INITIALS = frozenset("aj al bj bo cj dj ed jd jj jo jp kj mj oj pj rj tj".split())  # noqa: SIM905
_MOST_WORDS = 3
"""Words of a name in lower case."""


def is_name(value: str) -> bool:
    """Return True if `value` is a person's name, with or without a capital letter ("Tom", "tom maier"), and not what is
    said of someone ("a teacher", "pregnant", "German", "34")."""
    if value[0].isdigit():
        return False
    if not value[0].islower():
        return not _OF_A_PEOPLE.match(value)
    words = value.lower().rstrip(".!").split()
    return (words[0] in _COMMON and len(words) <= _MOST_WORDS) or _TITLE.match(value) is not None


def is_called(word: str) -> bool:
    """Return True if a person who says "call me `word`" means a name."""
    return not word[0].islower() or word.lower() in _COMMON | _INITIALS
