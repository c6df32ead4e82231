"""The package of `javascript/` on Node, against a server as users run it."""

from __future__ import annotations

import json
import os
import platform
import runpy
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.archives import unpack

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "javascript"
SDKS = Path(__file__).parent / "sdks"
MASTRA = Path(__file__).parent / "mastra"
SAYS = "In the kitchen."
DEPENDENCIES = ("openapi-fetch", "openapi-typescript-helpers")


def missing() -> str | None:
    """Why the tests of Node cannot run here."""
    if shutil.which("node") is None:
        return "node is not on the PATH"
    if not all((folder / "node_modules" / ".installed").is_file() for folder in (SDKS, PACKAGE)):
        return "the packages of Node are not installed; scripts/node_packages does it"
    return None


installed = pytest.mark.skipif(missing() is not None, reason=str(missing()))
generator: Any = runpy.run_path(str(ROOT / "scripts" / "javascript_types.py"))


def ran(command: Sequence[str], folder: Path, **variables: str) -> str:
    """What a command prints, which must succeed."""
    env = {**os.environ, **variables}
    ended = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def run_tests(stage: Any, file: str, folder: Path, node: str = "node") -> None:
    """Runs a file of tests on Node. All of its tests must run and pass."""
    stage.says(*[SAYS] * 2)
    command = [node, "--test", "--test-reporter=tap", file]
    printed = ran(command, folder, MEMORANDA_URL=stage.url, MEMORANDA_SAYS=SAYS)
    tests = (PACKAGE / "test" / file).read_text().count("\ntest(")
    assert f"# pass {tests}\n" in printed, printed


@pytest.fixture
def mastra() -> Path:
    """The folder of Mastra's packages, which are fetched from the package index if they are not there."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not on the PATH")
    ran([str(ROOT / "scripts" / "node_packages"), "tests/wire/mastra"], ROOT)
    return MASTRA


def project(folder: Path, *, built: bool = False, **packages: Path) -> Path:
    """A user's project with the packed package, the tests, and other packages by name; `_` stands for `@`.

    `built` packs it as it is published: its script `prepack` checks its types and makes the declarations.
    """
    npm = ["npm", "pack", "--silent", "--pack-destination", str(folder)]
    archive = folder / ran(npm if built else [*npm, "--ignore-scripts"], PACKAGE).split()[-1]
    modules = folder / "node_modules"
    modules.mkdir()
    unpack(archive, modules)
    (modules / "package").rename(modules / "memoranda")
    others = {name: PACKAGE / "node_modules" / name for name in DEPENDENCIES}
    for name, place in {**others, **packages}.items():
        assert place.is_dir(), place
        (modules / name.replace("_", "@")).symlink_to(place)
    for file_ in (PACKAGE / "test").iterdir():
        shutil.copy(file_, folder)
    return folder


# --- the client ------------------------------------------------------------------------------------


@installed
def test_the_client(stage: Any) -> None:
    run_tests(stage, "client.test.mjs", PACKAGE / "test")


@installed
@pytest.mark.slow
@pytest.mark.parametrize("version", ["18.20.8", "24.9.0"])
def test_the_client_on_other_versions_of_node(stage: Any, tmp_path: Path, version: str) -> None:
    machine = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
    name = f"node-linux-{machine}"
    npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(tmp_path)]
    ran([*npm, f"{name}@{version}"], tmp_path)
    run_tests(
        stage, "client.test.mjs", PACKAGE / "test", str(tmp_path / "node_modules" / name / "bin" / "node")
    )


def test_the_types_are_those_of_the_document() -> None:
    with generator["FILE"].open() as file:
        assert file.readline() == generator["first_line"](), "run scripts/javascript_types.py"


def test_the_classes_are_those_of_the_operations() -> None:
    for path, text in generator["classes"]().items():
        assert path.read_text() == text, "run scripts/javascript_types.py"


@installed
@pytest.mark.slow
def test_the_types_are_what_the_generator_makes() -> None:
    assert generator["FILE"].read_text() == generator["types"]()


@installed
@pytest.mark.slow
def test_the_first_example_of_the_readme(served: Any, tmp_path: Path) -> None:
    readme = (PACKAGE / "README.md").read_text()
    example = readme.split("```js\n")[1].split("```")[0]
    address = "http://127.0.0.1:8377"
    assert address in example
    (project(tmp_path) / "example.mjs").write_text(example.replace(address, served().url))
    printed = ran(["node", "example.mjs"], tmp_path)
    assert printed.startswith("Mara is allergic to bees.\n")
    assert "Ana: I have moved to Berlin." in printed


# --- with the AI SDK and Mastra --------------------------------------------------------------------


@installed
@pytest.mark.slow
@pytest.mark.parametrize("version", ["ai", "ai-6"])
def test_the_ai_sdk(stages: Any, tmp_path: Path, version: str) -> None:
    with stages() as stage:  # without memories of other tests, which a conversation would be told
        run_tests(stage, "ai.test.mjs", project(tmp_path, ai=SDKS / "node_modules" / version))


@installed
@pytest.mark.slow
@pytest.mark.parametrize("file", ["mastra.test.mjs", "mastra.memory.test.mjs"])
def test_mastra(stages: Any, tmp_path: Path, mastra: Path, file: str) -> None:
    with stages() as stage:
        run_tests(stage, file, project(tmp_path, _mastra=mastra / "node_modules" / "@mastra"))


AFTER = """
const { threads } = await memory.listThreads({ filter: { resourceId: 'mara' } });
const texts = model.prompts.at(-1).flatMap(({ content }) => content[0].text ?? []);
console.log(JSON.stringify([threads.map(({ id }) => id), texts]));
"""


@installed
@pytest.mark.slow
def test_the_example_for_mastra_and_a_restart(served: Any, tmp_path: Path, mastra: Path) -> None:
    readme = (PACKAGE / "README.md").read_text()
    example = readme.split("## Mastra\n")[1].split("```js\n")[1].split("```")[0]
    script = "import { scripted } from './scripted.mjs';\nconst model = scripted(['You live in Lisbon.']);\n"
    used = project(tmp_path, _mastra=mastra / "node_modules" / "@mastra")

    def printed(server: Any) -> list[str]:
        address = "http://127.0.0.1:8377"
        assert address in example
        (used / "example.mjs").write_text(script + example.replace(address, server.url) + AFTER)
        return ran(["node", "example.mjs"], used).splitlines()

    said = ["I moved to Lisbon in May.", "You live in Lisbon."]
    first = served("first")
    assert printed(first) == [f"2 {said[0]}", json.dumps([["trip"], said[:1]], separators=(",", ":"))]
    first.end()
    again = printed(served("first"))
    assert again == [f"4 {said[0]}", json.dumps([["trip"], [*said, said[0]]], separators=(",", ":"))]
    assert printed(served("second"))[0] == f"2 {said[0]}"


# --- the package -----------------------------------------------------------------------------------


@installed
@pytest.mark.slow
def test_the_published_package(tmp_path: Path, mastra: Path) -> None:
    others = {"ai": SDKS / "node_modules" / "ai", "_types": PACKAGE / "node_modules" / "@types"}
    used = project(tmp_path, built=True, _mastra=mastra / "node_modules" / "@mastra", **others)
    packed = used / "node_modules" / "memoranda"
    names = {str(file.relative_to(packed)) for file in packed.rglob("*") if file.is_file()}
    sources = {str(file.relative_to(PACKAGE)) for file in (PACKAGE / "src").rglob("*.js")}
    types = {name.replace("src/", "types/", 1).replace(".js", ".d.ts") for name in sources}
    assert names == {"LICENSE", "README.md", "package.json", "types/openapi.d.ts", *sources, *types}
    (used / "package.json").write_text('{"type": "module"}')
    ran([str(PACKAGE / "node_modules" / ".bin" / "tsc"), "--project", "tsconfig.json"], used)
