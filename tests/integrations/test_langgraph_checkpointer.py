"""`MemorandaSaver`: LangGraph's checkpoints on a folder and on a server, and after a crash."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import ERROR, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import memoranda
from memoranda.errors import InvalidInput
from memoranda.integrations.langgraph import MemorandaSaver

from .conftest import QUICK

pytestmark = pytest.mark.gate("folder")
EXAMPLE = Path(__file__).parents[2] / "examples" / "langgraph_checkpoints.py"


class State(TypedDict, total=False):
    said: Annotated[list[str], lambda old, new: [*(old or []), *new]]
    big: bytes


def place(thread: str = "t", space: str = "") -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": space}}


def checkpoint(id_: str, **values: Any) -> Any:
    return {**empty_checkpoint(), "id": id_, "channel_values": values}


def graph_with(saver: Any) -> Any:
    """A graph of two nodes; the second asks and is told."""
    builder = StateGraph(State)
    builder.add_node("first", lambda state: {"said": ["first"], "big": bytes(range(256)) * 400})
    builder.add_node("second", lambda state: {"said": [interrupt("go on?")]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.compile(checkpointer=saver)


def ids(found: Any) -> list[str]:
    return [one.config["configurable"]["checkpoint_id"] for one in found]


def test_a_graph_has_the_states_that_it_has_in_memory(product: Any) -> None:
    def life(saver: Any) -> Any:
        graph = graph_with(saver)
        graph.invoke({"said": ["hello"]}, place())
        graph.invoke(Command(resume="yes"), place())
        return [
            (state.values, state.next, state.metadata["step"]) for state in graph.get_state_history(place())
        ]

    assert life(MemorandaSaver(product)) == life(InMemorySaver())


def test_the_greatest_id_is_the_last_checkpoint(product: Any) -> None:
    saver = MemorandaSaver(product)
    for id_ in ("1", "3", "2"):
        saver.put(place(), checkpoint(id_, n=id_), {"step": int(id_)}, {})
    saver.put(place(space="inner"), checkpoint("4"), {"step": 4}, {})
    saver.put(place("other"), checkpoint("5"), {"step": 5}, {})
    last = saver.get_tuple(place())
    assert last is not None
    assert last.checkpoint["channel_values"] == {"n": "3"}
    assert ids(saver.list(place())) == ["3", "2", "1"]
    assert ids(saver.list({"configurable": {"thread_id": "t"}})) == ["4", "3", "2", "1"]
    assert ids(saver.list(None, limit=2)) == ["5", "4"]
    assert ids(saver.list(place(), before=last.config, filter={"step": 1})) == ["1"]
    assert saver.get_tuple(place("missing")) is None


def test_a_checkpoint_is_replaced_and_its_writes_are_kept(product: Any) -> None:
    saver = MemorandaSaver(product)
    config = saver.put(place(), checkpoint("1", big=b"a" * 100_000), {"step": 1}, {})
    saver.put_writes(config, [("x", 1), ("y", b"b" * 100_000)], "task", "path")
    saver.put_writes(config, [("x", 2)], "task", "path")
    saver.put_writes(config, [(ERROR, "first")], "task")
    saver.put_writes(config, [(ERROR, "second")], "task")
    saver.put(place(), checkpoint("1", big=b"c" * 100_000), {"step": 2}, {})
    saved = saver.get_tuple(config)
    assert saved is not None
    assert saved.checkpoint["channel_values"]["big"] == b"c" * 100_000
    assert saved.metadata["step"] == 2
    assert saved.pending_writes == [
        ("task", ERROR, "second"), ("task", "x", 1), ("task", "y", b"b" * 100_000),
    ]  # fmt: skip


def test_a_thread_is_erased_by_itself_and_by_its_scope(product: Any) -> None:
    saver = MemorandaSaver(product)
    memories = product if hasattr(product, "add_many") else product.memories
    for thread in ("a", "b"):
        saver.put_writes(saver.put(place(thread), checkpoint("1"), {}, {}), [("x", 1)], "task")
    saver.delete_thread("a")
    assert ids(saver.list(None)) == ["1"]
    memories.forget(scopes=["session:b"])
    assert memories.count(kinds=["item"], scopes=["channel:langgraph-checkpoints"]) == 0


def test_pruning_keeps_what_a_delta_channel_needs(folder: Any) -> None:
    saver = MemorandaSaver(folder)
    counted = {"counters_since_delta_snapshot": {"d": (1, 1)}}
    config = saver.put(place(), checkpoint("1"), counted, {})
    config = saver.put(config, checkpoint("2", d="snapshot"), counted, {})
    config = saver.put(config, checkpoint("3"), counted, {})
    config = saver.put(config, checkpoint("4"), counted, {})
    saver.prune(["t"])
    assert ids(saver.list(place())) == ["4", "3", "2"]
    with pytest.raises(InvalidInput, match="strategy: 'all' is unknown; use keep_latest or delete"):
        saver.prune(["t"], strategy="all")


WRITER = """
import sys
import memoranda
from memoranda.integrations.langgraph import MemorandaSaver
with memoranda.open(sys.argv[1], embedder={"url": "hash:64"}) as product:
    saver = MemorandaSaver(product)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for n in range(10_000):
        value = {"n": n, "big": str(n % 10) * 100_000}
        checkpoint = {"v": 2, "id": f"{n:05}", "ts": "", "channel_values": value,
                      "channel_versions": {}, "versions_seen": {}}
        config = saver.put(config, checkpoint, {"step": n}, {})
        saver.put_writes(config, [("x", n)], "task")
        print(n, flush=True)
"""


@pytest.mark.slow
def test_a_checkpoint_that_was_put_is_there_after_a_kill(tmp_path: Path) -> None:
    """A process is killed while it writes: what it reported is there, and nothing is half there."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(5):
            writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        reported = 4 + len(writer.stdout.read().split())
    with memoranda.open(tmp_path / "data", embedder=QUICK) as product:
        saved = list(MemorandaSaver(product).list(place()))
    numbers = [one.checkpoint["channel_values"]["n"] for one in saved]
    assert numbers in (list(range(n, -1, -1)) for n in (reported, reported + 1))
    assert all(
        one.checkpoint["channel_values"]["big"] == str(n % 10) * 100_000
        for n, one in zip(numbers, saved, strict=True)
    )
    assert all(
        one.pending_writes == [("task", "x", n)]
        for n, one in zip(numbers, saved, strict=True)
        if n <= reported
    )


@pytest.mark.slow
def test_the_example_goes_on_in_a_second_process(tmp_path: Path) -> None:
    def said(message: str) -> str:
        command = [sys.executable, str(EXAMPLE), str(tmp_path / "data"), "chat", message]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert said("hello") == "1. hello\n"
    assert said("again") == "1. hello\n2. again\n"


@pytest.mark.slow
def test_the_page_says_what_happens(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "guides" / "integrations.md").read_text("utf-8")
    (code,) = re.findall(r"## LangGraph checkpoints\n.*?```python\n(.*?)```", page, flags=re.DOTALL)
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert told.stdout == "['hello', 'again']\n", told.stderr
