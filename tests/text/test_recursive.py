"""Where recursive chunks end, and what they repeat."""

from __future__ import annotations

from itertools import pairwise

from memoranda.text.splitting import pieces, recursive
from memoranda.text.tokens import count


def texts(text: str, **options: object) -> list[str]:
    return [text[chunk.start : chunk.end] for chunk in recursive(text, **options)]  # type: ignore[arg-type]


def words(n: int, word: str = "the") -> str:
    return " ".join([word] * n)


def test_what_fits_is_one_chunk() -> None:
    text = f"{words(20)}.\n\n{words(20)}."
    assert texts(f"  {text}\n", size=50, overlap=5) == [text]


def test_a_paragraph_is_a_better_end_than_a_later_sentence() -> None:
    first, second = f"{words(20)}.", f"The {words(12)}. The {words(30)}."
    assert texts(f"{first}\n\n{second}", size=50, overlap=0) == [first, second]


def test_a_sentence_is_a_better_end_than_a_later_line_or_word() -> None:
    text = f"The {words(20)}. The {words(10)}\n{words(30)}"
    assert texts(text, size=50, overlap=0)[0] == f"The {words(20)}."


def test_a_line_is_a_better_end_than_a_later_word() -> None:
    assert texts(f"{words(30)}\n{words(40)}", size=50, overlap=0) == [words(30), words(40)]


def test_words_stay_whole_where_there_are_any() -> None:
    text = words(200, "internationalisation")
    for chunk in texts(text, size=16, overlap=4):
        assert set(chunk.split()) == {"internationalisation"}


def test_a_paragraph_in_the_first_third_ends_nothing() -> None:
    first = texts(f"Short.\n\n{words(100)}", size=50, overlap=0)[0]
    assert first.startswith("Short.\n\nthe")
    assert count(first) > 40


def test_a_heading_begins_a_chunk_after_a_third_and_repeats_nothing() -> None:
    text = f"Early words.\n# One\n{words(20)}.\n# Two\n{words(20)}."
    headings = [text.index("# One"), text.index("# Two")]
    assert texts(text, size=60, overlap=10, headings=headings) == [
        text[: headings[1]].rstrip(),
        text[headings[1] :],
    ]


def test_a_page_begins_a_chunk_only_with_a_sentence() -> None:
    text = f"The {words(30)}. The {words(50)}."
    page = text.index(". The") + 2
    assert texts(text, size=70, overlap=0, pages=[page])[0] == text[:page].rstrip()
    middle = text.index("the the", page + 30)
    assert texts(text, size=70, overlap=0, pages=[middle])[0] == text[:page].rstrip()
    assert texts(text, size=90, overlap=0, pages=[middle]) == [text]


def test_overlap_is_whole_sentences() -> None:
    text = " ".join(f"This is sentence number {n} of many." for n in range(60))
    chunks = recursive(text, 60, 20)
    for before, after in pairwise(chunks):
        again = text[after.start : before.end]
        assert again.startswith("This is")
        assert again.endswith("many.")
        assert 10 <= count(again) <= 20


def test_chunks_of_tables_begin_with_a_row() -> None:
    text = "\n".join(f"KB-{n} | Bolt no. {n}. With nut | {n * 3}.50 | rack {n}" for n in range(60))
    for overlap in (0, 5, 40):
        chunks = recursive(text, 100, overlap)
        assert len(chunks) > 5
        assert all(text[chunk.start :].startswith("KB-") for chunk in chunks)
        assert all(text[chunk.end : chunk.end + 1] in ("\n", "") for chunk in chunks)


def test_overlap_is_words_where_a_sentence_is_longer() -> None:
    chunks = recursive(words(300), 50, 10)
    for before, after in pairwise(chunks):
        assert count(words(300)[after.start : before.end]) == 10


def test_sections_of_windows_lines_are_found() -> None:
    first, second = f"{words(20)}.", f"{words(40)}."
    assert texts(f"{first}\r\n\r\n{second}", size=50, overlap=0) == [first, second]


def test_pieces_are_sentences_up_to_a_minimum_and_stop_at_headings() -> None:
    text = " ".join(f"This is sentence number {n}." for n in range(30)) + "\n# Head\nIt ends here."
    head = text.index("# Head")
    found = pieces(text, 100, 20, [head])
    assert text[found[-1].start : found[-1].end] == "# Head\nIt ends here."
    for piece in found[:-2]:
        assert 20 <= piece.tokens < 30
        assert text[piece.end - 1] == "."
    assert max(piece.tokens for piece in pieces(words(300), 50)) == 50
