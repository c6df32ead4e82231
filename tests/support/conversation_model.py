"""A language model for the two conversations: it reads the prompt and answers as a small trained one might, with prose
before the JSON now and then. It knows sentences of the conversations by heart and nothing of the product.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

KNOWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "I live in Lyon": ("Ana lives in Lyon.", ("residence",)),
    "I live in Porto now": ("Ana lives in Porto.", ("residence",)),
    "I prefer tea": ("Ben prefers tea.", ("preference",)),
    "I prefer coffee now": ("Ben prefers coffee.", ("preference",)),
    "My dog is called Otto": ("Ben's dog is called Otto.", ("pet",)),
    "I am allergic to peanuts": ("Ana is allergic to peanuts.", ("health",)),
    "my number is 555-0142": ("Chloe's phone number is 555-0142.", ("contact",)),
    "My number is 555-0187": ("Chloe's phone number is 555-0187.", ("contact",)),
    "The budget is 4200 euros": ("The budget of the exhibition is 4200 euros.", ("money",)),
    "open the exhibition on May 8": ("The exhibition opens on May 8.", ("decision",)),
    "open the exhibition on May 15": ("The exhibition opens on May 15.", ("decision",)),
    "print the catalogue in Turin": ("They print the catalogue in Turin.", ("decision",)),
    "print the catalogue in Nantes": ("They print the catalogue in Nantes.", ("decision",)),
    "use the blue poster": ("They use the blue poster.", ("decision",)),
    "use the red poster": ("They use the red poster.", ("decision",)),
    "The frames cost 75 euros": ("The frames cost 75 euros each.", ("money",)),
    "The frames cost 57 euros": ("The frames cost 57 euros each.", ("money",)),
    "door code of the workshop": ("The door code of the workshop is 8841.", ("access",)),
    "I don't eat meat": ("Chloe does not eat meat.", ("preference",)),
    "I'm based in Gdansk": ("dana lives in Gdansk.", ("residence",)),
    "I've moved to Leeds": ("dana lives in Leeds.", ("residence",)),
    "my email is dana@harborlight.example": ("dana's email is dana@harborlight.example.", ("contact",)),
    "my email is dana.k@northquay.example": ("dana's email is dana.k@northquay.example.", ("contact",)),
    "remember I'm vegan": ("Yusuf is vegan.", ("preference",)),
    "I can't stand coriander": ("Mirko K. can't stand coriander.", ("preference",)),
    "ticket portal is on October 6": ("Go-live of the ticket portal is on October 6.", ("date",)),
    "ticket portal is on October 20": ("Go-live of the ticket portal is on October 20.", ("date",)),
    "the offsite is in Krakow": ("The offsite is in Krakow.", ("place",)),
    "the offsite is in Wroclaw": ("The offsite is in Wroclaw.", ("place",)),
    "let's go with RabbitMQ": ("They use RabbitMQ for the queue.", ("decision",)),
    "let's go with NATS": ("They use NATS for the queue.", ("decision",)),
    "the backup quota is 800 GB": ("The backup quota is 800 GB.", ("limit",)),
    "the backup quota is 650 GB": ("The backup quota is 650 GB.", ("limit",)),
    "tangerine-42": ("The root password is tangerine-42.", ("access",)),
}
DECIDED = re.compile(r"we decided|let's go with|scratch", re.IGNORECASE)
WILL = re.compile(r"\bI(?: wi|')ll\b")
NUMBERED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
FACT = re.compile(r"^F(\d+)\. [^:]*: (.*)$", re.MULTILINE)
SPOKEN = re.compile(r"^\[[^\]]*\] [^:]{1,30}: (.*)$", re.MULTILINE)
QUESTION = re.compile(r"[^.!?\n]+\?")


class Thinker:
    """What it has answered so far; `away` makes it answer 503, `held` lets its answers wait (`waiting` of them)."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False
        self.held = False
        self.waiting = 0

    async def complete(self, request: Request) -> Response:
        """A chat completion, whole or streamed."""
        if self.away:
            return JSONResponse({"error": {"message": "overloaded"}}, 503)
        body = await request.json()
        said = self.answer(*told(body))
        self.waiting += 1
        while self.held:
            await asyncio.sleep(0.01)
        self.waiting -= 1
        self.asked.append(said)
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        head = {"id": "c", "created": 0, "model": "thinker"}
        if not body.get("stream"):
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
            return JSONResponse({**head, "object": "chat.completion", "choices": [choice], "usage": usage})

        async def events() -> Any:
            for delta, reason in (({"role": "assistant", "content": said}, None), ({}, "stop")):
                choice = {"index": 0, "delta": delta, "finish_reason": reason}
                yield event({**head, "object": "chat.completion.chunk", "choices": [choice]})
            yield event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    def answer(self, system: str, prompt: str) -> str:
        """A summary's JSON, or facts with what they are to the known ones, whichever is asked for."""
        if "open_questions" in system:
            return json.dumps(summary(prompt))
        if "read as one" in system:
            return json.dumps({"facts": [], "text": ""})
        facts = {fact: int(number) for number, fact in FACT.findall(prompt)}
        found = [
            {"text": fact, "confidence": 0.9, "tags": list(tags), "messages": [int(line[1])], "quote": quote,
             "op": op_of(fact, facts)}
            for line in NUMBERED.finditer(prompt)
            for needle, (fact, tags) in KNOWS.items()
            for quote in (needle, fact)
            if quote in line[2]
        ]  # fmt: skip
        said = json.dumps(found)
        return f"Here is what I found:\n```json\n{said}\n```" if len(found) % 2 else said


def op_of(fact: str, known: dict[str, int]) -> str:
    """What a fact is to the known ones: two sentences that begin alike and differ say that something has changed."""
    if fact in known:
        return f"same F{known[fact]}"
    ended = [f"F{number}" for other, number in known.items() if other.split()[:2] == fact.split()[:2]]
    return f"replaces {', '.join(ended)}" if ended else "add"


def summary(prompt: str) -> dict[str, Any]:
    """Some sentences of the conversation, and its lists."""
    spoken = [line[1] for line in SPOKEN.finditer(prompt)] or prompt.splitlines()[1:]
    questions = [text.strip() for text in QUESTION.findall("\n".join(spoken))]
    chosen = [text for text in spoken if len(text) > 30 or any(letter.isdigit() for letter in text)]
    return {
        "summary": " ".join(chosen[:40]),
        "topics": sorted({word for text in chosen for word in re.findall(r"[a-z]{7,}", text)})[:5],
        "decisions": [text for text in spoken if DECIDED.search(text)],
        "open_questions": questions[-2:],
        "action_items": [text for text in spoken if WILL.search(text)],
        "entities": sorted({word for text in spoken for word in re.findall(r"(?<=\w )[A-Z][a-z]+", text)}),
    }


def told(body: dict[str, Any]) -> tuple[str, str]:
    """What a request says for the system and for the user."""
    by_role = {message["role"]: str(message["content"]) for message in body["messages"]}
    return by_role.get("system", ""), by_role.get("user", "")


def event(data: dict[str, Any]) -> str:
    """One event of a stream."""
    return f"data: {json.dumps(data)}\n\n"


def app_of(thinker: Thinker) -> Starlette:
    """The server's application."""
    return Starlette(routes=[Route("/v1/chat/completions", thinker.complete, methods=["POST"])])


@contextmanager
def thinking(running: Any) -> Iterator[tuple[str, Thinker]]:
    """A server of one: its URL and itself; `running` is `tests/models/server.py`'s."""
    thinker = Thinker()
    with running(app_of(thinker)) as url:
        yield f"{url}/v1", thinker
