"""The whole verb over real rows: what is told, to whom, as of when, at what cost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memoranda.contexts import Context, ContextQuery
from memoranda.errors import EmbedderUnavailable, Forbidden, IndexUnavailable, InvalidInput, NotFound
from memoranda.providers.embeddings.base import Embedded, Embedder, Task
from memoranda.text import prompts

MAY = datetime(2026, 5, 1, 10, tzinfo=UTC)
SAID = (
    "Shall we meet in the tea house tomorrow?",
    "Which one do you mean by that?",
    "The one by the old bridge, with the lanterns.",
    "Fine, I come at noon then.",
    "I bring the seeds of the lavender.",
    "Good, and I bring the spade.",
)
QUESTION = "Where is the old bridge with the lanterns?"


def told(made: Context, part: str) -> list[str]:
    return [piece.id for piece in made.pieces if piece.part == part]


def why(made: Context, id: str) -> tuple[str, str | None]:
    ((reason, of),) = [(one.why, one.of) for one in made.left_out if one.id == id]
    return reason, of


def test_every_part_in_its_place_with_where_it_is_from(garden: Any) -> None:
    fact = garden.memories.add(
        "Mara is afraid of the old bridge.", kind="fact", source_refs=["msg_1"], occurred_at=MAY
    ).memory.id
    session = garden.summary("They met at the old bridge.", tags=["bridge", "lanterns"], channel_id="c")
    store, (file,) = garden.store("The old bridge was built of stone in 1790.")
    made = garden.context(
        "Who is afraid of the old bridge?",
        system="Use what follows.",
        stores=[store],
        recent=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}],
        summary="They spoke of walks.",
    )
    mark = f"Doc {file}/Chunk 0"
    assert made.text == "\n\n".join(
        [
            "Use what follows.",
            prompts.QUOTED,
            f"Documents:\n[{mark}] 0.txt\nThe old bridge was built of stone in 1790.",
            "Previous context:\n- [1] [since 01 May 2026] Mara is afraid of the old bridge.",
            "Relevant earlier session summaries:\n"
            "- [2] [01 May 2026 10:00 to 10:30; topics: bridge, lanterns] They met at the old bridge.",
            "Summary of the earlier conversation:\nThey spoke of walks.",
            "Recent messages:\nuser: Hello\n\nassistant: Good day",
            "Who is afraid of the old bridge?",
        ]
    )
    assert [(one.role, one.content.partition("\n")[0]) for one in made.messages] == [
        ("system", "Use what follows."), ("user", prompts.QUOTED), ("user", "Hello"), ("assistant", "Good day"),
        ("user", "Who is afraid of the old bridge?"),
    ]  # fmt: skip
    cited = {piece.part: piece.citation for piece in made.pieces if piece.citation}
    assert (cited["documents"].mark, cited["documents"].file_id, cited["documents"].chunk_index) == (
        mark,
        file,
        0,
    )
    assert (cited["memories"].mark, cited["memories"].ids) == ("[1]", [fact])
    window = cited["sessions"]
    assert (window.mark, window.session_id, window.ids) == ("[2]", "s", [session])
    assert window.ended_at - window.started_at == timedelta(minutes=30)
    assert made.query == "Who is afraid of the old bridge?\nHello\nGood day"
    assert made.degraded == []


def test_what_a_chunk_says_is_no_memory_too(garden: Any) -> None:
    text = "The ferry leaves from the northern pier every morning except Sundays"
    same = garden.memories.add(text).memory.id
    other = garden.memories.add(text.replace("northern", "southern").replace("morning", "evening")).memory.id
    store, _ = garden.store(text)
    made = garden.context("When does the ferry leave?", stores=[store])
    (chunk,) = told(made, "documents")
    assert why(made, same) == ("covered", chunk)
    assert told(made, "memories") == [other]
    assert "[1]" in made.text
    assert "[2]" not in made.text
    both = garden.context("When does the ferry leave?", stores=[store], distinct=False)
    assert set(told(both, "memories")) == {same, other}
    alone = garden.context("When does the ferry leave?", stores=[store], budgets={"documents": 0})
    assert same in told(alone, "memories"), "a chunk that is not told covers nothing"


def test_a_passage_that_is_in_several_stores_is_in_a_context_once(garden: Any) -> None:
    ferry, bridge = "The ferry leaves from the northern pier.", "The old bridge has lanterns."
    stores = [garden.store(ferry, bridge)[0], garden.store(ferry)[0]]
    made = garden.context("When does the ferry leave?", stores=stores, passages=2)
    assert [piece.text.partition("\n")[2] for piece in made.pieces if piece.part == "documents"] == [
        ferry,
        bridge,
    ]
    both = garden.context("When does the ferry leave?", stores=stores, passages=2, distinct=False)
    assert [piece.text.partition("\n")[2] for piece in both.pieces if piece.part == "documents"] == [
        ferry
    ] * 2


def test_what_was_said_last_is_not_told_as_a_memory(garden: Any) -> None:
    ids = garden.say("The old bridge has lanterns.", "Lanterns on the old bridge, really?", QUESTION)
    recent = [{"role": "user", "content": "The old bridge  has lanterns."}]
    made = garden.context(QUESTION, recent=recent, exclude=[ids[1]])
    assert told(made, "memories") == []
    assert {one.id: one.why for one in made.left_out} == dict.fromkeys(ids, "present")
    known = garden.context(QUESTION, recent=[{"role": "assistant", "content": "x", "id": ids[0]}])
    assert told(known, "memories") == [ids[1]]


def test_neighbours_of_a_hit_are_one_piece_with_it(garden: Any, house: Any) -> None:
    ids = garden.say(*SAID)
    garden.say("Another talk of another day.", channel="d")
    made = garden.context(QUESTION, limit=1, neighbours=1)
    assert made.parts["memories"].text.split("\n") == [
        prompts.MEMORIES,
        "- [1] [01 May 2026] Bob: Which one do you mean by that?",
        "  [01 May 2026] Mara: The one by the old bridge, with the lanterns.",
        "  [01 May 2026] Bob: Fine, I come at noon then.",
    ]
    (piece,) = [piece for piece in made.pieces if piece.part == "memories"]
    assert (piece.id, piece.citation.ids) == (ids[2], ids[1:4])
    two = garden.context("the old bridge, the seeds of the lavender", limit=2, neighbours=1, threshold=0.1)
    (both,) = [piece for piece in two.pieces if piece.part == "memories"]
    assert both.citation.ids == ids[1:], "windows that meet are one"
    few = garden.context(QUESTION, limit=1, neighbours=3, neighbour_tokens=20)
    assert len(few.pieces[0].citation.ids) == 2
    shown = garden.context(QUESTION, limit=1, neighbours=2, exclude=[ids[3]])
    assert shown.pieces[0].citation.ids == ids[:3]
    then = garden.context(QUESTION, limit=1, neighbours=2, as_of=MAY + timedelta(minutes=2))
    assert then.pieces[0].citation.ids == ids[:3]


def test_a_member_is_told_what_it_sees(garden: Any) -> None:
    garden.memories.add("The old bridge is closed, says Ada.", user_id="ada")
    garden.memories.add("The old bridge is haunted, says Ben.", user_id="ben")
    garden.say(
        "Meet me under the lanterns of the old bridge.", "Under which of all the bridges?", user_id="ben"
    )
    for user, theirs, anothers in (("ada", "closed", "haunted"), ("ben", "haunted", "closed")):
        made = garden.context(
            QUESTION,
            user=user,
            neighbours=2,
            scopes=["user:ada", "user:ben", "channel:c", "global"],
        )
        assert theirs in made.text
        assert anothers not in made.text
        assert ("under the lanterns" in made.text) == (user == "ben")
    with pytest.raises(Forbidden):
        garden.context(QUESTION, user="ada", scopes=["all"])
    with pytest.raises(NotFound):
        garden.context(QUESTION, user="ada", stores=["vs_other"])


def test_two_tenants(gardens: Callable[[], Any]) -> None:
    one, other = gardens(), gardens()
    for at, garden in enumerate((one, other)):
        garden.memories.add(f"The combination of tenant {at} is amber {at}.", session_id="s")
        garden.say(f"The combination of tenant {at} is amber {at}, I say.", "Not so loud, please.")
        garden.summary(f"They agreed on amber {at}.")
    store, _ = one.store("The combination is written as amber 0.")
    made = other.context(
        "What is the combination amber?", scopes=["session:s", "channel:c", "global"], neighbours=1
    )
    assert "amber 1" in made.text
    assert "amber 0" not in made.text + repr(made)
    with pytest.raises(NotFound):
        other.context("combination", stores=[store])


def test_as_of_a_date(garden: Any) -> None:
    old = garden.memories.add(
        "Mara lives by the old bridge.",
        kind="fact",
        occurred_at=MAY,
        valid_from=MAY,
        invalid_at=MAY + timedelta(days=9),
    ).memory.id
    new = garden.memories.add(
        "Mara lives by the new bridge now.", kind="fact", occurred_at=MAY + timedelta(days=9)
    ).memory.id
    assert told(garden.context("Where does Mara live?"), "memories") == [new]
    assert told(garden.context("Where does Mara live?", as_of=MAY + timedelta(days=2)), "memories") == [old]


def test_at_most_three_summaries_and_the_beginning_of_each(garden: Any, house: Any) -> None:
    long = "The bridge was spoken of at length. " * 40
    for at in range(5):
        garden.summary(f"{at} {'xyzuv'[at] * 9} {long}", session=f"s{at}")
    made = garden.context("What of the bridge?", budget=4_000)
    pieces = [piece for piece in made.pieces if piece.part == "sessions"]
    assert len(pieces) == 3
    assert all(
        piece.text.endswith("…") and len(piece.text.partition("] [")[2].partition("] ")[2]) <= 420
        for piece in pieces
    )
    assert told(garden.context("What of the bridge?", sessions=0), "sessions") == []
    assert told(garden.context("What of the bridge?", kinds=["note"]), "sessions") == []


def test_one_embedding_for_everything(garden: Any) -> None:
    """Also with no cache of questions behind it, and one failure, not three."""
    garden.memories.add("The old bridge has lanterns.")
    garden.summary("They met at the old bridge.")
    store, _ = garden.store("The old bridge was built in 1790.")
    real, asked = garden.core.embedder, []

    class Noting(Embedder):
        model, dim, max_tokens, calibration = real.model, real.dim, real.max_tokens, real.calibration
        away = False

        async def embed(self, texts: Any, task: Task = "document") -> Embedded:
            asked.extend(texts)
            if self.away:
                raise EmbedderUnavailable("switched off")
            made: Embedded = await real.inner.embed(texts, task)
            return made

        def split(self, text: str) -> Any:
            return real.split(text)

    try:
        garden.core.embedders.current = noting = Noting()
        made = garden.context(QUESTION, stores=[store], recent=[{"role": "user", "content": "a walk"}])
        assert asked == [f"{QUESTION}\na walk"] == [made.query]
        assert made.degraded == []
        noting.away = True
        words = garden.context(QUESTION, stores=[store])
    finally:
        garden.core.embedders.current = real
    assert len(asked) == 2
    assert words.degraded == ["embedding"]
    assert {"documents", "memories", "sessions"} <= words.parts.keys()


def test_an_index_that_is_away_is_said(garden: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise IndexUnavailable("the index is away")

    garden.memories.add("The old bridge has lanterns.")
    monkeypatch.setattr(garden.core.recall._gathering, "gather", away)
    made = garden.context(QUESTION, system="Be kind.")
    assert made.degraded == ["memory"]
    assert list(made.parts) == ["system", "question"]


def test_what_is_told_is_counted_as_used_when_that_is_asked_for(garden: Any) -> None:
    note = garden.memories.add("The old bridge has lanterns.").memory.id
    session = garden.summary("They met at the old bridge.")
    far = garden.memories.add("The old bridge has lanterns at length. " * 200).memory.id
    garden.context(QUESTION)
    made = garden.context(QUESTION, count_access=True, budgets={"memories": 30})
    assert why(made, far) == ("budget", None)
    counts = {id_: garden.memories.get(id_).access_count for id_ in (note, session, far)}
    assert counts == {note: 1, session: 1, far: 0}


def test_variety_among_memories(garden: Any) -> None:
    close = ["The old bridge has lanterns at night", "The old bridge has lanterns at night, and moths"]
    garden.memories.add_many([*close, "The bridge guard is called Otto"])
    plain = garden.context("the old bridge with lanterns at night", limit=2)
    varied = garden.context("the old bridge with lanterns at night", limit=2, diversity=0.7)
    assert "Otto" not in plain.text
    assert "Otto" in varied.text
    assert [piece.scores["marginal_rank"] for piece in varied.pieces if piece.part == "memories"] == [1, 2]


def test_a_floor_says_what_it_kept_away(garden: Any) -> None:
    near = garden.memories.add("Where is the old bridge with lanterns").memory.id
    far = garden.memories.add("Where Otto keeps his spade is a secret of the old man").memory.id
    made = garden.context(QUESTION, threshold=0.6, explain=True)
    assert told(made, "memories") == [near]
    assert why(made, far) == ("floor", None)
    assert made.pieces[0].explanation is not None
    assert made.pieces[0].explanation.rank_after == made.pieces[0].scores["rank_after"] == 1


def test_where_the_conversation_is_says_where_to_look(garden: Any) -> None:
    for place in ("session", "channel", "agent", "user"):
        garden.memories.add(f"The old bridge of the {place}.", **{f"{place}_id": "x"})
    garden.memories.add("The old bridge of everybody.")
    made = garden.context(QUESTION, session_id="x", agent_id="y")
    assert {one.split()[-1] for one in made.parts["memories"].text.split("\n")[1:]} == {
        "session.",
        "everybody.",
    }
    assert {piece.scores["scope_weight"] for piece in made.pieces if piece.part == "memories"} == {1.0, 0.5}


@pytest.mark.rows_in("sqlite")
def test_what_is_there_often_does_not_hide_the_rest(garden: Any) -> None:
    """Looked for once more, deeper, where the best say the same again and again."""
    text = "Where the old bridge with lanterns is"
    garden.memories.add_many([f"{text}{'.' * n}" for n in range(30)])
    others = garden.memories.add_many(["The bridge guard is called Otto", "Lanterns burn oil"])
    made = garden.context(QUESTION, limit=3, threshold=0.0)
    assert set(told(made, "memories")) > {one.memory.id for one in others}
    assert len([one for one in made.left_out if one.why == "duplicate"]) == 29


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"query": " "}, "query"),
        ({"budget": 0}, "budget"),
        ({"limit": 201}, "limit"),
        ({"neighbours": 11}, "neighbours"),
        ({"budgets": {"memories": -1}}, "budgets.memories"),
        ({"budgets": {"memory": 1}}, "budgets.memory"),
        ({"diversity": 2.0}, "diversity"),
        ({"threshold": 2.0}, "threshold"),
        ({"source": "origin:mail"}, "source"),
        ({"stores": ["x"], "passage_threshold": 2.0}, "passage_threshold"),
        ({"stores": ["x"], "passage_filters": {"a": ["b"] * 10_001}}, "passage_filters.a"),
        ({"recent": [{"role": "tool", "content": "x"}]}, "recent[0].role"),
        ({"session_id": "s", "scopes": ["global"]}, "session_id"),
        ({"sesion_id": "s"}, "sesion_id"),
    ],
)
def test_what_is_wrong_is_named(garden: Any, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        garden.context(**{"query": "bridge", **fields})
    assert caught.value.field.startswith(field)


def test_a_query_goes_alone(garden: Any) -> None:
    asked = ContextQuery(query="bridge", budget=100)
    assert garden.context(asked).text == "bridge"
    with pytest.raises(InvalidInput, match="ContextQuery"):
        garden.context(asked, budget=5)


# --- the conversation, out of the log ------------------------------------------------------------------


def test_what_was_said_last_comes_from_the_log(garden: Any) -> None:
    sessions = garden.rc.as_subject(garden.by("mara")).sessions
    said = [{"content": f"line {n}", "role": "user" if n % 2 else "assistant"} for n in range(14)]
    kept = sessions.observe([*said, {"content": "{}", "role": "tool"}], session_id="talk")
    made = garden.context("What is next?", user="mara", session_id="talk")
    assert made.parts["recent"].text.split("\n\n")[-2:] == ["assistant: line 12", "mara: line 13"]
    assert told(made, "recent") == [one.message.id for one in kept[5:14]]
    assert {one.id for one in made.left_out if one.why == "present"} >= set(told(made, "recent")) & {
        one.id for one in made.left_out
    }
    assert "recent" not in garden.context("What is next?", user="mara", session_id="talk", recent=[]).parts
    assert "recent" not in garden.context("What is next?", user="mara").parts
    given = garden.context(
        "What is next?", user="mara", session_id="talk", recent=[{"role": "user", "content": "Hello"}]
    )
    assert given.parts["recent"].text == "Recent messages:\nuser: Hello"


def test_what_was_said_last_before_a_moment(garden: Any) -> None:
    sessions = garden.rc.as_subject(garden.by("mara")).sessions
    roles = ("user", "model", "bot", "tool", "human")
    said = [
        {"content": f"line {n}", "role": roles[n % 5], "occurred_at": MAY + timedelta(minutes=n)}
        for n in range(40)
    ]
    sessions.observe(said, session_id="talk")
    made = garden.context(
        "What is next?", user="mara", session_id="talk", as_of=MAY + timedelta(minutes=12, seconds=30)
    )
    assert made.parts["recent"].text.split("\n\n")[-3:] == [
        "mara: line 10",
        "assistant: line 11",
        "assistant: line 12",
    ]


def test_nobody_sees_the_last_messages_of_anothers_session(garden: Any) -> None:
    garden.rc.as_subject(garden.by("mara")).sessions.observe([{"content": "a secret"}], session_id="hers")
    for user in ("bob", None):
        made = garden.context("What was said?", user=user, session_id="hers")
        assert ("recent" in made.parts) is (user is None)
    assert garden.context("What was said?", user="mara", session_id="hers").parts["recent"]
    assert "recent" not in garden.context("What was said?", user="mara", session_id="none").parts


def test_an_open_session_of_the_channel_is_continued(garden: Any) -> None:
    garden.rc.as_subject(garden.by()).sessions.observe([{"content": "the gate is open"}], channel_id="gate")
    made = garden.context("And now?", channel_id="gate")
    assert made.parts["recent"].text == "Recent messages:\nuser: the gate is open"
    past = garden.context("And now?", channel_id="gate", as_of=MAY)
    assert "recent" not in past.parts


def test_a_users_own_open_session_of_the_channel_is_continued(garden: Any) -> None:
    for user in ("mara", "bob"):
        said = [{"content": f"{user} has the key"}]
        garden.rc.as_subject(garden.by(user)).sessions.observe(said, channel_id="keys")
        made = garden.context("Who has it?", user=user, channel_id="keys")
        assert made.parts["recent"].text == f"Recent messages:\n{user}: {user} has the key"
    assert "recent" not in garden.context("Who has it?", user="eve", channel_id="keys").parts
    garden.rc.as_subject(garden.by()).sessions.observe([{"content": "the key is lost"}], channel_id="keys")
    assert garden.context("Who has it?", user="mara", channel_id="keys").parts["recent"].text.endswith("lost")


def test_facts_carry_their_dates_and_a_message_is_not_told_beside_its_fact(garden: Any) -> None:
    (said,) = garden.say("I am afraid of the old bridge.")
    bonn = garden.memories.add("Mara lives in Bonn", kind="fact", user_id="mara", occurred_at=MAY).memory.id
    later = {"user_id": "mara", "occurred_at": MAY + timedelta(days=9), "replaces": [bonn]}
    garden.memories.add("Mara lives in Oslo", kind="fact", **later)
    fact = garden.memories.add("Mara is afraid of the old bridge", kind="fact", source_refs=[said]).memory
    today = f"{fact.occurred_at:%d %B %Y}"
    now = garden.context("Where does Mara live?", kinds=["fact"], limit=1, user="mara")
    assert now.parts["memories"].text.endswith("[1] [since 10 May 2026] Mara lives in Oslo")
    then = garden.context(
        "Where does Mara live?", kinds=["fact"], limit=1, user="mara", as_of=MAY + timedelta(days=1)
    )
    assert then.parts["memories"].text.endswith("[1] [01 May 2026 to 10 May 2026] Mara lives in Bonn")
    made = garden.context("Who is afraid of the bridge?", threshold=0.0)
    assert f"[since {today}] Mara is afraid of the old bridge" in made.text
    assert why(made, said) == ("duplicate", fact.id)


def test_as_many_memories_as_fit_are_told(garden: Any) -> None:
    garden.memories.add_many([f"the bridge number {n} is old and made of stone" for n in range(60)])
    few = garden.context("the old bridge of stone", budget=300)
    many = garden.context("the old bridge of stone", budget=2_000)
    assert 250 <= few.tokens <= 300
    assert len(told(few, "memories")) < len(told(many, "memories")) == 45
    assert len(told(garden.context("the old bridge of stone", limit=3), "memories")) == 3


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        ("session_summary", {"started_at": 1_790_000_000_000_000_000}),
        ("session_summary", {"started_at": -(10**17)}),
        ("session_summary", {"ended_at": "0001-01-01T00:00:00+00:01"}),
        ("session_summary", {"ended_at": "9999-12-31T23:59:59-23:59"}),
        ("rollup", {"week": "9999-W52"}),
    ],
)
def test_a_date_that_no_calendar_has_is_not_known(garden: Any, kind: str, metadata: dict[str, Any]) -> None:
    garden.memories.add("They met at the old bridge.", kind=kind, metadata=metadata)
    assert "They met at the old bridge." in garden.context("Where is the old bridge?").text


def test_a_rollup_covers_its_week(garden: Any) -> None:
    late = datetime(2026, 5, 3, 23, 59, tzinfo=UTC)
    garden.memories.add(
        "They met at the old bridge.", kind="rollup", occurred_at=late, metadata={"week": "2026-W18"}
    )
    made = garden.context("Who met at the old bridge?")
    assert "[27 April 2026 00:00 to 03 May 2026 23:59] They met" in made.parts["sessions"].text
    (piece,) = [piece for piece in made.pieces if piece.part == "sessions"]
    assert (piece.citation.started_at.day, piece.citation.ended_at.day) == (27, 3)
