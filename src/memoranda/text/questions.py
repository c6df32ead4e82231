"""Questions: reduced to their content, without polite phrases (English rules; other languages pass through), and which
of their terms texts contain. No I/O."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoranda.text.analysis import occurrences, wanted_by
from memoranda.text.numbers import bare, ids_in
from memoranda.text.regex import regex
from memoranda.text.sentences import QUESTION_MARKS, TERMINALS, is_question, spans
from memoranda.text.terms import query_terms, terms, word_terms

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


CHARACTERS = 2_000
"""The characters of a text that are examined."""
MISSING = 5
_WORD = re.compile(r"[a-z0-9]+")
_ANY_WORD = re.compile(r"[^\W_]+")
_PLAIN = str.maketrans(dict.fromkeys("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", " "))
_TIMELY = frozenset(
    """
    yesterday today tonight tomorrow last next ago week weekend weeks month months year years day days morning
    night monday tuesday wednesday thursday friday saturday sunday january february march april may june july
    august september october november december summer winter spring fall autumn recently soon since
    """.split()  # noqa: SIM905 - prose reads better than fifty quoted words
)
_ASKS_WHEN = re.compile(
    r"\bwhen\b|\bhow long\b|\b(?:what|which) (?:date|year|month|week|day|time|season)s?\b", re.IGNORECASE
)


def covered_terms(question: str, texts: Sequence[str]) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which terms of a question each of the texts (n) contains, (n, m), and the m terms: in English without
    stop words, in other languages as a keyword index has them. An id, such as E09, is there however it is written."""
    wanted = wanted_by(question)
    if question.isascii() and len(wanted.languages) == 1:
        terms_in_order = query_terms(question)
        covered = coverage(texts, terms_in_order)
        ids = set(ids_in(question))
        for column, term in enumerate(terms_in_order):
            if term in ids:
                covered[:, column] |= [term in bare(text) for text in texts]
        return covered, terms_in_order
    terms_in_order = sorted(wanted.terms)
    at = {term: column for column, term in enumerate(terms_in_order)}
    covered = np.zeros((len(texts), len(at)), np.bool_)
    for row, text in enumerate(texts):
        for _, _, term in occurrences(text[:CHARACTERS], wanted):
            covered[row, at[term]] = True
    return covered, terms_in_order


def coverage(texts: Sequence[str], wanted: Sequence[str]) -> NDArray[np.bool_]:
    """Return which of the `wanted` terms (m, see `terms.query_terms`) each of the texts (n) contains: (n, m).

    The same terms as in a keyword index, except for words that share fewer than three letters with their stem.
    """
    covered = np.zeros((len(texts), len(wanted)), np.bool_)
    if not all(term.isascii() for term in wanted):
        for i, text in enumerate(texts):
            there = set(terms(text[:CHARACTERS]))
            covered[i] = [term in there for term in wanted]
        return covered
    lowered = [_folded(text[:CHARACTERS]) for text in texts]
    starts, at = [], 0
    for text in lowered:
        starts.append(at)
        at += len(text) + 1
    joined = "\n".join(lowered)
    for column, term in enumerate(wanted):
        beginning = term[: max(3, len(term) - 2)]
        place = joined.find(beginning)
        while place >= 0:
            following = place + 1
            if place == 0 or not joined[place - 1].isalnum():
                word = _WORD.match(joined, place)
                if word is not None and term in word_terms(word[0]):
                    row = bisect_right(starts, place) - 1
                    covered[row, column] = True
                    following = starts[row] + len(lowered[row])
            place = joined.find(beginning, following)
    return covered


def uncovered(question: str, texts: Sequence[str]) -> list[str]:
    """Return the words of a question whose terms none of the texts have, at most `MISSING`, as they are written."""
    words = {word: query_terms(word) for word in dict.fromkeys(_ANY_WORD.findall(question))}
    wanted = sorted({term for terms_of in words.values() for term in terms_of})
    if not wanted:
        return []
    covered = coverage(texts, wanted)
    there = {term for column, term in enumerate(wanted) if covered[:, column].any()}
    return [word for word, own in words.items() if own and there.isdisjoint(own)][:MISSING]


def _folded(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.replace("\u2019", "'")).encode("ascii", "ignore").decode()
    return text.lower()


def rarity(covered: NDArray[np.bool_], least: int = 0) -> NDArray[np.float64]:
    """Return the weight of each term (m) among these texts: the inverse document frequency of BM25, scaled to sum to 1;
    `covered` is (n, m). Fewer texts than `least` count as so many: they say little about which terms are rare."""
    count, times = max(least, len(covered)), covered.sum(axis=0)
    weights: NDArray[np.float64] = np.log(1.0 + (count - times + 0.5) / (times + 0.5))
    total = weights.sum()
    return weights / total if total > 0 else weights


def asks(text: str) -> bool:
    """Return True if a text ends with a question: its last end mark is a question mark."""
    return next((mark for mark in reversed(text) if mark in TERMINALS), ".") in QUESTION_MARKS


def only_asks(text: str) -> bool:
    """Return True if every sentence of a text, of at most 2 000 characters, is a question."""
    if len(text) > CHARACTERS or not is_question(text):
        return False
    return all(is_question(text[start:stop]) for start, stop in spans(text))


def asks_when(question: str) -> bool:
    """Return True if a question asks for a time."""
    return _ASKS_WHEN.search(question) is not None


def timely(text: str) -> bool:
    """Return True if a text contains a word of time: a day, a month, `ago`, `last`, a year."""
    words = text[:CHARACTERS].lower().translate(_PLAIN).split()
    return not _TIMELY.isdisjoint(words) or any(
        len(w) == 4 and w.isdigit() and w[:2] in ("19", "20") for w in words
    )
