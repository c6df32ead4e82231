"""Conversion of the bodies of the knowledge routes to library values, with errors that name the field."""

from __future__ import annotations

from typing import Any

from memoranda.errors import InvalidInput
from memoranda.knowledge import checks
from memoranda.knowledge.values import NewStoreFile, PassageQuery
from memoranda.server import wire_knowledge, wire_passages
from memoranda.server import wire_knowledge as wire
from memoranda.text.splitting import Chunking, Strategy

OVERLAP = 50
"""Tokens that the next chunk repeats, unless the request says otherwise."""
STRATEGIES: dict[type[wire_knowledge.OwnStrategy], Strategy] = {
    wire_knowledge.FixedStrategy: "fixed",
    wire_knowledge.RecursiveStrategy: "recursive",
    wire_knowledge.SemanticStrategy: "semantic",
}


def chunking(asked: wire_knowledge.Strategy | None, where: str = "chunking_strategy") -> Chunking | None:
    """The chunking of a request; None is the store's own.

    Raises:
        InvalidInput: the overlap is more than half.
    """
    if asked is None or isinstance(asked, wire_knowledge.AutoStrategy):
        return None
    if isinstance(asked, wire_knowledge.StaticStrategy):
        size, overlap = asked.static.max_chunk_size_tokens, asked.static.chunk_overlap_tokens
        if overlap > size // 2:
            says = f"is {overlap}; at most half of the chunk's {size} tokens, {size // 2}"
            raise InvalidInput(f"{where}.static.chunk_overlap_tokens", says)
        return Chunking(size=size, overlap=overlap)
    size = asked.chunk_size
    split = Chunking(
        strategy=STRATEGIES[type(asked)],
        size=size,
        overlap=min(OVERLAP, size // 2) if asked.chunk_overlap is None else asked.chunk_overlap,
        header=asked.contextual_header,
    )
    return checks.chunking_checked(split, where)


def new_file(asked: wire.AttachBody, where: str = "") -> NewStoreFile:
    """A file to add; `where` is its path in the body, with a dot behind."""
    checks.attributes_of(asked.attributes, f"{where}attributes")
    return NewStoreFile(
        file_id=asked.file_id,
        attributes=asked.attributes,
        chunking=chunking(asked.chunking_strategy, f"{where}chunking_strategy"),
    )


def new_files(asked: wire.FileBatchBody) -> list[NewStoreFile]:
    """The files of a batch, however they were written.

    Raises:
        InvalidInput: attributes or a chunking strategy are wrong.
    """
    attributes, split = asked.attributes, chunking(asked.chunking_strategy)
    checks.attributes_of(attributes)
    if asked.files is not None:
        return [new_file(file, f"files[{i}].") for i, file in enumerate(asked.files)]
    return [NewStoreFile(file_id=id_, attributes=attributes, chunking=split) for id_ in asked.file_ids or ()]


def query(asked: wire_passages.PassagesBody) -> PassageQuery:
    """The search of a request, which may use either of two names for a field."""
    ranking = asked.ranking_options or wire_passages.RankingOptions()
    expand = asked.expand or wire_passages.Expand()
    limit = _either(asked, "max_num_results", "max_results")
    return PassageQuery(
        queries=[asked.query] if isinstance(asked.query, str) else asked.query,
        limit=10 if limit is None else limit,
        filters=_either(asked, "filters", "filter"),
        threshold=ranking.score_threshold,
        weights=_weights(asked),
        mode=asked.mode,
        rewrite=bool(asked.rewrite_query),
        diversity=asked.diversity,
        neighbours=expand.neighbours,
        section=expand.section,
        merge=asked.merge,
        explain=asked.explain,
    )


def _either(asked: wire_passages.PassagesBody, name: str, other: str) -> Any:
    first, second = getattr(asked, name), getattr(asked, other)
    if first is not None and second is not None and first != second:
        raise InvalidInput(other, f"is another name of `{name}`; send one of the two")
    return second if first is None else first


def _weights(asked: wire_passages.PassagesBody) -> dict[str, float] | None:
    ranking = asked.ranking_options
    inner = None if ranking is None else ranking.hybrid_search
    hybrid, where = (
        (inner, "ranking_options.hybrid_search") if inner else (asked.hybrid_search, "hybrid_search")
    )
    if hybrid is None:
        return None
    if not hybrid.embedding_weight + hybrid.text_weight > 0:
        raise InvalidInput(where, "one of the two weights must be more than 0")
    return {"dense": hybrid.embedding_weight, "words": hybrid.text_weight}
