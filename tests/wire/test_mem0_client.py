"""mem0's own clients against a server as users run it, with nothing but another host."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server_process import Stage, staged

pytestmark = pytest.mark.slow
KEYS = [
    {"name": "app", "role": "admin", "tenant": "acme", "key": "key-app"},
    {"name": "other", "role": "admin", "tenant": "other", "key": "key-other"},
]
FETCH = Path(__file__).parents[2] / "scripts" / "mem0_client.py"
FACT = '{"facts": [{"fact": "Alice lives in Lisbon", "messages": [1], "confidence": 0.9}]}'


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with keys of two tenants."""
    with staged(tmp_path_factory.mktemp("mem0") / "data", keys=KEYS) as made:
        yield made


@pytest.fixture(scope="module")
def mem0(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The package, fetched once, with telemetry off and its folder beside the tests."""
    fetched = subprocess.run([sys.executable, FETCH], stdout=subprocess.PIPE, text=True)
    if fetched.returncode:
        pytest.skip("mem0's client could not be fetched; scripts/mem0_client.py does it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEM0_TELEMETRY", "False")
        patch.setenv("MEM0_DIR", str(tmp_path_factory.mktemp("mem0-home")))
        patch.setattr(sys, "path", [*sys.path, fetched.stdout.strip()])
        yield importlib.import_module("mem0")


def texts(answer: Any) -> list[str]:
    return [one["memory"] for one in answer["results"]]


def test_memory_client(stage: Stage, mem0: Any) -> None:
    from mem0.exceptions import MemoryNotFoundError, ValidationError

    client = mem0.MemoryClient(host=stage.url, api_key="key-app")
    stage.says(FACT)
    said = [
        {"role": "user", "content": "I am Alice and I live in Lisbon."},
        {"role": "assistant", "content": "Nice to meet you."},
    ]
    (event,) = client.add(said, user_id="alice", run_id="hello", metadata={"form": 1})["results"]
    assert (event["event"], event["memory"]) == ("ADD", "Alice lives in Lisbon")
    (kept,) = client.add("the lamp is blue", user_id="alice", infer=False, categories=["home"])["results"]

    fact = client.get(event["id"])
    assert (fact["memory"], fact["user_id"], fact["run_id"], fact["metadata"]) == (
        "Alice lives in Lisbon", "alice", "hello", {"form": 1},
    )  # fmt: skip
    alice = {"user_id": "alice"}
    assert texts(client.get_all(filters=alice)) == ["the lamp is blue", "Alice lives in Lisbon"]
    page = client.get_all(filters=alice, page=2, page_size=1)
    assert (page["count"], texts(page), page["next"]) == (2, ["Alice lives in Lisbon"], None)
    found = client.search(
        "Who lives in Lisbon?", filters={"AND": [alice, {"run_id": "hello"}]}, threshold=0.0
    )
    assert texts(found) == ["Alice lives in Lisbon"]
    nowhere = client.search(
        "Lisbon", filters={"AND": [alice, {"NOT": {"run_id": "*"}}]}, top_k=5, threshold=0.0
    )
    assert texts(nowhere) == ["the lamp is blue"]

    assert client.update(kept["id"], text="the lamp is red", metadata={"a": 1})["memory"] == "the lamp is red"
    assert [one["event"] for one in client.history(event["id"])] == ["ADD"]
    client.batch_update([{"memory_id": kept["id"], "text": "the lamp is green"}])
    assert texts(client.get_all(filters={"AND": [alice, {"metadata": {"a": 1}}]})) == ["the lamp is green"]
    assert {(one["type"], one["name"]) for one in client.users()["results"]} == {
        ("user", "alice"),
        ("run", "hello"),
    }
    with pytest.raises(ValidationError, match="keywords"):
        client.search("x", filters={"keywords": {"contains": "lamp"}})
    with pytest.raises(MemoryNotFoundError):
        client.get("nope")
    with pytest.raises(ValueError, match="not known"):
        mem0.MemoryClient(host=stage.url, api_key="wrong")
    other = mem0.MemoryClient(host=stage.url, api_key="key-other")
    assert texts(other.get_all(filters=alice)) == []

    client.batch_delete([{"memory_id": kept["id"]}])
    client.delete(event["id"])
    client.add([{"role": "user", "content": "again"}], user_id="alice", infer=False)
    client.delete_all(user_id="alice")
    assert texts(client.get_all(filters=alice)) == []
    client.add("one more", user_id="bob", infer=False)
    client.delete_users(user_id="bob")
    client.add("the last", agent_id="cook", infer=False)
    client.reset()
    assert client.users()["results"] == []


def test_async_memory_client(stage: Stage, mem0: Any) -> None:
    async def go() -> None:
        async with mem0.AsyncMemoryClient(host=stage.url, api_key="key-other") as client:
            (kept,) = (await client.add("the door is open", user_id="zoe", infer=False))["results"]
            zoe = {"user_id": "zoe"}
            assert texts(await client.search("door", filters=zoe, threshold=0.0)) == ["the door is open"]
            assert (await client.get(kept["id"]))["user_id"] == "zoe"
            await client.update(kept["id"], text="the door is shut")
            assert texts(await client.get_all(filters=zoe)) == ["the door is shut"]
            assert (await client.history(kept["id"]))[0]["new_memory"] == "the door is shut"
            await client.delete_all(user_id="zoe")
            assert texts(await client.get_all(filters=zoe)) == []

    asyncio.run(go())
