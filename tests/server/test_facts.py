"""Facts over HTTP: joined, told of, taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

TEXTS = ["The project antwort is in Go.", "the project antwort is in Go"]


@pytest.mark.rows_in("sqlite")
def test_facts_are_joined_told_of_and_taken_back(opened: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": json.dumps({"facts": [1, 2], "text": TEXTS[0]}), "repeat": True}]))
    house = opened(model={"url": f"scripted:{script}"}, facts={"reconcile": False})
    ids = [house.add(text, kind="fact", tags=[str(n)], id=f"fact{n}") for n, text in enumerate(TEXTS)]

    def ask(method: str, path: str, **body: Any) -> Any:
        answer = house.request(method, f"/v1/memories/{path}", json=body if method == "POST" else None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    done = ask("POST", "consolidate", scopes=["all"])
    (merged,) = done["merged"]
    assert (done["object"], done["left"], merged["consolidates"]) == ("memory.consolidation", 0, ids)
    assert ask("POST", "consolidate")["merged"] == []
    whole = ask("GET", merged["id"])
    assert (whole["content"], whole["tags"]) == (TEXTS[0], ["0", "1"])
    history = ask("GET", f"{ids[0]}/history")
    assert history["object"] == "memory.history"
    assert {one["memory"]["id"] for one in history["data"]} == {*ids, merged["id"]}
    first = next(one for one in history["data"] if one["memory"]["id"] == ids[0])
    assert (first["object"], first["live"], first["changes"][0]["what"]) == (
        "memory.version",
        False,
        "consolidated",
    )
    sure = ask("POST", f"{merged['id']}/confirm")
    assert (sure["object"], sure["id"], sure["confidence"]) == ("memory", merged["id"], 1.0)
    undone = {"object": "memory.undone", "id": ids[1], "undone": merged["id"], "restored": ids}
    assert ask("POST", f"{ids[1]}/undo") == undone
    assert ask("POST", f"{ids[1]}/undo") == undone
    listed = house.request("GET", "/v1/memories", params={"kinds": "fact", "order": "asc"}).json()["data"]
    assert [row["content"] for row in listed] == TEXTS
    for method, path in (
        ("GET", "mem_none/history"),
        ("POST", "mem_none/undo"),
        ("POST", "mem_none/confirm"),
    ):
        assert house.request(method, f"/v1/memories/{path}").status_code == 404
    assert house.request("POST", "/v1/memories/consolidate", json={"kind": "fact"}).status_code == 400
