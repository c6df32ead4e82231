"""What an answer rests on: the passages that it cites, and the memories that it quotes or that the model was given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.cli.output import memory_line, plain, short_path
from memoranda.errors import NotFound
from memoranda.responses.citations import quoted_memories
from memoranda.responses.tools.memory import title_of
from memoranda.text.prompts import on_pages

if TYPE_CHECKING:
    from memoranda.app.blocking.features import BlockingMemories

_MARKER = re.compile(r"[\[【]? ?(\d+) ?(?:†.*)?[\]】]?")


class Sources(NamedTuple):
    """The cited passages of an answer and the memories that the model was given, each ready for JSON. Passages have the
    number of their marker; memories are `cited` if the answer quotes them."""

    citations: list[dict[str, Any]]
    memories: list[dict[str, Any]]


def sources_of(response: dict[str, Any], memories: BlockingMemories) -> Sources:
    """The sources of a response whose search results are included; memories deleted since then are left out."""
    results = [
        result
        for item in response["output"]
        if item["type"] == "file_search_call"
        for result in item["results"] or ()
    ]
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    annotations = [annotation for part in parts for annotation in part.get("annotations", ())]
    citations = {
        passage["number"]: passage
        for annotation in annotations
        if (passage := _passage(annotation, results)) is not None
    }
    retrieved = response["extensions"].get("memory", {}).get("retrieved", ())
    used = [entry for entry in retrieved if entry["used"]]
    given = [memory for entry in used if (memory := _memory(entry, memories)) is not None]
    text = "\n\n".join(part.get("text", "") for part in parts)
    quoted = quoted_memories(
        text,
        [memory["memory"].content for memory in given],
        [title_of(memory["memory"]) for memory in given],
        quotes_only=response["extensions"].get("answered_by") == "extractive",
    )
    return Sources(
        [
            {
                **_origin(passage),
                "annotations": [
                    annotation for annotation in annotations if _passage(annotation, results) is passage
                ],
            }
            for _, passage in sorted(citations.items())
        ],
        [{**memory, "cited": index in quoted} for index, memory in enumerate(given)],
    )


def _passage(annotation: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The passage that an annotation means: by the number of its marker, or the first that has the quoted words."""
    of_file = [result for result in results if result["file_id"] == annotation["file_id"]]
    text = annotation["text"]
    if (marker := _MARKER.fullmatch(text)) is not None:
        return next((passage for passage in of_file if passage["number"] == int(marker[1])), None)
    words = " ".join(text[1:-1].split())
    quoted = [passage for passage in of_file if words in " ".join(passage["text"].split())]
    return next(iter([*quoted, *of_file]), None)


def _origin(passage: dict[str, Any]) -> dict[str, Any]:
    names = ("number", "file_id", "filename", "page", "last_page", "heading", "score", "attributes", "text")
    return {name: passage[name] for name in names}


def _memory(used: dict[str, Any], memories: BlockingMemories) -> dict[str, Any] | None:
    try:
        memory = memories.get(used["id"])
    except NotFound:
        return None
    return {"memory": memory, "score": used["score"], "similarity": used["similarity"]}


def source_lines(sources: Sources) -> Iterator[str]:
    """A line for each source: its marker, and where it is from. Memories have no marker in the text; they are numbered
    with an `m`. If the answer quotes no memory, all that the model was given follow under a heading of their own."""
    cited = [memory for memory in sources.memories if memory["cited"]]
    if sources.citations or cited:
        yield "Sources"
    for citation in sources.citations:
        path = citation["attributes"].get("path")
        name = short_path(path) if isinstance(path, str) else citation["filename"]
        parts = [name, on_pages(citation["page"], citation["last_page"]), citation["heading"] or ""]
        yield plain(f"[{citation['number']}]  {'  '.join(part for part in parts if part)}")
    if sources.memories and not cited:
        yield "\nGiven, not cited" if sources.citations else "Given, not cited"
    for number, source in enumerate(cited or sources.memories, 1):
        yield f"[m{number}]  {memory_line(source['memory'])}"
