"""What `./run` and `./test` install from: the pins, and pip's settings carried over to uv."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PINS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, looking at a project of its own in an empty folder."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "scripts" / "bootstrap.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    places = {"ROOT": tmp_path, "VENV": tmp_path / ".venv", "PINS": tmp_path / "requirements"}
    places["PACKAGES"] = tmp_path / "packages"
    for name, place in places.items():
        monkeypatch.setattr(module, name, place)
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / ".memoranda.json")
    for folder in ("requirements", ".venv"):
        (tmp_path / folder).mkdir()
    (tmp_path / "requirements" / "runtime.txt").write_text("numpy==2\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    return module


def names(pins: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)==", pins, re.MULTILINE))


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.name)
def test_every_pin_has_a_hash_and_names_no_host(path: Path) -> None:
    text = path.read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert entries
    wrong = [
        entry
        for entry in entries
        if not re.match(r"[a-z0-9-]+==\S+.*\\\n\s+--hash=sha256:[0-9a-f]{64}", entry)
    ]
    assert wrong == []


def test_everything_the_project_asks_for_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    used = [line for name in ("cli", "documents", "mcp", "otel", "server") for line in extras[name]]
    needed = [
        line for line in (*project["project"]["dependencies"], *used) if not line.startswith("memoranda")
    ]
    wanted = {
        "runtime.txt": [*needed, "pip"],
        "dev.txt": project["dependency-groups"]["dev"],
        "build.txt": [*project["build-system"]["requires"], "uv"],
    }
    for name, asked in wanted.items():
        there = names((ROOT / "requirements" / name).read_text())
        plain = {re.split(r"[\[<>=! ~;]", each)[0].lower().replace("_", "-") for each in asked}
        assert plain <= there, f"python3 scripts/bootstrap.py --lock pins {plain - there} in {name}"


def test_dev_pins_are_the_runtime_pins() -> None:
    runtime, dev = (
        set(re.findall(r"^(\S+==\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE))
        for name in ("runtime.txt", "dev.txt")
    )
    shared = names("\n".join(runtime)) & names("\n".join(dev))
    assert {pin for pin in dev if pin.split("==")[0] in shared} <= runtime


def test_a_change_of_what_it_depends_on_asks_for_a_new_setup(bootstrap: ModuleType) -> None:
    assert not bootstrap.is_current(dev=False)
    bootstrap.STAMP.write_text(json.dumps(bootstrap.stamp(dev=False)))
    assert bootstrap.is_current(dev=False)
    assert not bootstrap.is_current(dev=True)
    bootstrap.STAMP.write_text(json.dumps(bootstrap.stamp(dev=True)))
    assert bootstrap.is_current(dev=False)
    (bootstrap.PINS / "runtime.txt").write_text("numpy==3\n")
    assert not bootstrap.is_current(dev=False)
    bootstrap.STAMP.write_text(json.dumps(bootstrap.stamp(dev=False)))
    (bootstrap.PACKAGES / "one").mkdir(parents=True)
    (bootstrap.PACKAGES / "one" / "pyproject.toml").write_text("[project]\n")
    assert not bootstrap.is_current(dev=False)


def test_a_folder_that_was_moved_is_set_up_anew(bootstrap: ModuleType) -> None:
    bootstrap.STAMP.write_text(json.dumps({**bootstrap.stamp(dev=False), "root": "/elsewhere"}))
    assert not bootstrap.is_current(dev=False)
    assert not bootstrap.usable_venv()


def test_pip_settings_become_uv_settings(bootstrap: ModuleType, tmp_path: Path) -> None:
    conf = tmp_path / "pip.conf"
    conf.write_text(
        "[global]\nindex-url = file:///a\nextra-index-url =\n  file:///b\n  file:///c\nfind_links = /w /x\n"
        "[install]\ntrusted-host = one\n"
    )
    env = {
        "PIP_CONFIG_FILE": str(conf),
        "PIP_CERT": "/ca.pem",
        "PIP_TRUSTED_HOST": "two",
        "HOME": str(tmp_path),
    }
    found = bootstrap.index_settings(env)
    assert found == {
        "UV_DEFAULT_INDEX": "file:///a",
        "UV_INDEX": "file:///b file:///c",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/w,/x",
        "UV_INSECURE_HOST": "two",
        "SSL_CERT_FILE": "/ca.pem",
    }


def test_what_is_set_for_uv_stays(bootstrap: ModuleType, tmp_path: Path) -> None:
    env = {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "file:///a",
        "PIP_FIND_LINKS": "/w",
        "UV_INDEX_URL": "file:///mine",
        "UV_FIND_LINKS": "/mine",
    }
    assert bootstrap.index_settings(env) == {}
    assert bootstrap.index_settings({"PIP_CONFIG_FILE": "/dev/null"}) == {}
