"""Agent profiles: what a request comes to under one, and who sees, uses and changes them."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.config import Config, Responses, Summarization
from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound, QuotaExceeded
from memoranda.knowledge.values import StoreChange
from memoranda.responses.declared import MAX_STORES, kind_of
from memoranda.responses.profile_values import Effective, Summarized
from memoranda.responses.profiles import MAX_AGENTS, Agents, Profile, configured, effective, merged
from memoranda.responses.values import MemoryUse, ResponseRequest
from memoranda.storage.sql.sqlite import SqliteConnection
from memoranda.types import Subject
from memoranda.validation import convert

STORES = ("vs_a", "vs_b", "vs_c")


def profile(**fields: Any) -> Profile:
    return configured({"id": "agent_x", "name": "X", **fields}, "agent")


def search(*stores: str, **fields: Any) -> dict[str, Any]:
    return {"type": "file_search", "vector_store_ids": list(stores), **fields}


def function(name: str, says: str = "") -> dict[str, Any]:
    return {"type": "function", "name": name, "description": says}


def server(label: str, **fields: Any) -> dict[str, Any]:
    return {"type": "mcp", "server_label": label, "server_url": "https://h.example/mcp", **fields}


# --- what a request comes to ---------------------------------------------------------------------------

names = st.sampled_from(["one", "two", "three"])
tool = st.one_of(
    st.builds(function, names, st.sampled_from(["mine", "yours"])),
    st.builds(server, names),
    st.lists(st.sampled_from(STORES), min_size=1, unique=True).map(lambda ids: search(*ids)),
    st.sampled_from(["memory_search", "vector_memory_search", "memory_write"]).map(
        lambda kind: {"type": kind}
    ),
)
tools = st.lists(tool, max_size=5, unique_by=kind_of)
group = st.none() | st.dictionaries(
    st.sampled_from(["verbosity", "effort"]), st.sampled_from(["low", "high"])
)
unit = st.none() | st.sampled_from([0.0, 0.5, 1.0])
said: dict[str, Any] = {
    "model": st.none() | st.sampled_from(["m", "n"]),
    "temperature": unit,
    "top_p": unit,
    "max_output_tokens": st.none() | st.integers(1, 9),
    "tool_choice": st.none() | st.sampled_from(["auto", "required", {"type": "function", "name": "one"}]),
    "text": group,
    "reasoning": group,
    "instructions": st.none() | st.sampled_from(["", "Be brief.", "Be kind."]),
}
profiles = st.fixed_dictionaries({**said, "tools": tools}).map(lambda fields: profile(**fields))
requests = st.fixed_dictionaries(
    {**said, "tools": st.none() | tools, "input": st.just("hello"), "user": st.none() | st.just("u")}
).map(lambda fields: ResponseRequest(**fields))


@given(profiles, requests)
def test_what_a_request_says_goes_before(held: Profile, request: ResponseRequest) -> None:
    before = copy.deepcopy((held, request))
    made = merged(held, request)
    assert (held, request) == before
    for name in ("model", "temperature", "top_p", "max_output_tokens", "tool_choice"):
        asked = getattr(request, name)
        assert getattr(made, name) == (getattr(held, name) if asked is None else asked)
    for name in ("text", "reasoning"):
        own, asked = getattr(held, name), getattr(request, name)
        assert (getattr(made, name) or {}) == {**(own or {}), **(asked or {})}
    assert [part for part in (made.instructions or "").split("\n\n") if part] == [
        text for text in (held.instructions, request.instructions) if text
    ]
    assert (made.agent, made.agent_id, made.input, made.user) == (None, held.id, "hello", request.user)


@given(profiles, requests)
def test_tools_are_those_of_both_each_once(held: Profile, request: ResponseRequest) -> None:
    above = request.tools or []
    made = merged(held, request).tools or []
    kinds = [kind_of(one) for one in made]
    assert len(set(kinds)) == len(kinds)
    assert set(kinds) == {kind_of(one) for one in [*above, *held.tools]}
    assert kinds[: len(above)] == [kind_of(one) for one in above]
    for at, one in enumerate(above):
        rest = {key: value for key, value in made[at].items() if key != "vector_store_ids"}
        assert rest == {key: value for key, value in one.items() if key != "vector_store_ids"}
    stores = [ids for one in made if (ids := one.get("vector_store_ids"))]
    named = [id_ for one in [*above, *held.tools] for id_ in one.get("vector_store_ids", ())]
    assert stores == ([list(dict.fromkeys(named))] if named else [])


@given(requests)
def test_a_profile_that_says_nothing_changes_nothing(request: ResponseRequest) -> None:
    named = msgspec.structs.replace(request, agent_id="agent_x")
    assert merged(profile(), request) == named
    assert effective(None, request, Config()).request == request


def test_a_file_search_has_the_stores_of_both_and_the_requests_own_fields() -> None:
    held = profile(tools=[search("vs_a", "vs_b", max_num_results=3, filters={"team": "x"})])
    made = merged(held, ResponseRequest(tools=[search("vs_b", "vs_c", max_num_results=9)]))
    assert made.tools == [search("vs_b", "vs_c", "vs_a", max_num_results=9, filters={"team": "x"})]
    assert merged(held, ResponseRequest(tools=[function("f")])).tools == [function("f"), *held.tools]
    assert merged(held, ResponseRequest(tools=[{"type": "file_search"}])).tools == held.tools
    wrong = [{"type": "file_search", "vector_store_ids": 5}]
    assert merged(held, ResponseRequest(tools=wrong)).tools == wrong
    many = [search(*(f"vs_{n}" for n in range(MAX_STORES)))]
    with pytest.raises(InvalidInput, match="are 102 with those of the agent") as caught:
        merged(held, ResponseRequest(tools=[function("f"), *many]))
    assert caught.value.field == "tools[1].vector_store_ids"


def test_variables_fill_the_profiles_instructions_once() -> None:
    held = profile(
        instructions="Help {{ who }} of {{company}}, {{not a name}}, {{who}}.",
        variables={"company": "Acme {{who}}", "who": "people"},
    )
    request = ResponseRequest(instructions="Mind {{who}}.", variables={"who": "ann \\1", "unused": "x"})
    made = merged(held, request).instructions
    assert made == "Help ann \\1 of Acme {{who}}, {{not a name}}, ann \\1.\n\nMind {{who}}."
    assert str(merged(held, ResponseRequest()).instructions).startswith("Help people of")
    with pytest.raises(InvalidInput, match=r"need a value for \{\{place\}\}") as caught:
        merged(profile(instructions="In {{place}}."), request)
    assert caught.value.field == "variables.place"


@pytest.mark.parametrize(
    ("held", "asked", "wanted"),
    [
        (None, None, None),
        (None, True, True),
        ({"episodic": True}, None, MemoryUse(retrieval=True, extraction=True)),
        ({"episodic": False}, None, MemoryUse(retrieval=False, extraction=False)),
        ({"episodic": True, "retrieval": False}, None, MemoryUse(retrieval=False, extraction=True)),
        ({"summarization": True}, None, MemoryUse()),
        ({"episodic": True}, False, False),
        ({"episodic": False}, True, MemoryUse(retrieval=True, extraction=False)),
        ({"episodic": True, "max_results": 3, "min_score": 0.5, "kinds": ["fact"]},
         MemoryUse(extraction=False, user_id="ann", max_results=1),
         MemoryUse(retrieval=True, extraction=False, user_id="ann", max_results=1, min_score=0.5, kinds=["fact"])),
    ],
)  # fmt: skip
def test_memory_is_laid_under_the_requests(held: Any, asked: Any, wanted: Any) -> None:
    assert merged(profile(memory=held), ResponseRequest(memory=asked)).memory == wanted


def test_a_profile_switches_summaries_on_and_off() -> None:
    config = Config(summarization=Summarization(enabled=True, window_size=4))
    for said, wanted in ((None, True), (True, True), (False, False)):
        made = effective(profile(memory={"summarization": said}), ResponseRequest(), config)
        assert made.summarization == Summarized(enabled=wanted, window_size=4, by_agent=said is not None)
        assert made.agent_id == "agent_x"
    assert effective(profile(), ResponseRequest(), config).summarization == Summarized(
        enabled=True, window_size=4
    )


def test_stores_that_are_not_seen_are_left_out() -> None:
    demanded = profile(tools=[search("vs_a", "vs_b"), function("f")], tool_choice={"type": "file_search"})
    made = effective(demanded, ResponseRequest(), Config(), {"vs_b"})
    assert made.request.tools == [search("vs_b"), function("f")]
    assert made.request.tool_choice == {"type": "file_search"}
    assert made.left_out == ["vs_a"]
    made = effective(demanded, ResponseRequest(), Config(), set())
    assert (made.request.tools, made.request.tool_choice) == ([function("f")], None)
    assert made.left_out == ["vs_a", "vs_b"]
    own = ResponseRequest(tools=[search("vs_a")])
    assert effective(demanded, own, Config(), {"vs_b"}).request.tools == [
        search("vs_a", "vs_b"),
        function("f"),
    ]
    alone = profile(tools=[search("vs_a")], tool_choice="required")
    made = effective(alone, ResponseRequest(), Config(), set())
    assert (made.request.tools, made.request.tool_choice) == (None, None)


def test_files_are_not_searched_where_that_is_off() -> None:
    off = Config(responses=Responses(file_search=False))
    made = effective(profile(tools=[search("vs_a")]), ResponseRequest(), off)
    assert (made.request.tools, made.left_out) == (None, ["vs_a"])
    for held in (None, profile()):
        with pytest.raises(InvalidInput, match=r"responses\.file_search") as caught:
            effective(held, ResponseRequest(tools=[function("f"), search("vs_a")]), off)
        assert caught.value.field == "tools[1].type"


# --- rows ----------------------------------------------------------------------------------------------

FIXED = (
    configured(
        {"id": "agent_first", "name": "First", "tools": [server("s", authorization="hush")]}, "agents[0]"
    ),
    configured({"id": "agent_second", "name": "Second"}, "agents[1]"),
)


class Blocking:
    """The agents of one subject, for callers without a loop."""

    def __init__(self, rc: BlockingMemoranda, subject: Subject) -> None:
        self.rc = rc
        self.agents = Agents(rc.inner.core, subject, FIXED)
        self.stores = rc.inner.as_subject(subject).knowledge.stores

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **fields: self.rc.portal.call(getattr(self.agents, name)(*args, **fields))

    def store(self, **fields: Any) -> str:
        return str(self.rc.portal.call(self.stores.create(**fields)).id)

    def make(self, name: str = "A", **fields: Any) -> Any:
        return self.create({"name": name, **fields})

    def under(self, agent: str, **fields: Any) -> Any:
        return self.effective(ResponseRequest(agent=agent, **fields), Config())


@pytest.fixture(scope="module")
def house(lasting_home: Any) -> Iterator[BlockingMemoranda]:
    with lasting_home.empty() as opened:
        yield opened


numbers = itertools.count()


@pytest.fixture
def by(house: BlockingMemoranda) -> Callable[..., Blocking]:
    """Whoever acts in a tenant of its own: an admin, or a member when a user is named."""
    own = f"crew{next(numbers)}"

    def actor(user: str | None = None, role: Any = None, tenant: str = own) -> Blocking:
        named = role or ("admin" if user is None else "member")
        return Blocking(house, Subject(tenant_id=tenant, user_id=user, role=named))

    return actor


def outcome(verb: Callable[..., Any], *args: Any) -> str:
    try:
        verb(*args)
    except NotFound:
        return "-"
    except Forbidden:
        return "F"
    return "."


@pytest.mark.parametrize(
    ("actor", "anns", "tenants", "fixed"),
    [
        ({"user": "ann"}, "...", ".FF", ".FF"),
        ({"user": "bob"}, "---", ".FF", ".FF"),
        ({"user": "ann", "role": "reader"}, ".FF", ".FF", ".FF"),
        ({"role": "service"}, "...", "...", ".FF"),
        ({"user": "bob", "role": "service"}, "---", ".FF", ".FF"),
        ({}, "...", "...", ".FF"),
        ({"user": "ann", "tenant": "elsewhere"}, "---", "---", ".FF"),
        ({"tenant": "elsewhere"}, "---", "---", ".FF"),
    ],
)
def test_who_reads_changes_and_deletes(by: Any, actor: Any, anns: str, tenants: str, fixed: str) -> None:
    held = (by("ann").make("Ann's").id, anns), (by().make("Ours").id, tenants), ("agent_first", fixed)
    who = by(**actor)
    listed = {one.id for one in who.list().data}
    for id_, wanted in held:
        assert outcome(who.get, id_) == wanted[0] == outcome(who.under, id_)
        assert (id_ in listed) == (wanted[0] == ".")
        got = outcome(who.update, id_, {"description": "d"}), outcome(who.delete, id_)
        assert "".join(got) == wanted[1:], id_
        assert (outcome(by().get, id_) == "-") == (wanted[2] == ".")
    made = outcome(who.make, "new")
    assert made == ("F" if actor.get("role") == "reader" else ".")


def test_an_unknown_agent_and_anothers_are_told_apart_by_nobody(by: Any) -> None:
    foreign, anns = by(tenant="elsewhere").make("There").id, by("ann").make("Ann's").id
    bob = by("bob")
    for id_ in (foreign, anns, "There", "Ann's", "agent_none", "", "\x00", "\ud800", "' OR 1=1 --"):
        for verb in (bob.get, bob.delete, lambda id_: bob.update(id_, {"name": "n"}), bob.under):
            with pytest.raises(NotFound) as caught:
                verb(id_)
            assert str(caught.value) == f"no agent {id_!r}"
        with pytest.raises(InvalidInput):
            bob.list(after=id_)


def test_a_change_leaves_the_rest_and_null_is_as_new(by: Any) -> None:
    ann = by("ann")
    made = ann.make(
        instructions="i", tools=[function("f")], temperature=0.5, variables={"a": "b"}, metadata={"k": "v"},
        memory={"episodic": True, "min_score": 0.5},
    )  # fmt: skip
    assert made == ann.get(made.id)
    assert (made.user_id, made.read_only, made.created_at == made.updated_at) == ("ann", False, True)
    after = ann.update(made.id, {"name": "B", "temperature": None, "variables": None, "tools": []})
    wanted = {"name": "B", "temperature": None, "variables": {}, "tools": [], "updated_at": after.updated_at}
    assert after == ann.get(made.id) == msgspec.structs.replace(made, **wanted)
    with pytest.raises(InvalidInput, match=r"tempratur.*did you mean `temperature`"):
        ann.update(made.id, {"tempratur": 1})
    for wrong in ({"name": None}, {"name": " "}, {"temperature": 3}, {"variables": {"a b": "c"}}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            ann.update(made.id, wrong)
    assert ann.get(made.id) == after


@pytest.mark.parametrize(
    ("field", "value", "at"),
    [
        ("name", "n" * 257, "name"),
        ("name", "\x00", "name"),
        ("name", "\ud800", "name"),
        ("instructions", "i" * 256_001, "instructions"),
        ("description", 5, "description"),
        ("model", "", "model"),
        ("tools", [function(f"f{n}") for n in range(129)], "tools"),
        ("tools", [{"type": "code_interpreter"}], "tools[0].type"),
        ("tools", [{}], "tools[0].type"),
        ("tools", [function("f"), function("f")], "tools[1]"),
        ("tools", [search("a"), search("b")], "tools[1]"),
        ("tools", [{"type": "memory_search"}, {"type": "vector_memory_search"}], "tools[1]"),
        ("tools", [function("a b")], "tools[0].name"),
        ("tools", [{"type": "function"}], "tools[0].name"),
        ("tools", [{**function("f"), "parameters": []}], "tools[0].parameters"),
        ("tools", [{**function("f"), "parameters": {"d": "\ud800"}}], "tools"),
        ("tools", [{**function("f"), "parameters": {"d": "x" * 300_000}}], "tools"),
        ("tools", [search()], "tools[0].vector_store_ids"),
        ("tools", [search(*(str(n) for n in range(101)))], "tools[0].vector_store_ids"),
        ("tools", [search("")], "tools[0].vector_store_ids[0]"),
        ("tools", [search("a", max_num_results=51)], "tools[0].max_num_results"),
        ("tools", [search("a", ranking_options={"score_threshold": 2})], "tools[0].ranking_options.score_threshold"),
        ("tools", [search("a", filters={"type": "eq", "key": 5, "value": 1})], "tools[0].filters.key"),
        ("tools", [server("s", server_url="ftp://h")], "tools[0].server_url"),
        ("tools", [server("s", headers={"x": 1})], "tools[0].headers"),
        ("tools", [server("s", authorization="***")], "tools[0].authorization"),
        ("tools", [server("s", headers={"x": "***"})], "tools[0].headers.x"),
        ("tools", [server("s", server_url="https://h/<redacted>")], "tools[0].server_url"),
        ("tool_choice", "sometimes", "tool_choice"),
        ("tool_choice", {"name": "f"}, "tool_choice.type"),
        ("temperature", -1, "temperature"),
        ("max_output_tokens", 0, "max_output_tokens"),
        ("text", {"format": "x" * 70_000}, "text"),
        ("memory", {"episodical": True}, "memory.episodical"),
        ("memory", {"min_score": 2}, "memory.min_score"),
        ("memory", {"kinds": ["nope"]}, "memory.kinds[0]"),
        ("variables", {str(n): "" for n in range(65)}, "variables"),
        ("variables", {"a": "x" * 8_193}, "variables.a"),
        ("variables", {"1a": "x"}, "variables.1a"),
        ("metadata", {str(n): "" for n in range(17)}, "metadata"),
        ("metadata", {"a": 5}, "metadata"),
    ],
)  # fmt: skip
@pytest.mark.rows_in("sqlite")
def test_what_is_wrong_is_named(by: Any, field: str, value: Any, at: str) -> None:
    who = by()
    with pytest.raises(InvalidInput) as caught:
        who.create({"name": "A", field: value})
    assert caught.value.field.startswith(at)
    assert [one.id for one in who.list().data] == ["agent_second", "agent_first"]


def test_pages_hold_each_agent_once_the_configured_as_the_oldest(by: Any) -> None:
    ann = by("ann")
    by("bob").make("of bob")
    made = [(ann if n % 2 else by()).make(f"A{n}").id for n in range(5)]
    for order in ("asc", "desc"):
        wanted = ["agent_first", "agent_second", *made][:: 1 if order == "asc" else -1]
        assert [one.id for one in ann.list(order=order).data] == wanted
        for limit in range(1, 9):
            seen, after = [], None
            while True:
                found = ann.list(limit=limit, order=order, after=after)
                seen += [one.id for one in found.data]
                assert found.first_id == found.data[0].id
                if not found.has_more:
                    break
                after = found.last_id
            assert seen == wanted
            for at, id_ in enumerate(wanted):
                back = ann.list(limit=limit, order=order, before=id_)
                assert [one.id for one in back.data] == wanted[max(0, at - limit) : at]
                assert back.has_more == (at > limit)
    for wrong in ({"limit": 0}, {"order": "up"}, {"after": made[0], "before": made[1]}):
        with pytest.raises(InvalidInput):
            ann.list(**wrong)


def test_agents_are_listed_by_name(by: Any) -> None:
    ann = by("ann")
    by("bob").make("Desk")
    mine, _, ours = ann.make("Desk").id, ann.make("desk"), by().make("Desk").id
    assert [one.id for one in ann.list(name="Desk").data] == [ours, mine]
    newest = ann.list(name="Desk", limit=1)
    assert ([one.id for one in newest.data], newest.has_more) == ([ours], True)
    assert [one.id for one in ann.list(name="Desk", after=ours).data] == [mine]
    fixed = ann.get("agent_first")
    again = ann.make(fixed.name).id
    assert [one.id for one in ann.list(name=fixed.name).data] == [again, fixed.id]
    assert [ann.list(name=name).data for name in ("Nobody", "", "De\0sk")] == [[], [], []]


def test_a_request_names_its_agent_by_id_or_by_a_name_that_is_the_only_one(by: Any) -> None:
    ann = by("ann")
    mine, ours = ann.make("Mine").id, by().make("Ours").id
    by("bob").make("Mine")
    for name, id_ in (("Mine", mine), (mine, mine), ("Ours", ours), ("First", "agent_first")):
        assert ann.under(name).agent_id == id_
        assert ann.effective(ResponseRequest(agent_id=name), Config()).request.agent_id == id_
    assert ann.effective(ResponseRequest(agent=mine, agent_id=mine), Config()).agent_id == mine
    assert ann.effective(ResponseRequest(), Config()).agent_id is None
    with pytest.raises(InvalidInput, match="another agent") as caught:
        ann.effective(ResponseRequest(agent=mine, agent_id=ours), Config())
    assert caught.value.field == "agent_id"
    by().make("First")
    for who, name in ((by(), "Mine"), (ann, "First")):
        with pytest.raises(InvalidInput, match=f"several agents are called '{name}'; name one by its id"):
            who.under(name)


def test_a_stored_prompt_is_a_profile(by: Any) -> None:
    agents = by("ann")
    made = agents.create(
        {"name": "prompted", "instructions": "Speak of {{what}} to {{whom}}."}, id="agent_prompted.1"
    )
    assert made.id == "agent_prompted.1"
    with pytest.raises(Conflict, match="agent_prompted"):
        agents.create({"name": "again"}, id=made.id)
    for wrong in ("prompted", "agent_", "agent_a b", "agent_" + "x" * 65):
        with pytest.raises(InvalidInput, match="must be agent_"):
            agents.create({"name": "again"}, id=wrong)
    config = Config()

    def asked(**fields: Any) -> Effective:
        request = convert({"input": "Hi", **fields}, ResponseRequest)
        return agents.effective(request, config)  # type: ignore[no-any-return]

    for name in ("agent_prompted.1", "prompted"):
        found = asked(
            prompt={"id": name, "variables": {"what": "tea", "whom": "Ada"}}, variables={"whom": "Ben"}
        )
        assert (found.agent_id, found.request.instructions) == (made.id, "Speak of tea to Ben.")
    with pytest.raises(NotFound):
        asked(prompt={"id": "pmpt_unknown"})
    for field, prompt, more in (
        ("prompt.version", {"id": "prompted", "version": "2"}, {}),
        ("prompt.id", {"id": "prompted"}, {"agent": "other"}),
        ("prompt.id", {"variables": {}}, {}),
    ):
        with pytest.raises(InvalidInput) as caught:
            asked(prompt=prompt, **more)
        assert caught.value.field == field
    agents.delete(made.id)


def test_tools_nested_as_in_chat_completions_are_taken(by: Any) -> None:
    agents = by("ann")
    nested = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
    made = agents.create(
        {
            "name": "nested",
            "tools": [nested],
            "tool_choice": {"type": "function", "function": {"name": "find"}},
        }
    )
    assert made.tools == [{"type": "function", "name": "find", "parameters": {"type": "object"}}]
    assert made.tool_choice == {"type": "function", "name": "find"}
    agents.delete(made.id)


def test_an_agent_opens_no_store_to_anybody(by: Any) -> None:
    ann, bob, admin, there = by("ann"), by("bob"), by(), by(tenant="elsewhere")
    secret, ours = ann.store(), admin.store(sharing="tenant")
    foreign, open_ = there.store(), there.store(sharing="everyone")
    for who, id_ in ((bob, secret), (bob, foreign), (admin, foreign), (bob, "vs_none"), (bob, "\x00")):
        with pytest.raises(NotFound) as caught:
            who.make(tools=[search(ours, id_)])
        assert str(caught.value) == f"no vector store {id_!r}"
    made = admin.make(tools=[search(secret, ours, open_)]).id
    assert admin.under(made).left_out == ann.under(made).left_out == []
    used = bob.under(made)
    assert used.request.tools == [search(ours, open_)]
    assert used.left_out == [secret]
    mine = bob.make(tools=[search(ours)]).id
    with pytest.raises(NotFound):
        bob.update(mine, {"tools": [search(secret)]})
    assert bob.get(mine).tools == [search(ours)]
    admin.rc.portal.call(admin.stores.delete(ours))
    assert bob.under(made).request.tools == [search(open_)]
    assert bob.under(mine).request.tools is None
    assert bob.update(mine, {"name": "still mine"}).tools == [search(ours)]
    ann.rc.portal.call(ann.stores.update(secret, StoreChange(sharing="tenant")))
    assert bob.under(made).left_out == [ours]


def test_secrets_of_tools_are_used_and_never_shown(by: Any) -> None:
    who = by("ann")
    given = server("s", server_url="https://h/api/hush/mcp", authorization="hush", headers={"x-key": "hush"})
    made = who.make(tools=[given])
    again = who.update(made.id, {"name": "B"})
    shown = [made, again, who.get(made.id), who.get("agent_first"), *who.list().data]
    assert "hush" not in msgspec.json.encode(shown).decode()
    masked = server("s", server_url="https://h/<redacted>", authorization="***", headers={"x-key": "***"})
    assert again.tools == [masked]
    assert who.under(made.id).request.tools == [given]
    assert who.under("First").request.tools[0]["authorization"] == "hush"
    with pytest.raises(InvalidInput, match="stands for a secret"):
        who.update(made.id, {"tools": again.tools})


def test_a_tenant_has_so_many_agents_at_most(by: Any, house: BlockingMemoranda) -> None:
    who = by()
    first = who.make()
    tenant = who.agents.subject.tenant_id
    rows = [(tenant, f"agent_{n}", -n, "n", None, "{}", 0, 0) for n in range(1, MAX_AGENTS)]
    house.inner.core.store.db.write(lambda c: c.many("add_agent", rows), tenant=tenant).result()
    with pytest.raises(QuotaExceeded, match="delete one"):
        who.make()
    who.delete(first.id)
    who.make()


def test_agents_are_read_in_order_from_an_index(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Sequence[Any]]] = []
    select = SqliteConnection.select

    def noted(self: SqliteConnection, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        asked.append((sql, params))
        return select(self, sql, params)

    with memoranda.open(tmp_path, embedder={"url": "hash:16"}) as rc:
        monkeypatch.setattr(SqliteConnection, "select", noted)
        for subject in (Subject(), Subject(user_id="ann", role="member")):
            who = Blocking(rc, subject)
            id_ = who.make(subject.role).id
            who.list(after=id_)
            who.list(order="asc", before=id_)
            who.under(subject.role)
        assert len(asked) == 6
        for sql, params in asked:
            plan = rc.inner.core.store.db.read(
                lambda c, sql=sql, params=params: select(c, f"EXPLAIN QUERY PLAN {sql}", params)
            )
            index = "agents_name" if "name = ?" in sql else "agents_order"
            assert [row[3].split(" (")[0] for row in plan] == [f"SEARCH a USING INDEX {index}"]
