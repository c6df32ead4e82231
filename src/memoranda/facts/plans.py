"""Turns candidates into facts to be stored: the messages a fact rests on, its scope, what it ends. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from msgspec.structs import replace

from memoranda.clock import local, moment
from memoranda.errors import InvalidInput
from memoranda.facts.grounding import SHARE, Source, grounded, related, support, words_of
from memoranda.facts.insertion import Ending, Plan
from memoranda.facts.parsing import Candidate
from memoranda.facts.tags import content_tags
from memoranda.memories.duplicates import lacks, negated
from memoranda.sessions.records import MessageRow, SessionRow, texts_of
from memoranda.store.origins import ORIGIN, hidden, inherited
from memoranda.store.rows import CONTEXT, Draft, zone_of
from memoranda.store.validation import Bounds, draft
from memoranda.text.instructions import EXTRACTED, TAG
from memoranda.text.sentences import CLOSERS, END_MARKS, own_text, statements
from memoranda.text.terms import terms
from memoranda.types import NewMemory, Subject

MOST_CONFIDENCE, LEAST_SUPPORT = 0.9, 0.6
BEFORE_CHARS = 400
"""Characters of an earlier message that a prompt shows."""
WHY: dict[str, Literal["replaced", "ended"]] = {"replaces": "replaced", "ends": "ended"}
EXACT = 4
"""Messages that a fact rests on at most, when it names none itself."""


def plans_of(
    candidates: Sequence[Candidate],
    session: SessionRow,
    messages: Sequence[MessageRow],
    before: Sequence[MessageRow],
    by: str,
    bounds: Bounds,
    now: int,
) -> list[Plan]:
    """Return the candidates that are grounded in these messages, to be stored. Numbers of candidates count `messages`
    from 1; `before` has earlier messages, `by` names the extractor. Candidates without a source are left out."""
    plans = []
    words = cache(lambda row: words_of(source_of(row)))
    for candidate in candidates:
        earlier = [row for known in candidate.known for row in known.messages] + [*before]
        shown = [*(known.line for known in candidate.known), *(line_of(row) for row in earlier)]
        sources = sources_of(candidate, messages, shown)
        if sources:
            candidate = _tagged(candidate, session, sources)
            written = words_of(Source(" ".join((candidate.text, *candidate.tags))))
            missing = written.difference(*map(words, sources))
            context = {row.id for row in (*earlier, *messages) if missing and missing & words(row)}
            facts = [known.row for known in candidate.known if not known.messages]
            context |= {row.id for row in facts if missing & words_of(Source(row.content))}
            fact = _draft(_weighed(candidate, sources), session, sources, sorted(context), by, bounds, now)
            if fact is not None:
                plans.append(_plan(candidate, fact, sources))
    return plans


def _tagged(candidate: Candidate, session: SessionRow, sources: Sequence[MessageRow]) -> Candidate:
    """Return a candidate with the tag of an instruction if its own user gives it in a message that they typed: not in
    quoted or pasted text, and not in an imported message."""
    owner = owner_of(session, sources)
    typed = candidate.instructs and any(
        row.personal
        and row.user_id in (None, owner)
        and ORIGIN not in hidden(row.metadata)
        and is_quoted(candidate.quote, own_text(row.content))
        for row in sources
    )
    others = tuple(tag for tag in candidate.tags if tag != TAG)
    return replace(candidate, tags=(TAG, *others) if typed and owner is not None else others)


def _plan(candidate: Candidate, fact: Draft, sources: Sequence[MessageRow]) -> Plan:
    """Return a fact with what becomes of the known ones. It ends them only in words that a person says in one of its
    messages, and joins one only without another number, name or negation."""
    known = [each.row for each in candidate.known]
    if not known or candidate.op == "add":
        return Plan(fact)
    if candidate.op == "same":
        text, other = candidate.text, known[0].content
        differ = lacks(other, text) or negated(other) != negated(text)
        return Plan(fact, same=None if differ else known[0].id)
    for row in sources:
        if row.personal and is_quoted(candidate.quote, row.content):
            ending = Ending(tuple(each.id for each in known), WHY[candidate.op], row.id, candidate.quote)
            return Plan(fact, ending=ending)
    return Plan(fact)


def is_quoted(words: str, text: str) -> bool:
    """Return True if a text has these words, whatever the case, spaces, and marks around them."""
    plain = " ".join(words.casefold().split()).strip(f" {END_MARKS}{CLOSERS},;:“„«")
    return bool(terms(plain)) and plain in " ".join(text.casefold().split())


def sources_of(
    candidate: Candidate, messages: Sequence[MessageRow], before: Sequence[str] = ()
) -> list[MessageRow]:
    """Return the messages that a fact rests on, in their order; empty if no person states it.

    These are the messages that the candidate names, if it can have come from them, else the messages of people that
    share the most words with it, else any that do. What an assistant or a tool said, and what a person asked, supports
    a fact only together with a statement of a person: one with words of the fact, or one that follows what the
    assistant said ("Yes"), where the candidate names that. Without such a statement it is no source.
    """
    speakers = {row.name for row in messages}
    people = [row for row in messages if row.personal]
    numbers = set(candidate.messages)
    named = [
        row
        for number, row in enumerate(messages, 1)
        if number in numbers or (number + 1 in numbers and not row.personal and messages[number].personal)
    ]
    for rows in (named, nearest(candidate.text, people), nearest(candidate.text, messages)):
        if rows and grounded(candidate.text, [row.content for row in rows], before, speakers):
            stated = _stated(candidate.text, rows, messages, speakers)
            if stated:
                return stated
    return []


def _stated(
    text: str, rows: Sequence[MessageRow], messages: Sequence[MessageRow], speakers: set[str]
) -> list[MessageRow]:
    """Return those of the rows in which people state something of a fact, and the messages that these answer."""
    stating: set[str] = set()
    before = messages[0]
    for row in messages:
        if row.personal and row in rows and (said := statements(row.content)):
            if related(text, said, speakers):
                stating.add(row.id)
            elif before in rows and not before.personal and related(text, [before.content], speakers, SHARE):
                stating |= {before.id, row.id}
        before = row
    if not stating:
        return []
    asked = [row.id for row in rows if row.personal]
    return [row for row in messages if row.id in stating or row.id in asked]


def responses_of(sources: Sequence[MessageRow]) -> list[str]:
    """Return the ids of the responses in which the messages were said, each once."""
    return list(dict.fromkeys(row.response_id for row in sources if row.response_id is not None))


def source_of(message: MessageRow) -> Source:
    """Return what a message says, and the name of who said it."""
    return Source(message.content, message.speaker or message.user_id)


def line_of(row: MessageRow, most: int = BEFORE_CHARS) -> str:
    """Return a message as a line: when, who, and the first characters of what."""
    text = " ".join(row.content.split())
    cut = text if len(text) <= most else f"{text[:most]} ..."
    said_at = local(moment(row.occurred_at), zone_of(row.metadata))
    return f"{said_at:%Y-%m-%d %H:%M} {row.label}: {cut}"


def _weighed(candidate: Candidate, sources: Sequence[MessageRow]) -> Candidate:
    """Return the candidate with the confidence that its sources allow, and with tags.

    The confidence is `min(stated, 0.9) x (0.6 + 0.4 s)`, where s is the share of the fact's content terms that its
    sources have. Models state 1.0 of nearly everything, so what they state only lowers it.
    """
    speakers = {row.name for row in sources}
    share = support(candidate.text, [row.content for row in sources], speakers)
    confidence = min(candidate.confidence, MOST_CONFIDENCE) * (LEAST_SUPPORT + (1 - LEAST_SUPPORT) * share)
    tags = candidate.tags or content_tags(candidate.text, speakers)
    return replace(candidate, confidence=round(confidence, 3), tags=tags)


def nearest(text: str, messages: Sequence[MessageRow]) -> list[MessageRow]:
    """Return the messages that share the most terms with a text, those of its speaker counted first; empty if none
    does."""
    wanted = set(terms(text))
    shares = [
        len(wanted & set(terms(row.content))) + 0.5 * bool(wanted & set(terms(row.name))) for row in messages
    ]
    best = max(shares, default=0.0)
    if best < 1.0:
        return []
    return [row for row, share in zip(messages, shares, strict=True) if share == best][-EXACT:]


def _draft(
    candidate: Candidate,
    session: SessionRow,
    sources: Sequence[MessageRow],
    context: Sequence[str],
    by: str,
    bounds: Bounds,
    now: int,
) -> Draft | None:
    said_at = max(row.occurred_at for row in sources)
    metadata: dict[str, Any] = {"extracted_by": by, "session_id": session.id}
    if context:
        metadata[CONTEXT] = context
    until = candidate.valid_until
    starts = said_at if candidate.valid_from is None else candidate.valid_from
    if until is not None and until > starts:
        metadata["told_until"] = until
    else:
        until = None
    new = NewMemory(
        content=candidate.text,
        kind="fact",
        source=EXTRACTED,
        tags=list(candidate.tags),
        metadata=metadata,
        confidence=candidate.confidence,
        valid_from=None if candidate.valid_from is None else moment(candidate.valid_from),
        invalid_at=None if until is None else moment(until),
        source_refs=[*(row.id for row in sources), *responses_of(sources)],
        occurred_at=local(moment(said_at), zone_of(max(sources, key=lambda row: row.occurred_at).metadata)),
        **place_of(session, sources),
    )
    try:
        through = inherited(row.metadata for row in sources)
        return draft(new, Subject(tenant_id=session.tenant_id, through=through), now, bounds, "")
    except InvalidInput:  # too long for this tenant, for example: an answer of a model must not fail the job
        return None


def owner_of(session: SessionRow, sources: Sequence[MessageRow]) -> str | None:
    """Return the user whose facts rest on some messages: the first of the people who wrote them, else of those whose
    messages they are, such as an assistant's answer to a user. Where none has a user id, it is the session's user, but
    only if no other person can have written them: they have no names, the session is in no channel, and no other user
    took part in it."""
    people = [row for row in sources if row.personal]
    users = [row.user_id for row in (*people, *sources) if row.user_id is not None]
    if users or session.user_id is None:
        return users[0] if users else None
    unnamed = all(row.author is None for row in people)
    alone = session.channel_id is None and len(texts_of(session.users)) <= 1
    return session.user_id if unnamed and alone else None


def place_of(session: SessionRow, sources: Sequence[MessageRow]) -> dict[str, Any]:
    """Return the scope of a fact that rests on some messages: never of more users than every message it rests on."""
    user = owner_of(session, sources)
    agent = next((row.agent_id for row in sources if row.agent_id is not None), session.agent_id)
    channel = session.channel_id
    nowhere = user is None and agent is None and channel is None
    return {
        "user_id": user,
        "agent_id": agent,
        "channel_id": channel,
        "session_id": session.id if nowhere else None,
    }
