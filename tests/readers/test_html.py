"""The text of HTML as a reader sees it, whatever its markup looks like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.readers import html
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import Body
from support.growth import grows_in_proportion

DOCS = Path(__file__).parents[3] / "shared" / "data" / "docs"


def document(markup: str | bytes, declared: str | None = None) -> Document:
    body = Body(Limits())
    title = html.fill(body, markup.encode() if isinstance(markup, str) else markup, declared)
    return body.document(html.MEDIA_TYPE, title)


def text(markup: str | bytes) -> str:
    """What is seen, nothing if nothing is."""
    body = Body(Limits())
    html.fill(body, markup.encode() if isinstance(markup, str) else markup)
    return "" if body.empty else body.document(html.MEDIA_TYPE).text


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<p>one<p>two", "one\n\ntwo"),
        ("<div>one</div><div>two</div>", "one\ntwo"),
        ("<p>one<br>two<br/>three", "one\ntwo\nthree"),
        ("a <b>b</b><i>c</i>\n  d", "a bc d"),
        ("<a>one</a><a>two</a>", "onetwo"),
        ("&lt;b&gt; &amp; &eacute;&#233;&#xe9; &nbsp; x &unknown; & y", "<b> & ééé x &unknown; & y"),
        ("1 < 2 and <3", "1 < 2 and <3"),
        ("<p class='a>b' title=\"c>d\" e=f>g", "g"),
        ("<p title=it's>a</p><p>b's", "a\n\nb's"),
        ("a<!-- <p>b --> c<!-->d<!--->e<!---->f", "a cdef"),
        ("a<![if !mso]>b<![endif]>c<?php echo '>' ?>d</ e>f</>g", "abc' ?>dfg"),
        ("a<script>if (a<b) '</p>'</script>b<style>p{}</style >c<SCRIPT>x</script>d", "abcd"),
        ("a<nav>b<nav>c</nav>d</nav>e<template><p>f</template>g<noscript>h</noscript>i", "aegi"),
        ("a<nav>never closed <p>b</p> c", "anever closed\n\nb\n\nc"),
        ("a<nav><script>'</nav>'</script>b<!--</nav>-->c</nav>d", "ad"),
        ("a<script>never closed <p>b", "a"),
        ("<svg><title>t</title><text>s</text></svg>a", "a"),
        ("<pre>\n  a\n\tb  \n\n  c</pre>d", "  a\n\tb\n\n  c\n\nd"),
        ("<pre><div>a</div><div>b</div></pre>", "a\nb"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e", "- a\n- b\n- c\n- d\n\ne"),
        ("<ol><li>a</li><li><p>b</p></li><li>c</li></ol>", "1. a\n\n2. b\n\n3. c"),
        (
            "2<sup>10</sup> 10<sup><a>-3</a>4</sup> 10 <sup>6</sup> 5<sup>th</sup> m<sup>2</sup> 1<sub>2</sub>3",
            "2^10 10^-34 10 6 5th m^2 123",
        ),
        ("<ol start=12><li>a<li>b<li value='20'>c<li value=x>d</ol>", "12. a\n13. b\n20. c\n21. d"),
        ("<ol type=A start=2><li>a<ol type='i'><li>b<li>c</ol><li>d</ol>", "B. a\ni. b\nii. c\nC. d"),
        ("<hidden>a</hidden><ol start=&#50;><li title=' value=9'>b", "a\n\n2. b"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\nb\nc\nd"),
        ("<textarea>a <b></textarea>", "a <b>"),
        ("<p>a\0b</p>" + "<p>words</p>" * 30, "ab" + "\n\nwords" * 30),
        ("漢<ruby>字<rp>(</rp><rt>ji</rt><rp>)</rp></ruby>", "漢字(ji)"),
        ("no markup at all", "no markup at all"),
        ("<p>unfinished <b", "unfinished"),
        ("<h1></h1><p> &nbsp; </p>", ""),
    ],
)
def test_what_is_seen(markup: str, expected: str) -> None:
    assert text(markup) == expected


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> mg", "1/2 mg"),
        ("<math><msup><mi>x</mi><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msup></math>", "x^(n+1)"),
        ("<math><msqrt><mn>16</mn></msqrt><mo>=</mo><mroot><mi>x</mi><mn>3</mn></mroot></math>", "√16=3√x"),
        (
            "<math><munderover><mo>&sum;</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>"
            "<mi>i</mi><mo>&lt;</mo><mn>9</mn></math>",
            "∑_(i=1)^ni<9",
        ),
        ("<math><semantics><mi>x</mi><annotation>\\x</annotation></semantics></math>", "x"),
        ("<math>never closed <mi>x</mi>", "never closed x"),
        ("x<sup>2</sup> cm<sup>2</sup> (a)<sup>2</sup> words<sup>2</sup>", "x^2 cm^2 (a)^2 words2"),
        (
            "<input type=checkbox checked>a <input type=CHECKBOX>b <input type=radio checked>c",
            "[x] a [ ] b [x] c",
        ),
        ("<input type=checkbox hidden>a<input type=hidden value=b><input value=c>", "a"),
        ("<select><option>a<option selected>b &amp; c<option>d</select>", "b & c"),
        ("<select><option value=selected>a</option><option>b</option></select>", "a"),
        ("<select multiple><option selected>a<option>b<option selected>c</select>d", "a, c\nd"),
    ],
)
def test_equations_and_forms(markup: str, expected: str) -> None:
    assert text(markup) == expected


@pytest.mark.parametrize(
    ("markup", "expected", "hidden"),
    [
        ("a<div style='display:none'>no<div>no</div></div>b", "a\nb", 1),
        ("a<b STYLE='color:red; Display : NONE !important'>no</b>b", "ab", 1),
        ("a<span hidden>no</span><b style='visibility:hidden'>no</b><b style=opacity:0.0>no</b>b", "ab", 3),
        ("a<del>no</del><s>no</s><b style='text-decoration: line-through red'>no</b><ins>b</ins>", "ab", 3),
        ("<p style='font-size:0px'>no</p><p style='font-size:0.5em; opacity:.5'>a", "a", 1),
        ("<td style='font-size:0'><i style='font-size:9px'>a</i></td>", "a", 0),
        ("<p class=hidden data-x=hidden aria-hidden=true title=' hidden '>a</p>", "a", 0),
        ("<p hidden=until-found>a</p><input hidden>b<br hidden>c", "a\n\nb\nc", 0),
        ("<div hidden>never closed <div hidden>a</div>", "never closed\na", 0),
        ("<body style='visibility:hidden'>a</body>", "a", 0),
        ("a<span hidden> <i></i></span>b", "ab", 0),
    ],
)
def test_what_is_hidden_or_struck_out_is_left_out_and_counted(
    markup: str, expected: str, hidden: int
) -> None:
    read = document(markup)
    notes = [note for note in read.notes if "hidden" in note]
    assert (read.text, [note.split()[0] for note in notes]) == (expected, [str(hidden)] if hidden else [])
    body = Body(Limits(hidden_text=True))
    html.fill(body, markup.encode())
    assert ("no" in body.document("").text.replace("never", "")) is bool(hidden and "no" in markup)


def test_a_document_of_hidden_text_alone_has_none(tmp_path: Path) -> None:
    path = tmp_path / "made.html"
    path.write_text("<p hidden>a</p>")
    with pytest.raises(Unreadable, match="what it has is hidden or struck out"):
        html.read(path, Limits())


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>c", "a | b\n1 | 2\n\nc"),
        (
            "<table><tr><td> a\n b <td><td>c<td></tr><tr><td>d<td>&nbsp;</td><td>e</table>",
            "a b | c\nd | e",
        ),
        (
            "<table><tr><th><th>Free<th>Pro<tr><td>Storage<td>10 GB<td>1 TB<tr><td>SSO<td><td>yes<tr><td><td></table>",
            "| Free | Pro\nStorage | 10 GB | 1 TB\nSSO |  | yes",
        ),
        ("<table><tr><td><td>a<tr><td><td>b<p>c</p></table>", "a\nb c"),
        ("<table><tr><td>a<td>b<tr><td><td>c<tr><td><h2>d</h2><tr><td><td>e</table>", "a | b\n| c\n\nd\n\ne"),
        ("<table><caption>d</caption><tr><td><p>a</p><p>b</p></td><td>c</td></tr></table>", "d\na b | c"),
        (
            "<table><tr><td>a<table><tr><td>b<td>c<tr><td>d</table></td><td>e</td></tr></table>",
            "a\n\nb | c\nd\n\ne",
        ),
        ("<table><tr><td><h2>a</h2>b</td><td>c</td></tr></table>", "a\n\nb\n\nc"),
        ("<table><tr><td>a</td></tr>", "a"),
        (
            "<table><tr><th>Region<th>City<th>Sales<tr><td rowspan=2>North<td>Oslo<td>10<tr><td>Bergen<td>20"
            "<tr><td>South<td>Rome<td>5</table>",
            "Region | City | Sales\nNorth | Oslo | 10\nNorth | Bergen | 20\nSouth | Rome | 5",
        ),
        (
            "<table><tr><th ROWSPAN='2'>Name<th colspan=\"2\">2023<th colspan=2>2024<tr><td>H1<td>H2<td>H1<td>H2"
            "<tr><td>A<td>1<td>2<td>3<td>4</table>",
            "Name | 2023 |  | 2024\nName | H1 | H2 | H1 | H2\nA | 1 | 2 | 3 | 4",
        ),
        (
            "<table><tr><td>a<td>b<td rowspan=3>c<tr><td>d<tr><td data-rowspan=2 rowspan=0>e<td>f"
            "<tr><td>g<td>h<td>i</table>",
            "a | b | c\nd |  | c\ne | f | c\ng | h | i",
        ),
        ("<table><tr><td rowspan=2>" + "a" * 81 + "<td>b<tr><td>c</table>", "a" * 81 + " | b\n| c"),
        ("<table><tr><td>a<td>b</tr>c<tr><td>d<td>e</table>f", "a | b\nc\nd | e\n\nf"),
        ("<table><tr><td>a<td>b</tr><table><tr><td>c<td>d</table></table>", "a | b\nc | d"),
        ("</td></tr></table><p>a</table>b", "a\n\nb"),
        ("<td>a<td>b", "a\nb"),
    ],
)
def test_tables(markup: str, expected: str) -> None:
    assert text(markup) == expected


def test_a_table_that_only_places_things_is_no_row() -> None:
    long = "<p>" + "word " * 100 + "</p>"
    assert text(f"<table><tr><td>menu</td><td>{long}{long}</td></tr></table>").split("\n\n")[0] == "menu"


def test_headings_and_title() -> None:
    found = document(
        "<html><head><title> A\n <b>&amp; </title></head><body>x<h1>One <i>two</i></h1><h2><div>Three</div>four</h2>"
        "<p>y<h3>open<p>z<h4></h4><svg><title>no</title></svg><h6>Six</h6>"
    )
    assert found.title == "A <b>&"
    assert [(one.level, one.text) for one in found.headings] == [
        (1, "One two"), (2, "Three four"), (3, "open"), (6, "Six"),
    ]  # fmt: skip
    for one in found.headings:
        assert found.text.startswith(one.text, one.start)


def test_a_file_takes_its_title_from_its_first_heading(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<h2>Small</h2><h1>Large</h1>")
    assert html.read(path, Limits()).title == "Large"
    path.write_text("<title>x</title><h1>Large</h1>")
    assert html.read(path, Limits()).title == "x"


def test_a_file_of_navigation_only_is_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<nav><ul><li>Home</ul></nav>")
    assert html.read(path, Limits()).text == "- Home"
    path.write_text("<title>x</title><script>y</script>")
    with pytest.raises(Unreadable, match="holds no text"):
        html.read(path, Limits())
    with pytest.raises(Unreadable, match="is larger than"):
        html.read(path, Limits(unpacked_bytes=10))


def test_xhtml_has_elements_without_content() -> None:
    markup = (
        "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/><script src='a'/></head>"
        "<body><nav/><p>a</p><h1/><table><tr><td/><td>b</td></tr></table><![CDATA[c < <d>]]></body></html>"
    )
    assert text(markup) == "a\n\nb\n\nc < <d>"
    assert text("<p>a<script/>b<p>c") == "a"


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        ("<meta charset=koi8-r><p>Привет".encode("koi8-r"), None),
        (
            "<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>Привет".encode("cp1251"),
            None,
        ),
        ("<?xml version='1.0' encoding='iso-8859-5'?><p>Привет</p>".encode("iso-8859-5"), None),
        ("<p>Привет".encode("koi8-r"), "koi8-r"),
        ("<meta charset=iso-8859-1><p>Привет".encode(), None),
        ("<meta charset=koi8-r><p>Привет".encode("utf-8-sig"), None),
        ("<meta charset=utf-16><p>Привет".encode(), None),
        ("<meta charset=utf-8><p>Привет".encode("utf-16"), None),
        ("<p>Привет".encode("utf-16-le") + b"\n\0" * 20, None),
    ],
)
def test_encodings(data: bytes, declared: str | None) -> None:
    found = document(data, declared)
    assert found.text == "Привет"
    assert found.notes == []


PIECES = st.sampled_from(
    ["<p>", "</p>", "<div>", "<h1>", "</h1>", "<h3>", "a", " b ", "&amp;", "\n", "<br>", "<table>", "</table>", "<tr>",
     "<td>", "</td>", "<pre>", "</pre>", "<ul>", "<li>", "</ul>", "<nav>", "</nav>", "<script>", "</script>", "<!--",
     "-->", "<", ">", "'", "<a b='", "<title>", "</title>", "<svg>", "é", "\x85", "\u00ad", "&#0;", "&#xd800;", "]]>"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40))
def test_any_markup_is_read_and_headings_stand_where_they_say(pieces: list[str]) -> None:
    body = Body(Limits())
    html.fill(body, "".join(pieces).encode())
    if body.empty:
        return
    found = body.document(html.MEDIA_TYPE)
    assert found.text.strip()
    assert found.text.encode()
    for one in found.headings:
        assert one.text
        assert one.text == found.text[one.start : one.start + len(one.text)]
    assert [one.start for one in found.headings] == sorted(one.start for one in found.headings)


LONG: list[tuple[int, Callable[[int], str]]] = [
    (80_000, lambda n: "<div>" * n + "x"),
    (10_000, lambda n: "<table><tr><td>" * n + "x"),
    (2_000, lambda n: "<table>" + "<tr><td rowspan=9999 colspan=9999>x<td>y" * n),
    (10_000, lambda n: "<ul><li>" * n + "x"),
    (10_000, lambda n: "<h1>" * n + "x"),
    (10_000, lambda n: "<nav>" * n + "x"),
    (10_000, lambda n: "<title>" * n + "x"),
    (10_000, lambda n: "<template><script>" * n + "x"),
    (100_000, lambda n: "<!--" * n),
    (200_000, lambda n: "<script>" * n),
    (100_000, lambda n: "<a" * n),
    (30_000, lambda n: "<" * n + "x"),
    (50_000, lambda n: "<a b='" * n),
    (30_000, lambda n: "<a b= " * n),
    (30_000, lambda n: "<a " + " ".join(f"a{i}=1" for i in range(n)) + ">x</a>"),
    (100_000, lambda n: "&" * n),
    (500_000, lambda n: "&#" + "1" * n + "x"),
    (4_000, lambda n: "".join(f"<x{i} hidden>" for i in range(n)) + "x"),
    (2_000, lambda n: "<p style=font-size:0><i style=font-size:1px>x</i>" * n),
    (2_000, lambda n: "<b style='font-size:0'>" * n + "font-size" + "</b>" * n),
    (10_000, lambda n: "<math>" * n + "x" + "</math>" * n),
    (10_000, lambda n: "<select><option>" * n + "x"),
    (100_000, lambda n: "<i style='opacity:" + "0" * n + "x'>x"),
    (20_000, lambda n: "<i style='" + "text-decoration:" * n + "'>x"),
]
"""Markup made to harm, of any length, and one that takes some milliseconds."""


@pytest.mark.parametrize(("size", "markup"), LONG, ids=[markup(4)[:12] for _, markup in LONG])
@pytest.mark.gate("<h1>", "<!--", "<a a0", "&&&", "<x0 hidden", "<math>")
def test_no_markup_takes_more_than_its_length(size: int, markup: Callable[[int], str]) -> None:
    grows_in_proportion(text, markup, size)


def test_much_text_takes_no_more_than_its_length() -> None:
    assert len(text("<p>" + "hello world " * 1_000_000)) == 12_000_000 - 1
    grows_in_proportion(text, lambda n: "<p>" + "hello world " * n, 50_000)


@pytest.mark.skipif(not DOCS.is_dir(), reason="the folder shared/data/docs is not beside the checkout")
def test_real_pages() -> None:
    found = {path.name: html.read(path, Limits()) for path in sorted((DOCS / "html").iterdir())}
    assert len(found) == 20
    for name, one in found.items():
        assert "</" not in one.text.replace("</p>'", ""), name
        for heading in one.headings:
            assert heading.text == one.text[heading.start : heading.start + len(heading.text)], name
    assert found["markitdown__test_wikipedia.html"].title == "Microsoft - Wikipedia"
    assert "Year | Freshwater Ducks\n2019 | 120" in found["docling__odf_table_with_title_01.ods.html"].text
    assert "وأعرب الاتحاد الجزائري" in found["tika__testHTMLNoisyMetaEncoding_3.html"].text
    assert "Предлагаем Вам" in found["tika__resume.html"].text
    assert "日本語" in found["unstructured__example-steelJIS-datasheet-utf-16.html"].text
