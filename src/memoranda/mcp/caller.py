"""The caller of a tool: subject, agent and core. They come from the key or the URL, never from a model."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from memoranda.contexts.contexts import Contexts
from memoranda.errors import InvalidInput
from memoranda.facts.facts import Facts
from memoranda.knowledge import Knowledge
from memoranda.memories.memories import Memories
from memoranda.sessions.sessions import Sessions
from memoranda.store.access import PLACES
from memoranda.store.core import Core
from memoranda.types import Subject, Through

GLOBAL = "global"


class Caller(msgspec.Struct, frozen=True):
    """One connection's subject and agent, and the core of the application."""

    core: Core
    subject: Subject
    agent_id: str | None = None

    @property
    def memories(self) -> Memories:
        """The memories as the caller sees them."""
        return Memories(self.core, self.subject)

    @property
    def writing(self) -> Memories:
        """The memories, for a model that writes them by a tool."""
        return Memories(self.core, replace(self.subject, through=Through(origin="tool", by=("tool:mcp",))))

    @property
    def facts(self) -> Facts:
        """The facts as the caller sees them."""
        return Facts(self.core, self.subject)

    @property
    def knowledge(self) -> Knowledge:
        """The files and vector stores as the caller sees them."""
        return Knowledge(self.core, self.subject)

    @property
    def sessions(self) -> Sessions:
        """The sessions as the caller sees them."""
        return Sessions(self.core, self.subject)

    @property
    def contexts(self) -> Contexts:
        """The contexts as the caller sees them."""
        return Contexts(self.core, self.subject)

    @property
    def places(self) -> dict[str, str]:
        """The ids of the caller's own scopes, `user` and `agent`, where they are known."""
        ids = {"user": self.subject.user_id, "agent": self.agent_id}
        return {scope: id_ for scope, id_ in ids.items() if id_}

    @property
    def default_scopes(self) -> list[str] | None:
        """The scopes that are searched where a tool names none; None stands for all that the subject may see."""
        own = [f"{scope}:{id_}" for scope, id_ in self.places.items()]
        return [*own, GLOBAL] if own else None

    def scope(self, name: str) -> str:
        """Return the scope of a name: `user`, `agent` and `global` are the caller's own; `session:ID` and `channel:ID`
        stand for themselves.

        Raises:
            InvalidInput: the name is none of these, or the caller has no such scope.
        """
        place, _, id_ = name.partition(":")
        if name == GLOBAL or (place in ("session", "channel") and id_):
            return name
        if place in self.places and not id_:
            return f"{place}:{self.places[place]}"
        known = ", ".join([*self.places, GLOBAL])
        raise InvalidInput("scopes", f"{name!r} is no scope here; use {known}, session:ID or channel:ID")

    def scopes(self, names: list[str] | None) -> list[str] | None:
        """Return the scopes of names, as `scope` does; the default ones for None."""
        return self.default_scopes if names is None else [self.scope(name) for name in names]

    def owner(self, scope: str) -> dict[str, str | None]:
        """Return the ids of a memory that is written into one of the caller's own scopes.

        Raises:
            InvalidInput: the caller has no such scope.
        """
        if scope == GLOBAL:
            return {"user_id": None}
        place, _, id_ = self.scope(scope).partition(":")
        return {f"{place}_id": id_} if place in PLACES else {}
