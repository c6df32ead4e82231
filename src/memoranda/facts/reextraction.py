"""Messages that are read again, and messages that go while they are read: which facts of them are kept. No I/O."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memoranda.facts.grounding import lost_words, mostly_in, words_of
from memoranda.facts.plans import responses_of, source_of
from memoranda.sessions.records import MessageRow
from memoranda.store.rows import Draft, refs_of
from memoranda.text.stored import compact_json

Anew = Mapping[str, Sequence[Sequence[int]] | None]
"""Messages to read again, by id, each with the words (start, stop) that the wanted facts are about; None for all."""


def still_rests(fact: Draft, left: Sequence[MessageRow]) -> bool:
    """Return True if a personal message that a fact rests on is there; deleted messages are removed from its
    sources."""
    refs = set(refs_of(fact.row))
    sources = [row for row in left if row.id in refs]
    fact.row = fact.row._replace(
        source_refs=compact_json([*(row.id for row in sources), *responses_of(sources)])
    )
    return any(row.personal for row in sources)


def anew_of(payload: Mapping[str, Any]) -> Anew | None:
    """Return the single messages that a job is about; None if it is about all that were not read yet."""
    about = payload.get("about", {})
    return {id_: about.get(id_) for id_ in payload["messages"]} if "messages" in payload else None


def is_wanted(fact: Draft, messages: Sequence[MessageRow], about: Anew) -> bool:
    """Return True if a fact is one of those that are wanted of the messages it rests on."""
    refs = set(refs_of(fact.row))
    for row in messages:
        spans = about.get(row.id)
        if row.id in refs and (spans is None or mostly_in(fact.row.content, row.content, spans)):
            return True
    return False


def has_words_of_deleted(fact: Draft, read: Sequence[MessageRow], there: Collection[str]) -> bool:
    """Return True if a fact rests on a message of those that were read, and has words that only deleted ones said."""
    deleted = [words_of(source_of(row)) for row in read if row.id not in there]
    refs = set(refs_of(fact.row))
    left = [words_of(source_of(row)) for row in read if row.id in there and row.id in refs]
    texts = (fact.row.content, *json.loads(fact.row.tags))
    return bool(deleted and left) and any(lost_words(text, deleted, left) for text in texts)
