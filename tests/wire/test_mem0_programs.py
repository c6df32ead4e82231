"""mem0's client for Node and its command line, in both languages, against a server as users run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server_process import Stage, staged

from .test_sdk_node import SDKS, cases, missing

KEYS = [{"name": "app", "role": "admin", "tenant": "acme", "key": "key-app"}]
FACT = '{"facts": [{"fact": "Eve lives in Lisbon", "messages": [1], "confidence": 0.9}]}'
WITHOUT_NODE = pytest.mark.skipif(missing() is not None, reason=str(missing()))
PROGRAMS = {
    "python": [sys.executable, "-m", "mem0_cli"],
    "node": ["node", str(SDKS / "node_modules" / "@mem0" / "cli" / "dist" / "index.js")],
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with a key."""
    with staged(tmp_path_factory.mktemp("mem0") / "data", keys=KEYS) as made:
        yield made


def environment(stage: Stage, home: Path) -> dict[str, str]:
    """Where the programs find the server, with telemetry off and their configuration beside the tests."""
    said = {"MEM0_BASE_URL": stage.url, "MEM0_API_KEY": "key-app", "MEM0_TELEMETRY": "false"}
    return {**os.environ, **said, "MEMORANDA_URL": stage.url, "HOME": str(home), "MEM0_DIR": str(home)}


@WITHOUT_NODE
def test_the_client_for_node(stage: Stage, tmp_path: Path) -> None:
    stage.says(FACT)
    made = subprocess.run(
        ["node", "mem0.mjs"], cwd=SDKS, env=environment(stage, tmp_path), capture_output=True, text=True, timeout=60
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    ended = {one["name"]: one["error"] for one in map(json.loads, made.stdout.splitlines())}
    assert not any(ended.values()), ended
    assert sorted(ended) == sorted(cases("mem0.mjs"))


@pytest.mark.parametrize(
    # The one for Node ends five seconds after its answer, when a timer of its own has run out.
    "program",
    ["python", pytest.param("node", marks=[WITHOUT_NODE, pytest.mark.slow])],
)
def test_the_command_line(stage: Stage, tmp_path: Path, program: str) -> None:
    user = f"of-{program}"

    def mem0(*words: str) -> Any:
        """What a command prints: its answer, without the envelope that some commands put around it."""
        made = subprocess.run(
            [*PROGRAMS[program], *words, "--output", "json"],
            env=environment(stage, tmp_path), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr + made.stdout
        answer = json.loads(made.stdout) if made.stdout.strip() else None
        return answer["data"] if isinstance(answer, dict) and "data" in answer else answer

    kept = mem0("add", "the lamp is blue", "--user-id", user, "--no-infer")
    (memory,) = kept["results"]
    assert [one["memory"] for one in mem0("search", "lamp", "--user-id", user, "--threshold", "0")] == [
        "the lamp is blue"
    ]
    assert [one["id"] for one in mem0("list", "--user-id", user)] == [memory["id"]]
    mem0("update", memory["id"], "the lamp is red")
    assert mem0("get", memory["id"])["memory"] == "the lamp is red"
    event = mem0("event", "status", kept["event_id"])
    assert (event["id"], event["status"]) == (kept["event_id"], "SUCCEEDED")
    assert kept["event_id"] in [one["id"] for one in mem0("event", "list")]
    mem0("delete", memory["id"], "--force")
    assert mem0("list", "--user-id", user) == []
