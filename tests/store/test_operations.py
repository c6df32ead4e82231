"""Operations: what is made of a declaration has the names, inputs and results of the library's method."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from memoranda.app.blocking.calls import methods_of
from memoranda.app.blocking.features import (
    BlockingAdmin,
    BlockingAgents,
    BlockingBackfills,
    BlockingContexts,
    BlockingCosts,
    BlockingFacts,
    BlockingMemories,
    BlockingMemoryStores,
    BlockingMemoryVersions,
    BlockingSessions,
    BlockingStoreMemories,
    BlockingSwitches,
)
from memoranda.app.operations import BACKFILLS, COSTS
from memoranda.client import Client
from memoranda.contexts.operations import OPERATIONS as CONTEXTS
from memoranda.errors import InvalidInput
from memoranda.facts.facts import Facts
from memoranda.facts.operations import OPERATIONS as FACTS
from memoranda.knowledge.admin import Admin
from memoranda.knowledge.admin_operations import OPERATIONS as ADMIN
from memoranda.memories.memories import Memories
from memoranda.memories.operations import OPERATIONS as MEMORIES
from memoranda.memory_stores.operations import MEMORIES as STORE_MEMORIES
from memoranda.memory_stores.operations import STORES, VERSIONS, ViewQuery
from memoranda.memory_stores.values import StoreMemoryChange
from memoranda.responses.agent_operations import OPERATIONS as AGENTS
from memoranda.server.routes import ROUTES
from memoranda.sessions.operations import OPERATIONS as SESSIONS
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.switch_operations import OPERATIONS as SWITCHES
from memoranda.sessions.switches import Switches
from memoranda.store.operations import Operation, Sent, arguments, given
from memoranda.store.selections import SelectionBody
from memoranda.store.tenants import TenantQuery
from memoranda.types import NewMemory

SCRIPT = Path(__file__).parents[2] / "scripts" / "stubs.py"


class Kettles:
    async def boil(self, id: str, *, litres: Annotated[int, Meta(ge=1)] = 1, note: str | None = None) -> int:
        """Boil a kettle of water. It must have a lid: without one, nothing happens.

        Raises:
            NotFound: no such kettle.
        """
        return litres

    async def loose(self, **fields: Any) -> None:
        """Take anything."""


BOIL = Operation(Kettles.boil, "POST", "/v1/kettles/{id}/boil", "write")


def test_an_operation_is_described_by_its_method() -> None:
    assert (BOIL.name, BOIL.summary, BOIL.answer) == ("boil", "Boil a kettle of water", int)
    assert BOIL.input is not None
    fields = {field.name: field.default for field in msgspec.structs.fields(BOIL.input)}
    assert fields == {"litres": 1, "note": None}
    with pytest.raises(msgspec.ValidationError, match=">= 1"):
        msgspec.convert({"litres": 0}, BOIL.input)
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"liters": 2}, BOIL.input)


def test_a_call_is_a_request_and_back() -> None:
    sent = BOIL.sent(["a/b"], {"litres": 2})
    assert sent == Sent("/v1/kettles/a%2Fb/boil", {"litres": 2}, None, {"id": "a/b", "litres": 2})
    assert BOIL.input is not None
    assert arguments(msgspec.convert(sent.body, BOIL.input)) == {"litres": 2}
    assert Operation(Kettles.boil, "GET", "/v1/kettles/{id}", "read").sent([".."], {}) == Sent(
        "/v1/kettles/%2E%2E", None, {}, {"id": ".."}
    )
    with pytest.raises(TypeError, match="id"):
        BOIL.sent([], {})


def test_a_tenant_is_named_in_the_body_or_in_the_query() -> None:
    limits = next(one for one in ADMIN if one.method is Admin.set_quotas)
    assert limits.input is not None
    read = msgspec.convert({"max_stores": None, "tenant": "acme"}, limits.input)
    assert limits.merged(read, TenantQuery()) == {"changes": {"max_stores": None}, "tenant": "acme"}
    assert limits.merged(limits.input(), TenantQuery(tenant="acme"))["tenant"] == "acme"
    with pytest.raises(InvalidInput, match="tenant: is 'acme' in the body and 'other' in the query"):
        limits.merged(read, TenantQuery(tenant="other"))


def test_of_two_paths_of_a_method_the_arguments_choose() -> None:
    fitting = [one.path for one in SWITCHES if one.method is Switches.get and one.fits(["garden"], {})]
    assert fitting[0] == "/v1/channels/{channel_id}/switches"
    fitting = [one.path for one in SWITCHES if one.method is Switches.get and one.fits([], {})]
    assert fitting == ["/v1/admin/switches"]


def test_a_body_may_be_one_argument_and_a_path_may_name_the_feature() -> None:
    update = next(one for one in STORE_MEMORIES if one.name == "update")
    change = StoreMemoryChange(content="two")
    sent = update.sent(["m"], {"change": change, "view": "full"}, ["s"])
    assert (sent.path, sent.body, sent.query) == ("/v1/memory_stores/s/memories/m", change, {"view": "full"})
    assert update.in_path({"memory_store_id": "s", "store_memory_id": "m"}) == {"id": "m"}
    assert update.merged(change, ViewQuery(view="full")) == {"change": change, "view": "full"}
    listed = next(one for one in STORES if one.name == "list")
    assert listed.sent([], {"since": "2026-01-01"}).query == {"created_at[gte]": "2026-01-01"}


def test_keywords_without_a_type_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Kettles\.loose: `reads`"):
        assert Operation(Kettles.loose, "POST", "/v1/kettles", "write").input


def test_a_scope_is_among_the_scopes_of_a_selection() -> None:
    asked = SelectionBody(scope="user", scope_id="ada", tags=["a"])
    assert arguments(asked) == {"scopes": ["user:ada"], "tags": ["a"]}
    assert arguments(SelectionBody(scope="", scopes=["global"])) == {"scopes": ["global"]}
    assert given(SelectionBody(include_archived=False, kinds=[])) == {"kinds": []}


def test_a_whole_body_goes_alone() -> None:
    add = next(one for one in MEMORIES if one.method is Memories.add)
    new = NewMemory(content="a kettle")
    assert add.sent([new], {}).body is new
    assert add.sent(["a kettle"], {"tags": ["a"]}).body == {"content": "a kettle", "tags": ["a"]}
    with pytest.raises(InvalidInput, match="goes inside the NewMemory that is given"):
        add.sent([new], {"tags": ["a"]})


def test_a_path_may_name_the_id_otherwise_and_a_parameter_may_stay_local() -> None:
    rewrite = next(one for one in SESSIONS if one.method is Sessions.update_message)
    assert rewrite.sent(["s", "m"], {"content": "tea"}).path == "/v1/sessions/s/messages/m"
    assert rewrite.in_path({"session_id": "s", "message_id": "m"}) == {"session_id": "s", "id": "m"}
    observe = next(one for one in SESSIONS if one.method is Sessions.observe)
    assert observe.input is not None
    assert "response_id" not in observe.input.__struct_fields__
    assert observe.sent(["tea"], {"session_id": "s"}).body == {
        "messages": [{"content": "tea"}],
        "session_id": "s",
    }


def test_parameters_are_added_to_a_selection() -> None:
    facets = next(one for one in MEMORIES if one.method is Memories.facets)
    assert facets.input is not None
    read = msgspec.convert({"scope": "user", "scope_id": "ada", "limit": 3}, facets.input)
    assert arguments(read) == {"scopes": ["user:ada"], "limit": 3}
    assert facets.input.__doc__ == f"{facets.summary}."


FEATURES = [
    *((one, BlockingFacts) for one in FACTS),
    *((one, BlockingMemories) for one in MEMORIES),
    *((one, BlockingSessions) for one in SESSIONS),
    *((one, BlockingContexts) for one in CONTEXTS),
    *((one, BlockingAgents) for one in AGENTS),
    *((one, BlockingBackfills) for one in BACKFILLS),
    *((one, BlockingCosts) for one in COSTS),
    *((one, BlockingAdmin) for one in ADMIN),
    *((one, BlockingSwitches) for one in SWITCHES),
    *((one, BlockingMemoryStores) for one in STORES),
    *((one, BlockingStoreMemories) for one in STORE_MEMORIES),
    *((one, BlockingMemoryVersions) for one in VERSIONS),
]


@pytest.mark.parametrize(("operation", "feature"), FEATURES, ids=lambda one: getattr(one, "path", None))
def test_every_operation_is_a_route_and_a_method_for_callers_without_a_loop(
    operation: Operation, feature: type
) -> None:
    (route,) = [one for one in ROUTES if one.name == f"{operation.verb} {operation.path}"]
    assert (route.needs, route.answer, route.long) == (operation.needs, operation.answer, operation.long)
    method = getattr(feature, operation.name)
    assert inspect.signature(method) == inspect.signature(operation.method)
    assert method.__doc__ == operation.method.__doc__
    assert set(operation.parameters) <= set(inspect.signature(method).parameters)


def test_a_method_that_no_server_offers_says_so() -> None:
    with (
        Client("http://127.0.0.1:9") as client,
        pytest.raises(NotImplementedError, match=r"Facts\.learned_from"),
    ):
        client.facts.learned_from([])


def test_the_stubs_are_those_of_the_features() -> None:
    script = runpy.run_path(str(SCRIPT))
    assert script["FILE"].read_text() == script["stubs"](), "run scripts/stubs.py"
    assert methods_of(Facts).keys() == vars(BlockingFacts).keys() - {"feature", "__doc__", "__module__"}
