"""A second model call: the relation of new facts to stored ones if rules cannot decide it."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from memoranda.errors import ModelError, SpendingLimit
from memoranda.facts import versions
from memoranda.facts.keeping import Plan
from memoranda.facts.merging import Bounds, Relation, relation, supported
from memoranda.memories.duplicates import jaccard
from memoranda.providers.chat.base import Ask, Model
from memoranda.providers.chat.said import said
from memoranda.store.core import Core
from memoranda.store.rows import Record, fetch, start_of
from memoranda.text import prompts
from memoranda.text.regex import in_ascii

log = logging.getLogger("memoranda.facts")
MOST = 30
"""The most pairs in one prompt."""
RELATED = 0.5
"""The calibrated similarity from which on two facts may be about the same thing."""
SHARED = 0.25
"""The same by terms, as a Jaccard index."""
ANSWER_TOKENS = 3_000
_SAID = {
    "same": Relation.NEAR,
    "duplicate": Relation.NEAR,
    "refines": Relation.REFINES,
    "contradicts": Relation.CONTRADICTS,
    "unrelated": Relation.OTHER,
    "both": Relation.OTHER,
}
_PAIR = re.compile(
    rf"(?P<line>\d{{1,3}})\W{{1,10}}(?:\"?is\"?\W{{1,6}})?(?P<is>{'|'.join(_SAID)})", re.IGNORECASE
)


async def judged(core: Core, model: Model, plans: Sequence[Plan]) -> None:
    """Add the verdicts of the model on pairs of facts to the plans. Without a usable answer, rules decide alone."""
    if not core.config.facts.judge or not any(plan.near for plan in plans):
        return
    asked = await core.threads.run(_pairs, core, plans)
    if not asked:
        return
    lines = [(old.content, new.content) for old, new in (_in_order(*pair) for pair in asked)]
    ask = Ask(
        messages=[
            {"role": "system", "content": prompts.JUDGING},
            {"role": "user", "content": prompts.pairs(lines)},
        ],
        model=core.config.facts.model,
        max_tokens=ANSWER_TOKENS,
        response_format=prompts.JUDGING_FORM,
        stream=False,
    )
    try:
        answer = await said(model, ask)
    except (ModelError, SpendingLimit) as exc:
        log.warning("facts are compared by rules alone: %s", exc)
        return
    for number, verdict in verdicts(answer.text).items():
        if number <= len(asked):
            plan, existing = asked[number - 1]
            first, second = _in_order(plan, existing)
            if not supported(verdict, second.content, first.content):
                log.info("a verdict on two facts has no support in their words and is ignored: %s", verdict)
                continue
            swapped = first is not existing
            plan.verdicts[existing.seq] = (
                Relation.NEAR if swapped and verdict is Relation.REFINES else verdict
            )


def _in_order(plan: Plan, existing: Record) -> tuple[Record, Record]:
    """Return a new fact and a stored one, the earlier one first."""
    new = plan.draft.row
    return (existing, new) if start_of(existing) <= start_of(new) else (new, existing)


def verdicts(answer: str) -> dict[int, Relation]:
    """Return the verdict of an answer on each numbered pair, whatever text surrounds it."""
    return {int(match["line"]): _SAID[match["is"].lower()] for match in _PAIR.finditer(in_ascii(answer))}


def _pairs(core: Core, plans: Sequence[Plan]) -> list[tuple[Plan, Record]]:
    tenant = plans[0].draft.row.tenant_id
    wanted = {seq for plan in plans for seq in plan.near}
    rows = core.store.db.read(lambda c: fetch(c, tenant, wanted), tenant)
    settings = core.config.facts
    bounds = Bounds(settings.near_cosine, settings.near_jaccard)
    pairs = []
    for plan in plans:
        text = plan.draft.row.content
        for seq, cosine in plan.near.items():
            existing = rows.get(seq)
            if existing is None or not versions.is_live(existing) or versions.parts_of(existing):
                continue
            known = None if cosine != cosine else cosine
            if relation(text, existing.content, known, bounds) in (Relation.SAME, Relation.CONTRADICTS):
                continue
            near = known is not None and core.recall.calibration.similarity(known) >= RELATED
            if near or jaccard(text, existing.content) >= SHARED:
                pairs.append((plan, existing))
    return pairs[:MOST]
