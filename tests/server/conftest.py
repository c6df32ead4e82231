"""A server in this process, without sockets: requests go straight into the application."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from operator import not_
from typing import Any

import httpx
import pytest

from memoranda.app.memoranda import Memoranda
from memoranda.concurrency.portal import Portal
from memoranda.server.app import create_app
from support.waiting import until


class House:
    """An open library, its application, and a caller on the same machine."""

    def __init__(self, portal: Portal, settings: dict[str, Any]) -> None:
        self.portal = portal
        self.memoranda = portal.call(Memoranda.open(":memory:", **settings))
        self.app = create_app(self.memoranda)

    def request(self, method: str, path: str, *, key: str | None = None, **options: Any) -> httpx.Response:
        """One request and its whole answer; `client` is the caller's address."""
        headers = dict(options.pop("headers", {}))
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        client = options.pop("client", ("127.0.0.1", 40000))

        async def go() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=client)
            base = options.pop("base_url", "http://localhost:8377")
            async with httpx.AsyncClient(transport=transport, base_url=base) as http:
                return await http.request(method, path, headers=headers, **options)

        return self.portal.call(go())

    def add(self, content: str, **fields: Any) -> str:
        """The id of a new memory."""
        answer = self.request("POST", "/v1/memories", json={"content": content, **fields})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    def stock(self, text: str = "the kettle is green", *, key: str | None = None) -> dict[str, str]:
        """A file in a store, a batch with another one, an upload of 5 bytes that waits for them, an agent, a response,
        a conversation with one item, a session with one message, a document that was asked something, a memory store
        with one memory, and a note: their ids, as the parameters of paths are called."""

        def made(path: str, **options: Any) -> str:
            answer = self.request("POST", f"/v1/{path}", key=key, **options)
            assert answer.status_code == 200, answer.text
            return str(answer.json()["id"])

        def put(name: str) -> str:
            return made("files", files={"file": (name, text.encode())}, data={"purpose": "assistants"})

        file, other = put("kettle.txt"), put("other.txt")
        store = made("vector_stores", json={"name": "stocked"})
        made(f"vector_stores/{store}/files", json={"file_id": file, "attributes": {"mark": text}})
        batch = made(f"vector_stores/{store}/file_batches", json={"file_ids": [other]})
        asked = {"filename": "a.txt", "bytes": 5, "purpose": "assistants", "mime_type": "text/plain"}
        self.settled(store, key=key)
        talk = made("conversations", json={"metadata": {"mark": text}})
        said = {"items": [{"role": "user", "content": text}]}
        item = self.request("POST", f"/v1/conversations/{talk}/items", key=key, json=said).json()["first_id"]
        talk_of = {"messages": [{"content": text}], "session_id": f"talk-{secrets.token_hex(6)}"}
        heard = self.request("POST", "/v1/messages", key=key, json=talk_of).json()["data"][0]
        return {
            **self._asked(text, key),
            **self._memory_store(text, key),
            "file_id": file,
            "store_id": store,
            "batch_id": batch,
            "upload_id": made("uploads", json=asked),
            "user_id": f"user-{secrets.token_hex(6)}",
            "agent_name": f"agent-{secrets.token_hex(6)}",
            "run_id": heard["session_id"],
            "app_id": f"app-{secrets.token_hex(6)}",
            "agent_id": made("agents", json={"name": "stocked", "instructions": text}),
            "conversation_id": talk,
            "item_id": item,
            "session_id": heard["session_id"],
            "message_id": heard["id"],
            "event_id": heard["id"],
            "response_id": self.answered(
                made("responses", json={"input": text, "background": True}), key=key
            ),
        }

    def _memory_store(self, text: str, key: str | None) -> dict[str, str]:
        def sent(at: str, **body: str) -> dict[str, str]:
            answer = self.request("POST", f"/v1/memory_stores{at}", key=key, json=body)
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

        store = sent("", name="stocked", description=text)["id"]
        memory = sent(f"/{store}/memories", path="/kettle.md", content=f"{text} at first")
        sent(f"/{store}/memories/{memory['id']}", content=text)
        return {
            "memory_store_id": store,
            "store_memory_id": memory["id"],
            "memory_version_id": memory["memory_version_id"],
        }

    def _asked(self, text: str, key: str | None) -> dict[str, str]:
        def sent(path: str, **body: str) -> dict[str, str]:
            answer = self.request("POST", f"/api/v1/upload-ask/{path}", key=key, json=body)
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

        document = sent("documents", title="kettle", text=text)
        query = sent("query", question=text)
        note = sent("memories", content=text)
        return {
            "document_id": document["id"],
            "query_id": query["id"],
            "ask_session_id": query["sessionId"],
            "memory_id": note["id"],
        }

    def answered(self, response: str, *, key: str | None = None) -> str:
        """Waits until a response has ended; its id."""
        until(
            lambda: self.request("GET", f"/v1/responses/{response}", key=key).json(),
            "the end of a response",
            accept=lambda found: found["status"] not in ("queued", "in_progress"),
        )
        return response

    def settled(self, store: str, *, key: str | None = None) -> None:
        """Waits until no file of the store is in progress."""
        path = f"/v1/vector_stores/{store}/files"
        until(
            lambda: self.request("GET", f"{path}?filter=in_progress", key=key).json()["data"],
            "no file of the store in progress",
            accept=not_,
        )

    def close(self) -> None:
        self.portal.call(self.app.state.answers.drain())
        self.portal.call(self.memoranda.close())


@pytest.fixture(scope="session")
def portal() -> Iterator[Portal]:
    made = Portal()
    yield made
    made.close()


def _opening(portal: Portal, home: Any) -> Iterator[Callable[..., House]]:
    houses: list[House] = []

    def open_house(**settings: Any) -> House:
        houses.append(House(portal, home.settings(f"house {len(houses)}", **settings)))
        return houses[-1]

    yield open_house
    for house in houses:
        house.close()


@pytest.fixture
def opened(portal: Portal, home: Any) -> Iterator[Callable[..., House]]:
    """Opens houses with the settings given, `embedder` being the hash one, for one test."""
    yield from _opening(portal, home)


@pytest.fixture(scope="module")
def houses(portal: Portal, lasting_home: Any) -> Iterator[Callable[..., House]]:
    """The same, for a whole file of tests."""
    yield from _opening(portal, lasting_home)


@pytest.fixture
def house(opened: Callable[..., House]) -> House:
    """A house without keys."""
    return opened()


@pytest.fixture(scope="module")
def lasting(houses: Callable[..., House]) -> House:
    """A house for a whole file of tests, with one memory in it."""
    made = houses()
    made.add("what must not be lost")
    return made
