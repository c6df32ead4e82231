"""A product in which one word is said in every place there is, and ways to look for it in all of them."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import _lru_cache_wrapper
from operator import not_
from pathlib import Path
from typing import Any

from memoranda.app.blocking import BlockingMemoranda
from memoranda.app.memoranda import Memoranda
from memoranda.memory_stores.values import NewStore, NewStoreMemory, StoreMemoryChange
from memoranda.sessions.boundaries import SUMMARIZE_JOB
from memoranda.types import Subject
from support import live_files
from support.waiting import until

WORD = "xylophonequartz"
NEEDLES = (
    WORD.encode(),
    WORD.upper().encode(),
    WORD.encode("utf-16-le"),
    WORD.encode().hex().encode(),
    WORD[:9].encode(),
)
SCRIPT = [{"text": f"You said: {WORD}. {{question}}", "repeat": True}]


def settled(rc: BlockingMemoranda) -> None:
    """Waits until no job is about to run."""
    sql = "SELECT kind, run_at FROM jobs WHERE state IN ('queued', 'running') AND run_at < ?"

    def soon() -> list[tuple[Any, ...]]:
        return rc.inner.core.store.db.read(lambda c: c.select(sql, [int(time.time() * 1e6) + 60_000_000]))

    until(soon, "no job about to run", accept=not_)


def begun(home: Any, tmp_path: Path, settings: dict[str, Any]) -> BlockingMemoranda:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": SCRIPT}))
    fields: dict[str, Any] = {
        "model": {"url": f"scripted:{script}"},
        "sessions": {"min_messages": 4},
        "facts": {"capture_rules": True},
        "upload_ask": {"enabled": True},
        **settings,
    }
    opened: BlockingMemoranda = home.open(**fields)
    return opened


class Planted:
    """Where `mara` of one tenant has said the word, and what was made of it. `dan` says other things."""

    def __init__(self, rc: BlockingMemoranda) -> None:
        self.rc = rc
        self.inner: Memoranda = rc.inner
        self.mara = Subject(user_id="mara", role="member")
        self.dan = Subject(user_id="dan", role="member")
        self.kept = rc.as_subject(self.dan).memories.add("the garden gate is green").memory.id

    def call(self, work: Any) -> Any:
        return self.rc.portal.call(work)

    def plant(self) -> None:
        """Says it everywhere."""
        self._memories()
        self._messages()
        self._responses()
        self._files()
        self._asked()
        self._stored()
        self._jobs()
        self.rc.as_subject(self.mara).memories.search(f"where is the {WORD}?")
        settled(self.rc)
        self._week()
        settled(self.rc)

    def _week(self) -> None:
        """The week is over, and quiet enough to be told of."""
        core = self.inner.core
        over = "UPDATE rollups SET due_at = 0, updated_at = 0 RETURNING 1"
        assert core.store.db.write(lambda c: c.select(over)).result()
        self.call(core.jobs.enqueue("default", SUMMARIZE_JOB, {}))

    def _memories(self) -> None:
        memories = self.rc.as_subject(self.mara).memories
        memories.add(f"the {WORD} is in the cellar")
        memories.add("the cellar is dry", tags=[WORD], metadata={"where": {WORD: [WORD]}}, source="note")
        old = memories.add("an older note", session_id="attic").memory.id
        memories.update(old, content=f"an older {WORD} note")
        memories.delete(memories.add(f"deleted {WORD}").memory.id)

    def _messages(self) -> None:
        for at, (who, said) in enumerate(
            [
                (self.mara, f"I have put the {WORD} into the cellar, behind the door."),
                (self.dan, "The garden gate needs some paint, I will see to it on Friday."),
                (self.mara, f"{WORD}"),
                (self.dan, "And the fence needs it as well, now that I think of it."),
                (self.mara, f"I prefer the {WORD} over every other thing that stands in the cellar."),
                (self.dan, "We will paint the gate and the fence, both of them green."),
            ]
        ):
            said_at = f"2026-03-02T10:0{at}:00Z"
            admin = self.inner.as_subject(Subject()).sessions
            message = {
                "content": said,
                "user_id": who.user_id,
                "speaker": who.user_id,
                "occurred_at": said_at,
            }
            if who is self.mara and at == 2:
                message |= {"role": "tool", "metadata": {"about": WORD}}  # no search finds it
            seen = self.call(admin.observe([message], channel_id="house"))
        self.session = seen[0].message.session_id
        admin = self.inner.as_subject(Subject()).sessions
        next_day = [
            {"content": f"The {WORD} was dusted on the stairs, part {n}.", "user_id": "mara", "speaker": "mara",
             "occurred_at": f"2026-03-03T10:0{n}:00Z"}
            for n in range(4)
        ]  # fmt: skip
        next_day[2] |= {"content": "I heard it on the stairs.", "user_id": "dan", "speaker": "dan"}
        later = self.call(admin.observe(next_day, channel_id="house"))
        self.call(admin.close(later[0].message.session_id))
        mine = self.call(
            self.inner.as_subject(self.mara).sessions.observe(
                [
                    {"content": f"Where did I put the {WORD} last summer?", "role": "user"},
                    {
                        "content": f"The {WORD} is in the cellar, behind the door.",
                        "role": "assistant",
                        "user_id": None,
                    },
                ],
                session_id="private talk",
            )
        )
        self.rc.as_subject(self.mara).memories.add(
            f"Mara keeps the {WORD} in the cellar.", kind="fact", source_refs=[mine[0].message.id]
        )
        self.call(self.inner.as_subject(Subject()).sessions.close(self.session))

    def _responses(self) -> None:
        responses = self.inner.as_subject(self.mara).responses
        first = self.call(responses.create(f"Where is the {WORD}?", instructions=f"Mind the {WORD}."))
        self.response = self.call(
            responses.create(f"And the other {WORD}?", previous_response_id=first.id, background=True)
        ).id
        until(
            lambda: self.call(responses.get(self.response)).status,
            "the end of a response",
            accept=lambda status: status not in ("queued", "in_progress"),
        )
        talks = self.inner.as_subject(self.mara).conversations
        talk = self.call(talks.create([{"role": "user", "content": f"My {WORD}!"}], metadata={"about": WORD}))
        self.call(responses.create(f"Again the {WORD}", conversation=talk.id))
        agents = self.inner.as_subject(self.mara).agents
        self.call(agents.create({"name": f"keeper of the {WORD}", "instructions": f"Speak of the {WORD}."}))

    def _files(self) -> None:
        knowledge = self.inner.as_subject(self.mara).knowledge
        store = self.call(knowledge.stores.create(name=f"{WORD} papers", metadata={"about": WORD}))
        text = f"# About the {WORD}\n\nIt stands in the cellar. The {WORD} is old.".encode()
        put = self.call(knowledge.stores.upload(store.id, text, f"{WORD}.md", attributes={"about": WORD}))
        assert self.call(knowledge.stores.wait_file(store.id, put.id, every=0.02)).status == "completed"
        self.call(knowledge.files.upload(f"the loose {WORD}".encode(), "loose.txt"))
        size = len(text)
        pending = self.call(
            knowledge.uploads.create(
                filename=f"{WORD}.txt", bytes=size, purpose="assistants", media_type="text/plain"
            )
        )

        async def part() -> None:
            async def pieces() -> AsyncIterator[bytes]:
                yield text

            await knowledge.uploads.add_part(pending.id, pieces())

        self.call(part())

    def _asked(self) -> None:
        asking = self.inner.as_subject(self.mara).upload_ask
        self.call(asking.documents.add_text("a paper", f"This paper tells of the {WORD} at length."))
        settled(self.rc)
        self.call(asking.ask(f"What does the paper tell of the {WORD}?"))

    def _stored(self) -> None:
        """Memory stores of hers, of the tenant, and of another, in which she writes."""
        admin = self.inner.as_subject(Subject()).memory_stores
        stores = self.inner.as_subject(self.mara).memory_stores
        store = self.call(stores.create(NewStore(name=f"{WORD}", description=f"all about the {WORD}")))
        memories = stores.memories(store.id)
        first = self.call(
            memories.create(NewStoreMemory(path=f"/{WORD}/care.md", content=f"dust the {WORD} daily"))
        )
        self.call(memories.update(first.id, StoreMemoryChange(path="/care.md", content="dust it daily")))
        gone = self.call(memories.create(NewStoreMemory(path="/old.md", content=f"the {WORD} was new")))
        self.call(memories.delete(gone.id))
        self.call(memories.create(NewStoreMemory(path=f"/{WORD}.md", content="old")))
        shared = self.call(admin.create(NewStore(name="house")))
        notes = stores.memories(shared.id)
        self.call(notes.create(NewStoreMemory(path="/cellar.md", content=f"the {WORD} is there")))
        gate = self.call(admin.memories(shared.id).create(NewStoreMemory(path="/gate.md", content="green")))
        self.call(notes.update(gate.id, StoreMemoryChange(content=f"green, as the {WORD}")))
        self.call(admin.memories(shared.id).update(gate.id, StoreMemoryChange(content="green, as ever")))
        self.gate = shared.id, gate.id

    def _jobs(self) -> None:
        core = self.inner.core
        told = {"user_id": "mara", "note": f"about the {WORD}", "settings": {}, "conversation": "conv_none"}
        self.call(core.jobs.enqueue("default", "summarize", told, delay=3_600))

    # --- looking -----------------------------------------------------------------------------------

    def tables(self, rows: Callable[[], Iterator[tuple[str, bytes]]]) -> set[str]:
        """The tables that hold the word in any column of any row."""
        return {name for name, line in rows() if any(needle in line for needle in NEEDLES)}

    def kinds(self) -> set[str]:
        """The kinds of memories whose text holds it."""
        rows = self.inner.core.store.db.read(lambda c: c.select("SELECT kind, content FROM memories"))
        return {kind for kind, content in rows if WORD in content}

    def files(self, folder: Path) -> set[str]:
        """The files that hold it."""
        return {name for name, _ in live_files.holding(folder, *NEEDLES)}

    def told(self) -> list[str]:
        """What exports, listings and searches say that holds it."""
        admin = self.rc.memories
        said = [line.decode() for line in admin.export(scopes=["all"])]
        said += [str(one) for one in admin.list(scopes=["all"], limit=1_000, include_archived=True).data]
        said += [hit.memory.content for hit in admin.search(WORD, scopes=["all"], mode="keyword").results]
        for session in self.rc.sessions.list(limit=100).data:
            said += [str(session), str(self.rc.sessions.messages(session.id, limit=100).data)]
        said += [str(self.rc.knowledge.files.list().data), str(self.rc.knowledge.stores.list().data)]
        return [one for one in said if WORD in one.lower()]

    def remembered(self) -> list[str]:
        """Return the caches of this process that hold it, each with what it holds there."""
        found = [f"questions: {text}" for text in self.inner.core.embedder._known if WORD in text]  # type: ignore[attr-defined]
        for name, module in [one for one in sys.modules.items() if one[0].startswith("memoranda.")]:
            for cached, cache in vars(module).items():
                if isinstance(cache, _lru_cache_wrapper):
                    parts = [part for part in gc.get_referents(cache) if isinstance(part, dict)]
                    texts = [str(item) for part in parts for item in part.items()]
                    found += [f"{name}.{cached}: {text[:200]}" for text in texts if WORD in text.lower()]
        return found
