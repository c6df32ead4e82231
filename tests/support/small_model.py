"""A model server that is not ours: llama.cpp, serving a small network whose weights are worked out here.

The network copies. It has two layers of attention: the first fetches the words before each word, the second finds
where the latest words stood before and says what followed there (an induction head, Elhage et al. 2021,
"A Mathematical Framework for Transformer Circuits"). It knows nothing and decides little: which tool is called, and
that one is, its chat template shows it, and what it says is copied from what it was told. So it can prove that a
server of another make understands our requests, that we understand its streams and calls, and that what the tools
found reached the model; it proves nothing about how well a trained model calls tools or cites.

    python tests/support/small_model.py WEIGHTS PORT      serves a file that `write_weights` made
"""

from __future__ import annotations

import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

CODE = 48
"""Numbers that stand for a word."""
WINDOW = 6
"""Words back that are compared; also the heads, since each looks at one of them."""
PAIRS = 32
"""Pairs of numbers that stand for a place; they alone turn with it."""
PLACE = 2 * PAIRS + 2
"""With one more pair, which turns slowly and tells late from early."""
HEAD = PLACE + CODE * WINDOW
WIDTH = CODE * (WINDOW + 2)
"""Of a place in the text: its word, the words before it, and the word to come."""
UNUSED = 32
"""The width of the dense layers, which are all zeros."""
SHARP = 100.0
"""What a head gives a place that is where it looks, before the softmax; others get about half at most."""
MATCH = 300.0
"""What the same latest word is worth; the word before it FADE times as much, and so on."""
FADE = 0.6
LATE, SLOW = 40.0, np.pi / 2 / 8192
"""Of places that match alike the later one is taken: LATE sin(SLOW d) less for a place d words back."""
LOUD = 40.0
"""What the word to come is worth, in the logits."""

MARKS = ("<tool_call>", "</tool_call>", "<|end|>", "<|turn|>", "<|cue|>", "<|cue_found|>", "<|assistant|>")
TEMPLATE = r"""{%- for m in messages -%}
{%- if m.role == 'assistant' -%}
<|assistant|>{{ m.content or '' }}
{%- for c in m.tool_calls or [] -%}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>
{%- endfor -%}<|end|>
{%- elif loop.last and m.role == 'tool' -%}
{%- set paragraphs = m.content.split('\n\n') -%}
<|turn|>{{ paragraphs[:-1] | join('\n\n') }}<|cue_found|><|assistant|>{{ paragraphs[-1] }}<|end|><|cue_found|>
{%- elif loop.last and m.role == 'user' and tools -%}
{%- set f = tools[0].function -%}
{%- set argument = (f.parameters.required or ['query'])[0] -%}
<|turn|><|cue|><|assistant|><tool_call>
{"name": "{{ f.name }}", "arguments": {"{{ argument }}": {{ m.content | tojson }}}}
</tool_call><|end|><|cue|>
{%- elif loop.last and m.role == 'user' -%}
<|turn|><|cue|><|assistant|>{{ m.content }}<|end|><|cue|>
{%- else -%}
<|turn|>{{ m.content or '' }}<|end|>
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""
"""The last message is shown as the answer to itself: a question as a call of the first tool, and the last paragraph of
what a tool found as what is said."""


@contextmanager
def served(folder: Path, texts: Iterable[str]) -> Iterator[str]:
    """The URL of a server that answers chat completions, up while the context is; `texts` have the words it can read
    and say as words (any other it spells in bytes). Its log is `server.log` in `folder`.

    Raises:
        RuntimeError: the server ended, or was not up within 120 seconds; says what its log says.
    """
    weights, log, port = folder / "copies.gguf", folder / "server.log", free_port()
    write_weights(weights, texts)
    with log.open("wb") as out:
        command = [sys.executable, __file__, str(weights), str(port)]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_up(url, process, log)
        yield f"{url}/v1"
    finally:
        process.kill()
        process.wait()


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Comes back when the server answers."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise RuntimeError(f"the model server is not up; its log ends: {log.read_text(errors='replace')[-2000:]}")


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def vocabulary(texts: Iterable[str]) -> list[str]:
    """Every byte, the words of `texts` with and without the space before them, and the marks; as GGUF writes them."""
    words = sorted({word for text in texts for word in re.findall(r" ?[^\W_]+", text)})
    return [f"\\x{byte:02x}" for byte in range(256)] + [word for word in words if len(word) > 1] + list(MARKS)


def write_weights(path: Path, texts: Iterable[str]) -> None:
    """Writes the network as a GGUF file of about 30 MB."""
    tokens = vocabulary(texts)
    write_gguf(path, described(tokens), tensors(len(tokens)))


def described(tokens: list[str]) -> dict[str, Any]:
    """What the file says of the network, by the names of GGUF."""
    end = tokens.index("<|end|>")
    llama = {
        "context_length": 16384,
        "embedding_length": WIDTH,
        "block_count": 2,
        "feed_forward_length": UNUSED,
        "attention.head_count": WINDOW,
        "attention.head_count_kv": WINDOW,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.dimension_count": HEAD,
        "rope.freq_base": 1.0,
        "vocab_size": len(tokens),
    }
    tokenizer = {
        "ggml.model": "rwkv",
        "ggml.tokens": tokens,
        "ggml.token_type": [1] * (len(tokens) - len(MARKS)) + [4, 4] + [3] * (len(MARKS) - 2),
        "ggml.bos_token_id": end,
        "ggml.eos_token_id": end,
        "ggml.add_bos_token": False,
        "chat_template": TEMPLATE,
    }
    head: dict[str, Any] = {"general.architecture": "llama", "general.name": "copies"}
    return (
        head
        | {f"llama.{key}": value for key, value in llama.items()}
        | {f"tokenizer.{key}": value for key, value in tokenizer.items()}
    )


def codes(count: int) -> Matrix:
    """(count, CODE - 1): unit vectors, pushed apart until no two are much alike."""
    made = np.random.default_rng(0).standard_normal((count, CODE - 1))
    for _ in range(50):
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        alike = made @ made.T
        np.fill_diagonal(alike, 0)
        made -= 0.25 * (alike * alike * alike) @ made  # a longer step makes them swing when there are many
    unit: Matrix = made / np.linalg.norm(made, axis=1, keepdims=True)
    return unit


def slot(index: int) -> slice:
    """Where the `index`-th word back is kept in a place's numbers; WINDOW + 1 is the word to come."""
    return slice(CODE * index, CODE * (index + 1) - 1)


def tensors(count: int) -> dict[str, Matrix]:
    """All weights by GGUF's names, for a vocabulary of `count`."""
    words, turns = codes(count), np.random.default_rng(1).uniform(0.05, 3.0, PAIRS)
    embedded = np.zeros((count, WIDTH))
    embedded[:, slot(0)], embedded[:, CODE - 1] = words, 1.0
    logits = np.zeros((count, WIDTH))
    logits[:, slot(WINDOW + 1)] = words * LOUD / scale(WINDOW + 3)
    still = np.full(HEAD // 2, 1e30)
    still[:PAIRS], still[PAIRS] = 1 / turns, 1 / SLOW
    made = {"token_embd.weight": embedded, "output_norm.weight": np.ones(WIDTH), "output.weight": logits}
    made["rope_freqs.weight"] = still
    for number, layer in enumerate((looking_back(turns), finding())):
        made |= {f"blk.{number}.{name}.weight": tensor for name, tensor in layer.items()}
    return made


def scale(parts: int) -> float:
    """What the norm before a layer multiplies by where a place holds `parts` unit vectors."""
    return float(np.sqrt(WIDTH / parts))


def blank() -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Queries, keys and values (heads, HEAD, WIDTH) and what becomes of them (WIDTH, heads, HEAD), all zeros."""
    into = np.zeros((3, WINDOW, HEAD, WIDTH))
    return into[0], into[1], into[2], np.zeros((WIDTH, WINDOW, HEAD))


def looking_back(turns: Matrix) -> dict[str, Matrix]:
    """Layer 0: head h looks h + 1 words back and brings that word. Query and key are the same for all words; the turn
    by place makes them meet where the places are h + 1 apart."""
    query, key, value, out = blank()
    norm, one = scale(2), CODE - 1
    size = np.sqrt(SHARP * np.sqrt(HEAD) / PAIRS) / norm
    same = np.eye(CODE - 1)
    for head in range(WINDOW):
        query[head, 0 : PLACE - 2 : 2, one] = size * np.cos(-turns * (head + 1))
        query[head, 1 : PLACE - 2 : 2, one] = size * np.sin(-turns * (head + 1))
        key[head, 0 : PLACE - 2 : 2, one] = size
        value[head, : CODE - 1, slot(0)] = same / norm
        out[slot(head + 1), head, : CODE - 1] = same
    return layer(query, key, value, out)


def finding() -> dict[str, Matrix]:
    """Layer 1: one head compares the words up to here with the words before each place, and brings the word there."""
    query, key, value, out = blank()
    norm, same = scale(WINDOW + 2), np.eye(CODE - 1)
    for back in range(WINDOW):
        size = np.sqrt(MATCH * np.sqrt(HEAD) * FADE**back) / norm
        into = slice(PLACE + CODE * back, PLACE + CODE * (back + 1) - 1)
        query[0, into, slot(back)] = same * size
        key[0, into, slot(back + 1)] = same * size
    late = np.sqrt(LATE * np.sqrt(HEAD)) / norm
    query[0, PLACE - 1, CODE - 1] = key[0, PLACE - 2, CODE - 1] = late
    value[0, : CODE - 1, slot(0)] = same / norm
    out[slot(WINDOW + 1), 0, : CODE - 1] = same
    return layer(query, key, value, out)


def layer(query: Matrix, key: Matrix, value: Matrix, out: Matrix) -> dict[str, Matrix]:
    """A layer's weights by name; its dense part adds nothing."""
    return {
        "attn_norm": np.ones(WIDTH),
        "attn_q": query.reshape(-1, WIDTH),
        "attn_k": key.reshape(-1, WIDTH),
        "attn_v": value.reshape(-1, WIDTH),
        "attn_output": out.reshape(WIDTH, -1),
        "ffn_norm": np.ones(WIDTH),
        "ffn_gate": np.zeros((UNUSED, WIDTH)),
        "ffn_up": np.zeros((UNUSED, WIDTH)),
        "ffn_down": np.zeros((WIDTH, UNUSED)),
    }


def write_gguf(path: Path, described: Mapping[str, Any], tensors: Mapping[str, Matrix]) -> None:
    """GGUF, version 3, all tensors float32: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md"""
    single = {name: np.ascontiguousarray(tensor, dtype="<f4") for name, tensor in tensors.items()}
    offset = 0
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(single), len(described)))
        for key, value in described.items():
            file.write(text(key) + typed(value))
        for name, tensor in single.items():
            shape = tensor.shape[::-1]
            file.write(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset))
            offset += tensor.nbytes + -tensor.nbytes % 32
        file.write(bytes(-file.tell() % 32))
        for tensor in single.values():
            file.write(tensor.tobytes() + bytes(-tensor.nbytes % 32))


def text(value: str) -> bytes:
    """A string as GGUF writes it."""
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def typed(value: Any) -> bytes:
    """A value as GGUF writes it, its type first."""
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + text(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        case [int(), *_]:
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    raise TypeError(f"GGUF has no type for {value!r}")


def serve(weights: str, port: int) -> None:
    """Serves the file until the process is ended."""
    import xllamacpp  # type: ignore[import-untyped]  # heavy; only the server's process needs it

    told = xllamacpp.CommonParams()
    told.model.path = weights
    told.model_alias = {"copies"}
    told.port = port
    told.n_ctx = 8192
    told.n_parallel = 1
    told.use_jinja = True
    told.warmup = False
    told.cache_type_k = told.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    told.cpuparams.n_threads = 1  # several wait for each other by spinning, and the machine is shared
    told.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(told)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
