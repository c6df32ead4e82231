"""Models in folders: shipped ones whole, damaged ones refused, a user's own understood."""

import asyncio
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from memoranda.errors import ConfigError, EmbedderUnavailable
from memoranda.providers.embeddings import open_embedder
from memoranda.providers.embeddings.local import MODELS, known_models
from memoranda.providers.embeddings.manifest import described, open_folder
from support.model_folder import copied_model

POTION = "potion-base-8m"


def embed(url: str, text: str) -> np.ndarray:
    return asyncio.run(open_embedder(url).embed([text])).vectors[0]


def safetensors(path: Path, **matrices: np.ndarray) -> None:
    """Write F32 or F16 tensors as the format has them."""
    header, at = {}, 0
    for name, matrix in matrices.items():
        kind = {"float32": "F32", "float16": "F16", "int8": "I8"}[str(matrix.dtype)]
        header[name] = {
            "dtype": kind,
            "shape": matrix.shape,
            "data_offsets": [at, at + matrix.nbytes],
        }
        at += matrix.nbytes
    packed = json.dumps(header).encode()
    data = b"".join(matrix.tobytes() for matrix in matrices.values())
    path.write_bytes(len(packed).to_bytes(8, "little") + packed + data)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A static model as a user would have it: a tokenizer and random F16 vectors."""
    shutil.copy(open_folder(MODELS / POTION).folder / "tokenizer.json", tmp_path)
    matrix = np.random.default_rng(1).standard_normal((29_528, 16)).astype(np.float16)
    safetensors(tmp_path / "model.safetensors", embeddings=matrix)
    return tmp_path


@pytest.mark.parametrize("name", ["arctic-embed-s", "potion-base-8m"])
def test_a_shipped_model_is_whole_and_says_where_it_is_from(name: str) -> None:
    model = open_folder(MODELS / name)
    model.verify()
    kept = {path.name for path in model.folder.iterdir() if path.suffix != ".pyc" and path.is_file()}
    assert kept == {"__init__.py", *model.manifest.files}
    readme = (model.folder.parents[2] / "README.md").read_text()
    assert all(file.sha256 in readme for file in model.manifest.files.values())
    assert model.manifest.licence in ("MIT", "Apache-2.0")
    assert model.manifest.origin
    assert 0 < model.manifest.calibration.firm < 1
    assert model.manifest.languages == {"en"}


def test_shipped_weights_stay_under_sixty_megabytes() -> None:
    folder = open_folder(MODELS / POTION).folder.parent
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 60_000_000
    assert known_models() == ["arctic-embed-s", "multilingual-e5-small", "potion-base-8m", "wordllama"]


def test_a_cut_file_is_refused_at_once(tmp_path: Path) -> None:
    broken = copied_model(POTION, tmp_path / "broken")
    (broken / "rows.npy").write_bytes((broken / "rows.npy").read_bytes()[:-1])
    with pytest.raises(ConfigError, match=r"rows\.npy has 7559295 bytes, not 7559296"):
        open_embedder(f"local:{broken}")


def test_a_missing_file_is_refused_at_once(tmp_path: Path) -> None:
    broken = copied_model(POTION, tmp_path / "broken")
    (broken / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"lacks .*tokenizer\.json"):
        open_embedder(f"local:{broken}")


@pytest.mark.parametrize("name", ["rows.npy", "scales.npy", "tokenizer.json"])
def test_a_changed_byte_is_noticed_at_first_use(tmp_path: Path, name: str) -> None:
    broken = copied_model(POTION, tmp_path / "broken")
    data = bytearray((broken / name).read_bytes())
    data[-9] ^= 1
    (broken / name).write_bytes(data)
    with pytest.raises(EmbedderUnavailable, match="is not the file that was published"):
        embed(f"local:{broken}", "text")


def test_a_users_own_static_folder_is_understood(folder: Path) -> None:
    embedder = open_embedder(f"local:{folder}")
    assert embedder.dim == 16
    assert embedder.model.startswith(f"{folder.name}@")
    made = embed(f"local:{folder}", "the word")
    assert np.linalg.norm(made) == pytest.approx(1, abs=1e-3)


def test_a_users_own_onnx_folder_is_understood(tmp_path: Path) -> None:
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).symlink_to(open_folder(MODELS / "arctic-embed-s").folder / name)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true}')
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "ask: "}}')
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 128}')
    assert (described(tmp_path).query_prefix, described(tmp_path).max_tokens) == ("ask: ", 128)
    own = embed(f"local:{tmp_path}", "the word")
    assert np.array_equal(own, embed("local:arctic-embed-s", "the word"))


def test_one_model_under_two_contents_has_two_names(folder: Path) -> None:
    before = open_embedder(f"local:{folder}").model
    safetensors(folder / "model.safetensors", embeddings=np.ones((29_528, 16), np.float32))
    assert open_embedder(f"local:{folder}").model != before


def test_a_loaded_model_reads_no_file_at_its_first_question(folder: Path) -> None:
    model = open_embedder(f"local:{folder}")
    asyncio.run(model.load())
    for path in folder.iterdir():
        path.unlink()
    assert len(asyncio.run(model.embed(["a red fence"], "query")).vectors) == 1
    assert model.work.texts == 1


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"put tokenizer\.json there and one of model\.onnx"):
        open_embedder(f"local:{tmp_path}")


@pytest.mark.parametrize(
    "matrices",
    [
        {"rows": np.ones((3, 4), np.int8)},
        {"a": np.ones((3, 4), np.float32), "mapping": np.ones((3,), np.float32)},
    ],
)
def test_weights_of_another_kind_are_refused(folder: Path, matrices: dict[str, np.ndarray]) -> None:
    safetensors(folder / "model.safetensors", **matrices)
    with pytest.raises(ConfigError, match="one F32 or F16 matrix"):
        open_embedder(f"local:{folder}")


def test_weights_that_are_not_weights_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0 not json at all")
    with pytest.raises(ConfigError, match="not a safetensors file"):
        open_embedder(f"local:{folder}")


def test_an_onnx_file_that_is_none_is_unavailable(tmp_path: Path) -> None:
    shutil.copy(open_folder(MODELS / POTION).folder / "tokenizer.json", tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        open_embedder(f"local:{tmp_path}")


def test_a_model_of_a_package_that_is_not_there_says_what_to_install(tmp_path: Path) -> None:
    manifest = json.loads((MODELS / "wordllama/model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**manifest, "package": "no_such_package"}))
    with pytest.raises(
        ConfigError, match=r"needs a package of its own: pip install 'memoranda\[wordllama\]'"
    ):
        open_embedder(f"local:{tmp_path}")


def test_a_manifest_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"name": "x", "colour": "red"}')
    with pytest.raises(ConfigError, match="colour"):
        open_embedder(f"local:{tmp_path}")
