"""How a document's text is split: the strategy as a value, and the text by it."""

from __future__ import annotations

from typing import Literal

import msgspec

Strategy = Literal["fixed", "recursive", "semantic"]


class Chunking(msgspec.Struct, frozen=True, kw_only=True):
    """`size` and `overlap` are tokens of `o200k_base`, overlap at most half of size. `fixed` cuts every `size` tokens;
    `recursive` at paragraphs, sentences and words; `semantic` where the meaning turns. `header` embeds every chunk
    under the document's title and the headings above it."""

    strategy: Strategy = "fixed"
    size: int = 512
    overlap: int = 50
    header: bool = False
