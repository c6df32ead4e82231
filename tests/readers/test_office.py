"""Presentations, spreadsheets, OpenDocument and RTF, made here; and what their containers may do to the reader."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memoranda.readers import detect, more, odt, ole, pptx, rtf, sheets
from memoranda.readers.archive import Archive
from memoranda.readers.base import Limits, Unreadable
from memoranda.readers.body import Body, tidy
from support.zip_members import KIND, Zipped, links

A, P, S = "urn:x/drawingml", "urn:x/presentationml", "urn:x/spreadsheetml"


def shape(text: str, place: str = "") -> str:
    kind = f'<p:nvSpPr><p:nvPr><p:ph type="{place}"/></p:nvPr></p:nvSpPr>' if place else ""
    return f"<p:sp>{kind}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


def slide(*shapes: str) -> str:
    return f'<p:sld xmlns:p="{P}" xmlns:a="{A}">{"".join(shapes)}</p:sld>'


def presentation(*order: str) -> str:
    ids = "".join(f'<p:sldId id="{256 + i}" r:id="{name}"/>' for i, name in enumerate(order))
    return f'<p:presentation xmlns:p="{P}" xmlns:r="{KIND}"><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>'


def test_slides_in_the_order_shown_with_title_table_and_notes(zipped: Zipped) -> None:
    cells = "".join(f"<a:tc><a:txBody><a:p><a:r><a:t>{t}</a:t></a:r></a:p></a:txBody></a:tc>" for t in "ab")
    path = zipped(
        {
            "ppt/presentation.xml": presentation("slide_2", "slide_1"),
            "ppt/_rels/presentation.xml.rels": links(slide_1="slides/s1.xml", slide_2="slides/s2.xml"),
            "ppt/slides/s1.xml": slide(shape("End")),
            "ppt/slides/s2.xml": slide(
                shape("7", "sldNum"),
                shape("Body"),
                f"<a:tbl><a:tr>{cells}</a:tr></a:tbl>",
                shape("Begin", "title"),
            ),
            "ppt/slides/_rels/s2.xml.rels": links(notesSlide="../notes/n.xml"),
            "ppt/notes/n.xml": slide(shape("Say hello"), shape("1", "sldNum")),
        }
    )
    read = pptx.read(path, Limits())
    assert read.text == "Begin\n\nBody\n\na | b\n\nSay hello\n\nEnd"
    assert [(page.number, page.start) for page in read.pages] == [(1, 0), (2, read.text.index("End"))]
    assert [(h.text, h.start) for h in read.headings] == [("Begin", 0)]
    assert read.title == "Begin"
    with pytest.raises(Unreadable, match="more than 1 pages"):
        pptx.read(path, Limits(pages=1))


def test_merged_cells_of_a_slide(zipped: Zipped) -> None:
    def cell(text: str, merge: str = "") -> str:
        return f"<a:tc {merge}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = (
        cell("North", 'rowSpan="2"') + cell("Both", 'gridSpan="2"') + cell("", 'hMerge="1"'),
        cell("", 'vMerge="1"') + cell("1") + cell("2"),
    )
    table = f"<a:tbl>{''.join(f'<a:tr>{row}</a:tr>' for row in rows)}</a:tbl>"
    members = {
        "ppt/presentation.xml": presentation("slide_1"),
        "ppt/_rels/presentation.xml.rels": links(slide_1="slides/s1.xml"),
        "ppt/slides/s1.xml": slide(table),
    }
    assert pptx.read(zipped(members), Limits()).text == "North | Both\nNorth | 1 | 2"


def series(name: str, labels: str, values: str) -> str:
    title = f"<c:tx><c:strRef><c:strCache>{points(name)}</c:strCache></c:strRef></c:tx>"
    return f"<c:ser>{title}<c:cat>{labels}</c:cat><c:val><c:numRef>{values}</c:numRef></c:val></c:ser>"


def points(*texts: str) -> str:
    return "".join(f'<c:pt idx="{at}"><c:v>{text}</c:v></c:pt>' for at, text in enumerate(texts) if text)


def numbers(form: str, *texts: str) -> str:
    return f"<c:numCache><c:formatCode>{form}</c:formatCode>{points(*texts)}</c:numCache>"


def test_charts_are_their_titles_and_a_line_for_each_series_with_its_values(zipped: Zipped) -> None:
    years = numbers("General", "2022", "2023")
    days = numbers('[Red]d"."mm\\.yyyy', "45292", "45292.5")
    groups = f"<c:lvl>{points('H1', 'H2', 'H1')}</c:lvl><c:lvl>{points('2022', '', '2023')}</c:lvl>"
    chart = (
        f'<c:chartSpace xmlns:c="urn:c" xmlns:a="{A}"><c:title><a:p><a:r><a:t>Sales</a:t></a:r></a:p></c:title>'
        + series("Revenue", years, numbers("General", "415", "0.41499999999999998"))
        + series("Share", years, numbers("0.0%", "0.07", "0.5"))
        + series("Daily", days, numbers('0" d"', "1", "2"))
        + series("Half", f"<c:multiLvlStrCache>{groups}</c:multiLvlStrCache>", numbers("0", "1", "", "3"))
        + series("Text", f"<c:strCache>{points('007', '008')}</c:strCache>", numbers("0", "", "#N/A"))
        + "</c:chartSpace>"
    )
    members = {
        "ppt/presentation.xml": presentation("slide_1"),
        "ppt/_rels/presentation.xml.rels": links(slide_1="slides/s1.xml"),
        "ppt/slides/s1.xml": slide(shape("Body")),
        "ppt/slides/_rels/s1.xml.rels": links(chart="../charts/chart1.xml"),
        "ppt/charts/chart1.xml": chart,
    }
    assert pptx.read(zipped(members), Limits()).text.splitlines() == [
        "Body",
        "",
        "Sales",
        "Revenue | 2022: 415 | 2023: 0.415",
        "Share | 2022: 7% | 2023: 50%",
        "Daily | 2024-01-01: 1 | 2024-01-01 12:00: 2",
        "Half | 2022 H1: 1 | 2022 H2 | 2023 H1: 3",
        "Text | 007 | 008: #N/A",
    ]


def workbook(zipped: Zipped, *names: str, **cells: str) -> Path:
    """A workbook of sheets, each given as its rows' XML."""
    ids = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="worksheet_{i}"/>' for i, n in enumerate(names, 1))
    members = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": links(officeDocument="xl/workbook.xml"),
        "xl/workbook.xml": (
            '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
            f' xmlns:r="{KIND}"><sheets>{ids}</sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": links(
            **{f"worksheet_{i}": f"worksheets/sheet{i}.xml" for i in range(1, len(names) + 1)}
        ),
    }
    for i, name in enumerate(names, 1):
        members[f"xl/worksheets/sheet{i}.xml"] = (
            '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
            f"<sheetData>{cells[name]}</sheetData></worksheet>"
        )
    return zipped(members)


def cell(place: str, value: str, kind: str = "n") -> str:
    if kind == "s":
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{place}" t="{kind}"><v>{value}</v></c>'


def test_sheets_are_pages_with_numbers_as_written(zipped: Zipped) -> None:
    one = (
        f'<row r="1">{cell("A1", "name", "s")}{cell("B1", "n", "s")}</row>'
        f'<row r="4">{cell("A4", "two words", "s")}{cell("B4", "3")}{cell("C4", "0.1")}{cell("D4", "1", "b")}</row>'
    )
    two = f'<row r="1">{cell("A1", "12345678901")}</row>'
    read = sheets.read(workbook(zipped, "One", "Nil", "Two", One=one, Nil="", Two=two), Limits())
    assert read.text == "One\n\nname | n\ntwo words | 3 | 0.1 | TRUE\n\nTwo\n\n12345678901"
    assert [heading.text for heading in read.headings] == ["One", "Two"]
    assert [page.number for page in read.pages] == [1, 2, 3]
    assert read.text.startswith("Two", read.pages[2].start)


def test_a_sheet_whose_cells_lie_far_apart_is_left_out_with_a_note(zipped: Zipped) -> None:
    far = f'<row r="1">{cell("A1", "1")}</row><row r="1048576">{cell("XFD1048576", "2")}</row>'
    read = sheets.read(
        workbook(zipped, "Far", "Near", Far=far, Near=f'<row r="1">{cell("A1", "5")}</row>'), Limits()
    )
    assert read.text == "Near\n\n5"
    assert read.notes == ["left out, as their cells lie more than 20,000,000 places apart: Far"]


def opendocument(body: str) -> dict[str, str]:
    return {
        "mimetype": odt.TEXT,
        "content.xml": (
            f'<o:d xmlns:o="urn:o" xmlns:text="urn:t" xmlns:table="urn:tb" xmlns:style="urn:s">{body}</o:d>'
        ),
    }


def test_opendocument_headings_tables_spaces_and_notes(zipped: Zipped) -> None:
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:h text:outline-level="2">Part</text:h>'
        '<text:p>a<text:s text:c="2"/>b<text:note><text:p>below</text:p></text:note> goes<text:line-break/>on</text:p>'
        "<table:table-row><table:table-cell><text:p>x</text:p></table:table-cell>"
        "<table:table-cell><text:p>y</text:p></table:table-cell></table:table-row>"
    )
    read = odt.read(zipped(opendocument(body)), Limits())
    assert read.text == "Part\n\na  b goes\non\n\nbelow\n\nx | y"
    assert [(h.text, h.level, h.start) for h in read.headings] == [("Part", 2, 0)]


def frame(content: str, place: str = "") -> str:
    return f'<text:frame text:class="{place}">{content}</text:frame>'


def box(*paragraphs: str, place: str = "") -> str:
    lines = "".join(f"<text:p>{text}</text:p>" for text in paragraphs)
    return frame(f"<text:text-box>{lines}</text:text-box>", place)


def test_a_superscript_after_a_number_is_its_exponent(zipped: Zipped) -> None:
    body = (
        '<style:style style:name="T1"><style:text-properties style:text-position="super 58%"/></style:style>'
        '<style:style style:name="T2"><style:text-properties style:text-position="sub 58%"/></style:style>'
        '<text:p><text:span>10</text:span><text:span text:style-name="T1">1</text:span>'
        '<text:span text:style-name="T1">0</text:span> x1<text:span text:style-name="T2">2</text:span>'
        '5<text:span text:style-name="T1">th</text:span></text:p>'
    )
    assert odt.read(zipped(opendocument(body)), Limits()).text == "10^10 x125th"


def test_boxes_that_no_paragraph_follows_stand_where_they_are(zipped: Zipped) -> None:
    body = f"{box('first')}<text:p>host{box('boxed')} goes on</text:p>{box('last')}"
    assert odt.read(zipped(opendocument(body)), Limits()).text == "first\n\nhost goes on\n\nboxed\n\nlast"


def test_opendocument_slides_are_pages_with_title_boxes_tables_and_notes(zipped: Zipped) -> None:
    bullets = "".join(f"<text:list-item><text:p>{text}</text:p></text:list-item>" for text in ("one", "two"))
    cells = "".join(f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in "ab")
    body = (
        "<text:page>"
        + frame(f"<text:text-box><text:list>{bullets}</text:list></text:text-box>", "outline")
        + frame(f"<table:table><table:table-row>{cells}</table:table-row></table:table>")
        + "<text:custom-shape><text:p>drawn</text:p></text:custom-shape>"
        + box("All about", "tea", place="title")
        + f"<text:notes>{box('Say hello', place='notes')}{box('7', place='page-number')}</text:notes></text:page>"
        + f"<text:page>{box('footer', place='footer')}</text:page>"
        + f"<text:page>{box('End', place='title')}{box('', place='subtitle')}</text:page>"
    )
    read = odt.read(zipped(opendocument(body) | {"mimetype": detect.ODP}), Limits())
    assert read.text == "All about tea\n\none\ntwo\na | b\n\ndrawn\n\nSay hello\n\nEnd"
    end = read.text.index("End")
    assert [(page.number, page.start) for page in read.pages] == [(1, 0), (2, end), (3, end)]
    assert [(h.text, h.level, h.start) for h in read.headings] == [("All about tea", 1, 0), ("End", 1, end)]
    assert (read.title, read.media_type) == ("All about tea", detect.ODP)


def test_lists_of_opendocument_are_numbered(zipped: Zipped) -> None:
    def level(at: int, form: str, **more: str) -> str:
        said = "".join(f' style:{name.replace("_", "-")}="{text}"' for name, text in more.items())
        return f'<text:list-level-style-number text:level="{at}" style:num-format="{form}"{said}/>'

    def listed(*items: str, **more: str) -> str:
        said = "".join(f' text:{name.replace("_", "-")}="{text}"' for name, text in more.items())
        return f"<text:list{said}>{''.join(items)}</text:list>"

    def item(*content: str, said: str = "") -> str:
        return f"<text:list-item {said}>{''.join(content)}</text:list-item>"

    def lines(*texts: str) -> str:
        return "".join(f"<text:p>{text}</text:p>" for text in texts)

    styles = (
        f'<text:list-style style:name="L">{level(1, "1", num_suffix=".", start_value="3")}'
        f"{level(2, 'a', num_prefix='(', num_suffix=')', display_levels='2')}</text:list-style>"
        '<text:list-style style:name="B"><text:list-level-style-bullet text:level="1"/></text:list-style>'
    )
    style = f'<text:list-style style:name="C">{level(1, "I")}</text:list-style>'
    common = f'<s xmlns:style="urn:s" xmlns:text="urn:t">{style}</s>'
    body = (
        listed(
            item(lines("a", "more of a"), listed(item(lines("b")), item(lines("c")))),
            item(lines("d<text:note><text:p>note</text:p></text:note>")),
            style_name="L",
        )
        + lines("between")
        + listed(item(listed(item(lines("e")))), item(lines("f")), style_name="L", continue_numbering="true")
        + listed(item(lines("g")), item(lines("h"), said='text:start-value="9"'), style_name="C")
        + listed(item(lines("i")), style_name="B")
        + listed(item(lines("j")), style_name="L")
        + listed(item(lines("k")))
        + item(lines("l"))
    )
    text = odt.read(zipped(opendocument(styles + body) | {"styles.xml": common}), Limits()).text
    assert text.splitlines() == [
        "3. a", "more of a", "(3.a) b", "(3.b) c", "4. d", "note", "", "between", "",
        "(4.a) e", "5. f", "I g", "IX h", "- i", "3. j", "k", "", "l",
    ]  # fmt: skip


def test_merged_cells_of_opendocument_keep_the_others_in_their_columns(zipped: Zipped) -> None:
    def cell(text: str = "", kind: str = "table-cell", **numbers: int) -> str:
        said = "".join(f' table:number-{name.replace("_", "-")}="{n}"' for name, n in numbers.items())
        return f"<table:{kind}{said}>{f'<text:p>{text}</text:p>' if text else ''}</table:{kind}>"

    covered = cell("hidden", "covered-table-cell")
    rows = (
        cell("Region", rows_spanned=2) + cell("Sales", columns_spanned=2) + covered + cell("Staff"),
        covered + cell("2023") + cell("2024") + cell("2024"),
        cell("North") + cell(columns_repeated=2) + cell("7"),
    )
    lines = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    text = odt.read(zipped(opendocument(f"<table:table>{lines}</table:table>")), Limits()).text
    assert text == "Region | Sales |  | Staff\nRegion | 2023 | 2024 | 2024\nNorth |  |  | 7"


def test_a_locked_opendocument_says_so(zipped: Zipped) -> None:
    locked = opendocument("x") | {
        "META-INF/manifest.xml": "<m><file-entry><encryption-data/></file-entry></m>"
    }
    with pytest.raises(Unreadable, match="is locked with a password"):
        odt.read(zipped(locked), Limits())


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"{\rtf1\ansi\ansicpg1250 za\'bf\'f3\'b3\'e6\par second}", "zażółć\n\nsecond"),
        (r"{\rtf1\ansi{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f0 caf\'e9 \f1\'e4\'e0}", "café да"),
        (r"{\rtf1\ansicpg932 \'93\'fa\'96{}\'93\'fa\'96\'7b}", "日�日本"),
        (r"{\rtf1\uc1\u26085?\u26412?x \u-10179?\u-8704?}", "日本x 😀"),
        (
            r"{\rtf1{\*\unknown hidden}{\pict 00ff}a{\footnote {\b note}}b\par{\header Top}{\header Top}}",
            "ab\n\nnote\n\nTop",
        ),
        (
            r"{\rtf1\trowd\intbl a\cell b\par c\cell\row\trowd\intbl d\cell e\cell\row\pard z}",
            "a | b c\nd | e\n\nz",
        ),
        (r"{\rtf1 {\field{\*\fldinst HYPERLINK x}{\fldrslt link}} a\~b\_c\bin4 \{}{\par}", "link a\xa0b-c"),
        (r"{\rtf1\ansicpg125 caf\'e9}", "café"),
        (
            r"{\rtf1 Kept {\deleted\revauthdel1 gone \'e9\u8364?}a \deleted b\par c\deleted0 d\deleted e\plain f}",
            "Kept a\n\ndf",
        ),
        (
            r"{\rtf1 2{\super 10} = 10{\super 3}\super\b -\nosupersub 5{\super th} m{\super 2} 10\super0 6}",
            "2^10 = 10^3-5th m^2 106",
        ),
        (r"{\rtf1 {\upr{ansi}{\*\ud{uni}}}}}} after", "ansi"),
    ],
)
def test_rtf(source: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "made.rtf"
    path.write_bytes(source.encode("latin-1"))
    assert rtf.read(path, Limits()).text == text


def test_rtf_headings_and_title(tmp_path: Path) -> None:
    path = tmp_path / "made.rtf"
    path.write_text(
        r"{\rtf1{\stylesheet{\s2 heading 2;}{\s0 Normal;}}{\info{\title A name}{\author no}}"
        r"\pard\s2 By style\par\pard\outlinelevel0 By level\par\pard plain\par}"
    )
    read = rtf.read(path, Limits())
    assert (read.title, read.text) == ("A name", "By style\n\nBy level\n\nplain")
    assert [(h.text, h.level) for h in read.headings] == [("By style", 2), ("By level", 1)]


def test_rtf_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.rtf"
    path.write_text(r"{\rtf1" + "{" * 1_000_000)
    with pytest.raises(Unreadable, match="groups are more than"):
        rtf.read(path, Limits())


def test_what_unpacks_too_large_is_refused_while_it_is_read(zipped: Zipped) -> None:
    path = zipped({"a": "x" * 3_000_000, "b": "y" * 3_000_000})
    with Archive(path, Limits(unpacked_bytes=5_000_000)) as archive:
        assert len(archive.read("a")) == 3_000_000
        with pytest.raises(Unreadable, match="unpacks to more than"):
            archive.read("B")


def test_a_size_that_the_directory_lies_about_counts_as_read(zipped: Zipped) -> None:
    path = zipped({"a": "x" * 3_000_000})
    lying = path.read_bytes().replace((3_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    path.write_bytes(lying)
    with Archive(path, Limits(unpacked_bytes=1_000)) as archive, pytest.raises(Unreadable):
        archive.read("a")


def test_too_many_parts_no_zip_and_cut_short(zipped: Zipped) -> None:
    path = zipped({str(i): "" for i in range(20)})
    with pytest.raises(Unreadable, match="has more than 10 parts"):
        Archive(path, Limits(parts=10))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(Unreadable, match="its directory of parts cannot be read"):
        Archive(path, Limits())
    path.write_bytes(b"hello")
    with pytest.raises(Unreadable, match="it is no zip archive"):
        Archive(path, Limits())


def test_a_locked_office_file_is_known_by_its_container(tmp_path: Path) -> None:
    path = tmp_path / "locked.docx"
    path.write_bytes(ole.MAGIC + bytes(1000))
    with pytest.raises(Unreadable, match="is locked with a password"):
        Archive(path, Limits())


def test_an_old_workbook_that_runs_in_circles_is_refused(tmp_path: Path) -> None:
    header = bytearray(512)
    header[:8], header[30], header[76:] = ole.MAGIC, 9, bytes(4) + b"\xff" * 432
    header[68:72] = b"\xff" * 4
    path = tmp_path / "round.xls"
    path.write_bytes(bytes(header) + (1).to_bytes(4, "little") * 2 + b"\xff" * 504)
    with pytest.raises(Unreadable, match="in circles"):
        sheets.read(path, Limits())


def test_without_the_extra_the_message_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kreuzberg", None)
    path = tmp_path / "x.doc"
    path.write_bytes(ole.MAGIC)
    with pytest.raises(Unreadable, match=r"pip install 'memoranda\[formats\]'") as said:
        more.read(path, Limits())
    assert said.value.code == "unsupported_file"


def test_nobody_reads_what_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(Unreadable) as said:
        more.read(path, Limits())
    assert said.value.code == "unsupported_file"


def test_text_is_tidy_and_its_length_is_limited() -> None:
    assert tidy("a \r\nb\rc\u2028d\x00\ufeff\xade\n\n\n\nf") == "a\nb\nc\nde\n\nf"
    body = Body(Limits(characters=10))
    body.add("12345678")
    with pytest.raises(Unreadable, match="more than 10 characters"):
        body.add("9")
