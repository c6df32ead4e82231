"""A fake model that plays a script, in this process. Over HTTP: `scripted_app`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from memoranda.config.agent_sections import Model as Settings
from memoranda.errors import ModelBroken, ModelRefused, ModelUnavailable
from memoranda.providers.chat.base import Ask, Model, Piece
from memoranda.providers.chat.script import Cue, Play, Scripted, TurnCriteria, script_of, unscripted

AGAIN = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which a retry may succeed."""


class ScriptedModel(Model):
    """Plays `script`: turns (as `Turn` or mappings), a `Script`, or the path of one in JSON (see `script.Turn`).

    `asked` are the asks so far, `left` how many of their answers were closed before their end. A `hang` lasts `timeout`
    seconds. Failures are raised as those of a real model behind HTTP: a `status` at once, as if its retries were over.
    """

    def __init__(self, script: Scripted, *, timeout: float = 60.0) -> None:
        self.play = Play(script_of(script))
        self.name = self.play.script.models[0]
        self.timeout = timeout
        self.asked: list[Ask] = []
        self.left = 0

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        self.asked.append(ask)
        asked = TurnCriteria.of(ask.messages, ask.tools)
        cue = self.play.next(asked)
        if cue is None:
            raise ModelRefused(unscripted(asked))
        sent = 0
        try:
            await cue.reached(0)
            _refuse(cue)
            await asyncio.sleep(cue.turn.first)
            for piece in cue.pieces():
                if sent:
                    await asyncio.sleep(cue.turn.delay)
                yield piece
                sent += 1
                await cue.reached(sent)
            await self._fail(cue, bool(sent))
        except (GeneratorExit, asyncio.CancelledError):
            self.left += 1
            raise
        yield cue.end(ask.model or self.name)

    async def _fail(self, cue: Cue, said: bool) -> None:
        if cue.turn.hang:
            await asyncio.sleep(self.timeout)
            says = f"nothing more came within {self.timeout:.3g} s"
            raise ModelBroken(says) if said else ModelUnavailable(says)
        if cue.turn.cut:
            raise ModelBroken("the answer broke off") if said else ModelUnavailable("the connection ended")
        if cue.turn.garbage is not None:
            raise ModelBroken("the answer cannot be understood")

    async def names(self) -> list[str]:
        return list(self.play.script.models)

    def usage(self) -> dict[str, int]:
        return {"requests": len(self.asked)}


def _refuse(cue: Cue) -> None:
    status = cue.turn.status
    if status is None:
        return
    says = f"the scripted model answered with status {status}: {cue.turn.message}"
    raise ModelUnavailable(says) if status in AGAIN or status >= 500 else ModelRefused(says, status)


def open_scripted(settings: Settings) -> ScriptedModel:
    """The model of the script at the path in `scripted:PATH`."""
    return ScriptedModel((settings.url or "").partition(":")[2], timeout=settings.timeout)
