"""Agent profiles: named instructions, tools and defaults that requests are answered under."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from memoranda.clock import now_micros
from memoranda.config.sections import Config
from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound, QuotaExceeded
from memoranda.knowledge.access import stores_seen
from memoranda.responses.declared import stores_of
from memoranda.responses.profile_values import (
    ID,
    Effective,
    NewProfile,
    Profile,
    ProfileChange,
    ProfileMemory,
    changed,
    channel_of,
    checked,
    configured,
    effective,
    fields_of,
    merged,
    profile_of,
    shown,
)
from memoranda.responses.records import SECOND, draw
from memoranda.responses.values import ResponseRequest
from memoranda.sessions.switches import switches_of
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write, owns, sees_all
from memoranda.store.core import Core
from memoranda.store.forgotten import note
from memoranda.store.ids import nameable, new_id
from memoranda.store.paging import Listed, Paging, as_page, check_page, page
from memoranda.store.validation import check_name
from memoranda.text.stored import compact_json
from memoranda.types import Order, Subject
from memoranda.validation import convert

__all__ = [
    "Agents",
    "Effective",
    "NewProfile",
    "Profile",
    "ProfileChange",
    "ProfileMemory",
    "configured",
    "configured_profiles",
    "effective",
    "merged",
]

T = TypeVar("T")
MAX_PAGE = 100
MAX_AGENTS = 1_000
"""Agents of one tenant."""


class AgentRow(NamedTuple):
    """One row of `agents`. `body` is the profile as JSON."""

    tenant_id: str
    id: str
    seq: int
    name: str
    user_id: str | None
    body: str
    created_at: int
    updated_at: int


COLUMNS = ", ".join(f"a.{name}" for name in AgentRow._fields)
_body = msgspec.json.Decoder(NewProfile)


def value_of(row: AgentRow) -> Profile:
    """The profile of a row, secrets included."""
    return profile_of(
        _body.decode(row.body),
        id=row.id,
        user_id=row.user_id,
        created_at=row.created_at // SECOND,
        updated_at=row.updated_at // SECOND,
    )


def configured_profiles(config: Config) -> tuple[Profile, ...]:
    """The profiles of a configuration that was checked."""
    return tuple(configured(entry, f"agents[{at}]") for at, entry in enumerate(config.agents))


class Agents:
    """The agent profiles that one subject sees: its own, its tenant's, and those of the configuration."""

    def __init__(self, core: Core, subject: Subject, configured: Sequence[Profile] = ()) -> None:
        self._core = core
        self.subject = subject
        self._tenant = subject.tenant_id
        self._fixed = {profile.id: (at - len(configured), profile) for at, profile in enumerate(configured)}

    async def create(self, new: NewProfile | Mapping[str, Any], *, id: str | None = None) -> Profile:
        """Make an agent. Its id is one of the caller's (`agent_` and letters, digits, `_`, `.`, `-`) or a new one.

        Raises:
            InvalidInput: names the field and the fix.
            Conflict: an agent has this id.
            NotFound: a vector store in its tools is none of this subject's.
            QuotaExceeded: the tenant has as many agents as it may.
            Forbidden: the role writes nothing.
        """
        must_write(self.subject)
        profile = checked(new)
        if id is not None and not ID.fullmatch(id):
            raise InvalidInput("id", "must be agent_ and then up to 64 letters, digits, _, . and -")
        await self._read(lambda c: self._check_stores(c, profile))
        now, id_, body = now_micros(), id or new_id("agent_"), compact_json(profile)

        def work(c: Connection) -> Profile:
            self._check_count(c)
            if id_ in self._fixed or c.one("get_agent", [self._tenant, id_]) is not None:
                raise Conflict(
                    f"id: an agent {id_!r} is there already; choose another id, or change that one"
                )
            c.run("add_tenant", [self._tenant, now])
            row = AgentRow(self._tenant, id_, draw(c), profile.name, self.subject.user_id, body, now, now)
            c.run("add_agent", row)
            return shown(value_of(row))

        return await self._write(work)

    async def get(self, id: str) -> Profile:
        """Return one agent.

        Raises:
            NotFound: no such agent for this subject.
        """
        return shown(await self._read(lambda c: self._seen(c, id)))

    async def list(
        self,
        *,
        limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 20,
        after: str | None = None,
        before: str | None = None,
        order: Order = "desc",
        name: str | None = None,
    ) -> Listed[Profile]:
        """Return one page of the agents, or of those with this name. The newest are first unless `order` is `asc`;
        those of the configuration count as the oldest.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no agent.
        """
        check_page(limit, order, MAX_PAGE)
        backwards, where = before is not None, self._condition(name)
        down = (order == "desc") != backwards

        def read(c: Connection) -> tuple[list[tuple[int, Profile]], bool]:
            select = f"SELECT {COLUMNS} FROM agents a WHERE a.tenant_id = ? AND {where[0]}"
            place_of, request = partial(self._place, c), Paging(limit, after, before, order == "desc")
            rows, more = page(c, select, [self._tenant, *where[1]], "a.seq", place_of, request)
            cursor = before if backwards else after
            at = None if cursor is None else place_of(cursor)
            numbered = [(row.seq, value_of(row)) for row in map(AgentRow._make, rows)]
            numbered += [
                entry
                for entry in self._fixed.values()
                if (name is None or entry[1].name == name)
                and (at is None or (entry[0] < at if down else entry[0] > at))
            ]
            return numbered, more

        numbered, more = await self._read(read)
        numbered.sort(key=lambda entry: entry[0], reverse=down)
        page_rows = numbered[:limit][::-1] if backwards else numbered[:limit]
        agents = [shown(profile) for _, profile in page_rows]
        return as_page(agents, [profile.id for profile in agents], more or len(numbered) > limit)

    async def update(self, id: str, change: ProfileChange | Mapping[str, Any]) -> Profile:
        """Change the named fields of an agent; the rest stays.

        Raises:
            NotFound: no such agent for this subject, or a vector store in its new tools is none.
            Forbidden: it is another's, the tenant's, or of the configuration.
            InvalidInput: names the field and the fix.
        """
        must_write(self.subject)
        given = fields_of(convert(change, ProfileChange), ProfileChange)
        if "tools" in given:
            await self._read(
                lambda c: self._check_stores(c, changed(self._owned(c, id), {"tools": given["tools"]}))
            )

        def work(c: Connection) -> Profile:
            profile, now = changed(self._owned(c, id), given), now_micros()
            c.run("set_agent", [profile.name, compact_json(profile), now, self._tenant, id])
            return shown(self._seen(c, id))

        return await self._write(work)

    async def delete(self, id: str) -> None:
        """Delete an agent. What was answered and learned under it stays.

        Raises:
            NotFound: no such agent for this subject.
            Forbidden: it is another's, the tenant's, or of the configuration.
        """
        must_write(self.subject)

        def work(c: Connection) -> None:
            self._owned(c, id)
            c.run("drop_agent", [self._tenant, id])
            note(c, self._tenant, [("agents", id)])

        await self._write(work)

    async def effective(self, request: ResponseRequest, config: Config) -> Effective:
        """The request merged with its agent profile, over the agent's vector stores that this subject may read.

        Raises:
            NotFound: it names an agent that is none of this subject's.
            InvalidInput: names the field and the fix.
        """
        request = _without_prompt(request)
        named, channel = _named(request), channel_of(request)
        check_name(channel, "memory.channel_id")

        def read(c: Connection) -> Effective:
            switched = switches_of(c, self._tenant, [channel])[channel].conversation_summaries
            if named is None:
                return effective(None, request, config, switched=switched)
            profile = self._chosen(c, *named)
            stores = stores_of(profile.tools)
            seen = set(stores_seen(c, self.subject, stores)) if stores else set()
            return effective(profile, request, config, seen, switched)

        return await self._read(read)

    # --- rows --------------------------------------------------------------------------------------

    def _condition(self, name: str | None) -> tuple[str, Sequence[Any]]:
        """The condition for agents that the subject sees, of this name if one is given, and its parameters."""
        if name is not None and not nameable(name):
            return "FALSE", ()
        named = "TRUE" if name is None else "a.name = ?"
        params = [] if name is None else [name]
        if sees_all(self.subject):
            return named, params
        return f"{named} AND (a.user_id IS NULL OR a.user_id = ?)", [*params, self.subject.user_id]

    def _row(self, c: Connection, id_: str) -> AgentRow | None:
        row = c.one("get_agent", [self._tenant, id_]) if nameable(id_) else None
        agent = None if row is None else AgentRow._make(row)
        return agent if agent is not None and owns(self.subject, agent.user_id) else None

    def _seen(self, c: Connection, id_: str) -> Profile:
        if id_ in self._fixed:
            return self._fixed[id_][1]
        row = self._row(c, id_)
        if row is None:
            raise NotFound(f"no agent {id_!r}")
        return value_of(row)

    def _owned(self, c: Connection, id_: str) -> Profile:
        profile = self._seen(c, id_)
        if profile.read_only:
            raise Forbidden(f"the agent {id_!r} is of the configuration; change it there")
        mine = profile.user_id is not None and profile.user_id == self.subject.user_id
        if not (mine or sees_all(self.subject)):
            raise Forbidden(f"only the owner of the agent {id_!r}, or an admin, may do this")
        return profile

    def _place(self, c: Connection, id_: str) -> int | None:
        if id_ in self._fixed:
            return self._fixed[id_][0]
        row = self._row(c, id_)
        return None if row is None else row.seq

    def _chosen(self, c: Connection, field: str, name: str) -> Profile:
        """The agent of this id, else the only one of this name."""
        try:
            return self._seen(c, name)
        except NotFound:
            named = self._called(c, name)
            if not named:
                raise
        if len(named) > 1:
            says = f"several agents are called {name!r}; name one by its id, such as {named[0].id}"
            raise InvalidInput(field, says)
        return named[0]

    def _called(self, c: Connection, name: str) -> Sequence[Profile]:
        """The first two agents of this name, which is enough to detect several."""
        where, params = self._condition(name)
        rows = c.select(
            f"SELECT {COLUMNS} FROM agents a WHERE a.tenant_id = ? AND {where} LIMIT 2",
            [self._tenant, *params],
        )
        fixed = [profile for _, profile in self._fixed.values() if profile.name == name]
        return [*fixed, *(value_of(AgentRow._make(row)) for row in rows)]

    def _check_stores(self, c: Connection, profile: NewProfile) -> None:
        stores = stores_of(profile.tools)
        seen = stores_seen(c, self.subject, stores) if stores else {}
        if missing := next((id_ for id_ in stores if id_ not in seen), None):
            raise NotFound(f"no vector store {missing!r}")

    def _check_count(self, c: Connection) -> None:
        row = c.one("count_agents", [self._tenant])
        if row is not None and row[0] >= MAX_AGENTS:
            raise QuotaExceeded("agent", f"would be one more than {MAX_AGENTS}; delete one", "max_agents")

    async def _read(self, work: Callable[[Connection], T]) -> T:
        """Reads across tenants, for vector stores that another tenant shares with everyone."""
        return await self._core.threads.run(self._core.store.db.read, work)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.result(self._core.store.db.write(work, tenant=self._tenant))


def _without_prompt(request: ResponseRequest) -> ResponseRequest:
    """The request with the stored prompt that it names as its agent.

    Raises:
        InvalidInput: it names a version, or another agent beside it.
    """
    prompt = request.prompt
    if prompt is None:
        return request
    if request.agent not in (None, prompt.id) or request.agent_id not in (None, prompt.id):
        raise InvalidInput(
            "prompt.id", "names another profile than the agent of the request; send one of the two"
        )
    variables = {**(prompt.variables or {}), **(request.variables or {})}
    return msgspec.structs.replace(
        request, prompt=None, agent=None, agent_id=prompt.id, variables=variables or None
    )


def _named(request: ResponseRequest) -> tuple[str, str] | None:
    """The field by which a request names its agent, and its value."""
    if request.agent is not None and request.agent_id not in (None, request.agent):
        raise InvalidInput("agent_id", "names another agent than `agent`; send one of the two")
    if request.agent is not None:
        return "agent", request.agent
    return None if request.agent_id is None else ("agent_id", request.agent_id)
