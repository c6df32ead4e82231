"""What holds for every strategy, and the page and headings of a chunk."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.readers.base import Heading, Page
from memoranda.text import tokens
from memoranda.text.splitting import Chunking, ChunkPlace, context_header, file_header, heading_paths, split
from memoranda.text.tokens import count

PARTS = st.sampled_from(
    [
        "hello ",
        "world. ",
        "Dr. Who paid 3.14! ",
        "\n\n",
        "\r\n",
        "\r\n\r\n",
        "\n- item ",
        "   ",
        "\t",
        "\f",
        "\u2029",
        "\u00a0",
        "\u200b",
        "\ufeff",
        "e\u0301\u0302",
        "שלום עולם. ",
        "مرحبا؟ ",
        "日本語。",
        "한국어 ",
        "🫠",
        "👨‍👩‍👧",
        "\U00020000",
        "x" * 40,
        "=" * 30,
        ".\"')",
        "…",
        "\x00",
        "\ud800",
    ]
)
TEXTS = st.lists(PARTS, max_size=50).map("".join) | st.text(max_size=80)
strategies = pytest.mark.parametrize("strategy", ["fixed", "recursive", "semantic"])


def visible(text: str, start: int, end: int) -> bool:
    return bool(text[start:end].strip())


@strategies
@settings(deadline=None, max_examples=150)
@given(text=TEXTS, size=st.integers(1, 40), data=st.data())
def test_chunks_fit_and_hold_every_visible_character(
    strategy: str, text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    marks = st.lists(st.integers(0, len(text)), max_size=4, unique=True).map(sorted)
    pages = [Page(at, n) for n, at in enumerate(data.draw(marks), 1)]
    headings = [Heading(at, data.draw(st.integers(1, 3)), f"H{at}") for at in data.draw(marks)]
    places = split(text, pages, headings, Chunking(strategy=strategy, size=size, overlap=overlap))
    assert bool(places) == bool(text.strip())
    done = 0
    for place in places:
        content = text[place.start : place.end]
        assert content.strip()
        assert place.tokens == count(content)
        assert place.tokens <= size or len(content.strip()) <= 2
        assert text[place.start - 1 : place.start + 1] != "\r\n"
        assert text[place.end - 1 : place.end + 1] != "\r\n"
        assert not visible(text, done, place.start)
        done = place.end
    assert not visible(text, done, len(text))
    for before, after in pairwise(places):
        assert before.start < after.start
        assert before.end < after.end
        if strategy == "semantic" or not overlap:
            assert before.end <= after.start
        if strategy == "recursive" and after.start < before.end:
            assert count(text[after.start : before.end]) <= overlap


@strategies
def test_token_counts_are_those_of_o200k(strategy: str) -> None:
    text = (
        "The quick brown fox — “jumps” over 12345 lazy dogs' naïve tails. Они ушли. 明日は休みです。\n\n" * 40
    )
    bpe = tokens._loaded("o200k_base").bpe
    places = split(text, [], [], Chunking(strategy=strategy, size=100, overlap=10))
    assert len(places) > 5
    for place in places:
        assert place.tokens == len(bpe.encode(text[place.start : place.end], disallowed_special=()))


@strategies
def test_eleven_characters_are_one_chunk_and_space_is_none(strategy: str) -> None:
    chunking = Chunking(strategy=strategy)
    assert split("hello world", [], [], chunking) == [ChunkPlace(0, 11, 2)]
    assert split("", [], [], chunking) == split(" \n\t\r\n\u2003", [], [], chunking) == []


@strategies
def test_impossible_sizes_are_refused_by_name(strategy: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        split("text", [], [], Chunking(strategy=strategy, size=0, overlap=0))
    assert refused.value.field == "size"


@strategies
@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "🫠" * 60_000,
        "\n" * 300_000 + "x",
        "\r\n" * 150_000 + "x",
        ". " * 60_000,
        "." * 300_000,
        "\"'" * 100_000,
        "人工智能正在改变世界，我们需要理解它的影响" * 5_000,
        "\n- " * 40_000,
        "a" + "\u0301" * 100_000,
    ],
    ids=["letter", "emoji", "newline", "crlf", "stops", "dots", "quotes", "han", "bullets", "marks"],
)
@pytest.mark.gate("letter", "emoji", "dots")
def test_long_runs_of_one_thing_are_split(strategy: str, text: str) -> None:
    """Each takes well under a second; anything quadratic would take minutes."""
    places = split(text, [], [], Chunking(strategy=strategy))
    assert max(place.tokens for place in places) <= Chunking().size == 200
    assert not visible(text, places[-1].end, len(text))


@strategies
def test_page_and_headings_are_those_where_the_chunk_begins(strategy: str) -> None:
    parts = [
        "Preface words. ",
        "Title\n",
        "Body one. " * 30,
        "Deep\n",
        "Body two. " * 30,
        "Next\n",
        "End. " * 30,
    ]
    starts = [sum(map(len, parts[:i])) for i in range(len(parts))]
    headings = [
        Heading(starts[1], 1, "Title"),
        Heading(starts[3], 2, "Deep"),
        Heading(starts[5], 1, " Next  one "),
    ]
    pages = [Page(0, 1), Page(starts[4], 2), Page(starts[6], 7)]
    text = "".join(parts)
    expected = ["Title", "Title", "Title > Deep", "Next one"]
    for place in split(text, pages, headings, Chunking(strategy=strategy, size=20, overlap=0)):
        first = place.start + len(text[place.start : place.end]) - len(text[place.start : place.end].lstrip())
        above = sum(heading.start <= first for heading in headings)
        if above or place.end > starts[1]:
            assert place.heading == expected[above]
        else:
            assert place.heading is None
        assert place.page == [page.number for page in pages if page.start <= first][-1]
        last = place.start + len(text[place.start : place.end].rstrip()) - 1
        assert place.last_page == [page.number for page in pages if page.start <= last][-1]


def test_a_chunk_before_the_first_page_has_none() -> None:
    (place,) = split("cover page", [Page(6, 1)], [], Chunking())
    assert (place.page, place.last_page) == (None, 1)


def test_heading_paths_follow_levels_and_stay_short() -> None:
    levels = [(2, "a"), (1, "b"), (3, "c"), (2, "d"), (2, " "), (1, "e")]
    paths = heading_paths([Heading(i, level, text) for i, (level, text) in enumerate(levels)])
    assert paths == ["a", "b", "b > c", "b > d", "b", "e"]
    long = [Heading(i, i + 1, character * 90) for i, character in enumerate("xyz")]
    assert heading_paths(long)[1:] == [f"{'x' * 90} > {'y' * 90}", f"{'y' * 90} > {'z' * 90}"]
    assert heading_paths([Heading(0, 1, "w" * 500)]) == ["w" * 199 + "…"]
    assert heading_paths([Heading(0, 1, "")]) == [None]


@pytest.mark.parametrize(
    ("title", "heading", "header"),
    [
        ("The Moon", "Craters > Tycho", "The Moon > Craters > Tycho"),
        ("The Moon", None, "The Moon"),
        (None, "Craters", "Craters"),
        (None, None, ""),
        ("moon.pdf", None, ""),
        ("Moon", "Craters", "Craters"),
        ("The Moon", "the moon > Craters", "the moon > Craters"),
        ("two\n lines", "a\tb", "two lines > a b"),
        ("t" * 400, "h" * 400, "h" * 299 + "…"),
        ("t" * 400, "h" * 100, "t" * 196 + "… > " + "h" * 100),
    ],
)
def test_context_header(title: str | None, heading: str | None, header: str) -> None:
    assert context_header(title, heading, "moon.pdf") == header


@given(st.none() | st.text(), st.none() | st.text(), st.text())
def test_context_header_is_one_short_line(title: str | None, heading: str | None, filename: str) -> None:
    header = context_header(title, heading, filename)
    assert len(header) <= 300
    assert len(header.splitlines()) <= 1


def test_splitting_loads_nothing_heavy() -> None:
    heavy = ["tantivy", "onnxruntime", "semchunk", "pypdfium2", "lxml", "turbovec", "starlette", "httpx"]
    script = f"import sys, memoranda.text.splitting; print([m for m in {heavy} if m in sys.modules])"
    asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert asked.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("title", "filename", "above", "header"),
    [
        ("Your invoice of May", "mail 17.eml", "", "Your invoice of May | mail 17.eml"),
        (None, "report_2026-final.pdf", "", "report_2026-final.pdf"),
        ("report", "report.pdf", "", "report.pdf"),
        ("Moon", "moon.pdf", "Moon > Craters", "Moon > Craters | moon.pdf"),
        ("Moon", "apollo.pdf", "Moon > Craters", "Moon > Craters | apollo.pdf"),
        ("Sun", "a.txt", "Light > Heat", "Sun | Light > Heat"),
        (None, "scan 3.pdf", "", ""),
        ("scan 3", "scan 3.pdf", "", "scan 3"),
        (None, "4711.pdf", "", "4711.pdf"),
    ],
)
def test_the_first_chunk_has_title_and_name(
    title: str | None, filename: str, above: str, header: str
) -> None:
    assert file_header(title, filename, above) == header


@given(st.text(max_size=400), st.text(max_size=400), st.text(max_size=300))
def test_a_file_header_is_one_short_line(title: str, filename: str, above: str) -> None:
    header = file_header(title, " ".join(filename.split()), " ".join(above.split()))
    assert len(header) <= 300
    assert len(header.splitlines()) <= 1
