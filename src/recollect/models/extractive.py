"""A model that only quotes."""

from __future__ import annotations

from collections.abc import AsyncIterator

from recollect.config.sections import Model as Settings
from recollect.models.base import Ask, Ended, Model, Piece, TextDelta


class ExtractiveModel(Model):
    """Quotes."""

    name = "extractive"
    quotes_only = True

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        yield TextDelta("Nothing was found.")
        yield Ended("stop")


def open_extractive(settings: Settings) -> Model:
    """The model."""
    return ExtractiveModel()
