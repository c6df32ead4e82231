from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.text.chunking import measure
from memoranda.text.tokens import ENCODINGS, SLAB, count

WORDS = [
    "the ",
    " (of",
    "naïve ",
    "é ",
    "” ",
    "\u3000",
    "\u00a0 ",
    "\u2003 ",
    "日 本",
    "。 ",
    "Они ",
    "123 4",
    "'s ",
    "\x1c ",
    "\n",
    "  ",
    "\r\n",
    "/ ",
    "🫠 ",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=60).map("".join) | st.text(max_size=60)


@settings(deadline=None, max_examples=300)
@given(text=TEXTS, encoding=st.sampled_from(list(ENCODINGS)), data=st.data())
def test_a_stretch_costs_what_it_costs_by_itself(text: str, encoding: str, data: st.DataObject) -> None:
    measured = measure(text, encoding)
    for _ in range(5):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        assert measured.cost(start, end) == count(text[start:end], encoding)


def test_a_stretch_of_many_slabs_costs_what_it_costs_by_itself() -> None:
    text = ("x" * 100 + " word") * (SLAB // 10)
    measured = measure(text)
    for start, end in ((0, len(text)), (7, len(text) - 3), (SLAB - 5, SLAB * 2 + 9), (50, 51)):
        assert measured.cost(start, end) == count(text[start:end])
    assert len(measured.safe) > SLAB // 20


@settings(deadline=None)
@given(text=TEXTS, data=st.data())
def test_reach_moves_on_and_leaves_line_ends_whole(text: str, data: st.DataObject) -> None:
    measured = measure(text)
    at = 0
    while at < len(text):
        reach = measured.reach(at, data.draw(st.integers(0, 5)), len(text))
        assert at < reach <= len(text)
        assert text[reach - 1 : reach + 1] != "\r\n"
        at = reach
