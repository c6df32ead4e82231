"""Exact token counts and boundaries for o200k_base and cl100k_base, offline."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from threading import Lock

import msgspec
import numpy as np
import tiktoken
from numpy.typing import NDArray

from memoranda.errors import InvalidInput, StorageError

DEFAULT_ENCODING = "o200k_base"
SLAB = 32_768
"""Characters encoded at once. The encodings' patterns overflow their stack on a million whitespace characters."""

SEPARATOR = b"\xc0\xc1"
"""Between the shipped tokens, which are in the order of their ranks: no UTF-8 contains these bytes."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_SAFE_CUT = re.compile(r"(?<=\S)(?= )|(?<=[\r\n])(?= ?[^\s/])")


class _Spec(msgspec.Struct, frozen=True):
    """The definition of an encoding. Source: tiktoken_ext/openai_public.py, MIT, OpenAI. `sha256` is that of the
    shipped tokens."""

    sha256: str
    pattern: str


ENCODINGS = {
    "o200k_base": _Spec(
        "a87e5adefecc2f5ef81deda1bb6d4250d8759eabde3b4e45e1fd6f353eac450e",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    "cl100k_base": _Spec(
        "8aa70cd2ef028d270758ceef90b534380c4585e7fe3c983fd2e1c0537b30ea0c",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
        r"|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of a text, as character positions.

    `starts` (n,) int64 is the character each token begins in. `whole` (n,) is False where a token begins
    inside that character, which several tokens then share. `safe` (n,) is True where a cut before the token is known
    to change none: the stretches on either side have, by themselves, the tokens they have here.
    """

    starts: NDArray[np.int64]
    whole: NDArray[np.bool_]
    safe: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts)


def count(text: str, encoding: str = DEFAULT_ENCODING) -> int:
    """Return the number of tokens of the text; names of special tokens in it are plain text.

    Exact, except for a stretch of over 32 768 characters without a word's beginning or a line's: that is
    counted in slices, which can add or take a token at each cut.

    Raises:
        InvalidInput: the encoding is not one of `ENCODINGS`.
    """
    bpe = _loaded(encoding).bpe
    return sum(len(bpe.encode_ordinary(slab)) for slab in _slabs(well_formed(text)))


def is_loaded(encoding: str = DEFAULT_ENCODING) -> bool:
    """Return True if a count need not load the encoding first."""
    return encoding in _encodings


def locate(text: str, encoding: str = DEFAULT_ENCODING) -> Tokens:
    """Return where each token of the text begins, in characters. Counts as `count` does.

    Raises:
        InvalidInput: the encoding is not one of `ENCODINGS`.
    """
    loaded = _loaded(encoding)
    starts, whole, safe = [np.empty(0, np.int64)], [np.empty(0, np.bool_)], [np.empty(0, np.bool_)]
    offset = 0
    for slab in _slabs(well_formed(text)):
        data = np.frombuffer(slab.encode(), np.uint8)
        ends = np.cumsum(loaded.widths[np.array(loaded.bpe.encode_ordinary(slab), np.int64)])
        begins = np.concatenate(([0], ends[:-1]))
        if slab.isascii():
            starts.append(begins + offset)
            whole.append(np.ones(len(begins), np.bool_))
        else:
            leads = (data & 0xC0) != 0x80
            starts.append((np.cumsum(leads) - 1)[begins] + offset)
            whole.append(leads[begins])
        safe.append(_safe(data, begins))
        offset += len(slab)
    return Tokens(np.concatenate(starts), np.concatenate(whole), np.concatenate(safe))


def _safe(data: NDArray[np.uint8], begins: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the tokens before which `_SAFE_CUT` finds a space after a visible character, by the UTF-8 bytes `data`.
    A few are missed: those whose last byte could end an encoded space (C2 xx, E1 9A xx, E2 xx xx, E3 80 xx)."""
    safe: NDArray[np.bool_] = (data[begins] == 0x20) & (begins > 2)
    at = begins[safe]
    last, second, third = data[at - 1], data[at - 2], data[at - 3]
    space = (
        (second == 0xC2)
        | (third == 0xE2)
        | ((third == 0xE3) & (second == 0x80))
        | ((third == 0xE1) & (second == 0x9A))
    )
    safe[safe] = (last > 0x20) & ((last < 0x80) | ~space)
    return safe


def decode(ids: Sequence[int], encoding: str = DEFAULT_ENCODING, where: str = "tokens") -> str:
    """Return the text of these token ids; `where` is how the caller names them in an error.

    Raises:
        InvalidInput: an id is not one of the encoding's, or together they are no valid UTF-8.
    """
    try:
        return _loaded(encoding).bpe.decode_bytes(ids).decode("utf-8")
    except (KeyError, OverflowError) as exc:
        raise InvalidInput(where, f"holds a token that {encoding} does not have") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInput(where, f"is cut inside a character at byte {exc.start}") from exc


def well_formed(text: str) -> str:
    """Return the text with U+FFFD for every lone surrogate: the same length, and valid in UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _slabs(text: str) -> Iterator[str]:
    """The text in pieces whose tokens, in a row, are the text's tokens.

    Both patterns begin a new match at a space that follows a visible character, and at what follows the
    last newline of a run, whatever is around it, so cutting there changes nothing.
    """
    start = 0
    while len(text) - start > 2 * SLAB:
        cut = _SAFE_CUT.search(text, start + SLAB, start + 2 * SLAB)
        end = cut.start() if cut else start + SLAB
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


class _Loaded(msgspec.Struct, frozen=True):
    """An encoding, and the number of bytes of the token of each rank."""

    bpe: tiktoken.Encoding
    widths: NDArray[np.int64]


_encodings: dict[str, _Loaded] = {}
_loading = Lock()


def _loaded(encoding: str) -> _Loaded:
    """The encoding, loaded by the first thread that needs it, while others wait: loading takes a third of a second,
    during most of which no other thread runs."""
    found = _encodings.get(encoding)
    if found is None:
        with _loading:
            found = _encodings.get(encoding) or _load(encoding)
            _encodings[encoding] = found
    return found


def _load(encoding: str) -> _Loaded:
    if encoding not in ENCODINGS:
        raise InvalidInput("encoding", f"{encoding!r} is unknown; use one of {', '.join(ENCODINGS)}")
    spec = ENCODINGS[encoding]
    packed = files("memoranda.text").joinpath(f"ranks/{encoding}.gz").read_bytes()
    joined = gzip.decompress(packed)
    if sha256(joined).hexdigest() != spec.sha256:
        raise StorageError(f"the shipped tokens of {encoding} are damaged; install the package again")
    tokens = joined.split(SEPARATOR)
    ranks = dict(zip(tokens, range(len(tokens)), strict=True))
    widths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    bpe = tiktoken.Encoding(encoding, pat_str=spec.pattern, mergeable_ranks=ranks, special_tokens={})
    return _Loaded(bpe, widths)
