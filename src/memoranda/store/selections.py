"""Selections as interfaces read them: scopes can be written in two ways."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from memoranda.store.operations import given
from memoranda.types import ANY_SCOPE, PLACES, Scopes, Selection, says
from memoranda.validation.constraints import BLANK, Constraint, Needs, NotBoth

ScopeName = Annotated[
    str,
    Meta(
        pattern="^$|" + ANY_SCOPE,
        extra=says("must be session, user, agent or channel with `scope_id`, or global, or all"),
    ),
]
ONE_SCOPE: tuple[Constraint, ...] = (
    Needs("scope_id", "scope", "goes with `scope`, as in scope=session, scope_id=ID", empty=BLANK),
    NotBoth(
        "scope", "scope_id", "is global or all, which go without `scope_id`", ("global", "all"), empty=BLANK
    ),
)
WITH_ID = Needs(
    "scope", "scope_id", "needs a `scope_id`, as in scope=session, scope_id=ID", PLACES, empty=BLANK
)
ANY_SCOPED: tuple[Constraint, ...] = (
    *ONE_SCOPE,
    NotBoth("scope", "scopes", "goes without `scopes`; write every scope there", empty=BLANK),
)
SCOPED = (*ANY_SCOPED, WITH_ID)
"""Two ways to write scopes; an empty `scope` or `scope_id` is none. A search needs the id of a session, ..., while
listings, counts and exports take all of them."""


class SelectionBody(Selection, kw_only=True, forbid_unknown_fields=True):
    """Which memories. `scope` with `scope_id` is another way to write `scopes` with one entry."""

    constraints: ClassVar[tuple[Constraint, ...]] = ANY_SCOPED

    scope: ScopeName | None = None
    scope_id: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the fields that are given, with the scope among the scopes."""
        return with_scope(given(self))


class ScopedSelectionBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """Which memories; of a scope other than `global` and `all`, its id as well."""

    constraints: ClassVar[tuple[Constraint, ...]] = SCOPED
    scopes: Scopes | None = None


def with_scope(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a selection with `scope` and `scope_id`, if they have them, as `scopes`."""
    scope, scope_id = fields.pop("scope", None), fields.pop("scope_id", None)
    scopes = named_scopes(fields.pop("scopes", None), scope, scope_id)
    return fields if scopes is None else {**fields, "scopes": scopes}


def named_scopes(scopes: list[str] | None, scope: str | None, scope_id: str | None) -> list[str] | None:
    """Return the scopes of a request, from either form; an empty `scope` or `scope_id` counts as missing."""
    if not scope:
        return scopes
    return [f"{scope}:{scope_id}" if scope_id else scope]
