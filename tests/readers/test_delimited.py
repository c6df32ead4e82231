"""CSV and TSV are read as tables; a text that is no table stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.readers import formats
from memoranda.readers.base import Limits


def text_of(tmp_path: Path, text: str, name: str = "a.csv", limits: Limits | None = None) -> str:
    path = tmp_path / "upload"
    path.write_bytes(text.encode())
    return formats.read(path, name, limits or Limits()).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Part,Price\nBolt,13.85\n", "Part | Price\nBolt | 13.85"),
        (
            "Leistung;Preis\r\nÖlwechsel;89,00\r\nReifen;49,00",
            "Leistung | Preis\nÖlwechsel | 89,00\nReifen | 49,00",
        ),
        ("1,5;2,5\n3,5;4,5\n", "1,5 | 2,5\n3,5 | 4,5"),
        ("Name\tPhone\nQuist, Nora\t7001\n", "Name | Phone\nQuist, Nora | 7001"),
        ("Name|Age\nNora|41\n", "Name | Age\nNora | 41"),
        ('Part,Note\nBolt,"long, and\nof two lines"\n', "Part | Note\nBolt | long, and of two lines"),
        ('Part, Note\nBolt, "a ""steel"" one"\n', 'Part | Note\nBolt | a "steel" one'),
        ('Part\tNote\n"Best" bolt\t5" long\n', 'Part | Note\n"Best" bolt | 5" long'),
        ("Part,Tags\nBolt,a|b\nNut,c|d\n", "Part | Tags\nBolt | a\\|b\nNut | c\\|d"),
        ("Part,Note,Price\n\nBolt,,5\n,,\n,none,\n", "Part | Note | Price\nBolt |  | 5\n| none"),
    ],
)
def test_rows_are_lines_with_bars_between_cells(tmp_path: Path, text: str, expected: str) -> None:
    assert text_of(tmp_path, text) == expected


def test_a_tenth_of_the_rows_may_have_another_number_of_cells(tmp_path: Path) -> None:
    rows = "Part,Price\n" + "Bolt,5\n" * 8
    assert text_of(tmp_path, f"{rows}a note, with, commas\n").endswith("Bolt | 5\na note | with | commas")
    uneven = f"{rows}a note\nand one more\n"
    assert text_of(tmp_path, uneven) == uneven


@pytest.mark.parametrize(
    "text",
    [
        "Dear all, the prices follow.\nThey are net.\n",
        "one, line alone",
        "Name\nNora\nOmar\n",
        'Part,Note\nBolt,"never closed, and\nNut,on\n',
        "Prices of 2026\nPart,Price\nBolt,5\n",
    ],
)
def test_a_text_that_is_no_table_is_unchanged(tmp_path: Path, text: str) -> None:
    assert text_of(tmp_path, text) == text


def test_a_table_that_is_too_long_with_bars_is_unchanged(tmp_path: Path) -> None:
    text = "a,b\n1,2\n"
    assert text_of(tmp_path, text, limits=Limits(characters=len(text))) == text
    assert text_of(tmp_path, text, limits=Limits(characters=11)) == "a | b\n1 | 2"


@pytest.mark.parametrize(
    ("name", "media_type"), [("a.csv", "text/csv"), ("a.tsv", "text/tab-separated-values")]
)
def test_the_media_type_is_that_of_the_file(tmp_path: Path, name: str, media_type: str) -> None:
    path = tmp_path / "upload"
    path.write_text("a,b\n1,2\n")
    assert formats.read(path, name, Limits()).media_type == media_type
