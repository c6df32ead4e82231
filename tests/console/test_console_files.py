"""The console's files: vendored code is what its manifest says, pages are complete, types fit."""

from __future__ import annotations

import json
import re
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from memoranda.server.console_assets import assets
from support.console import NODE, PAGES, SOURCE

VENDOR = SOURCE / "vendor"
LARGEST = 150_000
"""Bytes that a page loads at most, compressed as it is sent."""


def test_vendored_files_are_those_of_the_manifest() -> None:
    listed = json.loads((VENDOR / "manifest.json").read_text("utf-8"))["files"]
    assert {one["file"] for one in listed} == {path.name for path in VENDOR.glob("*.js")}
    for one in listed:
        body = (VENDOR / one["file"]).read_bytes()
        assert sha256(body).hexdigest() == one["sha256"], one["file"]
        assert re.findall(rb"(?:^|[;}])import\b|\bfrom[\"']", body) == [], "it would need an import map"
        assert all((VENDOR / name).read_text("utf-8").strip() for name in one["licences"].values())


def test_modules_import_files_that_exist() -> None:
    for path in SOURCE.rglob("*.js"):
        for name in re.findall(
            r'^(?:import|export) [^"]*from "([^"]+)"|import\("(\./[^"]+)"\)', path.read_text("utf-8"), re.M
        ):
            target = name[0] or name[1]
            assert target.startswith("."), f"{path.name} imports {target}"
            assert (path.parent / target).exists() or target.endswith("types.js"), (
                f"{path.name} imports {target}"
            )


def test_every_page_has_a_module() -> None:
    assert len(PAGES) == len(set(PAGES)) > 1
    assert [page for page in PAGES if not (SOURCE / f"views/{page}.js").exists()] == []


def test_the_shell_of_a_page_names_its_modules() -> None:
    known = assets()
    assert set(known.shells) == {*PAGES, ""}
    named = {
        page: re.findall(
            rf'"modulepreload" href="/console/assets/{known.version}/([^"]+)"', shell.body.decode()
        )
        for page, shell in known.shells.items()
    }
    assert all(set(paths) <= set(known.files) for paths in named.values())
    assert named == {page: ["app.js", f"views/{page}.js"] for page in PAGES} | {"": ["app.js"]}
    assert known.shell("facts/of/nora") is known.shells["facts"]
    assert known.shell("nothing") is known.shell("") is known.shells[""]


def test_nothing_is_inline_and_no_address_is_foreign() -> None:
    for shell in assets().shells.values():
        assert re.findall(rb"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", shell.body) == []
    own = [
        path
        for path in SOURCE.rglob("*.*")
        if path.suffix in (".js", ".css", ".html") and path.parent != VENDOR
    ]
    for path in own:
        text = path.read_text("utf-8")
        assert re.findall(r"https?://[\w.-]+", text) == [], path
        assert "innerHTML" not in text.replace("dangerouslySetInnerHTML", "innerHTML"), path


def test_all_files_together_are_small() -> None:
    initial = [
        asset
        for path, asset in assets().files.items()
        if not path.startswith("views/") and path.endswith((".js", ".css"))
    ]
    largest = max(len(asset.packed) for path, asset in assets().files.items() if path.startswith("views/"))
    assert sum(len(asset.packed) for asset in initial) + largest < LARGEST


@pytest.mark.slow
def test_types_fit() -> None:
    compiler = NODE / ".bin/tsc"
    if not compiler.exists():
        pytest.skip("typescript is missing; scripts/node_packages installs it")
    done = subprocess.run(
        [str(compiler), "-p", str(Path(__file__).parent / "tsconfig.json")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
