"""A question, what it is answered from, and what is left of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from memoranda.document_qa.condensing import extracted
from memoranda.document_qa.prompting import NO_PASSAGE, RULES, RULES_HISTORY, RULES_MEMORIES
from memoranda.document_qa.values import AskRequest
from memoranda.errors import InvalidInput
from memoranda.providers.chat.extractive import UNLIKELY
from memoranda.providers.embeddings.base import Embedded, Embedder, Span, Task
from memoranda.text.prompts import UNANSWERED
from support.waiting import until


def test_an_answer_has_documents_and_memories_of_another_session(desk: Any) -> None:
    file = desk.send(
        "POST", "/documents", files={"file": ("manual.md", b"The relief valve opens at 14 bar.")}
    )
    id_ = file.json()["id"]
    assert file.json()["status"] in ("in_progress", "completed")
    desk.settle()
    assert desk.get(f"/documents/{id_}")["status"] == "completed"
    desk.house.says({"text": f"At 14 bar (Doc {id_}/Chunk 0)."}, {"text": "So I said (Memory 1)."})
    first = desk.ask("When does the relief valve open?")
    assert (first["answer"], first["answeredBy"], first["status"]) == (
        f"At 14 bar (Doc {id_}/Chunk 0).", "model", "answered",
    )  # fmt: skip
    assert [
        (one["documentId"], one["chunkIndex"], one["citation"], one["cited"]) for one in first["sources"]
    ] == [(id_, 0, f"Doc {id_}/Chunk 0", True)]
    assert (first["memories"], first["used"], first["usedHistoryTokens"]) == ([], ["documents"], 0)
    assert first["latencyMs"] >= 0

    second = desk.post("/qa/query", {"query": "The relief valve, when did it open again?"})
    desk.settle()
    assert second["sessionId"] != first["sessionId"]
    (memory,) = second["memories"]
    assert set(memory) >= {"id", "source", "preview", "score"}
    assert (memory["source"], memory["cited"], memory["inHistory"]) == ("qa_turn", True, False)
    assert memory["preview"] == f"When does the relief valve open? At 14 bar (Doc {id_}/Chunk 0)."
    assert memory["similarity"] < memory["score"] <= 1.25 * memory["similarity"] + 1e-6
    assert second["used"] == ["documents", "memories"]
    rules, context, asked = desk.house.told()
    assert rules == {"role": "system", "content": f"{RULES}\n{RULES_MEMORIES}"}
    assert desk.get(f"/v1/memories/{memory['id']}")["access_count"] == 1
    documents, memories = context["content"].split("\n\nMemories:\n")
    assert documents == f"Documents:\n[Doc {id_}/Chunk 0] manual.md\nThe relief valve opens at 14 bar."
    assert memories == f"[Memory 1] (qa_turn, score {memory['score']:.2f}) {memory['preview']}"
    assert asked == {"role": "user", "content": "The relief valve, when did it open again?"}


def test_without_history_and_memories_it_is_the_plain_question(desk: Any) -> None:
    """Prompt and result are those of a user who never asked before."""
    mine, theirs = desk.document(), desk.document(by="bob")
    session = desk.ask("What does the boiler run at?")["sessionId"]
    desk.post("/memories", {"content": "The boiler is in the cellar."})
    again = {"sessionId": session, "includeHistory": False, "topKMems": 0}
    heard = desk.ask("What does the boiler run at?", **again)
    told = desk.house.told()
    plain = desk.ask("What does the boiler run at?", by="bob")
    assert told == json.loads(json.dumps(desk.house.told()).replace(theirs, mine))
    assert told[0] == {"role": "system", "content": RULES}
    assert [one["role"] for one in told] == ["system", "user", "user"]
    varies = {
        "id",
        "sessionId",
        "latencyMs",
        "memorySearchMs",
        "createdAt",
        "usedDocumentTokens",  # ids are tokens
        "degraded",  # what was asked before may still wait for its vector
    }
    result, expected = ({k: v for k, v in one.items() if k not in varies} for one in (heard, plain))
    assert result == json.loads(json.dumps(expected).replace(theirs, mine))
    assert (heard["memories"], heard["usedHistoryTokens"], heard["memorySearchMs"]) == ([], 0, None)


def test_history_goes_before_the_question_within_its_budget(desk: Any) -> None:
    session = desk.ask("What is the capital of Norway?")["sessionId"]
    for question in ("And of Sweden?", "And of Finland?"):
        desk.ask(question, sessionId=session)
    whole = desk.ask("Which is the largest?", sessionId=session, topKMems=0)
    rules, context, *said, asked = desk.house.told()
    assert rules["content"] == f"{RULES}\n{RULES_HISTORY}"
    assert context["content"] == NO_PASSAGE
    assert [(one["role"], one["content"]) for one in said][:2] == [
        ("user", "What is the capital of Norway?"), ("assistant", "Answered: What is the capital of Norway?"),
    ]  # fmt: skip
    assert len(said) == 6
    assert asked["content"] == "Which is the largest?"
    messages = desk.get(f"/sessions/{session}/messages", order="desc")["data"]
    budget = messages[0]["tokenCount"] + messages[1]["tokenCount"] + 3
    some = desk.ask("And the oldest?", sessionId=session, topKMems=0, maxHistoryTokens=budget)
    assert [one["content"] for one in desk.house.told()[2:-1]] == [
        "Which is the largest?", "Answered: Which is the largest?",
    ]  # fmt: skip
    assert 0 < some["usedHistoryTokens"] <= budget < whole["usedHistoryTokens"]
    cut = desk.ask("And the nicest?", sessionId=session, topKMems=0, maxHistoryTokens=4)
    assert [one["content"] for one in desk.house.told()[2:-1]] == ["Answered: And …"]
    assert cut["usedHistoryTokens"] <= 4
    assert desk.ask("And?", sessionId=session, topKMems=0, maxHistoryTokens=0)["usedHistoryTokens"] == 0


def test_what_the_history_tells_is_no_memory_beside_it(desk: Any) -> None:
    session = desk.ask("Where is the blue kettle?")["sessionId"]
    found = desk.ask("The blue kettle, where is it?", sessionId=session)
    assert [(one["source"], one["inHistory"]) for one in found["memories"]] == [("qa_turn", True)]
    assert found["used"] == ["history"]
    assert RULES_MEMORIES not in json.dumps(desk.house.told())


def test_a_memory_that_repeats_a_chunk_is_left_out(desk: Any) -> None:
    desk.document("The relief valve opens at fourteen bar.")
    desk.post("/memories", {"content": "The relief valve opens at fourteen bar!"})
    kept = desk.post("/memories", {"content": "The relief valve is behind the boiler, Ada says."})
    found = desk.ask("When does the relief valve open?")
    assert len(found["sources"]) == 1
    assert [one["id"] for one in found["memories"]] == [kept["id"]]
    assert found["memories"][0]["source"] == "manual"


class Heard(Embedder):
    """An embedder that keeps the questions it embeds."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.model, self.dim, self.max_tokens = inner.model, inner.dim, inner.max_tokens
        self.calibration = inner.calibration
        self.questions: list[str] = []

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        self.questions += texts if task == "query" else ()
        return await self.inner.embed(texts, task)

    def split(self, text: str) -> list[Span]:
        return self.inner.split(text)

    def close(self) -> None:
        self.inner.close()


def test_documents_and_memories_share_one_embedding_of_question_and_brief(desk: Any) -> None:
    desk.document()
    desk.post("/memories", {"content": "The boiler is in the cellar."})
    session = desk.ask("Who built the house?")["sessionId"]
    cached = desk.core.embedder
    cached.inner = heard = Heard(cached.inner)
    try:
        found = desk.ask("Where is the boiler?", sessionId=session)
    finally:
        cached.inner = heard.inner
    assert found["sources"]
    assert found["memories"]
    assert heard.questions == ["Where is the boiler?\nWho built the house?\nAnswered: Who built the house?"]


def test_importance_lifts_a_memory_and_no_more_than_by_a_quarter(desk: Any) -> None:
    plain = desk.post("/memories", {"content": "The red pump leaks at the joint.", "importance": 0})
    desk.post("/memories", {"content": "The red pump leaks at the seal.", "importance": 900})
    found = {one["id"]: one for one in desk.ask("Where does the red pump leak?")["memories"]}
    lifted = {id_: one["score"] / one["similarity"] for id_, one in found.items()}
    assert all(1.0 < factor <= 1.25 + 1e-6 for factor in lifted.values())
    assert max(lifted.values()) == pytest.approx(1.25, abs=1e-4)
    assert found[plain["id"]]["importance"] == 0


def test_the_documents_that_are_named_are_searched_alone(desk: Any) -> None:
    one, other = desk.document("The kettle is green."), desk.document("The kettle is red.", "other")
    found = desk.ask("What colour is the kettle?", documentIds=[other], topK=5)
    assert {source["documentId"] for source in found["sources"]} == {other}
    assert desk.ask("What colour is the kettle?", topKDocs=0)["sources"] == []
    assert {d["id"] for d in desk.get("/documents")["data"]} == {one, other}
    assert desk.send("DELETE", f"/documents/{other}").status_code == 200
    assert desk.send("GET", f"/documents/{other}").status_code == 404
    found = desk.ask("What colour is the kettle?")
    assert {source["documentId"] for source in found["sources"]} == {one}
    assert desk.send("POST", "/query", json={"question": "?", "documentIds": [other]}).status_code == 404


def test_memories_of_one_session_alone_when_asked_for(desk: Any) -> None:
    here = desk.ask("Where is the blue kettle kept?")["sessionId"]
    desk.ask("Where is the blue kettle bought?")
    both = desk.ask("The blue kettle, where?", includeHistory=False, sessionId=here)
    assert len(both["memories"]) == 2
    one = desk.ask("The blue kettle, where?", includeHistory=False, sessionId=here, memoryScope="session")
    texts = " ".join(memory["preview"] for memory in one["memories"])
    assert "kept" in texts
    assert "bought" not in texts


def test_a_uuid_begins_a_session_and_goes_on_with_it(desk: Any) -> None:
    id_ = "3F2504E0-4F89-41D3-9A0C-0305E82C3301"
    first = desk.ask("What is the capital of Norway?", sessionId=id_)
    assert (first["sessionId"], first["usedHistoryTokens"]) == (id_, 0)
    assert desk.ask("And of Sweden?", sessionId=id_)["usedHistoryTokens"] > 0
    assert desk.get("/v1/sessions/" + id_)["message_count"] == 4
    assert desk.post("/memories", {"content": "Oslo.", "sessionId": id_})["sessionId"] == id_


def test_diversity_trades_likeness_of_chunks_for_variety(desk: Any) -> None:
    for text in (
        "The boiler runs at twelve bar.",
        "The boiler runs at twelve bar!",
        "The boiler hall is locked.",
    ):
        desk.document(text)

    def found(**fields: Any) -> set[str]:
        asked = desk.ask(
            "What does the boiler run at, twelve bar?", topKDocs=2, includeHistory=False, **fields
        )
        return {one["preview"].rstrip(".!") for one in asked["sources"]}

    assert found() == {"The boiler runs at twelve bar"}
    assert found(diversity=0.9) == {"The boiler runs at twelve bar", "The boiler hall is locked"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "question"),
        ({"question": " "}, "question"),
        ({"question": "a", "query": "b"}, "query"),
        ({"question": "a", "topK": 3, "topKDocs": 4}, "topK"),
        ({"question": "a", "topKMems": 51}, "topKMems"),
        ({"question": "a", "topKDocs": -1}, "topKDocs"),
        ({"question": "a", "maxHistoryTokens": -1}, "maxHistoryTokens"),
        ({"question": "a", "sessionId": ""}, "sessionId"),
        ({"question": "a", "documentIds": []}, "documentIds"),
        ({"question": "a", "memoryScope": "all"}, "memoryScope"),
        ({"question": "a", "topkdocs": 1}, "topkdocs"),
        ({"question": "a", "diversity": 1.5}, "diversity"),
        ({"question": "a" * 10_001}, "question"),
    ],
)
@pytest.mark.rows_in("sqlite")
def test_a_wrong_question_is_refused_by_its_field(desk: Any, body: dict[str, Any], field: str) -> None:
    answer = desk.send("POST", "/query", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)
    assert desk.rows("SELECT 1 FROM query_log WHERE tenant_id = ?", desk.tenant) == []


@pytest.mark.rows_in("sqlite")
def test_the_library_refuses_what_http_refuses(home: Any) -> None:
    with home.open() as rc:
        for field, value in (
            ("topKDocs", 51),
            ("maxHistoryTokens", 32_001),
            ("diversity", 2),
            ("documentIds", []),
        ):
            name = {
                "topKDocs": "top_k_docs",
                "maxHistoryTokens": "max_history_tokens",
                "documentIds": "document_ids",
            }
            with pytest.raises(InvalidInput, match=field):
                rc.upload_ask.ask(AskRequest(question="a", **{name.get(field, field): value}))
        with pytest.raises(InvalidInput, match="question"):
            rc.upload_ask.ask(" ")


def test_quotes_answer_when_the_model_fails(desk: Any) -> None:
    """From the documents, with their citations, without memories; and no memory is made of it."""
    id_ = desk.document()
    desk.post("/memories", {"content": "The relief valve is behind the boiler."})
    desk.house.says({"status": 503, "repeat": True})
    found = desk.ask("When does the relief valve open?")
    assert (found["answeredBy"], found["status"], found["degraded"]) == ("heuristic", "fallback", ["model"])
    assert "relief valve opens" in found["answer"]
    assert f"(Doc {id_}/Chunk " in found["answer"]
    assert (found["memories"], found["used"], found["usedMemoryTokens"]) == ([], ["documents"], 0)
    assert any(source["cited"] for source in found["sources"])
    assert [source for source, _ in desk.memories()] == ["manual"]
    (row,) = desk.get("/logs")["data"]
    assert (row["status"], row["answer"], row["model"]) == ("fallback", found["answer"], "extractive")
    messages = desk.get(f"/sessions/{found['sessionId']}/messages")["data"]
    assert [one["role"] for one in messages] == ["user", "assistant"]


def test_an_answer_says_how_likely_it_is(desk: Any) -> None:
    """The model is told where nothing is likely to answer; nothing at all says so already."""
    desk.document()
    answered = desk.ask("Does the boiler run at twelve bar, and the relief valve open?")
    assert answered["evidence"] == "strong"
    assert answered["evidenceProbability"] >= 0.6
    assert UNANSWERED not in json.dumps(desk.house.told())
    unanswered = desk.ask("What is the capital of Australia?", topKMems=0)
    assert (unanswered["evidence"], unanswered["status"]) == ("none", "answered")
    assert 0 <= unanswered["evidenceProbability"] < 0.25
    assert desk.house.told()[0]["content"].endswith(f"\n\n{UNANSWERED}")
    nothing = desk.ask("What is the capital of Australia?", topKDocs=0, topKMems=0)
    assert (nothing["evidence"], nothing["evidenceProbability"]) == ("none", 0.0)
    assert desk.house.told()[1]["content"] == NO_PASSAGE


def test_a_question_that_was_asked_before_answers_nothing(desk: Any) -> None:
    desk.house.says({"text": "That is not in the documents.", "repeat": True})
    desk.ask("Where is the blue kettle?")
    again = desk.ask("Where is the blue kettle?")
    assert [memory["source"] for memory in again["memories"]] == ["qa_turn"]
    assert again["evidence"] == "none"
    desk.post("/memories", {"content": "The blue kettle is in the pantry."})
    assert desk.ask("Where is the blue kettle?")["evidence"] == "strong"


def test_quotes_that_are_not_likely_to_answer_say_so_and_are_not_remembered(home: Any) -> None:
    with home.open() as rc:
        asking = rc.upload_ask
        document = asking.documents.add_text("valve", "The relief valve opens at fourteen bar.")
        asking.documents.wait(document.id)
        unlikely = asking.ask("What is the capital of Australia?")
        assert unlikely.answer == (
            f"{UNLIKELY}The relief valve opens at fourteen bar. (Doc {document.id}/Chunk 0)"
        )
        assert (unlikely.status, unlikely.evidence, unlikely.used) == ("empty", "none", ["documents"])
        quoted = asking.ask("When does the relief valve open?", session_id=unlikely.session_id)
        assert (quoted.status, quoted.evidence) == ("quoted", "strong")
        until(lambda: asking.memories().data, "a memory of the second question")
        assert [memory.content.partition("\n")[0] for memory in asking.memories().data] == [
            "When does the relief valve open?"
        ]


def test_evidence_counts_the_name_of_the_file(home: Any) -> None:
    with home.open() as rc:
        asking = rc.upload_ask
        document = asking.documents.add_text("Terminverschiebung", "Wir treffen uns am Montag.")
        asking.documents.wait(document.id)
        assert asking.ask("Terminverschiebung").evidence == "strong"


def test_a_summary_by_rules_has_no_answer_that_was_not_likely() -> None:
    turns = [("Who won?", f"{UNLIKELY}Ada won a prize. (Doc file-1/Chunk 0)"), ("Who lost?", "Bob lost.")]
    assert asyncio.run(extracted(turns, 100, None)) == "Who won?\nWho lost? Bob lost."
