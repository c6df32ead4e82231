"""`/v1/agents`: profiles that requests are answered under."""

from __future__ import annotations

from memoranda.responses.profile_values import fields_of
from memoranda.responses.profiles import Profile, ProfileChange
from memoranda.server import wire_agents as wire
from memoranda.server.route import Call, Route


async def create(call: Call[wire.NewAgentBody, None]) -> Profile:
    fields = fields_of(call.body)
    return await call.agents.create(fields, id=call.body.id)


async def page(call: Call[None, wire.AgentsQuery]) -> wire.AgentPage:
    query = call.query
    listed = await call.agents.list(
        limit=query.limit, after=query.after, before=query.before, order=query.order, name=query.name
    )
    return wire.AgentPage(
        data=listed.data, first_id=listed.first_id, last_id=listed.last_id, has_more=listed.has_more
    )


async def get(call: Call[None, None]) -> Profile:
    return await call.agents.get(call.id)


async def update(call: Call[ProfileChange, None]) -> Profile:
    return await call.agents.update(call.id, call.body)


async def delete(call: Call[None, None]) -> wire.DeletedAgent:
    await call.agents.delete(call.id)
    return wire.DeletedAgent(id=call.id)


AT = "/v1/agents"
ONE = f"{AT}/{{agent_id}}"
ROUTES = (
    Route("POST", AT, "Make an agent", create, "write", Profile, wire.NewAgentBody),
    Route("GET", AT, "A page of agents", page, "read", wire.AgentPage, query=wire.AgentsQuery),
    Route("GET", ONE, "One agent", get, "read", Profile),
    Route("POST", ONE, "Change an agent", update, "write", Profile, ProfileChange),
    Route("DELETE", ONE, "Delete an agent", delete, "write", wire.DeletedAgent),
)
