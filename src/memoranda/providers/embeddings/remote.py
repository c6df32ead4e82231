"""The base of embedders behind HTTP: settings, input limits, batches, lanes and checks."""

from __future__ import annotations

import asyncio
import logging
import string
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from memoranda.config.data_sections import Embedder as Settings
from memoranda.config.keys import checked
from memoranda.config.secret import Secret
from memoranda.config.sections import field_types
from memoranda.errors import ConfigError, EmbedderUnavailable
from memoranda.providers.embeddings.base import (
    Calibration,
    Embedded,
    Embedder,
    Span,
    Task,
    Vectors,
    unit,
    windows,
)
from memoranda.providers.embeddings.http import Refused, Unusable, Wire
from memoranda.providers.embeddings.published import PublishedModel, known
from memoranda.text import tokens

log = logging.getLogger("memoranda.embeddings")

NOT_IN_URL = frozenset({"url", "api_key", "threads", "cache_size"})
UNKNOWN_MAX_TOKENS = 512
LEAST_MAX_TOKENS = 16
ESTIMATE = 0.8
"""Share of a model's input that is used if its tokenizer is not known."""
SPARE = 8
"""Tokens that a window stays below the limit, since a cut inside a word may add tokens."""
PATIENCE = 4
"""A batch of documents may take this many times `embedder.timeout`, retries and waits included."""
_SINGLE = np.array([chr(point) in string.punctuation for point in range(128)] + [True])
"""By code point, 128 for all beyond ASCII: True if English vocabularies make the character a token of its own."""
CHARS_PER_TOKEN = 32
"""Characters of a text that are tokenized per token it may have."""


class Answer(msgspec.Struct, frozen=True):
    """A provider's answer: one vector per text (lists or arrays), its count of tokens and its model, if it reports
    them, and how many texts it truncated."""

    vectors: Sequence[Any]
    tokens: int | None = None
    model: str | None = None
    truncated: int = 0


def addressed(url: str, settings: Settings) -> tuple[str, Settings]:
    """Return the model that `SCHEME:MODEL?name=value` names, and the settings overridden by those of the URL.

    Raises:
        ConfigError: a name is not one of the settings that may stand in a URL, or a value is wrong.
    """
    name, _, query = url.partition(":")[2].partition("?")
    types = {key: kind for key, kind in field_types(Settings).items() if key not in NOT_IN_URL}
    given: dict[str, Any] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in types:
            hint = "; a key belongs in embedder.api_key" if "key" in key else ""
            raise ConfigError("embedder.url", f"{key!r} is not one of {', '.join(sorted(types))}{hint}")
        given[key] = checked(f"embedder.url {key}", value, types[key], lax=True)
    return name, msgspec.structs.replace(settings, **given)


class RemoteEmbedder(Embedder):
    """An embedder of a provider over HTTP. A subclass defines the request and how to read the answer.

    Queries have connections of their own, so they never wait behind documents. The model's name is that of the vector
    space: a shortened dimension and a custom document prefix are part of it, the address is not.
    """

    provider: str
    home: str
    """The provider's address, unless `embedder.base_url` is set."""
    key_variable: str | None = None
    """The default variable with the key; read for `home` only, so that no key is sent elsewhere."""
    key_needed = False
    remote = True
    batch_size = 64
    batch_tokens = 100_000
    manner = ""
    """The form of requests, if there is a choice."""
    calibration = Calibration()

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self.known = known(name)
        self.base = _base(settings.base_url) or self.home
        self.dim = self._dim(self.known)
        self.max_tokens = self._max_tokens(self.known)
        self.prefixes: dict[Task, str] = self._prefixes(self.known)
        self.model = self._space(self.known)
        at_home = self.base == self.home
        self.secret = Secret(
            settings, self.key_variable if at_home else None, "embedder", EmbedderUnavailable
        )
        if self.key_needed and at_home and self.secret.last is None:
            raise ConfigError(
                "embedder.api_key",
                f"is missing, and {self.provider} needs one; set it, api_key_env or api_key_file"
                + (f", or the environment variable {self.key_variable}" if self.key_variable else ""),
            )
        self._count = settings.batch_size or self.batch_size
        place = f"{self.provider} at {urlsplit(self.base).netloc}"
        self._wire = Wire(
            place, self.base, self.headers, lambda: self.secret.last, 2 * settings.concurrency, self.fixes()
        )
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Task, asyncio.Semaphore]] = (
            WeakKeyDictionary()
        )
        self._answered: str | None = None
        self._closed = False

    @abstractmethod
    def path(self, task: Task) -> str:
        """Return the path after the base in the address to POST to."""

    @abstractmethod
    def body(self, texts: Sequence[str], task: Task) -> Mapping[str, Any]:
        """Return the request for these texts, prefixes included."""

    @abstractmethod
    def read(self, document: dict[str, Any], count: int) -> Answer:
        """Return the vectors in the answer to `count` texts, in the texts' order.

        Raises:
            Unusable: it has another shape than the provider's reference says.
        """

    def headers(self) -> Mapping[str, str]:
        """Return the headers with the key."""
        key = self.secret.now()
        return {"authorization": f"Bearer {key}"} if key else {}

    def fixes(self) -> Mapping[int, str]:
        """Return the fixes of refusals by status that are specific to this provider."""
        return {404: f"check that it has the model {self.name!r} of embedder.url, and embedder.base_url"}

    def adapts(self, refused: Refused, manner: str) -> bool:
        """Return True if requests of this `manner` are made in another from now on, because of this refusal."""
        return False

    @property
    def shortened(self) -> bool:
        """True if vectors are wanted with fewer dimensions than the model has."""
        return self.known is not None and self.dim != self.known.dim

    def usage(self) -> dict[str, int]:
        return asdict(self._wire.usage)

    # Settings

    def _dim(self, model: PublishedModel | None) -> int:
        wanted = self.settings.dimension
        if model is None:
            if wanted is None:
                says = (
                    f"is needed, as {self.name or 'the default model'!r} is not a model known here; set it to"
                )
                raise ConfigError("embedder.dimension", f"{says} the length of its vectors")
            return wanted
        if wanted is None or wanted == model.dim:
            return model.dim
        if model.shortest is None or not model.shortest <= wanted <= model.dim:
            can = (
                f"; it takes {model.shortest} to {model.dim}"
                if model.shortest
                else " and cannot be shortened"
            )
            raise ConfigError("embedder.dimension", f"is {wanted}; {self.name} has {model.dim}{can}")
        return wanted

    def _max_tokens(self, model: PublishedModel | None) -> int:
        most = model.max_tokens if model else None
        wanted = self.settings.max_input_tokens
        if wanted is not None and wanted < LEAST_MAX_TOKENS:
            raise ConfigError("embedder.max_input_tokens", f"is {wanted}; use {LEAST_MAX_TOKENS} or more")
        if wanted is not None and most is not None:
            return min(wanted, most)
        return wanted or most or UNKNOWN_MAX_TOKENS

    def _prefixes(self, model: PublishedModel | None) -> dict[Task, str]:
        query, document = model.prefixes if model else ("", "")
        own = self.settings
        return {
            "query": query if own.query_prefix is None else own.query_prefix,
            "document": document if own.document_prefix is None else own.document_prefix,
        }

    def _space(self, model: PublishedModel | None) -> str:
        name = self.name.removesuffix(":latest") or f"default@{urlsplit(self.base).netloc}"
        if self.shortened:
            name += f"@{self.dim}"
        prefix = self.prefixes["document"]
        if prefix != (model.prefixes[1] if model else ""):
            name += f"+{sha256(prefix.encode()).hexdigest()[:8]}"
        return name

    # Embedding

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if self._closed:
            raise EmbedderUnavailable(f"the embedder {self.model} is closed")
        clean = [tokens.well_formed(text) for text in texts]
        capacity = self._capacity(task)
        if any(len(text) > capacity for text in clean):
            clean = await self._cut(clean, capacity)
        asked = [i for i, text in enumerate(clean) if text.strip()]  # providers refuse blank texts
        runs = list(self._runs(clean, asked))
        if task == "query":
            done = await self._in_time(runs, clean)
        else:
            done = await self._all(runs, clean, task)
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for run, (run_vectors, _) in zip(runs, done, strict=True):
            vectors[run] = run_vectors
        read = sum(count for _, count in done)
        self._wire.usage.tokens += read
        return Embedded(_units(vectors, texts), read)

    def _patience(self, task: Task) -> float:
        """Return the seconds that a request may take, with every retry and wait."""
        timeout = self.settings.timeout
        return min(self.settings.query_timeout, timeout) if task == "query" else PATIENCE * timeout

    async def _in_time(self, runs: list[list[int]], texts: Sequence[str]) -> list[tuple[Vectors, int]]:
        seconds = self._patience("query")
        try:
            async with asyncio.timeout(seconds):
                return await self._all(runs, texts, "query")
        except TimeoutError as exc:
            says = (
                f"{self._wire.place} did not answer a question within {seconds:g} s (embedder.query_timeout)"
            )
            self._wire.rest("query", says)
            raise EmbedderUnavailable(says) from exc

    async def _all(
        self, runs: Sequence[list[int]], texts: Sequence[str], task: Task
    ) -> list[tuple[Vectors, int]]:
        """Return the vectors and tokens of each run. A call queues only as many requests as may run at once, so that
        callers take turns."""
        lane = self._lane(task)
        pending: deque[asyncio.Task[tuple[Vectors, int]]] = deque()
        done: list[tuple[Vectors, int]] = []

        async def embed_run(run: list[int]) -> tuple[Vectors, int]:
            async with lane:
                return await self._batch([texts[i] for i in run], task)

        try:
            for run in runs:
                pending.append(asyncio.create_task(embed_run(run)))
                if len(pending) > self.settings.concurrency:
                    done.append(await pending[0])
                    pending.popleft()
            while pending:
                done.append(await pending[0])
                pending.popleft()
        finally:
            for left in pending:
                left.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        return done

    def _lane(self, task: Task) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if loop not in self._lanes:
            self._lanes[loop] = {
                "document": asyncio.Semaphore(self.settings.concurrency),
                "query": asyncio.Semaphore(self.settings.concurrency),
            }
        return self._lanes[loop][task]

    async def _batch(self, texts: list[str], task: Task) -> tuple[Vectors, int]:
        manner = self.manner
        prefixed = [self.prefixes[task] + text for text in texts]
        try:
            document = await self._wire.post(
                self.path(task),
                self.body(prefixed, task),
                task,
                timeout=self.settings.timeout,
                patience=self._patience(task),
            )
        except Refused as exc:
            if self.adapts(exc, manner):
                return await self._batch(texts, task)
            return await self._shorter(texts, task, exc)
        try:
            answer = self.read(document, len(texts))
            vectors = self._checked(answer, len(texts))
        except Unusable as exc:
            raise EmbedderUnavailable(f"{self._wire.place} {exc}") from exc
        if answer.truncated:
            self._say_cut(answer.truncated, f"by {self.provider}")
        estimate = sum(-(-len(text.encode()) // 4) for text in prefixed)
        return vectors, estimate if answer.tokens is None else answer.tokens

    async def _shorter(self, texts: list[str], task: Task, refused: Refused) -> tuple[Vectors, int]:
        """Return the vectors of texts that were too long together, embedded in halves, or of a truncated text."""
        if refused.too_long and len(texts) > 1:
            half = len(texts) // 2
            first, second = await self._batch(texts[:half], task), await self._batch(texts[half:], task)
            return np.concatenate([first[0], second[0]]), first[1] + second[1]
        if refused.too_long and len(texts[0]) > LEAST_MAX_TOKENS:
            self._say_cut(1, f"in half, as {self.provider} says it is too long")
            return await self._batch([texts[0][: len(texts[0]) // 2]], task)
        raise EmbedderUnavailable(self._wire.refusal(refused)) from refused

    def _checked(self, answer: Answer, count: int) -> Vectors:
        self._check_model(answer.model)
        if len(answer.vectors) != count:
            raise Unusable(f"answered {len(answer.vectors)} vectors to {count} texts; nothing of it is used")
        vectors = np.empty((count, self.dim), np.float32)
        for row, values in enumerate(answer.vectors):
            vectors[row] = self._vector(values)
        return vectors

    def _vector(self, values: Any) -> NDArray[np.float32]:
        try:
            with np.errstate(over="ignore"):
                vector = np.asarray(values, np.float32)
        except (TypeError, ValueError) as exc:
            raise Unusable(
                "answered a vector that is not a list of numbers; check embedder.base_url"
            ) from exc
        if vector.shape != (self.dim,):
            got = len(vector) if vector.ndim == 1 else "no"
            says = f"answered {got} dimensions of {self.name or 'its default model'}, not {self.dim}"
            raise Unusable(
                f"{says}; set embedder.dimension to what the model has, or embedder.url to the right model"
            )
        if not np.isfinite(vector).all():
            raise Unusable("answered a vector with a number that is not finite; nothing of it is used")
        return vector

    def _check_model(self, answered: str | None) -> None:
        """Check that the provider answers as the requested model."""
        if not answered:
            return
        wanted = self.settings.served_as or self.name or self._answered
        self._answered = self._answered or answered
        if wanted and not same_model(wanted, answered):
            raise Unusable(
                f"answered as the model {answered[:100]!r} where {wanted!r} was asked; name that one in embedder.url,"
                " or, if it is the same model, in embedder.served_as"
            )

    # Lengths

    def _capacity(self, task: Task) -> int:
        """Return the tokens of a text that can be sent: without the prefix, and less a margin if tokens are
        estimated."""
        exact = self.known is not None and self.known.encoding is not None
        prefix = self.prefixes[task]
        capacity = self.max_tokens - (len(prefix) // 3 + 1 if prefix else 0)
        return max(LEAST_MAX_TOKENS, capacity if exact else int(capacity * ESTIMATE))

    def _starts(self, text: str) -> NDArray[np.int64]:
        """Return where tokens begin, ascending. If the model's tokenizer is not known, o200k is used, and every sign
        and every letter outside ASCII counts at least as one token, as in English vocabularies."""
        encoding = self.known.encoding if self.known else None
        starts = tokens.locate(text, encoding or tokens.DEFAULT_ENCODING).starts
        if encoding:
            return starts
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        others = np.setdiff1d(np.flatnonzero(_SINGLE[np.minimum(points, 128)]), starts)
        return np.sort(np.concatenate([starts, others]))

    async def _cut(self, texts: Sequence[str], capacity: int) -> list[str]:
        cut = await asyncio.to_thread(lambda: [self._head(text, capacity) for text in texts])
        if count := sum(len(after) < len(before) for before, after in zip(texts, cut, strict=True)):
            self._say_cut(count, f"at {capacity} tokens")
        return cut

    def _head(self, text: str, capacity: int) -> str:
        """Return the text up to `capacity` tokens; a token is at least a byte, so a short text needs no count."""
        if len(text) <= capacity and len(text.encode()) <= capacity:
            return text
        starts = self._starts(text[: capacity * CHARS_PER_TOKEN])
        return text[: int(starts[capacity])] if len(starts) > capacity else text[: capacity * CHARS_PER_TOKEN]

    def _say_cut(self, count: int, how: str) -> None:
        self._wire.usage.truncated += count
        log.warning("%d texts were longer than %s takes and were cut %s", count, self.model, how)

    def split(self, text: str) -> list[Span]:
        text = tokens.well_formed(text)
        capacity = self._capacity("document")
        if len(text) <= capacity and len(text.encode()) <= capacity:
            return [Span(0, len(text))]
        starts = self._starts(text)
        if len(starts) <= capacity:
            return [Span(0, len(text))]
        return windows(text, starts, capacity - min(SPARE, capacity // 8), capacity // 10)

    def _runs(self, texts: Sequence[str], rows: Sequence[int]) -> Iterator[list[int]]:
        """Yield rows in batches of at most `batch_size` texts, with fewer bytes than `batch_tokens` together: a token
        has at least one byte."""
        run: list[int] = []
        size = 0
        for row in rows:
            weight = len(texts[row].encode())
            if run and (len(run) == self._count or size + weight > self.batch_tokens):
                yield run
                run, size = [], 0
            run.append(row)
            size += weight
        if run:
            yield run

    def close(self) -> None:
        self._closed = True
        self._wire.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, {self.dim}, at {self.base!r})"


def same_model(asked: str, answered: str) -> bool:
    """Return True if a provider's name for a model is the requested name, or a version of it.

    The folder before a name, `.gguf` and `:latest` do not count. A version is what follows the whole name after
    one of `-_.:@`: `text-embedding-ada-002-v2` is an `ada-002`, `text-embedding-3-large` is no `-small`.
    """
    wanted, got = _core(asked), _core(answered)
    return got == wanted or (got.startswith(wanted) and got[len(wanted)] in "-_.:@")


def _core(name: str) -> str:
    return name.lower().replace("\\", "/").rpartition("/")[2].removesuffix(".gguf").removesuffix(":latest")


def _base(url: str | None) -> str | None:
    """Return the normalised base address: no slash at its end, no password, no query."""
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError(
            "embedder.base_url", "is no address; it begins with http:// or https:// and names a host"
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        says = "carries a password, a query or a fragment; write the address alone, and the key in embedder.api_key"
        raise ConfigError("embedder.base_url", says)
    return url.rstrip("/").removesuffix("/embeddings").removesuffix("/api/embed")


def _units(vectors: Vectors, texts: Sequence[str]) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    for row in np.flatnonzero(lengths[:, 0] == 0).tolist():
        vectors[row], lengths[row] = unit(vectors[row], texts[row]), 1.0
    scaled: Vectors = vectors / lengths
    return scaled
