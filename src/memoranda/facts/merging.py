"""The relation of a new fact to a stored one: the same, nearly the same, refining, contradicting, or other. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from memoranda.facts.claims import LONGEST, about_same, conflicting, redecided
from memoranda.facts.denials import ENDS, flipped
from memoranda.facts.grounding import COMMON
from memoranda.facts.partings import parted, stopped
from memoranda.memories.duplicates import contradict, jaccard
from memoranda.text.calendar import DAYS, MONTH_BEGINS, MONTHS
from memoranda.text.folding import with_apostrophes
from memoranda.text.instructions import of_different_people, opposed, rechosen, rule_of, with_common_verb
from memoranda.text.memo import kept
from memoranda.text.numbers import in_digits
from memoranda.text.regex import regex
from memoranda.text.terms import terms

SHORT = 8
"""Terms of two facts together up to which a term of its own on either side makes them distinct."""
_ALIKE = {
    term: group.split()[0]
    for group in ("like love enjoy ador prefer fond", "live resid", "work employ", "use util", "want wish")
    for term in group.split()
}
"""Verbs that say the same, by stem."""
_DATE_WORDS = (*MONTHS, *DAYS)
_NUMBER = regex(
    rf"(?<![^\W_])\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th)?"
    rf"|\b(?:{'|'.join(_DATE_WORDS)}|{MONTH_BEGINS}(?=\.?\s+\d))\b",
    re.IGNORECASE,
)
"""Numbers that are no part of a word, and the words of dates: what may change in a fact while it stays the same."""
_DATED = regex(r"[a-z]+|\d+(?:st|nd|rd|th)|\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2,4}")
_EVENT = regex(
    r"^\S+(?:\s\S+)?\s(?:visited|went|travell?ed|flew|saw|met|ran|attended|watched|read|bought|finished|completed|climbed|hiked)\b",
    re.IGNORECASE,
)
"""Facts about something that happened, which may happen again on another day."""
_ONE_OF_SEVERAL = regex(r"^\S+(?:\s\S+)?\s(?:has|have|had|hat)\s(?:an?|another|eine?n?)\s", re.IGNORECASE)
"""An exam on Monday, and one on Friday."""
_LABEL = regex(rf"(?:#|\b(?!(?i:{'|'.join(_DATE_WORDS)})\b)[A-Z]\w+\s+(?:no\.?\s*)?)\d+", re.ASCII)
"""A number that is part of a name: Room 12, Sprint 3, #7."""
_OWNED = regex(r"^(?:the\s+)?[\w.-]+(?:\s[A-Z][\w.-]*)?['’]s?\s+([\w-]+(?:\s[\w-]+)?)", re.ASCII)
_DENIALS = frozenset(("not", "no", "never", "without", "nicht", "nie", "niemals", "ohne"))
_WORD = regex(r"[^\W\d_][\w'-]+")


class Relation(StrEnum):
    """The relation of one fact to another."""

    SAME = "same"
    NEAR = "near"
    REFINES = "refines"
    CONTRADICTS = "contradicts"
    OTHER = "other"


class Bounds(msgspec.Struct, frozen=True):
    """The cosine and the Jaccard index from which on two facts are nearly the same."""

    cosine: float = 0.95
    jaccard: float = 0.6


NEARLY = Bounds()


def relation(new: str, old: str, cosine: float | None = None, bounds: Bounds = NEARLY) -> Relation:
    """Return the relation of `new` to `old`, two facts of one scope; `cosine` is that of their vectors, None if
    unknown.

    In this order: one text; two standing instructions (see `_of_rules`); a value of one attribute that became another
    (see `claims`), something sold, cancelled or left, a like that became a dislike, a denial, a decision that became
    another, a number or date that changed while the rest stayed: contradicting. All of the old one and more, with the
    same beginning: refining. Near by cosine or Jaccard, or contained in the old one, without a difference in numbers,
    names, dates or negation: nearly the same; but two short facts with a term of their own each (green tea, black tea)
    are distinct, however much they share.
    """
    if _plain(new) == _plain(old):
        return Relation.SAME
    new, old = _written(new), _written(old)
    if (rule := rule_of(new)) is not None and (other := rule_of(old)) is not None:
        return Relation.OTHER if of_different_people(new, old) else _of_rules(rule, other)
    if max(len(new), len(old)) <= LONGEST and _contradicts(new, old, bounds):
        return Relation.CONTRADICTS
    one_is_over = bool(ENDS.search(new)) != bool(ENDS.search(old))
    first, second = set(terms(new)), set(terms(old))
    if not first or not second or one_is_over or _other_owner(new, old):
        return Relation.OTHER
    if _extends(new, old) and second < first:
        return Relation.REFINES
    differ = contradict(new, old)
    if _extends(old, new) and first <= second and not (differ and _numbers(new) - _numbers(old)):
        return Relation.NEAR
    alike = (cosine is not None and cosine >= bounds.cosine) or _near_by_words(new, old, bounds)
    return Relation.NEAR if alike and not differ else Relation.OTHER


@kept(1_024)
def _written(text: str) -> str:
    """Return the text as facts are compared: with one apostrophe, and numbers in digits."""
    return in_digits(with_apostrophes(text))


def _contradicts(new: str, old: str, bounds: Bounds) -> bool:
    return (
        conflicting(new, old)
        or conflicting(old, new)
        or redecided(new, old)
        or parted(new, old)
        or stopped(new, old)
        or stopped(old, new)
        or (flipped(new, old) and not _other_owner(new, old))
        or _renumbered(new, old, bounds)
    )


def _of_rules(new: str, old: str) -> Relation:
    """Return the relation of one standing instruction to another: contradicting if it denies it, by the same verb or
    one that asks for the same, or chooses another of the same kind (answer in German, answer in English)."""
    first, second = with_common_verb(new), with_common_verb(old)
    if flipped(first, second) or opposed(first, second) or rechosen(new, old):
        return Relation.CONTRADICTS
    return Relation.NEAR if set(terms(new)) == set(terms(old)) else Relation.OTHER


def equivalent(first: str, second: str, cosine: float | None, bounds: Bounds) -> bool:
    """Return True if one of two facts says what the other says, or the same more exactly."""
    near = (Relation.SAME, Relation.NEAR, Relation.REFINES)
    return relation(first, second, cosine, bounds) in near or relation(second, first, cosine, bounds) in near


def _contents(left: str, right: str) -> tuple[set[str], set[str]]:
    """Return the content terms of two facts, without their common subject."""
    first, second = terms(left), terms(right)
    subject = set(first[:1]) & set(second[:1])
    return set(first) - subject - COMMON, set(second) - subject - COMMON


def supported(verdict: Relation, new: str, old: str) -> bool:
    """Return True if the terms of two facts support the verdict of a model on their relation.

    "The same" and "refining" merge two facts, so half of the content terms of the old fact (for "the same": of the
    shorter one) must be in both, not counting the subject and words that every fact has; and what is "the same" has no
    other number, name or negation. Other verdicts are left to the model.
    """
    if verdict not in (Relation.NEAR, Relation.REFINES):
        return True
    mine, theirs = _contents(new, old)
    needed = theirs if verdict is Relation.REFINES else min(mine, theirs, key=len)
    shared = len(mine & theirs)
    if not shared or shared < 0.5 * len(needed):
        return False
    return verdict is Relation.REFINES or not contradict(new, old)


def _near_by_words(new: str, old: str, bounds: Bounds) -> bool:
    first, second = ({_ALIKE.get(term, term) for term in terms(text)} for text in (new, old))
    union = first | second
    if len(first & second) < bounds.jaccard * len(union):
        return False
    return len(union) > SHORT or first <= second or second <= first


@kept(1_024)
def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" .!")


@kept(1_024)
def _numbers(text: str) -> frozenset[str]:
    return frozenset(number.lower() for number in _NUMBER.findall(text))


def _renumbered(new: str, old: str, bounds: Bounds) -> bool:
    """Return True if two texts say the same with other numbers or dates. Numbers that are names make them two things,
    and so do a date and another number."""
    mine, theirs = _numbers(new), _numbers(old)
    if not mine - theirs or not theirs - mine or set(_LABEL.findall(new)) != set(_LABEL.findall(old)):
        return False
    dated = any(map(_DATED.fullmatch, mine))
    if dated != any(map(_DATED.fullmatch, theirs)) or (dated and _ONE_OF_SEVERAL.match(new)):
        return False
    first, second = _NUMBER.sub(" ", new), _NUMBER.sub(" ", old)
    return (
        jaccard(first, second) >= bounds.jaccard
        and (set(terms(first)) <= set(terms(second)) or set(terms(second)) <= set(terms(first)))
        and not _EVENT.match(new)
        and not contradict(first, second)
        and not _other_owner(new, old)
        and about_same(new, old)
    )


def _other_owner(new: str, old: str) -> bool:
    """Return True if one is about something that belongs to the other's subject: Mara, and Mara's sister."""
    mine, theirs = (_OWNED.match(text) for text in (new, old))
    if (mine is None) != (theirs is None):
        return True
    return mine is not None and theirs is not None and not set(terms(mine[1])) & set(terms(theirs[1]))


def _extends(longer: str, shorter: str) -> bool:
    """Return True if one text has all words of the other, begins as it does, and is not much longer."""
    first, second = terms(longer), terms(shorter)
    return (
        len(second) > 1
        and first[:2] == second[:2]
        and set(second) <= set(first)
        and _numbers(shorter) <= _numbers(longer)
        and len(first) <= max(6, 3 * len(second))
        and not contradict(" ".join(_negations(longer)), " ".join(_negations(shorter)))
    )


def _negations(text: str) -> list[str]:
    return [
        word
        for word in _WORD.findall(text.lower())
        if word in _DENIALS or "n't" in word or word.startswith("kein")
    ]


class Known(msgspec.Struct, frozen=True):
    """A stored fact, as far as the place of a new one among its versions depends on it. `at` is when it begins to be
    valid, `ended` when it ends (microseconds; None: not); `mended` is True if it was undone by hand, and `live` if it
    is looked up: neither superseded nor undone."""

    seq: int
    at: int
    ended: int | None
    live: bool
    relation: Relation
    mended: bool = False

    def apart(self, at: int, until: int | None) -> bool:
        """Return True if one of the two has ended when the other begins: this one, or a fact from `at` to `until`."""
        ended, begins = (self.ended, at) if self.at < at else (until, self.at)
        return self.at != at and ended is not None and ended <= begins

    def gap(self, at: int) -> tuple[bool, int]:
        """Return the order of candidates for a time: those that began before it, latest first, then the others."""
        return self.at > at, abs(self.at - at)


class Place(msgspec.Struct):
    """The place of a new fact: its sources join those of `joins` instead of a row of its own; or it ends the facts
    `ends`, each for a reason; and is itself ended by `ended_by` at `ended`."""

    joins: int | None = None
    ends: dict[int, Relation] = msgspec.field(default_factory=dict)
    ended_by: int | None = None
    ended: int | None = None


def place(at: int, known: Sequence[Known], until: int | None = None) -> Place:
    """Return the place of a fact that begins to be valid at `at`, and ends by itself at `until`, among the stored ones.

    Validity decides, not arrival: a contradicting fact that began earlier ends where it begins; one that began later
    ends it. A fact that says the same and is valid at that time takes its sources, and there is no new fact. A
    fact that ended before, superseded or not, stays as it is; one that ended at that moment is not joined, and is
    superseded by a fact that contradicts it.
    """
    alike = [fact for fact in known if fact.relation in (Relation.SAME, Relation.NEAR) and not fact.mended]
    same = [fact for fact in alike if fact.relation is Relation.SAME]
    for fact in sorted(
        alike, key=lambda fact: (fact.relation is not Relation.SAME, not fact.live, fact.gap(at))
    ):
        if fact.live and not fact.apart(at, until) and not _superseded_between(fact, at, known):
            return Place(joins=fact.seq)
        if fact in same and fact.at <= at and fact.ended is not None and at < fact.ended:
            return Place(joins=fact.seq)
    position = Place()
    against = [fact for fact in known if fact.relation is Relation.CONTRADICTS and not fact.mended]
    later = [fact for fact in against if fact.at > at and (until is None or fact.at <= until)]
    if later:
        next_ = min(later, key=lambda fact: (fact.at, fact.seq))
        position.ended_by, position.ended = next_.seq, next_.at
    for fact in known:
        if fact.relation in (Relation.CONTRADICTS, Relation.REFINES) and not fact.mended and fact.at <= at:
            late = fact.relation is Relation.CONTRADICTS and (fact.ended or 0) > at
            if late or (fact.live and (fact.ended is None or at <= fact.ended)):
                position.ends[fact.seq] = fact.relation
    return position


def _superseded_between(like: Known, at: int, known: Sequence[Known]) -> bool:
    """Return True if a contradicting fact was valid between the new fact and `like`, which then is a later time of
    it."""
    return any(
        other.relation is Relation.CONTRADICTS and not other.mended and at < other.at <= like.at
        for other in known
    )
