from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput
from memoranda.text import tokens
from memoranda.text.tokens import ENCODINGS, SLAB, count, locate, well_formed

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(" \n\r\t'sTaé1٣/.\u0301한👍")
encodings = pytest.mark.parametrize("encoding", ENCODINGS)


def reference(text: str, encoding: str) -> list[int]:
    return tokens._loaded(encoding).bpe.encode(text, disallowed_special=())


def test_known_counts() -> None:
    assert count("tiktoken is great!") == 6
    assert count("tiktoken is great!", "cl100k_base") == 6
    assert reference("hello world", "o200k_base") == [24912, 2375]
    assert reference("hello world", "cl100k_base") == [15339, 1917]


@encodings
def test_patterns_and_ranks_are_those_of_tiktoken(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken_ext import openai_public

    hashes: list[str] = []
    monkeypatch.setattr(
        openai_public, "load_tiktoken_bpe", lambda _, expected_hash: hashes.append(expected_hash)
    )
    published = getattr(openai_public, encoding)()
    assert published["pat_str"] == ENCODINGS[encoding].pattern
    ranks = tokens._loaded(encoding).bpe._mergeable_ranks
    lines = b"".join(b"%s %d\n" % (b64encode(token), rank) for token, rank in ranks.items())
    assert hashes == [sha256(lines).hexdigest()]


@encodings
def test_special_tokens_are_plain_text(encoding: str) -> None:
    assert count("<|endoftext|>", encoding) > 1


@encodings
@settings(deadline=None)
@given(text=TEXTS)
@pytest.mark.gate("o200k_base")
def test_slabs_change_nothing(encoding: str, text: str) -> None:
    padded = (text + " word word") * (2 * SLAB // (len(text) + 10) + 2)
    assert count(padded, encoding) == len(reference(padded, encoding))


@encodings
@settings(deadline=None)
@given(text=TEXTS)
def test_locations_are_where_the_tokens_begin(encoding: str, text: str) -> None:
    found = locate(text, encoding)
    bpe = tokens._loaded(encoding).bpe
    position = 0
    data = text.encode()
    assert len(found) == len(reference(text, encoding)) == count(text, encoding)
    for token, start, whole in zip(reference(text, encoding), found.starts, found.whole, strict=True):
        prefix = data[:position].decode(errors="ignore")
        assert start == len(prefix)
        assert whole == (prefix.encode() == data[:position])
        position += len(bpe.decode_single_token_bytes(token))


@pytest.mark.parametrize("character", ["a", " ", "\n", "=", "é", "\u0301"])
@encodings
@pytest.mark.gate("o200k_base")
def test_a_million_of_one_character_is_counted(character: str, encoding: str) -> None:
    million = count(character * 1_000_000, encoding)
    slab = count(character * SLAB, encoding)
    assert million == pytest.approx(slab * 1_000_000 / SLAB, abs=1_000_000 // SLAB + 1)


def test_lone_surrogates_and_nul_are_counted() -> None:
    assert count("\ud800\udfff x") == count("\ufffd\ufffd x")
    assert count("\0") == 1
    assert well_formed("a\ud83d\ude00b") == "a\ufffd\ufffdb"


def test_an_unknown_encoding_names_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="o200k_base, cl100k_base"):
        count("x", "p50k")


def test_threads_load_an_encoding_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each load would keep all other threads from running for a third of a second."""
    loads: list[str] = []
    load = tokens._load

    def counted(encoding: str) -> Any:
        loads.append(encoding)
        return load(encoding)

    monkeypatch.setattr(tokens, "_encodings", {})
    monkeypatch.setattr(tokens, "_load", counted)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(count, ["tiktoken is great!"] * 8)) == [6] * 8
    assert loads == ["o200k_base"]
