"""`memoranda demo`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer

import memoranda
from memoranda.app.folder_sync.memory_sync import Indexed, Indexing, MemorySync
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import ids_of
from memoranda.cli.output import emit, origin, plain, say
from memoranda.cli.paths import find_files
from memoranda.cli.product import load_config, open_product
from memoranda.cli.progress import bar
from memoranda.types import Hit

if TYPE_CHECKING:
    from memoranda.app.blocking.features import BlockingMemories

SAMPLE = "console/sample.json"
SHOWN = 300
DOCUMENTS = (
    "README.md",
    "docs/guides/command-line.md",
    "docs/concepts/knowledge.md",
    "docs/concepts/responses.md",
    "docs/guides/backends.md",
)
"""Those that a user asks about: embedding the others would only take time."""


class Question(msgspec.Struct, frozen=True):
    """A question of the demo, and where its answer is looked for."""

    query: str
    scope: str


@common_options()
def demo(invocation: Invocation) -> None:
    """Remember a sample conversation and Memoranda's own documents, then answer questions about them.

    Without --data everything goes into a temporary folder that is deleted at the end.
    """
    with (
        _folder(invocation.data) as folder,
        open_product(load_config(folder, invocation.config_file, invocation.settings)) as product,
    ):
        memories = product.memories
        began = time.monotonic()
        messages = memories.add_many(conversation())
        indexed = documents(memories, quiet=invocation.as_json)
        seconds = time.monotonic() - began
        answers = [(question, ask(memories, question)) for question in questions()]
    if invocation.as_json:
        emit({
            "messages": len(messages), "files": indexed.files, "chunks": indexed.chunks, "seconds": round(seconds, 3),
            "answers": [{"query": question.query, "scope": question.scope, "best": hit} for question, hit in answers],
        })  # fmt: skip
        return
    typer.echo(
        f"{len(messages)} messages and {indexed.chunks} chunks of {indexed.files} documents remembered"
        f" in {seconds:.1f} s"
    )
    for question, hit in answers:
        typer.echo(f"\n? {question.query}  ({question.scope})")
        typer.echo("\n".join(answer(hit)))
    if invocation.data is not None:
        say(f'\nask on: memoranda ask "your question" --scope session:sample --data {invocation.data}')
    else:
        say("\nthis folder is gone now; memoranda demo --data DIR keeps it, so that you can ask on")


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="memoranda-demo-") as folder:
        yield Path(folder)


class Message(msgspec.Struct, frozen=True):
    """A message of the sample conversation."""

    role: str
    content: str
    occurred_at: str
    speaker: str | None = None


class Sample(msgspec.Struct, frozen=True):
    """What the demo reads of the sample, which the web console loads as a whole."""

    session: str
    messages: list[Message]
    questions: list[Question]


@cache
def sample() -> Sample:
    """Return the sample."""
    return msgspec.json.decode(files("memoranda.server").joinpath(SAMPLE).read_bytes(), type=Sample)


def conversation() -> list[dict[str, Any]]:
    """The sample's messages, as they are added."""
    shared = {"kind": "message", "session_id": sample().session, "source": "sample"}
    return [
        shared
        | {"role": said.role, "content": said.content, "occurred_at": said.occurred_at}
        | ({} if said.speaker is None else {"metadata": {"speaker": said.speaker}})
        for said in sample().messages
    ]


def questions() -> list[Question]:
    """What the demo asks; questions about documents only when the documents are there."""
    return [question for question in sample().questions if question.scope != "global" or own_documents()]


def own_documents() -> list[Path]:
    """Some of Memoranda's own documents, when it runs from its repository; an installed package has none."""
    root = Path(memoranda.__file__).resolve().parents[2]
    if not (root / "pyproject.toml").is_file():
        return []
    return [path for name in DOCUMENTS if (path := root / name).exists()]


def documents(memories: BlockingMemories, *, quiet: bool) -> Indexed:
    """Memoranda's own documents, indexed globally."""
    roots = own_documents()
    paths, _ = find_files(roots, [], hidden=False, missing=False)
    with bar("indexing", quiet=quiet) as report:
        how = Indexing(ids=ids_of("global"), size=160, overlap=20)
        sync = MemorySync(memories, how)
        return sync.run(paths, roots, on_progress=lambda done: report(done.files, len(paths), ""))


def ask(memories: BlockingMemories, question: Question) -> Hit | None:
    """The best hit for a question, if there is any."""
    hits = memories.search(question.query, scopes=[question.scope], limit=1).results
    return hits[0] if hits else None


def answer(hit: Hit | None) -> Iterator[str]:
    """The hit as a person reads it: scores and origin, then the text."""
    if hit is None:
        yield "  nothing found"
        return
    similarity = "" if hit.similarity is None else f", similarity {hit.similarity:.3f}"
    yield f"  score {hit.score:.3f}{similarity}  {origin(hit)}"
    text = " ".join(plain(hit.memory.content).split())
    yield f"  {text[:SHOWN]}{'…' if len(text) > SHOWN else ''}"
