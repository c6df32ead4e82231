"""The measure of growth tells a square from a line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.growth import grows_in_proportion


def twice(text: str) -> list[str]:
    return [letter + letter for letter in text]


def shortening(text: str) -> int:
    """Copies what is left, after every tenth letter."""
    return sum(len(text[at:]) for at in range(0, len(text), 10))


def pairs(text: str) -> int:
    return sum(a == b for a in text for b in text)


def text(size: int) -> str:
    return "a" * size


def test_what_grows_with_its_size_passes() -> None:
    grows_in_proportion(twice, text, 50_000)
    grows_in_proportion(len, text, 1)  # nothing that could be measured


@pytest.mark.parametrize(("work", "size"), [(pairs, 500), (shortening, 100_000)])
def test_what_grows_with_the_square_fails(work: Callable[[str], int], size: int) -> None:
    with pytest.raises(AssertionError, match=rf"^8 times {size} takes \d+\.\d times as long"):
        grows_in_proportion(work, text, size)
