"""Background responses: made while nobody waits, followed by anybody, ended by whoever asks."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import InvalidInput, NotFound, StorageError
from memoranda.responses.background import INTERRUPTED
from memoranda.responses.records import encoded
from memoranda.responses.runs import NOT_STORED
from support.waiting import until, until_async

TEXT = "SELECT 1 FROM response_events WHERE tenant_id = ? AND events LIKE '%text.delta%'"
ENDS = ("response.completed", "response.incomplete", "response.failed")


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["sequence_number"] for event in events]


def payloads(desk: Any) -> list[str]:
    return [
        row[0] for row in desk.rows("SELECT payload FROM jobs WHERE tenant_id = ? AND lane = 2", desk.tenant)
    ]


class Failing:
    """Rows that take no writes for a while: `left` of them fail, after `passing` that do not."""

    def __init__(self, db: Any, passing: int = 0, left: int = 10**6) -> None:
        self.db, self.passing, self.left = db, passing, left

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)

    def write(self, work: Any, then: Any = None, tenant: Any = None) -> Future[Any]:
        if self.passing:
            self.passing -= 1
        elif self.left:
            self.left -= 1
            failed: Future[Any] = Future()
            failed.set_exception(StorageError("no room on the disk"))
            return failed
        made: Future[Any] = self.db.write(work, then, tenant)
        return made


# --- made ------------------------------------------------------------------------------------------


def test_made_while_nobody_waits(desk: Any) -> None:
    desk.script({"text": "one two three", "pause_at": 0, "usage": {"input": 7, "output": 3}})
    made = desk.create("count", background=True, metadata={"a": "b"})
    assert (made.status, made.background, made.output) == ("queued", True, [])
    seen = set()

    def begun() -> bool:
        seen.add(desk.run(desk.responses.get(made.id)).status)
        return "in_progress" in seen

    until(begun, "its start")
    assert seen <= {"queued", "in_progress"}
    desk.model.play.resume()
    ended = desk.ended(made.id)
    assert (ended.status, ended.output[0]["content"][0]["text"]) == ("completed", "one two three")
    assert (ended.usage.total_tokens, ended.metadata) == (10, {"a": "b"})
    assert ended.completed_at is not None


def test_its_job_forgets_what_was_asked(desk: Any) -> None:
    desk.script({"text": "done", "pause_at": 0})
    made = desk.create("a secret of mine", instructions="tell nobody", background=True)
    assert "secret" not in payloads(desk)[0]
    assert "tell nobody" in payloads(desk)[0]
    desk.model.play.resume()
    desk.ended(made.id)
    until(lambda: payloads(desk), "a job without its payload", accept=lambda held: held == ["{}"])


def test_what_is_wrong_by_then_is_its_failure(desk: Any) -> None:
    store = desk.store("The boss is Ada.")
    desk.script({"text": "busy", "hang": True, "repeat": True})
    busy = [desk.create("wait", background=True) for _ in range(8)]
    made = desk.create("boss?", tools=[{"type": "file_search", "vector_store_ids": [store]}], background=True)
    desk.run(desk.inner.as_subject(desk.admin).knowledge.stores.delete(store))
    for one in busy:
        desk.run(desk.responses.cancel(one.id))
    ended = desk.ended(made.id)
    assert ended.status == "failed"
    assert "no vector store" in ended.error["message"]
    assert desk.followed(made.id)[-1]["type"] == "response.failed"


def test_needs_to_be_stored(desk: Any) -> None:
    with pytest.raises(InvalidInput, match="background"):
        desk.create(background=True, store=False)


# --- followed --------------------------------------------------------------------------------------


def test_told_again_from_every_place(desk: Any) -> None:
    desk.script(
        {"offered": "find", "reasoning": "well", "text": "I look", "calls": [{"name": "find"}], "delay": 0.01}
    )
    find = {"type": "function", "name": "find", "parameters": {"type": "object"}}
    made = desk.create("hi", tools=[find], background=True)
    whole = desk.followed(made.id)
    assert numbers(whole) == list(range(len(whole)))
    assert [event["type"] in ENDS for event in whole] == [False] * (len(whole) - 1) + [True]
    stored = desk.run(desk.responses.get(made.id))
    assert whole[-1]["response"]["output"] == stored.output
    for after in range(-1, len(whole) + 2):
        assert desk.followed(made.id, after) == whole[after + 1 :]


def test_followed_while_it_is_made(desk: Any) -> None:
    """By two at once, some from the middle; none misses the last events, however close the end is."""
    words = " ".join(f"w{n}" for n in range(12))
    desk.script(*({"text": words, "delay": 0.001 * n} for n in range(8)))

    async def hear(id_: str, after: int, wait: float) -> list[Any]:
        await asyncio.sleep(wait)
        found = await desk.responses.events(id_, after)
        return [event async for batch in found for event in batch]

    async def all_at_once() -> list[tuple[str, list[list[Any]]]]:
        made = [await desk.responses.create("go", background=True) for _ in range(8)]
        heard = [
            asyncio.gather(hear(one.id, -1, 0.0), hear(one.id, -1, 0.008 * n), hear(one.id, 5, 0.0))
            for n, one in enumerate(made)
        ]
        return [(one.id, await both) for one, both in zip(made, heard, strict=True)]

    for id_, (first, second, middle) in desk.run(all_at_once()):
        assert first == second == desk.followed(id_)
        assert middle == first[6:]
        assert numbers(first) == list(range(len(first)))
        assert first[-1]["type"] == "response.completed"
        assert "".join(event["delta"] for event in first if event["type"].endswith("text.delta")) == words


def test_a_response_that_was_not_made_in_the_background_is_followed_from_what_is_stored(desk: Any) -> None:
    desk.script({"text": "ok"})
    made = desk.create()
    assert desk.followed(made.id)[-1]["type"] == "response.completed"
    with pytest.raises(NotFound):
        desk.followed("resp_none")


# --- ended by a caller ------------------------------------------------------------------------------


def test_cancelled_before_it_is_made(desk: Any) -> None:
    desk.script(
        {"when": "wait", "hang": True, "repeat": True}, {"when": "count", "text": "no", "repeat": True}
    )
    busy = [desk.create("wait", background=True) for _ in range(8)]
    made = desk.create("count", background=True)
    cancelled = desk.run(desk.responses.cancel(made.id))
    assert (cancelled.status, cancelled.output) == ("cancelled", [])
    told = desk.followed(made.id)
    assert [event["type"] for event in told] == ["response.created", "response.queued", "response.incomplete"]
    assert told[-1]["response"]["status"] == "cancelled"
    for one in busy:
        assert desk.run(desk.responses.cancel(one.id)).status == "cancelled"
    desk.script({"text": "later"})
    assert desk.ended(desk.create("next", background=True).id).status == "completed"
    assert desk.run(desk.responses.get(made.id)) == cancelled


def test_cancelled_while_it_begins(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is not asked afterwards."""
    desk.script({"text": "later"})
    background = desk.inner.engine.background
    resume = background._resume

    async def cancelled() -> Any:
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def slowly(*args: Any) -> Any:
            reached.set()
            await go_on.wait()
            return await resume(*args)

        monkeypatch.setattr(background, "_resume", slowly)
        made = await desk.responses.create("wait", background=True)
        await reached.wait()
        ended = await desk.responses.cancel(made.id)
        go_on.set()
        monkeypatch.setattr(background, "_resume", resume)
        return ended

    response = desk.run(cancelled())
    assert (response.status, response.output) == ("cancelled", [])
    assert desk.ended(desk.create("next", background=True).id).status == "completed"
    assert desk.run(desk.responses.get(response.id)) == response
    assert len(desk.model.asked) == 1


def test_cancelled_with_its_job(desk: Any) -> None:
    """By an admin who sees a job, not what it is about: nothing waits for ever."""
    desk.script({"hang": True, "repeat": True})
    busy = [desk.create("wait", background=True) for _ in range(8)]
    until(lambda: len(desk.model.asked) == len(busy), "the start of all but the last")
    made = desk.create("count", background=True)
    jobs = desk.inner.core.jobs
    (queued,) = [job for job in desk.run(jobs.list(desk.tenant)) if job.state == "queued"]
    desk.run(jobs.cancel(desk.tenant, queued.id))
    ended = desk.run(desk.responses.get(made.id))
    assert (ended.status, ended.error["message"]) == ("failed", "the job was cancelled")
    assert desk.followed(made.id)[-1]["type"] == "response.failed"
    for one in busy:
        desk.run(desk.responses.cancel(one.id))


def test_cancelled_while_it_is_made(desk: Any) -> None:
    desk.script({"text": "half a sentence", "hang": True})
    made = desk.create("go", background=True)

    async def cancel_when_said() -> list[Any]:
        heard: list[Any] = []
        async for batch in await desk.responses.events(made.id):
            heard += batch
            if any(event.get("delta") == " sentence" for event in batch):
                await desk.responses.cancel(made.id)
        return heard

    heard = desk.run(cancel_when_said())
    found = desk.run(desk.responses.cancel(made.id))
    assert (found.status, found.output[0]["status"]) == ("cancelled", "incomplete")
    assert found.output[0]["content"][0]["text"] == "half a sentence"
    assert (found.error, found.completed_at) == (None, None)
    assert desk.model.left == 1
    assert heard == desk.followed(made.id)
    assert heard[-1]["type"] == "response.incomplete"
    assert heard[-1]["response"]["status"] == "cancelled"


def test_only_background_responses_can_be_cancelled(desk: Any) -> None:
    desk.script({"text": "ok"})
    made = desk.create()
    with pytest.raises(InvalidInput, match="Cannot cancel a synchronous response"):
        desk.run(desk.responses.cancel(made.id))
    with pytest.raises(NotFound):
        desk.run(desk.responses.cancel("resp_none"))


@pytest.mark.parametrize("said", ["", "some words"])
def test_deleted_while_it_is_made(desk: Any, said: str) -> None:
    desk.script({"text": said, "hang": True})
    made = desk.create("go", background=True)

    async def delete_when_begun() -> list[Any]:
        heard: list[Any] = []
        async for batch in await desk.responses.events(made.id):
            heard += batch
            if heard[-1]["type"] not in ("response.created", "response.queued"):
                await until_async(lambda: desk.model.asked, "a question of the model")
                await desk.responses.delete(made.id)
        return heard

    assert numbers(heard := desk.run(delete_when_begun())) == list(range(len(heard)))
    until(lambda: desk.model.left, "the model stops")
    assert desk.model.left == 1
    with pytest.raises(NotFound):
        desk.run(desk.responses.get(made.id))
    for table in ("responses", "response_events"):
        assert desk.rows(f"SELECT count(*) FROM {table} WHERE tenant_id = ?", desk.tenant) == [(0,)]


@pytest.mark.rows_in("postgresql")
@pytest.mark.parametrize("said", ["", "some words"])
def test_cancelled_from_another_process(desk: Any, tmp_path: Path, said: str) -> None:
    """Though the model says nothing that would have to be stored."""
    desk.script({"text": said, "hang": True})
    url = desk.inner.config.database.url
    with memoranda.open(
        tmp_path / "other",
        embedder={"url": "hash:64"},
        database={"url": url},
        responses={"background_at_once": 0},
    ) as other:
        responses = other.inner.as_subject(desk.admin).responses
        made = desk.create("go", background=True)
        until(lambda: desk.model.asked, "a question of the model")
        assert other.portal.call(responses.get(made.id)).status in ("queued", "in_progress")
        if said:
            until(lambda: desk.rows(TEXT, desk.tenant), "the stored text")
        assert other.portal.call(responses.cancel(made.id)).status == "cancelled"
        until(lambda: desk.model.left, "the model stops")
    found = desk.run(desk.responses.get(made.id))
    assert found.status == "cancelled"
    told = desk.followed(made.id)
    assert numbers(told) == list(range(len(told)))
    assert told[-1]["response"]["status"] == "cancelled"
    assert desk.inner.engine.background._keeping == {}


# --- rows that are away ----------------------------------------------------------------------------


@pytest.mark.rows_in("sqlite")
def test_events_wait_for_their_rows(desk: Any) -> None:
    desk.script({"text": "one two three", "pause_at": 1})
    store = desk.inner.core.store
    real = store.db
    store.db = Failing(real, passing=1, left=1)
    try:
        made = desk.create("go", background=True)
        until(lambda: desk.rows(TEXT, desk.tenant), "the stored text")
        assert store.db.left == 0
        desk.model.play.resume()
        heard = desk.followed(made.id)
    finally:
        store.db = real
    assert desk.ended(made.id).status == "completed"
    assert numbers(heard) == list(range(len(heard)))
    assert heard == desk.followed(made.id)


@pytest.mark.rows_in("sqlite")
def test_an_end_that_cannot_be_stored_is_a_failure(desk: Any) -> None:
    """What was told of it stays told: it is not made again, and says why."""
    desk.script({"text": "one two", "pause_at": 1}, {"text": "never"})
    store, real = desk.inner.core.store, desk.inner.core.store.db
    made = desk.create("go", background=True)
    kept = desk.inner.engine.background._keeping
    try:
        until(lambda: desk.rows(TEXT, desk.tenant), "the stored text")
        store.db = Failing(real)
        desk.model.play.resume()
        until(lambda: made.id not in kept, "the end of the run")
    finally:
        store.db = real
    ended = desk.ended(made.id)
    assert (ended.status, ended.error["message"]) == ("failed", INTERRUPTED)
    (message,) = ended.output
    assert message["status"] == "incomplete"
    assert "one two".startswith(message["content"][0]["text"].strip() or "?")
    told = desk.followed(made.id)
    assert numbers(told) == list(range(len(told)))
    assert [event["type"] in ENDS for event in told].count(True) == 1
    assert len(desk.model.asked) == 1


@pytest.mark.rows_in("sqlite")
def test_a_response_that_cannot_be_stored_says_so(desk: Any) -> None:
    desk.script({"text": "the answer"}, {"text": "the answer"})
    store, real = desk.inner.core.store, desk.inner.core.store.db
    store.db = Failing(real)
    try:
        events = desk.stream("go")
        made = desk.create("go")
    finally:
        store.db = real
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["message"] == NOT_STORED
    assert (made.status, made.error["message"], made.completed_at) == ("failed", NOT_STORED, None)
    assert made.output[0]["content"][0]["text"] == "the answer"
    with pytest.raises(NotFound):
        desk.run(desk.responses.get(made.id))


def test_two_that_make_one_response_are_found_out(desk: Any) -> None:
    """A process that was thought dead stores nothing between what the other has stored."""
    desk.script({"text": "one two three", "pause_at": 1, "hang": True})
    made = desk.create("go", background=True)
    until(lambda: desk.rows(TEXT, desk.tenant), "the stored text")
    event: dict[str, Any] = {"type": "response.output_item.added", "output_index": 0}
    event["item"] = {
        "id": "msg_other",
        "type": "message",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }

    def other(c: Any) -> int:
        (last,) = c.one("last_event", [desk.tenant, made.id])
        event["sequence_number"] = last + 1
        c.run("add_events", [desk.tenant, made.id, last + 1, last + 1, encoded(event)])
        return int(last)

    last = desk.inner.core.store.db.write(other).result()
    desk.model.play.resume()
    ended = desk.ended(made.id)
    assert ended.status == "failed"
    assert "by another process" in ended.error["message"]
    told = desk.followed(made.id)
    assert numbers(told) == list(range(len(told)))
    assert "msg_other" in str(told[last + 1])
    assert told[-1]["type"] == "response.failed"
    assert desk.model.left == 1
