"""Word documents made here: what the reader must find, and where."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from memoranda.readers import docx
from memoranda.readers.base import Limits, Unreadable

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
Make = Callable[..., Path]


def p(text: str, style: str = "", more: str = "") -> str:
    """A paragraph; `more` goes into its properties."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{named}{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def table(*rows: tuple[str, ...]) -> str:
    """A table of paragraphs."""
    return (
        "<w:tbl>"
        + "".join(f"<w:tr>{''.join(f'<w:tc>{c}</w:tc>' for c in row)}</w:tr>" for row in rows)
        + "</w:tbl>"
    )


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a document: its body, and parts by kind of relation."""

    def write(body: str, namespace: str = W, title: str = "", **parts: str) -> Path:
        path = tmp_path / "made.docx"
        links = "".join(
            f'<Relationship Id="{k}" Type="{KIND}/{k.rstrip("2")}" Target="{k}.xml"/>' for k in parts
        )
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            main = f'<Relationship Id="a" Type="{KIND}/officeDocument" Target="word/document.xml"/>'
            file.writestr("_rels/.rels", f'<Relationships xmlns="{RELS}">{main}</Relationships>')
            file.writestr(
                "word/_rels/document.xml.rels", f'<Relationships xmlns="{RELS}">{links}</Relationships>'
            )
            extra = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:v"'
            document = f'<w:document xmlns:w="{namespace}" {extra}><w:body>{body}</w:body></w:document>'
            file.writestr("word/document.xml", document)
            for kind, content in parts.items():
                file.writestr(f"word/{kind}.xml", f'<w:x xmlns:w="{W}">{content}</w:x>')
            if title:
                dc = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
                file.writestr("docProps/core.xml", f"<c {dc}><dc:title>{title}</dc:title></c>")
        return path

    return write


def test_headings_by_name_by_outline_and_by_inheritance(make: Make) -> None:
    styles = (
        '<w:style w:styleId="a1"><w:name w:val="Title"/></w:style>'
        '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>'
        '<w:style w:styleId="Unter"><w:name w:val="Unter"/><w:basedOn w:val="Kapitel"/></w:style>'
        '<w:style w:styleId="Rund"><w:name w:val="Rund"/><w:basedOn w:val="Rund"/></w:style>'
    )
    body = (
        p("On  Tea", "a1")
        + p("One", "berschrift1")
        + p("Two", "Kapitel")
        + p("Three", "Unter")
        + p("x", "Rund")
    )
    read = docx.read(make(body + p("Four", "", '<w:outlineLvl w:val="3"/>'), styles=styles), Limits())
    assert [(h.text, h.level) for h in read.headings] == [
        ("On Tea", 1),
        ("One", 1),
        ("Two", 2),
        ("Three", 2),
        ("Four", 4),
    ]
    assert all(read.text.startswith(h.text, h.start) for h in read.headings)
    assert read.title == "On  Tea".replace("  ", " ")


def test_the_title_of_the_properties_comes_first(make: Make) -> None:
    assert docx.read(make(p("words"), title="Told"), Limits()).title == "Told"


def test_tables_are_lines_and_layout_tables_are_not(make: Make) -> None:
    inner = table((p("in"), p("ner")))
    body = p("Before") + table((p("a"), p("b") + p("c")), (p(""), p("")), (p("d"), inner)) + p("After")
    layout = table((p("Only") + p("this"),))
    assert (
        docx.read(make(body + layout), Limits()).text
        == "Before\n\na | b c\nd | in | ner\n\nAfter\n\nOnly\n\nthis"
    )


def test_merged_cells_keep_the_others_in_their_columns(make: Make) -> None:
    def cell(text: str, properties: str = "") -> str:
        return f"<w:tcPr>{properties}</w:tcPr>{p(text)}"

    two = '<w:gridSpan w:val="2"/>'
    body = table(
        (cell("Name", '<w:vMerge w:val="restart"/>'), cell("2023", two), cell("2024", two)),
        (cell("", "<w:vMerge/>"), *map(p, ("H1", "H2", "H1", "H2"))),
        (*map(p, ("", "1", "", "", "4")),),
        (p(""), p("3")),
        (cell("All", two), p("5")),
        (p(""), p("A heading", "", '<w:outlineLvl w:val="1"/>')),
        (p(""), p("b") + p("c")),
    ).replace(
        f"<w:tr><w:tc>{p('')}</w:tc><w:tc>{p('3')}",
        f'<w:tr><w:trPr><w:gridBefore w:val="2"/></w:trPr><w:tc>{p("3")}',
    )
    read = docx.read(make(body), Limits())
    assert read.text == (
        "Name | 2023 |  | 2024\nName | H1 | H2 | H1 | H2\n| 1 |  |  | 4\n|  | 3\nAll |  | 5\n\nA heading\n\nb\n\nc"
    )
    assert [heading.text for heading in read.headings] == ["A heading"]


def test_text_boxes_come_once_and_after_their_paragraph(make: Make) -> None:
    box = f"<v:s><w:txbxContent>{p('boxed')}</w:txbxContent></v:s>"
    twice = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    body = f"<w:p><w:r><w:t>host</w:t></w:r><w:r>{twice}</w:r><w:r><w:t> goes on</w:t></w:r></w:p>"
    assert docx.read(make(body), Limits()).text == "host goes on\n\nboxed"


def test_tabs_breaks_and_what_was_deleted_or_moved(make: Make) -> None:
    body = (
        '<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/>'
        "<w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom></w:p>"
    )
    assert docx.read(make(body), Limits()).text == "a\tb\nc-d"


def test_a_superscript_after_a_number_is_its_exponent(make: Make) -> None:
    def run(text: str, more: str = "") -> str:
        return f"<w:r><w:rPr>{more}</w:rPr><w:t>{text}</w:t></w:r>"

    up, down = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'
    was = f"{up}<w:rPrChange><w:rPr>{down}</w:rPr></w:rPrChange>"
    body = run("10") + run("1", up) + run("0", was) + run(" 5") + run("th", up) + run(" x1") + run("2", down)
    assert docx.read(make(f"<w:p>{body}</w:p>"), Limits()).text == "10^10 5th x12"


M = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def m(name: str, *parts: str) -> str:
    return f'<m:{name} xmlns:m="{M}">{"".join(parts)}</m:{name}>'


def said(text: str) -> str:
    return m("r", m("t", text))


@pytest.mark.parametrize(
    ("equation", "text"),
    [
        (m("f", m("num", said("1")), m("den", said("2"))), "1/2"),
        (m("f", m("num", said("a+b")), m("den", said("2"))), "(a+b)/2"),
        (m("sSup", m("e", said("x")), m("sup", said("n+1"))), "x^(n+1)"),
        (m("sSub", m("e", said("x")), m("sub", said("i"))), "x_i"),
        (m("rad", m("deg", said("3")), m("e", said("x"), said("+1"))), "3√(x+1)"),
        (
            m(
                "nary",
                m("naryPr", f'<m:chr xmlns:m="{M}" m:val="∑"/>'),
                *(m("sub", said("i=1")), m("sup", said("n")), m("e", said("i"))),
            ),
            "∑_(i=1)^n i",
        ),
        (m("d", m("e", said("a")), m("e", said("b"))), "(a, b)"),
    ],
)  # fmt: skip
def test_equations_are_linear_text(make: Make, equation: str, text: str) -> None:
    body = f"<w:p><w:r><w:t>take </w:t></w:r>{m('oMath', equation)}<w:r><w:t> mg</w:t></w:r></w:p>"
    assert docx.read(make(body), Limits()).text == f"take {text} mg"


def test_boxes_and_choices_of_forms(make: Make) -> None:
    def field(what: str, text: str) -> str:
        return f"<w:p><w:r><w:fldChar><w:ffData>{what}</w:ffData></w:fldChar></w:r><w:r><w:t> {text}</w:t></w:r></w:p>"

    def symbol(font: str, code: str) -> str:
        return f'<w:p><w:r><w:sym w:font="{font}" w:char="{code}"/><w:t>x</w:t></w:r></w:p>'

    entries = '<w:listEntry w:val="A+"/><w:listEntry w:val="B+"/>'
    body = (
        field('<w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox>', "a")
        + field('<w:checkBox><w:default w:val="1"/><w:checked w:val="0"/></w:checkBox>', "b")
        + field('<w:checkBox><w:default w:val="1"/></w:checkBox>', "c")
        + field(f'<w:ddList><w:result w:val="1"/>{entries}</w:ddList>', "d")
        + field(f'<w:ddList><w:default w:val="9"/>{entries}</w:ddList>', "e")
        + symbol("Wingdings", "F0FE")
        + symbol("Wingdings", "F06F")
        + symbol("Symbol", "F0FE")
    )
    lines = docx.read(make(body), Limits()).text.split("\n\n")
    assert [line.strip() for line in lines] == ["[x] a", "[ ] b", "[x] c", "B+ d", "e", "[x]x", "[ ]x", "x"]


def test_what_is_hidden_or_struck_out_is_left_out_and_counted(make: Make) -> None:
    def run(text: str, more: str) -> str:
        return f"<w:r><w:rPr>{more}</w:rPr><w:t>{text}</w:t></w:r>"

    ways = ("<w:vanish/>", "<w:strike/>", "<w:dstrike/>", '<w:sz w:val="2"/>')
    shown = run("e", '<w:vanish w:val="0"/>') + run("f", '<w:sz w:val="24"/>')
    mark = "<w:p><w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr><w:r><w:t>g</w:t></w:r></w:p>"
    body = f"<w:p>{''.join(run('no', way) for way in ways)}{shown}</w:p>{mark}"
    read = docx.read(make(body), Limits())
    assert (read.text, read.notes) == ("ef\n\ng", ["4 parts are hidden or struck out, and left out"])
    read = docx.read(make(body), Limits(hidden_text=True))
    assert (read.text, read.notes) == ("nononono" + "ef\n\ng", [])
    with pytest.raises(Unreadable, match="what it has is hidden or struck out"):
        docx.read(make(f"<w:p>{run('no', ways[0])}</w:p>"), Limits())


def test_notes_and_comments_follow_and_margins_come_once(make: Make) -> None:
    body = (
        '<w:p><w:r><w:t>Claim</w:t><w:footnoteReference w:id="2"/><w:commentReference w:id="0"/></w:r></w:p>'
        + p("Next")
    )
    read = docx.read(
        make(
            body,
            footnotes=f'<w:footnote w:id="2">{p("proof")}</w:footnote>',
            comments=f'<w:comment w:id="0" w:author="Ida">{p("sure?")}</w:comment>',
            header=p("Secret"),
            header2=p("Secret"),
            footer=p("7"),
        ),
        Limits(),
    )
    assert read.text == "Claim\n\nproof\nIda: sure?\n\nNext\n\nSecret"


def test_lists_are_numbered_as_word_does(make: Make) -> None:
    levels = (
        '<w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="%1.%2)"/></w:lvl>'
    )
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
    )

    def item(text: str, number: int, level: int) -> str:
        return p(text, "", f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')

    items = [("a", 1, 0), ("b", 1, 1), ("c", 1, 1), ("dot", 2, 0), ("d", 1, 0), ("e", 1, 1), ("none", 0, 0)]
    text = docx.read(make("".join(item(*one) for one in items), numbering=numbering), Limits()).text
    assert text == "3. a\n3.i) b\n3.ii) c\n- dot\n4. d\n4.i) e\n\nnone"


def test_a_list_may_define_a_level_for_itself(make: Make) -> None:
    def level(at: int, figures: str, text: str) -> str:
        return f'<w:lvl w:ilvl="{at}"><w:numFmt w:val="{figures}"/><w:lvlText w:val="{text}"/></w:lvl>'

    definition = level(0, "decimal", "%1.") + level(1, "decimal", "%1.%2")
    own = f'<w:lvlOverride w:ilvl="0">{level(0, "upperLetter", "(%1)")}</w:lvlOverride>'
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{definition}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        f'<w:num w:numId="2"><w:abstractNumId w:val="0"/>{own}</w:num>'
    )
    items = [("a", 1, 0), ("b", 1, 0), ("c", 2, 0), ("d", 2, 1), ("e", 2, 0)]
    body = "".join(
        p(text, "", f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')
        for text, number, level in items
    )
    assert docx.read(make(body, numbering=numbering), Limits()).text == "1. a\n2. b\n(A) c\nA.1 d\n(B) e"


def test_a_number_without_end_is_none(make: Make) -> None:
    many = "1" * 5_000
    levels = (
        f'<w:lvl w:ilvl="{many}"/><w:lvl w:ilvl="0"><w:start w:val="{many}"/><w:lvlText w:val="%1."/></w:lvl>'
    )
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/>'
        f'<w:lvlOverride w:ilvl="{many}"><w:startOverride w:val="{many}"/></w:lvlOverride></w:num>'
    )
    listed = p("a", "", '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>')
    odd = p("b", "", f'<w:numPr><w:ilvl w:val="{many}"/><w:numId w:val="1"/></w:numPr>')
    text = docx.read(make(listed + odd, numbering=numbering), Limits()).text
    assert text.startswith("1. a\n")


def test_the_strict_namespace_is_read(make: Make) -> None:
    assert docx.read(make(p("strict"), namespace=STRICT), Limits()).text == "strict"


def test_a_document_in_one_xml_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "flat.xml"
    path.write_text(
        f'<?xml version="1.0"?><w:wordDocument xmlns:w="{W}"><w:body>{p("flat")}</w:body></w:wordDocument>'
    )
    assert docx.read(path, Limits()).text == "flat"


def test_entities_are_not_followed(make: Make, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("stolen")
    made = make(p("x"))
    with zipfile.ZipFile(made) as file:
        kept = {name: file.read(name) for name in file.namelist()}
    hostile = f'<!DOCTYPE d [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]>'.encode()
    kept["word/document.xml"] = hostile + kept["word/document.xml"].replace(b">x<", b">x &e;<")
    with zipfile.ZipFile(made, "w") as file:
        for name, data in kept.items():
            file.writestr(name, data)
    assert "stolen" not in docx.read(made, Limits()).text


def test_nesting_without_end_is_refused(make: Make) -> None:
    with pytest.raises(Unreadable, match=r"is damaged: its part word/document.xml is no well-formed XML"):
        docx.read(make("<w:sdt>" * 100_000), Limits())


def test_an_empty_one_says_so(make: Make) -> None:
    with pytest.raises(Unreadable, match="holds no text"):
        docx.read(make(p("")), Limits())
