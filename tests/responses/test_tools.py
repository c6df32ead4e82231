"""The tools of this house, in a product: what they find and write, for whom, and what the model reads of it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
import pytest

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.config.agent_sections import Responses
from memoranda.errors import EmbedderUnavailable, Forbidden, InvalidInput, MemorandaError, NotFound
from memoranda.knowledge.values import Passage
from memoranda.providers.chat.base import Source
from memoranda.responses.plan import tools_of
from memoranda.responses.tools.base import Result, Tool, Turn
from memoranda.responses.tools.files import NEAREST, FileSearch, fitting
from memoranda.responses.values import MemoryUse
from memoranda.text import prompts, tokens
from memoranda.types import Subject

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]
SETTINGS = Responses(file_min_score=0.0, memory_min_score=0.0)
BOSS = "The boss is Ada Lovelace, she signs every invoice above one thousand euros."
CANTEEN = "The canteen serves soup on Mondays and dumplings on Thursdays. Caféteria hours: eight to three."
NO_WEIGHT = {"embedding_weight": 0, "text_weight": 0}
PARKING = "Parking permits are handed out by the front desk, one for each employee."


@pytest.fixture(scope="module")
def rc() -> Iterator[BlockingMemoranda]:
    with memoranda.open(
        ":memory:", embedder={"url": "hash:64"}, knowledge={"chunk_size": 64, "chunk_overlap": 0}
    ) as held:
        yield held


@pytest.fixture(scope="module")
def run(rc: BlockingMemoranda) -> Callable[[Any], Any]:
    return rc.portal.call


@pytest.fixture
def tenant(numbers: Iterator[int] = itertools.count()) -> str:  # noqa: B008 - one count for all tests
    return f"tenant{next(numbers)}"


class Desk:
    """One tenant of the product, and turns in it."""

    def __init__(self, rc: BlockingMemoranda, tenant: str) -> None:
        self.rc = rc
        self.tenant = tenant
        self.admin = Subject(tenant_id=tenant)

    def by(self, user: str | None, role: str = "member") -> Subject:
        return Subject(tenant_id=self.tenant, user_id=user, role=role)  # type: ignore[arg-type]

    def store(self, *texts: str, subject: Subject | None = None, **attributes: Any) -> str:
        stores = self.rc.inner.as_subject(subject or self.admin).knowledge.stores

        async def make() -> str:
            made = await stores.create(name="notes")
            for at, text in enumerate(texts):
                put = await stores.upload(
                    made.id, text.encode(), f"file {at}.txt", attributes=attributes or None
                )
                assert (await stores.wait_file(made.id, put.id, every=0.01)).status == "completed"
            return made.id

        return str(self.rc.portal.call(make()))

    def turn(self, subject: Subject | None = None, settings: Responses = SETTINGS, **memory: Any) -> Turn:
        return Turn(
            core=self.rc.inner.core,
            subject=subject or self.admin,
            settings=settings,
            session_id="chain1",
            agent_id=memory.pop("agent", None),
            memory=MemoryUse(**memory),
            count=tokens.count,
        )

    def use(self, tool: Tool, turn: Turn, **arguments: Any) -> Result:
        """One call, as the loop makes it."""
        item = tool.begun(msgspec.json.encode(arguments).decode())
        assert item["status"] == "in_progress"
        result: Result = self.rc.portal.call(tool.run(item, arguments, turn))
        assert result.item["id"] == item["id"]
        assert result.item["status"] == "completed"
        return result


@pytest.fixture
def desk(rc: BlockingMemoranda, tenant: str) -> Desk:
    return Desk(rc, tenant)


def made(settings: Responses = SETTINGS, **declared: Any) -> Tool:
    (tool,) = tools_of([declared], settings)
    return tool


def searching(*stores: str, **fields: Any) -> Tool:
    return made(type="file_search", vector_store_ids=list(stores), **fields)


def numbered(result: Result, first: int = 1) -> list[Source]:
    return [msgspec.structs.replace(source, number=n) for n, source in enumerate(result.sources, first)]


def told(result: Result, first: int = 1) -> str:
    return result.text if result.render is None else result.render(numbered(result, first))


# --- file_search -----------------------------------------------------------------------------------


def test_a_file_search_gives_sources_results_and_a_text_to_cite_from(desk: Desk) -> None:
    store = desk.store(BOSS, CANTEEN, topic="house")
    result = desk.use(
        searching(store), desk.turn(), query="who signs an invoice", queries=["the boss", "the boss", " "]
    )
    assert result.item["type"] == "file_search_call"
    assert result.item["id"].startswith("fs_")
    assert result.item["queries"] == ["who signs an invoice", "the boss"]
    assert result.item["results"] is None
    best = result.item["_results"][0]
    assert best.keys() == {
        "file_id",
        "filename",
        "score",
        "text",
        "attributes",
        "page",
        "last_page",
        "heading",
    }
    assert (best["filename"], best["text"], best["attributes"]) == ("file 0.txt", BOSS, {"topic": "house"})
    source = result.sources[0]
    assert (source.number, source.kind, source.text, source.title) == (0, "document", BOSS, "file 0.txt")
    assert source.id == best["file_id"]
    assert result.degraded == []
    text = told(result, 4)
    assert text.startswith(prompts.CITING)
    first, second = (f"{one['file_id']}, score {one['score']:.2f}" for one in result.item["_results"])
    assert f"\n\n[4] file 0.txt ({first})\n{BOSS}\n\n[5] file 1.txt ({second})\n" in text


def test_exactly_the_declared_stores_are_searched(desk: Desk) -> None:
    boss, canteen, parking = desk.store(BOSS), desk.store(CANTEEN), desk.store(PARKING)

    def found(*stores: str) -> set[str]:
        return {source.text for source in desk.use(searching(*stores), desk.turn(), query="the boss").sources}

    assert found(canteen) == {CANTEEN}
    assert found(boss, parking) == {BOSS, PARKING}
    assert found(boss, boss) == {BOSS}


def test_a_passage_that_is_in_several_stores_is_given_once(desk: Desk) -> None:
    one, two = desk.store(BOSS, CANTEEN, PARKING), desk.store(BOSS, CANTEEN)
    for floor in (None, 0):
        tool = searching(
            one, two, max_num_results=3, ranking_options={"ranker": "auto", "score_threshold": floor}
        )
        result = desk.use(tool, desk.turn(settings=Responses(file_min_score=0.0)), query="the boss")
        assert result.sources[0].text == BOSS
        assert sorted(source.text for source in result.sources) == sorted([BOSS, CANTEEN, PARKING])


def test_a_store_of_another_tenant_or_user_answers_as_one_that_is_not_there(
    desk: Desk, rc: BlockingMemoranda
) -> None:
    foreign = Desk(rc, f"{desk.tenant}-other").store(BOSS)
    private = desk.store(BOSS, subject=desk.by("ada"))
    mine = desk.store(CANTEEN, subject=desk.by("bob"))
    turn = desk.turn(desk.by("bob"))
    said = set()
    for gone in (foreign, private, "vs_nowhere"):
        for ask in (
            lambda tool: tool.check(turn),
            lambda tool: tool.run(tool.begun("{}"), {"query": "boss"}, turn),
        ):
            with pytest.raises(NotFound) as caught:
                rc.portal.call(ask(searching(mine, gone)))
            said.add(str(caught.value).replace(gone, "X"))
    assert said == {"no vector store 'X'"}
    rc.portal.call(searching(mine).check(turn))
    assert [one.text for one in desk.use(searching(mine), turn, query="soup").sources] == [CANTEEN]


def test_filters_limit_and_thresholds_are_the_declarations(desk: Desk) -> None:
    store = desk.store(BOSS, CANTEEN, PARKING, lang="en")
    turn = desk.turn(settings=Responses(file_min_score=1.0))
    only = {"type": "eq", "key": "lang", "value": "de"}
    floor = {"ranking_options": {"ranker": "auto", "score_threshold": 0}}
    none = {"ranking_options": {"score_threshold": 1.0}}
    assert desk.use(searching(store, **none), turn, query="the boss").sources == []
    assert len(desk.use(searching(store, **floor), turn, query="the boss").sources) == 3
    assert len(desk.use(searching(store, max_num_results=2, **floor), turn, query="the boss").sources) == 2
    assert len(desk.use(searching(store, filters=None), desk.turn(), query="the boss").sources) == 3
    empty = desk.use(searching(store, filters=only, **floor), turn, query="the boss")
    assert told(empty) == prompts.no_passages()
    assert empty.item["_results"] == []


def test_below_the_configured_floor_the_nearest_are_given_with_a_doubt(desk: Desk) -> None:
    store = desk.store(BOSS, CANTEEN, PARKING, "The lift is out of order.")
    result = desk.use(searching(store), desk.turn(settings=Responses(file_min_score=1.0)), query="the boss")
    assert len(result.sources) == len(result.item["_results"]) == NEAREST
    assert result.sources[0].text == BOSS
    assert told(result).endswith(prompts.UNANSWERED)
    assert result.evidence is not None
    sure = desk.use(searching(store), desk.turn(), query="Who signs every invoice above one thousand euros?")
    assert sure.evidence is not None
    assert sure.evidence.level == "strong"
    assert prompts.UNANSWERED not in told(sure)


def test_the_weights_of_both_sides_are_the_declarations(desk: Desk) -> None:
    store = desk.store("alpha alpha alpha", "beta gamma")
    turn = desk.turn(settings=Responses(file_results=1, file_min_score=0))

    def found(embedding: float, text: float) -> list[str]:
        hybrid = {"hybrid_search": {"embedding_weight": embedding, "text_weight": text}}
        tool = made(turn.settings, type="file_search", vector_store_ids=[store], ranking_options=hybrid)
        return [source.text for source in desk.use(tool, turn, query="beta").sources]

    # To the hash embedder of 64 dimensions, "beta" is nearer to the other text.
    assert found(0, 1) == ["beta gamma"]
    assert found(1, 0) == ["alpha alpha alpha"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"vector_store_ids": []}, "tools[1].vector_store_ids"),
        ({"vector_store_ids": "vs_1"}, "tools[1].vector_store_ids"),
        ({"vector_store_ids": [7]}, "tools[1].vector_store_ids[0]"),
        ({}, "tools[1].vector_store_ids"),
        ({"vector_store_ids": ["vs_1"], "max_num_results": 51}, "tools[1].max_num_results"),
        ({"vector_store_ids": ["vs_1"], "max_num_results": 0}, "tools[1].max_num_results"),
        (
            {"vector_store_ids": ["vs_1"], "filters": {"type": "near", "key": "a", "value": 1}},
            "tools[1].filters.type",
        ),
        ({"vector_store_ids": ["vs_1"], "filters": 7}, "tools[1].filters"),
        (
            {"vector_store_ids": ["vs_1"], "ranking_options": {"score_threshold": 2}},
            "tools[1].ranking_options.score_threshold",
        ),
        (
            {
                "vector_store_ids": ["v"],
                "ranking_options": {"hybrid_search": {"embedding_weight": 0, "text_weight": 0}},
            },
            "tools[1].ranking_options.hybrid_search",
        ),
    ],
)
def test_a_wrong_declaration_is_refused_by_its_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        tools_of([{"type": "web_search"}, {"type": "file_search", **fields}], SETTINGS)
    assert caught.value.field == field


def test_types_that_are_not_known_are_left_alone() -> None:
    declared = [
        {"type": "web_search"},
        {"type": "function", "name": "f"},
        {},
        {"type": "namespace"},
        {"type": 7},
    ]
    assert (
        tools_of([*declared, {"type": "memory_search", "later": True}], SETTINGS)[0].name == "memory_search"
    )


@pytest.mark.parametrize(
    "arguments", [{}, {"query": ""}, {"query": 7}, {"queries": [None, " "]}, {"question": "boss"}]
)
def test_arguments_without_a_query_are_answered_with_what_is_missing(
    desk: Desk, arguments: dict[str, Any]
) -> None:
    tool = searching("vs_1")
    with pytest.raises(MemorandaError, match="query: is missing; say what to look for"):
        desk.rc.portal.call(tool.run(tool.begun("{}"), arguments, desk.turn()))


def test_what_failed_is_said_in_the_item_and_to_the_model() -> None:
    tool = searching("vs_1")
    result = tool.failed(tool.begun("{}"), "It did not answer within 30 seconds.")
    assert (result.item["status"], result.item["_results"]) == ("failed", [])
    assert result.text == "Error: It did not answer within 30 seconds."


def test_without_its_embedder_a_search_goes_by_words_and_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = desk.store(BOSS, CANTEEN)

    async def away(*args: Any) -> Any:
        raise EmbedderUnavailable("switched off")

    monkeypatch.setattr(desk.rc.inner.core.embedder, "embed", away)
    result = desk.use(searching(store), desk.turn(settings=Responses()), query="canteen dumplings")
    assert [source.text for source in result.sources] == [CANTEEN]
    assert result.degraded == ["embedding"]


def test_what_the_model_reads_never_has_more_tokens_than_its_budget(desk: Desk) -> None:
    texts = [f"Rule {n}: " + " ".join(f"clause {n * 31 + i} is void" for i in range(9)) for n in range(12)]
    store = desk.store(*texts)
    sizes = set()
    for budget in (*range(60, 270, 5), 400, 4_000):
        turn = desk.turn(settings=Responses(file_tokens=budget, file_min_score=0))
        result = desk.use(searching(store, max_num_results=20), turn, query="clause void")
        for first in (1, 95, 990):
            assert tokens.count(told(result, first)) <= budget
        assert [one["text"] for one in result.item["_results"]] == [source.text for source in result.sources]
        assert len(result.sources) < 2 or all(source.text in texts for source in result.sources)
        sizes.add(len(result.sources))
    assert {0, 1, 2, 12} <= sizes


def passage(text: str, **fields: Any) -> Passage:
    held: dict[str, Any] = {
        "vector_store_id": "vs_1", "file_id": "file-1", "filename": "a.pdf", "attributes": {}, "score": 0.9,
        "similarity": 0.9, "chunk_id": "c", "chunk_index": 0, "start": 0, "end": 1, "page": None,
        "last_page": None, "heading": None, "title": None,
    }  # fmt: skip
    return Passage(text=text, **{**held, **fields})


def test_a_first_passage_that_is_too_long_is_cut_where_a_character_ends() -> None:
    family = "👩‍👩‍👧 und 日本語 "
    for budget in range(120, 160):
        (kept,) = fitting([passage(family * 60)], budget, tokens.count)
        assert (family * 60).startswith(kept.text)
        rest = (family * 60)[len(kept.text) :]
        assert rest[0] not in "\u200d"
        assert not kept.text.endswith("\u200d")
        block = prompts.passage(999, "a.pdf", kept.text, file_id="file-1", score=0.9)
        said = prompts.passages([block], doubtful=True)
        assert budget - 20 < tokens.count(said) <= budget


def test_a_long_passage_further_down_makes_way_for_a_short_one() -> None:
    short, long_ = passage("Short and good."), passage("word " * 500)
    assert fitting([short, long_, short], 200, tokens.count) == [short, short]
    assert fitting([], 200, tokens.count) == []
    assert fitting([short], 10, tokens.count) == []


def test_a_passage_tells_its_page_heading_file_and_score() -> None:
    where = {"file_id": "file-1", "score": 0.666}
    assert prompts.passage(3, "a\nb.pdf", " It is so. ", "pages 7-8", "Rules\n of\tplay", **where) == (
        "[3] a b.pdf (pages 7-8, Rules of play, file-1, score 0.67)\nIt is so.\n\n"
    )
    assert [prompts.on_pages(*at) for at in ((None, None), (7, None), (7, 7), (7, 8))] == [
        "", "page 7", "page 7", "pages 7-8",
    ]  # fmt: skip
    assert prompts.passage(3, "a.pdf", "It is so.") == "[3] a.pdf\nIt is so.\n\n"


# --- memory ----------------------------------------------------------------------------------------


def remembered(desk: Desk, content: str, **fields: Any) -> str:
    return str(
        desk.rc.portal.call(desk.rc.inner.as_subject(desk.admin).memories.add(content, **fields)).memory.id
    )


def test_a_memory_search_reads_as_it_was_specified(desk: Desk) -> None:
    remembered(desk, "The login uses signed cookies. " * 20, session_id="chain1", source="message")
    remembered(desk, "Login is by fingerprint.", user_id=None)
    result = desk.use(made(type="vector_memory_search"), desk.turn(), query="login cookies")
    item = result.item
    assert (item["type"], item["server_label"], item["name"]) == (
        "mcp_call",
        "memoranda",
        "vector_memory_search",
    )
    assert (item["arguments"], item["error"], item["approval_request_id"]) == (
        '{"query":"login cookies"}',
        None,
        None,
    )
    lines = item["output"].split("\n")
    assert lines[0] == "Found 2 relevant memories:"
    assert lines[2].startswith("1. [Score: 0.")
    shown = lines[2].partition("] ")[2]
    assert len(shown) <= 200
    assert shown.startswith("The login uses signed cookies. The")
    assert shown.endswith("…")
    assert lines[3].startswith("   Source: message, Created: 20")
    assert lines[3].endswith("Z")
    assert lines[5].endswith("Login is by fingerprint.")
    assert lines[6].startswith("   Source: note, Created: ")
    assert [source.kind for source in result.sources] == ["memory", "memory"]
    assert "\n3. [Score: 0." in told(result, 3)


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        (
            {"kind": "message", "role": "user", "metadata": {"speaker": "Priya\nN."}},
            "Priya N., 13 October 2026",
        ),
        ({"kind": "message", "role": "assistant"}, "assistant, 13 October 2026"),
        ({"kind": "message"}, "13 October 2026"),
        ({"kind": "fact"}, "fact since 13 October 2026"),
        ({"kind": "fact", "valid_from": datetime(2026, 3, 2, tzinfo=UTC)}, "fact since 02 March 2026"),
        ({"role": "assistant"}, "note, assistant"),
        ({"source": "mail"}, "mail"),
    ],
)
def test_a_memory_is_titled_with_its_speaker_and_day(desk: Desk, fields: dict[str, Any], title: str) -> None:
    remembered(
        desk,
        "Porto is lovely.",
        session_id="chain1",
        occurred_at=datetime(2026, 10, 13, 9, tzinfo=UTC),
        **fields,
    )
    result = desk.use(made(type="memory_search"), desk.turn(), query="Porto")
    assert [source.title for source in result.sources] == [title.removesuffix(", assistant")]
    assert f"   Source: {title}, Created: " in result.item["output"]


def test_a_memory_is_never_cut_inside_a_character(desk: Desk) -> None:
    remembered(desk, "Family: " + "👩‍👩‍👧" * 60, session_id="chain1")
    (source,) = desk.use(made(type="memory_search"), desk.turn(), query="family").sources
    assert set(source.text.removeprefix("Family: ").removesuffix("…").split("👩‍👩‍👧")) == {""}
    assert len(source.text) <= 200


def test_an_answer_is_cut_without_the_source_that_it_names(desk: Desk) -> None:
    quote = "The harbour is open, " * 8
    text = f"{quote}Ana says. (memory: Ana, 13 October 2026)"
    assert len(text) > 200
    remembered(desk, text, kind="message", role="assistant", session_id="chain1")
    remembered(desk, f"{text}!", kind="message", role="user", session_id="chain1")
    result = desk.use(made(type="memory_search"), desk.turn(), query="harbour")
    texts = {source.title.partition(",")[0]: source.text for source in result.sources}
    assert texts["assistant"] == f"{quote}Ana says."
    assert "(mem" in texts["user"]
    assert told(result).count("(mem") == 2


def test_each_scope_finds_its_own_and_without_one_all_of_the_conversation(desk: Desk) -> None:
    here = (
        {"session_id": "chain1"},
        {"user_id": "ada"},
        {"agent_id": "agent_a"},
        {"channel_id": "general"},
        {},
    )
    there = {"session_id": "chain2"}, {"user_id": "bob"}, {"agent_id": "agent_b"}, {"channel_id": "other"}
    for where in (*here, *there):
        remembered(desk, f"The secret word of {where or 'all'} is swordfish", **{"user_id": None, **where})
    turn = desk.turn(user_id="ada", agent="agent_a", channel_id="general")
    tool = made(type="memory_search")

    def found(**arguments: Any) -> list[str]:
        return sorted(one.text for one in desk.use(tool, turn, query="the secret word", **arguments).sources)

    names = ["session", "user", "agent", "channel", "global"]
    by_scope = {name: found(scope=name) for name in names}
    assert by_scope == {
        name: [f"The secret word of {where or 'all'} is swordfish"]
        for name, where in zip(names, here, strict=True)
    }
    assert found() == sorted(text for texts in by_scope.values() for text in texts)
    assert len(found(limit=2)) == 2
    assert len(found(limit="3")) == 3
    assert len(found(limit=0)) == 1


@pytest.mark.parametrize("role", ["admin", "service", "member"])
def test_nobody_is_told_of_another_users_memories(desk: Desk, role: str) -> None:
    for user in ("ada", "bob", None):
        remembered(desk, f"swordfish of {user} with the agent", user_id=user, agent_id="agent_a")
        remembered(desk, f"swordfish of {user} in the session", user_id=user, session_id="chain1")
    named = {} if role == "member" else {"user_id": "ada"}
    subject = desk.by("ada" if role == "member" else None, role)
    turn = desk.turn(subject, agent="agent_a", **named)
    for arguments in ({}, {"scope": "agent"}, {"scope": "session"}, {"scope": "user"}):
        found = desk.use(made(type="memory_search"), turn, query="swordfish", **arguments).sources
        assert found
        assert not [one.text for one in found if "bob" in one.text]


def test_a_key_of_one_user_is_no_key_for_another(desk: Desk) -> None:
    turn = desk.turn(desk.by("bob"), user_id="ada")
    for tool, arguments in (("memory_search", {"query": "x"}), ("memory_write", {"content": "x"})):
        with pytest.raises(Forbidden, match="acts for 'bob' alone"):
            desk.rc.portal.call(made(type=tool).run(made(type=tool).begun("{}"), arguments, turn))


def test_a_search_counts_as_a_use_and_keeps_to_kinds_and_floor(desk: Desk) -> None:
    id_ = remembered(desk, "swordfish once", session_id="chain1", kind="fact")
    remembered(desk, "swordfish twice", session_id="chain1")
    tool = made(type="memory_search")
    assert [one.id for one in desk.use(tool, desk.turn(kinds=["fact"]), query="swordfish").sources] == [id_]
    assert desk.rc.portal.call(desk.rc.inner.as_subject(desk.admin).memories.get(id_)).access_count == 1
    empty = desk.use(tool, desk.turn(min_score=1.0), query="nothing of the kind")
    assert empty.item["output"] == told(empty) == "Found 0 relevant memories."


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("memory_search", {}, "query: is required"),
        ("memory_search", {"query": 7.5}, "query: must be text"),
        ("memory_search", {"query": "x", "scope": "world"}, "scope: "),
        ("memory_search", {"query": "x", "limit": "many"}, "limit: "),
        (
            "memory_search",
            {"query": "x", "scope": "channel"},
            "scope: no channel is known here; use one of session, global",
        ),
        ("memory_search", {"query": "  "}, "query"),
        ("memory_write", {}, "content: is required"),
        ("memory_write", {"content": " "}, "content: must hold some text"),
        ("memory_write", {"content": "x", "kind": "message"}, "kind: "),
        ("memory_write", {"content": "x", "tags": "a"}, "tags: must be a list"),
        (
            "memory_write",
            {"content": "x", "scope": "user"},
            "scope: no user is known here; use one of session, global",
        ),
    ],
)
def test_wrong_arguments_are_a_sentence_to_act_on(
    desk: Desk, tool: str, arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(MemorandaError) as caught:
        desk.rc.portal.call(made(type=tool).run(made(type=tool).begun("{}"), arguments, desk.turn()))
    assert says in str(caught.value)
    failed = made(type=tool).failed(made(type=tool).begun("{}"), str(caught.value))
    assert failed.item["status"] == "failed"
    assert failed.item["error"]["content"][0]["text"] == str(caught.value)
    assert failed.text == f"Error: {caught.value}"


def test_a_write_is_stored_with_where_it_is_from_and_only_once(desk: Desk) -> None:
    tool = made(type="vector_memory_write")
    turn = desk.turn(desk.by("ada"), agent="agent_a", channel_id="general")
    given = {"content": "Ada prefers tea", "tags": ["drink"], "importance": 3, "kind": "fact"}
    result = desk.use(tool, turn, **given)
    assert (
        result.item["output"] == result.text == "Stored for this user, in every conversation: Ada prefers tea"
    )
    (held,) = desk.rc.portal.call(desk.rc.inner.as_subject(desk.by("ada")).memories.list()).data
    assert (held.content, held.kind, held.tags, held.importance) == ("Ada prefers tea", "fact", ["drink"], 3)
    assert (held.role, held.source, held.source_refs) == ("assistant", "memory_write", [result.item["id"]])
    assert (held.scope, held.user_id, held.session_id, held.agent_id) == ("user", "ada", None, None)
    again = desk.use(tool, turn, **given)
    assert again.text == "Known already for this user, in every conversation: Ada prefers tea"
    found = desk.use(made(type="memory_search"), turn, query="Ada prefers tea").sources
    assert [one.id for one in found] == [held.id]


@pytest.mark.parametrize("role", ["admin", "service", "member"])
def test_a_write_belongs_to_the_scope_and_the_user_it_was_made_for(desk: Desk, role: str) -> None:
    tool = made(type="memory_write")
    named = {} if role == "member" else {"user_id": "ada"}
    turn = desk.turn(
        desk.by("ada" if role == "member" else None, role), agent="agent_a", channel_id="general", **named
    )
    for scope in ("session", "user", "agent", "channel"):
        desk.use(tool, turn, content=f"kept in {scope}", scope=scope)
    if role == "member":
        with pytest.raises(Forbidden, match=r"^scope: .* \(global\) is stored if the user says it"):
            desk.use(tool, turn, content="kept in global", scope="global")
        turn = msgspec.structs.replace(turn, said="Tell all: this is to be kept in global")
    desk.use(tool, turn, content="kept in global", scope="global")
    page = desk.rc.portal.call(desk.rc.inner.as_subject(desk.admin).memories.list(order="asc"))
    ids = [(row.session_id, row.user_id, row.agent_id, row.channel_id) for row in page.data]
    assert ids == [
        ("chain1", "ada", None, None), (None, "ada", None, None), (None, "ada", "agent_a", None),
        (None, "ada", None, "general"), (None, None, None, None),
    ]  # fmt: skip


def test_a_write_for_nobody_known_stays_in_its_conversation(desk: Desk) -> None:
    assert (
        desk.use(made(type="memory_write"), desk.turn(), content="x").text
        == "Stored for this conversation: x"
    )
    tool = made(type="memory_write")
    with pytest.raises(Forbidden):
        desk.rc.portal.call(tool.run(tool.begun("{}"), {"content": "y"}, desk.turn(desk.by("ada", "reader"))))


def test_tools_at_work_together_do_not_disturb_each_other(desk: Desk) -> None:
    store = desk.store(BOSS)
    files, search, write = searching(store), made(type="memory_search"), made(type="memory_write")
    turn = desk.turn()

    async def together() -> list[Result]:
        calls = [
            tool.run(tool.begun("{}"), {"query": "boss", "content": "boss"}, turn)
            for tool in (files, search, write)
        ]
        return await asyncio.gather(*calls)

    assert [one.item["status"] for one in desk.rc.portal.call(together())] == ["completed"] * 3


def test_a_file_search_offers_what_chat_completions_take() -> None:
    offered = FileSearch(["vs_1"], 10).offered("file_search_2")
    assert offered["function"]["name"] == "file_search_2"
    assert offered["function"]["parameters"]["required"] == ["query"]


def test_a_passage_with_the_words_of_the_question_is_given_below_the_floor(desk: Desk) -> None:
    store = desk.store(BOSS, CANTEEN, PARKING, "The lift is out of order since noon.")
    turn = desk.turn(settings=Responses(file_min_score=1.0))
    found = desk.use(searching(store, max_num_results=4), turn, query="Is the lift out of order?").sources
    assert "The lift is out of order since noon." in [source.text for source in found]
    strict = searching(store, ranking_options={"score_threshold": 1.0})
    assert desk.use(strict, turn, query="Is the lift out of order?").sources == []


def test_a_memory_with_the_words_of_the_question_is_found_without_a_floor(desk: Desk) -> None:
    for text in ("swordfish once", "the lift is out of order since noon", "sharks", "whales", "eels"):
        remembered(desk, text, session_id="chain1")
    turn = desk.turn(settings=Responses())
    tool = made(type="memory_search")
    texts = [source.text for source in desk.use(tool, turn, query="Is the lift out of order?").sources]
    assert texts == ["the lift is out of order since noon"]
    assert desk.use(tool, turn, query="giraffes").sources == []
