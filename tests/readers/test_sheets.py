"""What spreadsheets show beside the values of their cells: formats and shown texts."""

from __future__ import annotations

import pytest

from memoranda.readers import sheets, xlsx
from memoranda.readers.archive import Archive
from memoranda.readers.base import Limits, Unreadable
from memoranda.readers.cells import number_format
from support.zip_members import KIND, Zipped, links

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"


def workbook(*rows: str, formats: tuple[str, ...] = ()) -> dict[str, str]:
    """A workbook of a sheet for each of these cells' XML: S1, S2 ... Style 1 is `0.00%`, the next are `formats`."""
    numbers = range(1, len(rows) + 1)
    names = "".join(f'<sheet name="S{i}" sheetId="{i}" r:id="worksheet_{i}"/>' for i in numbers)
    codes = "".join(f'<numFmt numFmtId="{i}" formatCode="{code}"/>' for i, code in enumerate(formats, 164))
    styles = "".join(f'<xf numFmtId="{i}"/>' for i in (0, 10, *range(164, 164 + len(formats))))
    return {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": links(officeDocument="xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{KIND}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": links(
            styles="styles.xml", **{f"worksheet_{i}": f"worksheets/sheet{i}.xml" for i in numbers}
        ),
        "xl/styles.xml": (
            f'<styleSheet xmlns="{MAIN}"><numFmts>{codes}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>'
        ),
    } | {
        f"xl/worksheets/sheet{i}.xml": (
            f'<worksheet xmlns="{MAIN}"><sheetData>{cells}</sheetData></worksheet>'
        )
        for i, cells in zip(numbers, rows, strict=True)
    }


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def cell(place: str, value: str, style: int = 0) -> str:
    return f'<c r="{place}" s="{style}"><v>{value}</v></c>'


def word(place: str, text: str, style: int = 0) -> str:
    return f'<c r="{place}" t="inlineStr" s="{style}"><is><t>{text}</t></is></c>'


def table(rows: str) -> dict[str, str]:
    """An OpenDocument spreadsheet of one sheet, given as its rows' XML."""
    names = " ".join(f'xmlns:{name}="{OFFICE}{name}:1.0"' for name in ("office", "text", "table"))
    return {
        "META-INF/manifest.xml": "<manifest/>",
        "content.xml": (
            f'<office:document-content {names} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:body>'
            f'<office:spreadsheet><table:table table:name="S">{rows}</table:table></office:spreadsheet>'
            "</office:body></office:document-content>"
        ),
        "mimetype": sheets.ODS,
    }


def ods_row(*cells: str, times: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{times}">{"".join(cells)}</table:table-row>'


def ods_cell(kind: str, shown: str, value: str = "", times: int = 1) -> str:
    worth = f'office:value="{value}"' if value else ""
    return (
        f'<table:table-cell office:value-type="{kind}" {worth} table:number-columns-repeated="{times}">'
        f"<text:p>{shown}</text:p></table:table-cell>"
    )


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("0%", 0.07, "7%"),
        ("0.00%", -0.085, "-8.5%"),
        ("[$€-407]#,##0.00", 1234.5, "€1234.5"),
        ('#,##0.00\\ "€"', 1234.5, "1234.5 €"),
        ('_($* #,##0_);_($* (#,##0);_($* "-"??_);_(@_)', -5, "-$5"),
        ("£#,##0;[Red]-£#,##0", -7, "-£7"),
        ('"Gain" 0;"Loss" 0', -7, "-Loss 7"),
        ("00000", 1067, "01067"),
        ("000-00-0000", 12345678, "012345678"),
        ('0.0,,"M"', 1_500_000, "1.5M"),
        ('General" kg"', 5.25, "5.25 kg"),
    ],
)
def test_a_number_format_adds_to_the_digits(code: str, value: float, text: str) -> None:
    shown = number_format(code)
    assert shown is not None
    assert shown.text(value) == text


@pytest.mark.parametrize(
    "code",
    ["", "General", "#,##0.00", "0.00E+00", "# ?/?", "yyyy\\-mm", "[h]:mm", "@", '[>9]0.0,"k";0', '"cut', ";;;"],
)  # fmt: skip
def test_other_formats_add_nothing(code: str) -> None:
    assert number_format(code) is None


def test_cells_outside_of_a_sheet_are_ignored(zipped: Zipped) -> None:
    cells = "".join(cell(place, "1", 1) for place in ("A1", "A0", "ZZZ1", "A9999999", "a" + "9" * 5_000))
    path = zipped(workbook(cells, row(1, word("A1", "near"))))
    found, _ = xlsx.sheets(Archive(path, Limits()))
    assert list(found["S1"].cells.row(0)) == [0]
    assert sheets.read(path, Limits()).text == "S2\n\nnear"


def test_cells_have_the_formats_of_their_styles(zipped: Zipped, monkeypatch: pytest.MonkeyPatch) -> None:
    first = row(3, word("B3", "rate", 1), cell("C3", "0.085", 1), cell("D3", "0.085"), cell("F3", "5", 2))
    second = row(4, cell("B4", "1067", 3), cell("C4", "0.5", 1)) + row(6, cell("C6", "1.5", 4))
    formats = ("#,##0.00\\ [$€-407]", "00000", "[h]:mm")
    path = zipped(workbook(first + second, row(1, cell("A1", "0.5", 1)), formats=formats))
    text = "S1\n\nrate | 8.5% | 0.085 |  | 5 €\n01067 | 50%\n| 36:00:00\n\nS2\n\n50%"
    assert sheets.read(path, Limits()).text == text
    for size in (1, 50, 200):
        monkeypatch.setattr(xlsx, "BLOCK", size)
        assert sheets.read(path, Limits()).text == text


def test_numbers_of_opendocument_as_they_are_shown(zipped: Zipped) -> None:
    empty = "<table:table-cell table:number-columns-repeated='2'/>"
    cells = (
        ods_cell("percentage", "8.50%", "0.085", 2),
        "<table:covered-table-cell/>",
        ods_cell("currency", "12,50 €", "12.5"),
        ods_cell("float", "01067", "1067"),
        ods_cell("float", "3.5 kg", "3.5"),
        ods_cell("float", "1,234.57", "1234.567"),
        ods_cell("time", "36:00").replace("office:value-type", "office:time-value='PT36H' office:value-type"),
        ods_cell("string", "word"),
    )
    path = zipped(table(ods_row(empty, times=2) + ods_row(empty, *cells, times=2)))
    line = "8.50% | 8.50% |  | 12,50 € | 01067 | 3.5 kg | 1234.567 | 36:00 | word"
    assert sheets.read(path, Limits()).text == f"S\n\n{line}\n{line}"


def comments(*texts: str) -> str:
    items = "".join(
        f'<comment ref="{place}" authorId="{author}"><text><r><t>{words}</t></r></text></comment>'
        for place, author, words in (text.split(" ", 2) for text in texts)
    )
    return (
        f'<comments xmlns="{MAIN}"><authors><author>Eve</author></authors>'
        f"<commentList>{items}</commentList></comments>"
    )


def test_comments_and_drawings_stand_at_the_end_of_their_sheet(zipped: Zipped) -> None:
    drawing = (
        '<d:drawing xmlns:d="urn:d" xmlns:a="urn:a"><a:p><a:r><a:t>In a box</a:t></a:r></a:p></d:drawing>'
    )
    chart = '<c:chart xmlns:c="urn:c"><c:strCache><c:pt><c:v>North</c:v></c:pt></c:strCache></c:chart>'
    members = workbook(row(1, word("A1", "one")), "", row(1, word("A1", "three"))) | {
        "xl/worksheets/_rels/sheet1.xml.rels": links(
            comments="/xl/comments/comment1.xml", drawing="../drawings/drawing1.xml"
        ),
        "xl/worksheets/_rels/sheet2.xml.rels": links(comments="../comments2.xml"),
        "xl/comments/comment1.xml": comments("A1 0 Eve:\nwhy\nso?", "AB12 7 from nobody", "C1 0 "),
        "xl/comments2.xml": comments("B2 0 alone"),
        "xl/comments9.xml": comments("A1 0 of no sheet"),
        "xl/drawings/drawing1.xml": drawing,
        "xl/drawings/_rels/drawing1.xml.rels": links(chart="../charts/chart1.xml", drawing="drawing1.xml"),
        "xl/charts/chart1.xml": chart,
    }
    read = sheets.read(zipped(members), Limits())
    assert read.text == (
        "S1\n\none\n\nA1 Eve: why so?\nAB12: from nobody\nIn a box\nNorth\n\nS2\n\nB2 Eve: alone\n\nS3\n\nthree\n\n"
        "A1 Eve: of no sheet"
    )
    assert [page.number for page in read.pages] == [1, 2, 3]
    assert read.text.startswith("S2", read.pages[1].start)


def test_threads_have_their_authors_and_are_read_once(zipped: Zipped) -> None:
    thread = "".join(
        f'<threadedComment ref="B3" personId="{{{who}}}"><text>{words}</text></threadedComment>'
        for who, words in (("1", "why so?"), ("2", "because"))
    )
    members = workbook(row(1, word("A1", "one")))
    members |= {
        "xl/_rels/workbook.xml.rels": links(worksheet_1="worksheets/sheet1.xml", person="persons/person.xml"),
        "xl/persons/person.xml": '<personList xmlns="urn:t"><person displayName="Eve Adams" id="{1}"/></personList>',
        "xl/worksheets/_rels/sheet1.xml.rels": links(
            comments="../comments1.xml", threadedComment="../threadedComments/threadedComment1.xml"
        ),
        "xl/comments1.xml": comments("B3 0 [Threaded comment] ... Comment: why so?").replace("Eve", "tc={9}"),
        "xl/threadedComments/threadedComment1.xml": f'<ThreadedComments xmlns="urn:t">{thread}</ThreadedComments>',
    }
    assert sheets.read(zipped(members), Limits()).text == "S1\n\none\n\nB3 Eve Adams: why so?\nB3: because"
    del members["xl/threadedComments/threadedComment1.xml"]
    assert sheets.read(zipped(members), Limits()).text.endswith("B3: [Threaded comment] ... Comment: why so?")


def test_comments_of_opendocument(zipped: Zipped) -> None:
    note = "<office:annotation><dc:creator>Eve</dc:creator><text:p>why</text:p><text:p>so?</text:p></office:annotation>"
    noted = ods_cell("string", "word").replace("><text", f">{note}<text", 1)
    path = zipped(
        table(ods_row(ods_cell("string", "x"), times=2) + ods_row(ods_cell("string", "y", times=27), noted))
    )
    assert sheets.read(path, Limits()).text.endswith(" | word\n\nAB3 Eve: why so?")


def test_formulas_without_a_result_are_counted(zipped: Zipped) -> None:
    formulas = (
        '<c r="A1"><f>SUM(B1:B3)</f><v>42</v></c><c r="B1" s="1"><f>A1&gt;2</f></c>',
        '<c r="C1"><f t="shared" si="0"/></c><c r="D1"><f>1+1</f><v></v></c><c r="E1"><f>1+1</f><v /></c>',
        '<c r="F1" t="str"><f>T("")</f><v></v></c><c r="G1"/>',
    )
    hint = "open and save the file in a spreadsheet program"
    read = sheets.read(zipped(workbook(row(1, *formulas), row(1, word("A1", "x")))), Limits())
    assert read.text == "S1\n\n42 | =A1>2 |  | =1+1 | =1+1\n\nS2\n\nx"
    assert read.notes == [f"formulas without a stored result, shown as formulas here: 4; {hint}"]
    unsolved = '<table:table-cell table:formula="of:=1+1"/>'
    solved = ods_cell("float", "2", "2").replace(
        "<table:table-cell", '<table:table-cell table:formula="of:=1+1"'
    )
    read = sheets.read(zipped(table(ods_row(solved, unsolved))), Limits())
    assert read.notes == [f"formulas without a stored result, shown as formulas here: 1; {hint}"]


def test_rows_with_only_a_formula_have_its_text(zipped: Zipped) -> None:
    rows = (
        row(1, cell("B1", "2")),
        row(3, '<c r="A3"><f>B1&amp;"x"</f></c>'),
        row(5, '<c r="D5"><f>B1*2</f></c>'),
    )
    read = sheets.read(zipped(workbook("".join(rows))), Limits())
    assert read.text == 'S1\n\n| 2\n=B1&"x"\n|  |  | =B1*2'
    formula = '<table:table-cell table:formula="of:=SUM([.A1:.B1])*[.C1]"/>'
    read = sheets.read(zipped(table(ods_row(ods_cell("string", "x")) + ods_row(formula))), Limits())
    assert read.text == "S\n\nx\n=SUM([.A1:B1])*C1"


def test_hidden_rows_columns_and_sheets_are_left_out_and_counted(zipped: Zipped) -> None:
    columns = '<cols><col min="2" max="3" hidden="1"/><col min="9" max="16384" hidden="true"/></cols>'
    hidden = row(2, cell("A2", "98")).replace("<row", '<row hidden="1"')
    empty = '<row r="3" hidden="1"/>'
    members = workbook(
        row(1, cell("A1", "1"), cell("C1", "97"), cell("D1", "2")) + hidden + empty, cell("A1", "96")
    )
    members["xl/worksheets/sheet1.xml"] = members["xl/worksheets/sheet1.xml"].replace(
        "<sheetData", f"{columns}<sheetData"
    )
    members["xl/workbook.xml"] = members["xl/workbook.xml"].replace('name="S2"', 'name="S2" state="hidden"')
    read = sheets.read(zipped(members), Limits())
    assert (read.text, read.notes) == ("S1\n\n1 | 2", ["3 parts are hidden or struck out, and left out"])
    read = sheets.read(zipped(members), Limits(hidden_text=True))
    assert (read.text, read.notes) == ("S1\n\n1 |  | 97 | 2\n98\n\nS2\n\n96", [])


def test_an_opendocument_spreadsheet_that_was_zipped_anew(zipped: Zipped) -> None:
    read = sheets.read(zipped(table(ods_row(ods_cell("string", "word")))), Limits())
    assert (read.text, read.media_type) == ("S\n\nword", sheets.ODS)


def test_opendocument_that_is_locked_or_damaged(zipped: Zipped) -> None:
    members = table(ods_row(ods_cell("string", "word")))
    cut = members["content.xml"].replace("</table:table>", "</table:tawle>")
    with pytest.raises(Unreadable, match="is no well-formed XML"):
        sheets.read(zipped(members | {"content.xml": cut}), Limits())
    locked = "<manifest><file-entry><encryption-data/></file-entry></manifest>"
    with pytest.raises(Unreadable, match="is locked with a password"):
        sheets.read(zipped(members | {"content.xml": "\x05", "META-INF/manifest.xml": locked}), Limits())


def test_a_bar_inside_a_cell_makes_no_column(zipped: Zipped) -> None:
    rows = row(1, word("A1", "Part"), word("B1", "Tags")) + row(2, word("A2", "Bolt"), word("B2", "a|b"))
    assert sheets.read(zipped(workbook(rows)), Limits()).text.endswith("Part | Tags\nBolt | a\\|b")
