"""`/v1/agents`: profiles that requests are answered under."""

from __future__ import annotations

from typing import Any

from recollect.agent.profiles import Agents, NewProfile, Profile, ProfileChange, configured_profiles
from recollect.api import wire_agents as wire
from recollect.api.route import Call, Route


def _agents(call: Call[Any, Any]) -> Agents:
    opened = call.house.recollect
    return Agents(opened.core, call.memories.subject, configured_profiles(opened.config))


async def create(call: Call[NewProfile, None]) -> Profile:
    return await _agents(call).create(call.body)


async def page(call: Call[None, wire.AgentsQuery]) -> wire.AgentPage:
    query = call.query
    held = await _agents(call).list(
        limit=query.limit, after=query.after, before=query.before, order=query.order
    )
    return wire.AgentPage(
        data=held.data, first_id=held.first_id, last_id=held.last_id, has_more=held.has_more
    )


async def get(call: Call[None, None]) -> Profile:
    return await _agents(call).get(call.id)


async def update(call: Call[ProfileChange, None]) -> Profile:
    return await _agents(call).update(call.id, call.body)


async def delete(call: Call[None, None]) -> wire.DeletedAgent:
    await _agents(call).delete(call.id)
    return wire.DeletedAgent(id=call.id)


AT = "/v1/agents"
ONE = f"{AT}/{{agent_id}}"
ROUTES = (
    Route("POST", AT, "Make an agent", create, "write", Profile, NewProfile),
    Route("GET", AT, "A page of agents", page, "read", wire.AgentPage, query=wire.AgentsQuery),
    Route("GET", ONE, "One agent", get, "read", Profile),
    Route("POST", ONE, "Change an agent", update, "write", Profile, ProfileChange),
    Route("DELETE", ONE, "Delete an agent", delete, "write", wire.DeletedAgent),
)
