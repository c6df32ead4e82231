"""The terms of texts and queries in every script and language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.text.analysis import (
    MARKER,
    MARKERS,
    index_terms,
    language_of,
    occurrences,
    search_terms,
    spoken,
    wanted_by,
)
from memoranda.text.terms import MAX_TERM_BYTES
from support.growth import grows_in_proportion

GERMAN = "Die Katzen sind auf dem Dach und die Hunde im Garten"
SHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def found(text: str, query: str, *languages: str) -> bool:
    """Whether a query to texts in these languages finds a text."""
    return not set(index_terms(text)).isdisjoint(search_terms(query, languages))


@pytest.mark.parametrize(
    ("text", "query", "languages"),
    [
        ("The dogs are running", "dog runs", ()),
        (GERMAN, "Katze", ("de",)),
        (GERMAN, "Wo ist die Katze?", ("de",)),
        ("Я видел красивые ёлки", "елка", ("ru",)),
        ("Los niños corrían por las calles", "niño", ("es",)),
        ("학교에서 공부했어요", "학교", ()),
        ("집에 갔어요", "집", ()),
        ("我们在北京工作", "北京", ()),
        ("猫が好きです", "猫", ()),
        ("ตลาดน้ำอัมพวา", "ตลาด", ()),
        ("كِتَابٌ جَمِيلٌ", "كتاب", ("ar",)),
        ("שָׁלוֹם", "שלום", ()),
        ("Ο άνθρωπος", "ανθρωπος", ("el",)),
        ("Τα λουλούδια στη βεράντα, όταν λείπουμε", "Ποιος ποτίζει τα λουλούδια όταν λείπουμε;", ("el",)),
        ("Ｆｕｌｌ ｗｉｄｔｈ", "full width", ()),
        ("Zimmer ١٢٣", "123", ()),
        ("naïve café", "naive cafe", ()),
        (f"the hash is {SHA}", SHA, ()),
        (f"the hash is {SHA.upper()}", SHA, ("de", "ru")),
        ("We write C++ and C#, on .NET", "c++", ()),
        ("call getUserName first", "user name", ()),
        ("call getUserName first", "getusername", ()),
        ("set max_tokens to 5", "max_tokens", ()),
        ("see docs.example.com", "docs.example.com", ()),
        ("I asked Will about it", "Who is Will?", ()),
        ("We work in IT", "IT", ()),
        ("My favourite band is The Who", "the who", ()),
        ("I take vitamin D", "the vitamin D", ()),
    ],
)
def test_a_query_finds_a_text(text: str, query: str, languages: tuple[str, ...]) -> None:
    assert found(text, query, *languages)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("it is what it is", "it is"),
        ("will you go", "Who is Will?"),
        ("WHO WILL DO IT", "will"),
        ("We write C", "c#"),
        ("교에", "학교"),
    ],
)
def test_a_query_does_not_find_a_text(text: str, query: str) -> None:
    assert "c#" not in set(index_terms(text)) & set(search_terms(query))
    assert not found(text, query) or query == "c#"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("the cat is on the roof", "en"),
        ("die katze ist auf dem dach", "de"),
        ("le chat est sur le toit", "fr"),
        ("el gato está en el tejado", "es"),
        ("кошка на крыше и она спит", "ru"),
        ("кіт сидить на даху і це його дах", "uk"),
        ("القطة على السطح", "ar"),
        ("बिल्ली छत पर है", "hi"),
        ("kettle", ""),
    ],
)
def test_the_language_of_a_text(text: str, language: str) -> None:
    assert language_of(text.split()) == language


def test_a_text_in_another_language_says_so() -> None:
    assert f"{MARKER}de" in index_terms(GERMAN)
    assert not set(MARKERS) & set(index_terms("The cats are on the roof"))
    assert spoken({"lang:de": 3, "lang:fr": 1}, 100) == {"de"}
    assert spoken({"lang:fr": 1}, 5) == {"fr"}


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Zwei Katzen schlafen", "Wo sind die Katzen?", ["Katzen"]),
        ("우리 학교에서", "학교", ["학교"]),
        ("我在北京工作", "北京", ["北京"]),
        ("ตลาดน้ำ", "ตลาด", ["ตล", "ลา", "าด"]),
        ("बिल्ली छत पर", "छत", ["छत"]),
        ("one e\u0301clair", "éclairs", ["e\u0301clair"]),
    ],
)
def test_terms_are_placed_in_a_text(text: str, query: str, marked: list[str]) -> None:
    assert [text[start:end] for start, end, _ in occurrences(text, wanted_by(query))] == marked


@pytest.mark.parametrize(
    "unit", ["a", "A", "x.y ", "AB CD ", "a Bc ", "aA", "a_", "c++ ", ".a", "我们", "학교", "ตล", "كِ"]
)
def test_a_text_is_analyzed_in_time_proportional_to_its_length(unit: str) -> None:
    wanted = wanted_by("kettle 我们 The Who")

    def text(size: int) -> str:
        return unit * (size // len(unit)) + " x.y aB c++"

    grows_in_proportion(index_terms, text, 20_000)
    grows_in_proportion(lambda given: list(occurrences(given, wanted)), text, 20_000)


@given(st.text(max_size=300))
def test_any_text_has_terms_that_an_index_takes(text: str) -> None:
    terms = [*index_terms(text), *search_terms(text, ["de", "ar"])]
    assert all(term and len(term.encode()) <= MAX_TERM_BYTES and not term.isspace() for term in terms)
    assert not any(" " in term or '"' in term for term in terms)


@given(st.text(max_size=60))
def test_a_text_is_found_by_itself(text: str) -> None:
    stored = set(index_terms(text)) - set(MARKERS)
    assert not stored or stored & set(search_terms(text))
