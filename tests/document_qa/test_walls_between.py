"""Whose is whose: two users of a tenant, two tenants, and those who act for others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

SECRET = "the safe opens with seven amber owls"


def test_nothing_of_one_user_reaches_another(desk: Any, house: Any, numbers: Any) -> None:
    """Documents, sessions, rows of the log and memories of one user are unknown to another, whatever is asked."""
    document = desk.document(f"Remember: {SECRET}.")
    asked = desk.ask(f"Is it true that {SECRET}?")
    note = desk.post("/memories", {"content": f"Note: {SECRET}."})["id"]
    elsewhere = type(desk)(house, f"t{next(numbers)}")
    for stranger in (lambda *a, **o: desk.send(*a, by="bob", **o), elsewhere.send):
        assert "amber" not in stranger("POST", "/query", json={"question": "What opens the safe?"}).text
        for kind, known in (
            ("documents", document), ("sessions", asked["sessionId"]), ("logs", asked["id"]), ("memories", note),
        ):  # fmt: skip
            assert "amber" not in stranger("GET", f"/{kind}").text
            for method in ("GET", "DELETE"):
                theirs = stranger(method, f"/{kind}/{known}")
                nobodys = stranger(method, f"/{kind}/{known[:-3]}zzz")
                assert theirs.status_code == nobodys.status_code
                assert theirs.status_code in (404, 405)
                assert theirs.text.replace(known, "") == nobodys.text.replace(f"{known[:-3]}zzz", "")
        for field in ({"sessionId": asked["sessionId"]}, {"documentIds": [document]}):
            assert stranger("POST", "/query", json={"question": "The safe?", **field}).status_code == 404
        found = stranger("GET", "/logs", params={"after": asked["id"]})
        assert (found.status_code, found.json()["error"]["param"]) == (400, "after")
    desk.settle()
    assert "amber" not in str(house.told())
    assert len(desk.get("/logs")["data"]) == 1


def test_a_uuid_names_a_session_for_each_user_alone(desk: Any, house: Any, numbers: Any) -> None:
    """Whoever names a UUID that another user or tenant has already hears what it would hear if nobody had it."""
    taken, free = "7d1f8a4e-0c2b-4f6d-9a3e-5b8c1d2e3f40", "0d1f8a4e-0c2b-4f6d-9a3e-5b8c1d2e3f41"
    desk.ask(f"Is it true that {SECRET}?", sessionId=taken)
    elsewhere = type(desk)(house, f"t{next(numbers)}")
    for stranger, by in ((desk, "bob"), (desk, "app"), (elsewhere, "ada")):
        heard = {}
        for id_ in (taken, free):
            assert stranger.send("GET", f"/sessions/{id_}", by=by).status_code == 404
            note = {"content": "a", "sessionId": id_}
            assert stranger.send("POST", "/memories", json=note, by=by).status_code == 404
            first = stranger.ask("What opens the safe?", by=by, sessionId=id_)
            second = stranger.ask("And the door?", by=by, sessionId=id_)
            assert [one["sessionId"] for one in (first, second)] == [id_, id_]
            assert second["usedHistoryTokens"] > 0
            told = stranger.get(f"/sessions/{id_}", by=by)
            assert (told["id"], told["messageCount"], len(told["messages"]["data"])) == (id_, 4, 4)
            assert len(stranger.get("/logs", by=by, sessionId=id_)["data"]) == 2
            assert "amber" not in str((first, second, told))
            heard[id_] = [one["role"] for one in told["messages"]["data"]]
        assert heard[taken] == heard[free]
        listed = stranger.get("/sessions", by=by, order="asc")
        assert [one["id"] for one in listed["data"]] == [taken, free]
        assert [one["id"] for one in stranger.get("/sessions", by=by, order="asc", after=taken)["data"]] == [
            free
        ]
        assert {one["sessionId"] for one in stranger.get("/logs", by=by)["data"]} == {taken, free}
        assert {one["sessionId"] for one in stranger.get("/memories", by=by)["data"]} <= {taken, free, None}
        assert stranger.send("DELETE", f"/sessions/{taken}", by=by).status_code == 200
        assert stranger.send("GET", f"/sessions/{taken}", by=by).status_code == 404
        assert len(stranger.get("/logs", by=by, sessionId=taken)["data"]) == 2
        stranger.send("DELETE", f"/sessions/{free}", by=by)
    assert desk.get(f"/sessions/{taken}")["messageCount"] == 2
    assert desk.send("POST", "/query", json={"question": "a", "sessionId": "no-uuid"}).status_code == 404


def test_an_admin_sees_the_log_of_all_and_a_reader_its_own(desk: Any) -> None:
    desk.ask("Ada's question?")
    desk.ask("Bob's question?", by="bob")
    desk.ask("Nobody's question?", by="admin")
    listed = desk.get("/logs", by="admin", order="asc")["data"]
    assert [(one["userId"], one["question"]) for one in listed] == [
        ("ada", "Ada's question?"), ("bob", "Bob's question?"), (None, "Nobody's question?"),
    ]  # fmt: skip
    assert [one["question"] for one in desk.get("/logs", by="looker")["data"]] == ["Ada's question?"]
    assert len(desk.get("/sessions", by="admin")["data"]) == 3
    assert desk.send("POST", "/query", by="looker", json={"question": "May I?"}).status_code == 403
    first = desk.get("/logs", by="admin", order="asc", limit=1)
    assert first["hasMore"]
    rest = desk.get("/logs", by="admin", order="asc", after=first["lastId"])["data"]
    assert [one["id"] for one in first["data"] + rest] == [one["id"] for one in listed]
    assert desk.get(f"/logs/{listed[0]['id']}") == listed[0]
    assert desk.send("GET", f"/logs/{listed[1]['id']}").status_code == 404


def test_a_service_asks_for_the_user_it_names(desk: Any) -> None:
    document = desk.document("The kettle is green.", by="app", userId="ada")
    asked = desk.ask("What colour is the kettle?", by="app", userId="ada")
    assert [source["documentId"] for source in asked["sources"]] == [document]
    assert [one["id"] for one in desk.get("/sessions")["data"]] == [asked["sessionId"]]
    assert [source for source, _ in desk.memories()] == ["qa_turn"]
    assert desk.get("/documents", by="app")["data"] == []
    assert len(desk.get("/documents", by="app", userId="ada")["data"]) == 1
    assert desk.get("/memories", by="admin")["data"] == []
    assert len(desk.get("/memories", by="admin", userId="ada")["data"]) == 1
    answer = desk.send("POST", "/query", by="bob", json={"question": "And?", "userId": "ada"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    form = {"files": {"file": ("kettle.txt", b"The kettle is loud.")}, "data": {"userId": "bob"}}
    assert desk.send("POST", "/documents", by="app", **form).status_code == 200
    assert len(desk.get("/documents", by="bob")["data"]) == 1


def test_documents_that_come_at_once_end_up_together(desk: Any) -> None:
    def send(n: int) -> None:
        desk.send("POST", "/documents", json={"title": f"note {n}", "text": "The kettle is green."})

    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(desk.get("/documents")["data"]) == 4
    assert len(desk.rows("SELECT id FROM vector_stores WHERE tenant_id = ?", desk.tenant)) == 1
    (store,) = desk.rows("SELECT id FROM vector_stores WHERE tenant_id = ?", desk.tenant)[0]
    assert desk.send("DELETE", f"/v1/vector_stores/{store}").status_code == 200
    assert desk.get("/documents")["data"] == []
    assert desk.document("The kettle is back.")
    assert len(desk.ask("Where is the kettle?")["sources"]) == 1


@pytest.mark.parametrize("how", [{"text": "amber owls"}, {"scopes": ["user:ada"]}, {"ids": None}])
def test_what_is_forgotten_is_in_the_log_no_more(desk: Any, how: dict[str, Any]) -> None:
    asked = desk.ask(f"Is it true that {SECRET}?")
    desk.ask("Bob's question?", by="bob")
    if "ids" in how:
        how = {"ids": [f"{asked['id']}.question", f"{asked['id']}.answer"]}
    receipt = desk.send("POST", "/v1/memories/forget", json=how)
    assert receipt.status_code == 200, receipt.text
    (row,) = desk.rows("SELECT question, answer, status FROM query_log WHERE id = ?", asked["id"])
    assert row == ("", "", "answered")
    for table in ("query_log", "messages", "memories", "jobs"):
        assert "amber" not in str(desk.rows(f"SELECT * FROM {table} WHERE tenant_id = ?", desk.tenant))
    assert desk.rows(
        "SELECT question FROM query_log WHERE user_id = 'bob' AND tenant_id = ?", desk.tenant
    ) == [("Bob's question?",)]
