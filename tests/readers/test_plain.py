"""Texts of any encoding stay as they are; Markdown's headings stand where they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.readers import formats, plain
from memoranda.readers.base import Limits, Unreadable
from memoranda.readers.mail import stored
from memoranda.text.decoding import NotText, decoded, is_text
from support.growth import grows_in_proportion

DOCS = Path(__file__).parents[3] / "shared" / "data" / "docs"


@pytest.mark.parametrize(
    ("text", "encoding", "told"),
    [
        ("Grüße aus Köln", "utf-8", "utf-8"),
        ("Grüße aus Köln", "utf-8-sig", "utf-8-sig"),
        ("Grüße aus Köln", "utf-16", "utf-16"),
        ("Grüße aus Köln", "utf-32", "utf-32"),
        ("Grüße aus Köln am Rhein", "utf-16-le", "utf-16-le"),
        ("Grüße aus Köln am Rhein", "utf-16-be", "utf-16-be"),
        ("Grüße aus Köln am Rhein", "utf-32-le", "utf-32-le"),
        ("Grüße aus Köln am Rhein", "utf-32-be", "utf-32-be"),
    ],
)
def test_an_encoding_that_is_told(text: str, encoding: str, told: str) -> None:
    found = decoded(text.encode(encoding))
    assert (found.text, found.encoding, found.guessed, found.replaced) == (text, told, False, False)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Grüße für 5 €", "cp1252"),
        ("café déjà vu, garçon élève où est la bibliothèque", "latin-1"),
        ("Привет, как дела? Это обычный текст на русском языке.", "cp1251"),
        ("Привет, как дела? Это обычный текст на русском языке.", "koi8-r"),
        ("これは日本語の文章です。文字コードを調べます。", "shift_jis"),
        ("これは日本語の文章です。文字コードを調べます。", "euc-jp"),
        ("这是一个简单的中文文本，用来测试编码。", "gb18030"),
        ("這是一個簡單的中文文本，用來測試編碼。", "big5"),
        ("안녕하세요 세계 오늘은 날씨가 좋습니다", "cp949"),
        ("Zażółć gęślą jaźń, proszę bardzo, dziękuję", "cp1250"),
        ("Γειά σου Κόσμε, τι κάνεις σήμερα;", "cp1253"),
    ],
)
@pytest.mark.parametrize("times", [1, 3_000])
def test_an_encoding_that_is_guessed(text: str, encoding: str, times: int) -> None:
    whole = "\n".join(["plain words before", *[text] * times])
    found = decoded(whole.encode(encoding))
    assert (found.text, found.guessed) == (whole, True)


def test_a_declared_encoding_counts_where_the_bytes_are_not_utf_8() -> None:
    assert decoded("Привет".encode("koi8-r"), "KOI8-R").text == "Привет"
    assert decoded("Привет".encode(), "koi8-r").text == "Привет"
    assert decoded("日本".encode("iso-2022-jp"), "ISO-2022-JP").text == "日本"
    assert decoded("“quoted”".encode("cp1252"), "iso-8859-1").text == "“quoted”"
    assert decoded("Grüße".encode("cp1252"), "no-such-charset").text == "Grüße"
    assert decoded(b"abc", "base64").text == "abc"
    broken = decoded("日本語".encode("euc_jp") * 100 + b"\xff", "euc-jp")
    assert broken.replaced
    assert broken.text.startswith("日本語")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            ("Die Prüfung in Köln.\n" * 30 + "Schluß ü").encode()[:-1],
            "Die Prüfung in Köln.\n" * 30 + "Schluß \ufffd",
        ),
        ("Größe über Maß ".encode() + b"caf\xe9 " + b"end" * 900, "Größe über Maß caf\ufffd " + "end" * 900),
        ("Привет, как дела? ".encode() + b"\xff", "Привет, как дела? \ufffd"),
        ("kept \ufffd\ufffd ä".encode() + b"\xff", "kept \ufffd\ufffd ä\ufffd"),
    ],
)
def test_a_few_invalid_bytes_leave_utf_8_what_it_is(data: bytes, text: str) -> None:
    found = decoded(data)
    assert (found.text, found.encoding, found.guessed, found.replaced) == (text, "utf-8", True, True)
    assert decoded(data, "utf-8").text == text


@pytest.mark.parametrize("encoding", ["gb18030", "big5", "cp949", "euc_jp", "shift_jis"])
@pytest.mark.parametrize("times", [1, 3, 40])
def test_no_other_encoding_looks_like_utf_8(encoding: str, times: int) -> None:
    words = {"cp949": "안녕하세요 세계", "euc_jp": "日本語の文章", "shift_jis": "日本語の文章"}
    text = words.get(encoding, "大家好我很快樂")
    assert decoded((text * times).encode(encoding)).encoding != "utf-8"


@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_not(data: bytes) -> None:
    is_text(data)
    try:
        found = decoded(data)
    except NotText:
        return
    assert isinstance(found.text, str)
    assert found.text.encode("utf-8", "surrogatepass") is not None


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=200))
def test_utf_8_is_never_mistaken(text: str) -> None:
    assert decoded(text.encode()).text.removeprefix("\ufeff") == text.removeprefix("\ufeff")


def written(folder: Path, data: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(data)
    return path


def test_a_text_stays_as_it_is_but_for_line_ends(tmp_path: Path) -> None:
    text = "  a\t b  \n\n\n\nc\x0c\n"
    document = plain.read(written(tmp_path, text.replace("\n", "\r\n").encode()), Limits())
    assert document.text == text
    assert (document.notes, document.title, document.headings, document.pages) == ([], None, [], [])
    assert plain.read(written(tmp_path, b"a\rb\r\nc\n"), Limits()).text == "a\nb\nc\n"


def test_what_was_guessed_and_taken_away_is_noted(tmp_path: Path) -> None:
    guessed = plain.read(written(tmp_path, "Grüße".encode("cp1252")), Limits())
    assert guessed.notes == ["the encoding is not declared; it was read as cp1252"]
    long = b"a line of words\n" * 100
    document = plain.read(written(tmp_path, long + b"\0\0" + long), Limits())
    assert document.text == (long + long).decode()
    assert document.notes == ["2 characters that no text can hold (NUL, half a surrogate pair) are left out"]
    half = "a line\n".encode("utf-16-le") * 100
    document = plain.read(written(tmp_path, b"\xff\xfe" + half + b"\x00\xd8" + half), Limits())
    assert document.text.startswith("a line\n")
    assert document.text.isprintable() is False
    assert "some bytes are not utf-16" in document.notes[0]
    assert document.text.encode()


@pytest.mark.parametrize("data", [b"\0\1\2\3" * 100, b"a\0b", b"words\n" * 10 + b"\x89PNG\x01\x02\x03\0\0\0"])
def test_what_is_no_text(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(Unreadable, match="is no text") as caught:
        plain.read(written(tmp_path, data), Limits())
    assert caught.value.code == "unsupported_file"


@pytest.mark.parametrize("data", ["x" * 1_001, "é" * 1_001, "x" * 100_000])
def test_too_many_characters(tmp_path: Path, data: str) -> None:
    limits = Limits(characters=1_000)
    with pytest.raises(
        Unreadable, match=r"more than 1,000 characters of text; split it, or raise readers.characters"
    ):
        plain.read(written(tmp_path, data.encode()), limits)
    assert len(plain.read(written(tmp_path, ("é" * 1_000).encode()), limits).text) == 1_000


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r'{"frage": "\u0413\u0434\u0435"}', '{"frage": "Где"}'),
        (r'"Schlo\u00DFstra\u00dfe \ud83d\ude00"', '"Schloßstraße 😀"'),
        (r'"a \\u00fc, \\\u00fc, \n\"\t"', r'"a \\u00fc, \\ü, \n\"\t"'),
        (r'"\u0022 \u005c \u0000 \u2028 \ud83d \ude00\ud83d \ufffd \u12"', None),
        ("{}\n[1]\n", None),
    ],
)
def test_json_has_the_characters_that_its_escapes_stand_for(
    tmp_path: Path, escaped: str, text: str | None
) -> None:
    document = formats.read(written(tmp_path, escaped.encode()), "a.jsonl", Limits())
    assert document.text == (text or escaped)
    assert document.media_type == "application/jsonl"


@given(st.recursive(st.text(), st.lists))
def test_json_stays_the_same_value(value: object) -> None:
    with stored(json.dumps(value).encode()) as path:
        assert json.loads(plain.json(path, Limits()).text) == value


def test_nothing_but_spaces(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="holds no text"):
        plain.read(written(tmp_path, b" \n\t\n"), Limits())


MARKED = """---
layout: page
title: "Of headings"
---
# First #
words
  ## Second **bold**
Third
=====

```sh
# a comment
```
Fourth
------
two
lines
---

- a list
---
| a | b |
---
    # code
####### seven
#none
#
~~~~
~~~
# inside
~~~~~
###### C#
# ##
last
="""


def test_headings_of_markdown(tmp_path: Path) -> None:
    document = plain.markdown(written(tmp_path, MARKED.encode()), Limits())
    assert [(one.level, one.text) for one in document.headings] == [
        (1, "First"), (2, "Second **bold**"), (1, "Third"), (2, "Fourth"), (6, "C#"), (1, "last"),
    ]  # fmt: skip
    assert document.title == "Of headings"
    assert document.text == MARKED
    assert all(MARKED.startswith(one.text, one.start) for one in document.headings)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("## Small\n\n# Large\n", "Large"),
        ("## Small\n", None),
        ("---\ntitle: it's\n---\n# Large", "it's"),
        ("---\nTitle: ''\n---\n# Large", "Large"),
        ("---\nnot front matter\n\n# Large", "Large"),
    ],
)
def test_title_of_markdown(tmp_path: Path, text: str, title: str | None) -> None:
    assert plain.markdown(written(tmp_path, text.encode()), Limits()).title == title


LINES = st.sampled_from(
    [
        "# a",
        "## b #",
        "c",
        "===",
        "---",
        "",
        "```",
        "~~~",
        "- d",
        "   # e",
        "title: f",
        "#",
        "\tg",
        "...",
        "=",
        " ",
    ]
)


@given(st.lists(LINES, max_size=30))
def test_headings_stand_where_they_say(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = list(plain.headings(text))
    for one in found:
        assert one.text == text[one.start : one.start + len(one.text)]
        assert one.text
        assert one.text == one.text.strip()
        assert "\n" not in one.text
        assert 1 <= one.level <= 6
    assert [one.start for one in found] == sorted({one.start for one in found})


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1_000_000, lambda n: "# a" + " " * n + "b"),
        (400_000, lambda n: "#" + " #" * n),
        (1_000_000, lambda n: "`" * n),
        (60_000, lambda n: "-" * n + "x"),
        (25_000, lambda n: "- " * n + "\nx\n-\n"),
        (25_000, lambda n: "---\n" + "a\n" * n),
        (4_000, lambda n: "x\n-\n" * n),
        (200_000, lambda n: " " * n + "\nx\n=\n"),
        (30_000, lambda n: "\n" * n),
        (10_000, lambda n: "~~~\n" * n),
    ],
)
def test_no_text_takes_more_than_its_length(size: int, text: Callable[[int], str]) -> None:
    grows_in_proportion(lambda given: list(plain.headings(given)), text, size)


@pytest.mark.skipif(not DOCS.is_dir(), reason="the folder shared/data/docs is not beside the checkout")
def test_real_texts() -> None:
    for path in sorted([*(DOCS / "md").iterdir(), *(DOCS / "txt").iterdir()]):
        document = plain.markdown(path, Limits())
        assert document.text.strip()
        assert "\r" not in document.text
        assert document.text.encode()
        for one in document.headings:
            assert one.text == document.text[one.start : one.start + len(one.text)], path.name
    ducks = plain.markdown(DOCS / "md" / "docling__wiki_duck.html.md", Limits())
    assert (ducks.title, len(ducks.headings)) == ("Duck", 21)
