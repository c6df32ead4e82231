"""The OpenAI-compatible embedder against a server that others wrote: llama.cpp's, with a tiny BERT of random weights.

Runs where the package `xllamacpp` is installed, which brings that server.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoranda.config import Embedder as Settings
from memoranda.errors import EmbedderUnavailable
from memoranda.providers.embeddings import CachedEmbedder, Embedded, open_embedder
from memoranda.providers.embeddings.local import MODELS
from memoranda.providers.embeddings.manifest import open_folder
from support.waiting import until

pytestmark = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed")

KEY = "tiny-secret"
DIM, INNER, HEADS, CONTEXT = 64, 128, 2, 512
SERVE = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.hostnames, params.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
params.api_keys, params.embedding, params.warmup, params.n_gpu_layers = [sys.argv[3]], True, False, 0
params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_CLS
params.n_ctx, params.n_batch, params.n_ubatch, params.n_parallel = 4 * 512, 512, 512, 4
params.cpuparams.n_threads = 1
server = xllamacpp.Server(params)
time.sleep(600)
"""


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, value: Any) -> bytes:
    """A key and its value as GGUF writes them: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md"""
    if isinstance(value, bool):
        return string(key) + struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return string(key) + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return string(key) + struct.pack("<If", 6, value)
    if isinstance(value, str):
        return string(key) + struct.pack("<I", 8) + string(value)
    if isinstance(value[0], str):
        return string(key) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(string, value))
    return string(key) + struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)


def vocabulary() -> list[str]:
    """The tokens of BERT, as GGUF spells them: a word's beginning is marked, and not its continuation."""
    held = json.loads((open_folder(MODELS / "arctic-embed-s").folder / "tokenizer.json").read_bytes())[
        "model"
    ]["vocab"]

    def spelled(token: str) -> str:
        if token.startswith("[") and token.endswith("]"):
            return token
        return token[2:] if token.startswith("##") else f"\u2581{token}"

    return [spelled(token) for token in sorted(held, key=held.__getitem__)]


def write_model(path: Path) -> None:
    words = vocabulary()
    settings: dict[str, Any] = {
        "general.architecture": "bert",
        "bert.block_count": 1,
        "bert.context_length": CONTEXT,
        "bert.embedding_length": DIM,
        "bert.feed_forward_length": INNER,
        "bert.attention.head_count": HEADS,
        "bert.attention.layer_norm_epsilon": 1e-12,
        "bert.attention.causal": False,
        "bert.pooling_type": 2,
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "bert-bge",
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.token_type": [3 if word[0] == "[" and len(word) > 1 else 1 for word in words],
        "tokenizer.ggml.padding_token_id": words.index("[PAD]"),
        "tokenizer.ggml.unknown_token_id": words.index("[UNK]"),
        "tokenizer.ggml.bos_token_id": words.index("[CLS]"),
        "tokenizer.ggml.cls_token_id": words.index("[CLS]"),
        "tokenizer.ggml.seperator_token_id": words.index("[SEP]"),
        "tokenizer.ggml.mask_token_id": words.index("[MASK]"),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(words), DIM),
        "position_embd.weight": (CONTEXT, DIM),
        "token_types.weight": (2, DIM),
        "token_embd_norm.weight": (DIM,),
        "token_embd_norm.bias": (DIM,),
    }
    inner = {"attn_q": (DIM, DIM), "attn_k": (DIM, DIM), "attn_v": (DIM, DIM), "attn_output": (DIM, DIM),
             "ffn_up": (INNER, DIM), "ffn_down": (DIM, INNER), "attn_output_norm": (DIM,),
             "layer_output_norm": (DIM,)}  # fmt: skip
    for name, shape in inner.items():
        shapes |= {f"blk.0.{name}.weight": shape, f"blk.0.{name}.bias": shape[:1]}
    random = np.random.default_rng(7)
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(shapes), len(settings))
    header += b"".join(entry(key, value) for key, value in settings.items())
    data = b""
    for name, shape in shapes.items():
        sizes = struct.pack(f"<{len(shape)}Q", *shape[::-1])
        header += string(name) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", 0, len(data))
        values = random.normal(1.0 if "norm.weight" in name else 0.0, 0.3, shape).astype("<f4").tobytes()
        data += values + bytes(-len(values) % 32)
    path.write_bytes(header + bytes(-len(header) % 32) + data)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    model = tmp_path_factory.mktemp("llama") / "tiny-bert.gguf"
    write_model(model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = subprocess.Popen(
        [sys.executable, "-c", SERVE, model, str(port), KEY],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(f"http://127.0.0.1:{port}/health", running)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        running.kill()
        running.wait()


def _wait(url: str, running: subprocess.Popen[bytes]) -> None:
    def up() -> bool:
        assert running.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    until(up, "the server answers")


def opened(server: str, url: str = "openai:tiny-bert?dimension=64", **settings: Any) -> CachedEmbedder:
    return open_embedder(url, settings=Settings(**{"base_url": server, "api_key": KEY} | settings))


def embed(embedder: CachedEmbedder, *texts: str) -> Embedded:
    return asyncio.run(embedder.embed(texts))


def test_texts_get_their_own_unit_vectors_in_order(server: str) -> None:
    texts = [f"text number {i} about {word}" for i, word in enumerate(["dogs", "cats", "boats"] * 12)]
    made = embed(opened(server, batch_size=5), *texts)
    assert made.vectors.shape == (36, DIM)
    assert np.linalg.norm(made.vectors, axis=1) == pytest.approx(1, abs=1e-5)
    alone = embed(opened(server), texts[17]).vectors[0]
    assert (made.vectors @ alone).argmax() == 17
    assert float(made.vectors[17] @ alone) > 0.999


def test_tokens_are_those_the_model_reads(server: str) -> None:
    texts = ["Biscuit is a beagle.", "Übergrößenträger 東京"]
    assert embed(opened(server), *texts).tokens == embed(open_embedder("local:arctic-embed-s"), *texts).tokens


def test_base64_and_floats_agree(server: str) -> None:
    packed, plain = opened(server), opened(server)
    plain.inner.manner = "float"  # type: ignore[attr-defined]
    assert embed(packed, "a text").vectors == pytest.approx(embed(plain, "a text").vectors, abs=1e-5)


def test_a_text_the_server_finds_too_long_is_halved_and_counted(server: str) -> None:
    embedder = opened(server, max_input_tokens=8192)
    made = embed(embedder, "short", "word " * 1200)
    assert np.linalg.norm(made.vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert embedder.usage()["truncated"] == 2  # 1 200 tokens to 600 to 300; the server takes 510
    assert embedder.usage()["retries"] == 0


def test_windows_of_a_long_text_fit_the_server(server: str) -> None:
    embedder = opened(server)
    for text in (
        "He said: naïve cafés, 12345.678 unbelievably-long\n" * 200,
        "Привет, мир. " * 300,
        "東京タワー" * 300,
    ):
        pieces = [text[span.start : span.end] for span in embedder.split(text)]
        embed(embedder, *pieces)
    assert embedder.usage()["truncated"] == 0


@pytest.mark.parametrize(
    ("url", "settings", "says"),
    [
        ("openai:tiny-bert?dimension=64", {"api_key": "wrong"}, "status 401: Invalid API Key"),
        ("openai:tiny-bert?dimension=64", {"api_key": None}, "status 401: Invalid API Key"),
        ("openai:tiny-bert?dimension=65", {}, "answered 64 dimensions of tiny-bert, not 65"),
        ("openai:tiny-bert?dimension=64&served_as=other", {}, "answered as the model 'tiny-bert'"),
    ],
)
def test_what_is_wrong_is_said(server: str, url: str, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=says):
        embed(opened(server, url, **settings), "a text")


def test_its_own_model_answers_when_none_is_named(server: str) -> None:
    embedder = opened(server, "openai:?dimension=64")
    assert np.array_equal(embed(embedder, "a text").vectors, embed(opened(server), "a text").vectors)


def test_a_place_without_embeddings_is_told_from_one_with(server: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"check .*embedder\.base_url"):
        embed(opened(server, base_url=f"{server}/nowhere"), "a text")
